# SPDX-License-Identifier: Apache-2.0
"""Where this client once differed from TensorFlow 1.x, and the tests that keep it from differing again: the table says which test is whose,
those that stand nowhere else are below."""

import importlib

import numpy as np
import pytest

import millrace as tf

# What once went wrong: the tests (of this file where no module is named).
KEPT = {
    "a loop whose condition reads a variable that its body updates never ended": "variables_in_control_flow.a_condition_reads_what_the_body_updates",
    "loops and branches saw variables as they were before": "variables_in_control_flow.iterations_follow_each_other_where_nothing_else_orders_them "
    "variables_in_control_flow.branches_maps_and_scans_read_anew variables_in_control_flow.scatters_and_gathers_of_a_loop_see_each_other "
    "variables_in_control_flow.minimize_in_a_loop_takes_every_step",
    "constants and variables were views of arrays": "static_values.a_constant_is_not_the_array_of_the_program numpy.a_variable_is_copied",
    "tails of normal distributions": "bijectors.tails_and_their_gradients_are_finite",
    "separable convolutions with channels first": "layers.separable_convolutions_with_channels_first",
    "Flatten with channels first": "layers.flattened_with_channels_first_the_order_is_that_of_channels_last",
    "identities in parts": "an_identity_in_parts_is_one_identity",
    "a cell's bound of zero": "layers.a_bound_of_zero_clips",
    "shapes beyond 32 bits": "static_values.shapes_beyond_32_bits",
    "gamma's zeros": "random_numbers.gamma_is_never_zero",
    "exclusive cases": "one_case_alone_where_that_is_asked_for data_flow.case",
    "files that are overwritten, read and written": "files.nothing_is_overwritten_by_accident files.reading_and_writing_have_places_of_their_own",
    "relative paths of a state": "checkpoint_values.relative_paths_of_a_state_are_from_its_folder",
    "random numbers of an iterator that begins again": "data.random_numbers_begin_again_with_the_iterator",
    "a gradient alone ran what its y waits for": "a_gradient_does_not_run_what_its_y_waits_for",
    "gradients of loops behind stop_gradient": "gradients_of_loops_behind_stop_gradient",
    "gradients whose norm is infinite": "layers.gradients_clipped_where_their_norm_is_unusual",
    "shapes, types and devices that are equal": "static_values.shapes_with_unknown_sizes_equal_nothing_else static_values.types static_values.devices",
    "matrices that are singular": "singular_matrices_are_refused",
    "containers of queues, seeds": "session.queues_live_in_the_container_of_their_scope static_values.seeds",
    "names in summaries, averages of tensors": "static_values.what_summaries_say files.metadata_of_summaries_are_written_once "
    "contrib_layers.averages_of_values_alone training.averages_are_of_the_values_behind_a_step",
    "functions without a result, savers that keep all": "py_func.no_result_gives_an_operation saver.a_saver_that_keeps_all_keeps_no_list "
    "a_function_of_nothing_gives_nothing_and_a_constant_is_reported",
    "tf.test": "testing.comparisons testing.one_session_for_a_test",
    "products of unknown rank": "static_values.products_of_unknown_rank",
    "norms and contractions of unknown rank": "norms_and_contractions_of_unknown_rank static_values.products_of_unknown_rank",
    "identities of unusual shapes": "identities_that_are_not_square",
    "sums of several factors": "sums_of_several_factors static_values.an_axis_may_be_named_twice",
    "dropout of almost everything": "dropout_of_almost_everything",
    "rows of two index types, variables in parts": "control_flow_contexts.rows_of_two_index_types_meet_in_one variables_in_parts_begin_as_the_whole",
    "types and bounds of small functions": "types_and_bounds_of_small_functions static_values.small_functions session.values_of_every_type_go_round",
    "arguments as tensors": "bitmaps_with_any_header headers_arguments_and_sparse_operands data_flow.how_a_file_is_compressed_may_be_a_tensor data.caches_in_files "
    "static_values.sparse_tensors_element_by_element",
    "gradients of integers and of complex numbers": "static_values.gradients_of_integers_and_complex_numbers",
    "messages and the protobuf package": "static_values.messages_and_the_protobuf_package name_table.every_row_resolves",
    "models of models, callbacks without logs": "keras.models_of_models_train_and_know_what_is_theirs keras.masks_leave_steps_out "
    "keras.layers_of_tf_layers_and_subclasses_are_layers callbacks_without_logs_and_layers_that_are_taken_away",
    "wrong input that was accepted": "layers.unknown_data_formats_are_refused layers.penalties_of_weights static_values.small_functions "
    "later_functions.bounds_of_steps_are_of_the_type_of_what_they_bound estimator.what_a_model_function_must_answer session.default_sessions_are_left_in_order "
    "what_graphs_refuse",
    "static shapes that were lost": "static_values.shapes_that_numbers_tell static_values.static_values sparse_math.what_is_known_of_shapes",
    "names of nodes": "names_of_nodes_in_old_programs names_of_what_layers_end_in nodes_of_gathers_lookups_and_ones scopes_of_contrib_layers weights.names_and_reductions_of_losses input_pipelines.names_of_nodes recurrent.names_are_those_of_tensorflow",
}


@pytest.mark.parametrize("what", KEPT)
def test_the_table_names_tests_that_there_are(what):
    for name in KEPT[what].split():
        module, _, test = name.rpartition(".")
        where = importlib.import_module("test_" + module) if module else importlib.import_module(__name__)
        assert callable(getattr(where, "test_" + test, None)), name


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def run(*tensors, **kwargs):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        made = sess.run(tensors, **kwargs)
    return made[0] if len(made) == 1 else made


def test_an_identity_in_parts_is_one_identity():
    parts = tf.fixed_size_partitioner(3)
    for gain, initializer in ((1, tf.keras.initializers.Identity()), (2, tf.keras.initializers.Identity(gain=2.0))):
        v = tf.get_variable("v%d" % gain, [9, 5], initializer=initializer, partitioner=parts)
        np.testing.assert_array_equal(run(tf.convert_to_tensor(v)), gain * np.eye(9, 5))


def test_one_case_alone_where_that_is_asked_for():
    x = tf.placeholder(tf.int32, [])
    chosen = tf.case([(x < 2, lambda: 1), (x < 5, lambda: 2)], default=lambda: 3, exclusive=True)
    with tf.Session() as sess:
        assert [sess.run(chosen, {x: v}) for v in (3, 9)] == [2, 3]
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(chosen, {x: 0})


def test_singular_matrices_are_refused():
    for made in (
        tf.matrix_triangular_solve([[1.0, 0], [1, 0]], [[1.0], [1]]),
        tf.matrix_inverse([[1.0, 2], [2, 4]]),
        tf.matrix_solve([[1.0, 2], [2, 4]], [[1.0], [1]]),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(made)


def test_a_function_of_nothing_gives_nothing_and_a_constant_is_reported():
    assert tf.py_func(lambda: None, [], []).type == "PyFunc"
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        assert sess.run(tf.py_func(lambda: None, [], [])) is None
        sess.run(tf.constant(1.0), options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    assert metadata.step_stats.dev_stats


def test_norms_and_contractions_of_unknown_rank():
    x, y = np.random.RandomState(0).randn(2, 3, 4), np.random.RandomState(1).randn(4, 3)
    a, b = tf.placeholder(tf.float64), tf.placeholder(tf.float64)
    feeds = {a: x, b: y}
    np.testing.assert_allclose(run(tf.tensordot(a, b, [[1, 2], [1, 0]]), feed_dict=feeds), np.tensordot(x, y, [[1, 2], [1, 0]]))
    np.testing.assert_allclose(run(tf.tensordot(a, b, 1), feed_dict=feeds), np.tensordot(x, y, 1))
    for order in (1, 2, np.inf, "fro"):
        np.testing.assert_allclose(run(tf.norm(b, ord=order, axis=[0, 1]), feed_dict=feeds), np.linalg.norm(y, order))
    c = y + 1j * y[::-1]
    z = tf.placeholder(tf.complex128)
    np.testing.assert_allclose(run(tf.norm(z, ord=2, axis=[-2, -1]), feed_dict={z: c}), np.linalg.norm(c, 2))
    np.testing.assert_allclose(run(tf.norm(z), feed_dict={z: c}), np.linalg.norm(c))


def test_identities_that_are_not_square():
    for rows, columns in ((0, 3), (3, 0), (4, 2), (2, 4)):
        assert run(tf.eye(rows, columns, batch_shape=[2])).tolist() == [np.eye(rows, columns).tolist()] * 2
        m, n = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
        assert run(tf.eye(m, n), feed_dict={m: rows, n: columns}).tolist() == np.eye(rows, columns).tolist()


def test_sums_of_several_factors():
    a, b, c, d = (np.random.RandomState(i).randn(*s) for i, s in enumerate(((2, 3), (3, 4), (4, 2), (5, 2, 3))))
    for equation, factors in (("ij,jk,kl->il", (a, b, c)), ("...ij,jk->...ik", (d, b)), ("ij,jk,kl", (a, b, c)), ("ij...->...", (a,)), ("...ij,jk", (d, b))):
        np.testing.assert_allclose(run(tf.einsum(equation, *factors)), np.einsum(equation, *factors), atol=1e-12)


def test_dropout_of_almost_everything():
    x = tf.ones([100])
    assert run(tf.nn.dropout(x, 1e-10)).sum() in (0, 1e10)
    kept = tf.placeholder(tf.float32, [])
    assert run(tf.nn.dropout(x, kept), feed_dict={kept: 1.0}).sum() == 100
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicRNNCell(3), input_keep_prob=1e-10, output_keep_prob=tf.constant(1.0))
    assert np.isfinite(run(cell(tf.zeros([2, 4]), tf.zeros([2, 3]))[0])).all()


def test_variables_in_parts_begin_as_the_whole():
    whole = np.arange(12.0, dtype=np.float32).reshape(6, 2)
    v = tf.get_variable("v", initializer=tf.constant(whole), partitioner=tf.fixed_size_partitioner(3))
    joined = tf.convert_to_tensor(v)
    assert joined.op.name == "v"
    np.testing.assert_array_equal(run(joined), whole)
    scalar = tf.get_variable("s", [], partitioner=tf.variable_axis_size_partitioner(16))
    assert scalar.get_shape().ndims == 0


def test_types_and_bounds_of_small_functions():
    z = np.array([1 + 1j, -2.0])
    np.testing.assert_allclose(run(tf.angle(z)), np.angle(z))
    assert tf.angle(z).dtype == tf.float64
    assert run(tf.bincount(tf.constant([], tf.int32), maxlength=3)).tolist() in ([], [0, 0, 0])
    assert run(tf.reduce_all([]), tf.reduce_any([])) == (True, False)
    run(tf.random_uniform([2], seed=2**63 + 5))
    shape = tf.constant([0.5, 2.0])
    assert np.isfinite(run(tf.gradients(tf.random_gamma([3], shape, seed=1), shape)[0])).all()
    images = tf.ones([1, 4, 4, 1], tf.float16)
    for training in (False, True):
        made = tf.layers.batch_normalization(images * 3, training=training, name="b", reuse=training)
        assert made.dtype == tf.float16 and run(made)[0, 0, 0, 0] == pytest.approx(0 if training else 3, abs=2e-3)
    assert tf.layers.batch_normalization(tf.ones([3, 2], tf.float16), training=True).dtype == tf.float16
    image, kernel, edges = tf.ones([1, 2, 2, 1]), tf.ones([1, 1, 1, 1]), [[0, 0], [1, 1], [2, 0], [0, 0]]
    wide = tf.nn.conv2d(image, kernel, [1, 1, 1, 1], edges)
    assert run(wide)[0, :, :, 0].tolist() == np.pad(np.ones((2, 2)), [(1, 1), (2, 0)]).tolist()
    assert run(tf.nn.conv2d_backprop_input([1, 2, 2, 1], kernel, wide, [1, 1, 1, 1], edges)).tolist() == np.ones((1, 2, 2, 1)).tolist()
    assert run(tf.nn.conv2d_backprop_filter(image, [1, 1, 1, 1], wide, [1, 1, 1, 1], edges)).tolist() == [[[[4]]]]
    with pytest.raises(ValueError, match="four pairs"):
        tf.nn.conv2d(image, kernel, [1, 1, 1, 1], [[1, 1], [1, 1]])


def test_headers_arguments_and_sparse_operands():
    weights, biases = tf.ones([5, 3]), tf.zeros([5])
    losses = tf.nn.nce_loss(weights, biases, [[1], [2]], tf.ones([2, 3]), 2, 5)
    assert run(losses).shape == (2,)
    sparse = tf.SparseTensor([[0, 1]], [-3.0], [2, 2])
    assert run(tf.abs(sparse)).values.tolist() == [3] and run(tf.square(sparse)).values.tolist() == [9]
    assert run(sparse / tf.constant([[2.0, 2], [2, 2]])).values.tolist() == [-1.5]


def test_callbacks_without_logs_and_layers_that_are_taken_away():
    ended = []
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(3,)), tf.keras.layers.Dense(2), tf.keras.layers.Dense(1)])
    model.pop()
    assert model.output_shape == (None, 2)
    model.compile("sgd", "mse")
    model.fit(np.zeros((4, 3)), np.zeros((4, 2)), verbose=0, callbacks=[tf.keras.callbacks.LambdaCallback(on_train_end=lambda logs: ended.append(logs))])
    assert len(ended) == 1


def test_what_graphs_refuse():
    images = tf.ones([1, 4, 4, 1])
    for call in (
        lambda: tf.nn.max_pool(images, [1, 2, 2, 1], [1, 1, 1, 1], "SAME", data_format="invalid"),
        lambda: tf.nn.conv2d_transpose(images, tf.ones([2, 2, 1, 1]), [1, 4, 4, 1], [1, 1, 1, 1], data_format="invalid"),
        lambda: tf.contrib.layers.l2_regularizer(-1.0),
        lambda: tf.contrib.layers.l1_regularizer(-1.0),
        lambda: tf.clip_by_norm(tf.ones([2]), tf.ones([3, 2])),
        lambda: tf.one_hot([1], 3, 1.0, 0),
        lambda: tf.one_hot([1], 3, np.float64(1), 0.0),
        lambda: tf.train.piecewise_constant(tf.constant(1), [0.5], [1.0, 2.0]),
        lambda: tf.estimator.EstimatorSpec("train", loss=1.0),
        lambda: tf.estimator.RunConfig(save_checkpoints_steps=-1),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()


def test_names_of_nodes_in_old_programs():
    assert tf.contrib.layers.l1_l2_regularizer(1.0, 1.0)(tf.constant(1.0)).op.name == "l1_l2_regularizer"
    assert tf.losses.absolute_difference([1.0], [2.0], weights=2.0).op.name.endswith("/value")
    twice = tf.make_template("foo", lambda x: tf.add(x, tf.get_variable("v", []), name="add"))
    assert [twice(tf.constant(1.0)).op.name for _ in range(2)] == ["foo/add", "foo_1/add"]
    layer = tf.layers.Layer(name="my_layer")
    assert layer.add_variable("my_var", [2]).name == "my_layer/my_var:0"


def test_functions_that_give_nothing():
    called = []
    nothing = tf.py_func(called.append, [tf.constant(3)], [], stateful=False)
    assert nothing == []
    tf.Session().run(tf.py_func(called.append, [tf.constant(4)], []))
    assert called == [4]
    value = tf.py_func(lambda a: a, [tf.constant(1)], tf.int32)
    assert importlib.import_module("millrace.ops.gradients").get_gradient_function(value.op) is None


def test_what_refusals_say():
    for axis in (3, -4):
        with pytest.raises(ValueError, match=r"axis = %d not in \[-3, 3\)" % axis):
            tf.stack([tf.zeros([2, 2]), tf.zeros([2, 2])], axis=axis)
    with pytest.raises(ValueError, match="at least three-dimensional"):
        tf.image.flip_left_right(tf.zeros([2, 2]))
    lookup = importlib.import_module("millrace.ops.lookup_ops")
    with pytest.raises(TypeError, match="two integers"):
        lookup.StrongHashSpec([None, 2])
    with pytest.raises(ValueError, match="two integers"):
        lookup.StrongHashSpec([1])
    assert lookup.StrongHashSpec([np.int64(1), 2]).key == [1, 2]


def test_arguments_that_a_function_does_not_use_have_zeros_as_gradients():
    @importlib.import_module("millrace.framework.function").Defun(tf.float32, tf.float32)
    def first(x, y):
        return x * 2

    x, y, z = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.constant(5.0)
    called = first(x, tf.square(y))
    dx, dy, dz = tf.gradients(called, [x, y, z])
    assert dz is None
    dx, dy = run(dx, dy)
    assert dx.tolist() == [2, 2] and dy.tolist() == [0, 0]
    assert tf.gradients(tf.stop_gradient(called), [x, y]) == [None, None]
    assert tf.gradients(tf.square(z), [y]) == [None]


def test_a_part_of_a_graph_with_several_outputs_of_an_op_as_arguments():
    graph_to_function = importlib.import_module("millrace.framework.graph_to_function")
    matrix = tf.placeholder(tf.float32, [2, 2])
    s, u, v = tf.svd(matrix)
    total = tf.reduce_sum(s) + tf.reduce_sum(u) + tf.reduce_sum(v)
    made = graph_to_function.graph_to_function_def(tf.get_default_graph(), tf.get_default_graph().get_operations()[1:], [s, u, v], [total])
    assert len(made.signature.input_arg) == 3 and "Svd" not in {n.op for n in made.node_def}
    assert [n.name for n in made.node_def if n.op == "AddV2" or n.op == "Add"] == ["add", "add_1"]  # nodes and results may have one name
    assert made.signature.output_arg[0].name == "add_1" and made.ret["add_1"] == "add_1:z:0"


def test_names_of_what_layers_end_in():
    x = tf.placeholder(tf.float32, [4, 3])
    for made in (tf.nn.dropout(x, 0.5, name="a"), tf.nn.dropout(x, 0.5, noise_shape=[4, 1], name="b"), tf.nn.dropout(x, tf.constant(0.5), name="c")):
        assert made.op.name.endswith("/mul_1")
    variable = tf.Variable(1.0)
    moving_average = importlib.import_module("millrace.train.moving_averages").assign_moving_average
    assert [moving_average(variable, 2.0, 0.9, zero_debias=z).op.name for z in (False, True)] == ["AssignMovingAvg", "AssignMovingAvg_1"]
    layer = tf.layers.BatchNormalization(name="bn")
    layer.apply(x, training=True)
    assert [u.name for u in layer.updates] == ["bn/AssignMovingAvg", "bn/AssignMovingAvg_1"]
    for debias in (False, True):
        tf.contrib.layers.batch_norm(x, scope="norm%d" % debias, zero_debias_moving_mean=debias, updates_collections="mine%d" % debias)
        collected = tf.get_collection("mine%d" % debias)  # values, whereas `updates` are operations
        assert [u.name for u in collected] == ["norm%d/AssignMovingAvg:0" % debias, "norm%d/AssignMovingAvg_1:0" % debias]


def _made(call):
    """What a call makes: its operations as 'name:type', and the name of the result."""
    graph = tf.get_default_graph()
    before = len(graph.get_operations())
    result = call()
    return " ".join("%s:%s" % (op.name, op.type) for op in graph.get_operations()[before:]), result.op.name


def test_nodes_of_gathers_lookups_and_ones():
    x, ids, zero = tf.placeholder(tf.float32, [3, 2]), tf.placeholder(tf.int32, [4]), tf.constant(0)
    assert _made(lambda: tf.gather(x, ids, False)) == ("GatherV2/axis:Const GatherV2:GatherV2", "GatherV2")
    assert _made(lambda: tf.gather(x, ids, axis=zero, name="at")) == ("at:GatherV2", "at")
    assert tf.gather(tf.zeros([2, 3, 4]), tf.zeros([2, 3], tf.int32), batch_dims=-1).shape.as_list() == [2, 3, 3]  # the axis is -1 then, too
    table = tf.Variable(tf.zeros([3, 2]), name="table")
    held = tf.Variable(tf.zeros([3, 2]), name="held", use_resource=True)
    assert _made(lambda: tf.gather(table, ids, axis=zero, name="rows")) == ("rows:GatherV2", "rows")
    assert _made(lambda: tf.gather(held, ids, axis=zero)) == ("Gather:ResourceGather Identity:Identity", "Identity")
    found, last = _made(lambda: tf.nn.embedding_lookup(table, ids))
    assert (found, last) == ("embedding_lookup/axis:Const embedding_lookup:GatherV2 embedding_lookup/Identity:Identity", "embedding_lookup/Identity")
    at = [tf.get_default_graph().get_operation_by_name(n).colocation_groups() for n in ("embedding_lookup/axis", "embedding_lookup", last)]
    assert at == [[b"loc:@table"], [b"loc:@table"], [b"loc:@embedding_lookup/Identity"]]
    found, last = _made(lambda: tf.nn.embedding_lookup([held], ids, name="l"))
    assert (found, last) == ("l:ResourceGather l/Identity:Identity l/Identity_1:Identity", "l/Identity_1")
    found, last = _made(lambda: tf.nn.embedding_lookup([table, held], ids, name="of_two"))
    assert "of_two:ParallelDynamicStitch" in found and last == "of_two/Reshape_1"
    some = tf.placeholder(tf.float32, [None, 3])
    made = [n.partition("/")[2] for n in _made(lambda: tf.nn.sufficient_statistics(some, [0])[0])[0].split()]
    assert made[:7] == ["Shape:Shape", "Cast:Cast", "GatherV2/indices:Const", "GatherV2/axis:Const", "GatherV2:GatherV2", "Const:Const", "count:Prod"]
    assert _made(lambda: tf.ones_like(x)) == ("ones_like/Shape:Const ones_like/Const:Const ones_like:Fill", "ones_like")
    assert _made(lambda: tf.ones_like(tf.placeholder(tf.int32), name="of"))[0].split()[1:] == ["of/Shape:Shape", "of/Const:Const", "of:Fill"]


def test_scopes_of_contrib_layers():
    x = tf.placeholder(tf.float32, [2, 4])
    assert tf.contrib.layers.stack(x, tf.contrib.layers.fully_connected, [3, 2]).op.name == "Stack/fully_connected_2/Relu"
    images = tf.placeholder(tf.float32, [2, 4, 4, 1])
    assert tf.contrib.layers.repeat(images, 2, tf.contrib.layers.conv2d, 3, [3, 3]).op.name == "Repeat/convolution2d_2/Relu"
    assert tf.contrib.layers.avg_pool2d(images, [2, 2]).op.name == "AvgPool2D/AvgPool"
    assert tf.contrib.layers.max_pool2d(images, [2, 2]).op.name == "MaxPool2D/MaxPool"


def test_bitmaps_with_any_header():
    rows = [b"\x01\x02\x03\x04\x05\x06\x00\x00", b"\x07\x08\x09\x0a\x0b\x0c\x00\x00"]  # two pixels and padding each, from below
    header = b"XY" + np.array([0, 0, 56, 40, 2, 2], "<i4").tobytes() + np.array([1, 24], "<i2").tobytes() + bytes(24)
    header = header.ljust(56, b"\0")
    expected = [[[9, 8, 7], [12, 11, 10]], [[3, 2, 1], [6, 5, 4]]]
    pixels = run(tf.image.decode_bmp(header + b"".join(rows)))
    assert pixels.tolist() == expected


def test_files_named_by_a_scheme(tmp_path):
    variable = tf.Variable(3.0)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(variable.initializer)
        written = saver.save(sess, "file://%s/in/model" % tmp_path, global_step=3)
        assert written.endswith("/in/model-3") and (tmp_path / "in" / "model-3.index").exists()
        sess.run(variable.assign(0.0))
        assert tf.train.latest_checkpoint("file://%s/in" % tmp_path) == str(tmp_path / "in" / "model-3")
        saver.restore(sess, "file://%s/in/model-3" % tmp_path)
        assert sess.run(variable) == 3
        tf.train.write_graph(sess.graph, "file://%s/graphs" % tmp_path, "g.pb", as_text=False)
        read = sess.run(tf.read_file("file://%s/graphs/g.pb" % tmp_path))
        assert read == (tmp_path / "graphs" / "g.pb").read_bytes()


def test_whatever_keeps_values_takes_names_with_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home = "file://%s/with a space" % tmp_path
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [], initializer=tf.ones_initializer())
        session.run(v.initializer)
        kept = tf.train.Checkpoint(v=v)
        path = kept.save(home + "/c", session)
        kept.restore(path.replace(str(tmp_path), "file://%s" % tmp_path)).assert_consumed()
        tf.train.update_checkpoint_state(home, home + "/c-1")
        assert tf.train.latest_checkpoint(home) == path == "%s/with a space/c-1" % tmp_path
        assert [name for name, _ in tf.train.list_variables(home)] == [name for name, _ in tf.train.list_variables(path)]
        manager = tf.train.CheckpointManager(kept, home + "/managed", 2)
        assert manager.save(session=session) == "%s/with a space/managed/ckpt-2" % tmp_path
        tf.saved_model.simple_save(session, home + "/saved", {"x": v}, {"y": v + 1})
    with tf.Graph().as_default(), tf.Session() as session:
        assert tf.saved_model.loader.maybe_saved_model_directory(home + "/saved")
        tf.saved_model.loader.load(session, ["serve"], home + "/saved")
        assert session.run("add:0") == 2
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        tf.train.MonitoredTrainingSession(checkpoint_dir=home + "/run").close()
    assert (tmp_path / "with a space" / "run" / "checkpoint").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["with a space"]


def test_gradients_of_loops_behind_stop_gradient():
    """As in TensorFlow: what a loop's variable gives to the result through stop_gradient alone makes zeros, what is outside of it none."""
    x, y, z = tf.constant(3.0), tf.constant(2.0), tf.constant(1.0)
    large = lambda x, y: tf.less(x, 100.0)
    both, _ = tf.while_loop(large, lambda x, y: (tf.stop_gradient(tf.square(x) + tf.square(y)), tf.square(y)), [x, y])
    one, _ = tf.while_loop(large, lambda x, y: (tf.stop_gradient(tf.square(x)) + z, tf.square(y)), [x, y])
    of_both, of_one = tf.gradients(both, [x, y, z]), tf.gradients(one, [x, y, z])
    with tf.Session() as session:
        assert of_both[2] is None and session.run(of_both[:2]) == [0, 0]
        assert of_one[1] is None and session.run([of_one[0], of_one[2]]) == [0, 1]


def test_a_gradient_does_not_run_what_its_y_waits_for():
    """Where its shape is known; where it is not, a step has to ask y for it, in TensorFlow too."""
    x, count = tf.constant([[1.0, 2.0]]), tf.Variable(0.0)
    open_x = tf.placeholder_with_default(x, [None, 2])
    with tf.control_dependencies([count.assign_add(1.0)]):
        known, unknown = tf.identity(tf.sin(x)), tf.identity(tf.sin(open_x))
    of_known, of_unknown = tf.gradients(known, x)[0], tf.gradients(unknown, open_x)[0]
    with tf.Session() as session:
        session.run(count.initializer)
        np.testing.assert_allclose(session.run(of_known), np.cos([[1.0, 2.0]]), rtol=1e-6)
        assert session.run(count) == 0
        session.run(of_unknown)
        assert session.run(count) == 1


def test_a_fetched_variable_has_what_the_step_makes_of_it():
    v = tf.Variable([1.0, 2.0])
    total, up = v + 0.0, tf.placeholder(tf.bool, [])
    updates = {
        "in a branch": tf.cond(up, lambda: tf.group(v.assign_add([1.0, 1.0])), tf.no_op),
        "in a loop": tf.while_loop(lambda i: i < 2, lambda i: tf.tuple([i + 1], control_inputs=[v.assign_add([0.5, 0.5])])[0], [0]),
        "by an optimizer": tf.train.GradientDescentOptimizer(1.0).apply_gradients([(tf.constant([-1.0, -1.0]), v)]),
    }
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for where, update in updates.items():
            for fetched in (v, v.value()):
                sess.run(v.initializer)
                _, before, after = sess.run([update, total, fetched], {up: True})
                assert after.tolist() == [2, 3], where
                if where != "in a loop":
                    assert before.tolist() == [1, 2], where
            sess.run(v.initializer)
        assert sess.run([updates["in a branch"], v], {up: False})[1].tolist() == [1, 2]


def test_a_fetched_sum_of_a_variable_and_nothing_is_of_before_the_update():
    """Of whole numbers the library simplifies it to the variable's value. Hooks read the count of steps so, and find the one of before the step."""
    steps = tf.Variable(5)
    same, one = steps + 0, tf.ones_like(steps) * steps
    update = tf.assign_add(steps, 1)
    with tf.Session() as sess:
        sess.run(steps.initializer)
        assert sess.run([same, one, update.op, steps]) == [5, 5, None, 6]


def test_one_tensor_joined_is_named_below_its_scope():
    with tf.Graph().as_default():
        assert [tf.concat([[1]], 0).name, tf.concat([[1]], 0, name="one").name] == ["concat/concat:0", "one/one:0"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.nn.depthwise_conv2d(tf.reshape(x, [1, 4, 3, 1]), tf.ones([2, 2, 1, 2]), [1, 1, 1, 1], "SAME"),
        lambda x: tf.nn.conv2d(tf.reshape(x, [1, 4, 3, 1]), tf.ones([2, 2, 1, 1]), [1, 1, 1, 1], "SAME"),
        lambda x: tf.nn.avg_pool(tf.reshape(x, [1, 4, 3, 1]), [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
        lambda x: tf.gather(x, [1, 1]),
        lambda x: tf.gather_nd(x, [[1, 1]]),
    ],
)
def test_gradients_that_need_a_known_shape_alone_are_computed_without_a_feed(function):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4, 3])
        slope = tf.convert_to_tensor(tf.gradients(function(x), x)[0])
        np.testing.assert_array_equal(session.run(slope), session.run(slope, {x: np.ones([4, 3])}))


def test_what_is_wrong_is_said_as_tensorflow_says_it():
    for said, make in (
        (
            r"Dimensions must be equal, but are 2 and 5 for 'add' \(op: 'Add(V2)?'\) with input shapes: \[1,2,3\], \[4,5,6\].",
            lambda: tf.ones([1, 2, 3]) + tf.ones([4, 5, 6]),
        ),
        ("Dimensions must be equal, but are 2 and 3 for", lambda: tf.ones([5, 2]) + tf.ones([4, 1, 3])),
        ("must be a tensor with a single value", lambda: tf.expand_dims(1.0, [0, 1])),
        ("Requires nbins > 0", lambda: tf.histogram_fixed_width([1.0], [0.0, 1.0], nbins=-5)),
    ):
        with tf.Graph().as_default(), pytest.raises(ValueError, match=said):
            make()
    with tf.Graph().as_default(), pytest.raises(TypeError, match="Input 'y' of 'Add' Op has type float32 that does not match type int32 of argument 'x'"):
        tf.raw_ops.Add(x=tf.constant(1), y=tf.constant(1.0))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="tensor with 4 values, but the requested shape has 21"):
        session.run(tf.reshape([1.0, 2, 3, 4], tf.placeholder_with_default([3, 7], None)))


def test_imports_name_nodes_as_the_message_does_and_say_its_defaults():
    graph_def = tf.GraphDef()
    graph_def.node.add(name="A", op="Placeholder").attr["dtype"].type = 1
    graph_def.node.add(name="B", op="Complex", input=["A", "A:1"])
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Node 'B': Connecting to invalid output 1 of source node A which has 1 outputs"):
            tf.import_graph_def(graph_def)
        graph_def.node[1].input[1] = "A"
        with pytest.raises(ValueError, match=r"Invalid return output 1 of node 'A', which has 1 output\(s\)"):
            tf.import_graph_def(graph_def, return_elements=["A:1"])
        tf.import_graph_def(graph_def)
    assert graph_def.node[1].attr["T"].type == 1 and graph_def.node[1].attr["Tout"].type == 8 and graph_def.node[0].attr["shape"].shape.unknown_rank
