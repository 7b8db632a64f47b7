# SPDX-License-Identifier: Apache-2.0
"""split_handler_ops of tf.contrib.boosted_trees: the best split of each node by one feature."""

from __future__ import annotations

from typing import Any

from millrace.ops import gen_ops


def build_dense_inequality_splits(*args: Any, weak_learner_type: Any = 0, **kwargs: Any) -> Any:
    """(nodes, gains, serialized SplitInfos) of a feature that all examples have."""
    return gen_ops.build_dense_inequality_splits(*args, weak_learner_type=weak_learner_type, **kwargs)


def build_sparse_inequality_splits(*args: Any, weak_learner_type: Any = 0, **kwargs: Any) -> Any:
    """The same of one that examples may lack."""
    del weak_learner_type  # there is one kind
    return gen_ops.build_sparse_inequality_splits(*args, **kwargs)


def build_categorical_equality_splits(*args: Any, weak_learner_type: Any = 0, **kwargs: Any) -> Any:
    """The same of categories."""
    return gen_ops.build_categorical_equality_splits(*args, weak_learner_type=weak_learner_type, **kwargs)
