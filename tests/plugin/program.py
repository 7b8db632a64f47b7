# SPDX-License-Identifier: Apache-2.0
"""Runs the ops of tensorflow_kernels.cc and prints what came out, as JSON.

program.py millrace|tensorflow LIBRARY
"""

import json
import sys

import numpy as np

if sys.argv[1] == "tensorflow":
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
else:
    import millrace as tf


def outcome(call):
    try:
        return call()
    except tf.errors.OpError as error:
        said = error.message.split("\n\t [[", 1)[0].strip().splitlines()  # what the kernel said, without where
        return "%s: %s" % (type(error).__name__, said[-1])
    except (ValueError, TypeError) as error:
        return "%s: %s" % (type(error).__name__, str(error).split("\n", 1)[0])


def main():
    ops = tf.load_op_library(sys.argv[2])
    again = tf.load_op_library(sys.argv[2])
    found = {"functions": sorted(n for n in dir(ops) if n.startswith("plugin_") and "eager" not in n), "again": again is ops}
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.constant(np.arange(6.0).reshape(2, 3), tf.float32)
    given = {x: [[1, 2, 3], [4, 5, 6]]}
    fetches = {
        "axpy": ops.plugin_axpy(x, y, a=0.5),
        "axpy of a temporary": ops.plugin_axpy(tf.negative(x), y),
        "axpy of doubles": ops.plugin_axpy(np.array([1.0, 2.0]), tf.constant([3.0, 4.0], tf.float64), name="doubles"),
        "sum": ops.plugin_sum(y, [x, y, y]),
        "text": ops.plugin_attrs(name="attributes"),
        "text of others": ops.plugin_attrs(s="other", i=-3, t=tf.int32, ts=[tf.int64], ss=["a"], fs=[1.5, 2.5], b=False, name="others"),
        "head": ops.plugin_head(y),
        "later": ops.plugin_later(y),
        "both": ops.plugin_axpy(ops.plugin_later(x), x),
    }
    found["shapes"] = {name: t.shape.as_list() for name, t in fetches.items()}
    found["dtypes"] = {name: t.dtype.name for name, t in fetches.items()}
    with tf.Session() as session:
        for name, fetch in fetches.items():
            value = outcome(lambda fetch=fetch: session.run(fetch, given))
            found[name] = value.decode() if isinstance(value, bytes) else np.asarray(value).tolist()
        found["failure"] = outcome(lambda: session.run(ops.plugin_fails(y, name="losing")))
        found["other shapes"] = outcome(lambda: session.run(ops.plugin_axpy(x, y[:1]), given))
    found["no columns"] = outcome(lambda: str(ops.plugin_head(tf.zeros([2, 0])))).split(" for ", 1)[0]
    found["a scalar"] = outcome(lambda: str(ops.plugin_head(tf.zeros([])))).split(" for ", 1)[0]
    found["integers"] = outcome(lambda: str(ops.plugin_axpy([1], [2]))).split(":", 1)[0]
    found["no list"] = outcome(lambda: str(ops.plugin_sum(y, []))).split(":", 1)[0]
    print(json.dumps(found, sort_keys=True, indent=1))


main()
