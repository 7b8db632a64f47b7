# SPDX-License-Identifier: Apache-2.0
"""Models with sparse and ragged inputs, outputs and tensors between layers."""

import numpy as np
import pytest

import millrace as tf
from millrace.keras.engine.composites import rows_of


class ToDense(tf.keras.layers.Layer):
    def call(self, inputs):
        dense = inputs.to_tensor(default_value=-1) if isinstance(inputs, tf.RaggedTensor) else tf.sparse.to_dense(inputs, default_value=-1)
        return tf.cast(dense, tf.float32)


class ToSparse(tf.keras.layers.Layer):
    def call(self, inputs):
        return tf.sparse.from_dense(inputs)


class ToRagged(tf.keras.layers.Layer):
    def call(self, inputs):
        return tf.RaggedTensor.from_tensor(inputs, padding=0)


@pytest.fixture(autouse=True)
def fresh():
    tf.keras.backend.clear_session()


def dense_model(shape, **kind):
    start = tf.keras.Input(shape, **kind)
    return tf.keras.Model(start, ToDense()(start))


@pytest.fixture
def scipy_sparse():
    return pytest.importorskip("scipy.sparse")


def matrix_of(scipy_sparse, form="coo"):
    return scipy_sparse.coo_matrix(([1.0, 2, 3], ([1, 0, 1], [1, 0, 0])), shape=[2, 3]).asformat(form)


FULL = [[2, -1, -1], [3, 1, -1]]


@pytest.mark.parametrize("form", ["coo", "csr"])
def test_matrices_of_scipy_feed_sparse_inputs(scipy_sparse, form):
    model, matrix = dense_model((3,), sparse=True), matrix_of(scipy_sparse, form)
    for options in ({}, {"batch_size": 1}, {"steps": 1}):
        assert model.predict(matrix, **options).tolist() == FULL
    model.compile("sgd", "mse", metrics=["mae"])
    assert model.evaluate(matrix, np.array(FULL), verbose=0) == [0.0, 0.0]
    assert model.fit(matrix, np.array(FULL), batch_size=1, verbose=0).history["loss"] == [0.0]
    assert model.train_on_batch(matrix, np.array(FULL)) == [0.0, 0.0]
    with pytest.raises(ValueError, match="got array with shape"):
        model.predict(scipy_sparse.eye(4))


def test_matrices_of_scipy_feed_dense_inputs(scipy_sparse):
    start = tf.keras.Input((3,))
    assert tf.keras.Model(start, start * 1).predict(matrix_of(scipy_sparse), batch_size=1).tolist() == matrix_of(scipy_sparse).toarray().tolist()


def test_sparse_tensors_feed_sparse_inputs():
    model = dense_model((3,), sparse=True)
    value = tf.SparseTensorValue([[0, 0], [1, 0], [1, 1]], np.float32([2, 3, 1]), [2, 3])
    assert model.predict(value, batch_size=1).tolist() == FULL
    assert model.predict(tf.SparseTensor(*value), steps=1).tolist() == FULL
    assert model.predict({model.input_names[0]: tf.SparseTensor(*value)}).tolist() == FULL
    assert model.predict(tf.data.Dataset.from_tensor_slices(tf.SparseTensor(*value)).batch(2), steps=1).tolist() == FULL


def test_ragged_tensors_feed_ragged_inputs():
    model = dense_model((None, None), ragged=True, dtype=tf.int32)
    ragged = tf.ragged.constant([[[1]], [[2, 3]]])
    assert model.predict(ragged).tolist() == [[[1, -1]], [[2, 3]]]
    assert model.predict(ragged, steps=2).tolist() == [[[1, -1]], [[2, 3]]] * 2
    with tf.Session() as session:
        value = session.run(ragged)
    assert model.predict(value).tolist() == [[[1, -1]], [[2, 3]]]
    with pytest.raises(ValueError, match="nested structure: they have 1 and 2"):
        model.predict(tf.ragged.constant([[[1, 0]], [[2, 3]]], ragged_rank=1))
    model.compile("sgd", "mse")
    assert model.evaluate(ragged, np.array([[[1, -1]], [[2, 3]]]), verbose=0) == 0


def test_an_input_with_no_ragged_dimension_is_dense():
    assert tf.keras.Input((1, 2), ragged=True).shape.as_list() == [None, 1, 2]


def test_outputs_of_batches_become_one():
    start = tf.keras.Input((None,))
    model = tf.keras.Model(start, [ToSparse()(start), ToRagged()(start)])
    sparse, ragged = model.predict(np.array([[1, 0, 0], [2, 3, 0], [4, 0, 0]]), batch_size=2)
    assert sparse.indices.tolist() == [[0, 0], [1, 0], [1, 1], [2, 0]] and sparse.values.tolist() == [1, 2, 3, 4] and list(sparse.dense_shape) == [3, 3]
    assert ragged.to_list() == [[1], [2, 3], [4]]


def test_layers_hand_on_what_they_are_given():
    start = tf.keras.Input((None,))
    made = tf.keras.layers.Layer()(ToRagged()(start))
    assert isinstance(made, tf.RaggedTensor) and tf.keras.Model(start, ToDense()(made)).predict(np.array([[1, 0], [2, 3]])).tolist() == [[1, -1], [2, 3]]


def test_subclasses_are_connected_to_inputs(scipy_sparse):
    class Subclass(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = ToDense()

        def call(self, inputs):
            return self.dense(inputs)

    model = Subclass()
    model._set_inputs(tf.keras.Input((3,), sparse=True))
    assert model.predict(matrix_of(scipy_sparse)).tolist() == FULL
    for undeclared in (Subclass(), tf.keras.Sequential([ToDense()])):
        with pytest.raises(ValueError, match="either a single array"):
            undeclared.predict(matrix_of(scipy_sparse))
        with pytest.raises(ValueError, match="All SparseTensor and RaggedTensor inputs"):
            undeclared.predict(tf.SparseTensor([[0, 0]], [1.0], [2, 3]), steps=1)


def test_values_by_rows():
    model, rng = dense_model((None,), ragged=True), np.random.RandomState(0)
    rows = [rng.randint(1, 9, n).astype(np.float32) for n in (0, 3, 1, 2)]
    value = tf.ragged.RaggedTensorValue(np.concatenate(rows), np.array([0, 0, 3, 4, 6]))
    model.compile("sgd", "mse")
    for first, last in ((0, 2), (1, 4)):
        whole = model.predict(value, steps=1)[first:last]
        part = model.predict(rows_of(value, slice(first, last)))
        assert (part == whole[:, : part.shape[1]]).all()


def test_subclasses_are_connected_to_inputs_like_arrays():
    class Twice(tf.keras.Model):
        def call(self, inputs):
            return inputs * 2

    model = Twice()
    model._set_inputs(np.ones((4, 3)))
    assert model.inputs[0].shape.as_list() == [None, 3] and model.predict(np.ones((2, 3))).tolist() == [[2.0] * 3] * 2
    own, model = tf.placeholder(tf.float32, [None, 3]), Twice()
    model._set_inputs(own)
    assert model.inputs == [own] and model.predict(np.ones((2, 3))).tolist() == [[2.0] * 3] * 2


def test_targets_may_be_a_variable():
    start = tf.keras.Input((3,))
    model = tf.keras.Model(start, start * 1.0)
    target = tf.keras.backend.variable(np.zeros((2, 3)))
    model.compile("sgd", "mse", target_tensors=target)
    assert model.test_on_batch(np.ones((2, 3))) == 1.0
