# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.gan.features: conditions of generators and discriminators, pools of what was generated before, weights that are held small."""

from __future__ import annotations

from typing import Any

from millrace.contrib import layers
from millrace.contrib.gan.virtual_batchnorm import VBN  # noqa: F401
from millrace.contrib.wrapping_optimizers import VariableClippingOptimizer
from millrace.framework import nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops, random_ops
from millrace.ops.queues import RandomShuffleQueue
from millrace.ops.variable_scope import get_variable


def clip_variables(optimizer: Any, variables: Any, weight_clip: float) -> Any:
    """An optimizer that holds all weights of variables within weight_clip of 0, as Wasserstein GANs need (Arjovsky 2017)."""
    if weight_clip < 0:
        raise at_user_line(ValueError("`discriminator_weight_clip` must be positive. Instead, was %s" % weight_clip))
    return VariableClippingOptimizer(optimizer, {variable: [] for variable in variables}, weight_clip, use_locking=True, colocate_clip_ops_with_vars=True)


def clip_discriminator_weights(optimizer: Any, model: Any, weight_clip: float) -> Any:
    """clip_variables of a model's discriminator."""
    return clip_variables(optimizer, model.discriminator_variables, weight_clip)


def condition_tensor(tensor: Any, conditioning: Any) -> Tensor:
    """A tensor plus a linear function of the condition of each example."""
    tensor, conditioning = convert_to_tensor(tensor), convert_to_tensor(conditioning)
    tensor.get_shape()[1:].assert_is_fully_defined()
    mapped = layers.linear(layers.flatten(conditioning), tensor.get_shape()[1:].num_elements())
    if not mapped.get_shape().is_compatible_with(tensor.get_shape()):
        mapped = array_ops.reshape(mapped, tensor.get_shape() if tensor.get_shape().is_fully_defined() else array_ops.shape(tensor))
    return tensor + mapped


def condition_tensor_from_onehot(tensor: Any, one_hot_labels: Any, embedding_size: int = 256) -> Tensor:
    """A tensor conditioned on classes: on a learned row of each."""
    labels = convert_to_tensor(one_hot_labels)
    labels.get_shape().assert_has_rank(2)
    labels.get_shape()[1:].assert_is_fully_defined()
    rows = get_variable("embedding", [labels.get_shape()[1].value, embedding_size])
    return condition_tensor(tensor, nn_ops.embedding_lookup(rows, math_ops.argmax(labels, axis=1)))


def tensor_pool(input_values: Any, pool_size: int = 50, pooling_probability: Any = 0.5, name: str = "tensor_pool") -> Any:
    """The values, or, with a probability once the pool is full, those of an earlier step (Shrivastava 2016). All values go into the pool; in a full one
    they take the place of any."""
    pool_size = int(pool_size)
    if pool_size < 0:
        raise at_user_line(ValueError("`pool_size` is negative."))
    if pool_size == 0:
        return input_values
    flat = [convert_to_tensor(v) for v in nest.flatten(input_values)]

    def listed(made: Any) -> Any:
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def put() -> Any:
        with control_dependencies([pool.enqueue(flat)]):
            return [array_ops.identity(v) for v in flat]

    def put_and_take() -> Any:
        old = listed(pool.dequeue())
        with control_dependencies(old):
            stored = pool.enqueue(flat)
        with control_dependencies([stored]):
            chance = random_ops.random_uniform([]) < pooling_probability
            return listed(control_flow_ops.cond(chance, lambda: old, lambda: [array_ops.identity(v) for v in flat]))

    with name_scope(name + "_pool_queue", values=[*flat, pooling_probability]):
        pool = RandomShuffleQueue(pool_size, 0, [v.dtype for v in flat])
        made = listed(control_flow_ops.cond(gen_ops.less(pool.size(), pool_size), put, put_and_take))
    for m, v in zip(made, flat):
        m.set_shape(v.get_shape())
    return nest.pack_sequence_as(input_values, made)
