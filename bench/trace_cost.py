#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a trace costs a step, and what of that the recording of thread switches does.

  PYTHONPATH=build/release/python python bench/trace_cost.py [--rounds 40]

Two processes take turns, one that may ask the kernel for its threads' switches and one that may not (it has no file
left to open), each with steps that are traced and steps that are not. Times are of the whole TF_SessionRun, in
microseconds: the fastest round of each, and of the differences within a round the median. "to files": what
MILLRACE_TRACE does, which writes behind the step.
"""

import argparse
import ctypes
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "interop"))

STEPS = {"tiny": 500, "adds1000": 50, "dense": 20, "digits": 20}
FULL_TRACE = bytes([8, 3])  # RunOptions.trace_level


def build():
    """The GraphDef of all steps, and the path of the library."""
    import numpy as np

    import millrace as tf

    v = tf.get_variable("v", initializer=1.0)
    tf.assign(v, v * 0.5 + 1.0, name="tiny_op")
    many = v
    for _ in range(1000):
        many = many + 1.0
    with tf.control_dependencies([many]):
        tf.no_op(name="adds1000_op")
    batch = tf.get_variable("batch", initializer=np.ones([128, 256], np.float32), trainable=False)
    layer = tf.layers.dense(tf.layers.dense(batch, 256, tf.nn.relu), 10)
    tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(tf.square(layer)), name="dense_op")
    images = tf.get_variable("images", initializer=np.ones([64, 28, 28, 1], np.float32), trainable=False)
    labels = tf.get_variable("labels", initializer=np.zeros([64], np.int32), trainable=False)
    with tf.variable_scope("digits"):
        seen = tf.layers.max_pooling2d(tf.layers.conv2d(images, 16, 5, activation=tf.nn.relu), 2, 2)
        logits = tf.layers.dense(tf.layers.dense(tf.layers.flatten(seen), 128, tf.nn.relu), 10)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    tf.train.GradientDescentOptimizer(0.01).minimize(loss, name="digits_op")
    tf.global_variables_initializer()
    return tf.get_default_graph().as_graph_def().SerializeToString(), os.path.join(tf.sysconfig.get_lib(), "libmillrace.so")


class Steps:
    """Runs steps by the C API."""

    def __init__(self, library, graph_def):
        import client

        self.lib, self.session = client.Library(library), client.Session(client.Library(library), graph_def)
        self.session.run(targets=["init"])
        self.full = self.lib.lib.TF_NewBufferFromString(FULL_TRACE, ctypes.c_size_t(len(FULL_TRACE)))
        self.target = {name: (ctypes.c_void_p * 1)(self.session.output(name + "_op").oper) for name in STEPS}

    def run(self, name, count, traced):
        """Microseconds a step; the metadata of the last."""
        lib, p = self.lib.lib, ctypes.c_void_p
        call, options, told = lib.TF_SessionRun, p(self.full) if traced else None, b""
        session, target, status = p(self.session.session), self.target[name], p(self.lib.status)
        start = time.perf_counter()
        for _ in range(count):
            metadata = lib.TF_NewBuffer() if traced else None
            call(session, options, None, None, 0, None, None, 0, target, 1, p(metadata) if traced else None, status)
            if traced:
                b = ctypes.cast(metadata, ctypes.POINTER(ctypes.c_size_t))
                told = (b[0], b[1])
                last = ctypes.string_at(*told) if count == 1 else b""
                lib.TF_DeleteBuffer(p(metadata))
        micros = 1e6 * (time.perf_counter() - start) / count
        if lib.TF_GetCode(status):
            raise RuntimeError(lib.TF_Message(status))
        return micros, last if traced else b""


def wait_for_files(folder):
    """The names of its files, when no more come."""
    seen, files = None, os.listdir(folder)
    while files != seen or any(f.endswith(".part") for f in files):
        time.sleep(0.1)
        seen, files = files, sorted(os.listdir(folder))
    return files


def serve(may_record, library, graph, traces):
    """Runs what each line of the input names, traced or not, and answers with microseconds a step."""
    with open(graph, "rb") as file:
        graph_def = file.read()
    steps = Steps(library, graph_def)
    for name in STEPS:
        steps.run(name, 50, False)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not may_record:  # perf_event_open fails, and is not tried again
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    recorded = False
    for name in STEPS:
        for _ in range(50):
            recorded |= b"thread switches" in steps.run(name, 1, True)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    os.environ["MILLRACE_TRACE"], os.environ["MILLRACE_TRACE_STEPS"] = traces, "0-999999999"
    kinds = {"off": steps, "on": steps, "file": Steps(library, graph_def)}
    print("records" if recorded else "records nothing", flush=True)
    for line in sys.stdin:
        name, kind = line.split()
        print(kinds[kind].run(name, STEPS[name], kind == "on")[0], flush=True)
        if kind == "file":  # or the folder grows, and is slower from round to round
            files = wait_for_files(traces)
            for file in files:
                os.remove(os.path.join(traces, file))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return serve(given.serve[0] == "with", *given.serve[1:])
    graph_def, library = build()
    traces = tempfile.mkdtemp()
    with tempfile.NamedTemporaryFile() as file:
        file.write(graph_def)
        file.flush()
        children = {
            kind: subprocess.Popen(
                [sys.executable, __file__, "--serve", kind, library, file.name, os.path.join(traces, kind)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for kind in ("with", "without")
        }
        for kind, child in children.items():
            print("%s switches: %s" % (kind, child.stdout.readline().strip()))

    def ask(child, name, kind):
        child = children[child]
        child.stdin.write("%s %s\n" % (name, kind))
        child.stdin.flush()
        return float(child.stdout.readline())

    columns = {
        "no trace": ("with", "off"),
        "traced": ("without", "on"),
        "and switches": ("with", "on"),
        "to files": ("without", "file"),
        "files, switches": ("with", "file"),
    }
    print("%-10s" % "graph" + "".join("%16s" % c for c in columns) + "%16s%16s" % ("a trace costs", "files cost"))
    for name in STEPS:
        times = {column: [] for column in columns}
        for _ in range(given.rounds):
            for column, (child, kind) in columns.items():
                times[column].append(ask(child, name, kind))
        lost = [statistics.median(b - a for a, b in zip(times["no trace"], times[c])) for c in ("traced", "to files")]
        print("%-10s" % name + "".join("%16.1f" % min(times[c]) for c in columns) + "".join("%16.1f" % t for t in lost), flush=True)
    for child in children.values():
        child.stdin.close()
        child.wait()
    shutil.rmtree(traces)


if __name__ == "__main__":
    main()
