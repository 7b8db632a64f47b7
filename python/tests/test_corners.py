# SPDX-License-Identifier: Apache-2.0
"""Corners of ops, found by random graphs that ran on both libraries: the numbers are TensorFlow 2.21's."""

import numpy as np
import pytest

import millrace as tf

raw = tf.raw_ops


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_an_infinite_step_keeps_the_start(session):
    assert session.run(tf.linspace(0.5, -np.inf, 3)).tolist() == [0.5, -np.inf, -np.inf]
    assert session.run(tf.linspace(0.5, np.inf, 1)).tolist() == [0.5]


def test_equal_labels_that_find_no_room_have_an_infinite_loss(session):
    x = np.log(np.float32([[[0.2, 0.3, 0.5]], [[0.6, 0.1, 0.3]]]))
    labels = dict(labels_indices=[[0, 0], [0, 1]], labels_values=[0, 0], sequence_length=[2])
    loss, gradient = session.run(raw.CTCLoss(inputs=x, ignore_longer_outputs_than_inputs=True, **labels))
    assert loss.tolist() == [np.inf]
    np.testing.assert_allclose(gradient, np.exp(x), rtol=1e-5)
    labels = dict(labels_indices=[[0, 0], [0, 1], [0, 2]], labels_values=[0, 1, 0], sequence_length=[2])
    loss, gradient = session.run(raw.CTCLoss(inputs=x, ignore_longer_outputs_than_inputs=True, **labels))
    assert loss.tolist() == [0] and not gradient.any()


def test_a_prefix_that_is_pushed_out_of_the_beam_is_not_grown(session):
    steps = [[1.01, -1.85, 1.572, 1.166, -1.332], [0.245, -0.645, 0.43, -0.377, -0.321]]
    steps += [[-0.564, -0.571, 1.663, 1.598, 0.545], [-1.439, 1.381, 2.453, -0.31, 0.032]]
    x = np.array(steps).reshape(4, 1, 5)
    found = session.run(raw.CTCBeamSearchDecoder(inputs=x, sequence_length=[4], beam_width=3, top_paths=1, merge_repeated=False))
    assert found.decoded_values[0].tolist() == [2]
    np.testing.assert_allclose(found.log_probability, [[-3.17095944]], rtol=1e-6)


@pytest.mark.parametrize(
    "values, bias, ranges, want",
    [
        ([245, 38, 254, 193, 250], [137, 198, 61, 2, 167], (-1.4771326, 1.4990834, -1.3825368, 0.1), [8633, -13896, 4952, -6578, 11178]),
        ([80, 134, 57, 101, 130], [32, 81, 215, 176, 244], (-2.44397, 4.25278, -4.72791, 1.34282), [-14960, -6004, -1956, -1169, 7079]),
        ([34, 43, 80], [76, 61, 215], (-8.794597, 14.748226, -3.674026, -0.4975576), [-9543, -8827, -2901]),  # the scale rounds up
    ],
)
def test_quantized_sums(session, values, bias, ranges, want):
    values, bias = (tf.bitcast(np.uint8(v), tf.quint8) for v in ([values], bias))
    names = ("min_input", "max_input", "min_bias", "max_bias")
    ends = dict(zip(names, np.float32(ranges)))
    biased = raw.QuantizedBiasAdd(input=values, bias=bias, out_type=tf.qint32, **ends)
    assert session.run(tf.bitcast(biased.output, tf.int32)).tolist() == [want]


def test_unsigned_numbers_have_no_sign(session):
    assert session.run(tf.as_string(np.array([3], np.int32), width=3, fill="+")).tolist() == [b" +3"]
    for dtype in (np.uint8, np.uint32, np.uint64):
        assert session.run(tf.as_string(np.array([3], dtype), width=3, fill="+")).tolist() == [b"  3"]


def test_unpacking_nothing(session):
    nothing = tf.placeholder(tf.uint16, [9, 0])
    op = raw.Unpack(value=nothing, num=0, axis=-1)
    assert op.type == "Unpack" and session.run(op, {nothing: np.zeros((9, 0), np.uint16)}) is None


def test_joined_and_scattered_strings(session):
    words, ids = [b"", b"abc", b"x", b"", b"y"], [1, 1, 0, 0, 0]
    joined = raw.UnsortedSegmentJoin(inputs=words, segment_ids=ids, num_segments=3, separator="-")
    assert session.run(joined).tolist() == [b"x--y", b"abc", b""]
    assert session.run(tf.scatter_nd([[1], [0], [1]], [b"a", b"b", b"c"], [3])).tolist() == [b"b", b"ac", b""]
    where = tf.placeholder(tf.int32, [1, 1])
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.scatter_nd(where, [b"a"], [3]), {where: [[3]]})
    assert session.run(raw.AsString(input=[b"ab", b"abcd"], width=3)).tolist() == [b" ab", b"abcd"]
    assert session.run(raw.AsString(input=[b"ab"], width=3, fill="-")).tolist() == [b"ab "]
    grams = raw.StringNGrams(
        data=np.array([], object),
        data_splits=np.int64([0, 0]),
        separator=" ",
        ngram_widths=[2],
        left_pad="l",
        right_pad="r",
        pad_width=-1,
        preserve_short_sequences=False,
    )
    assert [v.tolist() for v in session.run(grams)] == [[], [0, 0]]


@pytest.mark.parametrize("rule", ["ProximalAdagrad", "FtrlV2"])
def test_updates_refuse_rates_and_rows(session, rule):
    def update(shape, rate):
        slots = [tf.Variable(tf.ones(shape), use_resource=False) for _ in range(2 if rule == "ProximalAdagrad" else 3)]
        session.run(tf.global_variables_initializer())
        names = ("var", "accum", "linear")
        inputs = dict(zip(names, (v._ref() if hasattr(v, "_ref") else v for v in slots)))
        if rule == "FtrlV2":
            inputs.update(l2_shrinkage=0.1, lr_power=-0.5)
        op = getattr(raw, "SparseApply" + rule)
        return session.run(op(**inputs, lr=rate, l1=0.1, l2=0.1, grad=tf.ones((1, *shape[1:])), indices=[0]))

    assert np.isfinite(update((2, 3), 0.1)).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="lr is not a positive scalar"):
        update((2, 3), 0.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="rows of var must not be empty"):
        update((2, 0), 0.1)


def test_sums_of_a_large_histogram_are_added_in_order():
    """To the last bit, however many threads count: programs compare event files."""
    values = np.random.RandomState(0).randn(300_000)
    total = squares = 0.0
    for v in values.tolist():
        total, squares = total + v, squares + v * v
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.Summary.FromString(session.run(tf.summary.histogram("h", tf.constant(values)))).value[0].histo
    assert (made.sum, made.sum_squares, made.num) == (total, squares, len(values))


def test_rows_of_resource_variables_are_bounded_by_others():
    rows = tf.get_variable("bounded_rows", initializer=[1.0, 2.0], use_resource=True)
    with tf.Session() as session:
        assert not session.run(rows.is_initialized())
        session.run(rows.initializer)
        assert session.run(rows.is_initialized())
        assert session.run(tf.scatter_min(rows, [0], [-5.0])).tolist() == [-5, 2]
        assert session.run(tf.scatter_max(rows, [0], [5.0])).tolist() == [5, 2]
