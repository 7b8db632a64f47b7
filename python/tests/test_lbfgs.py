# SPDX-License-Identifier: Apache-2.0
"""L-BFGS on one machine and over parameter servers (Sandblaster), beside SciPy's."""

import os
import sys
import threading
import time

import numpy as np
import pytest

import millrace as tf
from millrace.testing.test_util import create_local_cluster

try:
    import scipy.optimize
except ImportError:
    scipy = None


def _rosenbrock(x):
    return tf.reduce_sum(100 * tf.square(x[1:] - tf.square(x[:-1])) + tf.square(1 - x[:-1]))


@pytest.mark.parametrize("n, dtype", [(2, tf.float64), (20, tf.float64), (2, tf.float32)])
def test_rosenbrock(n, dtype):
    start = np.where(np.arange(n) % 2, 1.0, -1.2)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.Variable(start, dtype=dtype)
        optimizer = tf.train.LBFGSOptimizer(
            _rosenbrock(x), max_iterations=300, loss_tolerance=0 if dtype == tf.float64 else 1e-7, gradient_tolerance=1e-5 if dtype == tf.float64 else 1e-2
        )
        session.run(tf.global_variables_initializer())
        losses = []
        result = optimizer.minimize(session, callback=lambda i, loss: losses.append(loss))
        assert result.converged, result
        assert losses == sorted(losses, reverse=True) and len(losses) == result.iterations and losses[-1] == result.loss
        np.testing.assert_allclose(session.run(x), np.ones(n), atol=1e-4 if dtype == tf.float64 else 0.05)
        if scipy is not None and dtype == tf.float64:
            peer = scipy.optimize.minimize(
                scipy.optimize.rosen, start, jac=scipy.optimize.rosen_der, method="L-BFGS-B", options=dict(ftol=0, gtol=1e-5, maxiter=300)
            )
            assert result.loss < max(10 * peer.fun, 1e-9)
            assert result.evaluations < 1.5 * peer.nfev + 10, (result, peer.nfev)


def _digits(n=400, d=30, classes=3, seed=0):
    r = np.random.RandomState(seed)
    x = r.randn(n, d)
    return x, np.argmax(x @ r.randn(d, classes) + r.randn(n, classes), axis=1)


def _logistic(x, y, w, b):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=tf.matmul(x, w) + b, labels=y)) + 1e-3 * tf.reduce_sum(w * w)


@pytest.mark.skipif(scipy is None, reason="SciPy is not installed")
def test_logistic_regression_as_scipy():
    data, labels = _digits()

    def loss_and_gradient(vector):
        w, b = vector[:90].reshape(30, 3), vector[90:]
        z = data @ w + b
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        n = np.arange(len(labels))
        loss = -np.mean(np.log(p[n, labels])) + 1e-3 * np.sum(w * w)
        p[n, labels] -= 1
        return loss, np.concatenate([(data.T @ p / len(labels) + 2e-3 * w).ravel(), p.mean(axis=0)])

    peer = scipy.optimize.minimize(loss_and_gradient, np.zeros(93), jac=True, method="L-BFGS-B", options=dict(ftol=1e-12, gtol=1e-6))
    with tf.Graph().as_default(), tf.Session() as session:
        w, b = tf.Variable(np.zeros([30, 3])), tf.Variable(np.zeros(3))
        x, y = tf.placeholder(tf.float64, [None, 30]), tf.placeholder(tf.int64, [None])
        optimizer = tf.train.LBFGSOptimizer(_logistic(x, y, w, b), gradient_tolerance=1e-6, loss_tolerance=1e-12)
        session.run(tf.global_variables_initializer())
        result = optimizer.minimize(session, {x: data, y: labels})
        assert result.converged and abs(result.loss - peer.fun) < 1e-9 * peer.fun + 1e-10
        assert result.evaluations < 1.5 * peer.nfev + 10, (result, peer.nfev)
        np.testing.assert_allclose(np.concatenate([v.ravel() for v in session.run([w, b])]), peer.x, atol=1e-4)


def test_what_makes_no_sense():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.Variable([1.0, 2.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="pairs"):
            tf.train.LBFGSOptimizer(tf.reduce_sum(x), history=0)
        with pytest.raises(ValueError, match="depends on none"):
            tf.train.LBFGSOptimizer(tf.constant(1.0), [x])
        with pytest.raises(ValueError, match="no variables"):
            tf.train.LBFGSOptimizer(tf.constant(1.0), [])
        falls = tf.train.LBFGSOptimizer(-tf.reduce_sum(x))
        nan = tf.train.LBFGSOptimizer(tf.reduce_sum(x) * float("nan"))
        session.run(tf.global_variables_initializer())
        assert not falls.minimize(session).converged
        with pytest.raises(tf.errors.InvalidArgumentError, match="finite"):
            nan.minimize(session)


_PORTIONS = 20


def _sandblaster(workers, data, labels, slow=None, **options):
    """Logistic regression over two shards and replicas on all workers, with a session each. `slow(i)` runs in replica i's steps."""
    x, y = tf.constant(data), tf.constant(labels)
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        w, b = tf.Variable(np.zeros([30, 3])), tf.Variable(np.zeros(3))
    size = len(labels) // _PORTIONS
    sandblaster = tf.train.SandblasterOptimizer([w, b], num_portions=_PORTIONS, gradient_tolerance=1e-6, loss_tolerance=1e-12, **options)

    def loss_of(i):
        def loss(parameters, portion):
            first = tf.cast(portion, tf.int32) * size
            part, wanted = tf.slice(x, [first, 0], [size, 30]), tf.slice(y, [first], [size])
            if slow is not None:
                part = part + tf.py_func(lambda: slow(i) or np.float64(0), [], tf.float64)
            one = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=tf.matmul(part, parameters[0]) + parameters[1], labels=wanted)
            return tf.reduce_sum(one) / len(labels) + 1e-3 * tf.reduce_sum(parameters[0] ** 2) / _PORTIONS

        return loss

    for i in range(len(workers)):
        assert sandblaster.add_replica("/job:worker/task:%d" % i, loss_of(i)) == i
    return sandblaster, w, b


def _reference(data, labels):
    with tf.Graph().as_default(), tf.Session() as session:
        w, b = tf.Variable(np.zeros([30, 3])), tf.Variable(np.zeros(3))
        optimizer = tf.train.LBFGSOptimizer(_logistic(tf.constant(data), tf.constant(labels), w, b), gradient_tolerance=1e-6, loss_tolerance=1e-12)
        session.run(tf.global_variables_initializer())
        return optimizer.minimize(session), session.run([w, b])


def test_sandblaster_is_lbfgs_over_shards_and_replicas():
    data, labels = _digits()
    one, values = _reference(data, labels)
    workers, _ = create_local_cluster(num_workers=3, num_ps=2)
    with tf.Graph().as_default():
        sandblaster, w, b = _sandblaster(workers, data, labels)
        sessions = [tf.Session(worker.target) for worker in workers]
        sessions[0].run(tf.global_variables_initializer())
        result = sandblaster.minimize(sessions[0], sessions)
        assert result.converged and not sandblaster.lost_replicas
        assert abs(result.loss - one.loss) < 1e-9
        for got, want in zip(sessions[0].run([w, b]), values):
            np.testing.assert_allclose(got, want, atol=1e-4)
        vectors = sandblaster._vectors.there
        assert [v.device for v in vectors] == [w.device, b.device] == ["/job:ps/task:0", "/job:ps/task:1"]
        for session in sessions:
            session.close()


def test_sandblaster_does_not_wait_for_a_slow_replica():
    data, labels = _digits()
    one, _ = _reference(data, labels)
    workers, _ = create_local_cluster(num_workers=3, num_ps=2)
    calls, lock = [0, 0, 0], threading.Lock()

    def slow(i):
        with lock:
            calls[i] += 1
        time.sleep(1.0 if i == 2 else 0.0)

    with tf.Graph().as_default():
        sandblaster, *_ = _sandblaster(workers, data, labels, slow, max_iterations=8)
        sessions = [tf.Session(worker.target) for worker in workers]
        sessions[0].run(tf.global_variables_initializer())
        began = time.time()
        result = sandblaster.minimize(sessions[0], sessions)
        took = time.time() - began
        assert result.iterations == 8 and sandblaster.copies > 0
        assert took < result.evaluations  # one portion of the slow replica's in each evaluation would be longer
        assert calls[2] < calls[0] / 4
        assert result.loss < 1.2 * one.loss
        for session in sessions:
            session.close()


def test_sandblaster_goes_on_without_a_replica_that_fails():
    data, labels = _digits()
    one, _ = _reference(data, labels)
    workers, _ = create_local_cluster(num_workers=3, num_ps=2)
    calls = [0]

    def fail(i):
        if i == 1:
            calls[0] += 1
            if calls[0] > 7:
                raise RuntimeError("replica 1 breaks")

    with tf.Graph().as_default():
        sandblaster, *_ = _sandblaster(workers, data, labels, fail)
        sessions = [tf.Session(worker.target) for worker in workers]
        sessions[0].run(tf.global_variables_initializer())
        result = sandblaster.minimize(sessions[0], sessions)
        assert result.converged and abs(result.loss - one.loss) < 1e-9
        assert sandblaster.lost_replicas == [1]
        for session in sessions:
            session.close()


if __name__ == "__main__":
    sys.exit(pytest.main([os.path.abspath(__file__)]))
