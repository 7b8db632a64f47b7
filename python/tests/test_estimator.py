# SPDX-License-Identifier: Apache-2.0
"""Estimators, their input functions, and columns of tables."""

import json
import os

import numpy as np
import pytest

import millrace as tf

RNG = np.random.RandomState(0)
X = RNG.randn(300, 3).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int64)
Modes = tf.estimator.ModeKeys


def model_fn(features, labels, mode, params, config):
    assert config.model_dir and mode in (Modes.TRAIN, Modes.EVAL, Modes.PREDICT)
    logits = tf.layers.dense(features["x"], 2, name="dense")
    classes = tf.argmax(logits, 1)
    if mode == Modes.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"class": classes})}
        return tf.estimator.EstimatorSpec(mode, predictions={"class": classes, "logits": logits}, export_outputs=outputs)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(params["rate"]).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, classes, loss, train_op, {"accuracy": tf.metrics.accuracy(labels, classes)})


def inputs(shuffle=False, **kwargs):
    return tf.estimator.inputs.numpy_input_fn({"x": X}, Y, shuffle=shuffle, **kwargs)


@pytest.fixture
def trained(tmp_path):
    made = tf.estimator.Estimator(model_fn, str(tmp_path / "model"), params={"rate": 0.1}, config=tf.estimator.RunConfig(tf_random_seed=1))
    return made.train(inputs(shuffle=True, num_epochs=None, batch_size=32), steps=60)


def test_training_evaluation_prediction(trained):
    first = trained.evaluate(inputs())
    assert set(first) == {"accuracy", "loss", "global_step"} and first["global_step"] == 60 and first["accuracy"] > 0.9
    again = trained.evaluate(inputs(batch_size=300), steps=1)
    assert abs(again["accuracy"] - first["accuracy"]) < 1e-6
    made = list(trained.predict(inputs()))
    assert len(made) == 300 and set(made[0]) == {"class", "logits"} and abs(np.mean([m["class"] == y for m, y in zip(made, Y)]) - first["accuracy"]) < 1e-6
    assert set(next(trained.predict(inputs(), predict_keys="class"))) == {"class"}
    assert next(trained.predict(inputs(batch_size=7), yield_single_examples=False))["logits"].shape == (7, 2)
    assert trained.get_variable_value("dense/kernel").shape == (3, 2) and "global_step" in trained.get_variable_names()
    tags = {v.tag for event in tf.train.summary_iterator(_events(os.path.join(trained.model_dir, "eval"))) for v in event.summary.value}
    assert tags == {"accuracy", "checkpoint_path", "loss"}
    apart = [[v.tag for v in event.summary.value] for event in tf.train.summary_iterator(_events(os.path.join(trained.model_dir, "eval"))) if event.summary]
    assert ["checkpoint_path"] in apart


def _events(folder):
    return os.path.join(folder, next(n for n in sorted(os.listdir(folder)) if "tfevents" in n))


def test_the_end_of_the_input_is_not_counted(trained):
    """The loss of a batch is a number that is there once, so that a step which finds no input must not count it."""
    ends = trained.evaluate(inputs(batch_size=300))["loss"]
    assert trained.evaluate(inputs(batch_size=300), steps=1)["loss"] == ends == pytest.approx(trained.evaluate(inputs(batch_size=100))["loss"], rel=1e-4)


def test_training_goes_on_where_it_stopped(trained):
    assert trained.latest_checkpoint().endswith("-60")
    trained.train(inputs(num_epochs=1, batch_size=100))
    assert trained.latest_checkpoint().endswith("-63")
    trained.train(inputs(num_epochs=None), max_steps=70).train(inputs(num_epochs=None), max_steps=65)
    assert trained.latest_checkpoint().endswith("-70")


def test_a_caller_keeps_its_graph_between_predictions(trained):
    with tf.Graph().as_default() as graph:
        for _, _ in zip(range(2), trained.predict(inputs())):
            assert tf.get_default_graph() is graph


def test_export(trained, tmp_path):
    folder = trained.export_savedmodel(str(tmp_path / "out"), tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.constant(X[:1])})).decode()
    with tf.Graph().as_default(), tf.Session() as sess:
        signature = tf.saved_model.loader.load(sess, ["serve"], folder).signature_def["serving_default"]
        made = sess.run(signature.outputs["class"].name, {signature.inputs["x"].name: X})
    assert made.tolist() == [p["class"] for p in trained.predict(inputs())]


def test_turns(tmp_path):
    made = tf.estimator.Estimator(model_fn, str(tmp_path), params={"rate": 0.1})
    results, _ = tf.estimator.train_and_evaluate(
        made, tf.estimator.TrainSpec(inputs(num_epochs=None), max_steps=4), tf.estimator.EvalSpec(inputs(), steps=None, throttle_secs=1e-3)
    )
    assert results["global_step"] == 4
    results, _ = tf.estimator.train_and_evaluate(made, tf.estimator.TrainSpec(inputs(batch_size=100)), tf.estimator.EvalSpec(inputs()))
    assert results["global_step"] == 7


def test_input_functions(tmp_path):
    x, y = np.arange(5), np.array([b"a", b"b", b"c", b"d", b"e"])
    with tf.Graph().as_default(), tf.Session() as sess:
        features, labels = tf.estimator.inputs.numpy_input_fn({"n": x, "m": x.reshape(5, 1) / 2}, y, batch_size=4, num_epochs=2, shuffle=False)()
        assert features["m"].shape.as_list() == [None, 1] and features["m"].dtype == tf.float64 and labels.dtype == tf.string
        got = [sess.run([features, labels]) for _ in range(3)]
        assert [g[0]["n"].tolist() for g in got] == [[0, 1, 2, 3], [4, 0, 1, 2], [3, 4]] and got[1][1].tolist() == [b"e", b"a", b"b", b"c"]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(labels)
        shuffled = tf.estimator.inputs.numpy_input_fn(np.arange(100), batch_size=100, shuffle=True)()
        order = sess.run(shuffled).tolist()
        assert order != sorted(order) and sorted(order) == list(range(100))
    with pytest.raises(ValueError, match="shuffle must be provided and explicitly set"):
        tf.estimator.inputs.numpy_input_fn({"x": x}, y)
    with pytest.raises(ValueError, match="mismatched"):
        tf.estimator.inputs.numpy_input_fn({"x": x}, y[:3], shuffle=False)


def test_what_a_model_function_must_answer(tmp_path):
    with pytest.raises(ValueError, match="Missing loss.*test_estimator.py"), tf.Graph().as_default():
        tf.estimator.EstimatorSpec(Modes.EVAL, predictions=tf.constant(1))
    made = tf.estimator.Estimator(lambda features, labels: None, str(tmp_path))
    with pytest.raises(ValueError, match="should return an EstimatorSpec"):
        made.train(inputs(), steps=1)
    with pytest.raises(ValueError, match="Can not provide both steps and max_steps"):
        made.train(inputs(), steps=1, max_steps=1)
    config = tf.estimator.RunConfig(save_checkpoints_steps=5)
    assert (config.save_checkpoints_secs, config.replace(save_checkpoints_secs=9).save_checkpoints_steps) == (None, None)


@pytest.mark.parametrize(
    "make,metric,bound",
    [
        (lambda c: tf.estimator.LinearClassifier(c), "accuracy", 0.95),
        (lambda c: tf.estimator.DNNClassifier([8], c), "accuracy", 0.95),
        (lambda c: tf.estimator.DNNClassifier([8], c, n_classes=3, optimizer=tf.train.AdamOptimizer(0.1), dropout=0.1), "accuracy", 0.95),
        (lambda c: tf.estimator.DNNLinearCombinedClassifier(linear_feature_columns=c, dnn_feature_columns=c, dnn_hidden_units=[4]), "auc", 0.95),
    ],
)
def test_classifiers(make, metric, bound, tmp_path):
    made = make([tf.feature_column.numeric_column("x", shape=[3])])
    made.train(inputs(shuffle=True, num_epochs=None, batch_size=32), steps=150)
    results = made.evaluate(inputs())
    assert results[metric] > bound and abs(results["loss"] / 100 - results["average_loss"]) < 0.05
    first = next(made.predict(inputs()))
    assert first["class_ids"].shape == (1,) and first["classes"][0] == b"%d" % first["class_ids"][0] and abs(first["probabilities"].sum() - 1) < 1e-5


def test_regressors_and_words_as_labels():
    columns = [tf.feature_column.numeric_column("x", shape=[3])]
    numbers = tf.estimator.inputs.numpy_input_fn({"x": X, "w": np.ones(300, np.float32)}, X.sum(1), batch_size=300, num_epochs=None, shuffle=True)
    for made in (tf.estimator.LinearRegressor(columns, weight_column="w"), tf.estimator.DNNRegressor([8], columns, optimizer="Adam")):
        made.train(numbers, steps=200)
        assert made.evaluate(numbers, steps=1)["average_loss"] < 0.5 and next(made.predict(numbers))["predictions"].shape == (1,)
    words = tf.estimator.inputs.numpy_input_fn({"x": X}, np.where(Y, "yes", "no"), num_epochs=None, shuffle=True)
    made = tf.estimator.LinearClassifier(columns, label_vocabulary=["no", "yes"])
    made.train(words, steps=100)
    assert made.evaluate(words, steps=2)["accuracy"] > 0.9 and next(made.predict(words))["classes"][0] in (b"no", b"yes")


def test_columns():
    fc = tf.feature_column
    features = {"age": [[10.0], [20.0], [35.0]], "word": [["b"], ["x"], [""]], "id": [1, 0, 7]}
    age, word = fc.numeric_column("age", normalizer_fn=lambda v: v / 10), fc.categorical_column_with_vocabulary_list("word", ["a", "b"])
    words, number = fc.categorical_column_with_vocabulary_list("words", ["a", "b"]), fc.categorical_column_with_identity("id", 3, default_value=2)
    buckets = fc.bucketized_column(fc.numeric_column("age"), [20.0, 30.0])
    ones = tf.ones_initializer()
    with tf.Graph().as_default(), tf.Session() as sess:
        features = {k: tf.constant(v) for k, v in features.items()}
        features["words"] = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["a", "b", "b"], [3, 2])
        made = {
            c.name: fc.input_layer(features, [c]) for c in (age, buckets, fc.indicator_column(word), fc.indicator_column(words), fc.indicator_column(number))
        }
        embedded = fc.input_layer(features, [fc.embedding_column(words, 2, "sum", initializer=ones)])
        linear = fc.linear_model(features, [word, buckets])
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        got = {name: value.tolist() for name, value in sess.run(made).items()}
        assert got == {
            "age": [[1], [2], [3.5]],
            "age_bucketized": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
            "word_indicator": [[0, 1], [0, 0], [0, 0]],
            "words_indicator": [[1, 1], [0, 0], [0, 1]],
            "id_indicator": [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
        }
        assert sess.run(embedded).tolist() == [[2, 2], [0, 0], [1, 1]] and sess.run(linear).tolist() == [[0]] * 3
        assert {v.op.name for v in tf.global_variables()} == {
            "input_layer_5/words_embedding/embedding_weights",
            "linear_model/word/weights",
            "linear_model/age_bucketized/weights",
            "linear_model/bias_weights",
        }
        with pytest.raises(ValueError, match="Feature missing is not in features dictionary.*test_estimator.py"):
            fc.input_layer(features, [fc.numeric_column("missing")])
        with pytest.raises(ValueError, match="wrap a categorical column with an embedding_column or indicator_column"):
            fc.input_layer(features, [word])


def test_running_a_few_times():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        count = tf.Variable(0.0)
        outputs = {"sum": tf.assign_add(count, x), "x": x}
        assert tf.contrib.learn.run_n(outputs, {x: 2.0}, n=3)[-1] == {"sum": 6, "x": 2}
        assert [r["x"] for r in tf.contrib.learn.run_feeds(outputs, [{x: 1.0}, {x: 5.0}])] == [1, 5]


def test_warm_starts(tmp_path):
    """Words that have moved begin with their old rows, new ones as the initializer says; what has another name is found by the old one."""
    (tmp_path / "old").write_text("a\nb\nc\n")
    (tmp_path / "new").write_text("c\nz\na\n")
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("words", initializer=[[1.0, 1.5], [2.0, 2.5], [3.0, 3.5]])
        tf.get_variable("before", initializer=[7.0])
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "model"))
    info = tf.estimator.VocabInfo(str(tmp_path / "new"), 3, 1, str(tmp_path / "old"), backup_initializer=tf.constant_initializer(-1.0))
    with tf.Graph().as_default(), tf.Session() as sess:
        words = tf.get_variable("words", [4, 2], partitioner=tf.fixed_size_partitioner(2))
        after = tf.get_variable("after", [1])
        tf.train.warm_start(path, var_name_to_vocab_info={"words": info}, var_name_to_prev_var_name={"after": "before"})
        sess.run(tf.global_variables_initializer())
        assert sess.run(tf.convert_to_tensor(words)).tolist() == [[3, 3.5], [-1, -1], [1, 1.5], [-1, -1]] and sess.run(after).tolist() == [7]
        with pytest.raises(ValueError, match="were not used"):
            tf.train.warm_start(path, None, var_name_to_prev_var_name={"nothing": "before"})
        tf.train.warm_start(path, None, var_name_to_vocab_info={"words": info}, var_name_to_prev_var_name={"after": "before"})
    column = [tf.feature_column.numeric_column("x", shape=[3])]
    first = tf.estimator.LinearRegressor(column, str(tmp_path / "first"))
    first.train(tf.estimator.inputs.numpy_input_fn({"x": X}, X.sum(1), num_epochs=None, shuffle=True), steps=5)
    name = "linear/linear_model/x/weights"
    second = tf.estimator.LinearRegressor(column, warm_start_from=first.model_dir, optimizer=tf.train.GradientDescentOptimizer(1e-9))
    second.train(inputs(), steps=1)
    np.testing.assert_allclose(second.get_variable_value(name), first.get_variable_value(name), atol=1e-4)


def test_baseline_says_the_mean():
    made = tf.estimator.BaselineRegressor(optimizer=tf.train.GradientDescentOptimizer(1e-3))
    made.train(tf.estimator.inputs.numpy_input_fn({"x": X}, np.full(300, 4.0, np.float32), num_epochs=None, shuffle=False), steps=20)
    assert abs(next(made.predict(inputs()))["predictions"][0] - 4.0) < 0.1


def test_exporters_keep_what_they_should(tmp_path):
    exported = []

    class Fake:
        model_dir = str(tmp_path)

        def export_savedmodel(self, folder, receiver, **options):
            exported.append(options["checkpoint_path"])
            made = os.path.join(folder, "15000000%02d" % len(exported))
            os.makedirs(made)
            return made

    latest = tf.estimator.LatestExporter("latest", lambda: None, exports_to_keep=2)
    for i in range(4):
        latest.export(Fake(), str(tmp_path / "latest"), "c%d" % i, {"loss": 1.0}, False)
    assert sorted(os.listdir(tmp_path / "latest")) == ["1500000003", "1500000004"]
    best = tf.estimator.BestExporter("best", lambda: None)
    made = [best.export(Fake(), str(tmp_path / "best"), "b%d" % i, {"loss": loss}, False) for i, loss in enumerate((3.0, 5.0, 2.0))]
    assert [m is not None for m in made] == [True, False, True]
    final = tf.estimator.FinalExporter("final", lambda: None)
    assert final.export(Fake(), str(tmp_path / "final"), "f", {}, False) is None and final.export(Fake(), str(tmp_path / "final"), "f", {}, True)
    with pytest.raises(ValueError, match="must have unique names"):
        tf.estimator.EvalSpec(lambda: None, exporters=[final, tf.estimator.FinalExporter("final", lambda: None)])


def test_a_cluster_of_the_environment(monkeypatch):
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": {"chief": ["h0:1"], "worker": ["h1:1", "h2:1"], "ps": ["h3:1"]}, "task": {"type": "worker", "index": 1}})
    )
    config = tf.estimator.RunConfig()
    assert (config.task_type, config.task_id, config.master, config.is_chief) == ("worker", 1, "grpc://h2:1", False)
    assert (config.num_ps_replicas, config.num_worker_replicas, config.global_id_in_cluster) == (1, 3, 2)
    with pytest.raises(ValueError, match="must be integer"):
        config.replace(tf_random_seed=0.5)
    with pytest.raises(NotImplementedError, match="train_distribute"):
        tf.estimator.RunConfig(train_distribute=object())


def test_members_may_not_be_overridden():
    class Mine(tf.estimator.Estimator):
        def predict(self, input_fn):
            return input_fn

    with pytest.raises(ValueError, match="cannot override members of Estimator.*predict"):
        Mine(model_fn)


def test_heads_and_more_metrics():
    head = tf.contrib.estimator.regression_head(loss_fn=lambda labels, logits: tf.abs(labels - logits))
    made = tf.estimator.LinearEstimator(head, [tf.feature_column.numeric_column("x", shape=[3])], optimizer=tf.train.GradientDescentOptimizer(1e-9))
    ones = tf.estimator.inputs.numpy_input_fn({"x": X}, np.ones(300, np.float32), shuffle=False)
    made.train(ones, steps=1)
    more = tf.estimator.add_metrics(
        made, lambda labels, predictions: {"worst": tf.metrics.mean(tf.reduce_max(tf.abs(predictions["predictions"][:, 0] - labels)))}
    )
    results = more.evaluate(ones)
    assert abs(results["loss"] - 1) < 1e-3 and abs(results["worst"] - 1) < 1e-3  # a mean, of absolute differences
    with pytest.raises(ValueError, match="not expected args"):
        tf.estimator.add_metrics(made, lambda other: {})
    with pytest.raises(ValueError, match="labels shape must be|Mismatched label shape"):
        head.create_loss({}, "train", tf.zeros([2, 1]), tf.zeros([2, 3]))


class Column:
    def __init__(self, values):
        self.values, self.index = np.asarray(values), np.arange(len(values))


class Table:
    """What pandas_input_fn needs of a DataFrame."""

    def __init__(self, **columns):
        self._columns, self.columns = {name: Column(values) for name, values in columns.items()}, list(columns)
        self.index = next(iter(self._columns.values())).index

    def __contains__(self, name):
        return name in self._columns

    def __getitem__(self, name):
        return self._columns[name]


def test_tables():
    table = Table(a=[1, 2, 3], b=[4.0, 5.0, 6.0])
    with tf.Graph().as_default(), tf.Session() as sess:
        features, labels = tf.estimator.inputs.pandas_input_fn(table, Column([7, 8, 9]), batch_size=2, shuffle=False)()
        got = sess.run([features, labels])
        assert got[0]["b"].tolist() == [4, 5] and got[1].tolist() == [7, 8]
    with pytest.raises(ValueError, match="Cannot use name a for target column"):
        tf.estimator.inputs.pandas_input_fn(table, Column([7, 8, 9]), shuffle=False, target_column="a")
    with pytest.raises(ValueError, match="Index for x and y are mismatched"):
        tf.estimator.inputs.pandas_input_fn(table, Column([7, 8]), shuffle=False)


def test_heads_of_1_15():
    """Classes whose loss is a mean; link functions, weights, regularization losses and what a head is asked for."""
    logits, labels, features = tf.constant([[0.5], [-1.0]]), tf.constant([[1.0], [0.0]]), {"w": tf.constant([[1.0], [3.0]])}
    session, z, y = tf.Session(), np.array([0.5, -1.0]), np.array([1.0, 0.0])
    cross = np.log1p(np.exp(-z)) + (1 - y) * z
    w = np.array([1.0, 3.0])
    head = tf.estimator.BinaryClassHead(weight_column="w")
    assert isinstance(head, tf.estimator.Head) and head.logits_dimension == 1 and head.loss_reduction == tf.losses.Reduction.SUM_OVER_BATCH_SIZE
    np.testing.assert_allclose(session.run(head.loss(labels, logits, features)), (cross * w).sum() / 2, rtol=1e-6)
    np.testing.assert_allclose(session.run(head.loss(labels, logits, features, regularization_losses=[tf.constant(2.0)])), (cross * w).sum() / 2 + 2, rtol=1e-6)
    assert list(head.predictions(logits, ["logistic"])) == ["logistic"]
    with pytest.raises(ValueError, match="predicts"):
        head.predictions(logits, ["nothing"])
    with pytest.raises(NotImplementedError, match="create_estimator_spec"):
        head.metrics()
    logistic = tf.estimator.LogisticRegressionHead()
    np.testing.assert_allclose(session.run(logistic.loss(labels, logits)), cross.mean(), rtol=1e-6)
    np.testing.assert_allclose(session.run(logistic.predictions(logits)["predictions"])[:, 0], 1 / (1 + np.exp(-z)), rtol=1e-6)
    poisson = tf.estimator.PoissonRegressionHead(compute_full_loss=False)
    np.testing.assert_allclose(session.run(poisson.loss(labels, logits)), (np.exp(z) - y * z).mean(), rtol=1e-6)
    np.testing.assert_allclose(session.run(poisson.predictions(logits)["predictions"])[:, 0], np.exp(z), rtol=1e-6)
    many = tf.estimator.MultiClassHead(3)
    three = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    wanted = (np.log(np.exp(three).sum(1)) - three[[0, 1], [2, 0]]).mean()
    np.testing.assert_allclose(session.run(many.loss(tf.constant([[2], [0]]), tf.constant(three, tf.float32))), wanted, rtol=1e-6)
    plain = tf.estimator.RegressionHead()
    np.testing.assert_allclose(session.run(plain.loss(labels, logits)), ((z - y) ** 2).mean(), rtol=1e-6)


def test_a_head_of_1_15_trains_the_variables_it_is_given():
    tf.train.get_or_create_global_step()
    moved, kept, counted = (tf.get_variable(n, [1, 1], initializer=tf.zeros_initializer()) for n in ("moved", "kept", "counted"))
    x = tf.constant([[1.0], [2.0]])
    update = counted.assign_add([[1.0]])
    spec = tf.estimator.RegressionHead().create_estimator_spec(
        {},
        "train",
        tf.matmul(x, moved + kept),
        labels=tf.constant([[1.0], [2.0]]),
        optimizer=tf.train.GradientDescentOptimizer(0.1),
        trainable_variables=[moved],
        update_ops=[update.op],
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(spec.train_op)
        assert session.run([moved, kept, counted, tf.train.get_global_step()])[1:] == [[[0.0]], [[1.0]], 1]
        np.testing.assert_allclose(session.run(moved), [[0.5]])  # -0.1 * d/dw mean((wx - x)^2)


@pytest.mark.parametrize(
    "make, names",
    [
        (lambda c, d: tf.estimator.LinearClassifier([c], d), ["linear/linear_model/x/weights/part_0/Ftrl_1", "linear/linear_model/bias_weights/part_0/Ftrl"]),
        (lambda c, d: tf.estimator.DNNRegressor([2], [c], d), ["dnn/hiddenlayer_0/kernel/t_0/Adagrad", "dnn/logits/bias/t_0/Adagrad"]),
        (lambda c, d: tf.estimator.BaselineClassifier(d), ["baseline/bias/Ftrl", "baseline/bias/Ftrl_1"]),
    ],
)
def test_slots_are_saved_by_the_names_of_1_15(make, names, tmp_path):
    """Whose training goes on from checkpoints of TensorFlow's estimators."""
    column = tf.feature_column.numeric_column("x")
    make(column, str(tmp_path)).train(lambda: ({"x": tf.constant([[1.0], [2.0]])}, tf.constant([[0], [1]])), steps=1)
    saved = [name for name, _ in tf.train.list_variables(str(tmp_path))]
    assert set(names) <= set(saved)


def test_features_may_be_lists_of_numbers(tmp_path):
    """Each is one value, not as many inputs as it has numbers."""
    estimator = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("age"), tf.feature_column.numeric_column("size", shape=2)], str(tmp_path))
    estimator.train(lambda: ({"age": [17, 18.5], "size": [[1, 2.0], [3, 4]]}, [1.0, 0.0]), steps=2)
    assert estimator.get_variable_value("linear/linear_model/size/weights").shape == (2, 1)


def test_measures_of_keras_and_models_without_checkpoints(tmp_path):
    """An evaluation before any training is that of the first values; its event file names the checkpoint, where there is one."""

    def scaled(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
        made = features["x"] * w
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, made)
        error = tf.keras.metrics.Mean(name="error")
        error.update_state(tf.abs(labels - made))
        step = tf.group(w.assign(3.0), tf.train.get_global_step().assign_add(1))
        return tf.estimator.EstimatorSpec(mode, made, tf.reduce_sum(made), step, {"error": error, "vector": (tf.constant([1.0, 2.0]), tf.no_op())})

    def given():
        return tf.data.Dataset.from_tensor_slices(({"x": np.float32([1, 2, 3])}, np.zeros(3, np.float32))).batch(2)

    made = tf.estimator.Estimator(scaled, str(tmp_path))
    assert made.evaluate(given)["error"] == 4 and [p.item() for p in made.predict(given)] == [2, 4, 6]
    made.train(given, steps=1)
    assert made.evaluate(given, name="later")["error"] == 6
    values = {v.tag: v for e in tf.train.summary_iterator(next(iter((tmp_path / "eval_later").iterdir())).as_posix()) for v in e.summary.value}
    assert tf.make_ndarray(values["checkpoint_path"].tensor).item().decode() == made.latest_checkpoint()
    assert tf.make_ndarray(values["vector"].tensor).tolist() == [1, 2]
    receive = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None])})
    with tf.Graph().as_default(), tf.Session() as session:
        outputs = tf.saved_model.loader.load(session, ["serve"], made.export_saved_model(str(tmp_path / "out"), receive)).signature_def
        assert list(outputs["serving_default"].outputs) == ["output"]  # the predictions, where no outputs are named
    with pytest.raises(ValueError, match="update_state"):
        tf.estimator.EstimatorSpec("eval", loss=tf.constant(1.0), eval_metric_ops={"a": tf.keras.metrics.Mean()})


def test_what_input_functions_refuse():
    feed, x = tf.estimator.inputs.numpy_input_fn, np.arange(3.0)
    with pytest.raises(ValueError, match="1 duplicate keys are found in both x and y"):
        feed({"a": x}, {"a": x, "b": x}, shuffle=False)
    with pytest.raises(ValueError, match="y cannot be empty dict"):
        feed({"a": x}, {}, shuffle=False)
    with pytest.raises(TypeError, match="x must be a dict or array"):
        feed([1.0, 2.0], shuffle=False)
    with pytest.raises(ValueError, match="x cannot be an empty array"):
        feed(np.zeros([0]), shuffle=False)


def test_outputs_of_predictions_are_tensors_by_name():
    with pytest.raises(ValueError, match="value must be a Tensor"):
        tf.estimator.export.PredictOutput({"sparse": tf.SparseTensor([[0]], [1], [1])})
    with pytest.raises(ValueError, match="key must be a string"):
        tf.estimator.export.PredictOutput({1: tf.constant([0])})


def test_warm_starts_from_saved_models(tmp_path):
    def model_fn(features, mode, params):
        w = tf.get_variable("w", initializer=params["w"])
        loss = tf.reduce_sum(features["x"]) * w
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, predictions={"w": w + 0.0 * features["x"]}, loss=loss, train_op=step)

    def input_fn():
        return {"x": tf.constant([1.0])}

    def receive():
        x = tf.placeholder(tf.float32, [None])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    first = tf.estimator.Estimator(model_fn, params={"w": 42.0}).train(input_fn, steps=1)
    exported = first.export_saved_model(str(tmp_path / "e"), receive)
    second = tf.estimator.Estimator(model_fn, params={"w": 52.0}, warm_start_from=exported)
    assert second.evaluate(input_fn, steps=1)["loss"] == 42.0
    os.remove(os.path.join(exported.decode(), "variables", "variables.index"))
    with pytest.raises(ValueError, match="invalid SavedModel format"):
        tf.estimator.Estimator(model_fn, warm_start_from=exported)


def test_tasks_that_do_not_train():
    class Evaluates(tf.estimator.RunConfig):
        task_type = "evaluator"

    with pytest.raises(ValueError, match="train_and_evaluate"):
        tf.estimator.Estimator(lambda features: None, config=Evaluates()).train(lambda: None, steps=1)
