# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.timeseries: autoregressive models, input functions, exported models, and refusals."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import timeseries as ts
from millrace.contrib.timeseries import ar_model, estimators, feature_keys

TIMES = np.arange(60)
VALUES = np.stack([np.sin(TIMES / 3.0), np.cos(TIMES / 5.0)], 1).astype(np.float32)


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _run(tensors):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            return session.run(tensors)
        finally:
            coordinator.request_stop()
            coordinator.join(threads)


def test_an_autoregressive_model_learns_a_sine(tmp_path):
    reader = ts.NumpyReader({"times": TIMES, "values": VALUES})
    regressor = ts.ARRegressor(periodicities=30, input_window_size=10, output_window_size=5, num_features=2, model_dir=str(tmp_path))
    regressor.train(ts.RandomWindowInputFn(reader, window_size=15, batch_size=8), steps=100)
    evaluation = regressor.evaluate(ts.WholeDatasetInputFn(reader), steps=1)
    assert evaluation["mean"].shape == (1, 50, 2) and evaluation["loss"] == evaluation["average_loss"]
    np.testing.assert_array_equal(evaluation["times"], TIMES[None, 10:])
    np.testing.assert_allclose(evaluation["observed"], VALUES[None, 10:], rtol=1e-6)
    assert np.abs(evaluation["mean"] - evaluation["observed"]).mean() < 0.1
    state_times, state_values, exogenous = evaluation["start_tuple"]
    assert state_times.tolist() == [list(range(50, 60))] and state_values.shape == (1, 10, 2) and exogenous.shape == (1, 10, 0)
    (made,) = regressor.predict(ts.predict_continuation_input_fn(evaluation, steps=7))
    assert made["times"].tolist() == list(range(60, 67)) and made["covariance"].shape == (7, 2)
    assert np.abs(made["mean"] - np.stack([np.sin(made["times"] / 3.0), np.cos(made["times"] / 5.0)], 1)).mean() < 0.2
    names = set(regressor.get_variable_names())
    assert {"model/flat_prediction_model/predicted_mean/kernel", "input_statistics/start_time", "input_statistics_auxiliary/chunk_count"} <= names
    assert regressor.get_variable_value("input_statistics/start_time") == 0


def test_time_features_lie_in_one_part_of_each_period():
    model = ar_model.ARModel([9, 12], 0, 1, 1, num_time_buckets=3)
    (made,) = _run([model._time_features(tf.constant([[17]]))])
    np.testing.assert_allclose(made[0, 0], [0, 0, 2 / 3, 0, 1 / 4, 0], rtol=1e-6)


def test_evaluations_align_what_tells_more_with_the_windows():
    """The first steps that fill no output window are left out of all features."""
    seen = []

    class Network(tf.keras.Model):
        def call(self, inputs, told):
            seen.append(told)
            return {"mean": told[..., -1:] + 0.0 * inputs[:, :1, :1], "covariance": tf.ones_like(told[..., -1:])}

    column = tf.feature_column.numeric_column("more")
    model = ar_model.ARModel(None, 2, 3, 1, lambda **_: Network(), loss="squared_loss", exogenous_feature_columns=[column])
    model.initialize_graph()
    more = np.arange(9, dtype=np.float32)
    features = {"times": tf.constant(TIMES[None, :9]), "values": tf.constant(more[None, :, None]), "more": tf.constant(more[None])}
    made = model.define_loss(features, tf.estimator.ModeKeys.EVAL)
    mean, loss = _run([made.predictions["mean"], made.loss])
    assert mean[0, :, 0].tolist() == [3, 4, 5, 6, 7, 8] and loss == 0


@pytest.mark.parametrize("distribution", ["gaussian", "cauchy"])
def test_anomalies_cost_less_where_they_are_reckoned_with(distribution):
    model = estimators.AnomalyMixtureARModel(7, 0.1, 0, 1, 1, anomaly_distribution=distribution)
    predictions = {"mean": tf.zeros([1, 1, 1]), "covariance": tf.fill([1, 1, 1], 0.01), "anomaly_params": tf.constant(4.0)}
    target = tf.constant([[[3.0]]])
    plain = ar_model.ARModel(7, 0, 1, 1).loss_op(target, predictions)
    mixed, plain = _run([model.loss_op(target, predictions), plain])
    width = 2.0 if distribution == "gaussian" else 4.0
    z = 3 / width
    tail = 0.5 * (z**2 + np.log(2 * np.pi) + np.log(width)) if distribution == "gaussian" else np.log(np.pi * width * (1 + z**2))
    np.testing.assert_allclose(mixed, tail - np.log(0.1), rtol=1e-5)
    assert plain > 50 * mixed


def test_exported_models_go_on_from_states(tmp_path):
    regressor = estimators.ARRegressor(6, 4, 2, 1, model_dir=str(tmp_path / "model"))
    series = {"times": TIMES, "values": VALUES[:, 0]}
    reader = ts.NumpyReader(series)
    regressor.train(ts.RandomWindowInputFn(reader, 6, 4, queue_capacity_multiplier=5), steps=3)
    evaluation = regressor.evaluate(ts.WholeDatasetInputFn(reader), steps=1)
    (wanted,) = regressor.predict(ts.predict_continuation_input_fn(evaluation, steps=3))
    folder = regressor.export_savedmodel(str(tmp_path / "export"), regressor.build_raw_serving_input_receiver_fn())
    with tf.Session() as session:
        signatures = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], folder)
        utils = ts.saved_model_utils
        state = utils.cold_start_filter(signatures, session, {name: value[:40] for name, value in series.items()})
        state = utils.filter_continuation(state, signatures, session, {name: value[40:] for name, value in series.items()})
        for start in (evaluation, state):
            made = utils.predict_continuation(start, signatures, session, steps=3)
            assert made["times"].tolist() == [[60, 61, 62]]
            np.testing.assert_allclose(made["mean"][0], wanted["mean"], rtol=1e-5)
        with pytest.raises(ValueError, match="must be after"):
            utils.predict_continuation(state, signatures, session, times=[59])


def test_one_shot_models_take_a_past_and_its_future(tmp_path):
    regressor = estimators.LSTMAutoRegressor(6, 4, 2, num_units=5, model_dir=str(tmp_path / "model"))
    reader = ts.NumpyReader({"times": TIMES, "values": VALUES[:, 0]})
    regressor.train(ts.RandomWindowInputFn(reader, 6, 4, queue_capacity_multiplier=5), steps=2)
    assert "start_tuple" not in regressor.evaluate(ts.WholeDatasetInputFn(reader), steps=1)
    receiver = regressor.build_one_shot_parsing_serving_input_receiver_fn(filtering_length=8, prediction_length=3)
    folder = regressor.export_savedmodel(str(tmp_path / "export"), receiver)
    example = tf.train.Example()
    example.features.feature["times"].int64_list.value.extend(range(11))
    example.features.feature["values"].float_list.value.extend(VALUES[:8, 0].tolist())
    with tf.Session() as session:
        signature = tf.saved_model.loader.load(session, ["serve"], folder).signature_def["serving_default"]
        assert list(signature.inputs) == ["examples"]
        mean = session.run(signature.outputs["mean"].name, {signature.inputs["examples"].name: [example.SerializeToString()] * 2})
    assert mean.shape == (2, 3, 1) and (mean[0] == mean[1]).all()


def test_windows_out_of_order_are_dropped_or_sorted():
    times = np.array([0, 1, 2, 9, 3, 4])
    reader = ts.NumpyReader({"times": times, "values": times.astype(float)})
    options = dict(window_size=2, batch_size=3, jitter=False, num_threads=1, queue_capacity_multiplier=10)
    dropped, _ = ts.RandomWindowInputFn(reader, **options)()
    kept, _ = ts.RandomWindowInputFn(ts.NumpyReader({"times": times[::-1], "values": times[::-1].astype(float)}), discard_out_of_order=False, **options)()
    dropped, kept = _run([dropped, kept])
    assert dropped["times"].shape == (3, 2) and dropped["values"].shape == (3, 2, 1)
    for made in (dropped, kept):
        assert (np.diff(made["times"], axis=1) >= 0).all()
        np.testing.assert_array_equal(made["times"], made["values"][..., 0])
    never, _ = ts.RandomWindowInputFn(
        ts.NumpyReader({"times": [2, 1], "values": [1.0, 2.0]}), discard_consecutive_batches_limit=5, **{**options, "window_size": 2}
    )()
    with pytest.raises(tf.errors.OutOfRangeError):
        _run(never)


def test_files_are_read_whole(tmp_path):
    path = tmp_path / "series.csv"
    path.write_text("time,a,b,more\n" + "".join("%d,%d.5,%d,x%d\n" % (i, i, 2 * i, i) for i in range(5)))
    reader = ts.CSVReader([str(path)], ("times", "values", "values", "more"), (tf.int64, tf.float32, tf.float32, tf.string), skip_header_lines=1)
    (batch, _), some = ts.WholeDatasetInputFn(reader)(), reader.read()
    made, some = _run([batch, some])
    assert made["times"].tolist() == [[0, 1, 2, 3, 4]] and made["values"][0, 3].tolist() == [3.5, 6] and made["more"][0, 1, 0] == b"x1"
    np.testing.assert_array_equal(some["times"], made["times"][0])
    with tf.python_io.TFRecordWriter(str(tmp_path / "records")) as writer:
        for i in range(3):
            example = tf.train.Example()
            example.features.feature["times"].int64_list.value.append(i)
            example.features.feature["values"].float_list.value.extend([i, -i])
            writer.write(example.SerializeToString())
    spec = {"times": tf.FixedLenFeature([], tf.int64), "values": tf.FixedLenFeature([2], tf.float32)}
    from millrace.contrib.timeseries.readers import TFExampleReader

    made = _run(TFExampleReader([str(tmp_path / "records")], spec).read_full())
    assert made["times"].tolist() == [0, 1, 2] and made["values"].tolist() == [[0, 0], [1, -1], [2, -2]]
    (tmp_path / "empty").write_text("")
    with pytest.raises(tf.errors.OutOfRangeError):
        _run(ts.CSVReader([str(tmp_path / "empty")]).read_full())


def test_refusals():
    regressor = estimators.ARRegressor(6, 4, 2, 1)
    good = {"times": [1, 6], "values": [1, 6, 1]}
    for shapes, mode, error in (
        ({"times": [1, 6]}, "train", "Expected a 'values' feature for training"),
        ({**good, "times": [6]}, "eval", "Expected shape"),
        ({**good, "values": [1, 6, 3]}, "eval", "num_features=1"),
        ({**good, "more": [1, 5]}, "eval", "shape .1, 5. for feature 'more'"),
        (good, "other", "Unknown mode"),
        (good, "infer", "Expected a 'start_tuple' feature for prediction"),
        ({"times": [1, 5], "values": [1, 5, 1]}, "train", "window_size=6"),
        ({"times": [1, 5], "values": [1, 5, 1]}, "eval", "at least input_window_size"),
    ):
        with tf.Graph().as_default(), pytest.raises(ValueError, match=error):
            regressor.model_fn({name: tf.zeros(shape) for name, shape in shapes.items()}, None, mode, None)
    with pytest.raises(ValueError, match="labels"):
        regressor.model_fn({}, {"a": 1}, "train", None)
    for call, error in (
        (lambda: ts.NumpyReader({"times": [1, 2]}), "required"),
        (lambda: ts.NumpyReader({"times": [1, 2], "values": [1.0]}), "prefixed"),
        (lambda: ts.NumpyReader({"times": [1], "values": [[[1.0]]]}), "at most 2 dimensions"),
        (lambda: ts.NumpyReader({"times": [[1], [2]], "values": [[1.0], [2.0]]}), "unbatched"),
        (lambda: ts.RandomWindowInputFn(ts.NumpyReader({"times": [1], "values": [1.0]}), 2, 1), "only 1 records"),
        (lambda: ts.CSVReader([], ("times",)), "'values' is a required"),
        (lambda: ts.CSVReader([], ("times", "values", "times")), "more than one"),
        (lambda: ts.predict_continuation_input_fn({"times": np.ones([1, 2]), "start_tuple": ()}), "must be specified"),
        (lambda: ts.predict_continuation_input_fn({"times": np.ones([1, 2]), "start_tuple": ()}, times=[[2], [3]]), "batch dimension"),
        (lambda: ar_model.ARModel(None, 0, 1, 1), "periodicities"),
        (lambda: estimators.ARRegressor(6, 4, 2, 1, anomaly_distribution="cauchy"), "anomaly_prior_probability"),
        (lambda: estimators.AnomalyMixtureARModel(6, 1.5, 4, 2, 1), "between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=error):
            call()
    assert feature_keys.SavedModelLabels.COLD_START_FILTER == "cold_start_filter"


def test_an_lstm_learns_a_wave(tmp_path):
    from millrace.contrib.timeseries import state_management
    from millrace.contrib.timeseries.lstm_model import LSTMModel

    times = np.arange(60)
    values = np.sin(times * 0.5)[:, np.newaxis] * 3 + 10
    column = tf.feature_column.numeric_column("even")
    made = estimators.TimeSeriesRegressor(
        LSTMModel(8, 1, [column]), optimizer=tf.train.AdamOptimizer(0.02), model_dir=str(tmp_path), state_manager=state_management.ChainingStateManager()
    )
    reader = ts.NumpyReader({"times": times, "values": values, "even": (times % 2.0)[:, np.newaxis]})
    losses = []
    for steps in (1, 40):
        made.train(ts.RandomWindowInputFn(reader, 8, 16), steps=steps)
        found = made.evaluate(ts.WholeDatasetInputFn(reader), steps=1)
        losses.append(found["loss"])
    assert losses[1] < 0.5 * losses[0] and found["mean"].shape == (1, 60, 1)
    ahead = {"even": np.arange(60, 70).reshape(1, 10, 1) % 2.0}
    (predicted,) = made.predict(ts.predict_continuation_input_fn(found, steps=10, exogenous_features=ahead))
    assert predicted["mean"].shape == (10, 1) and predicted["times"].tolist() == list(range(60, 70)) and 5 < predicted["mean"].mean() < 15


def test_an_lstm_begins_as_in_1_15(tmp_path):
    # The seeds of its initial values count the nodes before them; the numbers are those of TensorFlow 1.15.5.
    from millrace.contrib.timeseries.lstm_model import LSTMModel

    seeds = []

    def measures(predictions, features):
        seeds.extend(op.get_attr("seed2") for op in tf.get_default_graph().get_operations() if op.type == "RandomUniform")
        return {}

    made = estimators.TimeSeriesRegressor(
        LSTMModel(3, 2), optimizer=tf.train.AdamOptimizer(0.001), config=tf.estimator.RunConfig(tf_random_seed=7), model_dir=str(tmp_path)
    )
    made = tf.contrib.estimator.add_metrics(made, measures)
    found = made.evaluate(lambda: {"times": [[1, 2, 3, 4]], "values": np.arange(8.0).reshape(1, 4, 2)}, steps=1)
    assert seeds == [251, 289]
    np.testing.assert_allclose(found["loss"], 17.07867, rtol=1e-6)
    wanted = [[0, 0], [0.13344511, 0.03814915], [0.20026113, 0.00357587], [0.1072706, -0.01756782]]
    np.testing.assert_allclose(found["mean"], [wanted], rtol=1e-4)


def test_examples_give_what_was_seen_and_what_follows(tmp_path):
    from millrace.contrib.timeseries.examples import known_anomaly, lstm

    times, values, all_times, fitted = lstm.train_and_predict(training_steps=20, export_directory=str(tmp_path))
    assert times.shape == (100,) and values.shape == (100, 5) and fitted.shape == (200, 5) and all_times.tolist() == list(range(200))
    assert np.isfinite(fitted).all() and len(list(tmp_path.iterdir())) == 1
    *fitted, changes = known_anomaly.train_and_evaluate_exogenous(train_steps=2)
    assert [len(part) for part in fitted] == [200, 200, 300, 300, 300, 300] and changes == [25, 50, 75, 100, 125, 150, 175, 249]
    assert (fitted[4] > fitted[5]).all() and fitted[4][290] - fitted[5][290] > 3 * (fitted[4][240] - fitted[5][240])
