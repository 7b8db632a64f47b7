# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.gan.features: conditions of generators and discriminators, and pools of what was generated before."""

from __future__ import annotations

from typing import Any

from millrace.layers import scoped as layers
from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops, random_ops
from millrace.ops.queues import RandomShuffleQueue
from millrace.ops.variable_scope import get_variable, variable_scope


def condition_tensor(tensor: Any, conditioning: Any) -> Tensor:
    """A tensor plus a linear function of the condition of each example."""
    tensor, conditioning = convert_to_tensor(tensor), convert_to_tensor(conditioning)
    shape = tensor.get_shape()[1:]
    if not shape.is_fully_defined():
        raise at_user_line(ValueError("tensor must have a known shape behind the batch, got %s" % tensor.get_shape()))
    flat = array_ops.reshape(conditioning, array_ops.stack([array_ops.shape(conditioning)[0], conditioning.get_shape()[1:].num_elements()]))
    with variable_scope(None, default_name="condition_tensor"):
        mapped = layers.dense(math_ops.cast(flat, tensor.dtype.base_dtype), shape.num_elements())
    return tensor + array_ops.reshape(mapped, [-1, *shape.as_list()])


def condition_tensor_from_onehot(tensor: Any, one_hot_labels: Any, embedding_size: int = 256) -> Tensor:
    """A tensor conditioned on classes: on a learned row of each."""
    labels = convert_to_tensor(one_hot_labels)
    labels.get_shape().assert_has_rank(2)
    classes = labels.get_shape()[1].value
    if classes is None:
        raise at_user_line(ValueError("one_hot_labels must have a known number of classes, got %s" % labels.get_shape()))
    with variable_scope(None, default_name="one_hot_condition"):
        rows = get_variable("embedding", [classes, embedding_size])
        return condition_tensor(tensor, matrix_ops.matmul(math_ops.cast(labels, dtypes.float32), rows))


def tensor_pool(input_values: Any, pool_size: int = 50, pooling_probability: float = 0.5, name: str = "tensor_pool") -> Any:
    """The values, or, with a probability once the pool is full, those of an earlier step, whose place they take (Shrivastava 2016)."""
    pool_size = int(pool_size)
    if pool_size < 0:
        raise at_user_line(ValueError("`pool_size` is negative."))
    if pool_size == 0:
        return input_values
    flat = [convert_to_tensor(v) for v in nest.flatten(input_values)]
    with variable_scope(None, default_name=name):
        pool = RandomShuffleQueue(pool_size, 0, [v.dtype for v in flat])

        def listed(made: Any) -> Any:
            return list(made) if isinstance(made, (list, tuple)) else [made]

        def keep() -> Any:
            with control_dependencies([pool.enqueue(flat)]):
                return [array_ops.identity(v) for v in flat]

        def swap() -> Any:
            old = listed(pool.dequeue())
            with control_dependencies([*old]):
                put = pool.enqueue(flat)
            with control_dependencies([put]):
                return [array_ops.identity(v) for v in old]

        def full() -> Any:
            return control_flow_ops.cond(random_ops.random_uniform([]) < pooling_probability, swap, lambda: [array_ops.identity(v) for v in flat])

        made = listed(control_flow_ops.cond(gen_ops.less(pool.size(), pool_size), keep, full))
    for m, v in zip(made, flat):
        m.set_shape(v.get_shape())
    return nest.pack_sequence_as(input_values, made)
