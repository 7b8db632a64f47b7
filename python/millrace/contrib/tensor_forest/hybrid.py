# SPDX-License-Identifier: Apache-2.0
"""Models of trees of soft decisions and neural networks, trained together."""

from __future__ import annotations

from typing import Any

from millrace import losses, nn
from millrace.contrib.layers import apply_regularization, l1_regularizer, l2_regularizer
from millrace.contrib.tensor_forest import layers as hybrid_layers
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Operation, Tensor
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.variables import trainable_variables
from millrace.train.global_step import get_or_create_global_step
from millrace.train.rules import AdagradOptimizer


class HybridModel:
    """Layers, one after another, and one that makes num_classes outputs of them, or one where params.regression is true.

    params: ForestHParams with learning_rate, regularization ("l1", "l2" or ""), regularization_strength, and what the layers ask for. A member of
    self.layers may be a list of layers, whose outputs are joined."""

    _activation: Any = staticmethod(array_ops.identity)

    def __init__(self, params: Any, device_assigner: Any = None, optimizer_class: Any = AdagradOptimizer, **kwargs: Any) -> None:
        self.device_assigner, self.params = device_assigner, params
        self.optimizer = optimizer_class(params.learning_rate)
        self.is_regression, self.regularizer = params.regression, self._regularizer(params)
        params.num_nodes = 2**params.hybrid_tree_depth - 1
        params.num_leaves = 2 ** (params.hybrid_tree_depth - 1)
        params.num_features_per_node = int(params.feature_bagging_fraction * params.num_features)
        self.layers: Any = []
        self._last = hybrid_layers.Dense()

    @staticmethod
    def _regularizer(params: Any) -> Any:
        made = {"l1": l1_regularizer, "l2": l2_regularizer}.get(params.regularization)
        return None if made is None else made(params.regularization_strength)

    def _do_layer_inference(self, layer: Any, data: Any) -> Tensor:
        """What a layer, or each of a list, makes of the data."""
        if isinstance(layer, list):
            return array_ops.concat([self._do_layer_inference(each, data) for each in layer], 1)
        made: Tensor = layer.inference_graph(data)
        return made

    def _base_inference(self, data: Any, data_spec: Any = None) -> Tensor:
        made = convert_to_tensor(data, dtype=dtypes.float32)
        for layer in self.layers:
            made = self._do_layer_inference(layer, made)
        return self._outputs(made)

    def _outputs(self, made: Tensor) -> Tensor:
        return self._last(0, made, 1 if self.is_regression else self.params.num_classes, activation_fn=self._activation)

    def inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """The outputs, [batch, num_classes] or [batch, 1], of data [batch, num_features]."""
        return self._base_inference(data, data_spec)

    def training_inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """The outputs that the loss is of."""
        return self._base_inference(data, data_spec)

    def predict_proba(self, data: Any, data_spec: Any = None) -> Tensor:
        """Probabilities, [batch, num_classes]."""
        return nn.softmax(self.inference_graph(data, data_spec), name="probabilities")

    def training_graph(self, data: Any, labels: Any, data_spec: Any = None, epoch: Any = None) -> Operation:
        """A step of the optimizer."""
        del data_spec, epoch  # of forests that grow; layers take the data as they are
        made: Operation = self.optimizer.minimize(self.training_loss(data, labels), global_step=get_or_create_global_step())
        return made

    def loss(self, data: Any, labels: Any) -> Tensor:
        """Cross entropy of labels [batch] that are numbers of classes; for a regression the root of the mean square of the error."""
        outputs = self.training_inference_graph(data)
        if self.is_regression:
            wanted = math_ops.cast(convert_to_tensor(labels), dtypes.float32)
            loss = gen_ops.sqrt(losses.mean_squared_error(wanted, array_ops.squeeze(outputs, [1])), name="loss")
        else:
            classes = array_ops.reshape(math_ops.cast(convert_to_tensor(labels), dtypes.int64), [-1])
            loss = math_ops.reduce_mean(nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=outputs), name="loss")
        return loss if self.regularizer is None else loss + apply_regularization(self.regularizer, trainable_variables())

    def training_loss(self, data: Any, labels: Any) -> Tensor:
        """The loss that the optimizer makes less."""
        return self.loss(data, labels)

    def validation_loss(self, data: Any, labels: Any) -> Tensor:
        """The loss of what is held back."""
        return self.loss(data, labels)


class NN(HybridModel):
    """A neural network alone."""

    def __init__(self, params: Any, device_assigner: Any = None, optimizer_class: Any = AdagradOptimizer, **kwargs: Any) -> None:
        super().__init__(params, device_assigner, optimizer_class, **kwargs)
        self.layers = [hybrid_layers.FullyConnectedLayer(params, 0, device_assigner)]


class DecisionsToDataThenNN(HybridModel):
    """A tree of decisions by all features before a neural network."""

    _tree: Any = hybrid_layers.DecisionsToDataLayer

    def __init__(self, params: Any, device_assigner: Any = None, optimizer_class: Any = AdagradOptimizer, **kwargs: Any) -> None:
        super().__init__(params, device_assigner, optimizer_class, **kwargs)
        self.layers = [self._tree(params, 0, device_assigner), hybrid_layers.FullyConnectedLayer(params, 1, device_assigner)]


class KFeatureDecisionsToDataThenNN(DecisionsToDataThenNN):
    """A tree of decisions by some features before a neural network."""

    _tree = hybrid_layers.KFeatureDecisionsToDataLayer


class ForestToDataThenNN(HybridModel):
    """num_trees trees of decisions by some features before a neural network."""

    def __init__(self, params: Any, device_assigner: Any = None, optimizer_class: Any = AdagradOptimizer, **kwargs: Any) -> None:
        super().__init__(params, device_assigner, optimizer_class, **kwargs)
        trees = [hybrid_layers.KFeatureDecisionsToDataLayer(params, number, device_assigner) for number in range(params.num_trees)]
        self.layers = [trees, hybrid_layers.FullyConnectedLayer(params, params.num_trees, device_assigner)]


class HardDecisionsToDataThenNN(DecisionsToDataThenNN):
    """A tree before a neural network that is trained by soft decisions, and takes the more probable way at each node afterwards."""

    _tree = hybrid_layers.HardDecisionsToDataLayer
    _activation = staticmethod(nn.softmax)

    def _base_inference(self, data: Any, data_spec: Any = None, soft: bool = False) -> Tensor:
        made: Any = convert_to_tensor(data, dtype=dtypes.float32)
        made = self.layers[0].soft_inference_graph(made) if soft else self._do_layer_inference(self.layers[0], made)
        for layer in self.layers[1:]:
            made = self._do_layer_inference(layer, made)
        return self._outputs(made)

    def training_inference_graph(self, data: Any, data_spec: Any = None) -> Tensor:
        """The outputs by soft decisions."""
        return self._base_inference(data, data_spec, soft=True)


class StochasticHardDecisionsToDataThenNN(HardDecisionsToDataThenNN):
    """HardDecisionsToDataThenNN that is trained by ways that are drawn."""

    _tree = hybrid_layers.StochasticHardDecisionsToDataLayer


class StochasticSoftDecisionsToDataThenNN(HardDecisionsToDataThenNN):
    """A tree before a neural network that is trained by ways that are drawn, and makes soft decisions afterwards."""

    _tree = hybrid_layers.StochasticSoftDecisionsToDataLayer
