# SPDX-License-Identifier: Apache-2.0
"""Dual coordinate ascent: its ops against TensorFlow's answers, models against the least loss there is, estimators."""

import numpy as np
import pytest

import millrace as tf

L = tf.contrib.linear_optimizer
LOSSES = ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss")
# TensorFlow 2.21, one pass over one example: (label, dual before), the state, the changes of weights.
ONE_EXAMPLE = {
    "logistic_loss": ((1, 0.3), [0.489611, 0.9986995, -0.4581482, 0.75], [-0.1066562, 0.0355521], [0.0711041, 0.1422083]),
    "squared_loss": ((2.5, 0.3), [0.7867925, 4.6596093, -0.5287500, 0.75], [-0.2738208, 0.0912736], [0.1825472, 0.3650943]),
    "hinge_loss": ((0, -0.2), [-0.1955556, 0.0, -0.15, 0.75], [-0.0025, 0.0008333], [0.0016667, 0.0033333]),
    "smooth_hinge_loss": ((1, 0.3), [0.5603774, 1.1437501, -0.19125, 0.75], [-0.1464623, 0.0488208], [0.0976415, 0.195283]),
    "poisson_loss": ((3, 0.3), [0.635232, 2.5753474, -0.0136652, 0.75], [-0.188568, 0.062856], [0.1257120, 0.251424]),
}


def run(fetches, *first):
    with tf.Session() as session:
        for ops in ([tf.global_variables_initializer(), tf.tables_initializer()], *first):
            session.run(ops)
        return session.run(fetches)


@pytest.mark.parametrize("op, adaptive", [(tf.raw_ops.SdcaOptimizerV2, "adaptive"), (tf.raw_ops.SdcaOptimizer, "adaptative")])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_pass_over_one_example_is_tensorflows(op, adaptive, loss):
    (label, dual), *want = ONE_EXAMPLE[loss]
    made = op(
        sparse_example_indices=[[0, 0]],
        sparse_feature_indices=[[3, 8]],
        sparse_feature_values=[[0.5, -1.5]],
        dense_features=[[[1.0, 2.0]]],
        example_weights=[0.75],
        example_labels=[float(label)],
        sparse_indices=[[8, 3]],
        sparse_weights=[[0.25, -0.5]],
        dense_weights=[[0.1, -0.4]],
        example_state_data=[[dual, 9, 9, 9]],
        loss_type=loss,
        l1=0.2,
        l2=2.0,
        num_loss_partitions=2,
        num_inner_iterations=1,
        **{adaptive: adaptive == "adaptative"},
    )
    state, (sparse,), (dense,) = run(list(made))
    for got, wanted in zip((state[0], sparse, dense), want):
        np.testing.assert_allclose(got, wanted, atol=2e-6)


def test_fingerprints_are_tensorflows():
    want = [[4143508125394299908, -6879828354153669051], [4463240938071824939, 4374473821787594281], [-7604171522506830005, -8220185208604959033]]
    assert run(tf.train.sdca_fprint(["abc", "", "a longer text, of more than sixteen bytes"])).tolist() == want


def test_weights_shrink_in_place():
    weights = [tf.Variable([0.5, -2.0, 0.1]), tf.Variable([[3.0]])]
    shrunk = tf.train.sdca_shrink_l1([w._ref() for w in weights], l1=0.5, l2=2.0)
    a, b = run(weights, shrunk)
    np.testing.assert_allclose(a, [0.25, -1.75, 0])
    np.testing.assert_allclose(b, [[2.75]])


def examples_of(features, labels, weights=None):
    rows, columns = np.nonzero(features)
    return dict(
        sparse_features=[L.SparseFeatureColumn(rows, columns, features[rows, columns])],
        dense_features=[],
        example_labels=tf.constant(labels, tf.float32),
        example_weights=np.ones(len(labels), np.float32) if weights is None else weights,
        example_ids=["example %d" % i for i in range(len(labels))],
    )


def trained(features, labels, parts, **options):
    examples = examples_of(features, labels)
    size = features.shape[1]
    cuts = [size] if parts == 1 else [size // parts + 1] * (parts - 1) + [size - (parts - 1) * (size // parts + 1)]
    weights = [tf.Variable(tf.zeros([n])) for n in cuts]
    of_model = dict(sparse_features_weights=[weights if parts > 1 else weights[0]], dense_features_weights=[])
    model = L.SdcaModel(examples, of_model, dict(symmetric_l1_regularization=0.0, symmetric_l2_regularization=1.0, **options))
    step = model.minimize()
    passes = [step] * 40 + [model.update_weights(step)]
    fetches = [tf.concat(weights, 0), model.regularized_loss(examples), model.approximate_duality_gap(), model.predictions(examples)]
    return run(fetches, *passes)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("parts", [1, 3])
def test_least_squares(parts, adaptive):
    rng = np.random.RandomState(1)
    features = (rng.randn(30, 7) * (rng.rand(30, 7) < 0.6)).astype(np.float32)
    labels = (features @ rng.randn(7) + 0.1 * rng.randn(30)).astype(np.float32)
    weights, loss, gap, predictions = trained(features, labels, parts, loss_type="squared_loss", adaptive=adaptive, num_table_shards=parts)
    best = np.linalg.solve(features.T @ features + np.eye(7), features.T @ labels)
    least = (np.sum((features @ best - labels) ** 2) + best @ best) / 2 / 30
    np.testing.assert_allclose(loss, least, rtol=1e-3)
    np.testing.assert_allclose(weights, best, atol=0.02)
    np.testing.assert_allclose(predictions, features @ weights, atol=1e-4)
    assert abs(gap) < 1e-3


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "squared_loss"])
def test_the_gap_closes(loss):
    rng = np.random.RandomState(2)
    features = (rng.randn(40, 5) * (rng.rand(40, 5) < 0.7)).astype(np.float32)
    score = features @ rng.randn(5)
    labels = rng.poisson(np.exp(0.3 * score)) if loss == "poisson_loss" else (score > 0)
    *_, gap, predictions = trained(features, labels.astype(np.float32), 1, loss_type=loss, adaptive=False)
    assert 0 <= gap + 1e-6 < 0.01
    guess = {"poisson_loss": lambda: None, "logistic_loss": lambda: predictions > 0.5}.get(loss, lambda: predictions > 0)()
    assert guess is None or np.mean(guess == labels) > 0.85


def test_several_optimizers_of_one_model():
    """Four, one after the other, each with examples of its own: TensorFlow 1.15 has the same gap, which those that take turns would close."""
    examples = examples_of(np.eye(2, dtype=np.float32), [0, 1])
    examples["sparse_features"] *= 2
    examples["example_ids"] = ids = tf.placeholder(tf.string, [2])
    weights = [tf.Variable(tf.zeros([2])) for _ in range(2)]
    options = dict(loss_type="logistic_loss", symmetric_l1_regularization=0, symmetric_l2_regularization=4, num_loss_partitions=4, adaptive=False)
    model = L.SdcaModel(examples, dict(sparse_features_weights=weights, dense_features_weights=[]), options)
    step = model.minimize()
    fetches = [model.approximate_duality_gap(), weights[1]]
    update = model.update_weights(step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for worker in range(4):
            for _ in range(100):
                session.run(step, {ids: ["%d" % (2 * worker), "%d" % (2 * worker + 1)]})
        session.run(update, {ids: ["0", "1"]})
        gap, found = session.run(fetches)
    np.testing.assert_allclose(gap, 0.02423479577555554, rtol=1e-5)
    np.testing.assert_allclose(found, [-0.3570919, 0.3570919], rtol=1e-6)


def test_l1_makes_zeros():
    rng = np.random.RandomState(3)
    features = rng.randn(50, 4).astype(np.float32)
    labels = (3 * features[:, 0]).astype(np.float32)
    columns = [tf.Variable(tf.zeros([1])) for _ in range(4)]
    examples = examples_of(features, labels)
    examples.update(sparse_features=[], dense_features=[features[:, i : i + 1] for i in range(4)])
    options = dict(loss_type="squared_loss", symmetric_l1_regularization=20.0, symmetric_l2_regularization=1.0)
    model = L.SdcaModel(examples, dict(sparse_features_weights=[], dense_features_weights=columns), options)
    step = model.minimize()
    (first,), *others = run(columns, *[step] * 20, model.update_weights(step))
    assert 2 < first < 3 and np.count_nonzero(others) == 0


def test_what_a_model_refuses():
    examples = examples_of(np.ones((2, 1), np.float32), [0, 1])
    weights = dict(sparse_features_weights=[tf.Variable([0.0])], dense_features_weights=[])
    good = dict(loss_type="logistic_loss", symmetric_l1_regularization=0, symmetric_l2_regularization=1)
    for message, given in (
        ("must all be specified", (examples, {}, good)),
        ("Unsupported loss_type", (examples, weights, {**good, "loss_type": "none"})),
        ("should be non-negative", (examples, weights, {**good, "symmetric_l1_regularization": -1})),
        ("must be a list", ({**examples, "dense_features": ()}, weights, good)),
        ("must be specified", ({**examples, "example_ids": None}, weights, good)),
    ):
        with pytest.raises(ValueError, match=message):
            L.SdcaModel(*given)


# ---- estimators of tf.contrib.learn ----


def numbers():
    features = {"id": tf.constant(["1", "2", "3", "4"]), "x": tf.constant([[0.5], [1.0], [-1.0], [-2.0]]), "cost": tf.constant([[1.0], [1.0], [1.0], [2.0]])}
    return features, tf.constant([[1], [1], [0], [0]])


def words():
    kinds = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0], [3, 0]], ["a", "a", "a", "b", "none"], [4, 2])
    return {"id": tf.constant(["1", "2", "3", "4"]), "kind": kinds}, tf.constant([[1], [1], [0], [0]])


def test_estimators_with_sdca(tmp_path):
    layers, learn = tf.contrib.layers, tf.contrib.learn
    x = layers.real_valued_column("x")
    optimizer = L.SDCAOptimizer("id", symmetric_l2_regularization=1.0)
    ranges = layers.bucketized_column(x, [-0.5, 0.7])
    classifier = learn.LinearClassifier([x, ranges], str(tmp_path / "classifier"), weight_column_name="cost", optimizer=optimizer)
    assert classifier.fit(input_fn=numbers, steps=20).evaluate(input_fn=numbers, steps=1)["accuracy"] == 1
    kind = layers.sparse_column_with_keys("kind", ["a", "b"])
    of_words = learn.LinearClassifier([kind], str(tmp_path / "words"), optimizer=optimizer)
    assert of_words.fit(input_fn=words, steps=20).evaluate(input_fn=words, steps=1)["loss"] < 0.5
    regressor = learn.LinearRegressor([x], str(tmp_path / "regressor"), optimizer=optimizer)
    assert regressor.fit(input_fn=numbers, steps=20).evaluate(input_fn=numbers, steps=1)["loss"] < 0.12
    svm = learn.SVM("id", [x], model_dir=str(tmp_path / "svm"))
    assert svm.fit(input_fn=numbers, steps=20).evaluate(input_fn=numbers, steps=1)["accuracy"] == 1
    assert list(svm.predict_classes(input_fn=lambda: (numbers()[0], None)))[:4] == [1, 1, 0, 0]


def test_what_sdca_does_not_train():
    column = tf.contrib.layers.real_valued_column("x")
    optimizer = L.SDCAOptimizer("id")
    with pytest.raises(ValueError, match="enable_centered_bias"):
        tf.contrib.learn.LinearClassifier([column], optimizer=optimizer, enable_centered_bias=True)
    with pytest.raises(ValueError, match="two classes"):
        tf.contrib.learn.LinearClassifier([column], n_classes=3, optimizer=optimizer)
    with pytest.raises(ValueError, match="does not support SDCA"):
        tf.contrib.learn.LinearEstimator([column], tf.contrib.learn.regression_head(), optimizer=optimizer)
    with pytest.raises(ValueError, match="Kernel"):
        tf.contrib.learn.SVM("id", [column], kernels=["rbf"])
    one_hot = tf.contrib.layers.one_hot_column(tf.contrib.layers.sparse_column_with_keys("k", ["a"]))
    with pytest.raises(ValueError, match="column type _OneHotColumn"):
        optimizer.get_train_step({one_hot: [None]}, None, "squared_loss", {one_hot: None}, None, None)


# ---- estimators of tf.estimator ----


def test_linear_sdca(tmp_path):
    columns, estimator = tf.feature_column, tf.estimator
    x, kind = columns.numeric_column("x"), columns.categorical_column_with_vocabulary_list("kind", ["a", "b"])
    ranges = columns.bucketized_column(x, [-0.5, 0.7])
    sdca = estimator.experimental.LinearSDCA("id")
    classifier = estimator.LinearClassifier([x, ranges], str(tmp_path / "classifier"), weight_column="cost", optimizer=sdca)
    assert classifier.train(numbers, steps=20).evaluate(numbers, steps=1)["accuracy"] == 1
    of_words = estimator.LinearClassifier([kind], str(tmp_path / "words"), optimizer=sdca)
    assert of_words.train(words, steps=20).evaluate(words, steps=1)["average_loss"] < 0.5
    regressor = estimator.LinearRegressor([x], str(tmp_path / "regressor"), optimizer=sdca)
    assert regressor.train(numbers, steps=20).evaluate(numbers, steps=1)["average_loss"] < 0.12
    for message, make in (
        ("two classes", lambda: estimator.LinearClassifier([x], n_classes=3, optimizer=sdca)),
        ("one number", lambda: estimator.LinearRegressor([x], label_dimension=2, optimizer=sdca)),
        ("sparse_combiner", lambda: estimator.LinearRegressor([x], optimizer=sdca, sparse_combiner="mean")),
    ):
        with pytest.raises(ValueError, match=message):
            make()
