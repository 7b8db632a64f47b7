# SPDX-License-Identifier: Apache-2.0
"""Functions of TensorFlow 1.13 to 1.15: pools by rank, factors, scattered tensors, schedules, tf.data.experimental; and names that are not there."""

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.framework import missing, not_provided
from millrace.ops import gen_ops


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_pools_of_any_rank(sess):
    x = np.random.RandomState(0).randn(2, 6, 3).astype(np.float32)
    windows = x.reshape(2, 3, 2, 3)
    np.testing.assert_allclose(sess.run(tf.nn.avg_pool1d(x, 2, 2, "VALID")), windows.mean(2), rtol=1e-6)
    np.testing.assert_array_equal(sess.run(tf.nn.max_pool1d(x.transpose(0, 2, 1), [2], [2], "VALID", "NCW")), windows.max(2).transpose(0, 2, 1))
    image = x.reshape(2, 6, 3, 1)
    np.testing.assert_array_equal(sess.run(tf.nn.max_pool_v2(image, [2, 3], [2, 3], "VALID")), image.reshape(2, 3, 2, 1, 3, 1).max((2, 4)))
    np.testing.assert_array_equal(sess.run(tf.nn.avg_pool_v2(image, 2, 1, "SAME")), sess.run(tf.nn.avg_pool2d(image, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")))
    with pytest.raises(ValueError, match="ksize should be of length 1, 2 or 4"):
        tf.nn.avg_pool_v2(image, [1, 2, 3], 1, "SAME")


def test_transposed_convolutions_by_rank(sess):
    x, f = np.random.RandomState(1).randn(2, 4, 3), np.random.RandomState(2).randn(3, 5, 3)
    made = sess.run(tf.nn.conv1d_transpose(tf.constant(x), tf.constant(f), [2, 8, 5], 2))
    wanted = sess.run(tf.nn.conv2d_transpose(tf.constant(x[:, None]), tf.constant(f[None]), [2, 1, 8, 5], [1, 1, 2, 1]))[:, 0]
    np.testing.assert_allclose(made, wanted)
    np.testing.assert_allclose(sess.run(tf.nn.conv_transpose(tf.constant(x), tf.constant(f), [2, 8, 5], 2)), wanted)


def test_factors_and_ranks(sess):
    a = np.random.RandomState(3).randn(2, 4, 4)
    lu, p = tf.linalg.lu(a)
    rhs = np.random.RandomState(4).randn(2, 4, 3)
    np.testing.assert_allclose(sess.run(tf.linalg.lu_solve(lu, p, rhs)), np.linalg.solve(a, rhs), rtol=1e-8)
    np.testing.assert_allclose(sess.run(tf.linalg.lu_reconstruct(lu, p)), a, rtol=1e-10)
    np.testing.assert_allclose(sess.run(tf.linalg.lu_matrix_inverse(lu, p)), np.linalg.inv(a), rtol=1e-8)
    one, order = tf.linalg.lu(a[0])
    np.testing.assert_allclose(sess.run(tf.linalg.lu_reconstruct(one, order)), a[0], rtol=1e-10)
    low = np.random.RandomState(5).randn(5, 2) @ np.random.RandomState(6).randn(2, 4)
    np.testing.assert_allclose(sess.run(tf.linalg.pinv(low)), np.linalg.pinv(low), atol=1e-10)
    assert sess.run([tf.linalg.matrix_rank(low), tf.linalg.matrix_rank(np.eye(3)), tf.linalg.matrix_rank(low, tol=1e3)]) == [2, 3, 0]
    unit, size = sess.run(tf.linalg.normalize(tf.constant([[3.0, 4.0]]), axis=1))
    assert unit.tolist() == [[np.float32(0.6), np.float32(0.8)]] and size.tolist() == [[5.0]]


def test_linear_operators(sess):
    a, b = np.random.RandomState(8).randn(3, 3), np.random.RandomState(9).randn(2, 2, 3)
    full, batch = tf.linalg.LinearOperatorFullMatrix(a), tf.linalg.LinearOperatorFullMatrix(b)
    axis = np.array([1.0, 2.0, 2.0])
    c, r = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 6.0])
    u = np.random.RandomState(10).randn(3, 2)
    low = tf.linalg.LinearOperatorLowRankUpdate(full, u, [2.0, 3.0])
    for made, wanted in (
        (tf.linalg.LinearOperatorComposition([batch, full]), b @ a),
        (full.H, a.T),
        (full.inverse(), np.linalg.inv(a)),
        (tf.linalg.LinearOperatorKronecker([full, tf.linalg.LinearOperatorFullMatrix(b[0])]), np.kron(a, b[0])),
        (tf.linalg.LinearOperatorZeros(2, 3, [4]), np.zeros([4, 2, 3])),
        (low, a + u @ np.diag([2.0, 3.0]) @ u.T),
        (tf.linalg.LinearOperatorScaledIdentity(2, [3.0, 4.0]), np.stack([3 * np.eye(2), 4 * np.eye(2)])),
        (tf.linalg.LinearOperatorHouseholder(axis), np.eye(3) - 2 * np.outer(axis, axis) / 9),
        (tf.linalg.LinearOperatorToeplitz(c, r), [[1, 5, 6], [2, 1, 5], [3, 2, 1]]),
        (tf.linalg.LinearOperatorBlockDiag([full, full]), np.kron(np.eye(2), a)),
        (tf.linalg.LinearOperatorCirculant(np.fft.fft(c), tf.float64), [[1, 3, 2], [2, 1, 3], [3, 2, 1]]),
    ):
        np.testing.assert_allclose(sess.run(made.to_dense()), wanted, rtol=1e-6, atol=1e-9)
    spectrum, x = np.random.RandomState(11).randn(2, 3), np.random.RandomState(12).randn(6)
    circulant = tf.linalg.LinearOperatorCirculant2D(spectrum, tf.complex128)
    np.testing.assert_allclose(sess.run(circulant.matvec(x.astype(complex))), np.fft.ifft2(spectrum * np.fft.fft2(x.reshape(2, 3))).ravel(), atol=1e-12)
    np.testing.assert_allclose(sess.run(full.solvevec(c)), np.linalg.solve(a, c))
    np.testing.assert_allclose(sess.run(full.inverse().solve(a)), a @ a)


def test_scattered_tensors_and_repeats(sess):
    x = tf.zeros([4], tf.int32)
    assert sess.run(tf.tensor_scatter_nd_update(x, [[1], [3]], [5, 6])).tolist() == [0, 5, 0, 6]
    assert sess.run(tf.tensor_scatter_sub(tf.tensor_scatter_add(x, [[1], [1]], [2, 3]), [[0]], [1])).tolist() == [-1, 5, 0, 0]
    for values, counts, axis in (([[1, 2], [3, 4]], 2, None), ([[1, 2], [3, 4]], [1, 3], 1), ([[1, 2], [3, 4]], [0, 2], 0), ([7], 3, 0)):
        assert sess.run(tf.repeat(values, counts, axis)).tolist() == np.repeat(values, counts, axis).tolist()
    v = tf.Variable(np.zeros([2, 3], np.int32))
    sess.run(v.initializer)
    assert sess.run(tf.batch_scatter_update(v, [[0, 2], [1, 0]], [[1, 2], [3, 4]])).tolist() == [[1, 0, 2], [4, 3, 0]]
    index = tf.placeholder(tf.int32, [])
    chosen = tf.switch_case(index, [lambda: tf.constant(10), lambda: tf.constant(20)])
    assert [sess.run(chosen, {index: i}) for i in (0, 1, 9)] == [10, 20, 20]
    far = tf.switch_case(tf.cast(index, tf.int64), {1: lambda: tf.constant(20), 0: lambda: tf.constant(10)}, default=lambda: tf.constant(-1))
    assert [sess.run(far, {index: i}) for i in (0, 1, 9, -1)] == [10, 20, -1, -1]
    for wrong, kind, message in (
        ({0: tf.no_op, 2: tf.no_op}, ValueError, "must form contiguous"),
        ([(0, tf.no_op), (0, tf.no_op)], ValueError, "must form contiguous"),
        ([(index, tf.no_op)], TypeError, "must be a Python `int`"),
        ([1], TypeError, "must be functions"),
    ):
        with pytest.raises(kind, match=message):
            tf.switch_case(index, wrong)
    with pytest.raises(TypeError, match="integer Tensor"):
        tf.switch_case(tf.constant(1.0), [tf.no_op])
    y = tf.constant([1.4, 2.6])
    assert sess.run(tf.gradients(tf.grad_pass_through(tf.round)(y) * 3.0, y)[0]).tolist() == [3.0, 3.0]
    scale = tf.Variable(2.0, use_resource=True)
    scaled = tf.grad_pass_through(lambda t: scale * t)(y)
    sess.run(scale.initializer)
    assert sess.run(tf.gradients(scaled * 3.0, y)[0]).tolist() == [3.0, 3.0] and tf.gradients(scaled, scale) == [None]


def test_what_modules_hold(sess):
    del sess

    class Pair(tf.Module):
        def __init__(self, first, second):
            super().__init__()
            self.b, self.a, self.more = first, second, {"k": [second]}

    c = Pair(tf.Variable(1.0, name="c"), None)
    a, b = Pair(tf.Variable(2.0, name="a"), c), Pair(tf.Variable(3.0, name="b"), None)
    whole = Pair(b, a)
    assert whole.submodules == (a, b, c) and whole.variables == (a.b, c.b, b.b)  # depth first, as in 1.15
    assert list(whole._flatten(recursive=False, predicate=lambda v: isinstance(v, Pair))) == [a, b]
    assert list(whole._flatten(predicate=lambda v: isinstance(v, tf.Variable), attribute_traversal_key=lambda name: name != "b")) == [b.b, a.b, c.b]
    paths = [path for path, value in whole._flatten(with_path=True, predicate=lambda v: v is c)]
    assert paths == [("a", "a"), ("a", "more", "k", 0), ("more", "k", 0, "a"), ("more", "k", 0, "more", "k", 0)]

    class Careful(Pair):
        _TF_MODULE_IGNORED_PROPERTIES = frozenset(("b", *tf.Module._TF_MODULE_IGNORED_PROPERTIES))

    assert Careful(b, tf.Variable(1.0)).submodules == ()


def test_no_nan_and_sparse(sess):
    assert sess.run(tf.math.multiply_no_nan([np.nan, 2.0], [0.0, 3.0])).tolist() == [0, 6] and sess.run(tf.math.reciprocal_no_nan([0.0, 4.0])).tolist() == [
        0,
        0.25,
    ]
    assert sess.run(tf.math.reduce_euclidean_norm(tf.constant([[3.0, 4.0], [0.0, 5.0]]), 1)).tolist() == [5, 5]
    dense = np.array([[0, 2], [3, 0]])
    made = sess.run(tf.sparse.from_dense(dense))
    assert made.indices.tolist() == [[0, 1], [1, 0]] and made.values.tolist() == [2, 3]
    assert sess.run(tf.sparse_tensor_to_dense(tf.sparse.eye(2, 3))).tolist() == np.eye(2, 3).tolist()
    assert sess.run(tf.io.is_jpeg([b"\xff\xd8\xff\xe0", b"GIF89a"])).tolist() == [True, False]
    edges = sess.run(tf.image.sobel_edges(tf.constant(np.arange(12.0).reshape(1, 3, 4, 1))))
    assert edges.shape == (1, 3, 4, 1, 2) and edges[0, 1, 1, 0].tolist() == [32, 8]


def test_ctc_with_another_blank(sess):
    logits = np.random.RandomState(7).randn(5, 2, 4).astype(np.float32)
    labels = np.array([[1, 2], [3, 0]])
    made = sess.run(tf.nn.ctc_loss_v2(labels, logits, [2, 1], [5, 4], blank_index=0))
    moved = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 1, 2], [2, 2])  # the same with the blank last
    np.testing.assert_allclose(made, sess.run(tf.nn.ctc_loss(moved, np.roll(logits, -1, 2), [5, 4])), rtol=1e-5)
    rows, lengths = sess.run(tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 0, 0]], [5, 3]))
    assert rows.tolist() == [[1, 2, 1], [3, 0, 0]] and lengths.tolist() == [3, 1]
    distinct, places = sess.run(tf.nn.ctc_unique_labels([[3, 4, 4, 3]]))
    assert distinct.tolist() == [[3, 4, 0, 0]] and places.tolist() == [[0, 1, 1, 0]]


def test_schedules(sess):
    at = lambda schedule, step, **more: float(sess.run(schedule(1.0, step, 10, **more)))
    assert at(tf.train.cosine_decay_restarts, 0) == 1 and at(tf.train.cosine_decay_restarts, 10, m_mul=0.5) == pytest.approx(0.5)
    assert at(tf.train.cosine_decay_restarts, 20) == pytest.approx(0.5, abs=1e-6)  # half of the second, which takes twenty
    assert at(tf.train.cosine_decay_restarts, 15, t_mul=1.0) == pytest.approx(0.5, abs=1e-6)
    assert at(tf.train.linear_cosine_decay, 5, alpha=0.25, beta=0.0) == pytest.approx(0.75 * 0.5)
    assert at(tf.train.noisy_linear_cosine_decay, 5, initial_variance=0.0, beta=0.0) == pytest.approx(0.25)
    assert sess.run(tf.train.piecewise_constant_decay(tf.constant(3), [2, 4], [1.0, 2.0, 3.0])) == 2.0


def test_data_experimental(sess, tmp_path):
    x = tf.data.experimental

    def elements(dataset, count=None):
        got, following = [], tf.data.make_one_shot_iterator(dataset).get_next()
        while count is None or len(got) < count:
            try:
                got.append(sess.run(following))
            except tf.errors.OutOfRangeError:
                break
        return got

    assert elements(x.Counter(3, 2), 3) == [3, 5, 7] and elements(x.Counter(step=-1), 2) == [0, -1]
    assert elements(x.RandomDataset(5), 3) == elements(x.RandomDataset(5), 3) and len(set(elements(x.RandomDataset(5), 3))) == 3
    path = tmp_path / "a.csv"
    path.write_text('n,name,share\n1,"a,b",0.5\n2,c,\n')
    assert elements(x.CsvDataset(str(path), [tf.int32, tf.string, 9.0], header=True)) == [(1, b"a,b", 0.5), (2, b"c", 9.0)]
    rows, labels = elements(x.make_csv_dataset(str(path), 2, column_defaults=[0, "", 7.0], label_name="n", num_epochs=1, shuffle=False))[0]
    assert sorted(rows) == ["name", "share"] and labels.tolist() == [1, 2] and rows["share"].tolist() == [0.5, 7.0]
    assert x.make_csv_dataset(str(path), 2).output_types["share"] == tf.float32
    iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1))
    one = x.get_next_as_optional(iterator)
    assert sess.run([one.has_value(), one.get_value()]) == [True, 0] and not sess.run(one.has_value())
    assert sess.run(x.Optional.from_value((1, [2.0])).get_value())[0] == 1 and not sess.run(x.Optional.none_from_structure(tf.int32, []).has_value())
    features = {"n": tf.FixedLenFeature([], tf.int64)}
    with tf.python_io.TFRecordWriter(str(tmp_path / "r")) as writer:
        for i in range(3):
            writer.write(
                tf.train.Example(features=tf.train.Features(feature={"n": tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))})).SerializeToString()
            )
    made = x.make_batched_features_dataset(str(tmp_path / "r"), 2, features, num_epochs=1, shuffle=False)
    assert [e["n"].tolist() for e in elements(made)] == [[0, 1], [2]]


def test_sums_and_zeros_of_optionals(sess):
    def value(optional):
        return gen_ops.optional_get_value(optional, [tf.float32, tf.int32], [[2], []])

    one = gen_ops.optional_from_value([tf.constant([1.0, 2.0]), tf.constant(3)])
    none = gen_ops.optional_none()
    total, zero, same = sess.run([value(tf.add_n([one, one])), value(tf.zeros_like(one)), value(one)])
    assert [v.tolist() for v in (*total, *zero, *same)] == [[2, 4], 6, [0, 0], 0, [1, 2], 3]
    assert sess.run([gen_ops.optional_has_value(o) for o in (tf.add_n([none, none]), tf.zeros_like(none))]) == [False, False]
    with pytest.raises(tf.errors.InvalidArgumentError, match="one has a value and the other doesn't"):
        sess.run(gen_ops.optional_has_value(tf.add_n([one, none])))


def test_lists_that_are_concatenated_have_elements_alike():
    one, other = (gen_ops.tensor_list_from_tensor(tf.zeros([2, n]), tf.constant([n])) for n in (3, 4))
    with pytest.raises(ValueError, match=r"Dimension 0 in both shapes must be equal, but are 3 and 4. Shapes are \[3\] and \[4\]"):
        gen_ops.tensor_list_concat_lists(one, other, tf.float32)


def test_what_lists_say_of_elements_that_were_never_set(sess):
    lists = names.find("python.ops.list_ops")

    def joined(of_list, **more):
        made = lists.tensor_list_reserve(of_list, 2, tf.float32)
        return lists.tensor_list_concat(more.pop("after", lambda x: x)(made), tf.float32, **more)

    def with_a_row(made):
        return lists.tensor_list_set_item(made, 1, [[5.0, 6.0]])

    assert [sess.run(joined(shape)).shape for shape in ([2, 3], [1, 2])] == [(4, 3), (2, 2)]
    assert sess.run(joined(None, element_shape=(2, 3))).shape == (4, 3)
    assert sess.run(joined(None, after=with_a_row)).tolist() == [[0, 0], [5, 6]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="uninitialized tensor at index 0 but leading_dims has only 0 elements"):
        sess.run(joined([None, 3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="only uninitialized tensors but element_shape_except_first_dim_ is not fully defined"):
        sess.run(joined(None))
    reserved = lists.tensor_list_reserve([None, 2], 1, tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"read an uninitialized tensor but element_shape is not fully defined: \[\?,2\]"):
        sess.run(lists.tensor_list_get_item(reserved, 0, tf.float32))
    with pytest.raises(ValueError, match=r"Dimension 1 in both shapes must be equal, but are 3 and 2"):
        gen_ops.tensor_list_get_item(reserved, 0, [1, 3], tf.float32)
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 2 and 1"):
        lists.tensor_list_split([[1.0], [2.0]], [1], [1, 1])


def test_dir_leaves_out_what_only_says_what_to_use():
    for module in (tf, tf.train, tf.keras, tf.estimator, tf.test, tf.feature_column):
        assert not [name for name in dir(module) if isinstance(getattr(module, name), missing.Missing)]


# Namespaces of which a part is there, or whose modules can be imported and lack what they had.
_PARTLY_THERE = {
    "tpu",
    "distribute",
    "python.distribute",
    "python.keras.distribute",
    "python.keras.mixed_precision",
    "python.data.experimental.ops.optimization",
}


@pytest.mark.parametrize("path", sorted(not_provided.TABLE))
def test_what_is_not_provided_says_what_to_use(path):
    value = tf
    path += ".Strategy" if path in _PARTLY_THERE else ""
    with pytest.raises(NotImplementedError, match="is not provided: use .*test_later_functions.py") as caught:
        for name in path.split("."):
            value = getattr(value, name)
    assert isinstance(caught.value, AttributeError)
    assert path.split(".")[0] not in dir(tf) or path.split(".")[-1] not in dir(value)


def test_bounds_of_steps_are_of_the_type_of_what_they_bound():
    with pytest.raises(ValueError, match="must have the same dtype as x"):
        tf.train.piecewise_constant(tf.constant(1), [1.5], [1.0, 2.0])
    with pytest.raises(ValueError, match="must have the same dtype as x"):
        tf.train.piecewise_constant(tf.constant(1.0), [1], [1.0, 2.0])
    with pytest.raises(ValueError, match="all with the same dtype"):
        tf.train.piecewise_constant(tf.constant(1), [1], [1.0, 2])
    with tf.Session() as session:
        assert session.run(tf.train.piecewise_constant(tf.constant(3, tf.int64), [2], [1.0, 2.0])) == 2.0


def test_loops_give_what_their_bodies_give():
    i, total = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + i), [0, 0])
    assert isinstance(tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + i), [0, 0]), tuple)
    assert isinstance(tf.while_loop(lambda i, t: i < 3, lambda i, t: [i + 1, t + i], (0, 0)), list)
    with tf.Session() as session:
        assert session.run([i, total]) == [3, 3]


def test_complex_arrays_have_real_spreads():
    x = np.random.RandomState(3).randn(3, 4) + 1j * np.random.RandomState(4).randn(3, 4)
    with tf.Graph().as_default(), tf.Session() as sess:
        s, u, v = tf.svd(x)
        assert [t.dtype for t in (s, u, v)] == [tf.float64, tf.complex128, tf.complex128]
        assert tf.svd(x, compute_uv=False).dtype == tf.float64
        np.testing.assert_allclose(sess.run(s), np.linalg.svd(x)[1], rtol=1e-12)
        np.testing.assert_allclose(sess.run(tf.linalg.pinv(x)), np.linalg.pinv(x), atol=1e-12)
        assert sess.run(tf.linalg.matrix_rank(x)) == 3
        for function, exact in ((tf.math.reduce_variance, np.var), (tf.math.reduce_std, np.std)):
            assert function(x).dtype == tf.float64
            np.testing.assert_allclose(sess.run(function(x, 1)), exact(x, 1), rtol=1e-12)
        operator = tf.linalg.LinearOperatorFullMatrix(x[:, :3])
        sess.run(operator.assert_non_singular())
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(tf.linalg.LinearOperatorFullMatrix(np.ones((2, 2)) * 1j).assert_non_singular())
        assert tf.nn.ctc_unique_labels(np.array([[3, 4]], np.int32))[0].dtype == tf.int64


def test_fingerprints_have_a_method_of_their_own(sess):
    made = tf.fingerprint([["abc", "d"], ["e", "f"]])
    assert sess.run(made).tolist() == [[42, 36, 211, 10, 152, 245, 170, 130], [126, 162, 195, 107, 236, 27, 143, 247]]  # what 1.15.5 gives


def test_variables_that_results_depend_on(sess):
    dependent = names.find("python.ops.custom_gradient").get_dependent_variables
    v, w = tf.Variable([1.0, 2.0]), tf.get_variable("dependent", [2], use_resource=True)
    kept, x = tf.Variable([1.0, 2.0], trainable=False), tf.constant(2.0)
    before = len(tf.get_default_graph().get_operations())
    assert dependent([x], [tf.identity(x) + v + kept]) == [v]
    assert set(dependent({"x": x}, {"y": x * v + w})) == {v, w}
    y = v * 2.0
    assert dependent([y], [y + 1.0]) == [] and dependent([x], [x + tf.ones_like(v)]) == [] and dependent([x], [x]) == []
    assert not any(op.type.endswith("Grad") for op in tf.get_default_graph().get_operations()[before:])
