# SPDX-License-Identifier: Apache-2.0
"""Elements dealt out to devices, functions of rows, and what a data set is made of."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

Dataset = tf.data.Dataset


def test_elements_are_dealt_out_to_devices():
    module = names.module("python.data.ops.multi_device_iterator_ops")
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as sess:
        begin = tf.placeholder(tf.int64, [])
        iterator = module.MultiDeviceIterator(Dataset.range(begin, begin + 5), ["/cpu:1", "/cpu:2"], max_buffer_size=4)
        one, other = iterator.get_next()
        for first in (0, 10):
            sess.run(iterator.initializer, {begin: first})
            assert sess.run([one, other]) == [first, first + 1] and sess.run(other) == first + 3
            assert [sess.run(iterator.get_next("/cpu:1")) for _ in range(2)] == [first + 2, first + 4]
            with pytest.raises(tf.errors.OutOfRangeError):
                sess.run(one)
        assert not sess.run(iterator.get_next_as_optional()[1].has_value())
        with pytest.raises(ValueError, match="none of the devices"):
            iterator.get_next("/cpu:0")


def test_a_function_of_each_row():
    map_defun = names.module("python.data.experimental.ops.map_defun").map_defun
    with tf.Graph().as_default(), tf.Session() as sess:
        more = tf.constant(10)

        @tf.contrib.eager.defun(input_signature=[tf.TensorSpec([2], tf.int32)])
        def both(x):
            return x + more, tf.cast(x[0], tf.float64)

        sums, first = map_defun(both, [tf.constant([[1, 2], [3, 4], [5, 6]])], [tf.int32, tf.float64], [(2,), ()])
        assert sums.shape.as_list() == [3, 2] and np.array_equal(sess.run(sums), [[11, 12], [13, 14], [15, 16]])
        assert np.array_equal(sess.run(first), [1.0, 3.0, 5.0])
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(map_defun(both, [tf.constant([[1, 2]])], [tf.int32, tf.float64], [(1,), ()]))
        with pytest.raises(ValueError):
            map_defun(both, tf.constant([[1, 2]]), [tf.int32, tf.float64], [(2,), ()])


def test_what_a_data_set_is_made_of():
    one, other = Dataset.range(1), Dataset.range(2)
    assert one._inputs() == [] and one.batch(2)._inputs() == [one] and one.concatenate(other)._inputs() == [one, other]
    assert Dataset.zip((one, (other, one)))._inputs() == [one, other, one]
    mapped = one.flat_map(lambda x: Dataset.range(x))
    assert mapped._inputs() == [one] and len(mapped._functions()) == 1
    with tf.Session() as sess:
        nodes = tf.GraphDef.FromString(sess.run(other._as_serialized_graph())).node
    assert "RangeDataset" in [node.op for node in nodes]


def test_options_go_on_to_what_is_made_of_a_data_set():
    first, second = tf.data.Options(), tf.data.Options()
    first.experimental_optimization.autotune = True
    second.experimental_deterministic = False
    plain = Dataset.range(1)
    hinted = plain.with_options(first)
    assert hinted.cache().options() == first and plain.cache().options() == tf.data.Options() and hinted._inputs() == [plain]
    merged = Dataset.zip((hinted, Dataset.range(1).with_options(second))).options()
    assert merged.experimental_optimization.autotune is True and merged.experimental_deterministic is False
    assert tf.data.Options()._static_optimizations() == ["map_and_batch_fusion", "noop_elimination", "shuffle_and_repeat_fusion"]
    second.experimental_slack = True
    assert plain.with_options(second).options()._static_optimization_configs() == ["slack:slack_period:1"]
    dealt = names.module("python.data.ops.multi_device_iterator_ops").MultiDeviceIterator(plain.with_options(second), ["/cpu:0"] * 2)
    assert dealt._dataset.options()._static_optimization_configs() == ["slack:slack_period:2"]
    first.experimental_optimization.apply_default_optimizations = False
    first.experimental_optimization.hoist_random_uniform = True
    assert first._static_optimizations() == ["hoist_random_uniform"]


def elements(dataset):
    iterator = dataset.make_initializable_iterator()
    following, found = iterator.get_next(), []
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        while True:
            try:
                found.append(sess.run(following))
            except tf.errors.OutOfRangeError:
                return found


def test_data_sets_by_the_names_of_their_classes():
    ops, numbers = names.module("python.data.ops.dataset_ops"), Dataset.range(3)
    assert elements(ops.MapDataset(numbers, lambda x: x * 2, use_inter_op_parallelism=False)) == [0, 2, 4]
    assert elements(ops.ParallelMapDataset(numbers, lambda x: x * 2, 2)) == [0, 2, 4]
    assert elements(ops.PrefetchDataset(numbers, None, slack_period=2)) == [0, 1, 2]
    assert elements(ops._VariantDataset(ops.to_variant(numbers), numbers.element_spec)) == [0, 1, 2]
    assert elements(ops._MaxIntraOpParallelismDataset(numbers, 1)) == elements(ops._PrivateThreadPoolDataset(numbers, 2)) == [0, 1, 2]
    assert elements(ops._GeneratorDataset(tf.constant(37), lambda x: x + 1, lambda x: x * 2, lambda x: x).take(2)) == [76, 76]
    left, ended = iter([1, 2]), []
    following = lambda state: tf.py_func(lambda value: value + next(left), [state], tf.int32)
    finalize = lambda state: tf.py_func(lambda value: ended.append(int(value)) or 0, [state], tf.int64)
    assert elements(ops._GeneratorDataset(tf.constant(37), lambda x: x + 1, following, finalize)) == [39, 40] and ended == [38]
    mixed = names.module("python.data.experimental.ops.interleave_ops")._DirectedInterleaveDataset
    assert elements(mixed(Dataset.from_tensor_slices(np.array([1, 0, 1], np.int64)), [numbers, numbers.map(lambda x: x + 10)])) == [10, 0, 11]
    assert elements(names.module("python.data.experimental.ops.optimization")._ChooseFastestDataset([numbers, numbers])) == [0, 1, 2]
    copies = names.module("python.data.experimental.ops.distribute").replicate(numbers, ["/cpu:0"])
    assert list(copies) == ["/cpu:0"] and elements(copies["/cpu:0"]) == [0, 1, 2]


def test_padded_sizes_that_no_shape_has_are_refused_by_the_step():
    padded = Dataset.from_tensor_slices([[1], [2]]).padded_batch(2, tf.constant([5], tf.int64) * -1)
    assert padded.output_shapes.as_list() == [None, None]
    with pytest.raises(tf.errors.InvalidArgumentError):
        elements(padded)


def test_programs_that_ask_for_elements_over_and_over_are_warned():
    iterator = Dataset.range(40).make_one_shot_iterator()
    for _ in range(32):
        iterator.get_next()
    with pytest.warns(UserWarning, match="before the loop"):
        iterator.get_next()


def test_asking_for_the_string_handle_adds_nothing_to_the_graph():
    with tf.Graph().as_default() as graph:
        iterator = Dataset.range(2).make_initializable_iterator()
        size = len(graph.get_operations())
        handle = iterator.string_handle()
        assert handle is iterator.string_handle() and handle.op.name == "IteratorToStringHandle" and len(graph.get_operations()) == size
        assert iterator.string_handle("other").op.name == "other"
