# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.labeled_tensor: alignment by names, selection by labels, and refusals."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import labeled_tensor as lt


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _value(*tensors):
    with tf.Session() as session:
        return session.run([t.tensor for t in tensors])


RGB = ("rgb", ["red", "green", "blue"])


def test_axes():
    axis = lt.Axis(*RGB)
    assert len(axis) == 3 and axis.index("blue") == 2 and lt.Axis("x", None).size is None and repr(lt.Axis("x", 2)) == "Axis('x', Dimension(2))"
    assert lt.concat_axes([lt.Axis("x", 2), lt.Axis("x", 3)]) == lt.Axis("x", 5) and lt.Axis("x", 0).labels == ()
    for call, error in (
        (lambda: lt.Axis("x", "aa"), "unique"),
        (lambda: len(lt.Axis("x", None)), "unknown length"),
        (lambda: lt.Axes([("x", 1), ("x", 2)]), "Duplicate"),
        (lambda: lt.LabeledTensor(tf.zeros([2]), [("x", 3)]), "does not match"),
        (lambda: lt.LabeledTensor(tf.zeros([2]), ["x", "y"]), "rank"),
        (lambda: lt.convert_to_labeled_tensor(tf.zeros([2])), "unlabeled"),
    ):
        with pytest.raises(ValueError, match=error):
            call()


def test_elements_are_aligned_by_names():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    a, b = lt.LabeledTensor(tf.constant(x), ["x", RGB]), lt.LabeledTensor(tf.constant(y), [RGB])
    c = lt.LabeledTensor(tf.constant([1.0, 2.0], tf.float64), ["t"])
    both = b * c
    assert list(both.axes) == ["rgb", "t"] and list((a + b).axes) == ["x", "rgb"]
    values = _value(a + b, 1 - a, both, -a % 4.0, (a > b) ^ (a < 2.0), abs(lt.log(a + 1.0)))
    expected = [x + y, 1 - x, y[:, None] * [1, 2], -x % 4, (x > y) ^ (x < 2), np.log(x + 1)]
    for value, right in zip(values, expected):
        np.testing.assert_allclose(value, right)
    with pytest.raises(ValueError, match="Mismatched"):
        a + lt.LabeledTensor(tf.constant(y), ["rgb"])
    with pytest.raises(lt.AxisOrderError, match="No consistent"):
        a + lt.transpose(a)
    with lt.axis_order_scope(["rgb", "x"]), pytest.raises(lt.AxisOrderError):
        a + b
    with lt.axis_order_scope(["rgb", "x"]):
        assert list(lt.impose_axis_order(a).axes) == ["rgb", "x"]


def test_parts_by_places_and_labels():
    x = np.arange(12).reshape(4, 3)
    a = lt.LabeledTensor(tf.constant(x), ["x", RGB])
    picked = [a[1:3, :], a[:, 1], lt.select(a, {"rgb": "green"}), lt.select(a, {"rgb": ["blue", "red"]}), lt.select(a, {"rgb": slice("green", None)})]
    assert picked[3].axes["rgb"].labels == ("blue", "red") and picked[4].axes["rgb"].labels == ("green", "blue") and list(picked[1].axes) == ["x"]
    for value, right in zip(_value(*picked), (x[1:3], x[:, 1], x[:, 1], x[:, [2, 0]], x[:, 1:])):
        np.testing.assert_array_equal(value, right)
    with pytest.raises(ValueError, match="labels"):
        lt.select(a, {"x": 1})
    with pytest.raises(KeyError):
        lt.select(a, {"rgb": "grey"})
    with pytest.raises(NotImplementedError):
        lt.select(a, {"rgb": slice("red", "blue", 2)})
    mask = lt.LabeledTensor(tf.constant([True, False, True, False]), ["x"])
    (value,) = _value(lt.boolean_mask(a, mask))
    np.testing.assert_array_equal(value, x[::2])


def test_shapes_reductions_and_products():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    a, b = lt.LabeledTensor(tf.constant(x), ["x", RGB]), lt.LabeledTensor(tf.constant(y), [RGB, "z"])
    made = [
        lt.matmul(a, b),
        lt.matmul(b, a),
        lt.reduce_sum(a, "x"),
        lt.reduce_mean(a, [("rgb", "all")]),
        lt.concat([a, a], "x"),
        lt.pack([a, a], ("copy", ["one", "two"]), 1),
        lt.pad(a, {"rgb": (["infra"], [])}),
        lt.tile(a, {"x": 2}),
        lt.reshape(a, ["x", "rgb"], ["flat"]),
        lt.map_fn(lambda row: row * 2.0, a),
        lt.foldl(lambda total, row: total + row, a, lt.constant(1.0, tf.float64, [RGB])),
    ]
    assert (
        list(made[1].axes) == ["z", "x"]
        and made[3].axes["rgb"].labels == ("all",)
        and made[6].axes["rgb"].labels[0] == "infra"
        and list(made[5].axes)[1] == "copy"
    )
    expected = [x @ y, (x @ y).T, x.sum(0), x.mean(1, keepdims=True), np.concatenate([x, x]), np.stack([x, x], 1), np.pad(x, [(0, 0), (1, 0)])]
    for value, right in zip(_value(*made), [*expected, np.tile(x, (2, 1)), x.ravel(), x * 2, 1 + x.sum(0)]):
        np.testing.assert_allclose(value, right)
    for call, error in (
        (lambda: lt.matmul(a, lt.rename_axis(b, "rgb", "w")), "exactly one"),
        (lambda: lt.tile(a, {"rgb": 2}), "tick labels"),
        (lambda: lt.squeeze(a, ["x"]), "greater than 1"),
        (lambda: lt.reduce_sum(a, "w"), "not in axes"),
        (lambda: lt.reshape(a, ["x"], ["p", "q"]), "at most one"),
        (lambda: lt.pack([a, b], "new"), "Non-identical"),
    ):
        with pytest.raises(ValueError, match=error):
            call()


def test_coders_examples_and_batches():
    a = lt.LabeledTensor(tf.constant(np.arange(6).reshape(2, 3)), ["x", RGB])
    coder = lt.ReshapeCoder(["x", "rgb"], ["flat"])
    with pytest.raises(ValueError, match="before encode"):
        coder.decode(a)
    back = coder.decode(coder.encode(a))
    assert back.axes == a.axes
    example = tf.train.Example(features=tf.train.Features(feature={"v": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2, 3]))}))
    serialized = lt.LabeledTensor(tf.constant([example.SerializeToString()]), ["batch"])
    parsed = lt.parse_example(serialized, {"v": lt.FixedLenFeature([RGB], tf.int64)})["v"]
    assert list(parsed.axes) == ["batch", "rgb"] and _value(parsed)[0].tolist() == [[1, 2, 3]]
    (batched,) = lt.batch([lt.unpack(a)[1]], 2)
    loss = lt.nn.softmax_cross_entropy_with_logits
    assert batched.axes["batch"].size == 2 and list(batched.axes) == ["batch", "rgb"] and callable(loss)
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert session.run(batched.tensor).tolist() == [[3, 4, 5]] * 2
        coordinator.request_stop()
        coordinator.join(threads)
