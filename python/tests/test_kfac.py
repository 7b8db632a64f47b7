# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kfac: values that TensorFlow 1.8's has, for models of one layer of each kind, after a few steps."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import kfac
from millrace.contrib.kfac import fisher_factors, linear_operators, utils


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def layer(kind, collection, approx):
    """(variable, outputs) of a layer on eight examples."""
    draw = np.random.RandomState(2)
    x = tf.constant(np.random.RandomState(1).randn(8, 3).astype("f"))
    if kind == "conv":
        x = tf.constant(np.random.RandomState(5).randn(8, 4, 4, 2).astype("f"))
        w, b = tf.get_variable("w", initializer=draw.randn(3, 3, 2, 3).astype("f")), tf.get_variable("b", initializer=np.zeros(3, "f"))
        outputs = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME") + b
        collection.register_conv2d((w, b), [1, 1, 1, 1], "SAME", x, outputs, approx=approx)
        return w, draw, tf.reduce_mean(tf.tanh(outputs), [1, 2])
    if kind == "multi":
        w = tf.get_variable("w", initializer=draw.randn(3, 3).astype("f") * 0.5)
        inputs, outputs = [x], []
        for _ in range(3):
            outputs.append(tf.matmul(inputs[-1], w))
            inputs.append(tf.tanh(outputs[-1]))
        collection.register_fully_connected_multi(w, tuple(inputs[:3]), tuple(outputs), approx=approx)
        return w, draw, inputs[3]
    w, b = tf.get_variable("w", initializer=draw.randn(3, 4).astype("f")), tf.get_variable("b", initializer=np.zeros(4, "f"))
    outputs = tf.matmul(x, w) + b
    if kind == "generic":
        collection.register_generic((w, b), 8, approx=approx)
    else:
        collection.register_fully_connected((w, b), x, outputs, approx=approx)
    return w, draw, tf.tanh(outputs)


@pytest.mark.parametrize(
    "kind, approx, mode, settings, wanted",
    [
        ("dense", None, "empirical", {}, (-5.48505, -0.96053, 0.59607)),
        ("dense", None, "exact", {}, (-5.47827, -0.95130, 0.59169)),
        ("dense", "diagonal", "empirical", {}, (-5.49786, -0.96815, 0.53916)),
        ("dense", None, "empirical", {"norm_constraint": 1e-3}, (-5.63114, -1.03657, 0.66115)),
        ("dense", None, "empirical", {"momentum_type": "adam"}, (-5.39311, -0.94364, 0.58823)),
        ("generic", "full", "empirical", {}, (-5.61722, -0.96486, 0.56987)),
        ("generic", "diagonal", "empirical", {}, (-5.49735, -0.96777, 0.54312)),
        ("conv", None, "empirical", {}, (-40.91447, -6.98465, 0.74390)),
        ("conv", "diagonal", "exact", {}, (-31.06364, -6.98444, 0.71590)),
        ("multi", "kron_indep", "empirical", {}, (-16.21374, 4.82068, 0.49645)),
        ("multi", "kron_series_1", "empirical", {}, (-16.21215, 4.82067, 0.49654)),
        ("multi", "kron_series_2", "exact", {}, (-16.19219, 4.81971, 0.49796)),
    ],
)
def test_steps(kind, approx, mode, settings, wanted):
    labels = np.random.RandomState(1)
    labels.randn(8, 3)
    labels = labels.randint(0, 2, 8)
    collection = kfac.layer_collection.LayerCollection()
    w, draw, hidden = layer(kind, collection, approx)
    w2 = tf.get_variable("w2", initializer=draw.randn(int(hidden.shape[1]), 2).astype("f"))
    logits = tf.matmul(hidden, w2)
    collection.register_fully_connected(w2, hidden, logits)
    collection.register_categorical_predictive_distribution(logits, targets=tf.constant(labels))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    optimizer = kfac.optimizer.KfacOptimizer(0.1, 0.9, 0.1, collection, estimation_mode=mode, **settings)
    train = optimizer.minimize(loss)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        for _ in range(4):
            s.run(optimizer.cov_update_op)
            s.run(optimizer.inv_update_op)
            s.run(train)
        made = [float(np.sum(v * np.arange(1, np.size(v) + 1).reshape(np.shape(v)))) for v in s.run([w, w2, loss])]
    np.testing.assert_allclose(made, wanted, rtol=2e-4)


def test_layers_that_are_not_told():
    collection = kfac.layer_collection.LayerCollection()
    w = tf.get_variable("w", [3, 2])
    x = tf.ones([4, 3])
    collection.register_fully_connected(w, x, tf.matmul(x, w))
    with pytest.raises(ValueError, match="already in LayerCollection"):
        collection.register_fully_connected(w, x, x)
    with pytest.raises(ValueError, match="Bad value full for approx: kron, diagonal"):
        collection.register_fully_connected(tf.get_variable("v", [3, 2]), x, x, approx="full")
    estimator = kfac.estimator.FisherEstimatorRoundRobin(variables=[w], cov_ema_decay=0.1, damping=0.2, layer_collection=collection)
    with pytest.raises(ValueError, match="at least one registered loss"):
        estimator.make_ops_and_vars()
    collection.register_normal_predictive_distribution(tf.matmul(x, w) + tf.matmul(x, w))
    with pytest.raises(ValueError, match="1 registrations vs 2 uses"):
        kfac.estimator.FisherEstimatorRoundRobin(variables=[w], cov_ema_decay=0.1, damping=0.2, layer_collection=collection).make_ops_and_vars()


def test_cholesky_factors_and_operators():
    matrix = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]], "f")
    factor = fisher_factors.FullFactor((tf.ones([3]),), 1)
    factor.instantiate_cov_variables()
    damping = kfac.fisher_blocks.PackagedFunc(lambda: 0.5, 0.5)
    factor.register_cholesky(damping)
    factor.register_cholesky_inverse(damping)
    factor.register_matpower(-0.5, damping)
    factor.instantiate_inv_variables()
    updates = factor.make_inverse_update_ops()
    rows = tf.IndexedSlices(tf.constant([[1.0, 2.0, 3.0]]), tf.constant([1]), dense_shape=tf.constant([4, 3]))
    operator = linear_operators.LinearOperatorFullMatrix(matrix)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(factor.get_cov().assign(matrix))
        s.run(updates)
        root, inverse, power = s.run(
            [f.to_dense() for f in (factor.get_cholesky(damping), factor.get_cholesky_inverse(damping), factor.get_matpower(-0.5, damping))]
        )
        product = s.run(operator.matmul_right(rows).values)
    np.testing.assert_allclose(root, np.linalg.cholesky(matrix + 0.5 * np.eye(3)), rtol=1e-5)
    np.testing.assert_allclose(inverse, np.linalg.inv(root), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(power @ power, np.linalg.inv(matrix + 0.5 * np.eye(3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(product, [[1.0, 2.0, 3.0]] @ matrix, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="LinearOperatorFullMatrix cannot be multiplied with IndexedSlices on its right"):
        operator.matmul(rows)


def test_depthwise_filters_and_turns():
    filters = np.arange(2 * 2 * 3 * 2, dtype="f").reshape(2, 2, 3, 2)
    whole = kfac.fisher_blocks.depthwise_conv2d_filter_to_conv2d_filter(filters)
    back = kfac.fisher_blocks.conv2d_filter_to_depthwise_conv2d_filter(whole)
    step = tf.placeholder(tf.int32, [])
    counts = [tf.get_variable("count%d" % i, initializer=0) for i in range(3)]
    turns = utils.batch_execute(step, [lambda v=v: v.assign_add(1) for v in counts], 2)
    with tf.Session() as s:
        made, again = s.run([whole, back])
        s.run(tf.global_variables_initializer())
        seen = []
        for i in range(3):
            s.run(turns, {step: i})
            seen.append(s.run(counts))
    assert made.shape == (2, 2, 3, 6)
    np.testing.assert_array_equal(made[:, :, 1, 2:4], filters[:, :, 1])
    assert np.count_nonzero(made) == np.count_nonzero(filters)
    np.testing.assert_array_equal(again, filters)
    assert seen == [[1, 1, 0], [2, 1, 1], [2, 2, 2]]


def test_replicas_are_refused():
    with tf.contrib.tpu.tpu_shard_context(1):
        one = tf.ones([])
        assert utils.cross_replica_mean(one) is one
    with tf.contrib.tpu.tpu_shard_context(4), pytest.raises(NotImplementedError, match="over 4 replicas is not provided"):
        utils.cross_replica_mean(tf.ones([]))
    with pytest.raises(ValueError, match="outside of TPU Context"):
        utils.cross_replica_mean(tf.ones([]))


def test_examples_train():
    from millrace.contrib.kfac.examples import convnet, mlp, mnist

    images, labels = mnist.load_mnist(None, num_epochs=1, batch_size=64, flatten_images=False, use_fake_data=True)
    with tf.Session() as session:
        images, labels = session.run([images, labels])
    assert images.shape == (64, 28, 28, 1) and 0 <= images.min() < images.max() <= 1 and labels.shape == (64,) and set(labels) <= set(range(10))
    collection = kfac.layer_collection.LayerCollection()
    loss, accuracy = convnet.build_model(tf.placeholder(tf.float32, [None, 6, 6, 3]), tf.placeholder(tf.int64, [None]), 5, collection)
    assert len(collection.fisher_blocks) == 3 and len(collection.losses) == 1 and loss.shape == accuracy.shape == []
    with tf.Graph().as_default():
        assert 0 <= mlp.train_mnist_multitower(None, num_epochs=1, num_towers=2, use_fake_data=True) <= 1
    with tf.Graph().as_default():
        x, y = tf.data.Dataset.from_tensor_slices(([[1.0], [2.0]], [[1.0], [2.0]])).repeat(100).batch(2).make_one_shot_iterator().get_next()
        w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
        collection = kfac.layer_collection.LayerCollection()
        made = tf.matmul(x, w)
        collection.register_fully_connected(w, x, made)
        collection.register_normal_predictive_distribution(made)
        loss = tf.reduce_mean(0.5 * tf.square(made - y))
        assert convnet.distributed_grads_only_and_ops_chief_worker(0, True, 1, 0, "", None, loss, loss, collection) < 1.25
