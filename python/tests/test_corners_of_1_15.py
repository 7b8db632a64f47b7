# SPDX-License-Identifier: Apache-2.0
"""Arguments and values in corners of 1.15's functions and layers."""

import numpy as np
import pytest

import millrace as tf


def run(*tensors, feed=None):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        made = session.run(list(tensors), feed)
    return made[0] if len(made) == 1 else made


@pytest.mark.parametrize("kind", ["MAX", "AVG"])
def test_windows_with_holes_that_reach_beyond_the_edge_are_refused(kind):
    x = -np.ones([1, 4, 4, 1], np.float32)
    with pytest.raises(ValueError, match="pooling with SAME padding is not implemented for dilation_rate > 1"):
        tf.nn.pool(x, [3, 3], kind, "SAME", dilation_rate=[2, 2])
    assert run(tf.nn.pool(x, [2, 2], kind, "VALID", dilation_rate=[2, 2])).tolist() == [[[[-1], [-1]], [[-1], [-1]]]]


@pytest.mark.parametrize("function, value", [(tf.zeros, 0), (tf.ones, 1)])
def test_a_number_is_the_shape_of_a_vector(function, value):
    known = function(tf.constant(3))
    assert known.shape == [3] and known.op.name == function.__name__
    size = tf.placeholder(tf.int64, None)
    assert run(known, function(size), feed={size: 2})[1].tolist() == [value] * 2
    assert run(function(size), feed={size: [2, 1]}).tolist() == [[value]] * 2


def test_words_that_are_not_empty_are_counted():
    words = [["a", "", "b"], ["", "", ""]]
    assert [x.tolist() for x in run(tf.math.count_nonzero(words), tf.math.count_nonzero(words, axis=1))] == [2, [2, 0]]
    assert run(tf.math.count_nonzero([1j, 0j])) == 1 and run(tf.math.count_nonzero([True, False])) == 1


def test_parts_of_numbers_that_are_not_complex():
    z = tf.constant([3 - 4j])
    assert [t.op.name for t in (tf.real(z), tf.imag(z, name="i"), tf.angle(z), tf.conj(z))] == ["Real", "i", "Angle", "Conj"]
    for dtype in (tf.float64, tf.float16, tf.int32):
        x = tf.constant([-2], dtype)
        assert tf.real(x) is x and tf.conj(x) is x
        imag = tf.imag(x)
        assert imag.dtype == dtype and run(imag).tolist() == [0]
    assert tf.imag(tf.constant([1.0]), name="none").op.name == "none/zeros_like"
    with pytest.raises(TypeError, match="Expected numeric or variant tensor"):
        tf.conj(["a"])


@pytest.mark.parametrize("collections", ["kept", ["kept"], ("kept",), {"kept"}])
def test_collections_of_metrics(collections):
    value, update = tf.metrics.mean([1.0, 3.0], metrics_collections=collections, updates_collections=collections)
    assert tf.get_collection("kept") == [value, update]
    with pytest.raises(TypeError):
        tf.metrics.mean([1.0], metrics_collections=5)


def test_names_of_slots_are_sorted():
    assert tf.train.RMSPropOptimizer(0.1, centered=True).get_slot_names() == ["mg", "momentum", "rms"]


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("shrinkage", [0.0, 0.01])
def test_slots_of_ftrl_by_names_of_their_own(resource, shrinkage):
    ids = tf.constant([0, 2, 0])
    trained = []
    for names in ({}, {"accum_name": "a", "linear_name": "l"}, {"accum_name": "a"}):
        whole = tf.Variable([[1.0], [2.0], [3.0]], use_resource=resource, name="whole")
        rows = tf.Variable([[1.0], [2.0], [3.0]], use_resource=resource, name="rows")
        loss = tf.reduce_sum(whole * whole) + tf.reduce_sum(tf.gather(rows, ids) ** 3)
        optimizer = tf.train.FtrlOptimizer(0.3, l1_regularization_strength=0.01, l2_shrinkage_regularization_strength=shrinkage, **names)
        trained.append((whole, rows, optimizer.minimize(loss)))
        found = [optimizer.get_slot(rows, n).op.name.rsplit("/", 1)[1] for n in optimizer.get_slot_names()]
        assert found == [names.get("accum_name", "Ftrl"), names.get("linear_name", "Ftrl" if names else "Ftrl_1")]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run([step for _, _, step in trained])
        values = session.run([[whole, rows] for whole, rows, _ in trained])
    assert values[0][0][0, 0] != 1 and values[0][1][1, 0] == 2
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], rtol=1e-6)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("bias", [True, False])
def test_a_gru_that_resets_after(bias):
    random = np.random.RandomState(0)
    x = random.randn(2, 4, 3).astype(np.float32)
    layer = tf.keras.layers.GRU(5, reset_after=True, use_bias=bias, recurrent_activation="sigmoid", bias_initializer="random_normal")
    made = layer(tf.constant(x))
    assert [w.shape.as_list() for w in layer.weights] == [[3, 15], [5, 15], [2, 15]][: 2 + bias]
    got, weights = run(made, layer.weights)
    kernel, recurrent = weights[:2]
    of_inputs, of_states = weights[2] if bias else (0, 0)
    h = np.zeros([2, 5])
    for t in range(4):
        a, b = np.split(x[:, t] @ kernel + of_inputs, 3, 1), np.split(h @ recurrent + of_states, 3, 1)
        z, r = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
        h = z * h + (1 - z) * np.tanh(a[2] + r * b[2])
    np.testing.assert_allclose(got, h, rtol=1e-4, atol=1e-5)
    assert layer.get_config()["reset_after"] is True and tf.keras.layers.GRU.from_config(layer.get_config()).reset_after


def test_virtual_batches():
    x = np.random.RandomState(0).randn(6, 2, 3)
    given = tf.placeholder(tf.float64, [None, 2, 3])
    made = tf.layers.batch_normalization(given, virtual_batch_size=2, training=True, momentum=0.5, epsilon=1e-3)
    still = tf.layers.batch_normalization(given, virtual_batch_size=2, training=False, name="batch_normalization", reuse=True, epsilon=1e-3)
    assert made.shape.as_list() == [None, 2, 3]
    assert [v.shape.as_list() for v in tf.global_variables()] == [[1, 1, 1, 3]] * 4
    parts = x.reshape(2, 3, 2, 3)
    mean, variance = parts.mean((0, 2), keepdims=True), parts.var((0, 2), keepdims=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        got, _ = session.run([made, tf.get_collection(tf.GraphKeys.UPDATE_OPS)], {given: x})
        averages = session.run(tf.moving_average_variables() or tf.global_variables()[2:])
        later = session.run(still, {given: x})
    np.testing.assert_allclose(got, ((parts - mean) / np.sqrt(variance + 1e-3)).reshape(x.shape), rtol=1e-6)
    np.testing.assert_allclose(averages[0].ravel(), 0.5 * mean.mean((0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(averages[1].ravel(), 0.5 + 0.5 * variance.mean((0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(later, (x - averages[0][0]) / np.sqrt(averages[1][0] + 1e-3), rtol=1e-6)


@pytest.mark.parametrize("renorm", [False, True])
def test_adjusted_batches(renorm):
    x = np.random.RandomState(0).randn(5, 3).astype(np.float32)
    flag = tf.placeholder(tf.bool, [])
    made = tf.layers.batch_normalization(
        x,
        training=flag,
        renorm=renorm,
        renorm_clipping={"rmin": 1.0, "rmax": 1.0, "dmax": 0.0} if renorm else None,
        gamma_initializer=tf.constant_initializer(2.0),
        beta_initializer=tf.constant_initializer(0.5),
        adjustment=lambda shape: (tf.fill([shape[0], 1], 3.0), tf.fill([shape[0], 1], 0.25)),
    )
    normal = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3)
    np.testing.assert_allclose(run(made, feed={flag: True}), (normal * 3 + 0.25) * 2 + 0.5, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run(made, feed={flag: False}), x / np.sqrt(1 + 1e-3) * 2 + 0.5, rtol=1e-4, atol=1e-5)


def test_what_virtual_batches_refuse():
    x = tf.zeros([4, 3])
    for kwargs, error, message in [
        ({"virtual_batch_size": 0}, ValueError, "must be a positive integer"),
        ({"virtual_batch_size": 2, "axis": 0}, ValueError, "batch dimension"),
        ({"virtual_batch_size": 2, "fused": True}, ValueError, "fused=True"),
        ({"virtual_batch_size": 2, "adjustment": lambda s: (1.0, 0.0)}, ValueError, "adjustment cannot be specified"),
    ]:
        with pytest.raises(error, match=message):
            tf.layers.batch_normalization(x, training=True, **kwargs)
    assert tf.keras.layers.BatchNormalization(virtual_batch_size=2).get_config()["virtual_batch_size"] == 2


def test_scopes_of_images():
    I = tf.image
    x = tf.placeholder(tf.float32, [4, 6, 3])
    small = tf.placeholder(tf.uint8, [2, 4, 6, 3])
    made = {
        "flip_left_right/ReverseV2": I.flip_left_right(x),
        "flip_up_down/ReverseV2": I.flip_up_down(x),
        "random_flip_up_down/add": I.random_flip_up_down(tf.cast(small, tf.float32)),
        "transpose/transpose": I.transpose(x),
        "per_image_standardization": I.per_image_standardization(x),
        "rgb_to_grayscale": I.rgb_to_grayscale(x),
        "adjust_brightness/Identity": I.adjust_brightness(x, 0.1),
        "adjust_brightness_1/convert_image_1": I.adjust_brightness(small, 0.1),
        "adjust_contrast/Identity": I.adjust_contrast(x, 0.5),
        "adjust_gamma/Identity": I.adjust_gamma(x, 0.5),
        "turned/Identity": I.adjust_hue(x, 0.1, name="turned"),
        "adjust_saturation/Identity": I.adjust_saturation(x, 0.5),
        "central_crop/Slice": I.central_crop(small, 0.5),
        "crop_to_bounding_box/Slice": I.crop_to_bounding_box(small, 1, 1, 2, 2),
        "pad_to_bounding_box/Pad": I.pad_to_bounding_box(small, 1, 1, 8, 9),
        "resize_image_with_pad/pad_to_bounding_box/Pad": I.resize_image_with_pad(small, 2, 8),
        "resize/ResizeBilinear": I.resize_images(small, [2, 3]),
        "m/transpose": tf.linalg.matrix_transpose(x, name="m"),
        "cholesky_solve/MatrixTriangularSolve_1": tf.cholesky_solve(tf.eye(2), tf.ones([2, 1])),
    }
    assert [t.op.name for t in made.values()] == list(made)
    with tf.name_scope("outer"):
        assert I.adjust_brightness(x, 0.1).op.name == "outer/adjust_brightness/Identity"
        assert I.per_image_standardization(x).op.name == "outer/per_image_standardization"


def test_shapes_that_follow():
    assert tf.reduce_sum(tf.placeholder(tf.float32, None)).shape.as_list() == []
    assert tf.reduce_max(tf.placeholder(tf.float32, None), keepdims=True).shape.ndims is None
    kept = tf.image.resize_images(tf.ones([2, 4, 6, 3]), [2, 5], preserve_aspect_ratio=True)
    assert kept.shape.as_list() == [2, 2, 3, 3] and run(kept).shape == (2, 2, 3, 3)
    unknown = tf.image.resize_images(tf.placeholder_with_default(np.ones([2, 4, 6, 3], np.float32), [2, None, None, 3]), [2, 5], preserve_aspect_ratio=True)
    assert run(unknown).shape == (2, 2, 3, 3)


def test_image_functions_build_in_the_graph_of_their_image():
    with tf.Graph().as_default() as graph:
        image = tf.zeros([4, 5, 3])
    for made in (tf.image.flip_left_right(image), tf.image.pad_to_bounding_box(image=image, offset_height=1, offset_width=0, target_height=6, target_width=5)):
        assert made.graph is graph


def test_renormalised_layers_keep_deviations_for_inference():
    x = np.random.RandomState(0).randn(6, 3).astype("f") * 2 + 1
    model = tf.keras.Sequential([tf.keras.layers.BatchNormalization(momentum=0.5, renorm=True, renorm_momentum=0.75, input_shape=(3,))])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    model.fit(x, x, batch_size=6, epochs=2, verbose=0)
    names = [w.name.split("/")[-1] for w in model.weights]
    assert names == ["gamma:0", "beta:0", "moving_mean:0", "moving_variance:0", "moving_stddev:0", "renorm_mean:0", "renorm_stddev:0"]
    mean, deviation = x.mean(0), np.sqrt(x.var(0) + 1e-3)
    kept = [0.75 * mean, None, 0.25 + 0.75 * deviation, 7 / 16 * mean, 9 / 16 + 7 / 16 * deviation]
    kept[1] = kept[2] ** 2 - 1e-3
    for got, wanted in zip(model.get_weights()[2:], kept):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    np.testing.assert_allclose(model.predict(x), (x - kept[0]) / kept[2], rtol=1e-4)
    again = tf.keras.Sequential.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


@pytest.mark.parametrize("ghosts, renorm", [(None, False), (None, True), (2, True)])
def test_batches_normalised_along_two_axes(ghosts, renorm):
    x = np.random.RandomState(0).randn(4, 2, 5, 3).astype("f")
    given, flag = tf.placeholder(tf.float32, [None, 2, 5, 3]), tf.placeholder(tf.bool, [])
    made = tf.layers.batch_normalization(given, [1, -1], training=flag, virtual_batch_size=ghosts, renorm=renorm, name="norm")
    assert tf.global_variables()[0].shape.as_list() == ([1, 2, 1, 3] if ghosts is None else [1, 1, 2, 1, 3])
    parts = x if ghosts is None else x.reshape(2, 2, 2, 5, 3)
    over = (0, 2) if ghosts is None else (0, 3)
    mean, variance = parts.mean(over, keepdims=True), parts.var(over, keepdims=True)
    wanted = (parts - mean) / np.sqrt(variance + 1e-3)
    if renorm:
        whole = (lambda v: v) if ghosts is None else (lambda v: v.mean(1, keepdims=True))
        wanted = wanted * np.sqrt(whole(variance) + 1e-3) + whole(mean)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(made, {given: x, flag: True}), wanted.reshape(x.shape), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(session.run(made, {given: x, flag: False}), x / np.sqrt(1 + 1e-3), rtol=1e-5)


def test_columns_of_csv_are_checked_before_they_are_read():
    for columns, words in (([1, 0], "increasing"), ([0, 0], "increasing"), ([-1, 0], "negative"), ([0], "do not match")):
        with pytest.raises(ValueError, match=words):
            tf.decode_csv(["1,2"], [[1], [2]], select_cols=columns)


def test_a_tensor_equals_itself_without_a_look():
    x = tf.placeholder(tf.float32)
    assert tf.assert_equal(x, x).type == "NoOp" and tf.assert_equal(x, tf.identity(x)).type != "NoOp"


def test_a_loop_with_one_tensor_gives_the_tensor():
    looped = tf.while_loop(lambda i, _: i < 3, lambda i, _: [i + 1, []], [tf.constant(0), []])
    assert isinstance(looped, tf.Tensor)


def test_shapes_of_transposed_volumes_may_be_int64():
    made = tf.nn.conv3d_transpose(tf.ones([1, 2, 2, 2, 1]), tf.ones([1, 1, 1, 1, 1]), tf.constant([1, 2, 2, 2, 1], tf.int64), [1, 1, 1, 1, 1])
    with tf.Session() as session:
        assert session.run(made).shape == (1, 2, 2, 2, 1)


def test_no_number_of_batches_is_none():
    with tf.Session() as session:
        assert session.run(tf.gather([[1, 2], [3, 4]], [1, 0], axis=1, batch_dims=None)).tolist() == [[2, 1], [4, 3]]


def test_numbers_beyond_32_bits_in_ranges():
    with tf.Session() as session:
        assert session.run(tf.range(3000000000, 3000000002)).tolist() == [3000000000, 3000000001]
    assert tf.range(5).dtype == tf.int32 and tf.range(-(2**31), 0).dtype == tf.int32


def test_range_is_of_the_widest_type_of_its_bounds():
    count, start = tf.constant(3), tf.get_variable("start", initializer=1)
    cases = [
        ((count, -1, -1.0), tf.float32, [3, 2, 1, 0]),  # as positions of XLNet and Transformer-XL
        ((np.int64(1), count), tf.int64, [1, 2]),
        ((0, tf.constant(2, tf.int64)), tf.int64, [0, 1]),
        ((start, np.float64(3)), tf.float64, [1, 2]),
        ((tf.zeros([2, 3]).shape[1],), tf.int32, [0, 1, 2]),
    ]
    with tf.Session() as session:
        session.run(start.initializer)
        for bounds, dtype, wanted in cases:
            made = tf.range(*bounds)
            assert made.dtype == dtype and session.run(made).tolist() == wanted
    assert tf.range(5, 0, -1.0).shape == [5] and tf.range(3, dtype=tf.float64).dtype == tf.float64


def test_labels_of_classes_that_are_not_there_are_no_labels():
    predictions = [[0.4, 0.1, 0.5, 0.3]]
    sparse = tf.SparseTensor([[0, 0], [0, 1]], tf.constant([0, 5], tf.int64), [1, 2])
    for labels, wanted in ((tf.constant([[0, 5]], tf.int64), 0.5), (sparse, 0.25)):
        assert run(tf.metrics.average_precision_at_k(labels, predictions, 3)[1]) == wanted


def test_results_are_called_as_their_op():
    assert repr(run(tf.nn.top_k([3, 1], 1))).startswith("TopKV2(values=")


def test_a_dropout_has_a_rate_or_a_probability():
    with pytest.raises(ValueError, match="both"):
        tf.nn.dropout(tf.ones([3]), 0.5, rate=0.5)


def test_elements_larger_than_they_are_padded_to_are_refused():
    with pytest.raises(ValueError, match="not compatible"):
        tf.data.Dataset.from_tensors([1, 2]).padded_batch(2, [1])


def test_resampled_classes_keep_their_type():
    rows = tf.data.Dataset.range(4).apply(tf.data.experimental.rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.5, 0.5], seed=1))
    assert tf.data.get_output_types(rows) == (tf.int32, tf.int64)


def test_a_closed_writer_writes_nothing_until_it_is_opened_again(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path))
    writer.add_run_metadata(tf.RunMetadata(), "run")
    with pytest.raises(ValueError, match="already used"):
        writer.add_run_metadata(tf.RunMetadata(), "run")
    writer.close()
    with pytest.warns(UserWarning, match="closed FileWriter"):
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="lost", simple_value=1)]), 1)
    writer.reopen()
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="kept", simple_value=2)]), 2)
    writer.close()
    tags = [value.tag for path in sorted(tmp_path.iterdir()) for event in tf.train.summary_iterator(str(path)) for value in event.summary.value]
    assert tags == ["kept"]


def test_means_of_segments_of_integers():
    with tf.Session() as session:
        assert session.run(tf.math.unsorted_segment_mean(tf.constant([1, 2, 5], tf.int64), [0, 1, 1], 3)).tolist() == [1, 3.5, 0]


def test_shards_that_there_are_not():
    for count, index in ((5, 7), (5, -3), (0, 1)):
        for kind in (ValueError, tf.errors.InvalidArgumentError):
            with pytest.raises(kind):
                tf.data.Dataset.range(10).shard(count, index)


def test_operators_are_named_as_python_does():
    assert tf.Tensor.__add__.__name__ == tf.Variable.__add__.__name__ == "__add__" and tf.Variable.__rmul__.__name__ == "__rmul__"


def test_names_that_came_late_in_1_x():
    spec = tf.keras.layers.InputSpec(shape=(None, 3), axes={-1: 3})
    assert tf.keras.layers.InputSpec.from_config(spec.get_config()).get_config() == spec.get_config()
    assert spec.get_config() == {"dtype": None, "shape": (None, 3), "ndim": 2, "max_ndim": None, "min_ndim": None, "axes": {-1: 3}}
    assert tf.GraphKeys.TRAINABLE_RESOURCE_VARIABLES == "trainable_resource_variables"
    assert tf.estimator.RunConfig().experimental_max_worker_delay_secs is None
    with pytest.raises(ValueError, match="only supported in eager mode"):
        tf.ragged.constant([[1]]).to_list()
    none = tf.data.experimental.Optional.none_from_structure(value_structure=tf.TensorSpec([], tf.int32))
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -2)
    with tf.Session() as session:
        assert not session.run(none.has_value())
        session.run(table.insert_or_assign([1, 2], [3, 4]))
        session.run(table.insert_or_assign([2], [5]))
        assert session.run(table.lookup(tf.constant([1, 2, 3], tf.int64))).tolist() == [3, 5, -1]
        session.run(tf.train.Scaffold.default_local_init_op())


def test_the_area_below_a_curve_of_precision():
    area = tf.keras.metrics.AUC(num_thresholds=3, curve="PR")
    area.update_state([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.8])
    made = area.interpolate_pr_auc()
    with tf.Session() as session:
        session.run([v.initializer for v in area.variables])
        session.run(area.update_state([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.8]))
        np.testing.assert_allclose(session.run(made), session.run(area.result()))


def test_inner_names_that_programs_read():
    graph = tf.get_default_graph()
    x = tf.placeholder(tf.float32, [None, 2])
    first = tf.no_op()
    with tf.control_dependencies([first]):
        z = tf.identity(x)
    y = tf.add(x, 1.0, name="y")
    assert y._op is y.op and y._dtype == tf.float32 and y._shape.as_list() == [None, 2]
    assert y.op._inputs[0] is x and y.op._outputs[0] is y and z.op._control_inputs == [first] and y.op._graph is graph and y.op._op_def.name == "Add"
    assert graph._nodes_by_name["y"] is graph._nodes_by_id[y.op._id] is y.op
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(2), 0.5, 0.25)
    assert (cell._input_keep_prob, cell._output_keep_prob, cell._state_keep_prob) == (0.5, 0.25, 1.0)


def test_layers_around_cells_build_them():
    cell = tf.nn.rnn_cell.LSTMCell(10)
    tf.compat.v2.nn.RNNCellDropoutWrapper(cell).build((1,))
    assert cell.built and [v.name for v in cell.weights] == ["lstm_cell/kernel:0", "lstm_cell/bias:0"]


def test_what_only_resource_variables_have():
    kept, plain = (tf.get_variable(n, [2], use_resource=r) for n, r in (("kept", True), ("plain", False)))
    assert kept._handle is kept.handle and kept.handle.op.type == "VarHandleOp" and kept._cached_value is None
    assert kept._graph_element.name == "kept/Read/ReadVariableOp:0" and kept.create is kept.initializer
    assert not any(hasattr(plain, name) for name in ("handle", "_handle", "_graph_element", "_cached_value", "create"))
    with pytest.raises(AttributeError, match="plain:0 has a reference"):
        plain.handle


def test_values_of_variables_on_a_caching_device():
    far = "/job:w/device:CPU:0"
    kept, plain = (tf.get_variable(n, [2], use_resource=r, caching_device=far) for n, r in (("kept", True), ("plain", False)))
    assert kept.value() is kept._cached_value and kept.value().name == "kept/Read/Identity:0" and kept.value().device == far
    assert tf.get_default_graph().as_graph_element(kept).name == kept.to_proto().snapshot_name == "kept/Read/ReadVariableOp:0"
    assert plain.value().name == plain.to_proto().snapshot_name == "plain/read:0" and plain.value().device == far
    assert not [op.name for op in tf.get_default_graph().get_operations() if "cached" in op.name]


def test_values_of_a_scalar_summary_are_compared_with_its_tags_when_it_runs():
    made = tf.summary.scalar("a", [1.0, 1.0, 1.0])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=r"not the same shape: \[\] != \[3\] \(tag 'a'\)"):
        session.run(made)
