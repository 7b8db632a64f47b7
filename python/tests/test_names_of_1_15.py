# SPDX-License-Identifier: Apache-2.0
"""Functions that came with TensorFlow 1.12 to 1.15: sorting, printing, similarity of images, lazy Adam, synchronous replicas."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.uint8, np.int64])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sort(dtype, axis):
    values = np.random.RandomState(1).randint(0, 6, (4, 5, 3)).astype(dtype)
    if dtype == np.int64:
        values[0, 0, 0] = np.iinfo(dtype).min
    with tf.Session() as session:
        up, down, where = session.run([tf.sort(values, axis), tf.sort(values, axis, "DESCENDING"), tf.argsort(values, axis)])
    np.testing.assert_array_equal(up, np.sort(values, axis))
    np.testing.assert_array_equal(down, np.flip(np.sort(values, axis), axis))
    np.testing.assert_array_equal(where, np.argsort(values, axis, kind="stable"))


def test_the_axis_to_sort_along_changes_places_with_the_last():
    tf.sort(tf.placeholder(tf.float32, [None] * 5), axis=1)
    order = tf.get_default_graph().get_tensor_by_name("sort/transposition:0")
    assert tf.contrib.util.constant_value(order).tolist() == [0, 4, 2, 3, 1]


def test_sort_refuses():
    with pytest.raises(ValueError, match="direction"):
        tf.sort([1], direction="UP")
    with pytest.raises(ValueError, match="axis 1"):
        tf.argsort([1], axis=1)


def test_batch_gather():
    params, indices = np.arange(24).reshape(2, 3, 4), np.array([[2, 0], [1, 1]])
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.batch_gather(params, indices)), np.stack([params[i][indices[i]] for i in range(2)]))
    with pytest.raises(ValueError, match="unknown shape"):
        tf.batch_gather(params, tf.placeholder(tf.int32))


def test_print(capfd, tmp_path):
    path = tmp_path / "file"
    with tf.Session() as session:
        x = tf.constant(np.arange(9))
        session.run(
            [
                tf.print("x", x, {"k": tf.constant(1.5), "j": (1, "{}")}, sep="|", output_stream=sys.stdout),
                tf.print(x, summarize=-1, end="!", output_stream="file://%s" % path),
                tf.print(tf.constant("alone")),
                tf.print(tf.SparseTensor([[1]], [2.5], [3]), output_stream=sys.stdout),
            ]
        )
    out, err = capfd.readouterr()
    lines = ["'SparseTensor(indices=[[1]], values=[2.5], shape=[3])'", "x|[0 1 2 ... 6 7 8]|{'j': (1, '{}'), 'k': 1.5}"]
    assert sorted(out.splitlines()) == lines and err == "alone\n"
    assert path.read_text() == "[0 1 2 3 4 5 6 7 8]!"
    with pytest.raises(ValueError, match="output stream"):
        tf.print("x", output_stream="nowhere")


def test_methods_of_resizing_by_name():
    image = np.random.RandomState(0).rand(1, 4, 5, 2).astype(np.float32)
    methods = tf.image.ResizeMethod
    named = {"bilinear": methods.BILINEAR, "nearest": methods.NEAREST_NEIGHBOR, "bicubic": methods.BICUBIC, "area": methods.AREA}
    with tf.Session() as session:
        for name, method in named.items():
            np.testing.assert_array_equal(*session.run([tf.image.resize(image, [3, 7], method=m) for m in (name, method)]))
    with pytest.raises(ValueError, match="not implemented: cubic"):
        tf.image.resize(image, [3, 7], method="cubic")


def test_order_of_parameters():
    timer = tf.train.SecondOrStepTimer(1000)  # seconds
    timer.update_last_triggered_step(1)
    assert not timer.should_trigger_for_step(10**6)
    layer = tf.keras.layers.Lambda(lambda x: x + 1, (3,), lambda x, mask: mask)
    assert layer.supports_masking
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(layer(tf.zeros([1, 3]))), np.ones([1, 3]))


def _ssim(a, b, peak):
    """By the formulas, window by window."""
    square = (np.arange(11) - 5.0) ** 2
    window = np.exp(-0.5 / 1.5**2 * (square[:, None] + square[None]))
    window /= window.sum()
    found = []
    for i in range(a.shape[0] - 10):
        for j in range(a.shape[1] - 10):
            x, y = a[i : i + 11, j : j + 11], b[i : i + 11, j : j + 11]
            mx, my = (window * x).sum(), (window * y).sum()
            vx, vy, cov = (window * x * x).sum() - mx * mx, (window * y * y).sum() - my * my, (window * x * y).sum() - mx * my
            c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
            found.append((2 * mx * my + c1) * (2 * cov + c2) / ((mx * mx + my * my + c1) * (vx + vy + c2)))
    return np.mean(found)


def test_ssim():
    state = np.random.RandomState(2)
    a = state.rand(14, 16, 1)
    b = np.clip(a + 0.2 * state.randn(14, 16, 1), 0, 1)
    with tf.Session() as session:
        same, other = session.run([tf.image.ssim(a, a, 1.0), tf.image.ssim(a, b, 1.0)])
        bytes_ = (np.stack([a, b]) * 255).astype(np.uint8)
        np.testing.assert_allclose(session.run(tf.image.ssim(bytes_[0], bytes_[1], 255)), _ssim(bytes_[0, ..., 0] / 255, bytes_[1, ..., 0] / 255, 1), 1e-3)
        large = state.rand(180, 177, 2).astype(np.float32)
        assert session.run(tf.image.ssim_multiscale(large, large, 1.0)) == pytest.approx(1, abs=1e-5)
    assert same == pytest.approx(1, abs=1e-6) and other == pytest.approx(_ssim(a[..., 0], b[..., 0], 1), rel=1e-4)
    with pytest.raises(ValueError, match="one shape"):
        tf.image.ssim(tf.zeros([12, 12, 1]), tf.zeros([12, 13, 1]), 1.0)


@pytest.mark.parametrize("use_resource", [False, True])
def test_lazy_adam_touches_the_rows_of_the_gradient_alone(use_resource):
    lazy = tf.get_variable("lazy", initializer=np.ones((4, 2), np.float32), use_resource=use_resource)
    plain = tf.get_variable("plain", initializer=np.ones((2, 2), np.float32), use_resource=use_resource)
    rows = tf.placeholder(tf.int32, [None])
    first = tf.contrib.opt.LazyAdamOptimizer(0.1).minimize(tf.reduce_sum(tf.gather(lazy, rows) ** 2), var_list=[lazy])
    second = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(plain**2), var_list=[plain])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run([first, second], {rows: [1, 2]})
        got, wanted = session.run([lazy, plain])
        np.testing.assert_allclose(got[1:3], wanted, 1e-6)
        np.testing.assert_array_equal(got[[0, 3]], np.ones((2, 2)))
        session.run(first, {rows: [0]})
        np.testing.assert_array_equal(session.run(lazy)[1:3], got[1:3])


def test_replicas_in_one_process_wait_for_each_other():
    step = tf.train.get_or_create_global_step()
    dense, sparse = tf.Variable(0.0), tf.get_variable("sparse", [3, 2], initializer=tf.zeros_initializer())
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(2.0), 2, 2)
    with pytest.raises(ValueError, match="Global step is required"):
        optimizer.apply_gradients([(tf.constant(1.0), dense)])
    with pytest.raises(ValueError, match="before using the hook"):
        optimizer.make_session_run_hook(True).begin()
    train = optimizer.minimize(-dense - tf.reduce_sum(tf.gather(sparse, [1])), step)
    with pytest.raises(ValueError, match="Too few tokens"):
        tf.train.SyncReplicasOptimizer.get_init_tokens_op(_with(optimizer, _total=0), 1)
    with tf.train.MonitoredTrainingSession(hooks=[optimizer.make_session_run_hook(True)], stop_grace_period_secs=0.1) as session:
        replicas = [threading.Thread(target=session._tf_sess().run, args=(train,)) for _ in range(2)]
        for replica in replicas:
            replica.start()
        for replica in replicas:
            replica.join()
        while session._tf_sess().run(step) < 1:
            pass
        assert session._tf_sess().run(dense) == 2.0  # the mean of both
        np.testing.assert_array_equal(session._tf_sess().run(sparse), [[0, 0], [2, 2], [0, 0]])


def _with(optimizer, **changes):
    other = object.__new__(type(optimizer))
    other.__dict__.update(optimizer.__dict__, **changes)
    return other


def _scaled(x):
    @tf.custom_gradient
    def scaled(x):
        w = tf.get_variable("w", initializer=3.0, use_resource=True)

        def backward(dy, variables=None):
            return dy * 10.0, [dy * 100.0 for _ in variables]

        return x * w, backward

    return scaled(x)


def test_a_custom_gradient_with_variables_does_not_keep_its_graph():
    def run():
        with tf.Graph().as_default() as graph, tf.Session() as session:
            x = tf.constant(2.0)
            y = _scaled(x)
            grads = tf.gradients(y, [x, tf.global_variables()[0]])
            session.run(tf.global_variables_initializer())
            assert session.run([y, *grads]) == [6.0, 10.0, 100.0]
            definition = graph.as_graph_def()
        with tf.Graph().as_default(), tf.Session() as session:  # read back there is no Python function: the gradient of the ops
            y, x = tf.import_graph_def(definition, return_elements=[y.name, x.name])
            assert tf.gradients(y, x)[0] is not None
        return weakref.ref(graph)

    kept = run()
    gc.collect()
    assert kept() is None


def test_a_custom_gradient_says_what_it_needs():
    def without(x):
        return x * tf.get_variable("v", initializer=1.0, use_resource=True), lambda dy: dy

    def reference(x):
        return x * tf.get_variable("r", initializer=1.0, use_resource=False), lambda dy, variables=None: (dy, [dy])

    with pytest.raises(TypeError, match="'variables' keyword"):
        tf.custom_gradient(without)(1.0)
    with pytest.raises(TypeError, match="ResourceVariable"):
        tf.custom_gradient(reference)(1.0)


def test_sorting_of_ranks_that_a_step_tells():
    array = np.random.RandomState(0).permutation(24).reshape(2, 3, 4).astype(np.int32)
    values = tf.placeholder(tf.int32)
    with tf.Session() as session:
        for axis in (-3, -1, 0, 1, 2):
            made = session.run([tf.sort(values, axis), tf.argsort(values, axis, "DESCENDING")], {values: array})
            np.testing.assert_array_equal(made[0], np.sort(array, axis))
            np.testing.assert_array_equal(made[1], np.argsort(-array, axis))
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.sort(values), {values: 3})
    with pytest.raises(ValueError, match="not within values of rank 1"):
        tf.sort([3, 4, 5], axis=-4)
