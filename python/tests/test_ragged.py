# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors: how they are made, indexed, broadcast, repeated and reduced, compared with nested lists."""

import zlib

import numpy as np
import pytest

import millrace as tf
from millrace.ops.ragged import gathers, shapes
from millrace.ops.ragged.maths import map_fn
from millrace.ops.ragged.tensor import RaggedTensorType


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(value):
    with tf.Session() as session:
        made = session.run(value)
    return made.to_list() if hasattr(made, "to_list") else made.tolist()


@pytest.mark.parametrize(
    "pylist, options, shape",
    [
        ([], dict(ragged_rank=1), [0, None]),
        ([], dict(ragged_rank=2), [0, None, None]),
        ([[], [], []], dict(ragged_rank=2), [3, None, None]),
        ([], dict(inner_shape=(0, 3)), [0, 3]),
        ([[]], dict(inner_shape=(1, 0)), [1, 0]),
        ([np.array([3, 4]), [1], np.array([])], {}, [3, None]),
        ([[[1, 2]], [[3, 4], [5, 6]]], dict(ragged_rank=1), [2, None, 2]),
    ],
)
def test_constants(pylist, options, shape):
    made = tf.ragged.constant(pylist, dtype=tf.int32, **options)
    assert made.shape.as_list() == shape
    run(made)


def test_constants_that_are_none():
    with pytest.raises(ValueError, match="Invalid ragged_rank=-1: must be nonnegative"):
        tf.ragged.constant([[1]], ragged_rank=-1)
    with pytest.raises(ValueError, match="scalar values depth 1, but ragged_rank=1"):
        tf.ragged.constant([1, 2], ragged_rank=1)


def test_operators_before_any_other_function():
    a = tf.ragged.constant([[1, -2], [3]])
    assert run(abs(a)) == [[1, 2], [3]]
    assert run(a < [[0], [5]]) == [[False, True], [True]]
    assert run(~(a > 0)) == [[False, True], [False]]
    assert run(10 - a) == [[9, 12], [7]]


def test_rows_of_one_are_broadcast():
    a = tf.ragged.constant([[1, 2, 3], [4]])
    assert run(a + tf.constant([[10], [20]])) == [[11, 12, 13], [24]]
    deep = tf.ragged.constant([[[1, 2], [3]], [[4]]])
    assert run(deep * tf.constant([[[10]], [[100]]])) == [[[10, 20], [30]], [[400]]]
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        run(a + tf.ragged.constant([[1, 2], [3]]))


def test_shapes_of_a_step():
    shape = shapes.RaggedTensorDynamicShape.from_dim_sizes([2, (3, 1), 2])
    assert run(shapes.broadcast_to(tf.constant([[[1, 2]]]), shape)) == [[[1, 2]] * 3, [[1, 2]]]
    assert shape.is_ragged(1) and not shape.is_ragged(2) and shape.rank == 3
    with pytest.raises(ValueError, match="outermost partitioned dimension must be uniform"):
        shapes.RaggedTensorDynamicShape([[1, 2]], [])


def test_tile_by_a_tensor():
    a = tf.ragged.constant([[1, 2], [3]])
    assert run(tf.tile(a, tf.placeholder_with_default([2, 2], [2]))) == [[1, 2, 1, 2], [3, 3]] * 2
    assert run(tf.tile(tf.ragged.constant([[[1], [2, 3]]]), [1, 2, 2])) == [[[1, 1], [2, 3, 2, 3]] * 2]


def test_slices():
    rows = [[1, 2, 3], [], [4, 5]]
    a = tf.ragged.constant(rows)
    for step in (2, -1, -2):
        for start, stop in ((None, None), (1, None), (None, -1), (0, 5)):
            expected = [row[start:stop:step] for row in rows]
            assert run(a[:, start:stop:step]) == expected
            assert run(a[:, start : stop : tf.constant(step)]) == expected
    assert run(a[tf.constant(-1)]) == [4, 5]
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="out of bounds"):
        a[tf.constant(3)]
    with pytest.raises(TypeError, match="slice offsets must be integers"):
        a[:, 0.5:1]
    with pytest.raises(TypeError, match="slice strides must be integers"):
        a[:, ::0.5]
    with pytest.raises(TypeError, match="valid indices"):
        a["rows"]


def test_means_of_integers_are_no_integers():
    a = tf.ragged.constant([[0, 1], [2, 3, 4, 5, 6, 7, 8, 9]])
    assert run(tf.reduce_mean(a)) == 4.5
    assert run(tf.reduce_mean(a, 1)) == [0.5, 5.5]


def test_gathers_by_batch():
    params, indices = tf.ragged.constant([["a", "b"], ["c"]]), tf.ragged.constant([[1, 5], [-1, 0]])
    assert run(gathers.batch_gather_with_default(params, indices, "?")) == [[b"b", b"?"], [b"?", b"c"]]
    assert run(tf.batch_gather(params, tf.constant([[1], [0]]))) == [[b"b"], [b"c"]]


def test_even_rows_within_ragged_ones():
    params = tf.ragged.constant([[[1, 2, 3], [4, 5, 6]], [[7, 8, 9]]], ragged_rank=1)
    indices = tf.ragged.constant([[[2, 0], [0, 1]], [[1, 0]]], ragged_rank=1)
    assert run(tf.batch_gather(params, indices)) == [[[3, 1], [4, 5]], [[8, 7]]]
    mask = tf.ragged.constant([[[True, False, True], [False, False, False]], [[False, True, True]]], ragged_rank=1)
    assert run(tf.ragged.boolean_mask(params, mask)) == [[[1, 3], []], [[8, 9]]]


def test_squeeze_looks_at_the_rows():
    a = tf.ragged.constant([[[1], [2]], [[3]]])
    assert run(tf.squeeze(a, [2])) == [[1, 2], [3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not squeezable"):
        run(tf.squeeze(a, [1]))


def test_splits_of_one_type():
    a = tf.RaggedTensor.from_row_splits([1, 2], tf.constant([0, 2], tf.int32))
    b = tf.ragged.constant([[3]])
    made = tf.concat([a, b], 0)
    assert run(made) == [[1, 2], [3]] and made.row_splits.dtype == tf.int64
    assert a.with_row_splits_dtype(tf.int64).row_splits.dtype == tf.int64


def test_map_gives_rows_of_any_length():
    rows = tf.constant([2, 0, 3])
    assert run(map_fn(tf.range, rows, dtype=RaggedTensorType(tf.int32, 1))) == [[0, 1], [], [0, 1, 2]]
    doubled = map_fn(lambda x: x * 2, tf.ragged.constant([[[1], [2, 3]], [[4]]]), dtype=tf.RaggedTensorSpec([None, None, None], tf.int32, 2))
    assert run(doubled) == [[[2], [4, 6]], [[8]]]


def test_partitions_and_vectors():
    data = tf.ragged.constant([[1], [2, 3], [4]])
    assert [run(part) for part in tf.dynamic_partition(data, [2, 1, 1], 3)] == [[], [[2, 3], [4]], [[1]]]
    assert run(tf.one_hot(tf.ragged.constant([[1], [0, 2]]), 3)) == [[[0, 1, 0]], [[1, 0, 0], [0, 0, 1]]]
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="must be non-negative"):
        run(tf.ragged.stack_dynamic_partitions([1, 2], [-1, 0], 2))


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"rank\(st_input\) must be 2"):
        tf.RaggedTensor.from_sparse(tf.SparseTensor(tf.placeholder(tf.int64), [0], tf.placeholder(tf.int64)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Requires delta != 0"):
        run(tf.ragged.range(0, 5, 0))
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        tf.ragged.range([0], [1, 2])
    bad = tf.RaggedTensor.from_row_splits([1, 2, 3], [2, 3], validate=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="First value of ragged splits must be 0"):
        run(bad.to_sparse().values)
    with pytest.raises(ValueError, match="nrows=2"):
        tf.RaggedTensor.from_value_rowids([1, 2], tf.constant([0, 4], tf.int64), nrows=2)
    with pytest.raises(ValueError, match="incompatible"):
        tf.RaggedTensor.from_tensor([[1]], padding=[1])


def test_gradients_of_to_tensor():
    """Values are those of TensorFlow 1.15.5."""
    x, rows, fill, fills = tf.constant([1.0, 2.0, 3.0, 4.0]), tf.reshape(tf.range(8.0), [4, 2]), tf.constant(7.0), tf.constant([7.0, 8.0])
    flat = tf.RaggedTensor.from_row_splits(x, [0, 1, 4, 4]).to_tensor(fill)
    nested = tf.RaggedTensor.from_row_splits(tf.RaggedTensor.from_row_splits(x, [0, 1, 3, 4]), [0, 2, 3]).to_tensor(fill)
    wide = tf.RaggedTensor.from_row_splits(rows, [0, 1, 4]).to_tensor(fills)
    weights = tf.reshape(tf.range(12.0), [2, 3, 2])
    gradients = [
        tf.gradients(flat * [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], [x, fill]),
        tf.gradients(nested * tf.reshape(tf.range(1.0, 9.0), [2, 2, 2]), [x, fill]),
        tf.gradients(wide * weights, [rows, fills]),
    ]
    with tf.Session() as session:
        flat, nested, wide = [[np.asarray(g).tolist() for g in pair] for pair in session.run(gradients)]
    assert flat == [[1, 4, 5, 6], 29] and nested == [[1, 3, 4, 5], 23]
    assert wide == [[[0, 1], [6, 7], [8, 9], [10, 11]], [6, 8]]


def test_one_hot_along_an_axis_of_the_indices():
    inner = tf.ragged.constant([[[1, 2], [0, 3]], [[3, 1]]], ragged_rank=1)
    assert run(tf.one_hot(inner, 4, axis=2)) == run(tf.one_hot(inner, 4))
    assert run(tf.one_hot(inner, 4, axis=1)) == [[[[0, 0], [1, 0], [0, 1], [0, 0]], [[1, 0], [0, 0], [0, 0], [0, 1]]], [[[0, 0], [0, 1], [0, 0], [1, 0]]]]
    with pytest.raises(ValueError, match="axis may not be less than indices.ragged_rank"):
        tf.one_hot(inner, 4, axis=0)
    with pytest.raises(ValueError, match="out of bounds"):
        tf.one_hot(inner, 4, axis=3)


def test_variants_and_back():
    ragged = tf.ragged.constant([[0], [1, 2], [3], []])
    assert ragged._to_variant().get_shape().as_list() == []
    rows = ragged._to_variant(batched_input=True)
    assert rows.get_shape().as_list() == [4]
    pairs = tf.RaggedTensor._from_variant(tf.reshape(rows, [2, 2]), tf.int32, output_ragged_rank=2)
    assert run(pairs) == [[[0], [1, 2]], [[3], []]]
    with pytest.raises(ValueError, match="output_ragged_rank must be equal to"):
        tf.RaggedTensor._from_variant(rows, tf.int32, output_ragged_rank=1, input_ragged_rank=1)


def test_specs_travel_as_variants():
    for spec, value in (
        (tf.RaggedTensorSpec([2, None], tf.int32), tf.ragged.constant([[1, 2], [3]])),
        (tf.SparseTensorSpec([2, 3], tf.int32), tf.SparseTensor([[0, 1], [1, 2]], [5, 6], [2, 3])),
    ):
        assert spec._flat_tensor_specs == [tf.TensorSpec(None, tf.variant)]
        made, wanted = spec._from_tensor_list(spec._to_tensor_list(value)), value
        if isinstance(value, tf.SparseTensor):
            made, wanted = tf.sparse.to_dense(made), tf.sparse.to_dense(wanted)
        assert run(made) == run(wanted)


def test_functions_of_the_modules_take_ragged_tensors():
    from millrace import names

    words = tf.ragged.constant([["a", "bc"], ["d"]])
    assert run(names.module("python.ops.string_ops").string_join([words, "!"])) == [[b"a!", b"bc!"], [b"d!"]]
    packed = tf.ragged.constant([[zlib.compress(b"a")], []])
    assert run(names.module("python.ops.parsing_ops").decode_compressed(packed, "ZLIB")) == [[b"a"], []]
    assert run(names.module("python.ops.gen_bitwise_ops").invert(tf.ragged.constant([[0], [5, 1]]))) == [[-1], [-6, -2]]


def test_parts_of_strings_of_any_rank():
    from millrace.ops.ragged import strings

    assert run(strings.string_split_v2("a b  c")) == [b"a", b"b", b"c"]
    assert run(strings.string_split_v2(input=[["a,b", ""], ["c", ",d"]], sep=",")) == [[[b"a", b"b"], [b""]], [[b"c"], [b"", b"d"]]]
    assert run(strings.string_split_v2(tf.ragged.constant([["a b"], []]), maxsplit=1)) == [[[b"a", b"b"]], []]


def test_stacks_of_dense_tensors():
    tall, wide = tf.constant([[1, 2], [3, 4], [5, 6]]), tf.constant([[7, 8, 9], [10, 11, 12]])
    both = tf.ragged.stack([tall, wide])
    assert both.ragged_rank == 2 and run(both) == [[[1, 2], [3, 4], [5, 6]], [[7, 8, 9], [10, 11, 12]]]
    beside = tf.ragged.stack([tall, tall], axis=1)
    assert isinstance(beside, tf.Tensor) and run(beside) == [[[1, 2], [1, 2]], [[3, 4], [3, 4]], [[5, 6], [5, 6]]]
    assert run(tf.ragged.stack([tall])) == [[[1, 2], [3, 4], [5, 6]]]
    with pytest.raises(ValueError, match="equal"):
        tf.ragged.stack([tall, wide], axis=2)


@pytest.mark.parametrize(
    "left, right, axis, message",
    [
        ([[1], [2, 3]], [[4], [5, 6], [7]], 1, "incompatible shapes"),
        ([[4], [5, 6], [7]], [[1], [2, 3]], 1, "incompatible shapes"),
        ([[[1], [2]], [[3]]], [[[1]], [[2], [3]]], 2, "identical ragged splits"),
    ],
)
@pytest.mark.parametrize("joined", [tf.concat, tf.stack])
def test_rows_that_do_not_fit_are_refused(joined, left, right, axis, message):
    rows = [tf.ragged.constant(left), tf.ragged.constant(right)]
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(joined(rows, axis))


def test_masks_and_indices_of_other_rows_are_refused():
    matrix = tf.ragged.constant([[1, 2], [3]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="identical ragged splits"):
        run(tf.ragged.boolean_mask(matrix, tf.ragged.constant([[True], [False, True]])))
    with pytest.raises(ValueError, match="incompatible"):
        tf.ragged.boolean_mask(matrix, [True])
    with pytest.raises(ValueError, match="Dimensions 2 and 1 are not compatible"):
        tf.batch_gather(matrix, tf.ragged.constant([[0]]))
    mask = tf.placeholder_with_default([True], [None])
    with pytest.raises(tf.errors.InvalidArgumentError, match="mask and data differ"):
        run(tf.ragged.boolean_mask(matrix, mask))


def test_numbers_as_conditions():
    assert run(tf.where(tf.ragged.constant([[-2.0, 0.0], [], [0.0, 3.0]]))) == [[0, 0], [2, 1]]
    assert run(tf.where(tf.ragged.constant([[True], [False, True]]))) == [[0, 0], [1, 1]]


def test_gathers_with_defaults_within_rows_of_one_length():
    letters = tf.ragged.constant([[["h"] * 8, ["w"] * 8], [["b"] * 8]], ragged_rank=1)
    places = tf.ragged.constant([[[0, 100, 1], [0, 1, 0]], [[1, 0, 0]]], ragged_rank=1)
    assert run(gathers.batch_gather_with_default(letters, places, "-")) == [[[b"h", b"-", b"h"], [b"w"] * 3], [[b"b"] * 3]]
