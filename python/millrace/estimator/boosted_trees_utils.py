# SPDX-License-Identifier: Apache-2.0
"""What boosted trees say of themselves: what features have gained, and what they add to a prediction (Palczewska et al. 2013)."""

from __future__ import annotations

import collections
from typing import Any, Callable, List, Sequence, Tuple

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.protos import trees

_DEBUG_PROTO_KEY = "_serialized_debug_outputs_proto"


def _sum_by_feature_col_name_and_sort(names: Sequence[str], vals: Any) -> Any:
    """Sums by name, those of the largest magnitude first."""
    sums: Any = collections.OrderedDict()
    for name, value in zip(names, vals):
        sums[name] = sums.get(name, 0) + value
    return collections.OrderedDict(sorted(sums.items(), key=lambda item: abs(item[1]), reverse=True))


def _parse_debug_proto_string(example_proto_serialized: bytes) -> Tuple[List[int], List[float]]:
    """The features that an example was split by, and its logit before and after each split."""
    way = trees.DebugOutput.FromString(example_proto_serialized)
    return list(way.feature_ids), list(way.logits_path)


def _identity(logits: Any) -> Any:
    return logits


def _sigmoid(logits: Any) -> Any:
    return 1 / (1 + np.exp(-np.array(logits)))


def _compute_directional_feature_contributions(
    example_feature_ids: Sequence[int], example_logits_paths: Any, activation: Callable[[Any], Any], feature_col_names: Sequence[str]
) -> Tuple[Any, Any]:
    """The prediction before all splits, and what the splits by each column change."""
    predictions = np.array(activation(example_logits_paths))
    changes = np.bincount(np.array(example_feature_ids, int), weights=np.diff(predictions), minlength=len(feature_col_names))
    return predictions[0], _sum_by_feature_col_name_and_sort(feature_col_names, changes)


def _parse_explanations_from_prediction(serialized_debug_proto: bytes, feature_col_names: Sequence[str], classification: bool = False) -> Tuple[Any, Any]:
    """The same from a DebugOutput: of a probability, or of a number."""
    features, logits = _parse_debug_proto_string(serialized_debug_proto)
    return _compute_directional_feature_contributions(features, logits, _sigmoid if classification else _identity, feature_col_names)


def _compute_feature_importances_per_tree(tree: Any, num_features: int) -> Any:
    """What each feature has gained in a tree."""
    gained = np.zeros(num_features)
    for node in tree.nodes:
        kind = node.WhichOneof("node")
        if kind in ("bucketized_split", "categorical_split"):
            gained[getattr(node, kind).feature_id] += node.metadata.gain
        elif kind != "leaf":
            raise at_user_line(ValueError("Unexpected split type %s" % kind))
    return gained


def _compute_feature_importances(tree_ensemble: Any, num_features: int, normalize: bool) -> Any:
    """What each feature has gained in all trees, or which part of the whole that is."""
    weights = np.array(list(tree_ensemble.tree_weights)).reshape(-1, 1)
    gained = np.array([_compute_feature_importances_per_tree(tree, num_features) for tree in tree_ensemble.trees])
    total = np.sum(gained * weights, axis=0)
    if not normalize:
        return total
    if np.any(total < 0):
        raise at_user_line(AssertionError("feature_importances must be non-negative."))
    if not np.sum(total) > 0:
        raise at_user_line(AssertionError("Trees are all empty or contain only a root node."))
    return total / np.sum(total)


def feature_importances(serialized: bytes, names: Sequence[str], normalize: bool) -> Any:
    """What each column has gained in a serialized ensemble."""
    if not serialized:
        raise at_user_line(ValueError("Found empty serialized string for TreeEnsemble.You should only call this method after training."))
    ensemble = trees.TreeEnsemble.FromString(serialized)
    return _sum_by_feature_col_name_and_sort(names, _compute_feature_importances(ensemble, len(names), normalize))
