# SPDX-License-Identifier: Apache-2.0
"""Functions of modules inside TensorFlow (tensorflow.python.ops.*) that have no public name."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

control_flow_util, ctc_ops, image_ops, nn_ops = (names.find("python.ops." + name) for name in ("control_flow_util", "ctc_ops", "image_ops", "nn_ops"))


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


def test_kinds_of_control_flow():
    i = tf.placeholder(tf.int32, [])
    with tf.name_scope("loop"):
        tf.while_loop(lambda i: i < 10, lambda i: tf.cond(i < 5, lambda: i + 1, lambda: i + 2), [i])
    kinds = {}
    for op in tf.get_default_graph().get_operations():
        for kind in ("LoopEnter", "LoopExit", "LoopMerge", "CondMerge", "LoopSwitch", "CondSwitch"):
            if getattr(control_flow_util, "Is" + kind)(op):
                kinds.setdefault(kind, set()).add(op.name.rpartition("loop/while/")[2].partition("/")[0])
    assert kinds["LoopEnter"] >= {"Enter"} and kinds["LoopMerge"] == {"Merge"} and kinds["CondMerge"] == {"cond"}
    assert kinds["LoopSwitch"] == {"Switch"} and kinds["CondSwitch"] == {"cond"} and kinds["LoopExit"] == {"Exit"}
    inside = next(op for op in tf.get_default_graph().get_operations() if op.name.endswith("cond/add"))
    assert control_flow_util.IsInWhileLoop(inside) and not control_flow_util.IsInWhileLoop(i.op)


def test_constants_are_told_from_others():
    is_constant = names.find("python.framework.constant_op").is_constant
    constant = tf.constant(1.0)
    assert is_constant(constant) and is_constant(constant.op) and not is_constant(tf.identity(constant))


def test_dense_labels():
    labels, lengths = [[1, 2, 0, 0], [2, 1, 2, 0]], [2, 3]
    sparse = ctc_ops.dense_labels_to_sparse(labels, lengths)
    logits = tf.constant(np.random.RandomState(0).randn(6, 2, 4), tf.float32)
    dense = ctc_ops.ctc_loss_dense(labels, logits, lengths, [6, 6], blank_index=-1)
    made, ours, plain = run([sparse, dense, tf.nn.ctc_loss(sparse, logits, [6, 6])])
    assert made.dense_shape.tolist() == [2, 3] and made.values.tolist() == [1, 2, 2, 1, 2]
    np.testing.assert_allclose(ours, plain, rtol=1e-6)


def test_pools_of_fractions():
    image = np.random.RandomState(0).rand(1, 6, 6, 1).astype(np.float32)
    for ratio in (1.5, [1.5], [1.5, 1.5], [1, 1.5, 1.5, 1]):
        pooled, rows, columns = run(nn_ops.fractional_max_pool_v2(image, ratio, seed=3))
        assert pooled.shape == (1, 4, 4, 1) and pooled[0, 0, 0, 0] == image[0, : rows[1], : columns[1], 0].max()
    first, again = (nn_ops.fractional_avg_pool_v2(image, 1.5, pseudo_random=True, seed=3) for _ in range(2))
    np.testing.assert_equal(*run([first[0], again[0]]))
    assert nn_ops.gen_nn_ops.relu is names.find("python.ops.gen_nn_ops").relu


def test_glimpses_with_zeros_around():
    glimpse = run(image_ops.extract_glimpse_v2(tf.ones([1, 2, 2, 1]), [4, 4], [[0.0, 0.0]], noise="zero"))
    assert glimpse.sum() == 4


def test_conditions_of_constants_are_known():
    smart_cond = names.find("python.framework.smart_cond")
    ten, fed = tf.constant(10), tf.placeholder(tf.bool, [])

    def never():
        raise AssertionError("that branch is not taken")

    assert run(smart_cond.smart_cond(ten < 1, never, lambda: tf.constant(4))) == 4
    assert run(smart_cond.smart_case([(ten < 1, never), (ten > 5, lambda: tf.constant(3))], default=never)) == 3
    for condition in (tf.logical_not(fed), tf.random_uniform([]) < 0.5):
        assert smart_cond.smart_constant_value(condition) is None


def test_bytes_of_one_length():
    parsing_ops = names.find("python.ops.parsing_ops")
    assert run(parsing_ops.decode_raw(["ab", "c"], tf.uint8, fixed_length=3)).tolist() == [[97, 98, 0], [99, 0, 0]]
    assert run(parsing_ops.decode_raw_v1(["ab"], tf.uint8)).tolist() == [[97, 98]]


def test_normal_numbers_between_bounds():
    random_ops = names.find("python.ops.random_ops")
    drawn = run(random_ops.parameterized_truncated_normal([2, 500], stddevs=[1.0, 0.1], means=0, minvals=-1, maxvals=0.5))
    assert drawn.min() >= -1 and drawn.max() <= 0.5 and drawn[1].std() < 0.2 < drawn[0].std()


def test_functions_of_python_by_their_inner_name():
    assert run(names.find("python.ops.script_ops").eager_py_func(lambda value: value.numpy() * 2, [3], tf.int32)) == 6


def test_axes_of_softmax_that_a_step_tells():
    x, axis = np.random.RandomState(0).rand(2, 3, 4).astype(np.float32), tf.placeholder(tf.int32, [])
    along = tf.nn.softmax(x, axis=axis)
    with tf.Session() as session:
        for i in (0, 1, 2, -1, -3):
            np.testing.assert_allclose(session.run(along, {axis: i}), np.exp(x) / np.exp(x).sum(i, keepdims=True), rtol=1e-5)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(along, {axis: 5})


def test_errors_of_values_that_are_not_there():
    error = names.find("python.framework.errors").OperatorNotAllowedInGraphError
    for asked in (bool, list):
        with pytest.raises(error):
            asked(tf.placeholder(tf.float32, []))
    with pytest.raises(TypeError, match="float64 to float32"):
        tf.convert_to_tensor([tf.zeros([2]), tf.zeros([2], tf.float64)])


def test_variables_of_templates_that_are_not_trained():
    template = tf.make_template("template_of_two", lambda: (tf.get_variable("trained", []), tf.get_variable("kept", [], trainable=False)))
    trained, kept = template()
    assert template.non_trainable_variables == [kept] and template.trainable_weights == [trained]


def test_serialized_sparse_tensors():
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [1, 2], [3, 4])
    again = names.find("python.ops.sparse_ops").deserialize_sparse(tf.serialize_many_sparse(sparse), tf.int32, rank=2)
    assert again.indices.shape.as_list() == [None, 2] and run(again).indices.tolist() == [[0, 1], [2, 0]]
    split = names.find("python.ops.ragged.ragged_string_ops").strings_split_v1(["a b", "c"], result_type="RaggedTensor")
    assert run(split).to_list() == [[b"a", b"b"], [b"c"]]


def test_what_waits_for_an_operation():
    first, second, third = (tf.constant(i).op for i in range(3))
    third._add_control_inputs([first, second, second])
    assert third.control_inputs == [first, second] and first._control_outputs == [third]


def test_subscribed_tensors_are_seen_when_they_are_read():
    subscribe = names.find("python.framework.subscribe")
    seen = []

    def see(name):
        return lambda tensor: tf.py_func(lambda value: seen.append((name, int(value))), [tensor], [])

    a, b = tf.constant(1), tf.constant(2)
    total = a + b
    with tf.control_dependencies([total]):
        late = tf.constant(7)
    negative, unread = -total, tf.constant(5)
    now = subscribe.subscribe(total, see("first"))
    assert subscribe.subscribe(total, see("second")) is now is subscribe.subscribe({"x": now}, [])["x"]
    assert subscribe._is_subscribed_identity(now) and not subscribe._is_subscribed_identity(total)
    for fetched, value in ((negative, -3), (late, 7), (now, 3)):
        assert run(fetched) == value and sorted(seen) == [("first", 3), ("second", 3)]
        seen.clear()
    assert run(unread) == 5 and not seen
    two, one = tf.split([4, 3], 2)
    with tf.control_dependencies([two, one]):
        late = tf.constant(8)
    subscribe.subscribe([two, one], lambda t: see(t.op.name)(tf.squeeze(t)))
    assert run(late) == 8 and sorted(seen) == [("split", 3), ("split", 4)]
    queue = tf.FIFOQueue(1, tf.int32).queue_ref
    assert tf.as_dtype(queue.dtype).base_dtype != tf.resource or subscribe.subscribe(queue, see("queue")) is queue
    with pytest.raises(TypeError, match="has invalid type"):
        subscribe.subscribe("total", see("name"))


def test_a_variable_begins_where_its_words_were(tmp_path):
    warm_starting = names.find("python.training.warm_starting_util")
    for name, words in (("old", "apple\nbanana\n"), ("new", "banana\npear\napple\n")):
        (tmp_path / name).write_text(words)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("fruit", initializer=[[1.0], [2.0]])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        fruit = tf.get_variable("fruit", initializer=[[0.0]] * 3)
        assert warm_starting._get_var_info(fruit) == ("fruit", fruit) and warm_starting._infer_var_name([fruit]) == "fruit"
        warm_starting._warm_start_var_with_vocab(fruit, str(tmp_path / "new"), 3, str(tmp_path), str(tmp_path / "old"))
        session.run(tf.global_variables_initializer())
        assert session.run(fruit).tolist() == [[2], [0], [1]]
    with tf.Graph().as_default(), tf.Session() as session:
        parts = tf.get_variable("parts", shape=[2, 1], partitioner=lambda shape, dtype: [2, 1])
        warm_starting._warm_start_var(parts, str(tmp_path), prev_tensor_name="fruit")
        session.run(tf.global_variables_initializer())
        assert session.run(list(parts)) == [[[1]], [[2]]]


def test_rows_of_composite_tensors():
    utils = names.find("python.framework.composite_tensor_utils")
    sparse, ragged = tf.SparseTensor([[0, 1]], [1], [1, 2]), tf.ragged.constant([[[1, 2]], [], [[3], []]])
    values = run([sparse, ragged])
    for first in (sparse, ragged, *values):
        both = utils.append_composite_tensor(first, first)
        assert utils.is_composite_or_composite_value(first) and type(both) is type(first)
        both = both if any(first is value for value in values) else run(both)
        if hasattr(both, "indices"):
            assert both.indices.tolist() == [[0, 1], [1, 1]] and list(both.dense_shape) == [2, 2]
        else:
            assert both.to_list() == [[[1, 2]], [], [[3], []]] * 2
    with pytest.raises(RuntimeError):
        utils.append_composite_tensor(sparse, ragged)


def test_days_that_an_environment_adds(monkeypatch):
    compat = names.find("python.compat.compat")
    horizon = compat._FORWARD_COMPATIBILITY_HORIZON
    day = (horizon.year, horizon.month, horizon.day)
    try:
        assert not compat.forward_compatible(*day)
        monkeypatch.setenv("TF_FORWARD_COMPATIBILITY_DELTA_DAYS", "2")
        compat._update_forward_compatibility_date_number()
        assert compat.forward_compatible(*day)
        with compat.forward_compatibility_horizon(*day):
            assert not compat.forward_compatible(*day)
    finally:
        monkeypatch.delenv("TF_FORWARD_COMPATIBILITY_DELTA_DAYS")
        compat._update_forward_compatibility_date_number()


def test_a_second_session_for_shells_warns(recwarn):
    tf.InteractiveSession().close()
    first = tf.InteractiveSession()
    assert not recwarn.list
    with pytest.warns(UserWarning, match="already active"):
        second = tf.InteractiveSession()
    second.close()
    first.close()


def test_steps_by_names_of_what_is_fed_and_fetched():
    config_pb2 = names.find("core.protobuf.config_pb2")
    x, count = tf.placeholder(tf.float32), tf.Variable(0)
    options = config_pb2.CallableOptions(feed=[x.name], fetch=[(x + 1).name], target=[tf.assign_add(count, 1).op.name])
    options.run_options.trace_level = tf.RunOptions.FULL_TRACE
    with tf.Session() as session:
        session.run(count.initializer)
        step, metadata = session._make_callable_from_options(options), tf.RunMetadata()
        assert step(np.float32(1)) == [2] and step(2.0, run_metadata=metadata) == [3] and session.run(count) == 2
        assert metadata.step_stats.dev_stats
        options.tensor_connection.add(from_tensor="a:0", to_tensor="b:0")
        with pytest.raises(NotImplementedError):
            session._make_callable_from_options(options)


@pytest.mark.parametrize(
    "path, name",
    [
        ("keras.wrappers.scikit_learn", "KerasClassifier"),
        ("keras.datasets.mnist", "load_data"),
        ("keras.datasets.imdb", "get_word_index"),
        ("python.keras.datasets.cifar10", "load_data"),
        ("errors", "OutOfRangeError"),
        ("python.keras.layers.cudnn_recurrent", "CuDNNGRU"),
        ("python.keras.layers.serialization", "deserialize"),
        ("python.keras.metrics", "MeanMetricWrapper"),
        ("python.framework.tensor_conversion_registry", "register_tensor_conversion_function"),
        ("python.ops.rnn_cell_impl", "LayerRNNCell"),
        ("python.keras.api.keras.layers", "Dense"),
        ("python.keras.api._v1.keras.wrappers.scikit_learn", "KerasRegressor"),
        ("python.profiler.option_builder", "ProfileOptionBuilder"),
        ("python.profiler.model_analyzer", "profile"),
        ("python.training.distribution_strategy_context", "get_strategy"),
        ("python.estimator.keras", "model_to_estimator"),
        ("python.ops.gen_ragged_math_ops", "ragged_range"),
        ("python.ops.linalg_ops_impl", "eye"),
    ],
)
def test_modules_that_programs_import_by_their_paths(path, name):
    assert callable(getattr(names.module(path), name)) or isinstance(getattr(names.module(path), name), type)


def test_lists_and_names_of_keras():
    utils = names.module("python.keras.utils.generic_utils")
    assert utils.make_batches(10, 4) == [(0, 4), (4, 8), (8, 10)] and utils.to_list(3) == utils.to_list([3]) == [3] and utils.to_list((3,)) == [(3,)]
    assert [utils.is_all_none(x) for x in ([None, None], None, [1, None])] == [True, True, False]
    assert [utils.to_snake_case(n) for n in ("MyLayerABC2", "_Foo")] == ["my_layer_ab_c2", "private__foo"]


def test_what_is_no_cell_is_refused_by_the_name_of_its_argument():
    cells = names.module("python.ops.rnn_cell_impl")
    cells.assert_like_rnncell("cell", cells.BasicRNNCell(2))
    with pytest.raises(TypeError, match="The argument 'inner' .* %s" % cells.ASSERT_LIKE_RNNCELL_ERROR_REGEXP):
        cells.assert_like_rnncell("inner", object())


def test_event_files_without_a_graph(tmp_path):
    writer = names.module("python.summary.writer.event_file_writer").EventFileWriter(str(tmp_path), filename_suffix=".x")
    writer.add_event(tf.Event(step=3, summary=tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.0)])))
    writer.close()
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".x") and [e.step for e in tf.train.summary_iterator(str(path)) if e.summary.value] == [3]


def test_the_logits_of_a_baseline_are_its_bias():
    baseline = names.find("python.estimator.canned.baseline")
    logits = baseline._baseline_logit_fn_builder(num_outputs=2)(features={"age": [[23.0], [31.0], [1.0]]})
    with tf.variable_scope("baseline", reuse=True), tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.get_variable("bias").assign([10.0, 5.0]))
        assert session.run(logits).tolist() == [[10, 5]] * 3
