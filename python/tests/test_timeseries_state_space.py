# SPDX-License-Identifier: Apache-2.0
"""State space models of tf.contrib.timeseries: matrices, covariances, the Kalman filter, cycles, states in chunks, anomalies."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib.timeseries import covariances, input_statistics, matrices, state_management, state_tables
from millrace.contrib.timeseries.state_space import ensembles, estimators, filtering_postprocessor, level_trend, periodic, structural_ensemble, varma
from millrace.contrib.timeseries.state_space.configuration import StateSpaceModelConfiguration
from millrace.contrib.timeseries.state_space.kalman_filter import KalmanFilter

RNG = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _run(tensors, feeds=None):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        return session.run(tensors, feeds)


def test_powers_and_products_of_matrices():
    a, b = RNG.randn(3, 4, 4), RNG.randn(4, 4)
    unknown = tf.placeholder_with_default(a, None)
    unknown.set_shape([None, None, None])
    powers, batch = [0, 1, 7], RNG.randn(3, 2, 4)
    made = _run(
        [
            matrices.batch_matrix_pow(unknown, powers),
            matrices.matrix_to_powers(b, [3, 0]),
            matrices.power_sums_tensor(4, b, np.eye(4) * 2.0),
            matrices.batch_times_matrix(batch, b, adj_y=True),
            matrices.matrix_times_batch(b, batch, adj_y=True),
            matrices.make_toeplitz_matrix(a),
            matrices.block_diagonal([a, tf.placeholder_with_default(np.ones([3, 1, 2]), None)], tf.float64),
        ]
    )
    wanted_sum = sum(np.linalg.matrix_power(b, i) @ (2 * np.linalg.matrix_power(b, i).T) for i in range(3))
    blocks = [[a[abs(i - j)] for j in range(3)] for i in range(3)]
    whole = np.zeros([3, 5, 6])
    whole[:, :4, :4], whole[:, 4:, 4:] = a, 1
    wanted = [
        [np.linalg.matrix_power(m, p) for m, p in zip(a, powers)],
        [b @ b @ b, np.eye(4)],
        wanted_sum,
        batch @ b.T,
        b @ batch.transpose(0, 2, 1),
        np.block(blocks),
        whole,
    ]
    assert made[2].shape == (5, 4, 4) and not made[2][0].any()
    made[2] = made[2][3]
    for value, right in zip(made, wanted):
        np.testing.assert_allclose(value, right, rtol=1e-9, atol=1e-9)


def test_covariances_of_any_numbers():
    raw = RNG.randn(2, 3, 3)
    made = covariances.sign_magnitude_positive_definite(raw, off_diagonal_scale=tf.constant([-1.0, 0.5], tf.float64), overall_scale=0.3)
    clipped = covariances.clip_covariance(np.diag([100.0, 1e-3, 5.0]), 1e3, 6.0)
    prior = covariances.log_noninformative_covariance_prior(tf.constant(np.diag([2.0, 3.0])))
    value, clipped, prior = _run([made, clipped, prior])
    for i, off in enumerate([-1.0, 0.5]):
        factor = np.diag(np.exp((np.diag(raw[i]) + 0.3) / 2))
        for r, c in ((0, 1), (0, 2), (1, 2)):
            low = raw[i, c, r]
            factor[r, c] = low / (1 + abs(low)) * np.exp((raw[i, r, c] + off + 0.3) / 2)
        np.testing.assert_allclose(value[i], factor.T @ factor, rtol=1e-12)
    assert (np.linalg.eigvalsh(value) > 0).all() and np.diag(clipped).tolist() == [100, 6, 6]
    np.testing.assert_allclose(prior, -1.5 * np.log(6), rtol=1e-6)


@pytest.mark.parametrize("simplified", [False, True])
def test_the_kalman_filter_is_bayes_rule(simplified):
    mean, root, model, noise = RNG.randn(1, 3), RNG.randn(3, 3), RNG.randn(2, 3), np.diag([0.5, 2.0])
    covariance, observed = root @ root.T + np.eye(3), RNG.randn(1, 2)
    kalman = KalmanFilter(tf.float64, simplified)
    predicted = kalman.observed_from_state(tf.constant(mean), tf.constant(covariance[None]), tf.constant(model[None]), tf.constant(noise))
    found = kalman.do_filter(mean, covariance[None], *predicted, observed, model[None], noise)
    found, predicted = _run([found, predicted])
    precision = np.linalg.inv(covariance) + model.T @ np.linalg.inv(noise) @ model
    np.testing.assert_allclose(found[1][0], np.linalg.inv(precision), rtol=1e-9)
    right = np.linalg.solve(precision, np.linalg.solve(covariance, mean[0]) + model.T @ np.linalg.solve(noise, observed[0]))
    np.testing.assert_allclose(found[0][0], right, rtol=1e-9)
    spread, off = model @ covariance @ model.T + noise, observed[0] - model @ mean[0]
    np.testing.assert_allclose(predicted[1][0], spread, rtol=1e-12)
    likelihood = -0.5 * (off @ np.linalg.solve(spread, off) + np.log(np.linalg.det(2 * np.pi * spread)))
    np.testing.assert_allclose(found[2], [likelihood], rtol=1e-9)
    bad = kalman.do_filter(mean, covariance[None], mean[:, :2], -np.eye(2)[None], observed, model[None], noise)
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative diagonal"):
        _run(bad)


OPTIONS = StateSpaceModelConfiguration(dtype=tf.float64)
MODELS = {
    "level": lambda: level_trend.AdderStateSpaceModel(configuration=OPTIONS),
    "trend": lambda: level_trend.AdderStateSpaceModel(use_level_noise=False, configuration=OPTIONS),
    "cycle": lambda: periodic.CycleStateSpaceModel(5, configuration=OPTIONS),
    "pair": lambda: periodic.CycleStateSpaceModel(2, configuration=OPTIONS),
    "smooth": lambda: periodic.ResolutionCycleModel(5, 5, configuration=OPTIONS),
    "folded": lambda: periodic.ResolutionCycleModel(5, 7, configuration=OPTIONS),
    "real": lambda: periodic.ResolutionCycleModel(7, 4.3, configuration=OPTIONS),
    "varma": lambda: varma.VARMA(2, 1, configuration=OPTIONS),
    "ensemble": lambda: structural_ensemble.MultiResolutionStructuralEnsemble([3, 5], 2, 1, [6, 2.5], configuration=OPTIONS),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_short_ways_agree_with_steps(name):
    """Powers of the transition, and sums of noise, are those of one step after the other."""
    model = MODELS[name]()
    model.initialize_graph()
    steps = [0, 1, 4, 9, 12, 23]
    found = [model.transition_to_powers(tf.constant(steps)), model.transition_power_noise_accumulator(tf.constant(steps))]
    found += [tf.convert_to_tensor(part, tf.float64) for part in (model.get_state_transition(), model.get_noise_transform())]
    powers, sums, one, transform, noise = _run([*found, model.state_transition_noise_covariance])
    power, total = np.eye(len(one)), np.zeros_like(one)
    for n in range(max(steps) + 1):
        if n in steps:
            np.testing.assert_allclose(powers[steps.index(n)], power, atol=1e-9)
            np.testing.assert_allclose(sums[steps.index(n)], total, atol=1e-9)
        total = total + power @ transform @ noise @ transform.T @ power.T
        power = one @ power


def test_varma_moves_as_it_says():
    model = varma.VARMA(1, 2, configuration=OPTIONS._replace(num_features=2))
    model.initialize_graph()
    ar, ma = RNG.randn(2, 2, 1), RNG.randn(2, 2, 2)
    found = [model.get_state_transition(), model.get_noise_transform(), model.get_broadcasted_observation_model(tf.zeros([3]))]
    transition, transform, seen = _run(found, {model.ar_coefs: ar, model.ma_coefs: ma})
    state, noise = RNG.randn(3, 2), RNG.randn(2)
    moved = (transition @ state.ravel() + transform @ noise).reshape(3, 2)
    first = np.pad(ar, [(0, 0), (0, 0), (0, 2)]).reshape(2, 6) @ state.ravel()
    np.testing.assert_allclose(moved, [first + ma[0] @ noise, state[0] + ma[1] @ noise, state[1] + noise])
    assert seen.shape == (3, 2, 6) and seen[0].tolist() == [[1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1]]


def test_states_of_chunks_are_chained():
    """A chunk begins where the one before it ended in the last step; the first in the start state, through which gradients go."""

    class Counter(level_trend.AdderStateSpaceModel):
        """A state of what has been summed up."""

        def get_start_state(self):
            return (self.start,)

        def per_step_batch_loss(self, features, mode, state):
            del mode
            sums = state[0][:, None] + tf.cumsum(features["values"][..., 0], axis=1)
            return tf.reduce_sum(sums), (sums,), {"mean": sums}

    model = Counter()
    model.start = tf.get_variable("start", [], initializer=tf.ones_initializer())
    manager = state_management.ChainingStateManager(state_saving_interval=2)
    with pytest.raises(ValueError, match="initialize_graph"):
        manager.define_loss(model, {}, "train")
    manager.initialize_graph(model)
    times = np.arange(6).reshape(3, 2)
    features = {"times": tf.constant(times, tf.int64), "values": tf.ones([3, 2, 1])}
    made = manager.define_loss(model, features, "train")
    (gradient,) = tf.gradients(made.loss, [model.start])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        steps = [session.run([made.predictions["mean"], made.end_state, gradient, made.loss]) for _ in range(3)]
    assert steps[0][0][:, 1].tolist() == [3, 3, 3] and steps[2][0][:, 1].tolist() == [3, 5, 7]
    assert steps[2][1][0].tolist() == [7] and steps[2][2] == 2
    with pytest.raises(ValueError, match="Overriding saved state"):
        manager.define_loss(model, {**features, "start_tuple": ()}, "train")


def test_tables_of_tuples():
    table = state_tables.TupleOfTensorsLookup(tf.int64, (tf.zeros([2]), (tf.constant(5, tf.int64),)), -1, -2, "table")
    put = table.insert([[1, 4]], (tf.ones([1, 2, 2]), (tf.constant([[7, 8]], tf.int64),)))
    with tf.control_dependencies([put]):
        found = table.lookup([4, 3])
    (first, (second,)) = _run(found)
    assert first.tolist() == [[1, 1], [0, 0]] and second.tolist() == [8, 5]


def test_statistics_of_batches():
    made = input_statistics.InputStatisticsFromMiniBatch(2, tf.float64, starting_variance_window_size=3)
    times, values = tf.placeholder(tf.int64, [None, None]), tf.placeholder(tf.float64, [None, None, 2])
    found = made.initialize_graph({"times": times, "values": values})
    series = RNG.randn(40, 2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for starts in ([20, 30], [0, 10]):
            place = np.array(starts)[:, None] + np.arange(10)
            last = session.run(found, {times: place * 2 + 6, values: series[place]})
    assert last.start_time == 6
    np.testing.assert_allclose(last.overall_feature_moments.mean, series.mean(0))
    np.testing.assert_allclose(last.overall_feature_moments.variance, series.var(0, ddof=1))
    np.testing.assert_allclose(last.series_start_moments.mean, series[:3].mean(0))
    assert last.total_observation_count == round((39 * 2 + 1) / 2.0)


def test_anomalies_leave_the_state_as_it_was_predicted():
    detector = filtering_postprocessor.StateInterpolatingAnomalyDetector(
        anomaly_log_likelihood=lambda current_times, current_values, outputs: tf.constant([-5.0, -5.0, 50.0]), anomaly_prior_probability=0.5
    )
    times = tf.constant([1, 1, 1])
    state, outputs = detector.process_filtering_step(
        times, tf.zeros([3, 1]), (tf.zeros([3, 2]), times), (tf.ones([3, 2]), times), {"log_likelihood": tf.constant([50.0, -5.0, -5.0])}
    )
    state, outputs = _run([state, outputs])
    np.testing.assert_allclose(state[0][:, 0], [1, 0.5, 0], atol=1e-6)
    np.testing.assert_allclose(outputs["anomaly_score"], [-55, 0, 55])
    np.testing.assert_allclose(outputs["loss"], -(np.array([50, -5, 50]) + np.log(0.5)), rtol=1e-6)


def test_unrolled_windows_are_those_of_loops_and_exogenous_features_act_where_they_may():
    column = tf.feature_column.numeric_column("more")
    feeds = {"times": tf.constant([[0, 1, 5, 6]], tf.int64), "values": tf.constant(RNG.randn(1, 4, 1)), "more": tf.constant(RNG.randn(1, 4))}
    losses = []
    for threshold, condition in ((None, None), (10, None), (None, lambda times, features: features["more"] > 100.0)):
        with tf.variable_scope("", reuse=tf.AUTO_REUSE), tf.variable_scope("model"):
            options = OPTIONS._replace(
                exogenous_feature_columns=[column],
                exogenous_update_condition=condition,
                exogenous_noise_decreases=True,
                static_unrolling_window_size_threshold=threshold,
            )
            model = level_trend.AdderStateSpaceModel(configuration=options)
            model.initialize_graph()
            losses.append(model.define_loss(dict(feeds), "train").loss)
    with tf.variable_scope("model", reuse=True):
        plain = level_trend.AdderStateSpaceModel(configuration=OPTIONS)
        plain.initialize_graph()
        losses.append(plain.define_loss(dict(feeds), "train").loss)
    loop, unrolled, never, none = _run(losses)
    np.testing.assert_allclose([unrolled, never], [loop, none], rtol=1e-9)
    assert abs(loop - none) > 1e-3


def test_series_are_drawn_from_models():
    model = MODELS["smooth"]()
    with tf.Session():
        model.initialize_graph()
        parameters = model.random_model_parameters(seed=3)
        tf.global_variables_initializer().run()
        first, second = model.generate(2, 20, parameters, seed=5), model.generate(2, 20, parameters, seed=5)
    assert first["times"].shape == (2, 20) and first["values"].shape == (2, 20, 1)
    np.testing.assert_array_equal(first["values"], second["values"])
    assert np.abs(first["values"]).max() > 0.1


def test_refusals():
    two = OPTIONS._replace(num_features=2)
    for call, error in (
        (lambda: periodic.ResolutionCycleModel(4, 7), "odd numbers"),
        (lambda: ensembles.StateSpaceCorrelatedFeaturesEnsemble([MODELS["level"]()], two), "number of members"),
        (lambda: ensembles.StateSpaceCorrelatedFeaturesEnsemble([varma.VARMA(1, 1, two)] * 2, two), "univariate"),
        (lambda: structural_ensemble.MultiResolutionStructuralEnsemble([3, 5], 1, 1, [7]), "length 2"),
        (lambda: level_trend.AdderStateSpaceModel(configuration=two).define_loss({}, "train"), "initialize_graph"),
        (lambda: estimators.StateSpaceRegressor(None), "only supports state space"),
    ):
        with pytest.raises(ValueError, match=error):
            call()
    with pytest.raises(NotImplementedError, match="multivariate"):
        level_trend.AdderStateSpaceModel(configuration=two).random_model_parameters()
