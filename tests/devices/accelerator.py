# SPDX-License-Identifier: Apache-2.0
"""What the tests of devices share: the accelerator made of threads, and graphs that run there and on the CPU."""

import ctypes
import os

import millrace as tf

os.environ.setdefault("TESTACC_DEVICES", "2")
os.environ.setdefault("TESTACC_MEMORY_BYTES", str(32 << 20))
LIBRARY = os.environ["TESTACC"]
tf.load_op_library(LIBRARY)

_plugin = ctypes.CDLL(LIBRARY)
_plugin.TestaccSetDelays.argtypes = [ctypes.c_uint64, ctypes.c_int]
_plugin.TestaccFailLate.argtypes = [ctypes.c_char_p, ctypes.c_int]
_millrace = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(tf.__file__)), "libmillrace.so"))
for function in (_millrace.MR_DeviceBytesInUse, _millrace.MR_DevicePeakBytesInUse):
    function.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    function.restype = ctypes.c_int64

ACC = "/device:TESTACC:0"
# Nothing is folded on the host before it can run on the device.
AS_WRITTEN = tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0))
HARD = tf.ConfigProto(graph_options=AS_WRITTEN)
SOFT = tf.ConfigProto(graph_options=AS_WRITTEN, allow_soft_placement=True)


def delays(seed, most_micros=200):
    """How streams dawdle from now on; 0: not at all."""
    _plugin.TestaccSetDelays(seed, most_micros)


def seeds(usual):
    """Those that a test draws delays from: as many as MILLRACE_DELAY_SEEDS in the environment says, or as usual."""
    return range(1, int(os.environ.get("MILLRACE_DELAY_SEEDS", usual)) + 1)


def fail_late(node, nth=1):
    _plugin.TestaccFailLate(node.encode(), nth)


def bytes_in_use(ordinal=0):
    return _millrace.MR_DeviceBytesInUse(b"TESTACC", ordinal, None)


def peak_bytes(ordinal=0):
    return _millrace.MR_DevicePeakBytesInUse(b"TESTACC", ordinal, None)


def run_on(device, build, feeds=None, config=HARD):
    """What build() returns, made and run on a device."""
    with tf.Graph().as_default() as graph:
        with tf.device(device):
            fetches = build()
        with tf.Session(graph=graph, config=config) as session:
            return session.run(fetches, feeds)
