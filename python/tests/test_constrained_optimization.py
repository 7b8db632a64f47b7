# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.constrained_optimization: legal weights, problems whose solution is known, mixtures of candidates."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib.constrained_optimization import optimizers as parts

C = tf.contrib.constrained_optimization
RNG = np.random.RandomState(3)


class Nearest(C.ConstrainedMinimizationProblem):
    """The point nearest to (2, 1) with x + y <= 1 and y >= 0.25: (0.75, 0.25)."""

    def __init__(self):
        self.x = tf.get_variable("x", [2], initializer=tf.zeros_initializer())

    objective = property(lambda self: tf.reduce_sum(tf.square(self.x - [2.0, 1.0])))
    constraints = property(lambda self: tf.stack([tf.reduce_sum(self.x) - 1.0, 0.25 - self.x[1]]))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(tensor):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor)


@pytest.mark.parametrize("kind", ["AdditiveExternalRegretOptimizer", "AdditiveSwapRegretOptimizer", "MultiplicativeSwapRegretOptimizer"])
def test_constraints_hold(kind):
    problem, step = Nearest(), tf.train.get_or_create_global_step()
    made = getattr(C, kind)(tf.train.GradientDescentOptimizer(0.05), tf.train.GradientDescentOptimizer(0.1))
    train = made.minimize(problem, unconstrained_steps=5, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        means = np.zeros(2)
        for i in range(3000):
            session.run(train)
            if i >= 1000:
                means += session.run(problem.x) / 2000
        assert session.run(step) == 3000
    np.testing.assert_allclose(means, [0.75, 0.25], atol=0.05)


def test_weights_are_the_nearest_legal_ones():
    for _ in range(20):
        given, radius = RNG.randn(5).astype("f") * 2, RNG.uniform(0.5, 3)
        made = run(parts._project_multipliers_wrt_euclidean_norm(tf.constant(given), np.float32(radius)))
        assert (made >= 0).all() and made.sum() <= radius + 1e-5
        others = RNG.dirichlet(np.ones(6), 300)[:, :5] * radius
        assert ((others - given) ** 2).sum(1).min() >= ((made - given) ** 2).sum() - 1e-5
        matrix = RNG.randn(4, 4).astype("f")
        columns = run(parts._project_stochastic_matrix_wrt_euclidean_norm(tf.constant(matrix)))
        np.testing.assert_allclose(columns.sum(0), 1, rtol=1e-5)
        others = RNG.dirichlet(np.ones(4), 300)
        assert all(((others - matrix[:, j]) ** 2).sum(1).min() >= ((columns - matrix)[:, j] ** 2).sum() - 1e-5 for j in range(4))


def test_the_largest_eigenvector():
    matrix = RNG.rand(4, 4)
    values, vectors = np.linalg.eig(matrix)
    want = vectors[:, np.argmax(values.real)].real
    np.testing.assert_allclose(run(parts._maximal_eigenvector_power_method(tf.constant(matrix))), want * np.sign(want[0]), rtol=1e-4)


def test_candidates():
    pytest.importorskip("scipy")
    objectives, violations = np.array([1.0, 2.0, 5.0]), np.array([[0.5, -0.5, -1.0], [0.1, 0.2, -0.4]])
    mixed = C.find_best_candidate_distribution(objectives, violations)
    assert np.isclose(mixed.sum(), 1) and (violations @ mixed <= 1e-7).all() and objectives @ mixed < 2.8
    forced = C.find_best_candidate_distribution(objectives, violations + 1.5, epsilon=1e-4)
    assert (violations @ forced).max() < -0.39  # nothing holds: the least violation
    assert C.find_best_candidate_index(objectives, violations) == 2 and C.find_best_candidate_index(objectives, np.zeros([2, 3])) == 0
    with pytest.raises(ValueError, match="shape"):
        C.find_best_candidate_index(objectives, violations[:, :2])


def test_mistakes():
    with pytest.raises(ValueError, match="strictly positive"):
        C.AdditiveExternalRegretOptimizer(tf.train.GradientDescentOptimizer(1.0), maximum_multiplier_radius=0.0)
    with pytest.raises(ValueError, match="global_step cannot be None"):
        C.AdditiveExternalRegretOptimizer(tf.train.GradientDescentOptimizer(1.0)).minimize(Nearest(), unconstrained_steps=3)
