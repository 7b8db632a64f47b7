# SPDX-License-Identifier: Apache-2.0
"""split_handler_ops of tf.contrib.boosted_trees: the best split of each node by one feature."""

from __future__ import annotations

from typing import Any

from millrace.ops import gen_ops


def build_dense_inequality_splits(*args: Any, **kwargs: Any) -> Any:
    """(nodes, gains, serialized SplitInfos) of a feature that all examples have."""
    kwargs.setdefault("weak_learner_type", 0)
    return gen_ops.build_dense_inequality_splits(*args, **kwargs)


def build_sparse_inequality_splits(*args: Any, **kwargs: Any) -> Any:
    """The same of one that examples may lack."""
    kwargs.pop("weak_learner_type", None)  # there is one kind
    return gen_ops.build_sparse_inequality_splits(*args, **kwargs)


def build_categorical_equality_splits(*args: Any, **kwargs: Any) -> Any:
    """The same of categories."""
    kwargs.setdefault("weak_learner_type", 0)
    return gen_ops.build_categorical_equality_splits(*args, **kwargs)
