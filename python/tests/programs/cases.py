# SPDX-License-Identifier: Apache-2.0
"""tf.test.TestCase, numeric gradients, errors as exceptions, flags, graphs beside graphs, collections, py2-style constructs."""
import os
import sys
import numpy as np
import tensorflow as tf

flags = tf.flags
flags.DEFINE_integer("count", 3, "how many")
FLAGS = flags.FLAGS


class LayerTest(tf.test.TestCase):
    def setUp(self):
        np.random.seed(1)

    def testMatMul(self):
        with self.test_session():
            x = tf.constant([[1.0, 2.0]])
            self.assertAllClose(tf.matmul(x, x, transpose_b=True).eval(), [[5.0]])
            self.assertAllEqual(tf.shape(x).eval(), [1, 2])
            self.assertShapeEqual(np.zeros([1, 2]), x)

    def testGradient(self):
        with self.test_session():
            x = tf.constant(np.random.randn(3, 2), dtype=tf.float64)
            w = tf.constant(np.random.randn(2, 4), dtype=tf.float64)
            y = tf.tanh(tf.matmul(x, w))
            self.assertLess(tf.test.compute_gradient_error(w, [2, 4], y, [3, 4]), 1e-5)

    def testErrors(self):
        with self.test_session():
            with self.assertRaises(ValueError):
                tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))
            with self.assertRaisesOpError("negative"):
                tf.Assert(tf.constant(False), ["negative", -1]).run()
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "You must feed"):
                tf.placeholder(tf.float32, name="p").eval()

    def testGraphs(self):
        first, second = tf.Graph(), tf.Graph()
        with first.as_default():
            a = tf.constant(1, name="a")
        with second.as_default(), tf.name_scope("inner"):
            b = tf.constant(2, name="a")
        self.assertEqual((a.name, b.name), ("a:0", "inner/a:0"))
        self.assertTrue(a.graph is first and b.graph is second)
        with self.test_session(graph=second) as sess:
            self.assertEqual(sess.run("inner/a:0"), 2)
            with self.assertRaises((ValueError, TypeError)):
                sess.run(a)

    def testFlagsAndFiles(self):
        self.assertEqual(FLAGS.count, 5)
        path = os.path.join(self.get_temp_dir(), "x.txt")
        with tf.gfile.Open(path, "w") as f:
            f.write("a\nb\n")
        self.assertEqual([line.strip() for line in tf.gfile.GFile(path)], ["a", "b"])
        self.assertTrue(tf.gfile.Exists(path) and not tf.gfile.IsDirectory(path))
        self.assertProtoEquals('name: "n" op: "NoOp"', tf.NodeDef(name="n", op="NoOp"))


if __name__ == "__main__":
    sys.argv = [sys.argv[0], "--count=5"]
    tf.logging.set_verbosity(tf.logging.ERROR)
    stream = sys.stderr
    sys.stderr = open(os.devnull, "w")
    try:
        tf.test.main()
    except SystemExit as e:
        print("exit", e.code)
