# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.data.util, which programs with data sets of their own import."""

import pytest

import millrace as tf
from millrace import names

convert, options, random_seed, sparse, traverse = (
    names.find("python.data.util." + name) for name in ("convert", "options", "random_seed", "sparse", "traverse")
)


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


def test_arguments_as_tensors():
    assert run(convert.optional_param_to_tensor("size", None, 5)) == 5 and run(convert.optional_param_to_tensor("size", 3)) == 3
    for shape in (tf.TensorShape([3, None]), (3, None), [3, -1], tf.constant([3, -1], tf.int64)):
        assert run(convert.partial_shape_to_tensor(shape)).tolist() == [3, -1]
    with pytest.raises(ValueError, match="must be a 1-D tensor"):
        convert.partial_shape_to_tensor(tf.zeros([2, 2], tf.int64))
    with pytest.raises(TypeError, match="element type was float32"):
        convert.partial_shape_to_tensor(tf.zeros([2]))


def test_seeds_that_may_be_tensors():
    for seed in (None, 1, 0):
        with tf.Graph().as_default():
            tf.set_random_seed(seed)
            for own, wanted in ((1, 1), (0, 2**31 - 1 if seed == 0 else 0)):
                for given in (own, tf.constant(own, tf.int64)):
                    assert run(random_seed.get_seed(given))[1] == wanted
    with tf.Graph().as_default():
        assert run(random_seed.get_seed(None)) == (0, 0)


def test_sparse_components():
    element = (tf.SparseTensor([[0, 0], [3, 4]], [1, -1], [4, 5]), tf.constant(2))
    classes = sparse.get_classes(element)
    assert classes == (tf.SparseTensor, tf.Tensor) and sparse.any_sparse(classes) and not sparse.any_sparse((tf.Tensor,))
    assert sparse.as_dense_types((tf.int32, tf.int32), classes) == (tf.variant, tf.int32)
    assert sparse.as_dense_shapes((tf.TensorShape([4, 5]), tf.TensorShape([])), classes)[0].ndims is None
    for serialize in (sparse.serialize_sparse_tensors, sparse.serialize_many_sparse_tensors):
        again = run(sparse.deserialize_sparse_tensors(serialize(element), (tf.int32, tf.int32), (tf.TensorShape([4, 5]), tf.TensorShape([])), classes))
        assert again[0].indices.tolist() == [[0, 0], [3, 4]] and again[1] == 2


def test_a_data_set_of_a_program_and_its_ops():
    class Cached(names.find("python.data.ops.dataset_ops").UnaryUnchangedStructureDataset):
        def __init__(self, input_dataset):
            self._input_dataset = input_dataset
            super().__init__(input_dataset, tf.raw_ops.CacheDataset(input_dataset=input_dataset._variant_tensor, filename="", **self._flat_structure))

    numbers = Cached(tf.data.Dataset.range(3).repeat(2))
    assert [op.type for op in traverse.obtain_all_variant_tensor_ops(numbers)] == ["CacheDataset", "RepeatDataset", "RangeDataset"]
    element = numbers.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(element) for _ in range(6)] == [0, 1, 2] * 2


def test_options_of_a_program():
    class Options(options.OptionsBase):
        x = options.create_option("x", int, "a number", lambda: 42)
        y = options.create_option("y", float, "another")

    first, second = Options(), Options()
    first.x, second.y = 1, 2.0
    merged = options.merge_options(first, second)
    assert (merged.x, merged.y) == (1, 2.0) and merged != first
    assert Options().x == 42 and Options() == Options() and Options.x.__doc__ == "a number"
    with pytest.raises(TypeError):
        first.x = "1"
    with pytest.raises(AttributeError):
        first.z = 1
    for wrong, kind in (((), ValueError), ((0,), TypeError)):
        with pytest.raises(kind):
            options.merge_options(*wrong)


def test_readers_are_made_of_no_other_data_set():
    made = [tf.data.FixedLengthRecordDataset("file", 4), tf.data.TextLineDataset("file"), tf.data.TFRecordDataset("file")]
    assert [len(dataset._inputs()) for dataset in made] == [0, 0, 1]


def test_an_iterator_in_another_graph_is_warned_of(monkeypatch):
    told = []
    monkeypatch.setattr(tf.logging, "warning", lambda message, *values: told.append(message % values))
    numbers = tf.data.Dataset.range(3)
    numbers.make_one_shot_iterator()
    assert not told
    with tf.Graph().as_default():
        numbers.make_one_shot_iterator()
    assert len(told) == 1 and "created in the same graph as the iterator" in told[0]
