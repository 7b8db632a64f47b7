# SPDX-License-Identifier: Apache-2.0
"""TensorArray: a list of tensors inside a step, written and read by position."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Optional

from millrace.framework import dtypes, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, colocate_with, device, name_scope
from millrace.framework.static_values import constant_value
from millrace.framework.type_spec import TensorArraySpec
from millrace.ops import array_ops, gen_ops, math_ops


@contextlib.contextmanager
def _nowhere() -> Iterator[None]:
    """A context without the devices and the colocation around it."""
    with colocate_with(None, True), device(None):
        yield


class TensorArray:
    """A list of tensors. Writing gives a new object, through which later operations wait for the writing."""

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: Any = None,
        clear_after_read: Any = None,
        tensor_array_name: Any = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: Optional[str] = None,
    ) -> None:
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._infer_shape = infer_shape
        self._known = [tensor_shape.as_shape(element_shape)]  # the shape of its elements, for all objects of the list
        self._beside: Optional[List[Any]] = [] if colocate_with_first_write_call else None  # what it lies with: the first value written
        self._dynamic_size = bool(dynamic_size)
        self._size: Optional[Tensor] = None
        if handle is not None:
            self._handle, self._flow = handle, flow
            return
        if size is None:
            raise at_user_line(ValueError("Size must be provided if handle is not provided"))
        with name_scope(name, "TensorArray", [size]) as scope:
            self._size = convert_to_tensor(size, dtypes.int32, "size")
            with _nowhere() if colocate_with_first_write_call else contextlib.nullcontext():
                made = gen_ops.tensor_array_v3(
                    self._size,
                    self._dtype,
                    element_shape=self._element_shape,
                    dynamic_size=self._dynamic_size,
                    clear_after_read=clear_after_read is not False,
                    identical_element_shapes=infer_shape,
                    tensor_array_name=tensor_array_name or "",
                    name=scope,
                )
            self._handle, self._flow = made[0], made[1]

    def __repr__(self) -> str:
        return "<tf.TensorArray dtype=%s, element shape %s>" % (self._dtype.name, self._element_shape)

    dtype = property(lambda self: self._dtype, doc="The type of its elements.")
    handle = property(lambda self: self._handle, doc="Its resource.")
    flow = property(lambda self: self._flow, doc="The tensor that later operations wait for.")
    _element_shape = property(lambda self: self._known[0])
    element_shape = property(lambda self: self._element_shape, doc="What is known of the shape of its elements.")
    dynamic_size = property(lambda self: self._dynamic_size, doc="Whether it may grow.")

    @property
    def _type_spec(self) -> TensorArraySpec:
        return TensorArraySpec.from_value(self)

    def _with_flow(self, flow: Tensor, shape: Any = None) -> "TensorArray":
        made = TensorArray(self._dtype, handle=self._handle, flow=flow, infer_shape=self._infer_shape, element_shape=self._element_shape)
        made._dynamic_size, made._known, made._beside = self._dynamic_size, self._known, self._beside  # TensorFlow forgets the size
        if shape is not None and not self._element_shape.is_compatible_with(shape):
            infers = " (and infer_shape=True)" if self._infer_shape else ""
            raise at_user_line(ValueError("Inconsistent shapes: saw %s but expected %s%s" % (shape, self._element_shape, infers)))
        if shape is not None and self._infer_shape:
            self._known[0] = self._element_shape.merge_with(shape)
        return made

    def _with_first(self, value: Tensor) -> Any:
        """A context in which nodes lie with the first value that was written; this one, where there was none."""
        if self._beside is None:
            return colocate_with(self._handle)
        if not self._beside:
            self._beside.append(value)
        return colocate_with(self._beside[0])

    def mark_used(self) -> None:
        """Nothing: TensorFlow warns of lists that nobody uses."""

    def _shaped(self, value: Tensor, leading: int = 0) -> Tensor:
        if self._element_shape.ndims is not None:
            known = value.get_shape()
            first = known[:leading] if known.ndims is not None else tensor_shape.unknown_shape(leading)
            value.set_shape(first.concatenate(self._element_shape) if leading else self._element_shape)
        return value

    def identity(self) -> "TensorArray":
        """The same list after what it waits for."""
        return self._with_flow(array_ops.identity(self._flow))

    def grad(self, source: str, flow: Any = None, name: Optional[str] = None) -> "TensorArray":
        """The list of gradients of its elements."""
        flow = self._flow if flow is None else flow
        with colocate_with(self._handle):
            made = gen_ops.tensor_array_grad_v3(self._handle, flow, source, name=name)
            with name_scope(None, "gradient", [made[0]]):
                return TensorArray(self._dtype, handle=made[0], flow=array_ops.identity(flow), infer_shape=self._infer_shape, element_shape=self._element_shape)

    def read(self, index: Any, name: Optional[str] = None) -> Tensor:
        """The element at a position."""
        with colocate_with(self._handle):
            return self._shaped(gen_ops.tensor_array_read_v3(self._handle, index, self._flow, self._dtype, name=name))

    def write(self, index: Any, value: Any, name: Optional[str] = None) -> "TensorArray":
        """The list with an element at a position. One of another type is refused by the step."""
        with name_scope(name, "TensorArrayWrite", [self._handle, index, value]):
            value = convert_to_tensor(value, name="value", preferred_dtype=self._dtype) if not isinstance(value, Tensor) else value
            with self._with_first(value):
                return self._with_flow(gen_ops.tensor_array_write_v3(self._handle, index, value, self._flow), value.get_shape())

    def stack(self, name: Optional[str] = None) -> Tensor:
        """All elements as one tensor."""
        with colocate_with(self._handle), name_scope(name, "TensorArrayStack", [self._handle]):
            return self.gather(math_ops.range(0, self.size()))

    pack = stack

    def gather(self, indices: Any, name: Optional[str] = None) -> Tensor:
        """The elements at some positions as one tensor."""
        with colocate_with(self._handle):
            value = gen_ops.tensor_array_gather_v3(self._handle, indices, self._flow, self._dtype, element_shape=self._element_shape, name=name)
        return self._shaped(value, 1)

    def concat(self, name: Optional[str] = None) -> Tensor:
        """All elements joined along the first axis."""
        rest = self._element_shape[1:] if self._element_shape.ndims is not None else None
        with colocate_with(self._handle):
            value = gen_ops.tensor_array_concat_v3(self._handle, self._flow, self._dtype, element_shape_except0=rest, name=name)[0]
        if rest is not None:
            value.set_shape(tensor_shape.TensorShape([None]).concatenate(rest))
        return value

    def unstack(self, value: Any, name: Optional[str] = None) -> "TensorArray":
        """The list with the slices of a tensor as its elements."""
        with name_scope(name, "TensorArrayUnstack", [self._handle, value]):
            value = convert_to_tensor(value, self._dtype) if not isinstance(value, Tensor) else value
            return self.scatter(math_ops.range(0, array_ops.shape(value)[0]), value)

    unpack = unstack

    def scatter(self, indices: Any, value: Any, name: Optional[str] = None) -> "TensorArray":
        """The list with the slices of a tensor at some positions."""
        value = convert_to_tensor(value, self._dtype) if not isinstance(value, Tensor) else value
        shape = value.get_shape()
        with name_scope(name, "TensorArrayScatter", [self._handle, value, indices]), self._with_first(value):
            return self._with_flow(gen_ops.tensor_array_scatter_v3(self._handle, indices, value, self._flow), shape[1:] if shape.ndims is not None else None)

    def split(self, value: Any, lengths: Any, name: Optional[str] = None) -> "TensorArray":
        """The list with pieces of a tensor as its elements."""
        with name_scope(name, "TensorArraySplit", [self._handle, value, lengths]):
            value = convert_to_tensor(value, self._dtype) if not isinstance(value, Tensor) else value
            lengths = math_int64(lengths)
            known, shape = constant_value(lengths), None
            if known is not None and known.size and known.min() == known.max() and value.get_shape().ndims is not None:
                shape = tensor_shape.TensorShape([int(known.flat[0])]).concatenate(value.get_shape()[1:])
            with self._with_first(value):
                return self._with_flow(gen_ops.tensor_array_split_v3(self._handle, value, lengths, self._flow), shape)

    def size(self, name: Optional[str] = None) -> Tensor:
        """The number of elements."""
        if self._size is not None and not self._dynamic_size:
            return self._size
        with colocate_with(self._handle):
            return gen_ops.tensor_array_size_v3(self._handle, self._flow, name=name)

    def close(self, name: Optional[str] = None) -> Operation:
        """An operation that drops the list."""
        return gen_ops.tensor_array_close_v3(self._handle, name=name)


def math_int64(value: Any) -> Tensor:
    """A value as a tensor of int64."""
    return convert_to_tensor(value, dtypes.int64) if not isinstance(value, Tensor) else gen_ops.cast(value, dtypes.int64)


def gradient_source(op_or_tensor: Any) -> str:
    """Which call of tf.gradients made an operation or a tensor: its name as far as the innermost scope of gradients. ValueError where it lies in none."""
    parts = op_or_tensor.name.split("/")
    ends = [i + 1 for i, part in enumerate(parts) if part.startswith("gradients")]
    if not ends:
        raise at_user_line(ValueError("Expected op/tensor name to start with gradients (excluding scope), got: %s" % op_or_tensor.name))
    return "/".join(parts[: ends[-1]])
