# SPDX-License-Identifier: Apache-2.0
"""Barriers, areas by key, tf.case, Fourier transforms, operations as variables."""

import numpy as np
import pytest

import millrace as tf
from millrace import names


def test_barriers():
    flow = names.find("python.ops.data_flow_ops")
    with tf.Graph().as_default(), tf.Session() as session:
        barrier = flow.Barrier((tf.float32, tf.float32), shapes=((), (2,)), name="B")
        session.run(barrier.insert_many(0, ["a", "b"], [1.0, 2.0]))
        assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 2]
        session.run(barrier.insert_many(1, ["b", "a"], [[3.0, 3.0], [4.0, 4.0]]))
        _, keys, values = barrier.take_many(2)
        assert keys.get_shape().as_list() == [2] and values[1].get_shape().as_list() == [2, 2]
        found = session.run([keys] + values)
        assert dict(zip(found[0], zip(found[1], found[2].tolist()))) == {b"a": (1.0, [4.0, 4.0]), b"b": (2.0, [3.0, 3.0])}
        session.run(barrier.close())
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(barrier.take_many(1)[0])
        with pytest.raises(ValueError, match="Empty tensors are not supported"):
            flow.Barrier((tf.float32,), shapes=((0,),))


@pytest.mark.parametrize("ordered", [False, True])
def test_areas_by_key(ordered):
    flow = names.find("python.ops.data_flow_ops")
    with tf.Graph().as_default(), tf.Session() as session:
        area = flow.MapStagingArea([tf.float32, tf.float32], shapes=[[], [2]], names=["x", "y"], ordered=ordered)
        key = tf.placeholder(tf.int64, [])
        put_x, put_y = area.put(key, {"x": 1.0}), area.put(key, {"y": [2.0, 3.0]})
        session.run(put_x, {key: 7})
        assert session.run([area.size(), area.incomplete_size()]) == [0, 1]
        session.run(put_y, {key: 7})
        assert session.run(area.peek(7))["y"].tolist() == [2.0, 3.0]
        found, values = session.run(area.get())
        assert found == 7 and values["x"] == 1.0 and session.run(area.size()) == 0
        with pytest.raises(ValueError, match="are not names of the staging area"):
            area.put(1, {"z": 1.0})


def test_case():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int32, [])
        pairs = [(tf.equal(x, 1), lambda: tf.constant(10)), (tf.less(x, 3), lambda: tf.constant(20))]
        first, alone, default = tf.case(pairs), tf.case(pairs, exclusive=True), tf.case(pairs, default=lambda: tf.constant(30), exclusive=True)
        assert [session.run(first, {x: v}) for v in (1, 2)] == [10, 20] and session.run(default, {x: 5}) == 30
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[Input error:\] \[More than one condition evaluated as True but exclusive=True"):
            session.run(alone, {x: 1})
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"\[Input error:\] \[None of the conditions evaluated as True. Conditions: .Equal:0, Less:0., Values:"
        ):
            session.run(first, {x: 5})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[Input error:\] \[None of the conditions"):
            session.run(tf.case(pairs[:1]), {x: 5})
        for wrong, error in ((1, TypeError), ([(1, 2, 3)], ValueError), ([(x, lambda: x)], TypeError), ([(tf.equal(x, 1), 3)], TypeError)):
            with pytest.raises(error):
                tf.case(wrong)


def test_fourier_transforms():
    x = np.random.RandomState(0).randn(3, 5).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32)
        for tensor, feed in ((tf.constant(x), None), (fed, {fed: x})):
            np.testing.assert_allclose(session.run(tf.spectral.rfft(tensor), feed), np.fft.rfft(x), atol=1e-5)
            np.testing.assert_allclose(session.run(tf.signal.rfft(tensor, [8]), feed), np.fft.rfft(x, 8), atol=1e-5)
            np.testing.assert_allclose(session.run(tf.spectral.rfft2d(tensor, [2, 4]), feed), np.fft.rfft2(x, [2, 4]), atol=1e-5)
            both = tf.spectral.irfft(tf.spectral.rfft(tensor), [5])
            np.testing.assert_allclose(session.run(both, feed), x, atol=1e-5)
        k, n = np.arange(5)[:, None], np.arange(5)[None]
        basis = 2 * np.cos(np.pi * k * (2 * n + 1) / 10)
        np.testing.assert_allclose(session.run(tf.spectral.dct(x)), x @ basis.T, atol=1e-4)
        scale = np.array([np.sqrt(1 / 20)] + [np.sqrt(1 / 10)] * 4)
        np.testing.assert_allclose(session.run(tf.spectral.dct(x, norm="ortho")), x @ basis.T * scale, atol=1e-4)
        assert session.run(tf.ifft(tf.fft(tf.cast(x, tf.complex64)))).real == pytest.approx(x, abs=1e-5)


def test_operations_as_variables():
    state = names.find("python.ops.state_ops")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        v = state.variable_op([2], tf.float32)
        assert v.op.type == "Variable" and v.dtype == tf.as_dtype("float32_ref") == tf.float32._as_ref == v.dtype._as_ref
        session.run(state.init_variable(v, lambda shape, dtype: tf.ones(shape, dtype)))
        assert session.run(tf.assign_add(v, [1.0, 2.0])).tolist() == [2.0, 3.0]
        with graph._kernel_label_map({"Square": "other"}), tf.device("/cpu:0"):
            square = tf.square(1.0)
        assert square.op.get_attr("_kernel") == b"other" and square.op._id > v.op._id == 1


def test_records_of_many_files(tmp_path):
    flow = names.find("python.ops.data_flow_ops")
    for kind in (tf.python_io.TFRecordCompressionType.NONE, tf.python_io.TFRecordCompressionType.GZIP):
        path = str(tmp_path / ("file%d" % kind))
        with tf.python_io.TFRecordWriter(path, tf.python_io.TFRecordOptions(kind)) as writer:
            for i in range(4):
                writer.write(b"%d" % i)
        with tf.Graph().as_default(), tf.Session() as session:
            records = flow.RecordInput(path, batch_size=2, batches=2, compression_type=kind).get_yield_op()
            found = session.run(records)
            assert len(found) == 2 and sorted(sum(found, [])) == [b"0", b"1", b"2", b"3"]


def test_how_a_file_is_compressed_may_be_a_tensor(tmp_path):
    path = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(path, tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.ZLIB)) as writer:
        writer.write(b"one")
    with tf.Graph().as_default(), tf.Session() as session:
        kind, size = tf.placeholder(tf.string, []), tf.placeholder(tf.int64, [])
        iterator = tf.data.TFRecordDataset(path, kind, size).make_initializable_iterator()
        session.run(iterator.initializer, {kind: "ZLIB", size: 1024})
        assert session.run(iterator.get_next()) == b"one"


def test_lists_of_tensors():
    lists = names.find("python.ops.list_ops")
    x = tf.placeholder(tf.float32, [3, 2])
    taken = lists.tensor_list_from_tensor(x, tf.TensorShape([2]))
    longer = lists.tensor_list_push_back(taken, [7.0, 8.0])
    rest, last = lists.tensor_list_pop_back(longer, tf.float32)
    changed = lists.tensor_list_set_item(rest, 1, [0.0, 1.0])
    grown = lists.tensor_list_set_item(changed, 3, [5.0, 5.0], resize_if_index_out_of_bounds=True)
    scattered = lists.tensor_list_scatter([[1.0], [2.0]], [2, 0], [None])
    pieces = lists.tensor_list_split([1.0, 2.0, 3.0], [None], [1, 2])
    empty = lists.empty_tensor_list([], tf.int32)
    row = lists.tensor_list_get_item(grown, 1, tf.float32, [2])
    (slope,) = tf.gradients(tf.reduce_sum(lists.tensor_list_stack(changed, tf.float32, 3, [2]) ** 2), x)
    fetches = [last, row, lists.tensor_list_gather(grown, [3, 0], tf.float32), lists.tensor_list_length(rest), slope]
    fetches += [lists.tensor_list_concat(pieces, tf.float32, [None]), lists.tensor_list_gather(scattered, [2], tf.float32, [1])]
    fetches += [lists.tensor_list_stack(empty, tf.int32, element_shape=[]), lists.tensor_list_length(lists.tensor_list_reserve(None, 5, tf.int32))]
    with tf.Session() as session:
        found = session.run(fetches, {x: [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]})
    wanted = [[7, 8], [0, 1], [[5, 5], [1, 2]], 3, [[2, 4], [0, 0], [10, 12]], [1, 2, 3], [[1]], [], 5]
    assert [value.tolist() for value in found] == wanted


def test_resource_variables_know_their_graph_and_shape():
    resources = names.find("python.ops.resource_variable_ops")
    first = tf.Graph()
    with first.as_default():
        v = resources.ResourceVariable([1.0, 1.0])
        varying = resources.ResourceVariable([[1.0]], shape=tf.TensorShape(None))
        assert tf.contrib.util.constant_value(resources.variable_shape(v.handle)).tolist() == [2]
        assert varying.shape.ndims is None
        with pytest.raises(ValueError, match="not compatible with"):
            resources.ResourceVariable([1.0, 2.0, 3.0], shape=[4])
        wider = varying.assign([[1.0, 2.0], [3.0, 4.0]])
    with tf.Graph().as_default():
        updates = [v.assign([2.0, 3.0]), v.assign_add([1.0, 1.0]), v.assign_sub([1.0, 1.0])]
    assert all(update.graph is first for update in updates)
    with tf.Session(graph=first) as session:
        session.run([v.initializer, varying.initializer])
        assert [session.run(update).tolist() for update in updates] == [[2, 3], [3, 4], [2, 3]]
        assert session.run(wider).shape == (2, 2)


def test_modules_with_functions_of_their_own_load():
    decorate = names.find("python.eager.def_function").function

    @decorate
    def double(x):
        return x + x

    assert double.__name__ == "double" and decorate(autograph=False)(double)
    with tf.Session() as session:
        assert session.run(double(tf.constant(2))) == 4


def test_rows_are_replaced_in_copies():
    inplace, x = names.find("python.ops.inplace_ops"), tf.zeros([3, 2])
    made = [inplace.inplace_update(x, [2, -3], [[1.0, 2.0], [3.0, 4.0]]), inplace.inplace_add(x, tf.constant(1, tf.int64), [5.0, 6.0])]
    made += [inplace.inplace_sub(x, None, tf.ones([3, 2])), inplace.empty_like(x, init=True), x]
    with tf.Session() as session:
        found = [value.tolist() for value in session.run(made)]
    zero = [[0, 0]] * 3
    assert found == [[[3, 4], [0, 0], [1, 2]], [[0, 0], [5, 6], [0, 0]], [[-1, -1]] * 3, zero, zero]
