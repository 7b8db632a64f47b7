# SPDX-License-Identifier: Apache-2.0
"""Layers and cells whose arguments change what is computed, against NumPy and against each other."""

import numpy as np
import pytest

import millrace as tf


def run(*made):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(list(made))


@pytest.mark.parametrize("outputs, rate", [(4, 1), (None, 1), (None, 2), (4, 2)])
def test_separable_convolutions_with_channels_first(outputs, rate):
    x = np.random.RandomState(1).randn(2, 3, 7, 8).astype(np.float32)
    with tf.Graph().as_default():
        same = dict(
            num_outputs=outputs,
            kernel_size=[3, 2],
            depth_multiplier=2,
            rate=rate,
            activation_fn=None,
            scope="s",
            weights_initializer=tf.random_uniform_initializer(seed=3),
            biases_initializer=tf.constant_initializer(0.5),
        )
        first = tf.contrib.layers.separable_conv2d(x, data_format="NCHW", **same)
        last = tf.contrib.layers.separable_conv2d(x.transpose(0, 2, 3, 1), reuse=True, **same)
        assert first.get_shape().as_list() == [2, outputs or 6, 7, 8]
        got, wanted = run(first, last)
        np.testing.assert_allclose(got, wanted.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-5)


def test_a_bias_of_the_first_axis_behind_the_batch():
    with tf.Graph().as_default():
        made = tf.contrib.layers.bias_add(tf.zeros([2, 3, 4, 4]), initializer=tf.constant_initializer([1.0, 2.0, 3.0]), data_format="NCHW")
        (value,) = run(made)
        np.testing.assert_array_equal(value[1, :, 2, 3], [1, 2, 3])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tf.contrib.layers.conv2d(x, 2, 3, data_format="CHWN"),
        lambda x: tf.contrib.layers.separable_conv2d(x, 2, 3, data_format="NDHWC"),
        lambda x: tf.contrib.layers.conv2d_transpose(x, 2, 3, data_format="x"),
        lambda x: tf.contrib.layers.max_pool2d(x, 3, data_format="CHWN"),
        lambda x: tf.contrib.layers.batch_norm(x, data_format="CHWN"),
        lambda x: tf.contrib.layers.bias_add(x, data_format="x"),
        lambda x: tf.layers.conv2d(x, 2, 3, data_format="NCHW"),
        lambda x: tf.layers.max_pooling2d(x, 3, 1, data_format="x"),
        lambda x: tf.layers.flatten(x, data_format="x"),
        lambda x: tf.layers.separable_conv2d(x, 2, 3, data_format="x"),
    ],
)
def test_unknown_data_formats_are_refused(call):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="data_format"):
        call(tf.zeros([2, 5, 5, 3]))


def test_flattened_with_channels_first_the_order_is_that_of_channels_last():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 2, 2)
    with tf.Graph().as_default():
        unknown = tf.placeholder_with_default(x, [None, 3, None, 2])
        for made in (tf.layers.flatten(x, data_format="channels_first"), tf.layers.Flatten("channels_first")(unknown)):
            np.testing.assert_array_equal(run(made)[0], x.transpose(0, 2, 3, 1).reshape(2, 12))
        with pytest.raises(ValueError, match="rank"):
            tf.layers.flatten(tf.placeholder(tf.float32), data_format="channels_first")


def test_the_largest_of_each_group_of_features():
    x = np.random.RandomState(2).randn(2, 6, 3).astype(np.float32)
    with tf.Graph().as_default():
        made = tf.layers.maxout(tf.placeholder_with_default(x, [None, 6, 3]), 2, axis=1)
        assert made.get_shape().as_list() == [None, 2, 3]
        np.testing.assert_array_equal(run(made)[0], x.reshape(2, 2, 3, 3).max(2))
        with pytest.raises(ValueError, match="multiple"):
            tf.layers.maxout(x, 4, axis=1)


def test_a_transposed_convolution_of_volumes_is_the_gradient_of_one():
    x = np.random.RandomState(3).randn(1, 3, 4, 2, 2).astype(np.float32)
    for format, turn in (("channels_last", lambda v: v), ("channels_first", lambda v: v.transpose(0, 4, 1, 2, 3))):
        with tf.Graph().as_default():
            layer = tf.layers.Conv3DTranspose(3, 2, strides=2, data_format=format, use_bias=False)
            made = layer(tf.constant(turn(x)))
            ahead = tf.zeros([1, 6, 8, 4, 3])
            back = tf.gradients(tf.nn.conv3d(ahead, layer.kernel, [1, 2, 2, 2, 1], "VALID"), ahead, tf.constant(x))[0]
            got, wanted = run(made, back)
            np.testing.assert_allclose(got, turn(wanted), rtol=1e-5, atol=1e-5)


def test_constraints_of_normalizations_and_separable_convolutions_are_kept():
    with tf.Graph().as_default():
        half = lambda v: v * 0.5
        norm = tf.layers.BatchNormalization(gamma_constraint=half, beta_constraint=half)
        norm(tf.ones([2, 3]))
        conv = tf.layers.SeparableConv2D(2, 3, depthwise_constraint=half, pointwise_constraint=half)
        conv(tf.ones([1, 4, 4, 2]))
        assert all(v.constraint is half for v in (norm.gamma, norm.beta, conv.depthwise_kernel, conv.pointwise_kernel))


@pytest.mark.parametrize("arguments, zero", [(dict(cell_clip=0.0), "c"), (dict(num_proj=3, proj_clip=0), "h")])
def test_a_bound_of_zero_clips(arguments, zero):
    with tf.Graph().as_default():
        _, state = tf.nn.rnn_cell.LSTMCell(4, **arguments)(tf.ones([2, 3]), tf.nn.rnn_cell.LSTMCell(4, **arguments).zero_state(2, tf.float32))
        (value,) = run(state)
        assert (getattr(value, zero) == 0).all()
        assert zero == "c" or np.abs(value.c).max() > 0


@pytest.mark.parametrize("peepholes", [False, True])
def test_a_fused_lstm_is_the_lstm(peepholes):
    x, lengths = np.random.RandomState(4).randn(5, 3, 2).astype(np.float32), [5, 0, 3]
    with tf.Graph().as_default():
        with tf.variable_scope("net", initializer=tf.random_uniform_initializer(-1, 1, seed=5)):
            fused = tf.contrib.rnn.LSTMBlockFusedCell(4, use_peephole=peepholes)
            got = fused(tf.constant(x), dtype=tf.float32, sequence_length=lengths)
            assert [v.op.name for v in tf.trainable_variables()][:2] == ["net/lstm_fused_cell/kernel", "net/lstm_fused_cell/bias"]
        with tf.variable_scope("net", reuse=True):
            cells = [
                tf.nn.rnn_cell.LSTMCell(4, use_peepholes=peepholes, name="lstm_fused_cell"),
                tf.contrib.rnn.LSTMBlockCell(4, use_peephole=peepholes, cell_clip=0, name="lstm_fused_cell"),
            ]
            state = cells[0].zero_state(3, tf.float32)
            for cell in cells:
                wanted = tf.nn.dynamic_rnn(cell, x, lengths, state, time_major=True, scope=tf.get_variable_scope())
                for a, b in zip(run(got, wanted)[0], run(got, wanted)[1]):
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_fused_lstms_are_layers():
    x, lengths = np.random.RandomState(4).randn(5, 3, 2).astype(np.float32), [5, 0, 3]
    with tf.Graph().as_default():
        forwards, backwards = (tf.contrib.rnn.LSTMBlockFusedCell(4, use_peephole=True) for _ in range(2))
        turned = tf.contrib.rnn.TimeReversedFusedRNN(backwards)
        first, again = (forwards(x, dtype=tf.float32, sequence_length=lengths)[0] for _ in range(2))
        last = turned(x, dtype=tf.float32, sequence_length=lengths)[0]
        names = ["kernel", "bias", "w_i_diag", "w_f_diag", "w_o_diag"]
        assert [v.op.name for v in tf.trainable_variables()] == ["%s/%s" % (cell, n) for cell in ("lstm_fused_cell", "lstm_fused_cell_1") for n in names]
        assert backwards.variables == tf.trainable_variables()[5:] and forwards.num_units == 4
        by_steps = turned(tf.unstack(tf.constant(x)), dtype=tf.float32)[0]
        assert [step.shape.as_list() for step in by_steps] == [[3, 4]] * 5
        one, same, other = run(first, again, last)
        assert (one == same).all() and np.abs(one - other).max() > 0.01
        with pytest.raises(ValueError, match="Either initial_state or dtype"):
            forwards(x)


@pytest.mark.parametrize("format", ["NHWC", "NCHW"])
def test_instances_normalised_by_channel(format):
    x = np.random.RandomState(6).randn(2, 4, 5, 3).astype(np.float32) * 3 + 1
    wanted = (x - x.mean((1, 2), keepdims=True)) / x.std((1, 2), keepdims=True) * 2 + [1, 2, 3]
    turn, back = ((0, 3, 1, 2), (0, 2, 3, 1)) if format == "NCHW" else ((0, 1, 2, 3),) * 2
    with tf.Graph().as_default():
        made = tf.contrib.layers.instance_norm(
            x.transpose(turn),
            data_format=format,
            variables_collections={"beta": ["offsets"]},
            param_initializers={"beta": tf.constant_initializer([1.0, 2.0, 3.0]), "gamma": tf.constant_initializer(2.0)},
        )
        np.testing.assert_allclose(run(made)[0].transpose(back), wanted, atol=1e-4)
        assert [v.op.name for v in tf.get_collection("offsets")] == ["InstanceNorm/beta"]
        with pytest.raises(ValueError, match="undefined rank"):
            tf.contrib.layers.layer_norm(tf.placeholder(tf.float32))
        with pytest.raises(ValueError, match="begin_norm_axis"):
            tf.contrib.layers.layer_norm(tf.ones([2, 3]), begin_norm_axis=2)


def test_penalties_of_weights():
    layers = tf.contrib.layers
    with tf.Graph().as_default():
        w = tf.constant([1.0, -2.0])
        both = layers.l1_l2_regularizer(0.5, 0.1)(w)
        assert both.op.name == "l1_l2_regularizer" and layers.sum_regularizer([None]) is None
        only = layers.l1_l2_regularizer(0.0, 0.1)(w)
        np.testing.assert_allclose(run(both, only), [1.75, 0.25], rtol=1e-6)
        for make in (layers.l1_regularizer, layers.l2_regularizer, layers.l1_l2_regularizer):
            for wrong in (-0.1, 1):
                with pytest.raises(ValueError, match="scale"):
                    make(wrong)
        with pytest.raises(ValueError, match="No weights"):
            layers.apply_regularization(layers.l2_regularizer(0.1))
        with pytest.raises(ValueError, match="scalar"):
            layers.apply_regularization(lambda v: v, [w])


def test_summaries_of_activations_say_what_share_is_at_the_bounds():
    with tf.Graph().as_default():
        made = tf.nn.relu6(tf.constant([-1.0, 2.0, 7.0, 8.0]), name="act")
        tf.contrib.layers.summarize_activation(made)
        found = {s.op.name: s for s in tf.get_collection(tf.GraphKeys.SUMMARIES)}
        assert sorted(found) == ["act/activation", "act/sixes", "act/zeros"]
        values = [tf.Summary.FromString(text).value[0].simple_value for text in run(found["act/sixes"], found["act/zeros"])]
        assert values == [0.5, 0.25]
        assert tf.contrib.layers.summarize_tensor(tf.constant("a")) is None
        tf.add_to_collection("these", made), tf.add_to_collection("these", tf.constant(1.0, name="other"))
        assert [s.op.name for s in tf.contrib.layers.summarize_collection("these", "oth")] == ["other_summary"]


def test_a_step_of_optimize_loss_and_what_it_refuses():
    layers = tf.contrib.layers
    with tf.Graph().as_default():
        v, step = tf.get_variable("v", initializer=10.0), tf.train.get_or_create_global_step()
        loss = tf.abs(v * 5.0)
        train = layers.optimize_loss(loss, step, 0.1, "SGD", gradient_multipliers={v: 2.0}, clip_gradients=4.0)
        assert [x.op.name for x in tf.global_variables()] == ["v", "global_step", "OptimizeLoss/learning_rate"]
        names = {s.op.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES)}
        assert names == {"OptimizeLoss/" + n for n in ("loss", "global_norm/gradient_norm", "global_norm/clipped_gradient_norm")}
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train)
            np.testing.assert_allclose(sess.run([v, step]), [9.6, 1], rtol=1e-6)
        for arguments, error in (
            (dict(learning_rate=-0.1), "learning_rate"),
            (dict(learning_rate=1), "Learning rate"),
            (dict(optimizer="x"), "one of"),
            (dict(optimizer=object()), "Unrecognized"),
            (dict(optimizer=lambda rate: None), "Unrecognized"),
            (dict(summaries=["x"]), "Summaries"),
            (dict(loss=[[1.0]]), "scalar"),
            (dict(learning_rate=None), "None"),
        ):
            with pytest.raises(ValueError, match=error):
                layers.optimize_loss(**dict(dict(loss=loss, global_step=step, learning_rate=0.1, optimizer="SGD"), **arguments))


def test_gradients_clipped_where_their_norm_is_unusual():
    with tf.Graph().as_default():
        gradient, v = tf.placeholder(tf.float32, [2]), tf.get_variable("v", [2])
        rows = tf.IndexedSlices(tf.reshape(gradient, [1, 2]), tf.constant([0]), tf.constant([1, 2]))
        (dense, _), (sparse, _), (nothing, _) = tf.contrib.layers.adaptive_clipping_fn(decay=0.5, static_max_norm=8.0)([(gradient, v), (rows, v), (None, v)])
        assert nothing is None
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            norms = [np.linalg.norm(sess.run([dense, sparse.values], {gradient: [x, 0.0]})[0]) for x in [1.0] * 12 + [100.0]]
        assert norms[-2] == pytest.approx(1.0, rel=1e-3) and 1.0 < norms[-1] < 8.0


def test_symbols_as_rows_of_a_table():
    layers = tf.contrib.layers
    with tf.Graph().as_default():
        table = np.arange(12.0, dtype=np.float32).reshape(4, 3)
        made = dict(initializer=tf.constant_initializer(table), vocab_size=4, embed_dim=3)
        ids = [[1, 3], [2, 0], [0, 0]]
        bags, dense = layers.bow_encoder(ids, **made), layers.bow_encoder(ids, sparse_lookup=False, **made)
        once = layers.embed_sequence(tf.constant(ids), unique=True, **made)
        got = run(bags, dense, once)
        for value, wanted in zip(got, ([table[[1, 3]].mean(0), table[2], table[0]], table[ids].mean(1), table[ids])):
            np.testing.assert_allclose(value, wanted)
        assert "Unique" in {op.type for op in tf.get_default_graph().get_operations()}
        with pytest.raises(TypeError, match="dense"):
            layers.bow_encoder(tf.SparseTensor([[0, 0]], [1], [1, 1]), 4, 3, sparse_lookup=False)


def test_dense_tensors_as_sparse_ones():
    from millrace.contrib import layers_sparse as sparse_ops

    with tf.Graph().as_default():
        texts = sparse_ops.dense_to_sparse_tensor([b"a", b"", b"b"], ignore_value="a")
        classes = sparse_ops.indicators_to_sparse_ids([[[0, 0, 1, 0], [0, 0, 0, 0]], [[1, 0, 1, 1], [0, 0, 1, 0]]], dtype=tf.int32)
        ends = sparse_ops.sparse_row_envelope(tf.SparseTensor([[0, 0], [2, 0], [2, 3]], [1, 1, 1], [4, 4]))
        texts, classes, ends = run(texts, classes, ends)
        assert texts.values.tolist() == [b"", b"b"] and texts.indices.tolist() == [[1], [2]]
        assert classes.values.tolist() == [2, 0, 2, 3, 2] and classes.values.dtype == np.int32 and classes.dense_shape.tolist() == [2, 2, 3]
        assert classes.indices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 2], [1, 1, 0]]
        assert ends.tolist() == [1, 0, 4, 0]
        with pytest.raises(ValueError, match="same axis"):
            sparse_ops.sparse_row_envelope(tf.SparseTensor([[0, 0]], [1], [1, 1]), 1, 1)


def test_every_channel_with_the_same_filter():
    x = np.random.RandomState(7).randn(2, 4, 5, 3).astype(np.float32)
    with tf.Graph().as_default():
        made = tf.contrib.layers.conv2d_in_plane(
            x,
            [1, 2],
            padding="VALID",
            activation_fn=None,
            weights_initializer=tf.constant_initializer([1.0, -1.0]),
            biases_initializer=tf.constant_initializer([1.0, 2.0, 3.0]),
        )
        np.testing.assert_allclose(run(made)[0], x[:, :, :-1] - x[:, :, 1:] + [1, 2, 3], rtol=1e-5, atol=1e-5)
        assert [v.op.name for v in tf.trainable_variables()] == ["ConvInPlane/weights", "ConvInPlane/biases"]


@pytest.mark.parametrize("format", ["NHWC", "NCHW"])
def test_where_channels_are_large(format):
    x = np.random.RandomState(8).randn(2, 4, 5, 3).astype(np.float32) * 4
    share = np.exp(x / 2) / np.exp(x / 2).sum((1, 2), keepdims=True)
    rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
    wanted = np.stack([(share * at[None, :, :, None]).sum((1, 2)) for at in (rows, columns)], 2).reshape(2, 6)
    with tf.Graph().as_default():
        fed = tf.placeholder_with_default(
            x if format == "NHWC" else x.transpose(0, 3, 1, 2), [None, None, None, 3] if format == "NHWC" else [None, 3, None, None]
        )
        made = tf.contrib.layers.spatial_softmax(fed, temperature=2.0, data_format=format)
        assert made.get_shape().as_list() == [None, 6] and not tf.global_variables()
        np.testing.assert_allclose(run(made)[0], wanted, atol=1e-5)
        tf.contrib.layers.spatial_softmax(fed, data_format=format)
        assert [v.op.name for v in tf.trainable_variables()] == ["spatial_softmax_1/temperature"]


def test_norms_and_gradients_scaled():
    with tf.Graph().as_default():
        x = tf.constant([[3.0, 4.0], [0.3, 0.4]])
        y = tf.contrib.layers.scale_gradient(x, 5.0)
        moved, same, slope = run(tf.contrib.layers.poincare_normalize(x, epsilon=0.5), y, tf.gradients(y * 2.0, x)[0])
        np.testing.assert_allclose(moved, [[0.3, 0.4], [0.3, 0.4]], rtol=1e-6)
        np.testing.assert_array_equal(same, np.float32([[3.0, 4.0], [0.3, 0.4]]))
        np.testing.assert_allclose(slope, np.full([2, 2], 10.0))


def test_layers_of_the_first_versions():
    layers = tf.contrib.layers
    with tf.Graph().as_default():
        x = np.arange(12.0, dtype=np.float32).reshape(2, 2, 3)
        made = layers.legacy_relu(
            tf.placeholder_with_default(x, [None, 2, 3]),
            2,
            weight_init=tf.constant_initializer(1.0),
            bias_init=tf.constant_initializer(-10.0),
            weight_collections=["w"],
        )
        assert made.get_shape().as_list() == [None, 2, 2] and tf.get_collection(tf.GraphKeys.ACTIVATIONS) == [made]
        assert [v.op.name for v in tf.get_collection("w")] == ["fully_connected/weights"] and len(tf.global_variables()) == 2
        np.testing.assert_allclose(run(made)[0], np.maximum(x.sum(2, keepdims=True) - 10, 0) * np.ones(2))
        for wrong, text in ((tf.placeholder(tf.float32), "dims of x"), (tf.zeros([3]), "rank of x"), (tf.placeholder(tf.float32, [3, None]), "last dimension")):
            with pytest.raises(ValueError, match=text):
                layers.legacy_linear(wrong, 2)
        assert layers.stack(tf.ones([2, 3]), layers.elu, [4, 5]).op.name == "Stack/fully_connected_2/Elu"
        assert layers.pool(tf.ones([1, 4, 4, 1]), 2, "AVG", stride=2).op.name == "avg_pool"


def test_transposed_convolutions_take_what_they_took_by_place():
    """tf.keras.layers' have a padding of the outputs before the data format; those of tf.layers and contrib have none."""
    with tf.Graph().as_default():
        image, volume = tf.ones([1, 2, 2, 1]), tf.ones([1, 2, 2, 2, 1])
        flat = tf.layers.conv2d_transpose(image, 3, 2, 2, "same", "channels_last", tf.nn.relu, False)
        deep = tf.layers.conv3d_transpose(volume, 3, 2, 2, "same", "channels_last", tf.nn.relu, False)
        assert (flat.shape.as_list(), flat.op.type, deep.shape.as_list(), deep.op.type) == ([1, 4, 4, 3], "Relu", [1, 4, 4, 4, 3], "Relu")
        assert tf.layers.conv3d_transpose(volume, 3, 2, use_bias=False, kernel_initializer=tf.zeros_initializer()).shape.as_list() == [1, 3, 3, 3, 3]
        assert tf.contrib.layers.conv2d_transpose(image, 3, 2, 2).shape.as_list() == [1, 4, 4, 3]
        assert tf.contrib.layers.conv3d_transpose(volume, 3, 2, 2).shape.as_list() == [1, 4, 4, 4, 3]
        assert len(tf.trainable_variables()) == 7
        with pytest.raises(TypeError, match="output_padding"):
            tf.layers.conv2d_transpose(image, 3, 2, output_padding=1)


@pytest.mark.parametrize("drop", [lambda x, shape: tf.nn.dropout(x, 0.5, shape), lambda x, shape: tf.layers.dropout(x, 0.5, shape, training=True)])
def test_dropout_whose_shape_the_step_tells(drop):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 5, 7])
        for shape in ([tf.shape(x)[0], 1, x.shape[2]], (tf.shape(x)[0], 1, 7), [None, 1, None], tf.TensorShape([None, 1, 7]), np.array([3, 1, 7])):
            made = sess.run(drop(x, shape), {x: np.ones([3, 5, 7])})
            assert set(made.flat) == {0.0, 2.0} and (made == made[:, :1]).all()


def test_a_cell_whose_dropout_a_variable_says():
    with tf.Graph().as_default():
        keep = tf.get_variable("keep", initializer=1.0)
        cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(3), keep, keep, keep)
        x = tf.ones([2, 3])
        out, _ = cell(x, tf.zeros([2, 3]))
        plain, _ = cell.wrapped_cell(x, tf.zeros([2, 3]))
        got, wanted = run(out, plain)
        np.testing.assert_allclose(got, wanted)
        assert cell.wrapped_cell.dtype == tf.float32


def test_heads_of_the_first_versions():
    targets = tf.contrib.layers
    logits, labels = np.array([[1.0], [1.0], [-1.0]], np.float32), np.array([1, 0, 1])
    entropies = np.log1p(np.exp([-1.0, 1.0, 1.0]))
    with tf.Graph().as_default():
        features = {"w": tf.constant([[2.0], [5.0], [0.0]])}
        two, weighted = targets.multi_class_target(2), targets.multi_class_target(2, "label", "w")
        fed = tf.constant(logits)
        made = (
            two.loss(fed, tf.constant(labels), {}),
            weighted.loss(fed, {"label": tf.constant(labels)}, features),
            weighted.training_loss(fed, {"label": tf.constant(labels)}, features),
            two.logits_to_predictions(fed),
            two.logits_to_predictions(fed, True),
            targets.multi_class_target(3).loss(tf.constant([[1.0, 0.0, 0.0]]), tf.constant([[2]]), {}),
            targets.regression_target().loss(tf.constant([[1.0], [3.0]]), tf.constant([0.0, 1.0]), {}),
            targets.binary_svm_target("l", "w").loss(fed, {"l": tf.constant(labels)}, features),
        )
        got = run(*made)
        share = np.array([2.0, 5.0, 0.0])
        wanted = (entropies.mean(), (entropies * share).sum() / 7, (entropies * share).mean(), [1, 1, 0], None, np.log(2 + np.e), 2.5, (0 * 2 + 2 * 5) / 7)
        for value, right in zip(got, wanted):
            right is None or np.testing.assert_allclose(value, right, rtol=1e-5)
        np.testing.assert_allclose(got[4][:, 1], 1 / (1 + np.exp(-logits[:, 0])), rtol=1e-5)
        measures = two.get_eval_ops({}, fed, tf.constant(labels[:, None]))
        with tf.Session() as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            sess.run([update for _, update in measures.values()])
            found = sess.run({name: value for name, (value, _) in measures.items()})
        assert found["accuracy/threshold_0.500000_mean"] == pytest.approx(1 / 3) and found["loss"] == pytest.approx(entropies.mean())
        assert found["precision/positive_threshold_0.500000_mean"] == pytest.approx(0.5)
        with pytest.raises(ValueError, match="n_classes"):
            targets.multi_class_target(1)
        with pytest.raises(ValueError, match="probabilities"):
            two.get_eval_ops({}, fed, tf.constant(labels[:, None]), {("a", "b"): None})


def test_combinations_of_features():
    from millrace.contrib.layers_sparse import sparse_feature_cross

    layers = tf.contrib.layers
    with tf.Graph().as_default():
        inputs = [tf.constant([["batch1-FC%d-F1" % i]]) for i in (1, 2, 3)]
        texts, hashed = run(sparse_feature_cross(inputs), sparse_feature_cross(inputs, True, hash_key=layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY))
        assert texts.values.tolist() == [b"batch1-FC1-F1_X_batch1-FC2-F1_X_batch1-FC3-F1"] and hashed.values.tolist() == [1971693436396284976]
        first = run(sparse_feature_cross(inputs, hashed_output=True), sparse_feature_cross(inputs, True, 100))  # TensorFlow 1.4's
        assert [s.values.tolist() for s in first] == [[3735511728867393167], [74]]
        many = [tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ["a", "b", "c"], [2, 2]), tf.constant([[1, 2], [3, 4]])]
        one, all_of = run(sparse_feature_cross([tf.constant([["b"]]), tf.constant([[2]])], True, 2**62), sparse_feature_cross(many, True, 2**62))
        assert all_of.indices.tolist() == [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1]] and all_of.values[3] == one.values[0]
        numbers = tf.constant([[-3, 2**62], [7, -(2**61)]])
        signed = [2148546192418831439, 6760232210846219346, 6472001834694504524, 1860315816267116625]
        signed += [2148546192418821550, 9066075220059903416, 8057268903528919127, 1139739875887837265]
        assert run(sparse_feature_cross([numbers, numbers], True))[0].values.tolist() == signed
        with pytest.raises(ValueError, match="num_buckets"):
            sparse_feature_cross(inputs, True, -1)


def test_contribs_hinge_losses_are_those_of_the_elements():
    with tf.Graph().as_default():
        made = tf.contrib.losses.hinge_loss(tf.constant([[-0.5], [0.2], [3.0]]), tf.constant([[0], [1], [1]]))
        np.testing.assert_allclose(run(made)[0], [[0.5], [0.8], [0.0]], rtol=1e-6)
        assert made.op.name == "hinge_loss" and not tf.get_collection(tf.GraphKeys.LOSSES)


def test_rows_scattered_over_a_vector():
    layers, key = tf.contrib.layers, 7
    values = tf.SparseTensor
    with tf.Graph().as_default():
        parts = [tf.constant(np.arange(start, stop, dtype=np.float32)) for start, stop in ((0, 34), (34, 67), (67, 100))]
        rows = layers.scattered_embedding_lookup(parts, tf.constant([["a", "b"], ["b", "c"]]), 4, hash_key=key)
        whole = layers.scattered_embedding_lookup(tf.constant(np.arange(100, dtype=np.float32)), tf.constant(["a", "b", "c", "6ZxWzWOHxZ"]), 4, hash_key=key)
        bags = layers.scattered_embedding_lookup_sparse(parts, values([[0, 0], [0, 1], [2, 0]], ["a", "b", "c"], [3, 2]), 4, hash_key=key)
        sums = layers._sampled_scattered_embedding_lookup_sparse(
            parts, values([[0, 0], [0, 1], [2, 0]], ["a", "b", "c"], [3, 2]), hash_key=key, sampled_candidates=tf.constant([[3, 0], [0, 1], [2, 2]])
        )
        rows, (a, b, c, empty), bags, sums = run(rows, whole, bags, sums)
        np.testing.assert_array_equal(rows, [[a, b], [b, c]])
        np.testing.assert_allclose(bags, [(a + b) / 2, empty, c])
        np.testing.assert_allclose(sums, [(a + b)[[3, 0]], [0, 0], c[[2, 2]]])
        assert len({tuple(row) for row in (a, b, c, empty)}) == 4
        for wrong, text in ((dict(params=[parts[1], parts[0]]), "expected"), (dict(dimension=0), "Dimension"), (dict(params=tf.ones([2, 2])), "vectors")):
            with pytest.raises(ValueError, match=text):
                layers.scattered_embedding_lookup(**dict(dict(params=parts, values=tf.constant(["a"]), dimension=3, hash_key=key), **wrong))


@pytest.mark.parametrize("arguments, text", [(dict(mode="FAN_all"), "FAN_AVG"), (dict(dtype=tf.int32), "non-floating")])
def test_initializers_refuse_what_they_cannot_scale(arguments, text):
    with pytest.raises(TypeError, match=text):
        tf.contrib.layers.variance_scaling_initializer(**arguments)


def test_layers_of_tf_layers_are_those_of_keras():
    """One class stands below all layers, and each layer has one implementation."""
    from millrace.keras import layers as of_keras
    from millrace.layers import base

    names = [
        n for n in dir(tf.layers) if isinstance(getattr(tf.layers, n), type) and hasattr(of_keras, n) and n not in ("Input", "InputLayer", "InputSpec", "Layer")
    ]
    assert len(names) >= 15
    for name in names:
        kind = getattr(tf.layers, name)
        assert issubclass(kind, getattr(of_keras, name)) and issubclass(kind, tf.layers.Layer), name
    assert issubclass(tf.layers.Layer, base.Layer) and of_keras.Layer is base.Layer and issubclass(tf.keras.Model, base.Layer)


def test_signatures_of_functions_say_what_they_take():
    """A tool sees what a layer takes, and what a layer does not take is refused by name."""
    import inspect

    taken = list(inspect.signature(tf.layers.dense).parameters)
    assert taken[:3] == ["inputs", "units", "activation"] and taken[-3:] == ["trainable", "name", "reuse"]
    assert list(inspect.signature(tf.layers.MaxPooling2D).parameters)[:5] == ["pool_size", "strides", "padding", "data_format", "name"]
    with pytest.raises(TypeError, match="dense|Dense"):
        tf.layers.dense(tf.ones([2, 3]), 4, no_such_setting=1)
    with pytest.raises(TypeError, match="pool_size"):
        tf.layers.MaxPooling2D()
    with pytest.raises(ValueError, match="strides"):
        tf.layers.max_pooling2d(tf.ones([1, 4, 4, 1]), 2, strides=None)


def test_settings_of_tf_layers_come_back():
    """get_config has all settings, and a layer is made of them again."""
    layer = tf.layers.Conv2D(3, 2, padding="same", activation=tf.nn.relu, kernel_initializer="zeros", name="c")
    twin = tf.layers.Conv2D.from_config({**layer.get_config(), "activation": tf.nn.relu})
    assert (twin.filters, twin.kernel_size, twin.padding, twin.name) == (3, (2, 2), "same", "c")
    assert twin(tf.ones([1, 4, 4, 2])).shape.as_list() == [1, 4, 4, 3]
    assert sorted(v.name for v in tf.global_variables()) == ["c/bias:0", "c/kernel:0"]


def test_layers_in_the_style_of_keras():
    """tf.layers.experimental: weights are the layer's own, named after it, and no variable scope shares them."""
    with tf.layers.experimental.keras_style_scope():
        with tf.variable_scope("outer", reuse=tf.AUTO_REUSE):
            first, second = tf.layers.Dense(3), tf.layers.Dense(3)
            a, b = first(tf.ones([2, 4])), second(tf.ones([2, 4]))
        assert (first.name, second.name) == ("dense", "dense_1") and a.shape == b.shape
        with pytest.raises(ValueError, match="keras style"):
            tf.layers.dense(tf.ones([2, 4]), 3, name="x", reuse=True)
    assert len(tf.trainable_variables()) == 4 and first.kernel is not second.kernel
    assert tf.layers.Dense(3, name="d")(tf.ones([2, 4])).op.name.startswith("d/")
    assert [v.name for v in tf.trainable_variables()[4:]] == ["d/kernel:0", "d/bias:0"]


def test_the_style_of_keras_can_be_set_for_good():
    from millrace.layers import scoped

    try:
        tf.layers.experimental.set_keras_style()
        assert tf.layers.Dense(3).name == "dense"
    finally:
        scoped._style.keras = False


def test_volumes_with_channels_first_are_pooled_with_channels_last():
    x = np.random.RandomState(0).rand(5, 2, 4, 6, 9).astype(np.float32)
    with tf.Graph().as_default():
        for pool, name in ((tf.contrib.layers.avg_pool3d, "AvgPool3D"), (tf.contrib.layers.max_pool3d, "MaxPool3D")):
            first, last = pool(x, [2, 3, 3], data_format="NCDHW"), pool(x.transpose(0, 2, 3, 4, 1), [2, 3, 3])
            assert first.op.name == name + "/transpose_1" and first.shape.as_list() == [5, 2, 2, 2, 4]
            got, wanted = run(first, last)
            np.testing.assert_array_equal(got, wanted.transpose(0, 4, 1, 2, 3))


def test_fused_batch_norm_takes_half_precision():
    x = np.random.RandomState(0).rand(5, 3, 3, 3).astype(np.float16)
    with tf.Graph().as_default():
        made = tf.contrib.layers.batch_norm(x, fused=True)
        assert made.op.type == "FusedBatchNormV3" and made.dtype == tf.float16
        assert {v.dtype.base_dtype for v in tf.global_variables()} == {tf.float32}
        (value,) = run(made)
        wide = x.astype(np.float64)
        np.testing.assert_allclose(value, (wide - wide.mean((0, 1, 2))) / np.sqrt(wide.var((0, 1, 2)) + 1e-3), atol=4e-3)


def test_columns_of_scattered_embeddings_fit_the_values():
    with tf.Graph().as_default(), tf.Session() as session:
        weights, values = [tf.constant(np.arange(50, dtype=np.float32))], tf.constant([["a", "b", "c"], ["b", "c", "a"]])
        look_up = tf.contrib.layers._sampled_scattered_embedding_lookup
        right = look_up(weights, values, sampled_candidates=tf.constant(np.arange(24).reshape(2, 3, 4) % 4), hash_key=3)
        assert session.run(right).shape == (2, 3, 4)
        wrong = look_up(weights, values, sampled_candidates=tf.constant(np.zeros((2, 2, 4), np.int64)), hash_key=3)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"The shape of sampled_candidates: \] \[2 2 4\] \[ does not match the shape of values: \] \[2 3\]"
        ):
            session.run(wrong)


def test_steps_are_counted_by_variables_only():
    with tf.Graph().as_default():
        loss = tf.abs(tf.get_variable("v", [], initializer=tf.constant_initializer(10.0)))
        with pytest.raises(AttributeError, match="global_step must be a variable"):
            tf.contrib.layers.optimize_loss(loss, tf.constant(43, tf.int64), 0.1, "SGD")
        noisy = tf.contrib.layers.optimize_loss(loss, tf.train.create_global_step(), 0.1, "SGD", gradient_noise_scale=10.0)
        (before,) = run(noisy)
        assert before == 10


def test_numbers_that_are_drawn_have_the_names_of_operators():
    with tf.Graph().as_default():
        tf.random_uniform([2], 1, 3, name="u")
        tf.random_crop(tf.zeros([4, 4]), [2, 2], name="c")
        names = {op.name for op in tf.get_default_graph().get_operations()}
    assert {"u/sub", "u/mul", "c/sub", "c/add", "c/mod"} <= names


def test_splits_count_as_in_tensorflow():
    """The nodes of TensorFlow 1.15.5: seeds of what is drawn later depend on how many there are."""
    with tf.Graph().as_default() as graph:
        tf.split(tf.zeros([4, 6]), 2, 1)
        tf.split(tf.zeros([4, 6]), [2, 4], 1)
        names = [op.name for op in graph.get_operations()]
    assert names == ["zeros", "Const", "split/split_dim", "split", "zeros_1", "Const_1", "split_1/split_dim", "split_1"]


def test_clocks_of_phased_cells_are_drawn_as_in_tensorflow():
    """Values of TensorFlow 1.15.5 of a fixed seed."""
    with tf.Graph().as_default():
        tf.set_random_seed(87654321)
        with tf.variable_scope("root", initializer=tf.constant_initializer(0.5)):
            time, x = tf.constant([[1.0], [2.0], [3.0]], tf.float64), tf.ones([3, 4])
            state = tf.nn.rnn_cell.LSTMStateTuple(tf.zeros([3, 2]), tf.zeros([3, 2]))
            tf.contrib.rnn.PhasedLSTMCell(num_units=2)((time, x), state)
        period, phase = (v for v in tf.global_variables() if v.op.name.split("/")[-1] in ("period", "phase"))
        drawn = run(period, phase)
    np.testing.assert_allclose(drawn, [[391.5321, 19.912958], [60.46688, 12.322049]], rtol=1e-5)


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        (lambda: tf.contrib.rnn.AttentionCellWrapper(None, 1), TypeError, "is not an RNNCell"),
        (
            lambda: tf.contrib.rnn.GLSTMCell(4, number_of_groups=2)(tf.placeholder(tf.float32, [2, None]), [tf.zeros([2, 4])] * 2),
            ValueError,
            "input size must be",
        ),
        (lambda: tf.contrib.rnn.GLSTMCell(4, number_of_groups=2)(tf.zeros([2, 3]), [tf.zeros([2, 4])] * 2), ValueError, r"input size \(3\) must be divisible"),
    ],
)
def test_cells_say_what_they_cannot_take(wrong, error, message):
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        wrong()


def test_settings_of_kernels_that_depthwise_convolutions_take_and_do_not_use():
    with tf.Graph().as_default():
        layer = tf.keras.layers.DepthwiseConv2D(3, kernel_initializer="ones", kernel_regularizer="l2", kernel_constraint=None, depthwise_initializer="zeros")
        layer.build((None, 4, 4, 2))
        assert layer.losses == [] and "kernel_initializer" not in layer.get_config()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert not session.run(layer.depthwise_kernel).any()
