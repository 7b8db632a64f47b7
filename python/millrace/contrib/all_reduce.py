# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.all_reduce and tf.contrib.nccl: one value of several towers, for each of them. Memory is shared here: what the algorithms differ in,
the order of transfers, does not arise."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from millrace.framework.errors import at_user_line
from millrace.framework.graph import device
from millrace.ops import array_ops, gen_ops, math_ops

_Binary = Callable[[Any, Any], Any]


def _reduced(tensors: List[Any], reduce: Callable[[List[Any]], Any], un_op: Optional[Callable[[Any], Any]]) -> List[Any]:
    if not tensors:
        raise at_user_line(ValueError("an all-reduce needs tensors, got none"))
    for t in tensors:
        if not t.get_shape().is_compatible_with(tensors[0].get_shape()):
            raise at_user_line(ValueError("the tensors of an all-reduce must have one shape, got %s and %s" % (tensors[0].get_shape(), t.get_shape())))
    total = reduce(list(tensors))
    if un_op is not None:
        total = un_op(total)
    made = []
    for t in tensors:
        with device(t.device or None):
            made.append(array_ops.identity(total))
    return made


def _pairwise(op: _Binary) -> Callable[[List[Any]], Any]:
    def reduce(tensors: List[Any]) -> Any:
        total = tensors[0]
        for t in tensors[1:]:
            total = op(total, t)
        return total

    return reduce


def _flexible(op: Callable[..., Any]) -> Callable[[List[Any]], Any]:
    """Of an op of two tensors, or of one of a list such as add_n."""

    def reduce(tensors: List[Any]) -> Any:
        if getattr(op, "__name__", "") == "add_n":
            return op(tensors)
        return _pairwise(op)(tensors)

    return reduce


def build_ring_all_reduce(input_tensors: Any, num_workers: int, num_subchunks: int, gpu_perm: Any, red_op: _Binary, un_op: Any = None) -> List[Any]:
    """Tensors reduced by red_op, then un_op; num_workers, num_subchunks and gpu_perm order transfers that are not made."""
    del num_workers, num_subchunks, gpu_perm  # memory is shared
    return _reduced(input_tensors, _pairwise(red_op), un_op)


def build_recursive_hd_all_reduce(input_tensors: Any, red_op: _Binary, un_op: Any = None) -> List[Any]:
    """Tensors reduced by red_op, then un_op."""
    return _reduced(input_tensors, _pairwise(red_op), un_op)


def build_shuffle_all_reduce(input_tensors: Any, gather_devices: Any, red_op: Any, un_op: Any = None) -> List[Any]:
    """Tensors reduced by red_op (of a list, such as add_n), then un_op."""
    del gather_devices  # memory is shared
    return _reduced(input_tensors, _flexible(red_op), un_op)


def build_nccl_all_reduce(input_tensors: Any, red_op: _Binary, un_op: Any = None) -> List[Any]:
    """Tensors reduced by red_op, then un_op."""
    return _reduced(input_tensors, _flexible(red_op), un_op)


def build_nccl_then_ring(input_tensors: Any, subdiv: int, red_op: _Binary, un_op: Any = None) -> List[Any]:
    """Tensors reduced by red_op, then un_op."""
    del subdiv  # memory is shared
    return _reduced(input_tensors, _flexible(red_op), un_op)


def build_nccl_then_recursive_hd(input_tensors: Any, red_op: _Binary, un_op: Any = None) -> List[Any]:
    """Tensors reduced by red_op, then un_op."""
    return _reduced(input_tensors, _flexible(red_op), un_op)


def build_nccl_then_shuffle(input_tensors: Any, gather_devices: Any, nccl_red_op: Any, shuffle_red_op: Any, un_op: Any = None) -> List[Any]:
    """Tensors reduced by the same operation in two forms, then un_op."""
    del gather_devices, nccl_red_op  # memory is shared, and there is one stage
    return _reduced(input_tensors, _flexible(shuffle_red_op), un_op)


def build_shuffle_then_ring(input_tensors: Any, gather_devices: Any, subdiv: int, red_n_op: Any, red_op: _Binary, un_op: Any = None) -> List[Any]:
    """Tensors reduced by the same operation in two forms, then un_op."""
    del gather_devices, subdiv, red_n_op  # memory is shared, and there is one stage
    return _reduced(input_tensors, _pairwise(red_op), un_op)


def build_shuffle_then_shuffle(input_tensors: Any, first_gather_devices: Any, second_gather_devices: Any, red_op: Any, un_op: Any = None) -> List[Any]:
    """Tensors reduced by red_op (of a list), then un_op."""
    del first_gather_devices, second_gather_devices  # memory is shared
    return _reduced(input_tensors, _flexible(red_op), un_op)


# ---- tf.contrib.nccl ----


def all_sum(tensors: Any) -> List[Any]:
    """The sum, for each tensor."""
    return _reduced(tensors, math_ops.add_n, None)


def all_prod(tensors: Any) -> List[Any]:
    """The product, for each tensor."""
    return _reduced(tensors, _pairwise(gen_ops.mul), None)


def all_min(tensors: Any) -> List[Any]:
    """The minimum, for each tensor."""
    return _reduced(tensors, _pairwise(gen_ops.minimum), None)


def all_max(tensors: Any) -> List[Any]:
    """The maximum, for each tensor."""
    return _reduced(tensors, _pairwise(gen_ops.maximum), None)


def reduce_sum(tensors: Any) -> Any:
    """The sum."""
    return _reduced(tensors, math_ops.add_n, None)[0]


def broadcast(tensor: Any) -> Any:
    """The tensor, where it is asked for."""
    return array_ops.identity(tensor)
