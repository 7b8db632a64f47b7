# SPDX-License-Identifier: Apache-2.0
"""Times training steps of the same graphs on TensorFlow and on Millrace, in turns.

  PYTHON bench/paired.py build/release/lib/libmillrace.so [--pairs 7] [--threads 2] [--only NAME]

PYTHON needs the tensorflow wheel. TensorFlow builds each graph (compat.v1) and runs it in its own session; Millrace runs
the same GraphDef through the C API. Prints medians in ms, the median of the paired ratios (above 1: Millrace is faster),
and whether the losses agree after the same steps. Steps are long enough that the Python callers do not matter.
"""

import argparse
import os
import statistics
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/interop"))
import numpy as np
import tensorflow as tensorflow

from client import Library, Session

tf = tensorflow.compat.v1


def weights(shape, seed):
    values = np.random.default_rng(seed).normal(0, (2.0 / np.prod(shape[:-1])) ** 0.5, shape)
    return tf.Variable(values.astype(np.float32), use_resource=False)


def dense(x, inputs, units, seed, relu=True):
    y = tf.nn.bias_add(tf.matmul(x, weights((inputs, units), seed)), tf.Variable(tf.zeros([units]), use_resource=False))
    return tf.nn.relu(y) if relu else y


def conv(x, channels, filters, seed):
    y = tf.nn.conv2d(x, weights((3, 3, channels, filters), seed), [1, 1, 1, 1], "SAME")
    return tf.nn.relu(tf.nn.bias_add(y, tf.Variable(tf.zeros([filters]), use_resource=False)))


def mlp(rng):
    x = tf.constant(rng.normal(size=(128, 784)).astype(np.float32))
    h = dense(dense(x, 784, 512, 1), 512, 512, 2)
    return dense(h, 512, 10, 3, relu=False), rng.integers(0, 10, 128)


def digits(rng):
    x = tf.constant(rng.normal(size=(64, 28, 28, 1)).astype(np.float32))
    h = tf.nn.max_pool2d(conv(x, 1, 32, 1), 2, 2, "SAME")
    h = tf.nn.max_pool2d(conv(h, 32, 64, 2), 2, 2, "SAME")
    return dense(dense(tf.reshape(h, [64, 7 * 7 * 64]), 7 * 7 * 64, 128, 3), 128, 10, 4, relu=False), rng.integers(0, 10, 64)


def deep(rng):
    x = tf.constant(rng.normal(size=(16, 32, 32, 16)).astype(np.float32))
    h = x
    for k in range(6):
        h = conv(h, 16 if k == 0 else 64, 64, k)
    return dense(tf.reduce_mean(h, [1, 2]), 64, 10, 9, relu=False), rng.integers(0, 10, 16)


def lstm_kernel(inputs, units, seed):
    bound = (6.0 / (inputs + 5 * units)) ** 0.5
    values = np.random.default_rng(seed).uniform(-bound, bound, (inputs + units, 4 * units))
    return tf.Variable(values.astype(np.float32), use_resource=False)


def lstm(rng):
    """Two layers of 160 units over 50 steps, each one op."""
    steps, batch, width, units = 50, 32, 64, 160
    x = tf.constant(rng.normal(size=(steps, batch, width)).astype(np.float32))
    zeros, none = tf.zeros([batch, units]), tf.zeros([units])
    for seed in (1, 2):
        bias = tf.Variable(tf.zeros([4 * units]), use_resource=False)
        x = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(steps, tf.int64),
            x=x,
            cs_prev=zeros,
            h_prev=zeros,
            w=lstm_kernel(width if seed == 1 else units, units, seed),
            wci=none,
            wcf=none,
            wco=none,
            b=bias,
            forget_bias=1.0,
            cell_clip=-1.0,
            use_peephole=False,
        ).h
    return dense(x[-1], units, 10, 3, relu=False), rng.integers(0, 10, batch)


def unrolled(rng):
    """One layer of 128 units over 20 steps, of ordinary ops."""
    steps, batch, width, units = 20, 32, 64, 128
    x = tf.constant(rng.normal(size=(steps, batch, width)).astype(np.float32))
    kernel, bias = lstm_kernel(width, units, 1), tf.Variable(tf.zeros([4 * units]), use_resource=False)
    c = h = tf.zeros([batch, units])
    for t in range(steps):
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x[t], h], 1), kernel), bias), 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    return dense(h, units, 10, 3, relu=False), rng.integers(0, 10, batch)


GRAPHS = {"mlp": mlp, "digits": digits, "deep": deep, "lstm": lstm, "unrolled": unrolled}


def build(name):
    graph = tf.Graph()
    with graph.as_default():
        logits, labels = GRAPHS[name](np.random.default_rng(7))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels), name="loss")
        tf.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
        tf.variables_initializer(tf.global_variables(), name="init")
    return graph


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    os.environ["MILLRACE_NUM_THREADS"] = str(args.threads)
    library = Library(args.library)
    config = tf.ConfigProto(intra_op_parallelism_threads=args.threads, inter_op_parallelism_threads=args.threads)
    print("%-8s %14s %12s %8s  %s" % ("graph", "TensorFlow ms", "Millrace ms", "ratio", "losses"))
    for name in GRAPHS:
        if args.only not in name:
            continue
        graph = build(name)
        peer = tf.Session(graph=graph, config=config)
        ours = Session(library, graph.as_graph_def().SerializeToString())
        peer.run("init")
        ours.run(targets=["init"])

        def peer_step():
            return peer.run(["loss:0", "train"])[0]

        def our_step():
            return ours.run(fetches=["loss:0"], targets=["train"])[0]

        losses = [(peer_step(), our_step()) for _ in range(4)]
        steps = max(3, int(0.2 / max(1e-4, timed(our_step, 3))))
        times = [[], []]
        for pair in range(args.pairs):
            for who in (0, 1) if pair % 2 else (1, 0):
                times[who].append(timed((peer_step, our_step)[who], steps))
        ratio = statistics.median(a / b for a, b in zip(*times))
        agree = np.allclose(*zip(*losses), rtol=1e-3)
        print(
            "%-8s %14.3f %12.3f %8.2f  %s"
            % (name, statistics.median(times[0]) * 1e3, statistics.median(times[1]) * 1e3, ratio, "agree" if agree else "differ"),
            flush=True,
        )


def timed(step, count):
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    main()
