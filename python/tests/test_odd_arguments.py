# SPDX-License-Identifier: Apache-2.0
"""Functions called with arguments that few programs give: answers of TensorFlow 1.15."""

import sys

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_an_imaginary_number_is_no_real_one():
    x = tf.placeholder(tf.float32, [2])
    for made in (lambda: x * 3j, lambda: 3j + x, lambda: tf.constant([1, 2j], tf.float64)):
        with pytest.raises(TypeError, match="Expected float"):
            made()


def test_a_norm_of_zero_has_a_gradient(session):
    rows = tf.constant([[0.0, 0.0], [3.0, 4.0]])
    clipped = tf.clip_by_norm(rows, 1.0, axes=[1])
    np.testing.assert_allclose(session.run(tf.gradients(clipped, rows)[0]), [[1, 1], [0.032, -0.024]], rtol=1e-5)
    looked_up = tf.nn.embedding_lookup(rows, [0, 1], max_norm=1.0)
    gradient = tf.gradients(looked_up, rows)[0]
    np.testing.assert_allclose(session.run(tf.convert_to_tensor(gradient)), [[1, 1], [0.032, -0.024]], rtol=1e-5)
    first = tf.gradients(tf.clip_by_norm(rows[0], 1.0), rows)[0]
    assert session.run(tf.gradients(first**2, rows)[0]).tolist() == [[0, 0], [0, 0]]


def test_batches_of_products_whose_sizes_steps_tell(session):
    a, b = tf.placeholder(tf.float32, [None] * 4), tf.placeholder(tf.float32, [None] * 4)
    feeds = {a: np.ones([1, 5, 2, 3]), b: np.ones([5, 1, 3, 4])}
    product, gradients = session.run([tf.matmul(a, b), tf.gradients(tf.matmul(a, b), [a, b])], feeds)
    assert product.shape == (5, 5, 2, 4) and np.all(product == 3)
    assert gradients[0].shape == (1, 5, 2, 3) and np.all(gradients[0] == 20)


def test_axes_that_are_tensors(session):
    x = tf.placeholder(tf.float32, [None, 2])
    for axis in (tf.constant(1), tf.placeholder_with_default([1], [None])):
        np.testing.assert_allclose(session.run(tf.reduce_logsumexp(x, axis), {x: [[0, 0], [3, 4]]}), [np.log(2), 4.3132615], rtol=1e-6)
    axes = tf.constant([[1, 2], [1, 0]])
    assert tf.tensordot(tf.zeros([2, 3, 4]), tf.zeros([4, 3, 5]), axes).shape == [2, 5]


def test_lists_that_are_tensors_and_lists_of_nothing(session):
    rows = tf.placeholder(tf.float32, [None, 2])
    assert session.run(tf.stack(rows), {rows: [[1, 2]]}).tolist() == [[1, 2]]
    assert tf.unstack(tf.zeros([0, 3]), num=0) == []
    assert session.run(tf.math.polyval(np.array([1.0, 2.0]), tf.constant([2.0, 3.0]))).tolist() == [4, 5]
    indices = tf.placeholder(tf.int32)
    assert session.run(tf.gather([[1, 2], [3, 4]], indices, batch_dims=1, axis=1), {indices: [[1], [0]]}).tolist() == [[2], [3]]


def test_types_of_quotients_and_ones(session):
    assert session.run(tf.realdiv(tf.constant([7, -7]), 2)).tolist() == [3, -3]
    with pytest.raises(TypeError, match="Expected string"):
        tf.ones([2], tf.string)


def test_numbers_beyond_their_type(session):
    x = tf.constant([1.0, 2.0, 3.0])
    assert session.run([x[: sys.maxsize], x[-sys.maxsize : 2]])[0].tolist() == [1, 2, 3]
    np.testing.assert_allclose(session.run(x * 10**20), np.float32([1e20, 2e20, 3e20]))
    assert tf.contrib.util.constant_value(tf.constant(b"a\0")).tolist() == b"a\0"


def test_lists_of_tensors_take_the_type_that_is_hinted_at(session):
    assert tf.convert_to_tensor([tf.constant(1), 2.5], dtype_hint=tf.float32).dtype == tf.float32
    assert tf.convert_to_tensor([tf.constant(1), 2], preferred_dtype=tf.string).dtype == tf.int32


def test_a_bounded_loop_over_one_structure_gives_it_back(session):
    start = {"i": tf.constant(0), "x": tf.constant(2.0)}

    def step(state):
        return {"i": state["i"] + 1, "x": state["x"] * 2}

    assert session.run(tf.while_loop(lambda state: state["i"] < 9, step, [start], maximum_iterations=3)) == {"i": 3, "x": 16}
    assert session.run(tf.while_loop(lambda state: state["i"] < 2, lambda state: [step(state)], [start]))[0] == {"i": 2, "x": 8}


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3])
def test_softmax_along_an_axis_of_what_has_any_rank(session, axis):
    x, value = tf.placeholder(tf.float32), np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    of_any, of_three = ([tf.nn.softmax(t, axis), tf.nn.log_softmax(t, axis), tf.nn.softmax_cross_entropy_with_logits_v2(t, t, axis)] for t in (x, value))
    for got, want in zip(*session.run([of_any, of_three], {x: value})):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_axes_and_layouts_that_are_none(session):
    x, value = tf.placeholder(tf.float32), np.ones([2, 3], np.float32)
    for axis in (2, -3):
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.nn.softmax(x, axis), {x: value})
        with pytest.raises(ValueError, match="axis"):
            tf.nn.softmax_cross_entropy_with_logits_v2(value, value, axis)
    with pytest.raises(ValueError, match="data_format"):
        tf.nn.bias_add(value, [1.0, 2.0, 3.0], data_format="XX")
    other = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.nn.softmax_cross_entropy_with_logits_v2(x, other), {x: value, other: np.ones([3, 2])})


def test_defaults_and_widths_that_steps_tell(session):
    image = np.ones([1, 4, 4, 1], np.float32)
    assert session.run(tf.nn.conv2d(image, np.ones([2, 2, 1, 1], np.float32), padding="VALID")).shape == (1, 3, 3, 1)
    weights, inputs = tf.placeholder(tf.float32, [10, None]), tf.placeholder(tf.float32, [None, None])
    sampled = (np.int64([1, 3]), np.float32([[0.1], [0.2]]), np.float32([0.1, 0.2]))
    loss = tf.nn.sampled_softmax_loss(weights, np.zeros(10, np.float32), [[1], [2]], inputs, 2, 10, sampled_values=sampled)
    assert session.run(loss, {weights: np.ones([10, 3]), inputs: np.ones([2, 3])}).shape == (2,)


def test_images_of_unknown_rank_are_worked_on_each_by_itself(session):
    images, value = tf.placeholder(tf.float32), np.random.RandomState(0).rand(2, 5, 4, 3).astype(np.float32)
    for function in (tf.image.per_image_standardization, lambda x: tf.image.adjust_contrast(x, 2.0)):
        got, want = session.run([function(images), function(value)], {images: value})
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [None, [None]])
def test_hessians_of_what_has_any_shape(session, shape):
    x = tf.placeholder(tf.float32, shape)
    (made,) = tf.hessians(tf.reduce_sum(x**3) + tf.reduce_prod(x), [x])
    assert made.shape.ndims == (None if shape is None else 2)
    assert session.run(made, {x: [1, 2]}).tolist() == [[6, 1], [1, 12]]


def test_losses_are_numbers_and_lengths_are_known():
    x = tf.placeholder(tf.float32)
    assert tf.losses.mean_squared_error(x, x).shape.ndims == 0 and tf.losses.mean_pairwise_squared_error(x, x).shape.ndims == 0
    assert tf.losses.huber_loss(x, x, reduction=tf.losses.Reduction.NONE).shape.ndims is None
    assert tf.signal.dct(tf.zeros([2, 5]), n=8).shape == [2, 8]


def test_integers_have_moments_and_no_dense_layer(session):
    x = tf.constant([[1, 2], [3, 6]])
    for layer in (tf.layers.Dense(2), tf.keras.layers.Dense(2)):
        with pytest.raises(TypeError, match="non-floating point dtype int32"):
            layer(x)
    assert [m.tolist() for m in session.run(tf.nn.moments(x, [0]))] == [[2, 4], [1, 4]]
    assert session.run(tf.nn.moments(x, [0, 1], keep_dims=True))[0].tolist() == [[3]]


def test_weights_of_a_count(session):
    weights = tf.constant([0.5, 1.0, 2.0])
    counted = tf.bincount([1, 1, 3], weights)
    assert session.run(counted).tolist() == [0, 1.5, 0, 2]
    assert session.run(tf.gradients(counted * [1.0, 2.0, 3.0, 4.0], weights)[0]).tolist() == [2, 2, 4]
    assert session.run(tf.bincount([1, 1, 3], weights, maxlength=2)).tolist() == [0, 1.5]
    assert session.run(tf.bincount([1, 1, 3], tf.cast(weights, tf.float16))).dtype == np.float16
    with pytest.raises(ValueError):
        tf.bincount([1, 1, 3], np.zeros(0, np.float32))


def test_what_is_known_of_joined_sparse_tensors_and_of_resources(session):
    part = tf.SparseTensor([[0, 1]], [1.0], [3, 4])
    assert tf.sparse.concat(-1, [part, part]).get_shape() == [3, 8]
    small = tf.SparseTensor([[0, 0]], [2.0], [1, 2])
    joined = tf.sparse.concat(0, [part, small], expand_nonconcat_dim=True)
    assert joined.get_shape() == [4, 4] and session.run(joined).dense_shape.tolist() == [4, 4]
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.sparse.concat(0, [part, small]))
    assert tf.sparse.concat(0, [part, tf.sparse_placeholder(tf.float32, [None, 4])]).get_shape().as_list() == [None, None]
    variable = tf.Variable(tf.placeholder_with_default([1.0], [None]), use_resource=True)
    session.run(variable.initializer)
    assert variable.shape.as_list() == [None] and session.run(variable).tolist() == [1]


def test_what_is_repeated_has_a_known_shape(session):
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    assert tf.repeat(x, 2, 1).shape == [2, 6] and tf.repeat(x, [1, 2], 0).shape == [3, 3] and tf.repeat(x, 2).shape == [12]
    assert tf.repeat(tf.placeholder(tf.float32, [None, 3]), 2, 0).shape.as_list() == [None, 3]
    assert session.run(tf.repeat(7, 3, axis=0)).tolist() == [7, 7, 7]
    assert session.run(tf.repeat(x, [2, 0], 0)).tolist() == [[1, 2, 3], [1, 2, 3]]
    with pytest.raises(TypeError, match="integer"):
        tf.repeat(x, 1.5)
    with pytest.raises(ValueError):
        tf.repeat(x, [[1, 2]], 0)


def test_strings_of_other_sizes_ask_for_no_memory():
    with tf.Session() as session:
        strings = tf.placeholder(tf.string, [None])
        with pytest.raises(tf.errors.InvalidArgumentError, match="element 1 has size"):
            session.run(tf.decode_raw(strings, tf.uint8), {strings: [b"x" * (1 << 20)] + [b""] * (1 << 17)})


def test_axes_to_reverse_may_be_tensors():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([[1, 2], [3, 4]])
        axes = [tf.rank(tf.placeholder_with_default(x, None)) - 1], [tf.constant(0), 1], tf.constant([True, False]), [False, True]
        made = session.run([tf.reverse(x, axis) for axis in axes])
        assert [m.tolist() for m in made] == [[[2, 1], [4, 3]], [[4, 3], [2, 1]], [[3, 4], [1, 2]], [[2, 1], [4, 3]]]


def test_a_message_is_a_constant_of_its_own_type(session):
    message = tf.make_tensor_proto([[1, 2], [3, 4]], tf.int64)
    for made in (tf.constant(message), tf.convert_to_tensor(message), tf.constant(message, tf.float32, shape=[4])):
        assert made.dtype == tf.int64
        np.testing.assert_array_equal(session.run(made), [[1, 2], [3, 4]])
    assert session.run(tf.constant(tf.make_tensor_proto(["a", "b"]))).tolist() == [b"a", b"b"]
    np.testing.assert_array_equal(session.run(tf.constant(tf.make_tensor_proto(2.0, shape=[3]))), [2, 2, 2])


def test_the_axis_of_one_value_is_a_number():
    with pytest.raises(ValueError):
        tf.concat([tf.zeros([2])], tf.constant([0]))


def test_a_transposed_convolution_by_its_older_arguments(session):
    x, taps = np.ones([1, 3, 1], np.float32), np.float32([1, 2]).reshape([2, 1, 1])
    for made in (
        tf.nn.conv1d_transpose(x, taps, [1, 6, 1], 2, "VALID"),
        tf.contrib.nn.conv1d_transpose(value=x, filter=taps, output_shape=[1, 6, 1], stride=2, padding="VALID"),
    ):
        assert session.run(made).ravel().tolist() == [1, 2, 1, 2, 1, 2]


@pytest.mark.parametrize("value", [lambda: tf.constant([1.0]), lambda: tf.Variable([1.0]), lambda: None, dict], ids=["tensor", "variable", "none", "dict"])
def test_constant_initializers_are_of_numbers(value):
    with pytest.raises(TypeError, match="Invalid type for initial value: <class .*expected Python scalar, list or tuple of values, or numpy.ndarray"):
        tf.constant_initializer(value())


def test_a_vocabulary_of_no_words_is_named(tmp_path):
    path = str(tmp_path / "words")
    for given in (path, tf.constant(path)):
        with pytest.raises(ValueError, match="vocab_size must be greater than 0, got 0. vocabulary_file: " + path):
            tf.contrib.lookup.index_table_from_file(given, vocab_size=0)


def test_lists_whose_elements_have_any_shape(session):
    from millrace.ops import list_ops

    held = list_ops.empty_tensor_list(element_dtype=tf.float32, element_shape=-1)
    held = list_ops.tensor_list_push_back(list_ops.tensor_list_push_back(held, 1.0), [1.0, 2.0])
    held, last = list_ops.tensor_list_pop_back(held, tf.float32)
    first = list_ops.tensor_list_pop_back(held, tf.float32)[1]
    assert [v.tolist() for v in session.run([first, last])] == [1, [1, 2]]


def test_rows_are_changed_before_they_are_given(session):
    from millrace.ops.sparse_lookup import embedding_lookup_and_transform

    rows = np.float32([[3, 4], [6, 8], [0, 1]])
    for table in (rows, [rows[0::2], rows[1::2]]):
        made = embedding_lookup_and_transform(table, [[0, 1], [2, 0]], max_norm=2.0, transform_fn=lambda x: tf.norm(x, axis=1))
        assert made.shape == [2, 2]
        np.testing.assert_allclose(session.run(made), [[2, 2], [1, 2]], rtol=1e-6)
    assert session.run(embedding_lookup_and_transform(rows, 1)).tolist() == [6, 8]


def test_a_signature_tells_references():
    assert tf.saved_model.utils.build_tensor_info(tf.Variable(1, name="x")).dtype == tf.int32.as_datatype_enum + 100
    assert tf.saved_model.utils.build_tensor_info(tf.get_variable("y", [], tf.int32, use_resource=True)).dtype == tf.int32.as_datatype_enum


def test_predicates_of_layers_and_values_of_contrib():
    from millrace.contrib.layers_utils import constant_value as of_contrib
    from millrace.layers.utils import constant_value

    assert constant_value(1) is True and constant_value(tf.constant(False)) == np.False_ and constant_value(tf.placeholder(tf.bool)) is None
    assert constant_value(tf.Variable(True)) is None and of_contrib(tf.Variable(True)) is None
    for wrong in (5, "a", None, [1]):
        with pytest.raises(TypeError, match="`pred` must be a Tensor, or a Python bool, or 1 or 0"):
            constant_value(wrong)
    assert of_contrib(5) == 5 and of_contrib([1]) == [1] and of_contrib(tf.constant(5)) == 5
    with pytest.raises(ValueError, match="cannot be None"):
        of_contrib(None)
    with pytest.raises(ValueError, match="wrong type <dtype: 'int32'> instead of <dtype: 'bool'>"):
        of_contrib(tf.constant(5), tf.bool)


def test_tensors_that_are_computed_from_others():
    from millrace.layers.utils import get_reachable_from_inputs

    a, b, c = (tf.placeholder(tf.float32) for _ in range(3))
    first, second, third = a + b, b * 2, c + 1
    last, product = first + second, third * a
    assert get_reachable_from_inputs([a]) == {a, first, last, product}
    assert get_reachable_from_inputs([third]) == {third, product}
    assert get_reachable_from_inputs([a], targets=[first]) == {a, first, product}
    v = tf.Variable(1.0)
    double = v * 2
    assert {v, double, v.op.outputs[0]} <= get_reachable_from_inputs([v])


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("axes, data_format", [((0, 1, 2), b"NHWC"), ((0, 2, 3), "NCHW")])
def test_gradients_of_normalized_batches_in_plain_operations(session, axes, data_format, is_training):
    from millrace.ops.moments import batch_norm_gradients

    random = np.random.RandomState(0)
    x, g, scale, mean, variance = (random.rand(*s) for s in ([2, 3, 3, 3], [2, 3, 3, 3], [3], [3], [3]))
    spread = [1, 1, 1, 3] if axes == (0, 1, 2) else [1, 3, 1, 1]
    found = session.run(batch_norm_gradients(g, x, scale, mean, variance, 0.01, data_format, is_training))
    m, v = (x.mean(axes), x.var(axes)) if is_training else (mean, variance)
    m, inverse = m.reshape(spread), (v.reshape(spread) + 0.01) ** -0.5
    normal = (x - m) * inverse
    by_x = g * inverse * scale.reshape(spread)
    if is_training:
        by_x = by_x - by_x.mean(axes, keepdims=True) - normal * (by_x * normal).mean(axes, keepdims=True)
    for got, want in zip(found, (by_x, (g * normal).sum(axes), g.sum(axes))):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    half = batch_norm_gradients(np.float16(g), np.float16(x), np.float32(scale), np.float32(mean), np.float32(variance), 0.01, data_format, is_training)
    assert [t.dtype for t in half] == [tf.float16, tf.float32, tf.float32]
    np.testing.assert_allclose(session.run(half[0]), by_x, atol=5e-3)


def test_the_call_that_made_a_gradient_is_in_its_name():
    from millrace.ops.tensor_array_ops import gradient_source

    for name, source in (("gradients/foo/bar", "gradients"), ("a/gradients_1/b/gradients_2/c", "a/gradients_1/b/gradients_2"), ("gradients_3", "gradients_3")):
        assert gradient_source(tf.constant(0, name=name).op) == source
    with pytest.raises(ValueError, match="got: foo/bar:0"):
        gradient_source(tf.constant(0, name="foo/bar"))


def test_statuses_are_well():
    from millrace.framework import c_api_util

    with tf.errors.raise_exception_on_not_ok_status() as status:
        assert type(status) is type(c_api_util.ScopedTFStatus().status) and status.code == 0


def test_operations_know_whose_gradient_they_are():
    w, x = tf.ones([2, 2]), tf.ones([2, 2])
    with tf.name_scope("o"):
        y = tf.matmul(w, x) + tf.matmul(x, w)
        first = tf.gradients(y * y, w)[0]
        second = tf.gradients(first, x)[0]
    made = {op.name: op._original_op and op._original_op.name for op in tf.get_default_graph().get_operations()}
    assert made["o/gradients/o/MatMul_grad/MatMul"] == "o/MatMul" and made["o/gradients/o/MatMul_1_grad/MatMul_1"] == "o/MatMul_1"
    assert made["o/gradients_1/o/gradients/o/MatMul_grad/MatMul_grad/MatMul"] == "o/gradients/o/MatMul_grad/MatMul"
    assert [made[name] for name in ("o/MatMul", "o/gradients/grad_ys_0", first.op.name, second.op.name)] == [None] * 4


def test_shapes_of_another_rank_are_named():
    for rank, shape in ((2, [1]), (1, [1, None])):
        with pytest.raises(ValueError, match="must have rank %d" % rank):
            tf.TensorShape(shape).with_rank(rank)
    assert tf.TensorShape(None).with_rank(2).as_list() == [None, None]
    with pytest.raises(ValueError, match=r"Shape \(1,\) must have rank 2"):
        tf.SparseTensor([0], ["fox"], [1])


def test_the_shape_of_a_tensor_is_not_assigned():
    x = tf.zeros([2])
    with pytest.raises(ValueError, match="use Tensor.set_shape instead"):
        x._shape = tf.TensorShape([None])
    assert x._shape.as_list() == [2]


class _Boxed:
    """What a library makes a tensor of by a function that it registers, in none but its own type."""

    def __init__(self, tensor):
        self.tensor = tensor

    dtype = property(lambda self: self.tensor.dtype)
    shape = property(lambda self: self.tensor.shape)

    def __add__(self, other):
        return self.tensor + other


def _unboxed(value, dtype=None, name=None, as_ref=False):
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError("a box of %s, asked for %s" % (value.dtype.name, dtype.name))
    return value.tensor


tf.register_tensor_conversion_function(_Boxed, _unboxed)


def test_an_op_says_what_it_wanted_of_a_value_that_its_function_will_not_convert():
    with pytest.raises(TypeError, match="type float32 that does not match type int32"):
        tf.add(1, _Boxed(tf.constant(1.0)))


def test_converted_values_are_indices():
    x = tf.constant([1.0, 2.0, 3.0])
    one, two = _Boxed(tf.constant(1)), _Boxed(tf.constant(2))
    with tf.Session() as sess:
        assert sess.run(x[one]) == 2
        assert sess.run(x[one:two]).tolist() == [2]
