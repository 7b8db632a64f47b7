# SPDX-License-Identifier: Apache-2.0
"""Numbers that TensorFlow draws for the same seeds."""

import numpy as np

import millrace as tf
from millrace.ops import gen_ops


def test_samples_are_those_of_tensorflow():
    tf_logits = np.log(np.array([[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]]))
    seeds = {"seed": 3, "seed2": 4}
    with tf.Graph().as_default(), tf.Session() as sess:
        shuffled, classes, gammas, counts = sess.run(
            [
                gen_ops.random_shuffle(np.arange(9), **seeds),
                gen_ops.multinomial(tf.constant(tf_logits), 5, **seeds),
                gen_ops.random_gamma([2], tf.constant([0.3, 1.0, 2.5], tf.float64), **seeds),
                gen_ops.random_poisson_v2([2], tf.constant([0.3, 5.0, 25.0], tf.float64), dtype=tf.float64, **seeds),
            ]
        )
    assert shuffled.tolist() == [6, 5, 0, 1, 8, 3, 7, 4, 2]
    assert classes.tolist() == [[2, 2, 2, 2, 0], [0, 0, 1, 1, 0]]
    np.testing.assert_allclose(gammas, [[0.00452, 1.368152, 0.652169], [0.142881, 1.440904, 2.564243]], atol=1e-6)
    assert counts.tolist() == [[0.0, 6.0, 23.0], [1.0, 4.0, 26.0]]


def test_gamma_is_never_zero():
    with tf.Graph().as_default(), tf.Session() as sess:
        drawn = sess.run(tf.random_gamma([200], 0.001, seed=1))
    assert drawn.min() > 0 and drawn.max() < 10


def _of_the_graphs_seed(make):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        return session.run(make())


def test_the_seed_of_the_graph_alone():
    """Values of TensorFlow 1.15.5."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        layer = tf.layers.Dense(2)
        layer(tf.ones([1, 2]))
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(layer.kernel), [[-0.74634033, 0.09540784], [-1.1094923, 0.43015766]], rtol=1e-6)
    np.testing.assert_allclose(_of_the_graphs_seed(lambda: tf.keras.initializers.he_normal()([3])), [0.87690419, -0.89740592, 0.74738604], rtol=1e-6)
    assert _of_the_graphs_seed(lambda: tf.nn.dropout(tf.ones([8]), 0.5)).tolist() == [2, 0, 2, 0, 2, 0, 0, 2]
    assert _of_the_graphs_seed(lambda: tf.multinomial([[0.0, 0.0]], 8)).tolist() == [[1, 1, 1, 0, 0, 0, 0, 1]]
    np.testing.assert_allclose(_of_the_graphs_seed(lambda: tf.random_gamma([2], 2.0, 3.0)), [0.46423909, 0.48784667], rtol=1e-5)
