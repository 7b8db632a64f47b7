# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors: making them, parts of them, functions of them."""
import numpy as np
import tensorflow as tf

ALL = slice(None)
shown = []


def show(name, make):
    """Prints the value, or the class of the error that making or running it gives."""
    try:
        shown.append((name, make()))
    except (TypeError, ValueError) as error:
        shown.append((name, type(error).__name__))


def plain(value):
    if hasattr(value, "to_list"):
        return "%s, %d levels" % (value.to_list(), value.ragged_rank)
    return "%s %s" % (value.tolist(), value.dtype.name) if hasattr(value, "tolist") else str(value)


numbers = tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2], [6], []])
deep = tf.ragged.constant([[[1, 2], [3]], [], [[4], [], [5, 6, 7]]])
pairs = tf.ragged.constant([[[1, 2], [3, 4]], [], [[5, 6]]], ragged_rank=1)
words = tf.ragged.constant([["a", "bb"], [], ["ccc"]])
floats = tf.ragged.constant([[1.5, 2.5], [], [3.5]])

for name, ragged in [("numbers", numbers), ("deep", deep), ("pairs", pairs), ("words", words)]:
    print(name, ragged.shape.as_list(), ragged.dtype.name, ragged.ragged_rank)
    show(name, lambda: ragged)
    show("tensor", lambda: ragged.to_tensor())
    sparse = ragged.to_sparse()
    show("indices", lambda: sparse.indices)
    show("values", lambda: sparse.values)
    show("dense_shape", lambda: sparse.dense_shape)
    for method in ["row_lengths", "value_rowids", "bounding_shape", "nrows", "row_starts", "row_limits"]:
        show(method, lambda: getattr(ragged, method)())
    for key in [0, -1, 2, slice(1, 3), slice(None, None, 2), slice(None, None, -1), (ALL, slice(1, None)), (ALL, slice(None, 1)), (ALL, slice(-2, None)),
                (ALL, slice(None, None, 2)), (ALL, slice(None, None, -1)), (0, slice(1)), (2, 0), (Ellipsis, slice(0, 1)), (None,), (ALL, None), (ALL, 0),
                (Ellipsis, None), (ALL, ALL, slice(1)), (ALL, ALL, 0)]:
        show(key, lambda: ragged[key])
    for axis in [None, 0, 1, 2, -1, [0, 1], [1, 0]]:
        for function in [tf.reduce_sum, tf.reduce_max, tf.reduce_prod, tf.reduce_min]:
            if name != "words":
                show("reduced %s" % axis, lambda: function(ragged, axis))
        if name != "words":
            show("mean %s" % axis, lambda: tf.reduce_mean(tf.cast(ragged, tf.float32), axis))
        if isinstance(axis, int):
            show("expanded %s" % axis, lambda: tf.expand_dims(ragged, axis))
    show("keepdims", lambda: tf.reduce_sum(ragged, 1, keepdims=True))
    for axis in [0, 1, -1]:
        show("concat", lambda: tf.concat([ragged, ragged], axis))
        show("stack", lambda: tf.stack([ragged, ragged], axis))
    for indices in [[2, 0], 2, [[2, 0], [1, 1]], tf.ragged.constant([[0], [], [1, 2]])]:
        show("gather", lambda: tf.gather(ragged, indices))
    show("gather_nd", lambda: tf.gather_nd(ragged, [[2], [0]]))
    show("gather_nd", lambda: tf.gather_nd(ragged, [[2, 0], [0, 1]]))
    show("tile", lambda: tf.tile(ragged, [2] + [1] * (len(ragged.shape) - 1)))
    show("tile", lambda: tf.tile(ragged, [1, 2] + [1] * (len(ragged.shape) - 2)))
    show("mask", lambda: tf.ragged.boolean_mask(ragged, [True, False, True] + [False] * (2 if name == "numbers" else 0)))
    show("size", lambda: tf.size(ragged))
    show("rank", lambda: tf.rank(ragged))
    show("reverse", lambda: tf.reverse(ragged, [0, 1]))

rows = [[1], [2], [3], [4], [5]]
for name, make in [("ragged", lambda: numbers + numbers), ("number", lambda: numbers + 1), ("from", lambda: 10 - numbers), ("rows", lambda: numbers * rows),
                   ("negative", lambda: -numbers), ("less", lambda: numbers < 3), ("cast", lambda: tf.cast(numbers, tf.float32)), ("inner", lambda: pairs + [10, 20]),
                   ("outer", lambda: deep + [[[1]], [[2]], [[3]]]), ("add_n", lambda: tf.add_n([numbers, numbers])), ("all", lambda: tf.reduce_all(numbers > 1, 1)),
                   ("any", lambda: tf.reduce_any(numbers > 4, 0)), ("flat", lambda: tf.ragged.map_flat_values(tf.multiply, numbers, numbers)),
                   ("segments", lambda: tf.math.unsorted_segment_sum(deep, [0, 1, 0], 2)), ("gradient", lambda: tf.gradients(tf.reduce_sum(floats * floats), floats.flat_values)[0])]:
    show(name, make)
show("length", lambda: tf.strings.length(words))
show("upper", lambda: tf.strings.upper(words))
show("substr", lambda: tf.strings.substr(words, 0, 1))
show("join", lambda: tf.strings.join([words, words], separator="-"))
show("as_string", lambda: tf.as_string(numbers))
show("where", lambda: tf.where(numbers > 2))
show("where", lambda: tf.where(numbers > 2, numbers, -numbers))
show("where", lambda: tf.where([True, False, True, False, True], numbers, numbers + 1))
show("batch_gather", lambda: tf.batch_gather(numbers, tf.ragged.constant([[0], [], [2, 1], [0], []])))
show("with a dense one", lambda: tf.concat([numbers, [[1, 2]]], 0))

show("range", lambda: tf.ragged.range([3, 5, 2]))
show("range", lambda: tf.ragged.range([0, 5, 8], [3, 3, 12], 2))
show("range", lambda: tf.ragged.range(5, 0, -2))
show("range", lambda: tf.ragged.range(0.0, [1.0, 2.5], 0.5))
table = [[5, 7, 0], [0, 3, 0], [6, 0, 0]]
show("from_tensor", lambda: tf.RaggedTensor.from_tensor(table))
show("from_tensor", lambda: tf.RaggedTensor.from_tensor(table, padding=0))
show("from_tensor", lambda: tf.RaggedTensor.from_tensor(table, lengths=[1, 0, 3]))
show("from_tensor", lambda: tf.RaggedTensor.from_tensor(np.arange(24).reshape(2, 3, 4), ragged_rank=2))
show("from_tensor", lambda: tf.RaggedTensor.from_tensor([[[1, 0], [2, 3]], [[0, 0], [4, 0]]], padding=0, ragged_rank=2))
show("from_sparse", lambda: tf.RaggedTensor.from_sparse(tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [4, 3])))
show("from_value_rowids", lambda: tf.RaggedTensor.from_value_rowids([3, 1, 4, 1, 5, 9, 2, 6], [0, 0, 0, 0, 2, 2, 2, 3], nrows=5))
show("from_row_lengths", lambda: tf.RaggedTensor.from_row_lengths([3, 1, 4, 1, 5, 9, 2, 6], [4, 0, 3, 1, 0]))
show("from_row_starts", lambda: tf.RaggedTensor.from_row_starts([1, 2, 3], [0, 2]))
show("from_row_limits", lambda: tf.RaggedTensor.from_row_limits([1, 2, 3], [0, 3]))
show("nested splits", lambda: tf.RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1, 2], [0, 2, 3]]))
show("nested lengths", lambda: tf.RaggedTensor.from_nested_row_lengths([1, 2, 3], [[1, 1], [2, 1]]))
show("nested rowids", lambda: tf.RaggedTensor.from_nested_value_rowids([1, 2, 3], [[0, 1], [0, 0, 1]]))
show("segment ids", lambda: tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5, 6, 9]))
show("splits", lambda: tf.ragged.segment_ids_to_row_splits([0, 0, 0, 2, 2, 3, 4, 4, 4]))
show("partitions", lambda: tf.ragged.stack_dynamic_partitions(["a", "b", "c", "d", "e"], [3, 0, 2, 2, 3], 5))
show("partitions", lambda: tf.ragged.stack_dynamic_partitions([[1, 2], [3, 4], [5, 6]], [1, 0, 1], 2))
show("mask", lambda: tf.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, False]]))
show("mask", lambda: tf.ragged.boolean_mask(numbers, tf.ragged.constant([[True, False, True, False], [], [False, True, True], [True], []])))
for value in [[[], []], [], 5, [1, 2], [[1], 2]]:
    show("constant %s" % value, lambda: tf.ragged.constant(value))
show("inner_shape", lambda: tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], inner_shape=(2,)))
show("int32", lambda: tf.ragged.constant([[1], [2, 3]], row_splits_dtype=tf.int32).row_splits)
show("default", lambda: numbers.to_tensor(-1))
show("row_lengths", lambda: deep.row_lengths(2))

fed = tf.ragged.placeholder(tf.int32, 1, [])
with tf.Session() as session:
    values = iter(session.run([made for _, made in shown if not isinstance(made, str)]))
    for name, made in shown:
        print(name, "|", made if isinstance(made, str) else plain(next(values)))
    print(plain(session.run(fed * 2, {fed: tf.ragged.constant_value([[1], [], [2, 3]], np.int32)})))
    for wrong in [lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2]), lambda: tf.RaggedTensor.from_row_lengths([1], [-1, 2]),
                  lambda: tf.RaggedTensor.from_value_rowids([1, 2], [1, 0]), lambda: numbers + tf.ragged.constant([[1]] * 5), lambda: numbers + [[1], [2]]]:
        try:
            print(session.run(wrong()))
        except (ValueError, tf.errors.InvalidArgumentError):
            print("refused")
