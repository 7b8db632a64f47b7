# SPDX-License-Identifier: Apache-2.0
"""Functions that have an inverse and a Jacobian, and distributions that they make of others."""

from __future__ import annotations

import abc
from typing import Any, Dict, List, Optional, Tuple

from millrace.distributions.distribution import Distribution
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.unique_names import snake
from millrace.ops import array_ops, math_ops


class Bijector(metaclass=abc.ABCMeta):
    """Base: a subclass has _forward, _inverse, and one of the two logarithms of the determinant of the Jacobian."""

    @abc.abstractmethod
    def __init__(
        self,
        event_ndims: Any = None,
        graph_parents: Any = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: Any = None,
        name: Optional[str] = None,
    ) -> None:
        if event_ndims is not None:
            event_ndims = convert_to_tensor(event_ndims, dtypes.int32, "event_ndims")
        self._event_ndims, self._graph_parents = event_ndims, list(graph_parents or [])
        for parent in self._graph_parents:
            if not isinstance(parent, Tensor):
                raise at_user_line(ValueError("Graph parent item is not a Tensor; %s." % (parent,)))
        self._is_constant_jacobian, self._validate_args, self._dtype = is_constant_jacobian, validate_args, dtype
        self._name = name or snake(type(self).__name__.lstrip("_"))
        self._constant: Any = None
        self._known: Dict[Tuple[str, Any], Tuple[Any, Any]] = {}  # by what was asked of which tensor: that tensor, the answer

    graph_parents = property(lambda self: self._graph_parents, doc="The tensors that it was made of.")
    event_ndims = property(lambda self: self._event_ndims, doc="How many dimensions an event has.")
    is_constant_jacobian = property(lambda self: self._is_constant_jacobian, doc="Whether the Jacobian is the same everywhere.")
    validate_args = property(lambda self: self._validate_args, doc="Whether values are checked.")
    dtype = property(lambda self: self._dtype, doc="The type that it takes, or None.")
    name = property(lambda self: self._name, doc="Its name.")

    # ---- shapes ----

    def forward_event_shape_tensor(self, input_shape: Any, name: str = "forward_event_shape_tensor") -> Tensor:
        """The shape of an event after it."""
        with name_scope(self._name + "/" + name):
            return self._forward_event_shape_tensor(convert_to_tensor(input_shape, dtypes.int32, "input_shape"))

    def inverse_event_shape_tensor(self, output_shape: Any, name: str = "inverse_event_shape_tensor") -> Tensor:
        """The shape of an event before it."""
        with name_scope(self._name + "/" + name):
            return self._inverse_event_shape_tensor(convert_to_tensor(output_shape, dtypes.int32, "output_shape"))

    def forward_event_shape(self, input_shape: Any) -> TensorShape:
        """The shape of an event after it, where that is known."""
        return self._forward_event_shape(TensorShape(input_shape))

    def inverse_event_shape(self, output_shape: Any) -> TensorShape:
        """The shape of an event before it, where that is known."""
        return self._inverse_event_shape(TensorShape(output_shape))

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return output_shape

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return output_shape

    # ---- values ----

    def _missing(self, what: str) -> Exception:
        return at_user_line(NotImplementedError("%s not implemented." % what))

    def _forward(self, x: Any) -> Any:
        raise self._missing("forward")

    def _inverse(self, y: Any) -> Any:
        raise self._missing("inverse")

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        raise self._missing("forward_log_det_jacobian")

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        raise self._missing("inverse_log_det_jacobian")

    def _has(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(Bijector, name)

    def _taken(self, value: Any, what: str) -> Tensor:
        value = convert_to_tensor(value, name=what)
        if self._dtype is not None and value.dtype.base_dtype != dtypes.as_dtype(self._dtype):
            raise at_user_line(TypeError("Input had dtype %s but expected %s." % (value.dtype.name, dtypes.as_dtype(self._dtype).name)))
        return value

    def _key(self, what: str, value: Any, conditions: Dict[str, Any]) -> Any:
        return (what, id(value), tuple(sorted((k, id(v)) for k, v in conditions.items())))

    def _remember(self, what: str, value: Any, conditions: Dict[str, Any], answer: Any) -> None:
        self._known[self._key(what, value, conditions)] = (value, answer)

    def _recall(self, what: str, value: Any, conditions: Dict[str, Any]) -> Any:
        found = self._known.get(self._key(what, value, conditions))
        return None if found is None else found[1]

    def forward(self, x: Any, name: str = "forward", **condition_kwargs: Any) -> Tensor:
        """The value of the function; what inverse was asked for is remembered."""
        with name_scope(self._name + "/" + name):
            x = self._taken(x, "x")
            found = self._recall("y", x, condition_kwargs)
            if found is None:
                found = self._forward(x, **condition_kwargs)
                self._remember("y", x, condition_kwargs, found)
                self._remember("x", found, condition_kwargs, x)
            return found

    def inverse(self, y: Any, name: str = "inverse", **condition_kwargs: Any) -> Tensor:
        """The value of the inverse; what forward was asked for is remembered."""
        with name_scope(self._name + "/" + name):
            y = self._taken(y, "y")
            found = self._recall("x", y, condition_kwargs)
            if found is None:
                found = self._inverse(y, **condition_kwargs)
                self._remember("x", y, condition_kwargs, found)
                self._remember("y", found, condition_kwargs, y)
            return found

    def _jacobian(self, given: Any, forward: bool, conditions: Dict[str, Any]) -> Any:
        """The logarithm of the determinant at x (forward) or y, by what the subclass has and what is known already."""
        if self._constant is not None:
            return self._constant if forward else -self._constant
        other = self._recall("y" if forward else "x", given, conditions)
        for value, key, sign in ((given, "fldj" if forward else "ildj", 1), (other, "ildj" if forward else "fldj", -1)):
            found = None if value is None else self._recall(key, value, conditions)
            if found is not None:
                return found if sign == 1 else -found
        own, opposite = ("_forward_log_det_jacobian", "_inverse_log_det_jacobian") if forward else ("_inverse_log_det_jacobian", "_forward_log_det_jacobian")
        if self._has(own) or not self._has(opposite):
            made = getattr(self, own)(given, **conditions)
        else:
            value = self.forward(given, **conditions) if forward else self.inverse(given, **conditions)
            made = -getattr(self, opposite)(value, **conditions)
        self._remember("fldj" if forward else "ildj", given, conditions, made)
        if self._is_constant_jacobian:
            self._constant = made if forward else -made
        return made

    def forward_log_det_jacobian(self, x: Any, name: str = "forward_log_det_jacobian", **condition_kwargs: Any) -> Tensor:
        """The logarithm of the determinant of the Jacobian at x."""
        with name_scope(self._name + "/" + name):
            return self._jacobian(self._taken(x, "x"), True, condition_kwargs)

    def inverse_log_det_jacobian(self, y: Any, name: str = "inverse_log_det_jacobian", **condition_kwargs: Any) -> Tensor:
        """The logarithm of the determinant of the inverse's Jacobian at y."""
        with name_scope(self._name + "/" + name):
            return self._jacobian(self._taken(y, "y"), False, condition_kwargs)

    def _event_sum(self, x: Any) -> Any:
        """The sum over the dimensions of an event."""
        from millrace.framework.static_values import constant_value

        count = constant_value(self._event_ndims) if isinstance(self._event_ndims, Tensor) else self._event_ndims
        if count is None:
            rank = array_ops.rank(x)
            return math_ops.reduce_sum(x, math_ops.range(rank - self._event_ndims, rank))
        return math_ops.reduce_sum(x, list(range(-int(count), 0))) if int(count) else x


class Identity(Bijector):
    """y = x."""

    def __init__(self, validate_args: bool = False, event_ndims: Any = 0, name: str = "identity") -> None:
        super().__init__(event_ndims, is_constant_jacobian=True, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        return x

    _inverse = _forward  # type: ignore[assignment]

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return convert_to_tensor(0.0, x.dtype.base_dtype)

    _inverse_log_det_jacobian = _forward_log_det_jacobian  # type: ignore[assignment]


class ConditionalBijector(Bijector):
    """A bijector whose methods take more arguments."""


class TransformedDistribution(Distribution):
    """What a bijector makes of the samples of a distribution."""

    def __init__(
        self, distribution: Any, bijector: Any = None, batch_shape: Any = None, event_shape: Any = None, validate_args: bool = False, name: Optional[str] = None
    ) -> None:
        if batch_shape is not None or event_shape is not None:
            raise at_user_line(
                NotImplementedError("batch_shape and event_shape of TransformedDistribution are not provided: give the distribution parameters of that shape.")
            )
        self._bijector = bijector if bijector is not None else Identity(validate_args=validate_args)
        self._distribution = distribution
        with name_scope(name or self._bijector.name + distribution.name.rstrip("/").split("/")[-1]) as scope:
            pass
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            graph_parents=[*getattr(distribution, "_graph_parents", []), *self._bijector.graph_parents],
            name=scope,
        )

    bijector = property(lambda self: self._bijector, doc="What is done to the samples.")
    distribution = property(lambda self: self._distribution, doc="Where the samples come from.")

    def _batch_shape(self) -> TensorShape:
        return self._distribution.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._distribution.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._bijector.forward_event_shape(self._distribution.event_shape)

    def _event_shape_tensor(self) -> Tensor:
        return self._bijector.forward_event_shape_tensor(self._distribution.event_shape_tensor())

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Any:
        return self._bijector.forward(self._distribution.sample_n(n, seed))

    def _event_axes(self) -> List[int]:
        rank = self._distribution.event_shape.ndims or 0
        return list(range(-rank, 0))

    def _log_prob(self, value: Any) -> Any:
        x = self._bijector.inverse(value)
        change = self._bijector.inverse_log_det_jacobian(value)
        return self._distribution.log_prob(x) + change

    def _cdf(self, value: Any) -> Any:
        if self._event_axes():
            raise self._lacks("cdf")
        return self._distribution.cdf(self._bijector.inverse(value))

    def _quantile(self, value: Any) -> Any:
        if self._event_axes():
            raise self._lacks("quantile")
        return self._bijector.forward(self._distribution.quantile(value))

    def _entropy(self) -> Any:
        if not self._bijector.is_constant_jacobian:
            raise at_user_line(NotImplementedError("entropy is not implemented: the Jacobian is not constant"))
        zero = array_ops.zeros(self._distribution.event_shape_tensor(), self.dtype)
        return self._distribution.entropy() + self._bijector.forward_log_det_jacobian(zero)

    def _mean(self) -> Any:
        if not self._bijector.is_constant_jacobian:
            raise at_user_line(NotImplementedError("mean is not implemented for non-linear bijectors"))
        return self._bijector.forward(self._distribution.mean())
