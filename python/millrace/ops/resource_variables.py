# SPDX-License-Identifier: Apache-2.0
"""Variables that are handles: tensorflow.python.ops.resource_variable_ops."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes, tensor_shape
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import gen_ops
from millrace.ops.variables import Variable, _ByCreators


class _KnowsResources(_ByCreators):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Variable) and instance._is_resource


class ResourceVariable(Variable, metaclass=_KnowsResources):
    """A Variable with use_resource=True. Any such variable is an instance of it."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Any = True,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: Optional[str] = None,
        dtype: Any = None,
        variable_def: Any = None,
        import_scope: Optional[str] = None,
        constraint: Any = None,
        distribute_strategy: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if distribute_strategy is not None:
            raise at_user_line(NotImplementedError("distribute_strategy is not provided: there are no strategies."))
        super().__init__(
            initial_value,
            trainable,
            collections,
            validate_shape,
            caching_device,
            name,
            variable_def,
            dtype,
            import_scope=import_scope,
            constraint=constraint,
            use_resource=True,
            synchronization=synchronization,
            aggregation=aggregation,
            shape=shape,
        )


def var_handle_op(dtype: Any, shape: Any, container: str = "", shared_name: str = "", name: Optional[str] = None) -> Any:
    """The handle of a variable."""
    return gen_ops.var_handle_op(dtype=dtype, shape=shape, container=container, shared_name=shared_name, name=name)


def is_resource_variable(var: Any) -> bool:
    """Whether it is a variable that is a handle."""
    return isinstance(var, ResourceVariable)


def variable_shape(handle: Any, out_type: Any = dtypes.int32, name: Optional[str] = None) -> Any:
    """The shape of a variable's value: a constant where the handle's own op says it."""
    known = tensor_shape.TensorShape(handle.op.get_attr("shape")) if handle.op.type == "VarHandleOp" else tensor_shape.unknown_shape()
    if known.is_fully_defined():
        return constant(known.as_list(), out_type, name="VariableShape" if name is None else name)
    return gen_ops.variable_shape(handle, out_type=out_type, name=name)


def assign_variable_op(resource: Any, value: Any, name: Optional[str] = None) -> Any:
    """Sets a variable."""
    return gen_ops.assign_variable_op(resource, value, name=name)


def shape_safe_assign_variable_handle(handle: Any, shape: Any, value: Any, name: Optional[str] = None) -> Any:
    """Sets a variable of a shape. ValueError when the value's cannot be that."""
    made = convert_to_tensor(value)
    tensor_shape.as_shape(shape).assert_is_compatible_with(made.get_shape())
    return gen_ops.assign_variable_op(handle, made, name=name)


def eager_safe_variable_handle(shape: Any, dtype: Any, shared_name: str, name: Optional[str], graph_mode: bool = True) -> Any:
    """The handle of a variable of the default graph."""
    del graph_mode  # there is no other mode
    return gen_ops.var_handle_op(dtype=dtypes.as_dtype(dtype), shape=shape, shared_name=shared_name, name=name)
