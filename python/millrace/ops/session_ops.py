# SPDX-License-Identifier: Apache-2.0
"""Tensors that a session keeps between steps, under handles."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, colocate_with, device as on_device
from millrace.framework.session import handles
from millrace.ops import array_ops, gen_ops

__all__ = ["get_session_handle", "get_session_tensor", "delete_session_tensor"]


class TensorHandle:
    """What a fetched handle is: the name of a tensor that its session keeps until nobody has the handle any more."""

    def __init__(self, handle: bytes, dtype: dtypes.DType, session: Any) -> None:
        self._handle, self._dtype, self._session = handle.decode(), dtype, session
        self._kept = True

    def __del__(self) -> None:
        if self._kept and self._session is not None:
            self._session._dead_handles.append(self._handle)

    def __str__(self) -> str:
        return self._handle

    def _run(self, key: str, make: Any) -> Any:
        """Runs what `make` adds to the session's graph, which is added once."""
        graph = self._session.graph
        made = graph.__dict__.setdefault("_session_tensor_ops", {})
        if key not in made:
            with graph.as_default(), on_device(None):
                holder = array_ops.placeholder(dtypes.string)
                made[key] = (holder, make(holder))
        holder, op = made[key]
        return self._session.run(op, {holder: self._handle})

    @property
    def handle(self) -> str:
        """The name, for the placeholder that get_session_tensor gives."""
        return self._handle

    def get_raw_handle(self) -> str:
        """The name, which the tensor now outlives: it stays until it is deleted."""
        self._kept = False
        return self._handle

    def eval(self) -> Any:
        """The value."""
        if not self._kept:
            raise at_user_line(TypeError("Persistent tensor %s may have already been deleted." % self._handle))
        return self._run("get " + self._dtype.name, lambda h: gen_ops.get_session_tensor(h, dtype=self._dtype))

    def to_numpy_array(self) -> Any:
        """The value."""
        return self.eval()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.eval(), dtype)

    def delete(self) -> None:
        """Drops the tensor."""
        if not self._kept:
            raise at_user_line(TypeError("Persistent tensor %s may have already been deleted." % self._handle))
        self._kept = False
        self._run("delete", gen_ops.delete_session_tensor)


handles["kind"] = TensorHandle


def is_handle(fetched: Any) -> bool:
    """Whether the value of a fetch is to be a TensorHandle."""
    return isinstance(fetched, Tensor) and fetched.op.type == "GetSessionHandle"


def get_session_handle(data: Any, name: Optional[str] = None) -> Tensor:
    """Keeps a tensor in the session; fetched, the result is a TensorHandle."""
    data = convert_to_tensor(data)
    with colocate_with(data):
        return gen_ops.get_session_handle(data, name=name)


def get_session_tensor(handle: Any, dtype: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """A placeholder for a handle's name, and the tensor that the session keeps under it."""
    with on_device(_device_of(handle)):
        holder = array_ops.placeholder(dtypes.string)
        return holder, gen_ops.get_session_tensor(holder, dtype=dtypes.as_dtype(dtype), name=name)


def delete_session_tensor(handle: Any, name: Optional[str] = None) -> Tuple[Tensor, Operation]:
    """A placeholder for a handle's name, and the operation that drops the tensor."""
    with on_device(_device_of(handle)):
        holder = array_ops.placeholder(dtypes.string)
        return holder, gen_ops.delete_session_tensor(holder, name=name)


def _device_of(handle: Any) -> Optional[str]:
    text = handle.decode() if isinstance(handle, bytes) else str(handle)
    return text.rsplit(";", 1)[1] if text.count(";") >= 2 else None
