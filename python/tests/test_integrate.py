# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.integrate: ordinary differential equations."""

import numpy as np
import pytest

import millrace as tf

integrate = tf.contrib.integrate


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_a_turn_of_a_circle():
    matrix = tf.constant([[0.0, 1.0], [-1.0, 0.0]], tf.float64)
    t = np.linspace(0, 5, 9)
    y, told = integrate.odeint(lambda y, t: tf.matmul(matrix, y), [[1.0], [0.0]] * np.ones([2, 1]), t, full_output=True)
    assert y.shape.as_list() == [9, 2, 1] and y.op.name.startswith("odeint")
    with tf.Session() as session:
        got, told = session.run([y, told])
    np.testing.assert_allclose(got[:, :, 0], np.stack([np.cos(t), -np.sin(t)], 1), atol=1e-5)
    assert told["num_func_evals"] == 6 * len(told["integrate_points"]) + 1 and len(told["error_ratio"]) == len(told["integrate_points"])


@pytest.mark.parametrize("dtype", [tf.float32, tf.complex64])
def test_times_count_and_types_stay(dtype):
    y = integrate.odeint(lambda y, t: tf.cast(2 * t, dtype), tf.constant(1.0, dtype), tf.placeholder_with_default(np.array([0.0, 1.0, 3.0]), [None]))
    assert y.dtype == dtype
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(y), [1, 2, 10], rtol=1e-5)


def test_gradients_pass_steps():
    rate = tf.Variable(-0.5, dtype=tf.float64)
    end = integrate.odeint_fixed(lambda y, t: rate * y, tf.constant(2.0, tf.float64), [0.0, 1.0, 2.0], dt=0.1)[-1]
    adaptive = integrate.odeint(lambda y, t: rate * y, tf.constant(2.0, tf.float64), [0.0, 1.0, 2.0])[-1]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for y in (end, adaptive):
            value, slope = session.run([y, tf.gradients(y, rate)[0]])
            np.testing.assert_allclose([value, slope], [2 * np.exp(-1), 4 * np.exp(-1)], rtol=1e-4)


@pytest.mark.parametrize("method, order", [("rk4", 4), ("midpoint", 2)])
def test_steps_of_an_order(method, order):
    y0 = tf.constant(1.0, tf.float64)

    def error(dt):
        made = integrate.odeint_fixed(lambda y, t: y * t, y0, [0.0, 0.7, 2.0], dt=dt, method=method)
        with tf.Session() as session:
            return abs(session.run(made)[-1] - np.exp(2))

    assert error(0.1) / error(0.05) > 2 ** (order - 0.5)


def test_what_is_refused():
    def slope(y, t):
        return y

    with pytest.raises(ValueError, match="invalid method"):
        integrate.odeint(slope, 1.0, [0.0, 1.0], method="euler")
    with pytest.raises(ValueError, match="without specifying"):
        integrate.odeint(slope, 1.0, [0.0, 1.0], options={})
    with pytest.raises(TypeError, match="`y0` must"):
        integrate.odeint(slope, 1, [0.0, 1.0])
    with pytest.raises(ValueError, match="incompatible lengths"):
        integrate.odeint_fixed(slope, 1.0, [0.0, 1.0, 2.0], dt=[0.1])
    few = integrate.odeint(slope, tf.constant(1.0, tf.float64), [0.0, 50.0], method="dopri5", options={"max_num_steps": 2})
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="max_num_steps"):
        session.run(few)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="increasing"), tf.Session() as session:
        session.run(integrate.odeint(slope, 1.0, [1.0, 0.0]))


def test_sizes_of_steps_and_polynomials_between():
    from millrace.contrib import integrate

    def f(x):
        return x**4 + x**3 - 2 * x**2 + 4 * x + 5

    fit = integrate._interp_fit(f(0.0), f(10.0), f(5.0), 4.0, 4264.0, 10.0)
    with tf.Graph().as_default(), tf.Session() as s:
        steps = s.run([integrate._optimal_step_size(tf.constant(1.0), tf.constant(ratio)) for ratio in (1.0, 0.0, 1e6)])
        np.testing.assert_allclose(steps, [0.9, 10.0, 0.2], rtol=1e-6)
        np.testing.assert_allclose(s.run(integrate._interp_evaluate(fit, 0.0, 10.0, 3.0)), f(3.0), rtol=1e-5)
        with pytest.raises(tf.errors.InvalidArgumentError, match="invalid interpolation"):
            s.run(integrate._interp_evaluate(fit, 0.0, 10.0, 11.0))
