# SPDX-License-Identifier: Apache-2.0
"""Collective ops: what the members of a group, which are devices of one process or of a cluster, do together.

All members name the same `group_key` and `group_size`, and for one thing that they do the same `instance_key`. Each waits for the others,
for `timeout` seconds (0: ten minutes); then the failure says who is there and who is not.
"""

from __future__ import annotations

from typing import Any, Sequence

from millrace.framework.convert import convert_to_tensor
from millrace.framework.dtypes import as_dtype
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import gen_ops

__all__ = ["all_reduce", "all_gather", "broadcast_send", "broadcast_recv"]


def _check(function: str, member: Tensor, group_size: int) -> None:
    if not member.device:
        raise at_user_line(ValueError("Device assignment required for collective ops: %s takes part as the device of its input" % function))
    if group_size <= 1:
        raise at_user_line(ValueError("Parameter group_size to %s must be at least 2, got %s" % (function, group_size)))


def all_reduce(
    t: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    merge_op: str,
    final_op: str,
    subdiv_offsets: Sequence[int] = (0,),
    communication_hint: str = "auto",
    timeout: float = 0,
) -> Tensor:
    """The values of all members combined by `merge_op` ("Add", "Mul", "Min" or "Max"), on each of them, with the same bits; by `final_op`
    "Div" divided by their number, by "Id" as they are."""
    t = convert_to_tensor(t)
    _check("all_reduce", t, group_size)
    return gen_ops.collective_reduce(
        t,
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        merge_op=merge_op,
        final_op=final_op,
        subdiv_offsets=list(subdiv_offsets),
        communication_hint=communication_hint,
        timeout_seconds=timeout,
    )


def all_gather(t: Any, group_size: int, group_key: int, instance_key: int, communication_hint: str = "auto", timeout: float = 0) -> Tensor:
    """The values of all members, which have one shape, along dimension 0 in the order of the devices' names."""
    t = convert_to_tensor(t)
    _check("all_gather", t, group_size)
    dims = t.get_shape().as_list()
    shape = [None if dims[0] is None else dims[0] * group_size] + dims[1:]
    return gen_ops.collective_gather(
        t,
        shape=TensorShape(shape),
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        communication_hint=communication_hint,
        timeout_seconds=timeout,
    )


def broadcast_send(
    t: Any, shape: Any, dtype: Any, group_size: int, group_key: int, instance_key: int, communication_hint: str = "auto", timeout: float = 0
) -> Tensor:
    """Gives `t` to all other members, which call `broadcast_recv`; `shape` and `dtype` are those of `t`."""
    t = convert_to_tensor(t)
    _check("broadcast_send", t, group_size)
    if not t.get_shape().is_compatible_with(shape):
        raise at_user_line(ValueError("Shape of broadcast_send tensor not equal to declared shape: %s and %s" % (t.get_shape(), TensorShape(shape))))
    if t.dtype != as_dtype(dtype):
        raise at_user_line(ValueError("Type of broadcast_send tensor not equal to declared type: %s and %s" % (t.dtype.name, as_dtype(dtype).name)))
    return gen_ops.collective_bcast_send(
        t,
        shape=TensorShape(shape),
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        communication_hint=communication_hint,
        timeout_seconds=timeout,
    )


def broadcast_recv(shape: Any, dtype: Any, group_size: int, group_key: int, instance_key: int, communication_hint: str = "auto", timeout: float = 0) -> Tensor:
    """What the member that calls `broadcast_send` gives; the device is that of the enclosing `tf.device`."""
    if group_size <= 1:
        raise at_user_line(ValueError("Parameter group_size to broadcast_recv must be at least 2, got %s" % group_size))
    return gen_ops.collective_bcast_recv(
        shape=TensorShape(shape),
        T=as_dtype(dtype),
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        communication_hint=communication_hint,
        timeout_seconds=timeout,
    )
