# SPDX-License-Identifier: Apache-2.0
"""Names that programs of the first years use: decoders by functions, predictors, summaries of slim, models on several devices."""

import numpy as np
import pytest

import millrace as tf

R = np.random.RandomState(9)
S = tf.contrib.seq2seq


def weights(*variables):
    """Values for variables, and these values."""
    values = [R.uniform(-1, 1, v.shape.as_list()).astype("f") for v in variables]
    for v, value in zip(variables, values):
        v.load(value)
    return values


def test_decoding_along_inputs():
    x = R.rand(2, 5, 3).astype("f")
    with tf.Graph().as_default(), tf.Session():
        cell, state = tf.nn.rnn_cell.GRUCell(4), tf.constant(R.rand(2, 4).astype("f"))
        with tf.variable_scope("d") as scope:
            outputs, last, context = S.dynamic_rnn_decoder(cell, S.simple_decoder_fn_train(state), x, [5, 3], scope=scope)
        with tf.variable_scope("d", reuse=True) as scope:
            plain, end = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), x, [5, 3], state, scope=scope)
        weights(*tf.global_variables())
        for a, b in [(outputs, plain), (last, end)]:
            np.testing.assert_allclose(a.eval(), b.eval(), rtol=1e-5)
        assert context is None
        with pytest.raises(ValueError, match="sequence_length"):
            S.dynamic_rnn_decoder(cell, S.simple_decoder_fn_train(state), x)


def test_decoding_until_the_end():
    table, start = R.uniform(-1, 1, (6, 3)).astype("f"), R.uniform(-1, 1, (2, 4)).astype("f")
    with tf.Graph().as_default(), tf.Session():
        with tf.variable_scope("out"):
            w = tf.get_variable("w", [4, 6])
        function = S.simple_decoder_fn_inference(lambda o: tf.matmul(o, w), tf.constant(start), table, 1, 0, 7, 6)
        outputs, _, _ = S.dynamic_rnn_decoder(tf.nn.rnn_cell.BasicRNNCell(4), function)
        kernel = next(v for v in tf.global_variables() if v.op.name.endswith("kernel"))
        bias = next(v for v in tf.global_variables() if v.op.name.endswith("bias"))
        out, k, b = weights(w, kernel, bias)
        made = outputs.eval()
        h, ids, done, rows = start, np.array([1, 1]), np.zeros(2, bool), []
        while not done.all():
            h = np.where(done[:, None], h, np.tanh(np.concatenate([table[ids], h], 1) @ k + b))
            logits = h @ out
            rows.append(np.where(done[:, None], 0, logits))
            ids = logits.argmax(1)
            done = done | (ids == 0) | (len(rows) > 7)
        assert made.shape[1] == len(rows)
        np.testing.assert_allclose(made, np.stack(rows, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("option", ["luong", "bahdanau"])
def test_attention_by_functions(option):
    memory, query = R.rand(2, 5, 3).astype("f"), R.rand(2, 4).astype("f")
    with tf.Graph().as_default(), tf.Session():
        keys, values, score, construct = S.prepare_attention(tf.constant(memory), option, 4)
        context = score(tf.constant(query), keys, values)
        attention = construct(tf.constant(query), keys, values)
        names = [v.op.name for v in tf.global_variables()]
        more = ["attention_score/attnW", "attention_score/attnV"] if option == "bahdanau" else []
        assert names == ["attention_keys/weights", *more, "attention_construct/weights"]
        given = weights(*tf.global_variables())
        k = memory @ given[0]
        raw = (np.tanh(k + (query @ given[1])[:, None]) * given[2]).sum(-1) if more else (k * query[:, None]).sum(-1)
        share = np.exp(raw) / np.exp(raw).sum(-1, keepdims=True)
        want = (share[..., None] * memory).sum(1)
        np.testing.assert_allclose(context.eval(), want, rtol=1e-4)
        np.testing.assert_allclose(attention.eval(), np.concatenate([query, want], 1) @ given[-1], rtol=1e-4)
        state, x = tf.constant(R.rand(2, 4).astype("f")), R.rand(2, 6, 3).astype("f")
        train = S.attention_decoder_fn_train(state, keys, values, score, construct)
        greedy = S.attention_decoder_fn_inference(None, state, keys, values, score, construct, R.rand(4, 3).astype("f"), 1, 0, 5, 4)
        with tf.variable_scope("d") as scope:
            outputs, _, _ = S.dynamic_rnn_decoder(tf.nn.rnn_cell.GRUCell(4), train, x, [6, 2], scope=scope)
            scope.reuse_variables()
            free, _, _ = S.dynamic_rnn_decoder(tf.nn.rnn_cell.GRUCell(4), greedy, scope=scope)
        weights(*tf.global_variables())
        made = outputs.eval()
        assert made.shape == (2, 6, 4) and not made[1, 2:].any() and made[0].any() and free.eval().shape[::2] == (2, 4)
        with pytest.raises(ValueError, match="Unknown attention option"):
            S.prepare_attention(tf.constant(memory), "other", 4)


def test_predictors(tmp_path):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [2], initializer=tf.constant_initializer([2.0, 3.0]))
        y = tf.reduce_sum(features["x"] * w, 1)
        step = tf.assign_add(tf.train.get_global_step(), 1)
        loss = tf.reduce_sum(y) * 0 if labels is None else tf.losses.mean_squared_error(labels, y)
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": y})}
        return tf.estimator.EstimatorSpec(mode, {"y": y}, loss, step, export_outputs=outputs)

    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    made = tf.estimator.Estimator(model_fn, str(tmp_path / "m"))
    made.train(tf.estimator.inputs.numpy_input_fn({"x": x}, x[:, 0], shuffle=False), steps=1)

    def receiver():
        given = {"x": tf.placeholder(tf.float32, [None, 2])}
        return tf.estimator.export.ServingInputReceiver(given, given)

    folder = made.export_savedmodel(str(tmp_path / "e"), receiver)
    folder = folder.decode() if isinstance(folder, bytes) else folder
    P = tf.contrib.predictor
    for predict in (P.from_saved_model(folder), P.from_estimator(made, receiver)):
        assert predict({"x": x})["y"].tolist() == [8.0, 18.0]
        assert sorted(predict.feed_tensors) == ["x"] and sorted(predict.fetch_tensors) == ["y"] and predict.graph is predict.session.graph
        with pytest.raises(ValueError, match="unexpected keys"):
            predict({"z": x})
    tensors = P.from_saved_model(folder).feed_tensors["x"].name, P.from_saved_model(folder).fetch_tensors["y"].name
    assert P.from_saved_model(folder, input_names={"a": tensors[0]}, output_names={"b": tensors[1]})({"a": x})["b"].tolist() == [8.0, 18.0]
    with pytest.raises(ValueError, match="Available signatures"):
        P.from_saved_model(folder, "none")
    assert (
        tf.contrib.saved_model.python.saved_model.reader.read_saved_model(folder).meta_graphs[0].signature_def["serving_default"].inputs["x"].name == tensors[0]
    )


def test_predictors_of_models_that_were_not_trained():
    from millrace.contrib.predictor_testing import get_arithmetic_estimator, get_arithmetic_input_fn

    P = tf.contrib.predictor
    core, learn = get_arithmetic_estimator(), get_arithmetic_estimator(core=False)
    serving, inputs = get_arithmetic_input_fn(), get_arithmetic_input_fn(core=False)
    assert P.from_estimator(core, serving)({"x": 3.0, "y": 4.0}) == {"sum": 7.0}
    assert P.from_estimator(core, serving, "product")({"x": 3.0}) == {"product": 0.0}
    assert P.from_contrib_estimator(learn, inputs, output_alternative_key="difference")({"x": 3.0, "y": 4.0}) == {"difference": -1.0}
    with pytest.raises(TypeError, match="use from_contrib_estimator"):
        P.from_estimator(learn, serving)
    with pytest.raises(TypeError, match="use from_estimator"):
        P.from_contrib_estimator(core, inputs)
    with pytest.raises(ValueError, match="Please specify a default_output_alternative"):
        P.from_contrib_estimator(learn, inputs)


def test_tables_of_predictors(tmp_path):
    def model_fn(features, labels, mode):
        table = tf.contrib.lookup.index_table_from_tensor(["a", "b"])
        y = table.lookup(features["x"])
        return tf.estimator.EstimatorSpec(mode, {"y": y}, export_outputs={"y": tf.estimator.export.PredictOutput({"y": y})})

    predict = tf.contrib.predictor.from_estimator(
        tf.estimator.Estimator(model_fn, str(tmp_path)), tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.string, [None])})
    )
    assert predict({"x": ["b", "a"]})["y"].tolist() == [1, 0]


def test_models_on_one_device(tmp_path):
    E = tf.contrib.estimator

    def model_fn(features, labels, mode, params):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.losses.mean_squared_error(labels, features["x"] * w)
        train = E.TowerOptimizer(lambda: tf.train.GradientDescentOptimizer(params["rate"])).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, {"y": w}, loss, train)

    x = np.ones([4], np.float32)
    made = tf.estimator.Estimator(E.replicate_model_fn(model_fn), str(tmp_path), params={"rate": 0.25})
    made.train(tf.estimator.inputs.numpy_input_fn({"x": x}, 2 * x, batch_size=4, shuffle=False, num_epochs=None), steps=2)
    assert abs(made.get_variable_value("w") - 1.5) < 1e-6
    assert tf.python.training.device_setter._RoundRobinStrategy(num_tasks=2)(None) == 0


def test_summaries_of_slim(capfd):
    for space in (tf.contrib.slim.summaries, tf.contrib.layers.summaries):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.constant([0.0, 2.0, 0.0, 3.0], name="x")
            space.add_histogram_summary(x, prefix="h")
            space.add_zero_fraction_summary(x)
            space.add_scalar_summaries([tf.constant(1.5, name="s")], prefix="p")
            space.add_image_summary(tf.zeros([1, 2, 2, 3]), "i")
            made = tf.Summary.FromString(session.run(tf.summary.merge_all()))
            values = {v.tag: v.simple_value for v in made.value}
            assert values["p/s"] == 1.5 and values["x/Fraction_of_Zero_Values"] == 0.5 and "h/x" in values and len(made.value) == 4
            printed = space.add_scalar_summary(x[1], "shown", print_summary=True)
            session.run(printed)
            assert "shown" in capfd.readouterr().err


def test_old_places():
    assert tf.SequenceExample is tf.train.SequenceExample and tf.gfile.OpenFast is tf.gfile.FastGFile
    assert tf.contrib.slim.learning.supervisor.Supervisor is tf.train.Supervisor
    assert tf.index_table_from_file is tf.contrib.lookup.index_table_from_file
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0])
        session.run(tf.init_variable(v, lambda shape, dtype: tf.fill(shape, tf.cast(4, dtype))))
        assert session.run(v).tolist() == [4, 4]
    assert tf.RecordInput is tf.python.ops.data_flow_ops.RecordInput
