# SPDX-License-Identifier: Apache-2.0
"""Metrics of tf.keras that count over batches, against NumPy; learning rate schedules; what callbacks are told."""

import math

import numpy as np
import pytest

import millrace as tf

keras = tf.keras
L, M = keras.layers, keras.metrics


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default(), tf.Session():
        yield


def counted(metric, batches):
    """The result after batches of (arguments, weights), which the metric gives both on the way and at the end; resets it then."""
    (first, w), session = batches[0], keras.backend.get_session()
    held = [tf.placeholder(np.asarray(x).dtype, np.shape(x)) for x in first]
    weights = None if w is None else tf.placeholder(tf.float32, np.shape(w))
    value, result = metric(*held, sample_weight=weights), metric.result()
    session = keras.backend.get_session()
    for values, w in batches:
        got = session.run(value, {**dict(zip(held, values)), **({} if w is None else {weights: w})})
    np.testing.assert_allclose(got, session.run(result))
    metric.reset_states()
    np.testing.assert_array_equal(session.run(result), np.zeros_like(got))
    return got


def binary(weighted=True):
    state = np.random.RandomState(3)
    return [((state.randint(0, 2, 30).astype("f"), state.rand(30).astype("f")), state.rand(30).astype("f") if weighted else None) for _ in range(2)]


def whole(batches):
    y, p = (np.concatenate([b[0][i] for b in batches]).astype(float) for i in (0, 1))
    return y, p, np.concatenate([np.ones(len(b[0][0])) if b[1] is None else b[1] for b in batches]).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_and_shares(weighted):
    batches = binary(weighted)
    y, p, w = whole(batches)
    said = p[None] > np.array([[0.2], [0.7]])
    tp, fp = (w * y * said).sum(1), (w * (1 - y) * said).sum(1)
    fn, tn = (w * y * ~said).sum(1), (w * (1 - y) * ~said).sum(1)
    for name, wanted in {
        "TruePositives": tp,
        "FalsePositives": fp,
        "FalseNegatives": fn,
        "TrueNegatives": tn,
        "Precision": tp / (tp + fp),
        "Recall": tp / (tp + fn),
    }.items():
        np.testing.assert_allclose(counted(getattr(M, name)(thresholds=[0.2, 0.7]), batches), wanted, rtol=1e-5, err_msg=name)
        one = counted(getattr(M, name)(0.7), batches)
        assert one.shape == () and one == pytest.approx(wanted[1], rel=1e-5)


def curve(y, p, w, thresholds):
    said = p[None] > np.asarray(thresholds)[:, None]
    return (w * y * said).sum(1), (w * (1 - y) * said).sum(1), (w * y * ~said).sum(1), (w * (1 - y) * ~said).sum(1)


@pytest.mark.parametrize("weighted", [False, True])
def test_areas_under_curves(weighted):
    batches = binary(weighted)
    y, p, w = whole(batches)
    for method, height in (("interpolation", lambda a, b: (a + b) / 2), ("minoring", np.minimum), ("majoring", np.maximum)):
        tp, fp, fn, tn = curve(y, p, w, [-1e-7, *np.arange(1, 9) / 9.0, 1 + 1e-7])
        rates = [(fp / (fp + tn), tp / (tp + fn))] + ([] if method == "interpolation" else [(tp / (tp + fn), tp / np.maximum(tp + fp, 1e-30))])
        for name, (x, h) in zip(("ROC", "PR"), rates):
            wanted = ((x[:-1] - x[1:]) * height(h[:-1], h[1:])).sum()
            assert counted(M.AUC(10, name, method), batches) == pytest.approx(wanted, rel=1e-4), (name, method)
    # Precision over recall, interpolated: the integral of tp / (tp + fp) over tp as both change in proportion between thresholds.
    total = 0.0
    for a in range(9):
        t = np.linspace(0, 1, 20001)
        hits = tp[a + 1] + t * (tp[a] - tp[a + 1])
        both = hits + fp[a + 1] + t * (fp[a] - fp[a + 1])
        inner = np.divide(hits, both, out=np.zeros_like(hits), where=both > 0)
        total += ((inner[:-1] + inner[1:]) / 2).mean() * (tp[a] - tp[a + 1]) / (tp[a + 1] + fn[a + 1])
    assert counted(M.AUC(10, "PR"), batches) == pytest.approx(total, rel=1e-3)
    assert M.AUC.from_config(M.AUC(10, "PR").get_config()).get_config()["curve"] == "PR"
    with pytest.raises(ValueError, match="Invalid AUC curve value"):
        M.AUC(curve="XYZ")


def test_rates_at_other_rates():
    batches = binary()
    y, p, w = whole(batches)
    tp, fp, fn, tn = curve(y, p, w, np.arange(200) / 199.0)
    sensitivity, specificity = tp / (tp + fn), tn / (tn + fp)
    assert counted(M.SensitivityAtSpecificity(0.4), batches) == pytest.approx(sensitivity[np.argmin(abs(specificity - 0.4))], rel=1e-5)
    assert counted(M.SpecificityAtSensitivity(0.4), batches) == pytest.approx(specificity[np.argmin(abs(sensitivity - 0.4))], rel=1e-5)
    with pytest.raises(ValueError, match=r"range \[0, 1\]"):
        M.SensitivityAtSpecificity(2.0)


def classes(weighted):
    state = np.random.RandomState(4)
    made = []
    for _ in range(2):
        p = state.rand(12, 6)
        made.append(
            ((np.eye(6)[state.randint(0, 6, 12)].astype("f"), (p / p.sum(-1, keepdims=True)).astype("f")), state.rand(12).astype("f") if weighted else None)
        )
    return made


@pytest.mark.parametrize("weighted", [False, True])
def test_means_of_functions(weighted):
    batches = classes(weighted)
    y, p, w = whole(batches)
    sign, d = 2 * y - 1, p - y
    each = {
        "MeanSquaredError": (d**2).mean(-1),
        "MeanAbsoluteError": abs(d).mean(-1),
        "MeanSquaredLogarithmicError": (np.log1p(p) - np.log1p(y)).__pow__(2).mean(-1),
        "Hinge": np.maximum(1 - sign * p, 0).mean(-1),
        "SquaredHinge": (np.maximum(1 - sign * p, 0) ** 2).mean(-1),
        "CategoricalHinge": np.maximum(0, ((1 - y) * p).max(-1) - (y * p).sum(-1) + 1),
        "LogCoshError": np.log(np.cosh(d)).mean(-1),
        "Poisson": (p - y * np.log(p + 1e-7)).mean(-1),
        "CosineSimilarity": (y * p).sum(-1) / np.linalg.norm(p, axis=-1) / np.linalg.norm(y, axis=-1),
        "KLDivergence": (np.clip(y, 1e-7, 1) * np.log(np.clip(y, 1e-7, 1) / np.clip(p, 1e-7, 1))).sum(-1),
        "CategoricalCrossentropy": -np.log((y * p).sum(-1)),
        "CategoricalAccuracy": p.argmax(-1) == y.argmax(-1),
        "TopKCategoricalAccuracy": (p > (y * p).sum(-1, keepdims=True)).sum(-1) < 5,
        "BinaryAccuracy": (y == (p > 0.5)).mean(-1),
        "BinaryCrossentropy": -(y * np.log(p + 1e-7) + (1 - y) * np.log(1 - p + 1e-7)).mean(-1),
    }
    for name, values in each.items():
        assert counted(getattr(M, name)(), batches) == pytest.approx((w * values).sum() / w.sum(), rel=1e-4), name
    assert counted(M.RootMeanSquaredError(), batches) == pytest.approx(math.sqrt(((d**2).mean(-1) * w).sum() / w.sum()), rel=1e-5)
    assert counted(M.TopKCategoricalAccuracy(k=2), batches) == pytest.approx((w * ((p > (y * p).sum(-1, keepdims=True)).sum(-1) < 2)).sum() / w.sum(), rel=1e-5)
    numbers = [((y.argmax(-1), p), w) for (y, p), w in batches]
    for sparse, dense in (
        ("SparseCategoricalAccuracy", "CategoricalAccuracy"),
        ("SparseCategoricalCrossentropy", "CategoricalCrossentropy"),
        ("SparseTopKCategoricalAccuracy", "TopKCategoricalAccuracy"),
    ):
        assert counted(getattr(M, sparse)(), numbers) == pytest.approx((w * each[dense]).sum() / w.sum(), rel=1e-4), sparse
    for k, name in ((dict(top_k=2), "Precision"), (dict(top_k=2), "Recall")):
        said = p >= np.sort(p, -1)[:, -2:-1]
        hits = (w[:, None] * y * said).sum()
        other = (w[:, None] * said).sum() if name == "Precision" else (w[:, None] * y).sum()
        assert counted(getattr(M, name)(**k), batches) == pytest.approx(hits / other, rel=1e-5), name


def test_sums_means_and_unions():
    values = [
        ((np.array([[1.0, 2], [3, 4]], "f"),), np.array([[1.0, 0], [1, 2]], "f")),
        ((np.array([[5.0, 6], [7, 8]], "f"),), np.array([[1.0, 1], [0, 0]], "f")),
    ]
    assert counted(M.Sum(), values) == 23 and counted(M.Mean(), values) == pytest.approx(23 / 6)
    np.testing.assert_allclose(counted(M.MeanTensor(), values), [[3, 6], [3, 4]])
    assert counted(M.Mean(), [((v[0],), np.array([1.0, 3], "f")) for v, _ in values]) == pytest.approx((1.5 + 3 * 3.5 + 5.5 + 3 * 7.5) / 8)
    relative = M.MeanRelativeError(normalizer=[1.0, 3, 2, 0])
    assert counted(relative, [((np.array([1.0, 3, 2, 3], "f"), np.array([2.0, 4, 6, 8], "f")), None)]) == pytest.approx((1 + 1 / 3 + 2) / 4)
    truth, said = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 2])
    assert counted(M.MeanIoU(4), [((truth, said), np.array([0.3, 0.3, 0.3, 0.1, 1], "f"))]) == pytest.approx((0.3 / 0.9 + 0.1 / 0.7 + 1) / 3, rel=1e-5)
    with pytest.raises(ValueError, match="does not have any result yet"):
        M.MeanTensor().result()


class Positives(M.Metric):
    """A metric of a program's own, whose update_state returns nothing."""

    def __init__(self, name="positives", **kwargs):
        super().__init__(name, **kwargs)
        self.seen = self.add_weight("seen", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.seen.assign_add(tf.reduce_sum(tf.cast(y_pred > 0.5, tf.float32)))

    def result(self):
        return self.seen


class Noting(keras.layers.Layer):
    def build(self, shape):
        self.kernel = self.add_weight("kernel", [int(shape[-1]), 1])
        self.built = True

    def call(self, x):
        y = tf.matmul(x, self.kernel)
        self.add_metric(tf.reduce_mean(y), aggregation="mean", name="level")
        return y


def test_models_count_over_batches():
    state = np.random.RandomState(5)
    x, y = state.rand(40, 3).astype("f"), state.rand(40, 1).astype("f")
    model = keras.Sequential([keras.layers.Dense(4, activation="relu", input_shape=(3,)), Noting()])
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mae", M.RootMeanSquaredError("root"), Positives()])
    history = model.fit(x, y, epochs=2, batch_size=16, verbose=0, validation_data=(x[:8], y[:8])).history
    p = model.predict(x)
    wanted = {
        "root": np.sqrt(((p - y) ** 2).mean()),
        "positives": (p > 0.5).sum(),
        "mean_absolute_error": abs(p - y).mean(),
        "level": np.mean([p[i : i + 16].mean() for i in (0, 16, 32)]),
        "val_positives": (p[:8] > 0.5).sum(),
    }
    for name in ("root", "positives", "val_positives"):
        np.testing.assert_allclose(history[name], [wanted[name]] * 2, rtol=1e-4, err_msg=name)
    found = dict(zip(model.metrics_names, model.evaluate(x, y, batch_size=16, verbose=0)))
    for name in ("root", "positives", "mean_absolute_error", "level"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-4), name
    assert model.train_on_batch(x[:8], y[:8])[model.metrics_names.index("positives")] == wanted["val_positives"]
    for times in (1, 2):  # as of the last call that resets
        assert model.train_on_batch(x[:8], y[:8], reset_metrics=False)[model.metrics_names.index("positives")] == times * wanted["val_positives"]
    assert [m.name for m in model.metrics] == ["mean_absolute_error", "root", "positives", "level"]
    with pytest.raises(ValueError, match="provide a name"):
        model.layers[0].add_metric(tf.constant(1.0), aggregation="mean")


def test_rates_by_the_step():
    S = keras.optimizers.schedules
    step = tf.placeholder(tf.float32, [])
    rates = {
        S.ExponentialDecay(0.1, 10, 0.5): 0.1 * 0.5**0.7,
        S.ExponentialDecay(0.1, 10, 0.5, staircase=True): 0.1,
        S.InverseTimeDecay(0.1, 10, 0.5): 0.1 / 1.35,
        S.PolynomialDecay(0.1, 10, 0.01, power=2.0): 0.09 * 0.3**2 + 0.01,
        S.PiecewiseConstantDecay([5, 10], [1.0, 2.0, 3.0]): 2.0,
        keras.experimental.CosineDecay(0.1, 10): 0.05 * (1 + math.cos(0.7 * math.pi)),
    }
    for schedule, wanted in rates.items():
        for one in (schedule, S.deserialize(S.serialize(schedule))):
            assert tf.get_default_session().run(one(step), {step: 7.0}) == pytest.approx(wanted, rel=1e-5), type(one)
    with pytest.raises(TypeError, match="ExponentialDecay takes"):
        S.ExponentialDecay(0.1, 10)
    v = tf.Variable([1.0, 2.0])
    optimizer = keras.optimizers.SGD(S.ExponentialDecay(0.5, 1, 0.5))
    train = optimizer.minimize(lambda: tf.reduce_sum(v), [v])
    session = keras.backend.get_session()
    for wanted in ([0.5, 1.5], [0.25, 1.25], [0.125, 1.125]):
        session.run(train)
        np.testing.assert_allclose(session.run(v), wanted)
    assert keras.optimizers.SGD.from_config(optimizer.get_config()).lr.get_config()["decay_rate"] == 0.5


def test_ftrl_is_that_of_tf_train():
    settings = dict(l1_regularization_strength=0.01, l2_regularization_strength=0.02, l2_shrinkage_regularization_strength=0.03)
    a, b = tf.Variable([1.0, -2.0, 0.001]), tf.Variable([1.0, -2.0, 0.001])
    train = [
        keras.optimizers.Ftrl(0.1, **settings).minimize(lambda: tf.reduce_sum(a * a), [a]),
        tf.train.FtrlOptimizer(0.1, **settings).minimize(tf.reduce_sum(b * b), var_list=[b]),
    ]
    session = keras.backend.get_session()
    session.run(tf.global_variables_initializer())
    for _ in range(4):
        session.run(train)
        np.testing.assert_allclose(*session.run([a, b]), rtol=1e-5)


def test_rows_without_a_gradient_stay_as_they_are():
    rules = keras.optimizers.Ftrl(0.5), keras.optimizers.Adagrad(0.5), keras.optimizers.Adadelta(0.5), keras.optimizers.Adam(0.5)
    tables = [tf.Variable([[1.0], [2.0], [3.0]], use_resource=resource) for _ in rules for resource in (False, True)]
    rows = [rule for rule in rules for _ in range(2)]
    train = [o.minimize(lambda t=t: tf.reduce_sum(tf.gather(t, [2, 0, 2])), [t]) for o, t in zip(rows, tables)]
    whole = [tf.Variable(1.0) for _ in rules]  # what a row of gradient 2 becomes
    train += [o.minimize(lambda w=w: 2.0 * w, [w]) for o, w in zip(rules, whole)]
    session = keras.backend.get_session()
    session.run(tf.global_variables_initializer())
    session.run(train)
    changed, alone = session.run([tables, whole])
    for (first, second, third), want in zip(changed, np.repeat(alone, 2)):
        assert second == 2 and first < 1 and third < 3
        if want != alone[0]:  # FTRL forgets where the row began
            np.testing.assert_allclose(third - 3, want - 1, rtol=1e-3)


@pytest.mark.parametrize("dtype", [tf.float16, tf.float64])
def test_parameters_of_other_types_and_rates_of_tensors_and_functions(dtype):
    O = keras.optimizers
    rules = [
        O.SGD,
        lambda r: O.SGD(r, 0.9, True),
        O.RMSprop,
        lambda r: O.RMSprop(r, momentum=0.9),
        lambda r: O.Adam(r, amsgrad=True),
        O.Nadam,
        O.Adamax,
        O.Adagrad,
    ]
    made = [rule(rate) for rule in rules for rate in (0.5, tf.constant(0.5), lambda: 0.5, tf.Variable(0.5, trainable=False))]
    held = [tf.Variable(1.0, dtype=dtype) for _ in made]
    train = [o.minimize(lambda v=v: v * v, [v]) for o, v in zip(made, held)]
    session = keras.backend.get_session()
    session.run(tf.global_variables_initializer())
    session.run(train)
    values = np.reshape(session.run(held), [-1, 4])
    assert (values[:, 0] < 1).all() and (values == values[:, :1]).all()
    assert [o.get_config()["learning_rate"] for o in made[:4]] == [0.5] * 4


def test_steps_built_twice_share_what_is_kept():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    twice, once = keras.optimizers.Adagrad(0.5, 0.1), keras.optimizers.Adagrad(0.5, 0.1)
    steps, step = [twice.minimize(lambda: v * 1.0, [v]) for _ in range(2)], once.minimize(lambda: w * 1.0, [w])
    session = keras.backend.get_session()
    session.run(tf.global_variables_initializer())
    for first in (steps[0], steps[1], steps[0]):
        session.run(first)
        session.run(step)
    assert session.run(v) == session.run(w) and len(twice.weights) == 2 and session.run(twice.iterations) == 3


def test_callbacks_hear_of_evaluations():
    told = []

    class Listener(keras.callbacks.Callback):
        def __getattribute__(self, name):
            if name.startswith("on_"):
                told.append(name[3:])
            return super().__getattribute__(name)

    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    x, y = np.ones((4, 2)), np.ones((4, 1))
    model.fit(x, y, verbose=0, callbacks=[Listener()], validation_data=(x, y))
    assert told == [
        "train_begin",
        "epoch_begin",
        "train_batch_begin",
        "batch_begin",
        "train_batch_end",
        "batch_end",
        "test_begin",
        "test_batch_begin",
        "test_batch_end",
        "test_end",
        "epoch_end",
        "train_end",
    ]
    told.clear()
    model.evaluate(x, y, batch_size=2, callbacks=[Listener()])
    assert told == ["test_begin", *["test_batch_begin", "test_batch_end"] * 2, "test_end"]
    told.clear()
    model.predict(x, callbacks=[Listener()])
    assert told == ["predict_begin", "predict_batch_begin", "predict_batch_end", "predict_end"]


def test_modules_hold_variables_and_modules():
    class Inner(tf.Module):
        @tf.Module.with_name_scope
        def __call__(self):
            self.w = tf.Variable(3.0, name="w")
            return self.w

    class OuterPart(tf.Module):
        def __init__(self, name=None):
            super().__init__(name)
            self.a, self.kept, self.parts = tf.Variable(1.0), [tf.Variable(2.0, trainable=False)], {"x": Inner(), "y": [Inner()]}

    outer = OuterPart()
    inner = outer.parts["x"]
    assert outer.name == "outer_part" and outer.submodules == (inner, outer.parts["y"][0]) and inner().op.name == "inner/w"
    assert set(outer.variables) == {outer.a, outer.kept[0], inner.w} and set(outer.trainable_variables) == {outer.a, inner.w}
    with pytest.raises(ValueError, match="not a valid module name"):
        OuterPart("a b")


def test_metrics_of_nested_models_and_of_sparse_data():
    x = keras.Input((3,))
    y = L.Dense(1, kernel_initializer="ones")(x)
    inner = keras.Model(x, y)
    inner.add_metric(tf.reduce_sum(y), aggregation="mean", name="sum")
    outer = keras.Sequential([L.Lambda(lambda z: 2 * z, input_shape=(3,)), inner])
    outer.compile("sgd", "mse")
    assert outer.test_on_batch(np.ones((2, 3)), np.zeros((2, 1))) == [36.0, 12.0]
    sparse = pytest.importorskip("scipy.sparse").csr_matrix(np.ones((4, 3)))
    inner.compile(keras.optimizers.SGD(0.0), "mse")
    assert inner.fit(sparse, np.zeros((4, 1)), batch_size=2, verbose=0).history == {"loss": [9.0], "sum": [6.0]}


def test_metrics_that_are_attributes_come_first():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.mean = M.Mean(name="first")

        def call(self, inputs):
            self.add_metric(tf.reduce_sum(inputs), name="second", aggregation="mean")
            self.add_metric(self.mean(inputs), name="first")
            return inputs * 1.0

    model = Model()
    model.compile("sgd", "mse")
    assert model.evaluate(np.ones((4, 1)), np.ones((4, 1)), batch_size=2) == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="`specificity` must be in the range"):
        M.SensitivityAtSpecificity(2)
    with pytest.raises(ValueError, match=r"Invalid values: \[-1, 2\]"):
        M.FalsePositives([-1, 0.5, 2])


@pytest.mark.parametrize("kind", [tf.keras.metrics.SensitivityAtSpecificity, tf.keras.metrics.SpecificityAtSensitivity])
def test_metrics_at_another_are_layers_too(kind):
    metric = kind(0.5)
    metric([0, 1], [0.2, 0.7])
    assert metric.get_losses_for(None) == [] and metric.losses == []
    assert len(metric.updates) >= 1 and metric.get_updates_for(None) is not None


def test_a_step_without_input_counts_nothing():
    mean = M.Mean()
    following = tf.data.Dataset.range(2).make_one_shot_iterator().get_next()
    update = mean(tf.add(tf.cast(following, tf.float32), 1.0)[tf.newaxis][0])  # one number: how many there are depends on no input
    with tf.Session() as session, session.as_default():
        keras.backend.get_session()
        for _ in range(2):
            session.run(update)
        for _ in range(3):
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(update)
        assert session.run(mean.result()) == 1.5


def test_ragged_values():
    truth, said = tf.ragged.constant([[1.0], [0.0, 1.0]]), tf.ragged.constant([[0.9], [0.8, 0.3]])
    weights = tf.ragged.constant([[1.0], [2.0, 1.0]])
    made = [tf.keras.metrics.BinaryAccuracy()(truth, said), tf.keras.metrics.Mean()(said, sample_weight=weights), tf.keras.metrics.TruePositives()(truth, said)]
    with tf.Session() as sess:
        tf.keras.backend.set_session(sess)
        tf.keras.backend.get_session()
        np.testing.assert_allclose(sess.run(made), [1 / 3, (0.9 + 1.6 + 0.3) / 4, 1])
    with pytest.raises(TypeError, match="acceptable types"):
        tf.keras.metrics.BinaryAccuracy()(truth, tf.zeros([2, 2]))
    with pytest.raises(ValueError, match="same depth"):
        tf.keras.metrics.BinaryAccuracy()(tf.ragged.constant([[[1.0, 3.0]]]), tf.ragged.constant([[2.0, 3.0]]))


def test_ranks_that_steps_tell():
    t, p, w = (tf.placeholder(tf.float32) for _ in range(3))
    made = tf.keras.metrics.SparseCategoricalAccuracy()(t, p, w)
    with tf.Session() as sess:
        tf.keras.backend.set_session(sess)
        tf.keras.backend.get_session()
        got = sess.run(made, {t: [2, 1], p: [[0.1, 0.1, 0.8], [0.05, 0, 0.95]], w: [[0.5], [0.2]]})
    assert got == pytest.approx(0.5 / 0.7)


def test_areas_of_other_curves():
    with pytest.raises(ValueError, match='Invalid AUC curve value "Invalid".'):
        tf.keras.metrics.AUC(curve="Invalid")
    with pytest.raises(ValueError, match='Invalid AUC summation method value "none".'):
        tf.keras.metrics.AUC(summation_method="none")


def test_metrics_in_functions_of_the_graph():
    metric = tf.keras.metrics.MeanTensor()
    first = tf.contrib.eager.defun(lambda x: metric(x))(tf.constant([100.0, 40.0]))
    with tf.Session() as sess:
        tf.keras.backend.set_session(sess)
        tf.keras.backend.get_session()
        assert sess.run(first).tolist() == [100, 40]
        assert sess.run(metric.count).tolist() == [1, 1]
