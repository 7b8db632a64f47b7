# SPDX-License-Identifier: Apache-2.0
"""Elements of data sets that are no dense tensors: sparse and ragged ones, tensor arrays, data sets and what may be absent."""

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.ops import gen_ops

Dataset = tf.data.Dataset


def elements(dataset):
    following = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as sess:
        while True:
            try:
                found.append(sess.run(following))
            except tf.errors.OutOfRangeError:
                return found


def sparse(rows):
    rows = np.asarray(rows)
    return tf.SparseTensor(np.stack(np.nonzero(rows), -1).astype(np.int64), rows[np.nonzero(rows)], rows.shape)


def dense(value):
    made = np.zeros(value.dense_shape, value.values.dtype)
    made[tuple(value.indices.T)] = value.values
    return made


def test_sparse_components_go_through_every_transformation():
    rows = np.array([[0, 1, 0], [2, 0, 3], [0, 0, 0], [4, 0, 0], [0, 5, 6]], "f")
    slices = Dataset.from_tensor_slices((sparse(rows), np.arange(5)))
    assert slices.output_classes == (tf.SparseTensor, tf.Tensor) and slices.output_shapes[0].as_list() == [3]
    assert slices.element_spec[0] == tf.SparseTensorSpec([3], tf.float32)
    got = elements(slices)
    np.testing.assert_array_equal([dense(s) for s, _ in got], rows)
    assert [n for _, n in got] == [0, 1, 2, 3, 4]
    doubled = slices.map(lambda s, n: (s * 2.0, n)).filter(lambda s, n: tf.sparse_reduce_sum(s) > 0.0)
    batches = doubled.repeat(2).batch(3)
    assert batches.output_shapes[0].as_list() == [None, None]
    np.testing.assert_array_equal(np.concatenate([dense(s) for s, _ in elements(batches)]), np.tile(2 * rows[[0, 1, 3, 4]], (2, 1)))
    np.testing.assert_array_equal([dense(s) for s, _ in elements(batches.apply(tf.data.experimental.unbatch()))], np.tile(2 * rows[[0, 1, 3, 4]], (2, 1)))
    again = slices.flat_map(lambda s, n: Dataset.from_tensors(s).repeat(n))
    assert [dense(s).sum() for s in elements(again.concatenate(again.take(1)))] == [5, 0, 0, 4, 4, 4, 11, 11, 11, 11, 5]
    total = slices.reduce(sparse(np.zeros([3], "f")), lambda state, element: tf.sparse_add(state, element[0]))
    with tf.Session() as sess:
        np.testing.assert_array_equal(dense(sess.run(total)), rows.sum(0))
    for window in elements(Dataset.zip((slices.window(2), Dataset.range(2))).flat_map(lambda w, i: w[0].batch(2))):
        assert dense(window).shape == (2, 3)
    with pytest.raises(TypeError, match="padded sparse"):
        slices.padded_batch(2, ([None], []))
    with pytest.raises(TypeError, match="different types"):
        slices.concatenate(Dataset.zip((Dataset.from_tensors(rows[0]), Dataset.range(1))))


def test_parsed_examples_keep_their_sparse_features():
    def example(*words):
        return tf.train.Example(features=tf.train.Features(feature={"w": tf.train.Feature(bytes_list=tf.train.BytesList(value=words))})).SerializeToString()

    texts = Dataset.from_tensor_slices([example(b"a"), example(), example(b"b", b"c")]).batch(3)
    (got,) = elements(texts.map(lambda t: tf.parse_example(t, {"w": tf.VarLenFeature(tf.string)})))
    assert got["w"].values.tolist() == [b"a", b"b", b"c"] and got["w"].dense_shape.tolist() == [3, 2]


def test_iterators_of_sparse_elements_by_structure_and_by_handle():
    rows = np.eye(3, dtype=np.int32)
    dataset = Dataset.from_tensor_slices(sparse(rows))
    iterator = tf.data.Iterator.from_structure(tf.int32, [3], output_classes=tf.SparseTensor)
    start = iterator.make_initializer(dataset)
    handle = tf.placeholder(tf.string, [])
    fed = tf.data.Iterator.from_string_handle(handle, dataset.output_types, dataset.output_shapes, dataset.output_classes).get_next()
    with tf.Session() as sess:
        sess.run(start)
        name = sess.run(iterator.string_handle())
        assert [dense(sess.run(fed, {handle: name})).tolist() for _ in range(3)] == rows.tolist()
    with pytest.raises(TypeError, match="output classes"):
        iterator.make_initializer(Dataset.from_tensor_slices(rows))


def test_ragged_components_are_sliced_batched_and_joined():
    ragged = tf.ragged.constant([[[1, 2], []], [], [[3], [4, 5, 6]]])
    slices = Dataset.from_tensor_slices(ragged)
    assert slices.element_spec == tf.RaggedTensorSpec([None, None], tf.int32, 1)
    assert [r.to_list() for r in elements(slices)] == ragged_lists()
    (whole,) = elements(slices.batch(3))
    assert whole.to_list() == ragged_lists()
    pairs = elements(slices.map(lambda r: tf.add(r, 1)).batch(2))
    assert [p.to_list() for p in pairs] == [[[[2, 3], []], []], [[[4], [5, 6, 7]]]]
    lines = Dataset.from_tensor_slices(tf.ragged.constant([[1], [], [2, 3]]))
    assert [e.tolist() for e in elements(lines)] == [[1], [], [2, 3]]  # a row of it is dense
    assert [e.to_list() for e in elements(lines.batch(2))] == [[[1], []], [[2, 3]]]


def packed(splits, values, batched):
    return gen_ops.ragged_tensor_to_variant([np.array(s, np.int64) for s in splits], values, batched_input=batched)


def unpacked(encoded, inner, outer, kind=tf.int32, splits=tf.int64):
    made = gen_ops.ragged_tensor_from_variant(encoded, inner, outer, kind, Tsplits=splits)
    with tf.Session() as session:
        splits, values = session.run(made)
    return [s.tolist() for s in splits], values.tolist()


def test_ragged_tensors_as_variants():
    one, two = packed([[0, 2, 3]], [1, 2, 3], False), [[0, 1, 3], [0, 2, 3, 3]]
    assert unpacked(one, 1, 1) == ([[0, 2, 3]], [1, 2, 3])
    assert unpacked(packed([[0, 2, 3]], [1, 2, 3], True), 0, 1) == ([[0, 2, 3]], [1, 2, 3])
    for inner in (1, -1):
        assert unpacked(packed(two, [1, 2, 3], True), inner, 2) == (two, [1, 2, 3])
    assert unpacked(tf.stack([one] * 2), 1, 2) == ([[0, 2, 4], [0, 2, 3, 5, 6]], [1, 2, 3] * 2)
    nested = [[0, 2, 4, 6], [0, 2, 4, 6, 8, 10, 12], [0, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]]
    assert unpacked(tf.stack([tf.stack([one] * 2)] * 3), 1, 3) == (nested, [1, 2, 3] * 6)
    assert unpacked(packed([[0]], np.zeros([0], np.int32), True), 0, 1) == ([[0]], [])
    assert unpacked(packed([[0, 2, 3]], np.arange(6, dtype=np.int32).reshape(3, 2), True), 0, 1) == ([[0, 2, 3]], [[0, 1], [2, 3], [4, 5]])
    rows = packed([], [[1, 2], [3, 4], [5, 6]], True)  # dense: each row a variant
    assert unpacked(rows, 0, 1) == ([[0, 2, 4, 6]], [1, 2, 3, 4, 5, 6])
    assert unpacked(packed([], [[7, 8]], False), 0, 0) == ([], [[7, 8]])
    assert unpacked(packed([], 7, False), 0, 0) == ([], 7)
    words = packed([np.array([0, 1, 2])], ["a", "b"], True)
    assert unpacked(words, 0, 1, tf.string) == ([[0, 1, 2]], [b"a", b"b"])


def test_ragged_variants_that_do_not_fit_are_refused():
    hidden = tf.placeholder_with_default(packed([[0, 2, 3]], [1, 2, 3], False), None)
    refused = [(hidden, 0, 1), (hidden, 1, 2), (hidden, 3, 1), (hidden, 1, 1, tf.float32), (hidden, 1, 1, tf.int32, tf.int32)]
    refused += [(tf.placeholder_with_default(Dataset.range(2)._variant, None), 1, 1)]
    refused += [(tf.stack([packed([], 7, False)]), 0, 1), (packed([], tf.placeholder_with_default(7, None), True), 0, 1)]
    wide = [packed([[0, 2]], np.ones([2, 2], np.int32), False), packed([[0, 1]], np.ones([1, 3], np.int32), False)]
    refused += [(tf.stack(wide), 1, 2)]
    for given in refused:
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
            unpacked(*given)
    for splits in [[0, 2, 9], [0, 2, 1], [3, 3], [1, 3], [0, -1, 3]]:
        for batched in (False, True):
            with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
                session.run(packed([splits], [1, 2, 3], batched))
    empty = tf.placeholder_with_default(gen_ops.empty([2**30, 0], tf.variant), None)
    with tf.Session() as session, pytest.raises(tf.errors.OpError, match="empty rows"):
        session.run(gen_ops.ragged_tensor_from_variant(empty, 0, 2, tf.int32))


def ragged_lists():
    return [[[1, 2], []], [], [[3], [4, 5, 6]]]


def test_elements_that_are_data_sets():
    nested = Dataset.range(3).map(lambda n: Dataset.range(n + 1))
    assert isinstance(nested.element_spec, tf.data.DatasetSpec)
    assert elements(nested.flat_map(lambda inner: inner)) == [0, 0, 1, 0, 1, 2]
    assert elements(Dataset.from_tensors((1, Dataset.range(2))).flat_map(lambda n, inner: inner.map(lambda x: x + tf.cast(n, tf.int64)))) == [1, 2]
    batches = nested.batch(2)
    assert batches.element_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64), [None])
    assert elements(batches.unbatch().flat_map(lambda inner: inner)) == [0, 0, 1, 0, 1, 2]
    both = Dataset.from_tensor_slices([Dataset.range(1), Dataset.range(2)])
    assert both.element_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64)) and elements(both.flat_map(lambda inner: inner)) == [0, 0, 1]
    for make in (nested.unbatch, lambda: Dataset.from_tensor_slices(Dataset.range(2))):
        with pytest.raises(ValueError):
            make()


def test_a_list_is_one_component_of_an_element():
    nest = names.module("python.data.util.nest")
    assert nest.flatten(([1, 2], {"b": 3, "a": [4]})) == [[1, 2], [4], 3]
    assert nest.map_structure(len, ([1, 2], [3])) == (2, 1)
    assert nest.pack_sequence_as((0, 1), [[1], "x"]) == ([1], "x") and not nest.is_sequence([1])
    nest.assert_same_structure(([1],), (2,))
    with pytest.raises(ValueError, match="nested structure"):
        nest.assert_same_structure((1,), [1])


def test_options_that_contradict_each_other_are_refused():
    one, other = tf.data.Options(), tf.data.Options()
    one.experimental_optimization.autotune = True
    one.experimental_optimization.map_vectorization.enabled = True
    other.experimental_deterministic = False
    both = Dataset.range(1).with_options(one).with_options(other).options()
    assert both.experimental_optimization.autotune and both.experimental_deterministic is False
    other.experimental_optimization.autotune = False
    with pytest.raises(ValueError, match="Cannot merge incompatible values of option autotune"):
        Dataset.range(1).with_options(one).with_options(other)


def test_elements_that_are_tensor_arrays():
    squares = Dataset.range(1, 3).map(lambda n: tf.TensorArray(tf.int64, 2, element_shape=[]).unstack(tf.stack([n, n * n])))
    assert squares.output_types == tf.int64 and squares.output_classes is tf.TensorArray
    assert np.array_equal(elements(squares.map(lambda array: array.stack())), [[1, 1], [2, 4]])
    start = tf.TensorArray(tf.int64, 0, dynamic_size=True, element_shape=[]).write(0, -1)
    scanned = Dataset.range(3).apply(tf.data.experimental.scan(start, lambda array, x: (array.write(array.size(), x), array.stack())))
    assert [list(row) for row in elements(scanned)] == [[-1], [-1, 0], [-1, 0, 1]]
    with pytest.raises(TypeError, match="TensorArray"):
        squares.batch(2)


def test_elements_that_may_be_absent():
    optional = tf.data.experimental.Optional
    maybe = Dataset.range(2).map(lambda n: optional.from_value((n, 2.0)))
    assert maybe.element_spec == tf.OptionalSpec((tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.float32))) == maybe.output_types
    assert elements(maybe.map(lambda value: value.get_value()[0])) == [0, 1]


def test_elements_as_lists_of_tensors():
    structure = names.module("python.data.util.structure")
    value = {"b": tf.constant([1, 2]), "a": (tf.constant(0.5), sparse([[0, 7]]))}
    spec = structure.type_spec_from_value(value)
    assert spec == {"a": (tf.TensorSpec([], tf.float32), tf.SparseTensorSpec([1, 2], tf.int64)), "b": tf.TensorSpec([2], tf.int32)}
    assert structure.get_flat_tensor_types(spec) == [tf.float32, tf.variant, tf.int32]
    assert [shape.ndims for shape in structure.get_flat_tensor_shapes(spec)] == [0, None, 1]
    flat = structure.to_tensor_list(spec, value)
    again = structure.from_tensor_list(spec, flat)
    assert again["b"] is value["b"] is flat[2]
    with tf.Session() as sess:
        assert np.array_equal(dense(sess.run(again["a"][1])), [[0, 7]])
    with pytest.raises(ValueError, match="Expected 3 tensors but got 1."):
        structure.from_tensor_list(spec, flat[:1])
    with pytest.raises(ValueError, match="Incompatible input:"):
        structure.from_tensor_list(spec, flat[::-1])
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        structure.to_tensor_list(spec, value["b"])
    with pytest.raises(ValueError, match=r"is not convertible to a tensor with dtype.*int32.* and shape \(2,\)"):
        structure.to_tensor_list(spec["b"], value["a"][1])
    with pytest.raises(TypeError, match="Neither a SparseTensor nor SparseTensorValue"):
        structure.to_tensor_list(spec["a"][1], value["b"])
    assert structure.convert_legacy_structure(tf.int32, tf.TensorShape([None, True, 2]), tf.TensorArray) == tf.TensorArraySpec([2], tf.int32, None, True)
