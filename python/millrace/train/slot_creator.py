# SPDX-License-Identifier: Apache-2.0
"""Variables that belong to a variable: slots of optimizers, moving averages."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from millrace.framework import dtypes
from millrace.framework.graph import colocate_with, name_scope
from millrace.ops import array_ops, init_ops
from millrace.ops.variable_scope import AUTO_REUSE, _true_getter, through_getter, variable_scope
from millrace.ops.variables import Variable


def _make(primary: Any, val: Any, scope: str, validate_shape: bool, shape: Any, dtype: Any) -> Variable:
    with variable_scope(None, scope, auxiliary_name_scope=False) as opened, name_scope(None):
        arguments = dict(
            name=opened.name + "/",  # a custom getter sees it as the variable without a name in its scope, as in 1.15
            shape=shape,
            dtype=dtype,
            initializer=val,
            regularizer=None,
            reuse=AUTO_REUSE if opened.reuse else False,  # a scope that reuses has the primary, but maybe not yet what belongs to it
            trainable=False,
            collections=None,
            caching_device=opened.caching_device,
            partitioner=None,
            validate_shape=validate_shape,
            use_resource=getattr(primary, "_is_resource", False),
            constraint=None,
        )
        slot = through_getter(opened.custom_getter, _getter_of_slots, arguments)
    save_as_part(slot, primary)
    return slot


def _getter_of_slots(name: str, *args: Any, **kwargs: Any) -> Variable:
    return _true_getter(name.rstrip("/"), *args, **kwargs)  # type: ignore[no-any-return]


def save_as_part(slot: Variable, primary: Any) -> None:
    """A part's slot is saved as a part of the whole's slot. The slot's name is cut by the length of the part's, as in TensorFlow: one made
    within a scope `linear` is saved as `linear/w/part_0/Ftrl`, and checkpoints of estimators have such names."""
    info = primary._get_save_slice_info() if isinstance(primary, Variable) else None
    if info is None:
        return
    name = slot.op.name[len(primary.op.name + "/") :]
    slot._set_save_slice_info(Variable.SaveSliceInfo(info.full_name + "/" + name, list(info.full_shape), list(info.var_offset), list(info.var_shape)))


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Variable:
    """A variable that belongs to `primary`, with a first value."""
    known = val.get_shape().is_fully_defined()
    with colocate_with(primary.op) if colocate_with_primary else nullcontext():
        return _make(primary, val, primary.op.name + "/" + name, known, None, None)


def create_slot_with_initializer(primary: Any, initializer: Any, shape: Any, dtype: Any, name: str, colocate_with_primary: bool = True) -> Variable:
    """A variable that belongs to `primary`, with an initializer."""
    known = shape.is_fully_defined()
    with colocate_with(primary.op) if colocate_with_primary else nullcontext():
        return _make(primary, initializer, primary.op.name + "/" + name, known, shape, dtype)


def create_zeros_slot(primary: Any, name: str, dtype: Any = None, colocate_with_primary: bool = True) -> Variable:
    """A variable of zeros that belongs to `primary`, of its shape."""
    dtype = (primary.dtype if dtype is None else dtypes.as_dtype(dtype)).base_dtype
    shape = primary.get_shape()
    if shape.is_fully_defined():
        return create_slot_with_initializer(primary, init_ops.zeros_initializer(dtype), shape, dtype, name, colocate_with_primary)
    like = primary.initialized_value() if isinstance(primary, Variable) else primary
    return create_slot(primary, array_ops.zeros(array_ops.shape(like), dtype), name, colocate_with_primary)
