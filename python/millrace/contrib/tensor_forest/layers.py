# SPDX-License-Identifier: Apache-2.0
"""Layers of hybrid models: trees of soft decisions, and neural networks. Each is made of settings (ForestHParams), its number and what says where
variables go, which may be None; inference_graph(data) is what it makes of [batch, features]."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List

from millrace.contrib.layers import fully_connected
from millrace.contrib.tensor_forest import routing
from millrace.framework.graph import Tensor, device
from millrace.ops import array_ops, init_ops
from millrace.ops.variable_scope import get_variable, variable_scope


class Dense:
    """Fully connected layers by number: each has its variables from the first call on."""

    def __init__(self) -> None:
        self._scopes: List[Any] = []

    def __call__(self, number: int, data: Any, units: int, **kwargs: Any) -> Tensor:
        made: Tensor
        if number < len(self._scopes):
            made = fully_connected(data, units, scope=self._scopes[number], reuse=True, **kwargs)
            return made
        with variable_scope(None, "fully_connected") as scope:
            self._scopes.append(scope)
        made = fully_connected(data, units, scope=scope, **kwargs)
        return made


class HybridLayer:
    """One layer. A class of your own makes its variables in _define_vars, and fills in inference_graph."""

    def __init__(self, params: Any, layer_num: int, device_assigner: Any, *args: Any, **kwargs: Any) -> None:
        self.layer_num, self.device_assigner, self.params = layer_num, device_assigner, params
        self._define_vars(params, **kwargs)

    def _define_vars(self, params: Any, **kwargs: Any) -> None:
        """Nothing, unless a class says so."""

    def inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """What the layer makes of the data."""
        raise NotImplementedError("%s has no inference_graph" % type(self).__name__)

    def _placed(self) -> Any:
        return contextlib.nullcontext() if self.device_assigner is None else device(self.device_assigner)


# ---- trees ----


class DecisionsToDataLayer(HybridLayer):
    """How probably an example reaches the leaves of a tree of decisions by all features, [batch, num_leaves]."""

    _prefix = ""

    def _define_vars(self, params: Any, **kwargs: Any) -> None:
        initializer = init_ops.truncated_normal_initializer(mean=params.weight_init_mean, stddev=params.weight_init_std)
        with self._placed():
            shape = [params.num_nodes, self._features_per_node()]
            self.tree_parameters = get_variable("%stree_parameters_%d" % (self._prefix, self.layer_num), shape=shape, initializer=initializer)
            self.tree_thresholds = get_variable("%stree_thresholds_%d" % (self._prefix, self.layer_num), shape=shape[:1], initializer=initializer)

    def _features_per_node(self) -> int:
        return int(self.params.num_features)

    def _tree(self, data: Any) -> Dict[str, Any]:
        return {"input_data": data, "tree_parameters": self.tree_parameters, "tree_biases": self.tree_thresholds}

    def _leaves(self, nodes: Tensor) -> Tensor:
        first = self.params.num_nodes - self.params.num_leaves - 1  # which is TensorFlow's: the last inner node, and all leaves but the last
        return array_ops.slice(nodes, [0, first], [-1, self.params.num_leaves])

    def inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """Probabilities of leaves, [batch, num_leaves]."""
        with self._placed():
            return self._leaves(routing.routing_function(**self._tree(data), max_nodes=self.params.num_nodes))


class KFeatureDecisionsToDataLayer(DecisionsToDataLayer):
    """DecisionsToDataLayer whose nodes look at num_features_per_node features each."""

    def _features_per_node(self) -> int:
        return int(self.params.num_features_per_node)

    def inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """Probabilities of leaves, [batch, num_leaves]."""
        with self._placed():
            routes = routing.k_feature_routing_function(
                **self._tree(data),
                layer_num=self.layer_num,
                max_nodes=self.params.num_nodes,
                num_features_per_node=self._features_per_node(),
                random_seed=self.params.base_random_seed,
            )
            return self._leaves(routes)


class HardDecisionsToDataLayer(DecisionsToDataLayer):
    """DecisionsToDataLayer that takes the more probable way at each node once it is trained."""

    _prefix = "hard_"

    def soft_inference_graph(self, data: Any) -> Tensor:
        """What it is trained by: probabilities of leaves, [batch, num_leaves]."""
        return super().inference_graph(data)

    def inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """The probability of the leaf that is reached, and zeros, [batch, num_leaves]."""
        with self._placed():
            chances, path = routing.hard_routing_function(**self._tree(data), max_nodes=self.params.num_nodes, tree_depth=self.params.hybrid_tree_depth)
            return self._leaves(routing.unpack_path(path, chances))


class StochasticHardDecisionsToDataLayer(HardDecisionsToDataLayer):
    """HardDecisionsToDataLayer that is trained by ways that are drawn by their probabilities."""

    _prefix = "stochastic_hard_"

    def soft_inference_graph(self, data: Any) -> Tensor:
        """The probability of a leaf that is drawn, and zeros, [batch, num_leaves]."""
        with self._placed():
            chances, path = routing.stochastic_hard_routing_function(
                **self._tree(data), tree_depth=self.params.hybrid_tree_depth, random_seed=self.params.base_random_seed
            )
            return self._leaves(routing.unpack_path(path, chances))


class StochasticSoftDecisionsToDataLayer(StochasticHardDecisionsToDataLayer):
    """StochasticHardDecisionsToDataLayer that gives probabilities of all leaves once it is trained."""

    _prefix = "stochastic_soft_"

    def inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """Probabilities of leaves, [batch, num_leaves]."""
        with self._placed():
            return self._leaves(routing.routing_function(**self._tree(data), max_nodes=self.params.num_nodes))


# ---- neural networks ----


class FullyConnectedLayer(HybridLayer):
    """num_layers layers of layer_size units: what the last gives, [batch, layer_size]."""

    def _define_vars(self, params: Any, **kwargs: Any) -> None:
        self._dense = Dense()

    def _all(self, data: Any) -> List[Tensor]:
        made = [data]
        for number in range(self.params.num_layers):
            made.append(self._dense(number, made[-1], self.params.layer_size))
        return made[1:]

    def inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """[batch, layer_size]."""
        with self._placed():
            return self._all(data)[-1]


class FlattenedFullyConnectedLayer(FullyConnectedLayer):
    """num_layers layers of layer_size units: what all of them give, [batch, num_layers * layer_size]."""

    def inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """[batch, num_layers * layer_size]."""
        with self._placed():
            return array_ops.concat(self._all(data), 1, name="flattened_nn_activations")


class ManyToOneLayer(HybridLayer):
    """A layer of one unit, [batch]."""

    def _define_vars(self, params: Any, **kwargs: Any) -> None:
        self._dense = Dense()

    def inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """[batch]."""
        with self._placed():
            return array_ops.squeeze(self._dense(0, data, 1), [1])
