# SPDX-License-Identifier: Apache-2.0
"""tf.compat.v2.Variable: variables that are handles, with the arguments of TensorFlow 2."""

from __future__ import annotations

from typing import Any, Optional

from millrace.ops import variables
from millrace.ops.resource_variables import ResourceVariable


class _AnyVariable(type(ResourceVariable)):  # type: ignore[misc]
    """Makes every variable an instance of tf.compat.v2.Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, variables.Variable) if cls is Variable else type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(subclass, variables.Variable) if cls is Variable else type.__subclasscheck__(cls, subclass)


class Variable(ResourceVariable, metaclass=_AnyVariable):
    """A ResourceVariable. Any variable is an instance of this class."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Optional[bool] = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: Optional[str] = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Optional[str] = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        super().__init__(
            initial_value,
            trainable,
            validate_shape=validate_shape,
            caching_device=caching_device,
            name=name,
            variable_def=variable_def,
            dtype=dtype,
            import_scope=import_scope,
            constraint=constraint,
            synchronization=synchronization,
            aggregation=aggregation,
            shape=shape,
        )
