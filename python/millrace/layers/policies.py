# SPDX-License-Identifier: Apache-2.0
"""tf.keras.mixed_precision.experimental: the types that layers compute in and that their variables have, and variables that are read in another type."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Optional, Tuple

from millrace import names, tf_logging
from millrace.framework import behavior, dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.keras import backend as K
from millrace.layers import casting
from millrace.ops import math_ops
from millrace.ops.variables import Variable

USE_DEFAULT = "USE_DEFAULT"
_MIXED = {"mixed_float16": ("float16", "float32"), "mixed_bfloat16": ("bfloat16", "float32")}
_WIDE = "_with_float32_vars"


class Policy:
    """The type that a layer computes in and the type of its variables: both of the name, or float32 variables behind "..._with_float32_vars" and
    "mixed_float16". "infer" takes the type of the first inputs. Models scale their loss by `loss_scale`."""

    def __init__(self, name: str, loss_scale: Any = USE_DEFAULT) -> None:
        if isinstance(name, dtypes.DType):
            raise at_user_line(TypeError("'name' must be a string, not a DType. Instead, pass DType.name. Got: %s" % name.name))
        if not isinstance(name, str):
            raise at_user_line(TypeError("'name' must be a string, but got: %s" % (name,)))
        name = {"infer_float32_vars": "infer" + _WIDE, "float32" + _WIDE: "float32"}.get(name, name)
        self._name = name
        self._compute_dtype, self._variable_dtype = _types_of(name)
        if isinstance(loss_scale, str) and loss_scale == USE_DEFAULT:
            loss_scale = "dynamic" if name == "mixed_float16" else None
        if loss_scale and self._compute_dtype not in (None, "float16"):
            tf_logging.warn(
                "Creating a Policy with a loss scale is only useful for float16 policies. You passed loss_scale=%r for policy %s. Consider not passing any "
                "loss_scale instead." % (loss_scale, name)
            )
        self._loss_scale = None if loss_scale is None else names.find("python.training.experimental.loss_scale.get")(loss_scale)

    name = property(lambda self: self._name, doc="Its name.")
    compute_dtype = property(lambda self: self._compute_dtype, doc="The name of the type that layers compute in; None where their inputs say it.")
    variable_dtype = property(lambda self: self._variable_dtype, doc="The name of the type of variables; None where inputs say it.")
    should_cast_variables = property(lambda self: self._variable_dtype != self._compute_dtype, doc="Whether variables are read in another type.")
    loss_scale = property(lambda self: self._loss_scale, doc="The scale of the loss, or None.")

    def __repr__(self) -> str:
        return '<Policy "%s", loss_scale=%s>' % (self._name, self._loss_scale)


def _types_of(name: str) -> Tuple[Optional[str], Optional[str]]:
    if name in _MIXED:
        return _MIXED[name]
    wide = name.endswith(_WIDE)
    base = name[: -len(_WIDE)] if wide else name
    try:
        kind = None if base == "infer" else dtypes.as_dtype(base).name
    except TypeError:
        text = (
            'Cannot convert value %s to a mixed precision Policy. Valid policies include those in the form "<dtype>" and "<dtype>_with_float32_vars", where '
            "<dtype> is the name of a dtype." % name
        )
        if wide:
            text += " The value %s ends with _with_float32_vars, but %s cannot be converted to a DType" % (name, base)
        raise at_user_line(ValueError(text)) from None
    return kind, "float32" if wide else kind


def with_input_dtype(policy: Policy, dtype: Any) -> Policy:
    """An "infer" policy that has been told the type of inputs."""
    name = dtypes.as_dtype(dtype).name
    return Policy(name if policy.variable_dtype is None else name + _WIDE)


_global_policy: Optional[Policy] = None


def global_policy() -> Policy:
    """The policy of layers that are given no type: "infer" where none was set, or floatx's with TensorFlow 2's types of layers."""
    if _global_policy is not None:
        return _global_policy
    return Policy(K.floatx() if casting.v2_dtype_behavior_enabled() else "infer")


def policy_defaults_to_floatx() -> bool:
    """Whether layers that are given no type have floatx."""
    return _global_policy is None and casting.v2_dtype_behavior_enabled()


def set_policy(policy: Any) -> None:
    """Sets the policy of layers that are made from now on, and are given no type; None for none."""
    global _global_policy
    if behavior.mixed_precision_graph_rewrite_is_enabled:
        raise at_user_line(
            ValueError(
                "The mixed precision policy cannot be set, because the mixed precision graph rewrite has already been enabled: "
                "tf.train.experimental.enable_mixed_precision_graph_rewrite() was called before. Only one of both can be used."
            )
        )
    if policy is not None and not isinstance(policy, Policy):
        policy = Policy(policy)
    if policy is not None and policy.compute_dtype and not casting.v2_dtype_behavior_enabled():
        raise at_user_line(ValueError("The global policy can only be set to a non-infer policy in TensorFlow 2, or behind enable_v2_dtype_behavior()"))
    _global_policy = policy
    behavior.using_default_mixed_precision_policy = policy is None


@contextlib.contextmanager
def policy_scope(policy: Any) -> Iterator[None]:
    """A context with another global policy."""
    before = _global_policy
    try:
        set_policy(policy)
        yield
    finally:
        set_policy(before)


def policy_of(dtype: Any) -> Policy:
    """The policy of a layer by its argument `dtype`."""
    if isinstance(dtype, Policy):
        return dtype
    return global_policy() if dtype is None else Policy(dtypes.as_dtype(dtype).base_dtype.name)


class AutoCastVariable(Variable):
    """A variable, a resource of a floating type, that is read in the type of the layer which is called: that of Graph._enable_auto_casting_variables."""

    _by_creators = False

    def __init__(self, variable: Any) -> None:
        if not getattr(variable, "_is_resource", False):
            raise at_user_line(ValueError("variable must be of type tf.ResourceVariable, but got: %s" % (variable,)))
        if not variable.dtype.is_floating:
            raise at_user_line(ValueError("variable must be a floating point variable but has type: %s" % variable.dtype.name))
        self.__dict__ = vars(variable)  # it is the same one

    true_dtype = property(lambda self: self._dtype, doc="The type of its value.")

    @property
    def dtype(self) -> dtypes.DType:
        """The type that it is read in."""
        return get_default_graph()._auto_cast_variable_read_dtype or self._dtype

    def value(self) -> Any:
        """Its value in the type that it is read in."""
        return math_ops.cast(super().value(), self.dtype)

    def read_value(self) -> Any:
        """A new tensor of its value, in the type that it is read in."""
        return math_ops.cast(super().read_value(), self.dtype)

    def sparse_read(self, indices: Any, name: Optional[str] = None) -> Any:
        """The rows at some indices, in the type that they are read in."""
        return math_ops.cast(super().sparse_read(indices, name), self.dtype)

    def __repr__(self) -> str:
        return "<AutoCastVariable '%s' shape=%s dtype=%s true_dtype=%s>" % (self.name, self.shape, self.dtype.name, self._dtype.name)


class AutoCastDistributedVariable(AutoCastVariable):
    """Such a variable that a strategy of one replica made. ValueError for one that none has made."""

    def __init__(self, variable: Any) -> None:
        if getattr(variable, "_distribute_strategy", None) is None:
            raise at_user_line(ValueError("variable must be of type DistributedValues, but got: %s" % (variable,)))
        super().__init__(variable)
