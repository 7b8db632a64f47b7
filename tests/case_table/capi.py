# SPDX-License-Identifier: Apache-2.0
"""The part of the C API that builds a graph node by node, differentiates and runs it."""

from __future__ import annotations

import ctypes as C
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtypes import BY_NUMBER, DType, STRING
from wire import Kernel, Op, parse_kernels, parse_ops

_STRING_SIZE = 24


class Buffer(C.Structure):
    _fields_ = [("data", C.c_void_p), ("length", C.c_size_t), ("deallocator", C.c_void_p)]


class Output(C.Structure):
    _fields_ = [("oper", C.c_void_p), ("index", C.c_int)]


class Error(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"status {code}: {message}")
        self.code = code


_P, _S, _I, _N, _L = C.c_void_p, C.c_char_p, C.c_int, C.c_size_t, C.c_int64
_OUTS, _POINTERS, _LONGS = C.POINTER(Output), C.POINTER(_P), C.POINTER(_L)
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "TF_NewStatus": (_P, []),
    "TF_GetCode": (_I, [_P]),
    "TF_Message": (_S, [_P]),
    "TF_GetAllOpList": (C.POINTER(Buffer), []),
    "TF_GetAllRegisteredKernels": (C.POINTER(Buffer), [_P]),
    "TF_DeleteBuffer": (None, [C.POINTER(Buffer)]),
    "TF_AllocateTensor": (_P, [_I, _LONGS, _I, _N]),
    "TF_DeleteTensor": (None, [_P]),
    "TF_TensorData": (_P, [_P]),
    "TF_TensorByteSize": (_N, [_P]),
    "TF_TensorType": (_I, [_P]),
    "TF_NumDims": (_I, [_P]),
    "TF_Dim": (_L, [_P, _I]),
    "TF_StringInit": (None, [_P]),
    "TF_StringCopy": (None, [_P, _S, _N]),
    "TF_StringGetDataPointer": (_P, [_P]),
    "TF_StringGetSize": (_N, [_P]),
    "TF_NewGraph": (_P, []),
    "TF_DeleteGraph": (None, [_P]),
    "TF_NewOperation": (_P, [_P, _S, _S]),
    "TF_FinishOperation": (_P, [_P, _P]),
    "TF_AddInput": (None, [_P, Output]),
    "TF_AddInputList": (None, [_P, _OUTS, _I]),
    "TF_AddControlInput": (None, [_P, _P]),
    "TF_OperationNumOutputs": (_I, [_P]),
    "TF_OperationOutputType": (_I, [Output]),
    "TF_SetAttrString": (None, [_P, _S, _S, _N]),
    "TF_SetAttrInt": (None, [_P, _S, _L]),
    "TF_SetAttrFloat": (None, [_P, _S, C.c_float]),
    "TF_SetAttrBool": (None, [_P, _S, C.c_ubyte]),
    "TF_SetAttrType": (None, [_P, _S, _I]),
    "TF_SetAttrShape": (None, [_P, _S, _LONGS, _I]),
    "TF_SetAttrTensor": (None, [_P, _S, _P, _P]),
    "TF_SetAttrIntList": (None, [_P, _S, _LONGS, _I]),
    "TF_SetAttrStringList": (None, [_P, _S, _P, _P, _I]),
    "TF_SetAttrFloatList": (None, [_P, _S, C.POINTER(C.c_float), _I]),
    "TF_SetAttrShapeList": (None, [_P, _S, C.POINTER(_LONGS), C.POINTER(_I), _I]),
    "TF_SetAttrTypeList": (None, [_P, _S, C.POINTER(_I), _I]),
    "TF_GraphGetTensorNumDims": (_I, [_P, Output, _P]),
    "TF_GraphGetTensorShape": (None, [_P, Output, _LONGS, _I, _P]),
    "TF_AddGradients": (None, [_P, _OUTS, _I, _OUTS, _I, _OUTS, _P, _OUTS]),
    "TF_LoadLibrary": (_P, [_S, _P]),
    "TF_SetDevice": (None, [_P, _S]),
    "TF_NewSessionOptions": (_P, []),
    "TF_SetConfig": (None, [_P, _S, _N, _P]),
    "TF_DeleteSessionOptions": (None, [_P]),
    "TF_NewSession": (_P, [_P, _P, _P]),
    "TF_CloseSession": (None, [_P, _P]),
    "TF_DeleteSession": (None, [_P, _P]),
    "TF_SessionRun": (None, [_P, _P, _OUTS, _POINTERS, _I, _OUTS, _POINTERS, _I, _POINTERS, _I, _P, _P]),
}


_SOFT_PLACEMENT = b"\x38\x01"  # ConfigProto.allow_soft_placement


class Library:
    def __init__(self, path: str) -> None:
        self.lib = C.CDLL(path)
        for name, (result, parameters) in _SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, parameters
        self.status = self.lib.TF_NewStatus()
        self.device = ""  # of all nodes; "": wherever

    def run_on(self, plugin: str, device_type: str) -> None:
        """From now on nodes ask for a device of a library, and go elsewhere only where it has no kernel."""
        self.lib.TF_LoadLibrary(plugin.encode(), self.status)
        self.check()
        self.device = f"/device:{device_type}:0"

    def check(self) -> None:
        code = self.lib.TF_GetCode(self.status)
        if code:
            raise Error(code, self.lib.TF_Message(self.status).decode(errors="replace"))

    def _take(self, buffer: Any) -> bytes:
        data = C.string_at(buffer.contents.data, buffer.contents.length)
        self.lib.TF_DeleteBuffer(buffer)
        return data

    def ops(self) -> dict[str, Op]:
        return parse_ops(self._take(self.lib.TF_GetAllOpList()))

    def kernels(self) -> list[Kernel]:
        return parse_kernels(self._take(self.lib.TF_GetAllRegisteredKernels(self.status)))

    def make_tensor(self, stored: np.ndarray, dtype: DType) -> int:
        dims = (_L * max(1, stored.ndim))(*stored.shape)
        size = _STRING_SIZE * stored.size if dtype == STRING else stored.nbytes
        tensor = self.lib.TF_AllocateTensor(dtype.number, dims, stored.ndim, size)
        if not tensor:
            raise Error(-1, f"no tensor of {dtype} {stored.shape}")
        data = self.lib.TF_TensorData(tensor)
        if dtype == STRING:
            for i, text in enumerate(stored.ravel()):
                self.lib.TF_StringInit(data + _STRING_SIZE * i)
                self.lib.TF_StringCopy(data + _STRING_SIZE * i, text, len(text))
        elif stored.size:
            dense = np.ascontiguousarray(stored)
            C.memmove(data, dense.ctypes.data, dense.nbytes)
        return tensor

    def take_tensor(self, tensor: int) -> tuple[np.ndarray, DType]:
        lib = self.lib
        shape = [lib.TF_Dim(tensor, i) for i in range(lib.TF_NumDims(tensor))]
        dtype = BY_NUMBER[lib.TF_TensorType(tensor)]
        data = lib.TF_TensorData(tensor)
        if dtype == STRING:
            at = [data + _STRING_SIZE * i for i in range(int(np.prod(shape, dtype=np.int64)))]
            values = np.empty(len(at), object)
            values[:] = [C.string_at(lib.TF_StringGetDataPointer(p), lib.TF_StringGetSize(p)) for p in at]
        else:
            values = np.frombuffer(C.string_at(data, lib.TF_TensorByteSize(tensor)), dtype.stored).copy()
        lib.TF_DeleteTensor(tensor)
        return values.reshape(shape), dtype


class Graph:
    """A graph under construction. After the first run a session holds it, and nodes may still be added."""

    def __init__(self, library: Library) -> None:
        self.library, self.lib = library, library.lib
        self.graph = self.lib.TF_NewGraph()
        self.session: int | None = None
        self.count = 0

    def close(self) -> None:
        if self.session:
            self.lib.TF_CloseSession(self.session, self.library.status)
            self.lib.TF_DeleteSession(self.session, self.library.status)
        self.lib.TF_DeleteGraph(self.graph)

    def node(self, op: str, inputs: Sequence[Output | list[Output]] = (), attrs: dict[str, tuple[str, Any]] | None = None, after: Sequence[int] = ()) -> int:
        """Adds a node; `attrs` maps a name to its kind, as in OpDef, and its value."""
        self.count += 1
        description = self.lib.TF_NewOperation(self.graph, op.encode(), f"n{self.count}".encode())
        if self.library.device:
            self.lib.TF_SetDevice(description, self.library.device.encode())
        for value in inputs:
            if isinstance(value, list):
                self.lib.TF_AddInputList(description, (Output * len(value))(*value), len(value))
            else:
                self.lib.TF_AddInput(description, value)
        for control in after:
            self.lib.TF_AddControlInput(description, control)
        for name, (kind, content) in (attrs or {}).items():
            self._set(description, name.encode(), kind, content)
        node = self.lib.TF_FinishOperation(description, self.library.status)
        self.library.check()
        return node

    def _set(self, description: int, name: bytes, kind: str, value: Any) -> None:
        lib = self.lib
        if kind == "string":
            text = value if isinstance(value, bytes) else value.encode()
            lib.TF_SetAttrString(description, name, text, len(text))
        elif kind == "int":
            lib.TF_SetAttrInt(description, name, value)
        elif kind == "float":
            lib.TF_SetAttrFloat(description, name, value)
        elif kind == "bool":
            lib.TF_SetAttrBool(description, name, value)
        elif kind == "type":
            lib.TF_SetAttrType(description, name, value.number)
        elif kind == "shape":
            lib.TF_SetAttrShape(description, name, (_L * max(1, len(value)))(*value), len(value))
        elif kind == "unknown shape":
            lib.TF_SetAttrShape(description, name, None, -1)
        elif kind == "tensor":
            tensor = self.library.make_tensor(*value)
            lib.TF_SetAttrTensor(description, name, tensor, self.library.status)
            lib.TF_DeleteTensor(tensor)
            self.library.check()
        elif kind == "list(int)":
            lib.TF_SetAttrIntList(description, name, (_L * max(1, len(value)))(*value), len(value))
        elif kind == "list(float)":
            lib.TF_SetAttrFloatList(description, name, (C.c_float * max(1, len(value)))(*value), len(value))
        elif kind == "list(shape)":
            dims = [(_L * max(1, len(shape)))(*shape) for shape in value]
            pointers = (_LONGS * max(1, len(value)))(*[C.cast(d, _LONGS) for d in dims])
            ranks = (_I * max(1, len(value)))(*[len(shape) for shape in value])
            lib.TF_SetAttrShapeList(description, name, pointers, ranks, len(value))
        elif kind == "list(string)":
            texts = [v if isinstance(v, bytes) else v.encode() for v in value]
            pointers = (C.c_void_p * max(1, len(value)))(*[C.cast(C.c_char_p(t), C.c_void_p) for t in texts])
            sizes = (C.c_size_t * max(1, len(value)))(*[len(t) for t in texts])
            lib.TF_SetAttrStringList(description, name, pointers, sizes, len(value))
        elif kind == "list(type)":
            lib.TF_SetAttrTypeList(description, name, (_I * max(1, len(value)))(*[t.number for t in value]), len(value))
        else:
            raise TypeError(f"attribute {name!r} of kind {kind}")

    def placeholder(self, dtype: DType, shape: Sequence[int] | None = None) -> Output:
        attrs: dict[str, tuple[str, Any]] = {"dtype": ("type", dtype)}
        attrs["shape"] = ("unknown shape", None) if shape is None else ("shape", shape)
        return Output(self.node("Placeholder", attrs=attrs), 0)

    def constant(self, stored: np.ndarray, dtype: DType) -> Output:
        return Output(self.node("Const", attrs={"dtype": ("type", dtype), "value": ("tensor", (stored, dtype))}), 0)

    def outputs(self, node: int) -> list[Output]:
        return [Output(node, i) for i in range(self.lib.TF_OperationNumOutputs(node))]

    def dtype(self, output: Output) -> DType:
        return BY_NUMBER[self.lib.TF_OperationOutputType(output) % 100]

    def shape(self, output: Output) -> tuple[int, ...] | None:
        """The promised shape, -1 for an unknown size; None for an unknown rank."""
        rank = self.lib.TF_GraphGetTensorNumDims(self.graph, output, self.library.status)
        self.library.check()
        if rank < 0:
            return None
        dims = (_L * max(1, rank))()
        self.lib.TF_GraphGetTensorShape(self.graph, output, dims, rank, self.library.status)
        self.library.check()
        return tuple(dims[:rank])

    def gradients(self, ys: Sequence[Output], xs: Sequence[Output], seeds: Sequence[Output]) -> list[Output]:
        result = (Output * len(xs))()
        self.lib.TF_AddGradients(
            self.graph, (Output * len(ys))(*ys), len(ys), (Output * len(xs))(*xs), len(xs), (Output * len(seeds))(*seeds), self.library.status, result
        )
        self.library.check()
        return list(result)

    def run(
        self, feeds: Sequence[tuple[Output, np.ndarray, DType]] = (), fetches: Sequence[Output] = (), targets: Sequence[int] = ()
    ) -> list[tuple[np.ndarray, DType]]:
        if not self.session:
            options = self.lib.TF_NewSessionOptions()
            if self.library.device:
                self.lib.TF_SetConfig(options, _SOFT_PLACEMENT, len(_SOFT_PLACEMENT), self.library.status)
            self.session = self.lib.TF_NewSession(self.graph, options, self.library.status)
            self.lib.TF_DeleteSessionOptions(options)
            self.library.check()
        tensors = [self.library.make_tensor(stored, dtype) for _, stored, dtype in feeds]
        results = (_P * max(1, len(fetches)))()
        self.lib.TF_SessionRun(
            self.session,
            None,
            (Output * len(feeds))(*[f[0] for f in feeds]),
            (_P * len(feeds))(*tensors),
            len(feeds),
            (Output * len(fetches))(*fetches),
            results,
            len(fetches),
            (_P * len(targets))(*targets),
            len(targets),
            None,
            self.library.status,
        )
        for tensor in tensors:
            self.lib.TF_DeleteTensor(tensor)
        self.library.check()
        return [self.library.take_tensor(results[i] or 0) for i in range(len(fetches))]
