# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.ops.gradient_checker_v2: Jacobians of functions, and test cases that compare ragged tensors and tensors."""

import numpy as np
import pytest

import millrace as tf
from millrace.testing import gradient_checker_v2


def test_jacobians_have_a_row_for_each_element_of_the_result():
    with tf.Graph().as_default(), tf.Session():
        x, w = np.array([[1.0, 2.0]]), tf.constant([[3.0], [4.0]], tf.float64)
        by_gradient, by_differences = gradient_checker_v2.compute_gradient(tf.matmul, [x, w])
        np.testing.assert_allclose(by_gradient[0], [[3.0, 4.0]])
        np.testing.assert_allclose(by_gradient[1], [[1.0, 2.0]])
        assert gradient_checker_v2.max_error(by_gradient, by_differences) < 1e-9
        three = gradient_checker_v2.compute_gradient(lambda v: tf.tile(v, [3]), [np.array([2.0])])
        assert three[0][0].shape == (3, 1)


def test_a_wrong_gradient_is_seen():
    @tf.custom_gradient
    def wrong(v):
        return v * v, lambda dy: dy

    with tf.Graph().as_default(), tf.Session():
        assert gradient_checker_v2.max_error(*gradient_checker_v2.compute_gradient(wrong, [np.array([5.0])])) > 8


def test_complex_numbers_are_pairs():
    with tf.Graph().as_default(), tf.Session():
        pairs = gradient_checker_v2.compute_gradient(tf.square, [np.array([1 + 2j])])
        np.testing.assert_allclose(pairs[0][0], pairs[1][0], atol=1e-9)
        assert pairs[0][0].shape == (2, 2)


def test_arguments_are_a_list_and_a_session_is_there():
    with pytest.raises(ValueError, match="list or tuple"):
        gradient_checker_v2.compute_gradient(tf.square, np.array([1.0]))
    with pytest.raises(ValueError, match="session"):
        gradient_checker_v2.compute_gradient(tf.square, [np.array([1.0])])


class _Case(tf.test.TestCase):
    def runTest(self):
        pass


def test_ragged_tensors_are_compared_with_lists():
    case = _Case()
    with case.test_session():
        ragged = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
        case.assertAllEqual(ragged, [[1, 2], [], [3]])
        case.assertAllEqual(ragged.eval(), ragged)
        case.assertAllClose(ragged, [[1, 2 + 1e-8], [], [3]])
        with pytest.raises(AssertionError, match=r"value\[0\]\[1\]"):
            case.assertAllEqual(ragged, [[1, 4], [], [3]])
        with pytest.raises(AssertionError, match=r"rows of value\[1\]"):
            case.assertAllClose(ragged, [[1, 2], [7], [3]])
        with pytest.raises(AssertionError):
            case.assertAllClose(ragged, [[1, 2.1], [], [3]])
        with pytest.raises(AssertionError):  # ranks
            case.assertAllEqual(tf.ragged.constant([[1]]), tf.ragged.constant([[[1]]]))
        case.assertAllEqual(tf.constant([1, 2]), [1, 2])  # tensors are run


def test_paths_of_1_15_that_tests_import():
    from millrace import names

    assert names.find("python.tf2").enabled() is False
    assert names.find("python.ops.control_flow_v2_toggles").control_flow_v2_enabled() is False
    assert names.find("python.compat.compat").forward_compatible(2018, 1, 1)
    assert names.find("python.ops.variables").VariableV1 is tf.Variable
    assert names.find("python.data.experimental.ops.grouping").group_by_window is tf.data.experimental.group_by_window
    assert names.find("python.ops.linalg.linear_operator_adjoint").LinearOperatorAdjoint is tf.linalg.LinearOperatorAdjoint
    with pytest.raises(NotImplementedError, match="no eager execution"):
        names.find("python.eager.backprop").GradientTape
    with pytest.raises(NotImplementedError, match="no eager execution"):
        names.find("python.eager.def_function").function


def test_solvers_broadcast_batches():
    from millrace.ops import linalg_broadcast

    rng = np.random.RandomState(1)
    matrix, rhs = rng.rand(3, 1, 2, 2) + 2 * np.eye(2), rng.rand(4, 2, 5)
    want = np.linalg.solve(np.broadcast_to(matrix, (3, 4, 2, 2)), np.broadcast_to(rhs, (3, 4, 2, 5)))
    with tf.Graph().as_default(), tf.Session() as session:
        np.testing.assert_allclose(session.run(linalg_broadcast.matrix_solve_with_broadcast(matrix, rhs)), want, rtol=1e-10)
        lower = np.tril(matrix)
        np.testing.assert_allclose(
            session.run(linalg_broadcast.matrix_triangular_solve_with_broadcast(lower, rhs)),
            np.linalg.solve(np.broadcast_to(lower, (3, 4, 2, 2)), rhs),
            rtol=1e-10,
        )
        chol = np.linalg.cholesky(matrix @ np.swapaxes(matrix, -1, -2))
        product = np.broadcast_to(matrix @ np.swapaxes(matrix, -1, -2), (3, 4, 2, 2))
        np.testing.assert_allclose(session.run(linalg_broadcast.cholesky_solve_with_broadcast(chol, rhs)), np.linalg.solve(product, rhs), rtol=1e-9)
        shape = tf.placeholder(tf.float64)
        assert session.run(linalg_broadcast.broadcast_matrix_batch_dims([shape, rhs]), {shape: matrix})[1].shape == (3, 4, 2, 5)
        with pytest.raises(ValueError, match=r"batch_matrices\[1\]"):
            linalg_broadcast.broadcast_matrix_batch_dims([matrix, np.zeros(3)])


def test_specs_are_compatible():
    from millrace.data import structure

    one, two = tf.TensorSpec([None], tf.int32), tf.TensorSpec([3], tf.int32)
    assert structure.are_compatible({"a": one}, {"a": two}) and not structure.are_compatible(one, (two,))
    assert not structure.are_compatible((one, one), (one, tf.TensorSpec([3], tf.float32)))


def test_modules_inside_contrib_are_no_classes():
    from millrace import names

    inside = names.module("contrib.distributions.python.ops.bijectors.absolute_value")
    assert inside.AbsoluteValue is tf.contrib.distributions.bijectors.AbsoluteValue
    assert names.module("contrib.distributions.python.ops.bijectors.absolute_value.AbsoluteValue") is None
    draws = names.find("python.ops.stateless_random_ops").stateless_random_uniform([4], [1, 2], minval=0, maxval=10, dtype=tf.int32)
    with tf.Session() as session:
        assert all(0 <= value < 10 for value in session.run(draws))
