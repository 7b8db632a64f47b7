# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.keras.engine.training_utils and data_adapter: values of batches gathered, and what a model is trained on as data sets."""

import numpy as np
import pytest

import millrace as tf
from millrace.keras.engine import data_adapter, training_generator, training_utils
from millrace.ops.ragged.value import RaggedTensorValue

DATA = np.arange(60).reshape(6, 10)


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default(), tf.Session():
        yield


def gathered(use_steps, parts=4):
    made = training_utils.OutputsAggregator(use_steps, None if use_steps else 6)
    end = 0
    for i, part in enumerate(np.array_split(DATA, parts)):
        batch = (part, {"twice": 2 * part})
        if i == 0:
            made.create(batch)
        start, end = end, end + len(part)
        made.aggregate(batch, *(() if use_steps else (start, end)))
    made.finalize()
    return made.results


@pytest.mark.parametrize("threshold", [1, 2**14])
@pytest.mark.parametrize("use_steps", [True, False])
def test_values_of_batches(use_steps, threshold, monkeypatch):
    monkeypatch.setattr(training_utils.SliceAggregator, "_BINARY_SIZE_THRESHOLD", threshold)
    for parts in (1, 4):
        one, two = gathered(use_steps, parts)
        np.testing.assert_array_equal(one, DATA)
        np.testing.assert_array_equal(two["twice"], 2 * DATA)


def test_values_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(training_utils.SliceAggregator, "_BINARY_SIZE_THRESHOLD", 1)
    made = training_utils.SliceAggregator(6, None)
    made.create(DATA[:2])
    made.aggregate(DATA[:3], 0, 2)
    with pytest.raises(ValueError, match="broadcast"):
        made.finalize()
    made = training_utils.ConcatAggregator(2)
    with pytest.raises(ValueError, match=r"Output shape = \(3, 10\), expected output shape = shape \(2, 10\)"):
        made.aggregate(DATA[:3])
    rows = training_utils.OutputsAggregator(True)
    value = RaggedTensorValue(np.array([1, 2, 3]), np.array([0, 1, 3]))
    rows.create(value)
    rows.aggregate(value)
    rows.aggregate(value)
    rows.finalize()
    assert rows.results.to_list() == [[1], [2, 3], [1], [2, 3]]
    with pytest.raises(RuntimeError, match="unsupported object 'x'"):
        rows.create("x")
    means = training_utils.MetricsAggregator(False, num_samples=4)
    means.create([0, 0])
    means.aggregate([2.0, 5.0], 0, 1)
    means.aggregate([4.0, 7.0], 1, 4)
    means.finalize()
    assert means.results == [3.5, 7.0]


def test_what_is_known_of_data_sets():
    rows = tf.data.Dataset.range(5)
    batched = (rows.batch(2), rows.padded_batch(2, []), rows.flat_map(lambda x: tf.data.Dataset.from_tensors(x)), rows.window(2))
    plain = (rows, rows.map(lambda x: x).cache(), rows.repeat().take(3).prefetch(1), rows.concatenate(rows), tf.data.Dataset.zip((rows, rows)))
    for made in (*plain, rows.shuffle(2)):
        training_utils.assert_not_batched(made)
    for made in batched:
        with pytest.raises(ValueError, match="Could not assert that dataset is not batched"):
            training_utils.assert_not_batched(made)
    for made in (*plain, batched[0], batched[1], batched[3]):
        training_utils.assert_not_shuffled(made)
    with pytest.raises(ValueError, match="not shuffled: it is made by ShuffleDataset"):
        training_utils.assert_not_shuffled(rows.shuffle(2).batch(2))


def test_inputs_by_name():
    made = training_utils.ModelInputs({"b": np.ones((2, 3)), "a": np.ones(2, np.int32)})
    assert made.get_input_names() == ["a", "b"]
    tensors = made.get_symbolic_inputs()
    assert tensors["a"].shape.as_list() == [None, 1] and tensors["a"].dtype == tf.int32
    assert tensors["b"].shape.as_list() == [None, 3] and tensors["b"].dtype == tf.float32
    assert dict(made.as_dict()) == tensors
    single = training_utils.ModelInputs(np.ones(10))
    assert single.get_input_names() == ["input_1"] and single.get_symbolic_inputs() is single.get_symbolic_inputs(return_single_as_list=True)[0]


def batches(adapter):
    iterator = adapter.get_dataset().make_one_shot_iterator()
    following, found, session = iterator.get_next(), [], tf.get_default_session()
    for _ in range(100):
        try:
            found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return found
    return found


def test_arrays_as_data_sets():
    x, y = np.arange(7.0), np.arange(7) * 10
    adapter = data_adapter.select_data_adapter(x, y)(x, y, batch_size=3, epochs=2)
    assert (adapter.get_size(), adapter.batch_size(), adapter.has_partial_batch(), adapter.partial_batch_size()) == (3, 3, True, 1)
    found = batches(adapter)
    assert [b[0].tolist() for b in found] == [[0, 1, 2], [3, 4, 5], [6]] * 2 and found[1][1].tolist() == [30, 40, 50]
    shuffled = np.concatenate([b[0] for b in batches(data_adapter.TensorLikeDataAdapter(x, batch_size=2, shuffle=True))])
    assert sorted(shuffled) == x.tolist()
    assert data_adapter.TensorLikeDataAdapter(tf.zeros((50, 2)), steps=4).batch_size() == 13
    with pytest.raises(ValueError, match="`batch_size` or `steps` is required"):
        data_adapter.TensorLikeDataAdapter(x)
    words = data_adapter.select_data_adapter([[1, 2], [3, 4]], None)([[1, 2], [3, 4]], batch_size=2)
    assert batches(words)[0][0].tolist() == [[1, 2], [3, 4]]
    sparse = tf.sparse.from_dense(np.eye(4))
    made = data_adapter.select_data_adapter(sparse, None)(sparse, batch_size=2)
    assert made.get_size() == 2 and len(batches(made)) == 2


def test_what_gives_batches_as_data_sets():
    class Twos(tf.keras.utils.Sequence):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return np.full((2, 1), index), np.full(2, index)

    def generator():
        for i in range(4):
            yield np.full((2, 1), i), np.full(2, i)

    for given, kind, count in ((Twos(), data_adapter.KerasSequenceAdapter, 3), (generator(), data_adapter.GeneratorDataAdapter, 4)):
        assert data_adapter.select_data_adapter(given, None) is kind
        adapter = kind(given, workers=0)
        assert adapter.batch_size() == 2 and [b[1][0] for b in batches(adapter)] == list(range(count))
        with pytest.raises(ValueError, match="`y` argument is not supported"):
            kind(given, np.ones(2))
    ahead = data_adapter.KerasSequenceAdapter(Twos())
    assert [b[1][0] for b in batches(data_adapter.DatasetAdapter(ahead.get_dataset().take(5)))] == [0, 1, 2, 0, 1]
    with pytest.raises(ValueError, match="No data adapter can handle the input"):
        data_adapter.select_data_adapter(object(), None)


def test_batches_one_after_the_other():
    x, y = np.arange(5), (np.arange(5) * 2, None)
    made, count = training_generator.convert_to_generator_like((x, y, None), 2, epochs=2)
    first = list(made)
    assert count == 3 and len(first) == 6 and first[3][0].tolist() == [0, 1] and first[2][1][0].tolist() == [8]
    mixed, _ = training_generator.convert_to_generator_like(x, 5, shuffle=True)
    assert sorted(next(mixed)) == x.tolist()
    given = iter(first)
    assert training_generator.convert_to_generator_like(given, steps_per_epoch=4) == (given, 4)
    with pytest.raises(ValueError, match="Please use `batch_size` instead"):
        training_generator.convert_to_generator_like(x)


def test_what_generators_may_give():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, activity_regularizer="l2", input_shape=(3,))])
    model.compile("sgd")
    data = np.ones((4, 3))
    losses = model.fit_generator(iter([(data,), data]), 2, verbose=0).history["loss"]
    assert len(losses) == 1 and losses[0] > 0
    with pytest.raises(ValueError, match="a tuple of 1 or 2 or 3 elements"):
        model.fit_generator(iter([(data, data, data, data)]), 1, verbose=0)
    for wrong, text in (({"y": data}, "`y` argument is not supported"), ({"validation_split": 0.5}, "you cannot use `validation_split`")):
        with pytest.raises(ValueError, match=text):
            model.fit(iter([data]), steps_per_epoch=1, verbose=0, **wrong)


def test_a_loss_with_weights_and_a_mask():
    state = np.random.RandomState(0)
    y, x, mask, weights = state.rand(3, 4, 2), state.rand(3, 4, 2), np.ones((3, 4)), np.array([1.0, 0.0, 2.0])
    mask[1, 0] = 0
    made = training_utils.weighted_masked_objective(tf.keras.losses.get("mae"))(*(tf.constant(v, tf.float32) for v in (y, x, weights, mask)))
    each = np.abs(y - x).mean(-1) * mask / mask.mean()
    np.testing.assert_allclose(tf.get_default_session().run(made), (each.mean(1) * weights / np.mean(weights != 0)).mean(), rtol=1e-5)
    assert training_utils.weighted_masked_objective(None) is None
    assert training_utils.slice_arrays([1, None, DATA], 1, 3)[:2] == [None, None]


def test_a_size_of_batches_beside_tensors_counts_nothing():
    x, y = tf.constant(np.arange(24, dtype=np.float32).reshape(8, 3) / 10), tf.zeros([8, 2])

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(2, kernel_initializer="ones")

        def call(self, inputs):
            return self.dense(inputs)

    losses = []
    for size in (None, 4):
        model = Model()
        model.compile("sgd", "mse")
        losses += model.fit(x, y, batch_size=size, epochs=1, steps_per_epoch=2, verbose=0).history["loss"]
        assert model.predict(x, batch_size=size, steps=2).shape == (16, 2)
        losses.append(model.evaluate(x, y, batch_size=size, steps=1, verbose=0))
    np.testing.assert_allclose(losses[:2], losses[2:])
