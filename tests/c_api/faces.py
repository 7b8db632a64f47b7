# SPDX-License-Identifier: Apache-2.0
"""Checks libtensorflow.so.1 and libtensorflow.so.2 beside what else a process may hold.

  faces.py LIBMILLRACE FACE_1 FACE_2 CLIENT_1 CLIENT_2 WHAT...

WHAT is in the order in which it is loaded: "faces" (both, and the clients linked to them: face_test.c), "python" (the
package of this build), "tensorflow". Both faces have each TF_ and TFE_ function of libmillrace; strings cross both, each
in its own form; and all else goes on working, again and again. TensorFlow puts its functions where every library that is
loaded later finds them: the clients then have to be loaded so that they find those they were linked to (RTLD_DEEPBIND).

  faces.py --preload CLIENT VERSION python|tensorflow

The process is a program linked to a face: its functions are those that everything loaded later finds first. TensorFlow
has to be loaded so that it finds its own (RTLD_DEEPBIND).
"""

import ctypes as C
import os
import struct
import subprocess
import sys


def functions(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in lines.splitlines() if line.split()[-1].startswith(("TF_", "TFE_"))}


class Output(C.Structure):
    _fields_ = [("oper", C.c_void_p), ("index", C.c_int)]


def encoded(text):
    return struct.pack("<Q", 0) + bytes([len(text)]) + text  # texts here are shorter than 128


def small(text):
    return bytes([len(text) << 2]) + text.ljust(23, b"\0")


class Face:
    """x + x by the functions of one library."""

    def __init__(self, path, version, encode):
        self.lib = lib = C.CDLL(path)
        for name in ("TF_NewStatus", "TF_NewGraph", "TF_NewOperation", "TF_FinishOperation", "TF_NewSession", "TF_AllocateTensor", "TF_TensorData"):
            getattr(lib, name).restype = C.c_void_p
        lib.TF_Version.restype = lib.TF_Message.restype = C.c_char_p
        lib.TF_TensorByteSize.restype = C.c_size_t
        assert lib.TF_Version().startswith(version), lib.TF_Version()
        self.encode = encode
        p = C.c_void_p
        self.status, self.graph = p(lib.TF_NewStatus()), p(lib.TF_NewGraph())
        desc = p(lib.TF_NewOperation(self.graph, b"Placeholder", b"x"))
        lib.TF_SetAttrType(desc, b"dtype", 7)
        self.x = Output(lib.TF_FinishOperation(desc, self.status), 0)
        desc = p(lib.TF_NewOperation(self.graph, b"StringJoin", b"y"))
        lib.TF_AddInputList(desc, (Output * 2)(self.x, self.x), 2)
        self.y = Output(lib.TF_FinishOperation(desc, self.status), 0)
        self.session = p(lib.TF_NewSession(self.graph, None, self.status))

    def run(self, text):
        lib, data = self.lib, self.encode(text)
        value, result = C.c_void_p(lib.TF_AllocateTensor(7, None, 0, C.c_size_t(len(data)))), C.c_void_p()
        assert value, "TF_AllocateTensor refuses %d bytes" % len(data)
        C.memmove(lib.TF_TensorData(value), data, len(data))
        lib.TF_SessionRun(self.session, None, C.byref(self.x), C.byref(value), 1, C.byref(self.y), C.byref(result), 1, None, 0, None, self.status)
        assert lib.TF_GetCode(self.status) == 0, lib.TF_Message(self.status)
        want = self.encode(text + text)
        assert lib.TF_TensorByteSize(result) == len(want)
        assert C.string_at(lib.TF_TensorData(result), len(text) * 2 + 9)[: len(want)] == want[: len(text) * 2 + 9]
        lib.TF_DeleteTensor(result)
        lib.TF_DeleteTensor(value)


def python_package():
    import millrace as tf

    x = tf.placeholder(tf.string, [])
    session = tf.Session()
    return lambda: session.run(x + x, {x: b"ab"}) == b"abab"


def tensorflow():
    import tensorflow as tf

    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.string, [])
        y, session = x + x, tf.compat.v1.Session()
    return lambda: session.run(y, {x: b"ab"}) == b"abab"


class Faces:
    """Both faces by their functions, and the clients linked to them."""

    def __init__(self, one, two, client_1, client_2):
        self.faces = [Face(one, b"1.", encoded), Face(two, b"2.", small)]
        mode = os.RTLD_NOW | (os.RTLD_DEEPBIND if "tensorflow" in sys.modules else 0)
        self.clients = [(C.CDLL(client_1, mode), b"1."), (C.CDLL(client_2, mode), b"2.")]

    def __call__(self):
        for text in (b"", b"ab", b"eleven char"):
            for face in self.faces:
                face.run(text)
        return all(client.FaceClient(version) == 0 for client, version in self.clients)


def program(client, version, other):
    """This process again, with the client and its face where a linked program has them; then what it does there."""
    if "FACES_PRELOADED" not in os.environ:
        os.environ.update(LD_PRELOAD=client, FACES_PRELOADED="1")
        os.execv(sys.executable, [sys.executable] + sys.argv)
    everything = C.CDLL(None)
    assert everything.TF_Version is not None and everything.FaceClient(version.encode()) == 0
    if other == "tensorflow":
        sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
    run = {"python": python_package, "tensorflow": tensorflow}[other]()
    for _ in range(3):
        assert run() and everything.FaceClient(version.encode()) == 0
    print("a program linked to the face of %s runs with %s" % (version, other))


def main(library, one, two, client_1, client_2, *order):
    want = functions(library)
    for face in (one, two):
        lacks, more = want - functions(face), functions(face) - want
        assert not lacks and not more, "%s lacks %s and has %s more" % (face, sorted(lacks), sorted(more))
    loaded = []
    for name in order:
        loaded.append({"faces": lambda: Faces(one, two, client_1, client_2), "python": python_package, "tensorflow": tensorflow}[name]())
        assert all(run() for run in loaded), "after %s was loaded" % name
    assert all(run() for run in loaded * 3)
    held = {line.split()[-1] for line in open("/proc/self/maps") if "libmillrace.so" in line}
    assert len(held) == 1, "the faces and the package stand on %s" % held
    print("%d functions; strings cross both faces" % len(want), *order)


if __name__ == "__main__":
    program(*sys.argv[2:]) if sys.argv[1] == "--preload" else main(*sys.argv[1:])
