# SPDX-License-Identifier: Apache-2.0
"""The settings of forests."""

from __future__ import annotations

import math
import random
from typing import Any, Dict, List

_DEFAULTS = {
    "num_trees": 100,
    "max_nodes": 10000,
    "bagging_fraction": 1.0,
    "num_splits_to_consider": 0,
    "feature_bagging_fraction": 1.0,
    "max_fertile_nodes": 0,
    "split_after_samples": 250,
    "valid_leaf_threshold": 1,
    "dominate_method": "bootstrap",
    "dominate_fraction": 0.99,
    "model_name": "all_dense",
    "split_finish_name": "basic",
    "split_pruning_name": "none",
    "prune_every_samples": 0,
    "early_finish_check_every_samples": 0,
    "collate_examples": False,
    "checkpoint_stats": False,
    "use_running_stats_method": False,
    "initialize_average_splits": False,
    "inference_tree_paths": False,
    "param_file": None,
    "split_name": "less_or_equal",
}


class ForestHParams:
    """Attributes by name: those that a forest has, and whatever else is given. num_classes and num_features must be there before fill()."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(_DEFAULTS)
        self.__dict__.update(zip(_DEFAULTS, args))
        self.__dict__.update(kwargs)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError("these hyper-parameters have no %s" % name)

    def values(self) -> Dict[str, Any]:
        """All of them by name."""
        return self.__dict__

    def fill(self) -> "ForestHParams":
        """Sets those that others imply where nobody has. Returns itself."""
        given, features, classes = self.__dict__, self.num_features, self.num_classes
        kept = int(given["feature_bagging_fraction"] * features)
        implied = {
            "regression": False,
            "base_random_seed": 0,
            "num_splits_to_consider": min(max(10, math.isqrt(features)), 1000),
            "num_output_columns": classes + 1,  # one for the count
            "num_outputs": classes if given.get("regression") else 1,
            "bagged_num_features": kept,
            "bagged_features": _choices(features, kept, given["num_trees"]) if given["feature_bagging_fraction"] < 1 else None,
        }
        kept_as_given = ("regression", "base_random_seed", "num_splits_to_consider")
        given.update((name, given.get(name) or value) if name in kept_as_given else (name, value) for name, value in implied.items())
        return self


def _choices(features: int, kept: int, trees: int) -> List[List[int]]:
    """For each tree the features that it sees."""
    return [random.sample(range(features), kept) for _ in range(trees)]
