# SPDX-License-Identifier: Apache-2.0
"""Layers of tf.contrib.layers and cells of tf.contrib.rnn, by values."""

import numpy as np
import pytest

import millrace as tf

layers = tf.contrib.layers


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_averages_of_values_alone(sess):
    x = np.random.RandomState(0).rand(10, 2, 2, 3)
    training = tf.placeholder(tf.bool, [])
    made = [
        layers.batch_norm(tf.constant(x, tf.float32), decay=0.1, updates_collections=None, zero_debias_moving_mean=True, is_training=is_training, scope=scope)
        for scope, is_training in (("fixed", True), ("fed", training))
    ]
    means = [v for v in tf.global_variables() if v.op.name.endswith("moving_mean")]
    sess.run(tf.global_variables_initializer())
    sess.run(made[1], {training: False})
    assert sess.run(means[1]).tolist() == [0, 0, 0]
    for _ in range(2):
        sess.run(made, {training: True})
        for value in sess.run(means):
            np.testing.assert_allclose(value, x.mean((0, 1, 2)), rtol=1e-5)  # from the first step on
    assert len(tf.contrib.framework.get_model_variables()) == 2 * 3 and sess.run([v for v in tf.global_variables() if v.op.name.endswith("local_step")]) == [
        2,
        2,
    ]


def test_averages_stay_whole_under_a_partitioner(sess):
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        layers.batch_norm(tf.ones([2, 4]), scale=True, scope="n")
    shapes = {v.op.name: v.shape.as_list() for v in tf.contrib.framework.get_model_variables()}
    assert shapes["p/n/moving_mean"] == [4] and shapes["p/n/gamma/part_0"] == [2]


@pytest.mark.parametrize("inverse", [False, True])
def test_gdn(sess, inverse):
    x = np.random.RandomState(1).rand(1, 2, 3, 4).astype(np.float32)
    made = layers.gdn(tf.constant(x), inverse=inverse)
    first = layers.gdn(tf.constant(x.transpose(0, 3, 1, 2)), inverse=inverse, data_format="channels_first", name="first")
    sess.run(tf.global_variables_initializer())
    root = np.sqrt(1 + 0.1 * x**2)
    np.testing.assert_allclose(sess.run(made), x * root if inverse else x / root, rtol=1e-5)
    np.testing.assert_allclose(sess.run(first).transpose(0, 2, 3, 1), sess.run(made), rtol=1e-5)
    beta = next(v for v in tf.trainable_variables() if v.op.name == "gdn/reparam_beta")
    assert np.isfinite(sess.run(tf.gradients(tf.reduce_sum(made), beta)[0])).all()
    with pytest.raises(ValueError, match="data format"):
        layers.gdn(tf.constant(x), data_format="NHWC")


def test_grouped_units_are_cells_of_their_own(sess):
    with tf.variable_scope("root", initializer=tf.constant_initializer(0.5)):
        x = tf.ones([2, 4])
        grouped, narrow = tf.contrib.rnn.GLSTMCell(4, number_of_groups=2), tf.nn.rnn_cell.LSTMCell(2)
        h, _ = grouped(x, grouped.zero_state(2, tf.float32))
        one, _ = narrow(x[:, :2], narrow.zero_state(2, tf.float32))
    sess.run(tf.global_variables_initializer())
    np.testing.assert_allclose(sess.run(h), np.tile(sess.run(one), 2), rtol=1e-5)
    with pytest.raises(ValueError, match="divisible"):
        tf.contrib.rnn.GLSTMCell(4, number_of_groups=3)


def test_units_that_open_by_a_clock(sess):
    cell = tf.contrib.rnn.PhasedLSTMCell(3, ratio_on=0.5)
    time = tf.placeholder(tf.float64, [2, 1])
    state = cell.zero_state(2, tf.float32)
    _, (c, _) = cell((time, tf.ones([2, 4])), state)
    period, phase = (next(v for v in tf.global_variables() if v.op.name.endswith(n)) for n in ("period", "phase"))
    sess.run(tf.global_variables_initializer())
    sess.run([period.assign([10.0] * 3), phase.assign([0.0] * 3)])
    full, closed, half = (sess.run(c, {time: [[t]] * 2}) for t in (2.5, 9.0, 1.25))
    np.testing.assert_allclose(half, full / 2, rtol=1e-5)  # on its way up
    np.testing.assert_allclose(closed, full * 0.001 * 0.9, rtol=1e-4)  # what leaks


def test_cells_along_frequencies(sess):
    cell = tf.contrib.rnn.TimeFreqLSTMCell(2, feature_size=2, frequency_skip=1)
    output, state = cell(tf.ones([3, 4]), tf.zeros([3, 2 * 2 * 3]))
    sess.run(tf.global_variables_initializer())
    made, kept = sess.run([output, state])
    assert made.shape == (3, 6) and kept.shape == (3, 12)
    np.testing.assert_array_equal(kept.reshape(3, 3, 2, 2)[:, :, 1].reshape(3, 6), made)  # c and h of each window


def test_functions_go_by_the_names_that_call_them():
    """A scope of arguments of one's own, and libraries on top, tell them apart by their names."""
    names = ("reduce_sum", "reduce_any", "layers.dense", "layers.conv2d_transpose", "layers.max_pooling1d", "keras.backend.mean", "contrib.layers.avg_pool2d")
    for name in (*names, "sparse.maximum"):
        function = tf
        for part in name.split("."):
            function = getattr(function, part)
        assert function.__name__ == {"sparse.maximum": "sparse_maximum"}.get(name, name.split(".")[-1])
    assert tf.keras.layers.Input((3,), 2).shape.as_list() == tf.keras.layers.Input((3,), batch_size=2).shape.as_list() == [2, 3]
    dense, conv2d = (tf.contrib.framework.add_arg_scope(f) for f in (tf.layers.dense, tf.layers.conv2d))
    with tf.Graph().as_default(), tf.contrib.framework.arg_scope([dense], activation=tf.nn.relu):
        assert (dense(tf.ones([1, 2]), 3).op.type, conv2d(tf.ones([1, 2, 2, 1]), 1, 1).op.type) == ("Relu", "BiasAdd")


def test_pointwise_weights_of_separable_convolutions_have_an_initializer_of_their_own():
    with tf.Graph().as_default(), tf.Session() as sess:
        given = dict(weights_initializer=tf.ones_initializer(), pointwise_initializer=tf.constant_initializer(0.5), activation_fn=None)
        made = tf.contrib.layers.separable_conv2d(tf.ones([1, 1, 1, 2]), 1, 1, **given)
        sess.run(tf.global_variables_initializer())
        assert made.eval().item() == 1.0


def test_scopes_of_arguments_say_where_variables_lie():
    """As slim's deployment does, whose scope holds the layers' variables too."""
    framework = tf.contrib.framework
    with tf.Graph().as_default():
        with framework.arg_scope([framework.model_variable, framework.variable], device="/job:ps/task:1"):
            one, two = framework.variable("one", [2]), framework.model_variable("two", [2])
            tf.contrib.layers.conv2d(tf.ones([1, 2, 2, 1]), 3, 1, normalizer_fn=tf.contrib.layers.batch_norm)
        with framework.arg_scope([framework.variable], trainable=False):
            three = framework.model_variable("three", [2])
        assert {v.device for v in tf.global_variables() if v is not three} == {"/job:ps/task:1"} and len(tf.global_variables()) == 7
        assert tf.model_variables()[0] is two and one not in tf.model_variables() and three in tf.trainable_variables()


def test_slim_has_the_modules_of_its_layers():
    slim = tf.contrib.slim
    assert slim.initializers.xavier_initializer is layers.xavier_initializer and slim.regularizers.l2_regularizer is layers.l2_regularizer


def test_a_merged_summary_is_named_twice():
    with tf.Graph().as_default():
        parts = [tf.summary.scalar("a", 1.0)]
        assert [tf.summary.merge(parts, name=n).op.name for n in ("all", None)] == ["all/all", "Merge/MergeSummary"]


def test_a_device_setter_is_asked_about_a_node():
    place = tf.train.replica_device_setter(ps_tasks=2)
    assert [place(tf.NodeDef(name="a", op=op)) for op in ("Variable", "VariableV2", "Add")] == ["/job:ps/task:0", "/job:ps/task:1", "/job:worker"]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_batch_norm_of_vectors_keeps_the_variance_of_a_sample(data_format):
    """Its fused form does, of vectors as of images; with fused=False it is that of the batch."""
    x = np.random.RandomState(3).randn(8, 3).astype("f")
    for fused, spare in ((None, 1), (True, 1), (False, 0)):
        with tf.Graph().as_default(), tf.Session() as sess:
            given = tf.placeholder(tf.float32, [None, 3])
            made = tf.contrib.layers.batch_norm(given, decay=0.5, fused=fused, updates_collections=None, data_format=data_format)
            sess.run(tf.global_variables_initializer())
            assert made.shape.as_list() == [None, 3]
            np.testing.assert_allclose(sess.run(made, {given: x}), (x - x.mean(0)) / np.sqrt(x.var(0) + 0.001), rtol=1e-5, atol=1e-5)
            kept = {v.op.name: sess.run(v) for v in tf.global_variables()}
            np.testing.assert_allclose(kept["BatchNorm/moving_variance"], 0.5 + 0.5 * x.var(0, ddof=spare), rtol=1e-5)
            np.testing.assert_allclose(kept["BatchNorm/moving_mean"], 0.5 * x.mean(0), rtol=1e-5, atol=1e-7)


def test_images_are_sequences_of_columns_and_back():
    images = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    layers = tf.contrib.layers
    with tf.Graph().as_default(), tf.Session() as session:
        columns = layers.images_to_sequence(tf.constant(images))
        first = layers.images_to_sequence(tf.constant(images.transpose(0, 3, 1, 2)), data_format="NCHW")
        back = layers.sequence_to_images(columns, 3)
        turned = layers.sequence_to_images(columns, 3, output_data_format="channels_first")
        assert columns.shape.as_list() == [4, 6, 5] and back.shape.as_list() == [2, 3, 4, 5]
        got = session.run([columns, first, back, turned])
    np.testing.assert_array_equal(got[0], images.transpose(2, 0, 1, 3).reshape(4, 6, 5))
    for value, wanted in zip(got[1:], (got[0], images, images.transpose(0, 3, 1, 2))):
        np.testing.assert_array_equal(value, wanted)


def test_tokens_of_the_end_are_left_out():
    with tf.Graph().as_default(), tf.Session() as session:
        made = session.run(tf.contrib.layers.dense_to_sparse([[1, 9, 2], [9, 9, 3]], eos_token=9))
    assert made.values.tolist() == [1, 2, 3] and made.indices.tolist() == [[0, 0], [0, 2], [1, 2]] and made.dense_shape.tolist() == [2, 3]


def test_half_precision_is_normalised_with_an_epsilon_that_it_has():
    x = np.array([[1.0, 1.01, 0.99, 1.0]], np.float16)
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.contrib.layers.layer_norm(tf.constant(x))
        session.run(tf.global_variables_initializer())
        got = session.run(made)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(got, (wide - wide.mean()) / np.sqrt(wide.var() + 1e-3), atol=0.01)


def test_each_convolution_has_its_own_scope_of_arguments():
    layers = tf.contrib.layers
    with tf.Graph().as_default():
        with tf.contrib.framework.arg_scope([layers.conv2d], activation_fn=None, padding="VALID"):
            assert layers.conv2d(tf.zeros([1, 5, 5, 2]), 3, 3).shape.as_list() == [1, 3, 3, 3]
            volume = layers.conv3d(tf.zeros([1, 5, 5, 5, 2]), 3, 3)
            assert volume.shape.as_list() == [1, 5, 5, 5, 3] and volume.op.type == "Relu"
            assert layers.convolution(tf.zeros([1, 5, 2]), 3, 3).shape.as_list() == [1, 5, 3]
        for conv, rank in ((layers.conv3d, 5), (layers.conv1d, 3)):
            with pytest.raises(ValueError, match="expects input with rank %d, got 4" % rank):
                conv(tf.zeros([1, 5, 5, 2]), 3, 3)


def test_empty_rows_have_a_gradient_of_zeros(sess):
    table = tf.get_variable("table", [5, 2], initializer=tf.ones_initializer())
    ids = tf.SparseTensor([[0, 0], [1, 0], [2, 0]], tf.constant([1, -1, 3], tf.int64), [3, 1])
    for default, row, empty in ((None, 0, 0.0), (2, 2, 1.0)):
        found = layers.safe_embedding_lookup_sparse([table], ids, default_id=default)
        gradient = tf.gradients(found, table)[0]
        sess.run(tf.global_variables_initializer())
        values, indices, sums = sess.run([gradient.values, gradient.indices, tf.reduce_sum(found, 1)])
        assert dict(zip(indices, values[:, 0])) == {1: 1, row: empty, 3: 1} and sums.tolist() == [2, 2 * empty, 2]
    assert sorted(sess.run(tf.gradients(layers.bow_encoder([[1, 2], [2, 1]], 3, 2), tf.global_variables()[1:2])[0].indices)) == [1, 2]


@pytest.mark.parametrize("fused, count", [(None, 4), (True, 4), (False, 6)])
def test_what_zero_debiasing_keeps_among_the_variables_of_the_model(fused, count):
    """As in 1.15, where the fused form makes them by another function."""
    tf.contrib.layers.batch_norm(tf.ones([2, 3, 3, 3]), scale=True, zero_debias_moving_mean=True, fused=fused)
    assert len(tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)) == count and len(tf.global_variables()) == 6


def test_variables_of_layers_have_the_names_and_collections_of_1_15(sess):
    for _ in range(2):
        layers.spatial_softmax(tf.ones([1, 2, 2, 3]))
    layers.batch_norm(tf.ones([8, 3]), zero_debias_moving_mean=True)
    assert [v.op.name for v in tf.model_variables()] == [
        "spatial_softmax/temperature",
        "spatial_softmax_1/temperature",
        "BatchNorm/beta",
        "BatchNorm/moving_mean",
        "BatchNorm/moving_variance",
    ]


@pytest.mark.parametrize(
    "rank, arguments, own",
    [(4, {}, False), (4, {"updates_collections": None}, True), (4, {"updates_collections": "mine"}, True), (2, {}, True), (2, {"fused": False}, False)],
)
@pytest.mark.parametrize("trainable", [True, False])
def test_averages_of_a_normalization_that_is_not_trained(rank, arguments, own, trainable):
    """1.15 leaves some cases to tf.layers, where nothing moves that is not trained; in those of its own, averages do."""
    y = layers.batch_norm(tf.ones([2, 2, 2, 3] if rank == 4 else [2, 3]), decay=0.5, scale=True, trainable=trainable, **arguments)
    assert [v.op.name.split("/")[-1] for v in tf.model_variables()][:2] == (["beta", "gamma"] if own else ["gamma", "beta"])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([y, tf.get_collection(tf.GraphKeys.UPDATE_OPS), tf.get_collection("mine")])
        assert session.run("BatchNorm/moving_mean:0").tolist() == [0.5 if own or trainable else 0.0] * 3


def test_reversible_layers():
    layers = tf.contrib.layers
    x, side = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        given, more = tf.constant(x), tf.constant(side)
        halves = tf.split(given, 2, 1)

        def f(x, side):
            return tf.layers.dense(x, 2, tf.tanh) * side[0][:, :2]

        def g(x):
            return tf.layers.dense(x, 2, tf.sigmoid)

        made = []
        for training in (True, False):
            with tf.variable_scope("block", reuse=not training):
                made.append(tf.concat(layers.rev_block(*halves, f, g, num_layers=3, f_side_input=[more], is_training=training), 1))
        variables = tf.trainable_variables()
        assert len(variables) == 12 and variables[0].op.name == "block/revblock/revlayer_0/f/dense/kernel"
        block = layers.RevBlock([g] * 3, g, num_layers=3)
        ends = block.forward(*halves)
        back = tf.concat(block.backward(*ends), 1)
        assert len(block.trainable_variables) == 12
        weights = tf.constant(np.arange(12.0).reshape(3, 4), tf.float32)
        wanted = [tf.gradients(tf.reduce_sum(weights * tf.square(y)), [given, more, *variables]) for y in made]
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(*session.run(made))
        for efficient, plain in zip(*session.run(wanted)):
            np.testing.assert_allclose(efficient, plain, rtol=2e-4, atol=1e-4)
        np.testing.assert_allclose(session.run(back), x, atol=1e-5)
    with pytest.raises(ValueError, match="2 layers, but 1 functions"):
        layers.RevBlock([g], g, num_layers=2)


def test_recompute_grad_with_arguments():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(3.0)

        @tf.contrib.layers.recompute_grad(use_data_dep=True)
        def cube(x):
            return x * x * x

        assert session.run(tf.gradients(cube(x), x)) == [27.0]


@pytest.mark.parametrize("mode, count", [("FAN_IN", 4), ("FAN_OUT", 3), ("FAN_AVG", 3.5)])
def test_scaled_initializers_count_truncation_as_tensorflow_does(sess, mode, count):
    for factor in (1.0, 2.0):
        made = layers.variance_scaling_initializer(factor, mode, seed=3)([4, 3])
        wanted = tf.truncated_normal([4, 3], stddev=np.sqrt(1.3 * factor / count), seed=3)
        np.testing.assert_allclose(*sess.run([made, wanted]), rtol=1e-6)


def test_scaled_initializers_of_parts_count_the_part(sess):
    parts = tf.get_variable("p", [4, 3], initializer=layers.variance_scaling_initializer(2.0, seed=3), partitioner=tf.fixed_size_partitioner(2))
    wanted = layers.variance_scaling_initializer(2.0, seed=3)([2, 3])
    sess.run(tf.global_variables_initializer())
    first, second, value = sess.run([*parts, wanted])
    np.testing.assert_allclose(first, value, rtol=1e-6)
    np.testing.assert_allclose(second, value, rtol=1e-6)


def test_convolutions_of_images_take_sequences_as_before_1_5():
    """As adversarial_crypto of TensorFlow's models has it."""
    with tf.Graph().as_default(), tf.Session() as session:
        given = np.random.RandomState(0).rand(2, 6, 3).astype(np.float32)
        one = tf.contrib.layers.conv2d(given, 4, 2, 2, "SAME", activation_fn=None, weights_initializer=tf.constant_initializer(0.5), scope="a")
        other = tf.contrib.layers.conv1d(given, 4, 2, 2, "SAME", activation_fn=None, weights_initializer=tf.constant_initializer(0.5), scope="b")
        session.run(tf.global_variables_initializer())
        made, wanted = session.run([one, other])
        assert made.shape == (2, 3, 4)
        np.testing.assert_array_equal(made, wanted)
        for convolve, shape, message in ((tf.contrib.layers.conv2d, [2, 3, 3, 3, 3], "rank 4, got 5"), (tf.contrib.layers.conv3d, [2, 3, 3], "rank 5, got 3")):
            with pytest.raises(ValueError, match=message):
                convolve(tf.zeros(shape), 4, 2)
