# SPDX-License-Identifier: Apache-2.0
"""tf.profiler.profile: parameters, operations and times by scopes, types and lines; tf.estimator.experimental's hooks."""

import numpy as np
import pytest

import millrace as tf

P, Builder = tf.profiler, tf.profiler.ProfileOptionBuilder


@pytest.fixture
def model():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [8, 10, 10, 3])
        with tf.variable_scope("a"):
            y = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu, name="c")
        loss = tf.reduce_mean(tf.layers.dense(tf.layers.flatten(tf.layers.max_pooling2d(y, 2, 2)), 5, name="d"))
        tf.Variable(np.zeros(7, "f"), trainable=False)
        yield graph, x, loss


def test_parameters_by_scopes(model, capsys):
    graph = model[0]
    root = P.profile(graph, options=Builder.trainable_variables_parameter())
    assert root.total_parameters == 3 * 3 * 3 * 4 + 4 + 64 * 5 + 5
    assert [(c.name, c.total_parameters) for c in root.children] == [("a", 112), ("d", 325)]
    assert [c.name for c in root.children[0].children[0].children] == ["a/c/bias", "a/c/kernel"]
    assert "a/c/kernel (108 params/108 params)" in capsys.readouterr().out
    assert tf.contrib.tfprof.model_analyzer.print_model_analysis(graph).total_parameters == 437
    options = Builder(Builder.trainable_variables_parameter()).with_node_names(start_name_regexes=["a.*"]).with_empty_output().build()
    capsys.readouterr()
    assert P.profile(graph, options=options).total_parameters >= 112 and capsys.readouterr().out == ""
    hidden = Builder(Builder.trainable_variables_parameter()).with_node_names(hide_name_regexes=["d.*"]).with_min_parameters(110).with_empty_output().build()
    assert [c.name for c in P.profile(graph, options=hidden).children] == ["a"]


def test_operations_by_types(model):
    graph, _, loss = model
    tf.gradients(loss, tf.trainable_variables())
    root = P.profile(graph, cmd="op", options=Builder(Builder.float_operation()).with_empty_output().build())
    by = {c.name: c.float_ops for c in root.children}
    convolution = 2 * 8 * 8 * 8 * 4 * 27
    assert by["Conv2D"] == convolution and by["MaxPool"] == 8 * 4 * 4 * 4 * 4 and by["BiasAdd"] == 8 * 8 * 8 * 4 + 40
    assert by["MatMul"] == 2 * 8 * 64 * 5 * 3 and by["MaxPoolGrad"] == 8 * 4 * 4 * 4 * 5  # forward, and both gradients
    assert by["Conv2DBackpropFilter"] == 2 * (8 * 10 * 10 * 3) * (27 * 4) // 3
    assert root.total_float_ops == sum(by.values()) and [c.name for c in root.children][0] == max(by, key=by.get)


def test_times_of_a_step(model, tmp_path):
    graph, x, loss = model
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        metadata = tf.RunMetadata()
        session.run(loss, {x: np.ones((8, 10, 10, 3))}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    options = Builder(Builder.time_and_memory()).with_file_output(str(tmp_path / "out")).build()
    by_type = P.profile(graph, metadata, cmd="op", options=options)
    assert by_type.total_exec_micros == sum(c.exec_micros for c in by_type.children) > 0
    assert "op view" in (tmp_path / "out").read_text()
    P.profile(graph, metadata, cmd="op", options=dict(options, output="none", dump_to_file=str(tmp_path / "dumped")))
    assert (tmp_path / "dumped").read_text() == (tmp_path / "out").read_text()
    by_line = P.profile(graph, metadata, cmd="code", options=options)
    assert all(c.name.startswith("test_model_analyzer.py:") for c in by_line.children) and by_line.total_exec_micros == by_type.total_exec_micros
    profiler = P.Profiler(graph)
    profiler.add_step(3, metadata)
    one = profiler.profile_graph(Builder(options).with_step(3).build())
    assert max(c.run_count for c in one.children) == 1
    profiler.profile_name_scope(Builder(options).with_timeline_output(str(tmp_path / "line")).build())
    assert "traceEvents" in (tmp_path / "line").read_text()
    reports = P.advise(graph, metadata).checkers["ExpensiveOperationChecker"].reports
    assert len(reports) == 5 and "% of the step" in reports[0]
    with pytest.raises(ValueError, match="no checker"):
        P.advise(graph, options={"Nothing": {}})
    with pytest.raises(ValueError, match="unknown cmd"):
        P.profile(graph, cmd="nothing")
    P.write_op_log(graph, str(tmp_path))
    log = P.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    (entry,) = [e for e in log.log_entries if e.name == "a/c/Conv2D"]
    assert entry.float_ops == 110592 and log.id_to_string[entry.code_def.traces[-1].file_id].endswith("test_model_analyzer.py")


def test_hooks_of_estimators(tmp_path):
    E = tf.estimator.experimental
    x = np.random.RandomState(0).rand(100).astype("f")
    y = (3 * x + 1).astype("f")
    columns = [tf.feature_column.numeric_column("x")]

    def training():
        return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(10)

    evaluation = tf.estimator.inputs.numpy_input_fn({"x": x}, y, shuffle=False, batch_size=50)
    estimator = tf.estimator.LinearRegressor(columns, str(tmp_path))
    often = dict(run_every_secs=None, run_every_steps=5)
    estimator.train(
        training,
        steps=60,
        hooks=[E.InMemoryEvaluatorHook(estimator, evaluation, every_n_iter=20), E.stop_if_lower_hook(estimator, "loss", 1e9, min_steps=30, **often)],
    )
    stopped = int(estimator.get_variable_value("global_step"))
    assert 40 <= stopped < 60
    losses = [
        sum(e.summary.value[0].HasField("simple_value") for e in tf.train.summary_iterator(str(p)) if e.HasField("summary"))
        for p in (tmp_path / "eval").iterdir()
    ]
    assert sum(losses) == 4  # at 0, 20, 40 and the end
    never = [E.stop_if_higher_hook(estimator, "loss", 1e9, **often), E.stop_if_no_decrease_hook(estimator, "loss", 1000, **often)]
    estimator.train(training, steps=10, hooks=never)
    assert int(estimator.get_variable_value("global_step")) == stopped + 10
    estimator.train(training, steps=30, hooks=[E.stop_if_no_increase_hook(estimator, "loss", 20, **often)])  # the loss never grew
    assert int(estimator.get_variable_value("global_step")) < stopped + 40
    now = int(estimator.get_variable_value("global_step"))
    estimator.train(training, hooks=[E.make_stop_at_checkpoint_step_hook(estimator, now + 3)])
    assert int(estimator.get_variable_value("global_step")) == now + 3
    with pytest.raises(ValueError, match="Only one of"):
        E.make_early_stopping_hook(estimator, lambda: True, 1, 1)


def test_parts_of_estimators():
    E = tf.estimator.experimental
    columns = [tf.feature_column.numeric_column("x")]
    with tf.Graph().as_default():
        deep = E.dnn_logit_fn_builder(3, [4], columns)
        linear = E.linear_logit_fn_builder(2, columns)
        features = {"x": tf.ones([5, 1])}
        assert E.call_logit_fn(deep, features, "train", {}, None).shape.as_list() == [5, 3]
        with tf.variable_scope("linear"):
            assert E.call_logit_fn(linear, features, "train", {}, None).shape.as_list() == [5, 2]
        with pytest.raises(ValueError, match="logit_fn should return a Tensor"):
            E.call_logit_fn(lambda features: 3, features, "train", {}, None)
        receiver = E.build_raw_supervised_input_receiver_fn({"x": tf.ones([5, 2])}, tf.ones([5], tf.int64))()
        assert receiver.features["x"].shape.as_list() == [None, 2] and receiver.labels.dtype == tf.int64 and set(receiver.receiver_tensors) == {"x", "label"}
        with pytest.raises(ValueError, match="distinct keys"):
            E.build_raw_supervised_input_receiver_fn({"x": tf.ones([5])}, {"x": tf.ones([5])})()
