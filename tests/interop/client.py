# SPDX-License-Identifier: Apache-2.0
"""As much of the C API, by ctypes, as the interop tests need."""

import ctypes as C

import numpy as np

STRING = 7
NUMPY = {
    1: np.float32,
    2: np.float64,
    3: np.int32,
    4: np.uint8,
    5: np.int16,
    6: np.int8,
    9: np.int64,
    10: np.bool_,
    18: np.complex128,
    8: np.complex64,
    19: np.float16,
    17: np.uint16,
    22: np.uint32,
    23: np.uint64,
}
DTYPE = {np.dtype(v): k for k, v in NUMPY.items()}


class Buffer(C.Structure):
    _fields_ = [("data", C.c_void_p), ("length", C.c_size_t), ("deallocator", C.c_void_p)]


class Output(C.Structure):
    _fields_ = [("oper", C.c_void_p), ("index", C.c_int)]


class Error(Exception):
    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


RETURNS = {
    C.c_void_p: "TF_NewStatus TF_NewBuffer TF_NewBufferFromString TF_NewGraph TF_NewSession TF_NewSessionOptions "
    "TF_NewImportGraphDefOptions TF_GraphOperationByName TF_AllocateTensor TF_TensorData MR_SaverCreate "
    "MR_SaverFromDef MR_CheckpointReaderOpen MR_CheckpointReaderRead MR_EventWriterOpen",
    C.c_char_p: "TF_Message MR_CheckpointReaderName MR_EventWriterPath",
    C.c_int: "TF_GetCode TF_NumDims TF_TensorType MR_CheckpointReaderNumTensors",
    C.c_int64: "TF_Dim",
    C.c_size_t: "TF_TensorByteSize TF_StringGetSize",
}


class Library:
    def __init__(self, path):
        self.lib = C.CDLL(path)
        for kind, names in RETURNS.items():
            for name in names.split():
                getattr(self.lib, name).restype = kind
        self.lib.TF_StringGetDataPointer.restype = C.c_void_p
        self.status = self.lib.TF_NewStatus()

    def call(self, name, *args):
        """Calls a function whose last parameter is the status."""
        args = [C.c_void_p(a) if isinstance(a, int) and a > 0xFFFFFFFF else a for a in args]
        result = getattr(self.lib, name)(*args, C.c_void_p(self.status))
        code = self.lib.TF_GetCode(C.c_void_p(self.status))
        if code:
            raise Error(code, self.lib.TF_Message(C.c_void_p(self.status)).decode())
        return result

    def bytes_from(self, name, *args):
        """Calls a function that fills a buffer before the status."""
        buffer = self.lib.TF_NewBuffer()
        try:
            self.call(name, *args, C.c_void_p(buffer))
            b = Buffer.from_address(buffer)
            return C.string_at(b.data, b.length)
        finally:
            self.lib.TF_DeleteBuffer(C.c_void_p(buffer))

    def to_tensor(self, value):
        value = np.asarray(value)
        is_string = value.dtype.kind in "OSU"
        dims = (C.c_int64 * value.ndim)(*value.shape)
        size = 24 * value.size if is_string else value.nbytes
        dtype = STRING if is_string else DTYPE[value.dtype]
        tensor = self.lib.TF_AllocateTensor(dtype, dims, value.ndim, C.c_size_t(size))
        data = self.lib.TF_TensorData(C.c_void_p(tensor))
        if is_string:
            for i, s in enumerate(value.ravel()):
                s = s.encode() if isinstance(s, str) else bytes(s)
                at = C.c_void_p(data + 24 * i)
                self.lib.TF_StringInit(at)
                self.lib.TF_StringCopy(at, s, C.c_size_t(len(s)))
        else:
            dense = np.ascontiguousarray(value)
            C.memmove(data, dense.ctypes.data, dense.nbytes)
        return tensor

    def from_tensor(self, tensor):
        t = C.c_void_p(tensor)
        shape = [self.lib.TF_Dim(t, i) for i in range(self.lib.TF_NumDims(t))]
        dtype = self.lib.TF_TensorType(t)
        data = self.lib.TF_TensorData(t)
        count = int(np.prod(shape, dtype=np.int64))
        if dtype == STRING:
            values = []
            for i in range(count):
                at = C.c_void_p(data + 24 * i)
                values.append(C.string_at(self.lib.TF_StringGetDataPointer(at), self.lib.TF_StringGetSize(at)))
            result = np.array(values, object).reshape(shape)
        else:
            result = np.frombuffer(C.string_at(data, self.lib.TF_TensorByteSize(t)), NUMPY[dtype]).reshape(shape).copy()
        self.lib.TF_DeleteTensor(t)
        return result


class Session:
    """A graph imported from an encoded GraphDef, and a session on it."""

    def __init__(self, library, graph_def):
        self.l = library
        self.graph = library.lib.TF_NewGraph()
        options = library.lib.TF_NewImportGraphDefOptions()
        buffer = library.lib.TF_NewBufferFromString(graph_def, C.c_size_t(len(graph_def)))
        library.call("TF_GraphImportGraphDef", self.graph, buffer, options)
        self.session = library.call("TF_NewSession", self.graph, library.lib.TF_NewSessionOptions())

    def output(self, name):
        node, _, port = name.partition(":")
        oper = self.l.lib.TF_GraphOperationByName(C.c_void_p(self.graph), node.encode())
        if not oper:
            raise KeyError(name)
        return Output(oper, int(port or 0))

    def run(self, feeds=None, fetches=(), targets=()):
        feeds = feeds or {}
        inputs = (Output * len(feeds))(*[self.output(n) for n in feeds])
        values = (C.c_void_p * len(feeds))(*[self.l.to_tensor(v) for v in feeds.values()])
        outputs = (Output * len(fetches))(*[self.output(n) for n in fetches])
        results = (C.c_void_p * len(fetches))()
        opers = (C.c_void_p * len(targets))(*[self.output(n).oper for n in targets])
        self.l.call("TF_SessionRun", self.session, None, inputs, values, len(feeds), outputs, results, len(fetches), opers, len(targets), None)
        return [self.l.from_tensor(r) for r in results]

    def graph_def(self):
        return self.l.bytes_from("TF_GraphToGraphDef", self.graph)


class Checkpoint(dict):
    """All tensors of a checkpoint, by name."""

    def __init__(self, library, prefix):
        reader = library.call("MR_CheckpointReaderOpen", prefix.encode())
        for i in range(library.lib.MR_CheckpointReaderNumTensors(C.c_void_p(reader))):
            name = library.lib.MR_CheckpointReaderName(C.c_void_p(reader), i)
            self[name.decode()] = library.from_tensor(library.call("MR_CheckpointReaderRead", reader, name))
        library.lib.MR_CheckpointReaderDelete(C.c_void_p(reader))
