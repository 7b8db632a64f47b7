# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.bayesflow's expectations by samples, and tf.contrib.copy_graph."""

import numpy as np
import pytest

import millrace as tf

M = tf.contrib.bayesflow.monte_carlo


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_importance_sampling():
    p, q = tf.distributions.Normal(1.0, 1.0), tf.distributions.Normal(0.5, 1.5)
    first = M.expectation_importance_sampler(lambda z: z, p.log_prob, q, n=20000, seed=1)
    second = M.expectation_importance_sampler_logspace(lambda z: tf.log(tf.square(z)), p.log_prob, q, n=20000, seed=2)
    z = np.float32([0.1, -2.0, 1.5])
    given = M.expectation_importance_sampler(lambda z: z - 1, p.log_prob, q, z=z)
    with tf.Session() as session:
        first, second, given, logs = session.run([first, second, given, p.log_prob(z) - q.log_prob(z)])
    assert abs(first - 1) < 0.03 and abs(np.exp(second) - 2) < 0.1
    np.testing.assert_allclose(given, np.mean((z - 1) * np.exp(logs)), rtol=1e-5)
    with pytest.raises(ValueError, match="exactly one"):
        M.expectation_importance_sampler(lambda z: z, p.log_prob, q)


def test_gradients_of_expectations():
    """E[x^2] of Normal(m, 1) is m^2 + 1, its gradient 2 m: through samples and through their probability."""
    m = tf.constant(1.5)
    normal = tf.distributions.Normal(m, 1.0)
    samples = normal.sample(200000, seed=3)
    ways = [M.expectation(tf.square, samples), M.expectation(tf.square, samples, normal.log_prob, use_reparametrization=False)]
    with tf.Session() as session:
        values, slopes = session.run([ways, [tf.gradients(way, m)[0] for way in ways]])
    np.testing.assert_allclose(values, 3.25, atol=0.05)
    np.testing.assert_allclose(slopes, 3.0, atol=0.1)
    with pytest.raises(ValueError, match="log_prob"):
        M.expectation(tf.square, samples, use_reparametrization=False)


def test_graphs_are_copied(graph):
    C, other = tf.contrib.copy_graph, tf.Graph()
    x = tf.placeholder(tf.float32, name="x")
    a = tf.Variable([3.0, 1.0], name="a")
    y = tf.add(tf.identity(x * a, name="scaled"), 4.0, name="y")
    tf.add_to_collection("mine", y)
    twin = C.copy_variable_to_graph(a, other, "inner")
    made = C.copy_op_to_graph(y, other, [twin], "inner")
    assert made.name == "inner/y:0" and other.get_collection("inner/mine") == [made] and C.get_copied_op(x, other, "inner").graph is other
    assert C.copy_op_to_graph(y, other, [twin], "inner") is made
    with tf.Session(graph=other) as session:
        session.run(other.get_operation_by_name("inner/a/Assign"))
        assert session.run(made, {"inner/x:0": 2.0}).tolist() == [10, 6]
    with pytest.raises(TypeError, match="not a Variable"):
        C.copy_variable_to_graph(y, other)
