# SPDX-License-Identifier: Apache-2.0
"""Keras models trained on what comes in batches: sequences and generators; and decorators that say what they are."""

import collections
import inspect

import numpy as np
import pytest

import millrace as tf
from millrace.compat import decorators

keras = tf.keras


class Batches(keras.utils.Sequence):
    """Batch i is full of i; remembers what was asked for."""

    def __init__(self, count=6):
        self.count, self.asked, self.ends = count, [], []

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        self.asked.append(i)
        return np.full([2, 3], i, np.float32), np.zeros([2, 1], np.float32)

    def on_epoch_end(self):
        self.ends.append(len(self.asked))


def linear():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(3,))])
    model.compile("sgd", "mse")
    return model


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default(), tf.Session().as_default():
        yield


def test_a_sequence_is_gone_through_in_new_orders():
    given = Batches()
    linear().fit_generator(given, epochs=4, verbose=0)
    orders = [tuple(given.asked[i : i + 6]) for i in range(0, 24, 6)]
    assert [sorted(o) for o in orders] == [list(range(6))] * 4
    assert len(set(orders)) > 1
    assert given.ends == [6, 12, 18, 24]


def test_a_sequence_that_is_not_to_be_shuffled_goes_on_where_it_stopped():
    given = Batches()
    linear().fit_generator(given, epochs=3, steps_per_epoch=4, shuffle=False, verbose=0)
    assert given.asked == [0, 1, 2, 3, 4, 5] * 2
    assert given.ends == [6, 12]


def test_a_model_that_is_built_by_its_first_batch_trains_on_it_too():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1, kernel_initializer="zeros")

        def call(self, x):
            return self.dense(x)

    taken = []

    def batches():
        for i in range(4):
            taken.append(i)
            yield np.full([2, 3], i, np.float32), np.full([2, 1], float(i == 0), np.float32)

    model = Model()
    model.compile("sgd", "mse")
    told = model.fit_generator(batches(), steps_per_epoch=4, verbose=0)
    assert taken == [0, 1, 2, 3]
    assert told.history["loss"][0] > 0.2  # that of the first batch is 1


def test_channels_are_looked_for_where_the_format_has_them():
    images = np.zeros([2, 3, 8, 8])
    with pytest.warns(UserWarning, match="x has 8"):
        keras.preprocessing.image.NumpyArrayIterator(images, None, None, data_format="channels_last")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        keras.preprocessing.image.NumpyArrayIterator(images, None, None, data_format="channels_first")


def test_decorators_tell_what_they_were_told():
    def target(a, b=1):
        """A text."""

    spec = collections.namedtuple("ArgSpec", ["args", "varargs", "keywords", "defaults"])(["x", "y"], "more", "named", (2,))
    made = decorators.make_decorator(target, lambda *a, **k: 7, "twice", "doubles", spec)
    assert made() == 7 and made.__doc__ == "doubles"  # as in 1.15: what the decorator says, where it says something
    assert str(inspect.signature(made)) == "(x, y=2, *more, **named)"
    found, inner = decorators.unwrap(made)
    assert inner is target and [(d.decorator_name, d.decorator_doc) for d in found] == [("twice", "doubles")]
    assert decorators.unwrap(decorators.make_decorator(target, lambda: 1))[0][0].decorator_name == "test_decorators_tell_what_they_were_told"
    assert decorators.unwrap(target) == ([], target)


def test_a_sequence_without_batches_has_none_to_train_on():
    class Nothing(keras.utils.Sequence):
        def __len__(self):
            return 0

        def __getitem__(self, index):
            raise IndexError(index)

    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="no batches, but 2"):
        model.fit_generator(Nothing(), steps_per_epoch=2, verbose=0)
