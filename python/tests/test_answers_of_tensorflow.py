# SPDX-License-Identifier: Apache-2.0
"""Answers and kinds of errors in corners of ops, as TensorFlow gives them."""

import collections
import gzip

import numpy as np
import pytest

import millrace as tf
from millrace import errors
from millrace.ops import gen_ops


# ParameterizedTruncatedNormal of TensorFlow with the seeds 3 and 5, between (-1, 2), (-0.5, 0.3) and (4, 40).
TRUNCATED = [
    [0.7460805773735046, -0.6411983966827393, 0.16807787120342255],
    [-0.1818646490573883, 0.1740545630455017, -0.49638479948043823],
    [4.217686653137207, 4.0518622398376465, 4.041661739349365],
]


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def words(*rows):
    return tf.placeholder_with_default(np.array(rows, object), None)


def test_of_no_text_there_are_no_parts(sess):
    split = tf.string_split(["", "a,", ","], ",", skip_empty=False)
    parts = sess.run(split)
    assert parts.indices.tolist() == [[1, 0], [1, 1], [2, 0], [2, 1]] and parts.values.tolist() == [b"a", b"", b"", b""]


@pytest.mark.parametrize("axes, error", [([5], errors.OutOfRangeError), ([-3], errors.OutOfRangeError), ([0, -2], errors.InvalidArgumentError)])
def test_joined_along_what_is_not_there(sess, axes, error):
    axes = tf.placeholder_with_default(np.array(axes, np.int32), None)
    with pytest.raises(error, match="Invalid reduction dimension|Duplicate reduction dimension 0"):
        sess.run(gen_ops.reduce_join(words(["a", "b"], ["c", "d"]), axes))


def test_axes_of_any_shape(sess):
    axes = tf.placeholder_with_default(np.array([[0]], np.int32), None)
    assert sess.run(gen_ops.reduce_join(words(["a", "b"], ["c", "d"]), axes)).tolist() == [b"ac", b"bd"]


def decoded(inputs, lengths):
    return gen_ops.ctc_greedy_decoder(
        tf.placeholder_with_default(np.asarray(inputs, np.float32), None), tf.placeholder_with_default(np.array(lengths, np.int32), None)
    )


def test_lengths_of_sequences(sess):
    scores = np.random.RandomState(0).rand(4, 2, 3)
    for lengths in ([5, 3], [4]):
        with pytest.raises(errors.FailedPreconditionError):
            sess.run(decoded(scores, lengths)[0])
    assert sess.run(decoded(scores, [-1, 0]))[3].tolist() == [[0], [0]], "nothing is decoded"
    for empty in (scores[:0], scores[:, :0]):
        with pytest.raises(errors.InvalidArgumentError):
            sess.run(decoded(empty, [0] * empty.shape[1])[0])


def records(paths, sess, compression="", header=0, footer=0):
    data = tf.data.FixedLengthRecordDataset(paths, 4, header, footer) if not compression else None
    if data is None:
        handle = gen_ops.fixed_length_record_dataset_v2(paths, np.int64(header), np.int64(4), np.int64(footer), np.int64(0), compression)
        iterator = gen_ops.iterator("", "", [tf.string], [[]])
        start, following = gen_ops.make_iterator(handle, iterator), gen_ops.iterator_get_next(iterator, [tf.string], [[]])[0]
        sess.run(start)
        return following
    return data.make_one_shot_iterator().get_next()


def test_files_of_whole_records(sess, tmp_path):
    whole, part = str(tmp_path / "whole"), str(tmp_path / "part")
    (tmp_path / "whole").write_bytes(b"ABCDEFGH")
    (tmp_path / "part").write_bytes(b"ABCDEFGHI")
    following = records([part, whole], sess)
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match="9 bytes"):
            sess.run(following)
    following = records([whole, part], sess, header=1, footer=3)
    assert sess.run(following) == b"BCDE"
    with pytest.raises(errors.InvalidArgumentError):
        sess.run(following)


def test_compressed_files_of_whole_records(sess, tmp_path):
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    for path, text in zip(paths, (b"ABCDEFGHI", b"JKLM")):
        with gzip.open(path, "wb") as f:
            f.write(text)
    following = records(paths, sess, "GZIP")
    assert [sess.run(following) for _ in range(2)] == [b"ABCD", b"EFGH"]
    with pytest.raises(errors.DataLossError):
        sess.run(following)
    assert sess.run(following) == b"JKLM"


def test_files_that_are_not_there(sess, tmp_path):
    following = tf.data.TextLineDataset([str(tmp_path / "none"), __file__]).make_one_shot_iterator().get_next()
    for _ in range(2):
        with pytest.raises(errors.NotFoundError):
            sess.run(following)


def test_parts_that_a_checkpoint_does_not_hold(sess, tmp_path):
    path = str(tmp_path / "ck")
    sess.run(gen_ops.save_slices(path, ["a"], ["4 3 0,2:-"], [np.ones([2, 3], np.float32)]))
    assert sess.run(gen_ops.restore_slice(path, "a", "4 3 0,1:-", tf.float32)).shape == (1, 3)
    with pytest.raises(errors.InvalidArgumentError, match="does not hold all"):
        sess.run(gen_ops.restore_slice(path, "a", "4 3 1,2:-", tf.float32))


@pytest.mark.parametrize("validate", [False, True])
def test_values_of_other_shapes(sess, validate):
    handle = gen_ops.var_handle_op(tf.float32, [], shared_name="v")
    node = tf.GraphDef()
    value = tf.placeholder(tf.float32, name="value")
    sess.run(gen_ops.assign_variable_op(handle, value), {value: np.ones(3)})
    handle_in = node.node.add(name="h", op="Placeholder")
    handle_in.attr["dtype"].type = tf.resource.as_datatype_enum
    value_in = node.node.add(name="x", op="Placeholder")
    value_in.attr["dtype"].type = tf.float32.as_datatype_enum
    assign = node.node.add(name="assign", op="AssignVariableOp", input=["h", "x"])
    assign.attr["dtype"].type = tf.float32.as_datatype_enum
    assign.attr["validate_shape"].b = validate
    assign = tf.import_graph_def(node, {"h:0": handle, "x:0": value}, ["assign"])[0]
    sess.run(assign, {value: np.zeros(3)})
    if validate:
        with pytest.raises(errors.InvalidArgumentError, match="validate_shape"):
            sess.run(assign, {value: np.zeros(4)})
    else:
        sess.run(assign, {value: np.zeros(4)})
    assert sess.run(gen_ops.read_variable_op(handle, tf.float32)).shape == ((3,) if validate else (4,))


def bicubic_sums(size, scale):
    """What each of `size` pixels adds to all pixels of the scaled image, by float32 weights that were computed in double."""
    a, sums = -0.75, np.zeros(size)
    for i in range(size * scale):
        part = np.float64(i % scale) / scale
        near = [((a + 2) * x - (a + 3)) * x * x + 1 for x in (part, 1 - part)]
        far = [((a * x - 5 * a) * x + 8 * a) * x - 4 * a for x in (1 + part, 2 - part)]
        for k, weight in enumerate((far[0], near[0], near[1], far[1])):
            sums[min(max(i // scale + k - 1, 0), size - 1)] += np.float64(np.float32(weight))
    return sums


def test_derivatives_of_bicubic_images_in_double(sess):
    images = tf.constant(np.random.RandomState(0).rand(1, 5, 4, 1))
    slope = sess.run(tf.gradients(tf.reduce_sum(gen_ops.resize_bicubic(images, [40, 64])), images)[0])
    assert slope.dtype == np.float64
    np.testing.assert_allclose(slope[0, :, :, 0], np.outer(bicubic_sums(5, 8), bicubic_sums(4, 16)), rtol=1e-12)


def test_gamma_samples_have_derivatives(sess):
    alpha = tf.constant([0.5, 2.0, 30.0])
    drawn = tf.random_gamma([20000], alpha, seed=3)
    slope = sess.run(tf.gradients(tf.reduce_mean(drawn, 0), alpha)[0])
    np.testing.assert_allclose(slope, [1, 1, 1], atol=0.05)  # the mean is alpha


def test_truncated_normal_numbers_are_tensorflows(sess):
    for bounds, want in (((-1.0, 2.0), TRUNCATED[0]), ((-0.5, 0.3), TRUNCATED[1]), ((4.0, 40.0), TRUNCATED[2])):
        made = gen_ops.parameterized_truncated_normal([3], 0.0, 1.0, *bounds, seed=3, seed2=5)
        np.testing.assert_allclose(sess.run(made), want, rtol=1e-6)


def test_what_messages_say(sess):
    text = tf.placeholder(tf.string, [None])
    with pytest.raises(errors.InvalidArgumentError, match="element 1 has size 5 != 6"):
        sess.run(tf.decode_raw(text, tf.uint8), {text: ["short", "longer"]})
    with pytest.raises(errors.InvalidArgumentError, match="length 3 that is not a multiple of 2, the size of int16"):
        sess.run(tf.decode_raw(text, tf.int16), {text: ["123"]})
    with pytest.raises(errors.InvalidArgumentError, match="Requested more than 0 entries, but params is empty"):
        sess.run(tf.gather_nd(np.zeros([0, 3], np.float32), tf.placeholder_with_default(np.zeros([1, 2], np.int32), None)))
    with pytest.raises(errors.InvalidArgumentError, match=r"Expected axis in the range \[-1, 1\), but got 2"):
        sess.run(tf.gather(tf.placeholder_with_default([1, 2], None), 0, axis=2))
    for build in (lambda: tf.reduce_sum([[1.0]], [2]), lambda: tf.reduce_join([["a"]], [-3])):
        with pytest.raises(ValueError, match="Invalid reduction dimension"):
            build()
    for shapes in ([2, 3, 5], [2, 7, 10]), ([2, 3], [2, 3, 4]):
        with pytest.raises(errors.InvalidArgumentError, match="All dimensions except 1|should contain 2 elements"):
            sess.run(gen_ops.concat_offset(1, [tf.constant(s) for s in shapes]))


def remapped(path, rows, columns, values=(), **more):
    return gen_ops.load_and_remap_matrix(
        path, "m", np.array(rows, np.int64), np.array(columns, np.int64), np.array(values, np.float32), num_rows=len(rows), num_cols=len(columns) or 3, **more
    )


def test_matrices_with_other_rows_and_columns(sess, tmp_path):
    path, matrix = str(tmp_path / "ck"), np.arange(15, dtype=np.float32).reshape(5, 3)
    sess.run(gen_ops.save_v2(path, ["m"], [""], [matrix]))
    for most in (-1, 1, 2):
        assert sess.run(remapped(path, [4, 1, 2], [], max_rows_in_memory=most)).tolist() == matrix[[4, 1, 2]].tolist()
        got = sess.run(remapped(path, [2, -1, 0], [1, -1], [40, 41, 42, 43], max_rows_in_memory=most))
        assert got.tolist() == [[7, 40], [41, 42], [1, 43]]
    with pytest.raises(errors.UnimplementedError, match="taken once"):
        sess.run(remapped(path, [1, 1], []))
    for rows, columns, values in (([2, -1], [], [1]), ([5], [], []), ([0], [3], [])):
        with pytest.raises(errors.InvalidArgumentError):
            sess.run(remapped(path, rows, columns, values))


def test_lines_that_two_vocabularies_have(sess, tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    new.write_text("f0\nf1\nf2\nf3\n")
    old.write_text("f1\r\nf0\nf3")
    places, found = gen_ops.generate_vocab_remapping(str(new), str(old), new_vocab_offset=1, num_new_vocab=3)
    assert places.shape.as_list() == [3] and sess.run(places).tolist() == [0, -1, 2] and sess.run(found) == 2
    first = gen_ops.generate_vocab_remapping(str(new), str(old), new_vocab_offset=0, num_new_vocab=4, old_vocab_size=1)
    assert sess.run(first)[0].tolist() == [-1, 0, -1, -1]
    with pytest.raises(errors.InvalidArgumentError, match="has 4 lines"):
        sess.run(gen_ops.generate_vocab_remapping(str(new), str(old), new_vocab_offset=2, num_new_vocab=3)[0])


def test_groups_of_one(sess):
    group = {"group_size": 1, "group_key": 1, "instance_key": 1}
    x = tf.constant([1.0, 2.0])
    for final in ("Id", "Div"):
        assert sess.run(gen_ops.collective_reduce(x, merge_op="Add", final_op=final, subdiv_offsets=[], **group)).tolist() == [1, 2]
    assert sess.run(gen_ops.collective_gather(x, shape=[2], **group)).tolist() == [1, 2]
    assert sess.run(gen_ops.collective_bcast_send(x, shape=[2], **group)).tolist() == [1, 2]
    with pytest.raises(errors.DeadlineExceededError, match="1 of 2 members are there"):
        sess.run(gen_ops.collective_reduce(x, merge_op="Add", final_op="Id", subdiv_offsets=[], timeout_seconds=0.2, **dict(group, group_size=2, group_key=2)))
    with pytest.raises(errors.InvalidArgumentError, match="nobody who sends"):
        sess.run(gen_ops.collective_bcast_recv(T=tf.float32, shape=[2], **group))


def test_triangles_that_have_no_inverse(sess):
    with pytest.raises(errors.InvalidArgumentError, match="not invertible"):
        sess.run(tf.matrix_triangular_solve([[1.0, 0.0], [3.0, 0.0]], [[1.0], [2.0]]))


def test_bitmaps_whatever_their_first_bytes_are(sess):
    head = bytes([0x42, 0x40]) + np.array([70, 0, 54, 40, 2, 2, 1 | 24 << 16], "<u4").tobytes() + bytes(24)
    pixels = bytes([0, 0, 255, 255, 255, 255, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0])
    image = sess.run(tf.image.decode_bmp(head + pixels))
    assert image.tolist() == [[[0, 0, 255], [0, 255, 0]], [[255, 0, 0], [255, 255, 255]]]


@pytest.mark.parametrize(
    "ids, message",
    [
        ([-1, -1, 0, 0], r"Segment id -1 out of range \[0, 1\)"),
        ([0, 1, 0, 1], "segment ids are not increasing"),
        ([0, 1, 2, 0], r"Segment id 1 out of range \[0, 1\)"),
        ([0, 0, 0, -2], "segment ids must be >= 0"),
        ([0, 1], "should be the same size"),
    ],
)
def test_segments_that_are_none(sess, ids, message):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        sess.run(tf.segment_sum(np.ones([4, 2], np.float32), ids))


def test_places_of_sparse_segments(sess):
    rows = np.ones([10, 2], np.float32)
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[1\] == -1 out of range \[0, 10\)"):
        sess.run(tf.sparse_segment_sum(rows, [8, -1, 0, 10], [0, 1, 2, 2]))
    for places, ids, message in (([8, 10], [0, 1], r"Index 10 out of range \[0, 10\)"), ([8, 1], [0, 77], r"Segment id 77 out of range \[0, 10\)")):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            sess.run(gen_ops.sparse_segment_mean_grad(rows, places, ids, 10))


def test_what_is_refused_while_the_graph_is_built(sess):
    for build, error, message in (
        (lambda: tf.fill([2, -1], 7), ValueError, "Fill dimensions must be >= 0"),
        (lambda: tf.clip_by_value(np.ones([2, 3, 1], np.float32), 0.0, [1.0, 2.0]), ValueError, "do not fit"),
        (lambda: tf.sequence_mask([1, 2], [3, 4]), ValueError, "maxlen must be scalar"),
        (lambda: tf.concat(1, 4.2), TypeError, "int32"),
        (lambda: tf.gather([1, 2], 0, axis=1), ValueError, "Shape must be at least rank 2 but is rank 1"),
        (lambda: tf.data.Iterator.from_structure((tf.int64, tf.float64), [None]), TypeError, "structure"),
    ):
        with pytest.raises(error, match=message):
            build()
    iterator = tf.data.Iterator.from_structure((tf.int64, tf.int64))
    counted = tf.data.Dataset.range(3)
    with pytest.raises(ValueError, match="structure"):
        iterator.make_initializer(tf.data.Dataset.zip(((counted,), (counted,))))
    assert iterator.make_initializer(tf.data.Dataset.zip((counted, counted))).type == "MakeIterator"


def test_gradients_of_nothing_to_learn_from(sess):
    labels = tf.SparseTensor(np.zeros([0, 2], np.int64), np.zeros(0, np.int32), [5, 5])
    with pytest.raises(errors.InvalidArgumentError, match="batch_size must not be 0"):
        sess.run(tf.nn.ctc_loss(labels, np.zeros([1, 0, 2], np.float32), np.zeros(0, np.int32)))
    inputs = tf.zeros([2, 1, 3])
    loss = tf.nn.ctc_loss(tf.SparseTensor([[0, 0]], [1], [1, 1]), inputs, [2])
    with pytest.raises(LookupError, match="explicitly disabled"):
        tf.gradients(tf.gradients(loss, inputs), inputs)


def test_named_tuples_are_one_argument(sess):
    pair = collections.namedtuple("pair", "a b")
    pairs = tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.range(3))).map(pair)
    following = pairs.map(lambda p: p._replace(b=-p.b)).make_one_shot_iterator().get_next()
    assert [sess.run(following) for _ in range(3)] == [(i, -i) for i in range(3)]


def test_steps_of_accumulators_are_numbers_of_any_type(sess):
    accumulator, step = tf.ConditionalAccumulator(tf.float32), tf.Variable(3)
    sess.run(step.initializer)
    sess.run(accumulator.set_global_step(step + 1))
    sess.run(accumulator.apply_grad(1.0, local_step=step))
    assert sess.run(accumulator.num_accumulated()) == 0, "it is late"
