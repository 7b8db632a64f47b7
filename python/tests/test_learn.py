# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn: estimators with fit and predict, metrics, monitors and experiments."""

import itertools
import json

import numpy as np
import pytest

import millrace as tf

learn, layers = tf.contrib.learn, tf.contrib.layers
RNG = np.random.RandomState(0)
X = RNG.randn(200, 2)
Y = (X[:, 0] > X[:, 1]).astype(np.int64)
NUMBERS = X[:, 0] - 2 * X[:, 1]


def columns():
    made = learn.infer_real_valued_columns_from_input(X)
    assert [(c.name, c.dimension) for c in made] == [("", 2)]
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda: learn.LinearClassifier(columns(), optimizer=tf.train.AdamOptimizer(0.1)),
        lambda: learn.DNNClassifier([10], columns(), n_classes=2, optimizer="Adam", gradient_clip_norm=5.0),
        lambda: learn.DNNClassifier([10], columns(), n_classes=3, optimizer=tf.train.AdamOptimizer(0.05), dropout=0.1),
        lambda: learn.DNNLinearCombinedClassifier(
            linear_feature_columns=columns(),
            dnn_feature_columns=columns(),
            dnn_hidden_units=[4],
            dnn_optimizer=tf.train.AdamOptimizer(0.05),
            fix_global_step_increment_bug=True,
        ),
    ],
)
def test_classifiers_of_arrays(make):
    made = make()
    assert made.fit(X, Y, batch_size=50, steps=150) is made
    results = made.evaluate(X, Y, batch_size=64)
    assert results["accuracy"] > 0.9 and results["global_step"] == 150 and results["loss"] < 1  # a mean, not a sum
    classes = list(made.predict(X))
    assert len(classes) == 200 and np.mean(classes == Y) == pytest.approx(results["accuracy"])
    assert np.array_equal(made.predict(X, as_iterable=False), classes) and classes[0].shape == ()
    probabilities = made.predict_proba(X, as_iterable=False)
    assert np.array_equal(probabilities.argmax(1), classes) and np.allclose(probabilities.sum(1), 1)
    assert set(made.predict(X[:2], outputs=["classes", "logits"], as_iterable=False)) == {"classes", "logits"}


def test_regressors_of_arrays():
    for made in (
        learn.LinearRegressor(columns(), optimizer=tf.train.AdamOptimizer(0.2)),
        learn.DNNRegressor([20], columns(), optimizer=tf.train.AdamOptimizer(0.05)),
    ):
        made.fit(X, NUMBERS, steps=200)
        assert made.evaluate(X, NUMBERS)["loss"] < 0.3
        scores = made.predict(X, as_iterable=False)
        assert scores.shape == (200,) and np.mean((scores - NUMBERS) ** 2) < 0.3
        assert np.allclose(list(made.predict_scores(X, batch_size=7)), scores, atol=1e-5)
    assert learn.SKCompat(made).score(X, NUMBERS)["loss"] < 0.3


def test_models_that_are_made_already_are_estimators():
    for name in "DNNClassifier DNNRegressor LinearClassifier LinearRegressor DNNLinearCombinedClassifier DNNEstimator LinearEstimator".split():
        assert issubclass(getattr(learn, name), learn.Estimator), name


def test_input_functions_that_never_end():
    table = {"age": [20.0, 30.0, 40.0, 50.0], "city": ["Rome", "Oslo", "Rome", "Bonn"]}

    def inputs():
        return {k: tf.constant(v) for k, v in table.items()}, tf.constant([0, 1, 0, 1])

    city = layers.sparse_column_with_keys("city", ["Rome", "Oslo", "Bonn"])
    wide = [city, layers.crossed_column([city, layers.bucketized_column(layers.real_valued_column("age"), [25.0, 45.0])], 100)]
    deep = [layers.real_valued_column("age", normalizer=lambda v: v / 50), layers.embedding_column(city, 4)]
    for made in (
        learn.LinearClassifier(wide),
        learn.DNNClassifier([8], deep, optimizer=tf.train.AdamOptimizer(0.05)),
        learn.DNNLinearCombinedClassifier(linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[8]),
    ):
        made.fit(input_fn=inputs, steps=60)
        assert made.evaluate(input_fn=inputs, steps=1)["accuracy"] == made.evaluate(input_fn=inputs)["accuracy"] == 1
        assert list(made.predict(input_fn=lambda: inputs()[0])) == [0, 1, 0, 1]
    assert [c.name for c in learn.infer_real_valued_columns_from_input_fn(lambda: ({"a": tf.zeros([3])}, None))] == ["a"]


def test_words_as_labels_and_weights():
    words, weights = np.where(Y, "yes", "no"), np.where(Y, 1.0, 0.0)
    made = learn.LinearClassifier([layers.real_valued_column("x", 2)], n_classes=3, label_keys=["no", "yes", "both"], weight_column_name="w")
    made.fit({"x": X, "w": weights}, words, batch_size=50, steps=100)
    assert np.mean(np.array(list(made.predict({"x": X, "w": weights}))) == b"yes") > 0.8  # the others did not count


def model_fn(features, targets, mode, params):
    logits = layers.fully_connected(features, 3, activation_fn=None, scope="dense")
    predictions = {"class": tf.argmax(logits, 1), "prob": tf.nn.softmax(logits)}
    if mode == learn.ModeKeys.INFER:
        return predictions, None, None
    loss = tf.contrib.losses.softmax_cross_entropy(logits, tf.one_hot(targets, 3))
    return predictions, loss, layers.optimize_loss(loss, tf.contrib.framework.get_global_step(), params["rate"], "Adam")


def test_a_model_of_ones_own():
    made = learn.Estimator(model_fn, params={"rate": 0.1})
    compat = learn.SKCompat(made).fit(X, Y, steps=100)
    metrics = {
        "right": learn.MetricSpec(tf.contrib.metrics.streaming_accuracy, prediction_key="class"),
        ("share", "class"): tf.contrib.metrics.streaming_accuracy,
        "mean": learn.MetricSpec(lambda predictions, labels: tf.reduce_mean(tf.cast(tf.equal(predictions, labels), tf.float32)), "class"),
    }
    results = made.evaluate(X, Y, metrics=metrics)
    assert results["right"] > 0.9 and results["share"] == results["right"] == pytest.approx(results["mean"])
    assert np.mean(compat.predict(X)["class"] == Y) == pytest.approx(results["right"]) and compat.predict(X, batch_size=30)["prob"].shape == (200, 3)
    assert set(made.evaluate(X, Y)) == {"loss", "global_step"}  # the metrics were for that call alone
    assert "dense/weights" in made.get_variable_names()
    assert isinstance(next(made.predict(X)), dict)


def test_model_fn_ops_and_other_arguments():
    def model(features, labels, mode):
        made = features["x"] * tf.get_variable("w", [1], initializer=tf.zeros_initializer())
        assert labels.get_shape().as_list() == [None]  # of [8, 1], also where nobody gives them
        loss = tf.reduce_mean(tf.square(made[:, 0] - labels))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return learn.ModelFnOps(mode, {"y": made}, loss, train, eval_metric_ops={"error": tf.metrics.mean_absolute_error(labels, made[:, 0])})

    made = learn.Estimator(model, feature_engineering_fn=lambda x, y: ({"x": x * 2}, y), config=learn.RunConfig(tf_random_seed=1, save_checkpoints_steps=10))
    ones, sixes = np.ones([8, 1], np.float32), np.full([8, 1], 6.0, np.float32)
    made.fit(ones, sixes, steps=100)
    assert np.allclose(next(made.predict(ones))["y"], 6, atol=1e-2)
    assert made.get_variable_value("w") == pytest.approx(3, abs=1e-3) and made.evaluate(ones, sixes)["error"] < 1e-2
    assert (made.config.tf_random_seed, made.config.save_checkpoints_steps, made.config.save_checkpoints_secs) == (1, 10, None)
    assert made.config.session_config is None and made.config.tf_config.gpu_options.per_process_gpu_memory_fraction == 1


def test_iterators_of_examples_and_engineered_labels():
    def model(features, labels):
        assert features.dtype == tf.float64 and features.shape.as_list() == [None, 2]  # as they came
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(features, 1) * tf.get_variable("w", [], tf.float64) - labels))
        return features, loss, tf.train.AdamOptimizer(0.3).minimize(loss, tf.train.get_global_step())

    made = learn.Estimator(model, feature_engineering_fn=lambda x, y: (x, None if y is None else 2 * y))
    rows = np.arange(10.0).reshape(5, 2)
    made.fit(iter(rows), (row.sum() for row in rows), batch_size=2, steps=10)
    assert made.get_variable_value("global_step") == 3  # the rows were read once
    most = {"most": learn.MetricSpec(lambda predictions, labels: tf.reduce_max(labels))}
    results = made.evaluate(iter(rows), iter([np.float64(3.0)] * 5), metrics=most)
    assert results["most"] == 6.0
    with pytest.raises(ValueError, match="Both x and y should be iterators"):
        made.fit(iter(rows), rows, steps=1)


def test_metric_specs(monkeypatch):
    with tf.Graph().as_default(), tf.Session() as session:
        labels, predictions = tf.constant([1.0, 0.0, 1.0]), {"a": tf.constant([1.0, 1.0, 1.0]), "b": tf.constant([0.0, 0.0, 1.0])}
        weighted = learn.MetricSpec(tf.metrics.accuracy, "a", weight_key="w").create_metric_ops({"w": tf.constant([1.0, 3.0, 0.0])}, labels, predictions)
        by_place = learn.MetricSpec(lambda p, labels: (p - labels, p), "b").create_metric_ops(None, labels, predictions)
        session.run(tf.local_variables_initializer())
        assert session.run(weighted[1]) == 0.25 and session.run(by_place[0]).tolist() == [-1, 0, 0]
        for spec, error, message in (
            (learn.MetricSpec(tf.metrics.accuracy), ValueError, "without specified prediction_key"),
            (learn.MetricSpec(tf.metrics.accuracy, "c"), KeyError, "Key 'c' missing from"),
            (learn.MetricSpec(tf.metrics.accuracy, "a", "l"), ValueError, "label_key specified requires labels dict"),
        ):
            with pytest.raises(error, match=message):
                spec.create_metric_ops({"w": labels}, labels, predictions)
    assert "prediction_key=a" in str(learn.MetricSpec(tf.metrics.accuracy, "a"))


def test_a_monitor_stops_training():
    made = learn.DNNClassifier([5], columns(), config=learn.RunConfig(save_checkpoints_steps=10), optimizer=tf.train.GradientDescentOptimizer(0.0))
    monitor = learn.monitors.ValidationMonitor(
        X,
        Y,
        every_n_steps=10,
        early_stopping_rounds=30,
        check_interval_secs=None,
        metrics={"c": learn.MetricSpec(tf.contrib.metrics.streaming_accuracy, "classes")},
    )
    made.fit(X, Y, steps=1000, batch_size=20, monitors=[monitor, learn.monitors.StopAtStep(last_step=900)])
    step = made.evaluate(X, Y)["global_step"]
    assert monitor.early_stopped and 30 < step < 200 and monitor.best_step <= step - 30


def test_experiments(tmp_path):
    def inputs():
        return tf.constant(X, tf.float32), tf.constant(Y)

    def make(folder):
        return learn.Experiment(
            learn.Estimator(model_fn, folder, params={"rate": 0.1}),
            inputs,
            inputs,
            train_steps=40,
            eval_steps=1,
            min_eval_frequency=15,
            eval_metrics={"right": learn.MetricSpec(tf.contrib.metrics.streaming_accuracy, "class")},
            eval_delay_secs=0,
        )

    results, _ = learn.learn_runner.run(make, str(tmp_path))
    assert results["global_step"] == 40 and results["right"] > 0.8
    results = learn.learn_runner.run(make, str(tmp_path), schedule="evaluate")
    assert results["global_step"] == 40
    with pytest.raises(ValueError, match="Must set value for `output_dir` or `run_config`"):
        learn.learn_runner.run(make)
    with pytest.raises(ValueError, match="non-existent task fly"):
        learn.learn_runner.run(make, str(tmp_path), schedule="fly")


def test_experiments_train_once(tmp_path, monkeypatch):
    seen = []

    def model(features, labels, mode):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        return tf.estimator.EstimatorSpec(mode, {"v": v}, v + 1.0, tf.group(v.assign_add(1.0), tf.train.get_global_step().assign_add(1)))

    def watched(method, told):
        def call(self, **kwargs):
            seen.append(told(kwargs))
            return method(self, **kwargs)

        return call

    E = tf.estimator.Estimator
    monkeypatch.setattr(E, "train", watched(E.train, lambda given: ("train", given["steps"], given["max_steps"])))
    monkeypatch.setattr(E, "evaluate", watched(E.evaluate, lambda given: given["name"]))
    config = tf.estimator.RunConfig(str(tmp_path), save_checkpoints_steps=2)
    made = learn.Experiment(E(model, config=config), lambda: tf.constant(1.0), lambda: tf.constant(1.0), train_steps=4, eval_steps=1)
    assert made.train_and_evaluate()[0]["global_step"] == 4 and seen[0] == ("train", None, 4) and seen.count(None) >= 2 and len(seen) == 1 + seen.count(None)
    del seen[:]
    assert made.test()["global_step"] == 5 and seen == [("train", 1, None), "one_pass"]


def test_experiments_of_programs_read_what_they_were_given(tmp_path):
    """As seq2seq's: a loop of its own, by the names that the members have in 1.x."""

    class Own(learn.Experiment):
        def turns(self):
            results = None
            while not self._has_training_stopped(results):
                self._estimator.fit(input_fn=self._train_input_fn, steps=self._train_steps_per_iteration, monitors=self._train_monitors)
                results = self._estimator.evaluate(
                    input_fn=self._eval_input_fn, steps=self._eval_steps, metrics=self._eval_metrics, name="one_pass", hooks=self._eval_hooks
                )
            return results, self._maybe_export(results), self._min_eval_frequency, self._eval_delay_secs, self._continuous_eval_throttle_secs

    def inputs():
        return tf.constant(X, tf.float32), tf.constant(Y)

    estimator = learn.Estimator(model_fn, str(tmp_path), params={"rate": 0.1})
    made = Own(estimator, inputs, inputs, train_steps=10, eval_steps=1, train_steps_per_iteration=6, min_eval_frequency=3)
    results, *rest = made.turns()
    assert results["global_step"] == 12 and rest == [[], 3, 120, 60]


def test_experiments_obey_delays(tmp_path, monkeypatch):
    def inputs():
        return tf.constant(X, tf.float32), tf.constant(Y)

    def make(folder, **more):
        estimator = learn.Estimator(model_fn, str(tmp_path / folder), params={"rate": 0.1})
        return learn.Experiment(estimator, inputs, inputs, train_steps=40, eval_steps=1, **more)

    slept, results = [], []
    monkeypatch.setattr("time.sleep", slept.append)
    made = make("a", train_steps_per_iteration=15)
    found, _ = made.continuous_train_and_eval(lambda r: results.append(r) or True)
    assert [r and r["global_step"] for r in results] == [None, 15, 30, 45] and found["global_step"] == 45 and not slept
    assert made.evaluate()["global_step"] == 45 and slept == [120]
    assert made.evaluate(delay_secs=3)["global_step"] == 45 and slept == [120, 3]

    del slept[:], results[:]
    made = make("a", eval_delay_secs=7, continuous_eval_throttle_secs=1000)
    assert made.continuous_eval()["global_step"] == 45
    assert slept[0] == 7 and len(slept) == 2 and 900 < slept[1] < 1000
    del slept[:]
    paths = []
    made.continuous_eval(0, 0, False, lambda r, path: paths.append(path) or len(paths) < 3)
    assert paths[0] is None and not slept and paths[1].endswith("model.ckpt-45")
    del slept[:]
    empty = make("b", continuous_eval_throttle_secs=50)
    assert empty.continuous_eval(delay_secs=0, continuous_eval_predicate_fn=lambda r: len(slept) < 2) is None and len(slept) == 2  # waits for a checkpoint
    made.train()
    assert len(slept) == 2
    with pytest.raises(NotImplementedError):
        make("c", delay_workers_by_global_step=True)
    with pytest.raises(ValueError, match="saving_listeners"):
        make("c", saving_listeners=[1])
    with pytest.raises(ValueError):
        make("c", train_steps_per_iteration=1.5)


def test_mistakes():
    made = learn.LinearClassifier(columns())
    for call, error, message in (
        (lambda: made.fit(X, Y, input_fn=lambda: None, steps=1), ValueError, "both input_fn and x or y"),
        (lambda: made.fit(steps=1), ValueError, "Either x or input_fn"),
        (lambda: learn.LinearClassifier(columns(), n_classes=1), ValueError, "n_classes should be greater than 1"),
        (lambda: learn.Estimator(lambda features, labels: (1, 2)).fit(X, Y, steps=1), ValueError, "please return ModelFnOps"),
        (lambda: made.predict(X), learn.NotFittedError, "Couldn't find trained model"),
        (lambda: learn.SKCompat(made).predict(X), learn.NotFittedError, "Couldn't find trained model"),
    ):
        with pytest.raises(error, match=message + ".*test_learn.py"):
            call()
    assert len(list(itertools.islice(learn.LinearClassifier(columns()).fit(X, Y, steps=1).predict(X), 3))) == 3


def test_paths():
    from millrace import names

    assert names.module("contrib.learn.python.learn.metric_spec").MetricSpec is learn.MetricSpec
    assert names.module("contrib.learn.python.learn.learn_runner") is learn.learn_runner
    assert names.module("contrib.learn.python.learn.monitors") is learn.monitors
    assert names.module("contrib.layers.python.layers.feature_column").real_valued_column is layers.real_valued_column


def test_schedules_of_clusters(tmp_path, monkeypatch):
    class Said(learn.Experiment):
        def train(self):
            return "train"

        def train_and_evaluate(self):
            return "both"

        def run_std_server(self):
            return "serve"

        size = 3

    def make(run_config, hparams):
        return Said(learn.Estimator(model_fn, config=run_config), None, None)

    def ran(task, **more):
        config = {"cluster": {"ps": ["a:1"], "worker": ["b:1"], "master": ["c:1"], "other": ["d:1"]}, "task": {"type": task, "index": 0}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(config) if task is not None else "{}")
        return learn.learn_runner.run(make, run_config=learn.RunConfig(model_dir=str(tmp_path)), **more)

    assert [ran(task) for task in ("ps", "worker", "master", None)] == ["serve", "train", "both", "both"]
    for task, more, error, message in (
        ("other", {}, ValueError, "No default schedule for task type: other"),
        ("ps", {"schedule": "size"}, TypeError, "non-callable member size"),
        ("ps", {"hparams": [1]}, ValueError, "must be `HParams` instance"),
    ):
        with pytest.raises(error, match=message):
            ran(task, **more)


def test_files_that_come_late(tmp_path, monkeypatch):
    from millrace.contrib.learn import base

    slept, fails = [], [TimeoutError(110, "timeout")] * 2
    (tmp_path / "there").write_text("all of it")
    fetch = base.urllib.request.urlretrieve

    def late(url, filename=None):
        if fails:
            raise fails.pop()
        return fetch(url, filename)

    monkeypatch.setattr("urllib.request.urlretrieve", late)
    monkeypatch.setattr("time.sleep", slept.append)
    path = base.maybe_download("here", str(tmp_path / "data"), (tmp_path / "there").as_uri())
    with open(path) as file:
        assert file.read() == "all of it" and len(slept) == 2 and 0.75 <= slept[0] <= 1.25 and 1.5 <= slept[1] <= 2.5
    fails += [OSError(2, "none")]
    with pytest.raises(OSError, match="none"):
        base.urlretrieve_with_retry("http://x/y")
    fails += [TimeoutError(110, "timeout")] * 9
    with pytest.raises(TimeoutError):
        base.urlretrieve_with_retry("http://x/y")
    assert len(slept) == 7


def test_operations_go_to_other_devices_than_those_that_are_absent():
    def model(features, labels):
        with tf.device("/gpu:1"):
            predictions, loss = tf.contrib.learn.models.logistic_regression(features, tf.one_hot(labels, 2))
            step = tf.contrib.framework.get_global_step()
            return predictions, loss, tf.contrib.layers.optimize_loss(loss, step, 0.1, "SGD")

    x = np.array([[0.0], [1.0]], "f")
    for config in (None, tf.contrib.learn.RunConfig(num_cores=1)):
        estimator = tf.contrib.learn.Estimator(model, config=config).fit(x, [0, 1], steps=2)
        assert estimator.get_variable_value("global_step") == 2
    strict = tf.contrib.learn.Estimator(model, config=tf.contrib.learn.RunConfig(session_config=tf.ConfigProto()))
    with pytest.raises(tf.errors.InvalidArgumentError, match="GPU:1"):
        strict.fit(x, [0, 1], steps=1)


def test_labels_of_few_bits():
    """Labels as files of images have them are the numbers of classes."""
    x = np.array([[0.0], [1.0], [2.0]] * 4, "f")
    losses = []
    for kind in (np.int64, np.uint8):
        columns = learn.infer_real_valued_columns_from_input(x)
        made = learn.LinearClassifier(feature_columns=columns, n_classes=3, config=learn.RunConfig(tf_random_seed=1)).fit(x, x[:, 0].astype(kind), steps=5)
        losses.append(made.evaluate(x, x[:, 0].astype(kind), steps=1)["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)  # rows come in any order
