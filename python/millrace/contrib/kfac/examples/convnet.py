# SPDX-License-Identifier: Apache-2.0
"""Two convolutions and a layer for MNIST, trained by KFAC: at once, in towers, and by tasks in step of which the chief estimates the curvature."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.contrib.kfac.examples import mlp, mnist, training
from millrace.contrib.kfac.layer_collection import LayerCollection
from millrace.framework import graph
from millrace.framework.errors import at_user_line
from millrace.layers.scoped import Conv2D
from millrace.ops import array_ops, math_ops, nn_ops
from millrace.train import MonitoredTrainingSession, SyncReplicasOptimizer, replica_device_setter

_BATCH = 64


def conv_layer(layer_id: int, inputs: Any, kernel_size: int, out_channels: int) -> Tuple[Any, Any, Tuple[Any, Any]]:
    """(what comes out [batch, height, width, out_channels], its tanh, (weights, biases))."""
    layer = Conv2D(out_channels, [kernel_size, kernel_size], padding="SAME", name="conv_%d" % layer_id)
    made = layer(inputs)
    return made, math_ops.tanh(made), (layer.kernel, layer.bias)


def max_pool_layer(layer_id: int, inputs: Any, kernel_size: int, stride: int) -> Any:
    """The largest of each window."""
    with graph.name_scope("pool_%d" % layer_id):
        return nn_ops.max_pool(inputs, [1, kernel_size, kernel_size, 1], [1, stride, stride, 1], padding="SAME", name="pool")


def linear_layer(layer_id: int, inputs: Any, output_size: int) -> Tuple[Any, Tuple[Any, Any]]:
    """(what comes out [batch, output_size], (weights, biases))."""
    made, _, params = mlp.fc_layer(layer_id, inputs, output_size)
    return made, params


def build_model(examples: Any, labels: Any, num_labels: int, layer_collection: LayerCollection) -> Tuple[Any, Any]:
    """(loss, accuracy) of images; the layers and logits are registered."""
    given = examples
    for i in range(2):
        made, active, params = conv_layer(i, given, kernel_size=5, out_channels=16)
        layer_collection.register_conv2d(params, strides=[1, 1, 1, 1], padding="SAME", inputs=given, outputs=made)
        given = max_pool_layer(i, active, kernel_size=3, stride=2)
    flat = array_ops.reshape(given, [-1, given.get_shape()[1:].num_elements()])
    logits, params = linear_layer(2, flat, num_labels)
    layer_collection.register_fully_connected(params, flat, logits)
    layer_collection.register_categorical_predictive_distribution(logits, name="logits")
    return training.loss_and_accuracy(logits, labels)


def minimize_loss_single_machine(loss: Any, accuracy: Any, layer_collection: LayerCollection, device: str = "/cpu:0", session_config: Any = None) -> float:
    """Trains until the input ends, on a device; the last accuracy."""
    with graph.device(device):
        optimizer = training.optimizer_of(layer_collection)
        train = training.train_op(optimizer, loss)
    return training.run(MonitoredTrainingSession(config=session_config), optimizer, train, loss, accuracy)


def _placing(task_id: int, num_ps_tasks: int) -> Any:
    """Which device operations go to: variables to the servers, if there are any."""
    return replica_device_setter(num_ps_tasks, worker_device="/job:worker/task:%d" % task_id) if num_ps_tasks else None


def distributed_grads_only_and_ops_chief_worker(
    task_id: int,
    is_chief: bool,
    num_worker_tasks: int,
    num_ps_tasks: int,
    master: str,
    checkpoint_dir: Optional[str],
    loss: Any,
    accuracy: Any,
    layer_collection: LayerCollection,
) -> float:
    """Trains until the input ends, in step with the other tasks, whose gradients are averaged; the chief updates averages and inverses. The last accuracy."""
    with graph.device(_placing(task_id, num_ps_tasks)):
        optimizer = training.optimizer_of(layer_collection)
        optimizer.cov_update_op, optimizer.inv_update_op  # noqa: B018  (made before the session finishes the graph)
        in_step = SyncReplicasOptimizer(optimizer, replicas_to_aggregate=num_worker_tasks)
        train = training.train_op(in_step, loss)
    hooks = [in_step.make_session_run_hook(is_chief)]
    session = MonitoredTrainingSession(master=master, is_chief=is_chief, checkpoint_dir=checkpoint_dir, hooks=hooks, stop_grace_period_secs=0)
    return training.run(session, optimizer, train, loss, accuracy, updates=is_chief)


def train_mnist_single_machine(data_dir: Optional[str], num_epochs: int, use_fake_data: bool = False, device: str = "/cpu:0") -> float:
    """Trains; the last accuracy."""
    examples, labels = mnist.load_mnist(data_dir, num_epochs, _BATCH, flatten_images=False, use_fake_data=use_fake_data)
    layer_collection = LayerCollection()
    return minimize_loss_single_machine(*build_model(examples, labels, 10, layer_collection), layer_collection, device=device)


def train_mnist_multitower(data_dir: Optional[str], num_epochs: int, num_towers: int, use_fake_data: bool = False) -> float:
    """Trains, each batch in so many parts; the last accuracy."""
    examples, labels = mnist.load_mnist(data_dir, num_epochs, _BATCH * num_towers, flatten_images=False, use_fake_data=use_fake_data)
    layer_collection = LayerCollection()

    def build(some: Any, theirs: Any, collection: LayerCollection) -> Tuple[Any, Any]:
        return build_model(some, theirs, 10, collection)

    return minimize_loss_single_machine(*training.in_towers(build, examples, labels, num_towers, layer_collection), layer_collection)


def train_mnist_distributed_sync_replicas(
    task_id: int,
    is_chief: bool,
    num_worker_tasks: int,
    num_ps_tasks: int,
    master: str,
    data_dir: Optional[str],
    num_epochs: int,
    op_strategy: str = "chief_worker",
    use_fake_data: bool = False,
) -> float:
    """Trains as one of several tasks; the last accuracy. op_strategy is "chief_worker": the chief estimates the curvature."""
    if op_strategy != "chief_worker":
        raise at_user_line(NotImplementedError("op_strategy %r is not provided: give chief_worker." % op_strategy))
    examples, labels = mnist.load_mnist(data_dir, num_epochs, _BATCH, flatten_images=False, use_fake_data=use_fake_data)
    layer_collection = LayerCollection()
    with graph.device(_placing(task_id, num_ps_tasks)):
        loss, accuracy = build_model(examples, labels, 10, layer_collection)
    told = (task_id, is_chief, num_worker_tasks, num_ps_tasks, master, None)
    return distributed_grads_only_and_ops_chief_worker(*told, loss, accuracy, layer_collection)
