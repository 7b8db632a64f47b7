# SPDX-License-Identifier: Apache-2.0
"""An ONNX graph in the making. Values are named by their tensors; what an op adds between gets names of its own."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from millrace.framework.graph import Operation, Tensor
from millrace.framework.static_values import constant_value
from millrace.onnx import messages

OPSET, IR_VERSION = 17, 8


class Model:
    """What rules write into. Values are strings, names of ONNX values."""

    def __init__(self) -> None:
        self.nodes: List[Any] = []
        self.initializers: Dict[str, Any] = {}
        self._values: Dict[Tensor, str] = {}
        self._channels_first: Dict[str, str] = {}  # of a value in NHWC: the same in NCHW
        self._constants: Dict[Any, str] = {}
        self._taken: Dict[str, int] = {}

    # ---- names and values ----

    def fresh(self, name: str) -> str:
        """A name like this one that nothing has."""
        count = self._taken[name] = self._taken.get(name, -1) + 1
        return name if count == 0 else self.fresh("%s_%d" % (name, count))

    def value(self, tensor: Tensor) -> str:
        """The value of a tensor; of a constant when it is first asked for."""
        if tensor not in self._values:
            known = constant_value(tensor)
            if known is None:
                raise NotImplementedError("'%s' has no value yet" % tensor.name)
            self._values[tensor] = self.constant(known, tensor.op.name)
        return self._values[tensor]

    def has(self, tensor: Tensor) -> bool:
        """Whether the tensor has a value."""
        return tensor in self._values

    def set(self, tensor: Tensor, value: str) -> None:
        """Says which value is the tensor's."""
        self._values[tensor] = value

    def constant(self, value: Any, name: str = "const", dtype: Any = None) -> str:
        """An initializer; equal small ones are one."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 16 else None
        if key is not None and key in self._constants:
            return self._constants[key]
        made = self.fresh(name)
        self.initializers[made] = messages.tensor(array, made)
        if key is not None:
            self._constants[key] = made
        return made

    def ints(self, values: Any) -> str:
        """A constant of int64."""
        return self.constant(values, dtype=np.int64)

    # ---- nodes ----

    def add(self, op_type: str, inputs: Sequence[str], outputs: int = 1, name: str = "", **attributes: Any) -> Any:
        """A node; the name of its output, or a list of their names."""
        name = self.fresh(name or op_type)
        made = [name] if outputs == 1 else [self.fresh("%s:%d" % (name, i)) for i in range(outputs)]
        node = messages.NodeProto(op_type=op_type, name=name, input=list(inputs), output=made)
        node.attribute.extend(messages.attribute(k, v) for k, v in sorted(attributes.items()) if v is not None)
        self.nodes.append(node)
        return made[0] if outputs == 1 else made

    def cast(self, value: str, dtype: str) -> str:
        """The value in another dtype."""
        return str(self.add("Cast", [value], to=messages.data_type(dtype)))

    def transpose(self, value: str, order: Sequence[int]) -> str:
        """The value with its dimensions in another order; of a constant another constant."""
        if value in self.initializers:
            return self.constant(np.ascontiguousarray(np.transpose(messages.array(self.initializers[value]), order)), value)
        return str(self.add("Transpose", [value], perm=list(order)))

    # ---- images: TensorFlow's have channels last, ONNX's first ----

    def channels_first(self, value: str, rank: int = 4) -> str:
        """A value in N...C as NC...; without a node when it was made from one."""
        if value not in self._channels_first:
            self._channels_first[value] = self.transpose(value, [0, rank - 1, *range(1, rank - 1)])
        return self._channels_first[value]

    def channels_last(self, value: str, rank: int = 4, name: str = "") -> str:
        """A value in NC... as N...C, which remembers where it came from."""
        made = str(self.add("Transpose", [value], name=name, perm=[0, *range(2, rank), 1]))
        self._channels_first[made] = value
        return made

    def known_channels_first(self, value: str) -> Optional[str]:
        """The value in NC..., when there is one already."""
        return self._channels_first.get(value)

    # ---- the end ----

    def prune(self, outputs: Sequence[str]) -> None:
        """Drops what no output needs."""
        needed = set(outputs)
        kept = []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                kept.append(node)
                needed |= set(node.input)
        self.nodes = kept[::-1]
        self.initializers = {k: v for k, v in self.initializers.items() if k in needed}


def static(op: Operation, index: int, what: str) -> np.ndarray:
    """The value of an input that ONNX wants to be known."""
    known = constant_value(op.inputs[index])
    if known is None:
        raise NotImplementedError("%s of '%s' (%s) is computed by '%s'; ONNX wants it to be constant" % (what, op.name, op.type, op.inputs[index].name))
    return np.asarray(known)


def dims(tensor: Tensor, what: str = "") -> List[int]:
    """The sizes of a tensor, all known."""
    shape = tensor.get_shape()
    if shape.ndims is None or not shape.is_fully_defined():
        raise NotImplementedError("'%s' has the shape %s%s; it must be known" % (tensor.name, shape, what and ", " + what))
    return [int(d or 0) for d in shape.as_list()]


def rank(tensor: Tensor) -> int:
    """The rank of a tensor, known."""
    count = tensor.get_shape().ndims
    if count is None:
        raise NotImplementedError("the rank of '%s' must be known" % tensor.name)
    return int(count)
