# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn: recurrent estimators, baselines of a bias alone, and models that are put together."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import layers, learn
from millrace.contrib.learn import composable_model, debug, dynamic_rnn, rnn_common, state_saving_rnn


def test_baselines_tell_what_was_most_frequent_and_the_mean(tmp_path):
    classifier = debug.DebugClassifier(n_classes=3)
    classifier.fit(input_fn=lambda: ({"x": tf.zeros([8, 2])}, tf.constant([0, 2, 2, 1, 2, 2, 0, 2])), steps=60)
    assert list(classifier.predict_classes(input_fn=lambda: ({"x": tf.zeros([2, 2])}, None))) == [2, 2]
    frequent = next(classifier.predict_proba(input_fn=lambda: ({"x": tf.zeros([2, 2])}, None)))
    np.testing.assert_allclose(frequent, [2 / 8, 1 / 8, 5 / 8], atol=0.05)
    regressor = debug.DebugRegressor()
    regressor.fit(input_fn=lambda: ({"x": tf.zeros([4, 1])}, tf.constant([1.0, 2.0, 3.0, 6.0])), steps=150)
    np.testing.assert_allclose(next(regressor.predict_scores(input_fn=lambda: ({"x": tf.zeros([1, 1])}, None))), 3.0, atol=0.05)


def test_the_last_steps_and_the_steps_within_lengths():
    with tf.Graph().as_default(), tf.Session() as session:
        values, labels, lengths = tf.reshape(tf.range(12), [2, 3, 2]), tf.reshape(tf.range(6), [2, 3]), tf.constant([1, 3])
        assert session.run(rnn_common.select_last_activations(values, lengths)).tolist() == [[0, 1], [10, 11]]
        assert session.run(rnn_common.select_last_activations(values, None)).tolist() == [[4, 5], [10, 11]]
        kept, kept_labels = session.run(rnn_common.mask_activations_and_labels(values, labels, lengths))
        assert kept.tolist() == [[0, 1], [6, 7], [8, 9], [10, 11]] and kept_labels.tolist() == [0, 3, 4, 5]


def _sums(seed):
    """Sequences of two lengths, and for each whether it has more ones than zeros."""
    rng = np.random.RandomState(seed)
    x = rng.randint(0, 2, [16, 5]).astype(np.float32)
    lengths = np.where(np.arange(16) % 2, 5, 3).astype(np.int32)
    y = np.array([int(row[:n].sum() * 2 > n) for row, n in zip(x, lengths)])
    return x, lengths, y


def test_a_recurrent_classifier_learns_and_predicts_its_state(tmp_path):
    x, lengths, y = _sums(0)

    def input_fn():
        return {"x": tf.constant(x[:, :, None]), "sequence_length": tf.constant(lengths)}, tf.constant(y)

    model = learn.DynamicRnnEstimator(
        learn.ProblemType.CLASSIFICATION,
        learn.PredictionType.SINGLE_VALUE,
        [layers.real_valued_column("x")],
        num_classes=2,
        num_units=[6],
        cell_type="gru",
        optimizer="Adam",
        learning_rate=0.05,
        predict_probabilities=True,
        model_dir=str(tmp_path),
        config=learn.RunConfig(tf_random_seed=1),
    )
    model.fit(input_fn=input_fn, steps=120)
    assert model.evaluate(input_fn=input_fn, steps=1)["accuracy"] > 0.9
    answer = model.predict(input_fn=input_fn, as_iterable=False)
    assert {key: value.shape for key, value in answer.items()} == {"classes": (16,), "probabilities": (16, 2), "rnn_cell_state_0": (16, 6)}


def test_a_state_goes_on_where_it_was_told():
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(2), tf.nn.rnn_cell.GRUCell(3)])
    with tf.Graph().as_default(), tf.Session() as session:
        named = {"rnn_cell_state_%d" % i: tf.fill([1, n], float(i)) for i, n in enumerate([2, 2, 3])}
        state = dynamic_rnn.dict_to_state_tuple(named, cell)
        assert isinstance(state[0], tf.nn.rnn_cell.LSTMStateTuple)
        back = session.run(dynamic_rnn.state_tuple_to_dict(state))
        assert {key: value.tolist() for key, value in back.items()} == {key: value.tolist() for key, value in session.run(named).items()}
        assert dynamic_rnn.dict_to_state_tuple({}, cell) is None
        with pytest.raises(ValueError, match="partially specified"):
            dynamic_rnn.dict_to_state_tuple({"rnn_cell_state_0": named["rnn_cell_state_0"]}, cell)


def test_kinds_of_recurrent_estimators_are_checked():
    column = [layers.real_valued_column("x")]
    for given, message in (((3, 1, column), "problem_type"), ((2, 3, column), "prediction_type"), ((1, 1, column), "num_classes")):
        with pytest.raises(ValueError, match=message):
            learn.DynamicRnnEstimator(*given)


def test_models_that_are_put_together_train_their_own_variables(tmp_path):
    def model_fn(features, labels, mode):
        linear = composable_model.LinearComposableModel(1, scope="wide")
        deep = composable_model.DNNComposableModel(1, [3], scope="deep", optimizer=tf.train.GradientDescentOptimizer(0.0), dropout=0.5)
        columns = [layers.real_valued_column("x")]
        logits = linear.build_model(features, columns, True) + deep.build_model(features, columns, mode == "train")
        loss = tf.reduce_mean(tf.square(logits - labels))
        steps = [*linear.get_train_step(loss), *deep.get_train_step(loss), tf.assign_add(tf.train.get_global_step(), 1)]
        return logits, loss, tf.group(*steps)

    def input_fn():
        return {"x": tf.constant([[1.0], [2.0]])}, tf.constant([[3.0], [5.0]])

    model = learn.Estimator(model_fn, model_dir=str(tmp_path))
    model.fit(input_fn=input_fn, steps=1)
    deep = composable_model.DNNComposableModel(1, [3], scope="deep").get_weights(str(tmp_path))
    model.fit(input_fn=input_fn, steps=200)
    wide = composable_model.LinearComposableModel(1, scope="wide")
    np.testing.assert_array_equal(deep[0], composable_model.DNNComposableModel(1, [3], scope="deep").get_weights(str(tmp_path))[0])
    assert wide.get_weights(str(tmp_path)).shape == (1, 1) and abs(wide.get_bias(str(tmp_path))[0]) > 0.1


def test_segments_of_sequences_hand_their_state_on(tmp_path):
    def input_fn():
        start = tf.random_uniform([], 0, 2, dtype=tf.int32, seed=1)
        steps = (tf.range(13) + start) % 2
        return {"inputs": tf.cast(steps[:12], tf.float32)}, steps[1:]

    estimator = state_saving_rnn.StateSavingRnnEstimator(
        learn.ProblemType.CLASSIFICATION,
        num_unroll=4,
        batch_size=4,
        sequence_feature_columns=[layers.real_valued_column("inputs", dimension=1)],
        num_classes=2,
        num_units=[3],
        cell_type="lstm",
        learning_rate=1.0,
        predict_probabilities=True,
        queue_capacity=10,
        seed=3,
        config=learn.RunConfig(tf_random_seed=5),
        model_dir=str(tmp_path),
    )
    estimator.fit(input_fn=input_fn, steps=60)
    assert estimator.evaluate(input_fn=input_fn, steps=5)["accuracy"] > 0.95
    answer = estimator.predict(input_fn=input_fn, as_iterable=False)
    assert {key: value.shape for key, value in answer.items()} == {"classes": (4, 4), "probabilities": (4, 4, 2), "rnn_cell_state_0": (2, 4, 3)}


def test_what_segments_are_made_of():
    with tf.Graph().as_default():
        names = state_saving_rnn._get_state_names
        cell = tf.nn.rnn_cell
        assert names(cell.GRUCell(2)) == "rnn_cell_state_0" and names(cell.LSTMCell(2)) == ["rnn_cell_state_0_c", "rnn_cell_state_0_h"]
        assert names(cell.MultiRNNCell([cell.GRUCell(2)] * 2)) == ["rnn_cell_state_0", "rnn_cell_state_1"]
        column = layers.real_valued_column("x")
        with pytest.raises(ValueError, match="No key in features for context feature: y"):
            state_saving_rnn._prepare_features_for_sqss({"x": tf.ones([3])}, None, learn.ModeKeys.INFER, [column], [layers.real_valued_column("y")])
        with pytest.raises(ValueError, match="not currently supported for sequence data"):
            state_saving_rnn._prepare_features_for_sqss({}, None, learn.ModeKeys.INFER, [layers.bucketized_column(column, [0.0])], None)
