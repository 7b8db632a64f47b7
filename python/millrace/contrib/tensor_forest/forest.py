# SPDX-License-Identifier: Apache-2.0
"""Random forests in a graph: trees that grow with each batch of examples, and what they predict together."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np

from millrace import tf_logging
from millrace.contrib.framework import VariableDeviceChooser
from millrace.contrib.tensor_forest import columns
from millrace.contrib.tensor_forest.params import build_params_proto, serialized
from millrace.contrib.tensor_forest.variables import fertile_stats_variable, tree_variable
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies, device
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, random_ops
from millrace.ops.variable_scope import get_variable

_Data = Tuple[Any, Any, Any, Any]  # dense features, and the indices, values and shape of sparse ones


class TreeVariables:
    """A tree and the statistics of its leaves, which only training has."""

    def __init__(self, params: Any, tree_num: int, training: bool, tree_config: Any = "", tree_stat: Any = "") -> None:
        proto = serialized(params)
        self.stats = fertile_stats_variable(proto, tree_stat, self.get_tree_name("stats", tree_num)) if training else None
        self.tree = tree_variable(proto, tree_config, self.stats, self.get_tree_name("tree", tree_num))

    def get_tree_name(self, name: str, num: int) -> str:
        """The name of a tree's resource."""
        return "%s-%d" % (name, num)


class ForestVariables:
    """The variables of each tree, each on the device that device_assigner says."""

    def __init__(
        self,
        params: Any,
        device_assigner: Callable[..., Any],
        training: bool = True,
        tree_variables_class: Callable[..., Any] = TreeVariables,
        tree_configs: Optional[List[Any]] = None,
        tree_stats: Optional[List[Any]] = None,
    ) -> None:
        self.variables: List[Any] = []
        self.device_dummies: List[Any] = []  # variables of nothing, by which trees find their devices
        for i in range(params.num_trees):
            with device(device_assigner):
                self.device_dummies.append(get_variable(name="device_dummy_%d" % i, shape=0))
            given = {key: values[i] for key, values in (("tree_config", tree_configs), ("tree_stat", tree_stats)) if values is not None}
            with device(self.device_dummies[i].device):
                self.variables.append(tree_variables_class(params, i, training, **given))

    def __setitem__(self, t: int, val: Any) -> None:
        self.variables[t] = val

    def __getitem__(self, t: int) -> Any:
        return self.variables[t]


class RandomForestGraphs:
    """The operations of a forest: those that grow it and those that ask it."""

    def __init__(
        self,
        params: Any,
        tree_configs: Optional[List[Any]] = None,
        tree_stats: Optional[List[Any]] = None,
        device_assigner: Optional[Callable[..., Any]] = None,
        variables: Any = None,
        tree_variables_class: Callable[..., Any] = TreeVariables,
        tree_graphs: Optional[Callable[..., Any]] = None,
        training: bool = True,
    ) -> None:
        self.params = params
        self.device_assigner = device_assigner or VariableDeviceChooser()
        params.params_proto = build_params_proto(params)
        params.serialized_params_proto = params.params_proto.SerializeToString()
        tf_logging.info("Constructing forest with params = ")
        tf_logging.info(params.__dict__)
        self.variables = variables or ForestVariables(params, self.device_assigner, training, tree_variables_class, tree_configs, tree_stats)
        make = tree_graphs or RandomTreeGraphs
        self.trees = [make(self.variables[i], params, i) for i in range(params.num_trees)]

    def _bag_features(self, tree_num: int, input_data: Tensor) -> Tensor:
        if not self.params.bagged_features:
            return input_data
        return array_ops.gather(input_data, np.array(self.params.bagged_features[tree_num], np.int32), axis=1)

    def _bagged_spec(self, tree_num: int, spec: Any) -> Any:
        """The columns of the features that a tree sees."""
        if not self.params.bagged_features:
            return spec
        kinds = [column.original_type for column in spec.dense.cols for _ in range(column.size)]
        bagged = columns.TensorForestDataSpec()
        for feature in self.params.bagged_features[tree_num]:
            column = bagged.dense.add()
            column.name, column.original_type, column.size = str(feature), kinds[feature], 1  # type: ignore[assignment]
        bagged.dense_features_size = bagged.dense.size()
        return bagged

    def get_all_resource_handles(self) -> List[Any]:
        """The handles of all trees, then of all statistics."""
        variables = [self.variables[i] for i in range(len(self.trees))]
        return [v.tree for v in variables] + [v.stats for v in variables]

    def training_graph(self, input_data: Any, input_labels: Any, num_trainers: int = 1, trainer_id: int = 0, **tree_kwargs: Any) -> Operation:
        """Shows a batch to the trees. Of several trainers, each has a part of them. NotImplementedError where sparse features would be bagged."""
        dense, sparse, spec = columns.ParseDataTensorOrDict(input_data)
        labels = columns.ParseLabelTensorOrDict(input_labels)
        tf_logging.info(spec.SerializeToString())
        share = self.params.num_trees / float(num_trainers)
        grown = []
        for i in range(int(trainer_id * share), int((trainer_id + 1) * share)):
            with device(self.variables.device_dummies[i].device):
                seed = self.params.base_random_seed
                data, tree_labels = self._bagged(i, dense, sparse, labels, seed and seed + i)
                of_tree = self._bagged_spec(i, spec)
                grown.append(self.trees[i].training_graph(data, tree_labels, seed and seed + i, of_tree, sparse_features=sparse, **tree_kwargs))
        return control_flow_ops.group(*grown, name="train")

    def _bagged(self, tree: int, dense: Any, sparse: Any, labels: Tensor, seed: int) -> Tuple[Any, Tensor]:
        """What a tree sees of a batch."""
        fraction = self.params.bagging_fraction
        if sparse is not None and (fraction < 1 or self.params.bagged_features):
            raise at_user_line(NotImplementedError("Bagging not supported with sparse features."))
        if fraction < 1:
            drawn = random_ops.random_uniform(array_ops.slice(array_ops.shape(labels), [0], [1]), seed=seed or None)
            chosen = array_ops.squeeze(array_ops.where(gen_ops.less(drawn, fraction)), axis=[1])
            dense, labels = array_ops.gather(dense, chosen), array_ops.gather(labels, chosen)
        return (None if dense is None else self._bag_features(tree, dense)), labels

    def inference_graph(self, input_data: Any, **inference_args: Any) -> Tuple[Tensor, Tensor, Tensor]:
        """(the mean of what the trees say [batch, outputs], their paths [batch, trees], the variance of what they say)."""
        dense, sparse, spec = columns.ParseDataTensorOrDict(input_data)
        said, paths = [], []
        for i, tree in enumerate(self.trees):
            with device(self.variables.device_dummies[i].device):
                data = None if dense is None else self._bag_features(i, dense)
                probabilities, path = tree.inference_graph(data, self._bagged_spec(i, spec), sparse_features=sparse, **inference_args)
                said.append(probabilities)
                paths.append(path)
        with device(self.variables.device_dummies[0].device):
            everything = array_ops.stack(said, axis=1)
            mean = math_ops.divide(math_ops.reduce_sum(everything, 1), float(len(said)), name="probabilities")
            squares = math_ops.reduce_sum(everything * everything, 1) / float(len(said))
            variance = math_ops.maximum(0.0, squares - mean * mean)
            return mean, array_ops.stack(paths, axis=1), variance

    def average_size(self) -> Tensor:
        """The mean number of a tree's nodes."""
        return math_ops.reduce_mean(math_ops.to_float(array_ops.stack([tree.size() for tree in self.trees])))

    def training_loss(self, features: Any, labels: Any, name: str = "training_loss") -> Tensor:
        """Less the more the trees have grown."""
        del features, labels  # trees tell by their sizes
        return math_ops.negative(self.average_size(), name=name)

    def validation_loss(self, features: Any, labels: Any) -> Tensor:
        """The same."""
        return self.training_loss(features, labels, name="validation_loss")

    def average_impurity(self) -> Tensor:
        """Not provided: trees do not tell it."""
        raise at_user_line(AttributeError("trees do not tell their impurity: use average_size() or training_loss()"))

    def feature_importances(self) -> Tensor:
        """The part of all splits that each feature makes; NaN while there are none."""
        counts = math_ops.reduce_sum(array_ops.stack([tree.feature_usage_counts() for tree in self.trees]), 0)
        return math_ops.truediv(counts, math_ops.reduce_sum(counts))


class RandomTreeGraphs:
    """The operations of one tree."""

    def __init__(self, variables: Any, params: Any, tree_num: int) -> None:
        self.variables, self.params, self.tree_num = variables, params, tree_num

    def _attributes(self, spec: Any) -> Dict[str, Any]:
        return {"input_spec": spec.SerializeToString(), "params": self.params.serialized_params_proto}

    def training_graph(
        self, input_data: Any, input_labels: Any, random_seed: int, data_spec: Any, sparse_features: Optional[SparseTensor] = None, input_weights: Any = None
    ) -> Operation:
        """Shows a batch to the tree, then splits the leaves that have seen enough."""
        weights: Union[List[float], Tensor] = [] if input_weights is None else input_weights
        data, attributes = _inputs(input_data, sparse_features), self._attributes(data_spec)
        tree, stats, params = self.variables.tree, self.variables.stats, attributes["params"]
        leaves = gen_ops.traverse_tree_v4(tree, *data, **attributes)
        updated = gen_ops.update_model_v4(tree, leaves, input_labels, weights, params=params)
        finished = gen_ops.process_input_v4(tree, stats, *data, input_labels, weights, leaves, random_seed=random_seed, **attributes)
        with control_dependencies([updated]):
            return gen_ops.grow_tree_v4(tree, stats, finished, params=params)  # type: ignore[return-value]

    def inference_graph(self, input_data: Any, data_spec: Any, sparse_features: Optional[SparseTensor] = None) -> Any:
        """(what the tree says, the paths of the examples through it)."""
        return gen_ops.tree_predictions_v4(self.variables.tree, *_inputs(input_data, sparse_features), **self._attributes(data_spec))

    def size(self) -> Tensor:
        """The number of nodes."""
        return gen_ops.tree_size(self.variables.tree)

    def feature_usage_counts(self) -> Tensor:
        """How many nodes are split by each feature."""
        return gen_ops.feature_usage_counts(self.variables.tree, params=self.params.serialized_params_proto)


def _inputs(dense: Any, sparse: Optional[SparseTensor]) -> _Data:
    dense = np.zeros([0], np.float32) if dense is None else dense
    if sparse is None:
        return dense, np.zeros([0], np.int64), np.zeros([0], np.float32), np.zeros([0], np.int64)
    return dense, sparse.indices, math_ops.cast(sparse.values, dtypes.float32), sparse.dense_shape


def get_epoch_variable() -> Any:
    """A variable of one number, the epoch of the examples."""
    return get_variable(name="data_epoch", dtype=dtypes.int32, shape=[1], trainable=False, initializer=np.zeros([1], np.int32))
