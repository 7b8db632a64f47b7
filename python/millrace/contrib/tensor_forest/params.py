# SPDX-License-Identifier: Apache-2.0
"""The settings of forests."""

from __future__ import annotations

import math
import random
from typing import Any, Dict, List, Union

from millrace.framework.errors import at_user_line
from millrace.gfile import GFile
from millrace.protos import forests as messages
from millrace.protos import text_format

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
# (of the leaves, of the statistics) by model_name; (leaves, statistics, collection) of regression.
CLASSIFICATION_LEAF_MODEL_TYPES = {"all_dense": (0, 0), "all_sparse": (1, 1), "sparse_then_dense": (3, 3)}
REGRESSION_MODEL_TYPE = (2, 2, 0)
FINISH_TYPES = {"basic": 0, "hoeffding": 2, "bootstrap": 3}
PRUNING_TYPES = {"none": 0, "half": 1, "quarter": 2, "10_percent": 3, "hoeffding": 4}
SPLIT_TYPES = {"less_or_equal": 0, "less": 1}


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
        """Sets those that others imply where nobody has. Returns itself. KeyError for a name that stands for nothing."""
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
        leaves, statistics = REGRESSION_MODEL_TYPE[:2] if given["regression"] else _number(CLASSIFICATION_LEAF_MODEL_TYPES, given["model_name"])
        given.update(
            leaf_model_type=leaves,
            stats_model_type=statistics,
            finish_type=_number(FINISH_TYPES, given["split_finish_name"]),
            pruning_type=_number(PRUNING_TYPES, given["split_pruning_name"]),
            split_type=_number(SPLIT_TYPES, given["split_name"]),
        )
        return self


def _number(of: Dict[str, Any], name: str) -> Any:
    if name not in of:
        raise at_user_line(KeyError("%r is none of %s" % (name, ", ".join(sorted(of)))))
    return of[name]


def _choices(features: int, kept: int, trees: int) -> List[List[int]]:
    """For each tree the features that it sees."""
    return [random.sample(range(features), kept) for _ in range(trees)]


def parse_number_or_string_to_proto(proto: Any, param: Union[float, str]) -> None:
    """Sets a DepthDependentParam: a number at all depths, or what a text of the message says."""
    if not isinstance(param, str) or param.isdigit():
        proto.constant_value = float(param)
    else:
        text_format.Merge(param, proto)


def build_params_proto(params: Any) -> Any:
    """Settings that are filled in, as a TensorForestParams. param_file names a text of the message, which wins."""
    proto = messages.TensorForestParams()
    if params.initialize_average_splits:
        proto.initialize_average_splits = True
    proto.num_trees, proto.max_nodes, proto.num_features = params.num_trees, params.max_nodes, params.num_features
    proto.leaf_type, proto.stats_type = params.leaf_model_type, params.stats_model_type
    proto.collection_type, proto.inequality_test_type = 0, params.split_type
    proto.pruning_type.type, proto.finish_type.type = params.pruning_type, params.finish_type
    proto.is_regression, proto.num_outputs = bool(params.regression), params.num_classes
    for name in ("collate_examples", "checkpoint_stats", "use_running_stats_method", "inference_tree_paths"):
        setattr(proto, name, bool(getattr(params, name)))
    parse_number_or_string_to_proto(proto.pruning_type.prune_every_samples, params.prune_every_samples)
    parse_number_or_string_to_proto(proto.finish_type.check_every_steps, params.early_finish_check_every_samples)
    for name in ("num_splits_to_consider", "split_after_samples", "dominate_fraction"):
        parse_number_or_string_to_proto(getattr(proto, name), getattr(params, name))
    if params.param_file:
        with GFile(params.param_file) as file:
            text_format.Merge(file.read(), proto)
    return proto


def serialized(params: Any) -> bytes:
    """The attribute `params` of ops: of bytes, of a message, or of settings that are filled in."""
    if isinstance(params, bytes):
        return params
    made = params if hasattr(params, "SerializeToString") else build_params_proto(params)
    return bytes(made.SerializeToString())
