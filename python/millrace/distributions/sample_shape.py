# SPDX-License-Identifier: Apache-2.0
"""Which dimensions of a sample are those of draws, of the batch and of the event."""

from __future__ import annotations

from typing import Any, List, Tuple

from millrace.distributions.util import pick_vector, rotate_transpose
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, check_ops, gen_ops, math_ops


def _known(x: Any) -> Any:
    """The value of a number, or the tensor where only the step tells it."""
    value = constant_value(x) if isinstance(x, Tensor) else x
    return x if value is None else int(value)


class DistributionShape:
    """The parts of the shapes of samples [draws..., batch..., event...], by the ranks of a batch and of an event."""

    def __init__(self, batch_ndims: Any = None, event_ndims: Any = None, validate_args: bool = False, name: str = "DistributionShape") -> None:
        self._name, self._validate_args = name, validate_args
        with name_scope(name), name_scope("init"):
            self._batch_ndims, self._event_ndims = self._rank(batch_ndims, "batch_ndims"), self._rank(event_ndims, "event_ndims")

    name = property(lambda self: self._name, doc="The scope of its operations.")
    batch_ndims = property(lambda self: self._batch_ndims, doc="The rank of a batch.")
    event_ndims = property(lambda self: self._event_ndims, doc="The rank of an event.")
    validate_args = property(lambda self: self._validate_args, doc="Whether steps check ranks that only they tell.")

    def _rank(self, given: Any, what: str) -> Tensor:
        if given is None:
            raise at_user_line(ValueError("%s cannot be None" % what))
        made = convert_to_tensor(given, name=what)
        if made.dtype.base_dtype != dtypes.int32:
            raise at_user_line(TypeError("%s.dtype=%s is not int32" % (made.name, made.dtype.name)))
        value = constant_value(made)
        if value is not None and (made.get_shape().ndims or value.ndim):
            raise at_user_line(ValueError("%s.ndims=%d is not 0 (scalar)" % (made.name, value.ndim)))
        if value is not None and value < 0:
            raise at_user_line(ValueError("%s.value=%d cannot be negative" % (made.name, value)))
        return self._checked(made, [check_ops.assert_rank(made, 0), check_ops.assert_non_negative(made)]) if value is None and self._validate_args else made

    def _checked(self, tensor: Tensor, checks: List[Any]) -> Tensor:
        with control_dependencies(checks):
            return array_ops.identity(tensor)

    def get_ndims(self, x: Any, name: str = "get_ndims") -> Tensor:
        """The rank of a sample."""
        with name_scope(name, values=[x]):
            return array_ops.rank(convert_to_tensor(x, name="x"))

    def get_sample_ndims(self, x: Any, name: str = "get_sample_ndims") -> Tensor:
        """How many dimensions draws have."""
        with name_scope(name, values=[x]):
            all_, batch, event = (_known(part) for part in (self.get_ndims(x), self._batch_ndims, self._event_ndims))
            draws = all_ - batch - event
            if isinstance(draws, int):
                if draws < 0:
                    raise at_user_line(ValueError("expected batch_ndims(%d) + event_ndims(%d) <= ndims(%d)" % (batch, event, all_)))
                return convert_to_tensor(draws, name="sample_ndims")
            return self._checked(draws, [check_ops.assert_non_negative(draws)]) if self._validate_args else draws

    def _parts(self, x: Any) -> List[Tuple[Any, Any]]:
        """Where each part begins, and how many dimensions it has."""
        counts = [_known(part) for part in (self.get_sample_ndims(x), self._batch_ndims, self._event_ndims)]
        return [(0, counts[0]), (counts[0], counts[1]), (counts[0] + counts[1], counts[2])]

    def get_dims(self, x: Any, name: str = "get_dims") -> Tuple[Tensor, ...]:
        """The dimensions of draws, of the batch and of the event."""
        with name_scope(name, values=[x]):
            return tuple(
                convert_to_tensor(list(range(first, first + count)), dtypes.int32)
                if isinstance(first, int) and isinstance(count, int)
                else math_ops.range(first, first + count)
                for first, count in self._parts(x)
            )

    def get_shape(self, x: Any, name: str = "get_shape") -> Tuple[Tensor, ...]:
        """The sizes of draws, of the batch and of the event."""
        with name_scope(name, values=[x]):
            x = convert_to_tensor(x, name="x")

            def sizes(first: Any, count: Any) -> Tensor:
                if x.get_shape().ndims is not None and isinstance(first, int) and isinstance(count, int):
                    known = x.get_shape()[first : first + count]
                    if known.is_fully_defined():
                        return convert_to_tensor(known.as_list(), dtypes.int32)
                return gen_ops.slice(array_ops.shape(x), array_ops.stack([first]), array_ops.stack([count]))

            return tuple(sizes(first, count) for first, count in self._parts(x))

    def make_batch_of_event_sample_matrices(
        self, x: Any, expand_batch_dim: bool = True, name: str = "make_batch_of_event_sample_matrices"
    ) -> Tuple[Tensor, Tensor]:
        """(the sample as [batch..., event..., all draws], the sizes of draws); no event is one of 1, and with expand_batch_dim no batch is one."""
        with name_scope(name, values=[x]):
            x = convert_to_tensor(x, name="x")
            draws, batch, event = self.get_shape(x)
            event = pick_vector(math_ops.equal(self._event_ndims, 0), convert_to_tensor([1]), event)
            if expand_batch_dim:
                batch = pick_vector(math_ops.equal(self._batch_ndims, 0), convert_to_tensor([1]), batch)
            return rotate_transpose(array_ops.reshape(x, array_ops.concat([[-1], batch, event], 0)), -1), draws

    def undo_make_batch_of_event_sample_matrices(
        self, x: Any, sample_shape: Any, expand_batch_dim: bool = True, name: str = "undo_make_batch_of_event_sample_matrices"
    ) -> Tensor:
        """The sample of which make_batch_of_event_sample_matrices made x and sample_shape."""
        with name_scope(name, values=[x, sample_shape]):
            x = rotate_transpose(convert_to_tensor(x, name="x"), 1)
            sizes, batch, event = array_ops.shape(x), _known(self._batch_ndims), _known(self._event_ndims)
            if not expand_batch_dim:
                first = 1 + batch
            elif isinstance(batch, int):
                first = 2 if batch == 0 else 1 + batch
            else:
                first = array_ops.where(math_ops.equal(batch, 0), 2, 1 + batch)
            return array_ops.reshape(x, array_ops.concat([sample_shape, sizes[1 : 1 + batch], sizes[first : first + event]], 0))
