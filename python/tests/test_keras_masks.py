# SPDX-License-Identifier: Apache-2.0
"""What becomes of masks between layers of tf.keras."""

import numpy as np
import pytest

import millrace as tf

keras = tf.keras


@pytest.fixture(autouse=True)
def fresh():
    keras.backend.clear_session()


class _TakesMasks(keras.layers.Layer):
    def call(self, inputs, mask=None):
        return inputs * (1.0 if mask is None else 2.0)


class _SaysItsMask(_TakesMasks):
    def compute_mask(self, inputs, mask=None):
        return tf.zeros([]) if mask is None else tf.ones([])


@pytest.mark.parametrize("make", [keras.layers.Flatten, lambda: keras.layers.Conv1D(2, 1), lambda: keras.layers.Reshape((6,)), _TakesMasks])
def test_masks_end_at_layers_that_do_not_carry_them_on(make):
    start = keras.Input((3,))
    masked = keras.layers.Embedding(5, 2, mask_zero=True)(start)
    for layer in (make(), keras.Sequential([make()])):
        made = layer(masked)
        assert made._keras_mask is None and keras.Model(start, made).predict(np.array([[1, 0, 2]])).shape[0] == 1
    with pytest.raises(TypeError, match="does not support masking"):
        make().compute_mask(tf.ones([1, 3]), tf.ones([1, 3]))


def test_masks_that_calls_are_given_count():
    for mask in ((tf.ones([1, 1]),), ()):
        x = tf.ones([1, 1])
        assert keras.backend.get_value(_SaysItsMask()(x, *mask)._keras_mask) == len(mask)
    start = keras.Input((3,))
    masked = keras.layers.Embedding(5, 2, mask_zero=True)(start)
    for told, factor in (({}, 2), ({"mask": None}, 1), ({"mask": tf.ones([1, 3])}, 2)):
        made, data = _TakesMasks()(masked, **told), np.array([[1, 0, 2]])
        np.testing.assert_allclose(keras.Model(start, made).predict(data), factor * keras.Model(start, masked).predict(data))
