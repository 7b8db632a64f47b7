# SPDX-License-Identifier: Apache-2.0
"""Three layers for MNIST, trained by KFAC: at once, in towers, and by an estimator."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.contrib.kfac.examples import mnist, training
from millrace.contrib.kfac.layer_collection import LayerCollection
from millrace.estimator import Estimator, EstimatorSpec
from millrace.framework.graph import control_dependencies
from millrace.layers.scoped import Dense
from millrace.ops import control_flow_ops, math_ops
from millrace.train import MonitoredTrainingSession
from millrace.train.global_step import get_or_create_global_step

_BATCH = 64


def fc_layer(layer_id: int, inputs: Any, output_size: int) -> Tuple[Any, Any, Tuple[Any, Any]]:
    """(what comes out [batch, output_size], its tanh, (weights, biases))."""
    layer = Dense(output_size, name="fc_%d" % layer_id)
    made = layer(inputs)
    return made, math_ops.tanh(made), (layer.kernel, layer.bias)


def build_model(examples: Any, labels: Any, num_labels: int, layer_collection: LayerCollection) -> Tuple[Any, Any]:
    """(loss, accuracy) of rows; the layers and logits are registered."""
    made = given = examples
    for i, size in enumerate((128, 64, num_labels)):
        made, active, params = fc_layer(i, given, size)
        layer_collection.register_fully_connected(params, given, made)
        given = active
    layer_collection.register_categorical_predictive_distribution(made, name="logits")
    return training.loss_and_accuracy(made, labels)


def minimize(loss: Any, accuracy: Any, layer_collection: LayerCollection, session_config: Any = None) -> float:
    """Trains until the input ends; the last accuracy."""
    optimizer = training.optimizer_of(layer_collection)
    train = training.train_op(optimizer, loss)
    return training.run(MonitoredTrainingSession(config=session_config), optimizer, train, loss, accuracy)


def train_mnist(data_dir: Optional[str], num_epochs: int, use_fake_data: bool = False) -> float:
    """Trains; the last accuracy."""
    examples, labels = mnist.load_mnist(data_dir, num_epochs, _BATCH, use_fake_data=use_fake_data)
    layer_collection = LayerCollection()
    return minimize(*build_model(examples, labels, 10, layer_collection), layer_collection)


def train_mnist_multitower(data_dir: Optional[str], num_epochs: int, num_towers: int, use_fake_data: bool = False) -> float:
    """Trains, each batch in so many parts; the last accuracy."""
    examples, labels = mnist.load_mnist(data_dir, num_epochs, _BATCH * num_towers, use_fake_data=use_fake_data)
    layer_collection = LayerCollection()
    return minimize(*training.in_towers(_build_of_ten, examples, labels, num_towers, layer_collection), layer_collection)


def _build_of_ten(examples: Any, labels: Any, layer_collection: LayerCollection) -> Tuple[Any, Any]:
    return build_model(examples, labels, 10, layer_collection)


def train_mnist_estimator(data_dir: Optional[str], num_epochs: int, use_fake_data: bool = False) -> None:
    """Trains by an estimator, whose steps update averages and inverses first."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        layer_collection = LayerCollection()
        loss, accuracy = _build_of_ten(features, labels, layer_collection)
        optimizer = training.optimizer_of(layer_collection)
        with control_dependencies([optimizer.cov_update_op]), control_dependencies([control_flow_ops.group(*(make() for make in optimizer.inv_update_thunks))]):
            train = optimizer.minimize(loss, global_step=get_or_create_global_step())
        return EstimatorSpec(mode, loss=loss, train_op=train, predictions={"accuracy": accuracy})

    Estimator(model_fn).train(lambda: mnist.load_mnist(data_dir, num_epochs, _BATCH, use_fake_data=use_fake_data))
