# SPDX-License-Identifier: Apache-2.0
"""Runs a graph in TensorFlow and in this library in one process.

Usage: beside_tensorflow.py LIBRARY ours-first|tensorflow-first local|global

Needs the tensorflow package. Ours first and global is not supported (see millrace/c_api_table.h).
"""

import ctypes as C
import sys


class Output(C.Structure):
    _fields_ = [("oper", C.c_void_p), ("index", C.c_int)]


def load(path, mode):
    lib = C.CDLL(path, mode=mode)
    for name in ("TF_NewStatus", "TF_NewGraph", "TF_NewOperation", "TF_FinishOperation", "TF_NewSession", "TF_AllocateTensor", "TF_TensorData"):
        getattr(lib, name).restype = C.c_void_p
    lib.TF_Version.restype = lib.TF_Message.restype = C.c_char_p
    assert lib.TF_Version() == b"2.21.0", "the functions are not ours: version %r" % lib.TF_Version()
    return lib


def run(lib):
    """-x of x = 2, in our library."""
    p = C.c_void_p
    status, graph = p(lib.TF_NewStatus()), p(lib.TF_NewGraph())
    desc = p(lib.TF_NewOperation(graph, b"Placeholder", b"x"))
    lib.TF_SetAttrType(desc, b"dtype", 1)
    x = Output(lib.TF_FinishOperation(desc, status), 0)
    desc = p(lib.TF_NewOperation(graph, b"Neg", b"y"))
    lib.TF_AddInput(desc, x)
    y = Output(lib.TF_FinishOperation(desc, status), 0)
    session = p(lib.TF_NewSession(graph, None, status))
    value = p(lib.TF_AllocateTensor(1, None, 0, C.c_size_t(4)))
    C.cast(lib.TF_TensorData(value), C.POINTER(C.c_float))[0] = 2
    result = p()
    lib.TF_SessionRun(session, None, C.byref(x), C.byref(value), 1, C.byref(y), C.byref(result), 1, None, 0, None, status)
    assert lib.TF_GetCode(status) == 0, lib.TF_Message(status)
    number = C.cast(lib.TF_TensorData(result), C.POINTER(C.c_float))[0]
    for tensor in (value, result):
        lib.TF_DeleteTensor(tensor)
    lib.TF_DeleteSession(session, status)
    lib.TF_DeleteGraph(graph)
    lib.TF_DeleteStatus(status)
    return number


def run_tensorflow():
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [])
        return session.run(-x, {x: 2.0})


def main(path, order, scope):
    mode = C.RTLD_GLOBAL if scope == "global" else C.RTLD_LOCAL
    if order == "ours-first":
        lib = load(path, mode)
        assert run(lib) == -2
        assert run_tensorflow() == -2
    else:
        assert run_tensorflow() == -2
        lib = load(path, mode)
    assert run(lib) == -2
    assert run_tensorflow() == -2
    print("both work:", order, scope)


if __name__ == "__main__":
    main(*sys.argv[1:])
