# SPDX-License-Identifier: Apache-2.0
"""Arguments that functions have got up to TensorFlow 1.15: obeyed, under their new names and at their places. Expected values are NumPy's."""

import gzip
import inspect
import os
import zlib

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.framework.function import Defun

R = np.random.RandomState(7)


def value(tensor):
    with tf.Session(graph=tf.get_default_graph()) as session:
        return session.run(tensor)


def gathered(params, indices, batch):
    """params[b][indices[b]] for each index b of the first `batch` axes."""
    if batch == 0:
        return params[indices]
    return np.stack([gathered(p, i, batch - 1) for p, i in zip(params, indices)])


def test_gather_in_batches():
    params, indices = R.rand(2, 3, 5, 4), R.randint(0, 5, [2, 3, 2])
    with tf.Graph().as_default():
        made = [tf.gather(params, indices, batch_dims=2), tf.gather(params, indices, axis=2, batch_dims=-1)]
        for got in value(made):
            np.testing.assert_array_equal(got, gathered(params, indices, 2))
        last = value(tf.gather(params, indices[..., 0] % 4, axis=-1, batch_dims=1))
        want = np.stack([p[..., i] for p, i in zip(params, indices[..., 0] % 4)])
        np.testing.assert_array_equal(last, want)
        with pytest.raises(ValueError, match="batch_dims"):
            tf.gather(params, indices, axis=1, batch_dims=2)
        with pytest.raises(ValueError, match="unknown shape"):
            tf.gather(params, tf.placeholder(tf.int32), batch_dims=-1)


def test_gather_nd_in_batches():
    params, indices = R.rand(2, 3, 4, 5), R.randint(0, 4, [2, 3, 6, 1])
    with tf.Graph().as_default():
        got = value(tf.gather_nd(params, indices, batch_dims=2))
        np.testing.assert_array_equal(got, np.stack([[p[i[:, 0]] for p, i in zip(ps, xs)] for ps, xs in zip(params, indices)]))
        rows = np.stack([R.randint(0, 3, [2, 6]), R.randint(0, 4, [2, 6])], -1)
        got = value(tf.manip.gather_nd(params, rows, batch_dims=1))
        np.testing.assert_array_equal(got, np.stack([p[r[:, 0], r[:, 1]] for p, r in zip(params, rows)]))
        hidden = [tf.placeholder_with_default(given, None) for given in (params, rows)]
        np.testing.assert_array_equal(value(tf.gather_nd(*hidden, batch_dims=tf.constant([1]))), got)
        np.testing.assert_array_equal(value(names.find("python.ops.array_ops").batch_gather_nd(params, rows, 1)), got)
        np.testing.assert_array_equal(value(names.find("python.ops.array_ops").batch_gather_nd(params, rows[:, :, :1] % 2, 0)), params[rows[:, :, 0] % 2])
        for wrong in (4, -1):
            with pytest.raises(ValueError, match="batch_dims"):
                tf.gather_nd(params, indices, batch_dims=wrong)


def test_printing_nodes_have_the_names_that_they_are_given():
    with tf.Graph().as_default() as graph:
        assert names.find("python.ops.logging_ops").print_v2("x =", tf.constant(1), name="shown").name == "shown"
        assert [op.type for op in graph.get_operations()] == ["Const", "StringFormat", "PrintV2"]


def test_masks_of_constant_lengths_have_a_known_shape():
    with tf.Graph().as_default():
        mask = tf.sequence_mask([[0, 1], [3, 2]])
        assert mask.shape.as_list() == [2, 2, 3] and value(mask).sum() == 6
        assert value(tf.sequence_mask(tf.placeholder_with_default([[0, 2]], None))).tolist() == [[[False, False], [True, True]]]
        with pytest.raises(TypeError, match="int64"):
            tf.Variable([1, 2])[:].assign(tf.constant([3, 4], tf.int64))


def convolved(x, w, rate):
    """A valid convolution of [batch, width, in] with [taps, in, out], whose taps are `rate` apart."""
    width = x.shape[1] - (w.shape[0] - 1) * rate
    return sum(np.einsum("bwi,io->bwo", x[:, k * rate : k * rate + width], w[k]) for k in range(w.shape[0]))


def test_dilations_of_convolutions():
    x, w = R.rand(2, 9, 3), R.rand(3, 3, 4)
    with tf.Graph().as_default():
        got = value([tf.nn.conv1d(x, w, 1, "VALID", dilations=2), tf.nn.convolution(x, filters=w, padding="VALID", dilations=[2])])
        for g in got:
            np.testing.assert_allclose(g, convolved(x, w, 2), rtol=1e-6)
        image, taps = R.rand(1, 8, 8, 2).astype("f"), R.rand(2, 2, 2, 1).astype("f")
        both = value(
            [
                f(image, taps, strides=[1, 1, 1, 1], padding="SAME", **k)
                for f, k in [(tf.nn.depthwise_conv2d, {"dilations": [2, 2]}), (tf.nn.depthwise_conv2d, {"rate": [2, 2]})]
            ]
        )
        np.testing.assert_array_equal(*both)
        point = R.rand(1, 1, 2, 3).astype("f")
        both = value([tf.nn.separable_conv2d(image, taps, point, [1, 1, 1, 1], "SAME", **k) for k in ({"rate": [2, 2]}, {"dilations": [2, 2]})])
        np.testing.assert_array_equal(*both)
        both = value([tf.nn.pool(image, [2, 2], "MAX", "VALID", **k) for k in ({"dilations": [3, 3]}, {"dilation_rate": [3, 3]})])
        np.testing.assert_array_equal(*both)
        np.testing.assert_array_equal(both[0], np.max([image[:, i : i + 5, j : j + 5] for i in (0, 3) for j in (0, 3)], 0))
        both = value(
            [tf.nn.dilation2d(image, f, [1, 1, 1, 1], padding="VALID", **{k: [1, 2, 2, 1]}) for k, f in (("rates", taps[..., 0]), ("dilations", taps[..., 0]))]
        )
        np.testing.assert_array_equal(*both)


def test_transposed_convolutions_are_gradients():
    for count in (2, 3):
        with tf.Graph().as_default():
            x = tf.constant(R.rand(2, *[7] * count, 2))
            w = tf.constant(R.rand(*[3] * count, 2, 3))
            forward = tf.nn.convolution(x, w, "VALID", dilations=[2] * count)
            flow = tf.constant(R.rand(*forward.shape.as_list()))
            transposed = {2: tf.nn.conv2d_transpose, 3: tf.nn.conv3d_transpose}[count]
            made = transposed(flow, filters=w, output_shape=x.shape.as_list(), strides=1, padding="VALID", dilations=2)
            got, want = value([made, tf.gradients(forward, x, flow)[0]])
            np.testing.assert_allclose(got, want, rtol=1e-9)


def test_where_maxima_were():
    image = R.permutation(2 * 4 * 4 * 2).reshape(2, 4, 4, 2).astype("f")
    with tf.Graph().as_default():
        inside, whole, old = value(
            [
                tf.nn.max_pool_with_argmax(image, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", output_dtype=tf.int32),
                tf.nn.max_pool_with_argmax(image, 2, 2, "SAME", include_batch_in_index=True),
                tf.nn.max_pool_with_argmax(image, 2, 2, "SAME", tf.int32),
            ]
        )
        assert inside[1].dtype == old[1].dtype == np.int32 and whole[1].dtype == np.int64
        np.testing.assert_array_equal(image.reshape(-1)[whole[1]], whole[0])
        np.testing.assert_array_equal(inside[1], whole[1] - np.array([0, 32]).reshape(2, 1, 1, 1))
        np.testing.assert_array_equal(inside[1], old[1])
        with pytest.raises(ValueError, match="NHWC"):
            tf.nn.max_pool_with_argmax(image, 2, 2, "SAME", "NCHW")


def test_names_of_arguments_that_have_changed():
    x = R.randint(-1, 2, [3, 4])
    image = R.rand(1, 4, 4, 1).astype("f")
    with tf.Graph().as_default():
        assert value(tf.count_nonzero(input=x)) == np.count_nonzero(x)
        assert value(tf.strings.to_number(input=["2.5"])).tolist() == [2.5]
        assert value(tf.decode_raw(input_bytes=["\1\2"], out_type=tf.uint8)).tolist() == [[1, 2]]
        assert value(tf.strings.to_hash_bucket(input=["a"], num_buckets=1)).tolist() == [0]
        assert value(tf.strings.regex_replace("aXb", "X", "y")) == b"ayb"
        assert value(tf.string_split(["a-b"], sep="-")).values.tolist() == [b"a", b"b"]
        assert value(tf.string_split(["a b"], delimiter=" ")).values.tolist() == [b"a", b"b"]
        assert value(tf.debugging.assert_all_finite(x=[1.0], message="m")).tolist() == [1.0]
        both = value([tf.space_to_batch(image, [[0, 0], [0, 0]], **{k: 2}) for k in ("block_size", "block_shape")])
        np.testing.assert_array_equal(*both)
        np.testing.assert_array_equal(value(tf.batch_to_space(both[0], [[0, 0], [0, 0]], block_shape=2)), image)
        np.testing.assert_array_equal(
            value(tf.nn.space_to_depth(image, 2, "named", "NHWC")), image.reshape(1, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4).reshape(1, 2, 2, 4)
        )
        assert value(tf.extract_image_patches(image, sizes=[1, 2, 2, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding="VALID")).shape == (1, 2, 2, 4)
        assert tf.ensure_shape(x=tf.placeholder(tf.float32), shape=[2]).shape.as_list() == [2]
        assert tf.as_dtype(type_value="int8") == tf.int8 and tf.DType(type_enum=1) == tf.float32
        assert tf.errors.exception_type_from_error_code(error_code=5) is tf.errors.NotFoundError
        loss = value(tf.nn.weighted_cross_entropy_with_logits(labels=[1.0], logits=[0.0], pos_weight=3.0))
        np.testing.assert_allclose(loss, [3 * np.log(2)], rtol=1e-6)
        plain = value(
            tf.nn.batch_norm_with_global_normalization(
                input=image, mean=[1.0], variance=[4.0], beta=[2.0], gamma=[3.0], variance_epsilon=0.0, scale_after_normalization=True
            )
        )
        np.testing.assert_allclose(plain, (image - 1) / 2 * 3 + 2, rtol=1e-5)
        with pytest.raises(ValueError, match="cannot specify both 'input_tensor' and 'input'"):
            tf.count_nonzero(x, input=x)
        with pytest.raises(TypeError, match="missing the argument 'string_tensor'"):
            tf.string_to_number()
        with pytest.raises(ValueError, match="whyExpected scalar"):
            tf.assert_scalar(x, message="why")


def test_conjugates():
    a, b = R.rand(2, 3, 3) + 1j * R.rand(2, 3, 3), R.rand(2, 3) + 1j * R.rand(2, 3)
    with tf.Graph().as_default():
        np.testing.assert_allclose(value(tf.matrix_transpose(a, conjugate=True)), a.transpose(0, 2, 1).conj())
        np.testing.assert_allclose(value(tf.linalg.matvec(a, b, adjoint_a=True)), np.einsum("bji,bj->bi", a.conj(), b))
        np.testing.assert_allclose(value(tf.linalg.matvec(a[0].real, b[0].real, a_is_sparse=False)), a[0].real @ b[0].real)


def test_segments_that_have_no_rows():
    data, places, ids = R.rand(4, 2), [0, 2, 3], [0, 0, 2]
    want = np.zeros([5, 2])
    want[0], want[2] = data[0] + data[2], data[3]
    by = np.array([2, 1, 1, 1, 1])[:, None]
    with tf.Graph().as_default():
        got = value([f(data, places, ids, num_segments=5) for f in (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse.segment_sqrt_n)])
        for g, divisor in zip(got, (1, by, np.sqrt(by))):
            np.testing.assert_allclose(g, want / divisor)


def test_select_that_broadcasts():
    x, y = R.rand(3, 1), R.rand(4)
    flags = R.rand(3, 4) > 0.5
    with tf.Graph().as_default():
        np.testing.assert_array_equal(value(tf.where_v2(flags, x, y)), np.where(flags, x, y))
        np.testing.assert_array_equal(value(tf.where_v2(flags)), np.argwhere(flags))
        with pytest.raises(ValueError, match="both"):
            tf.where_v2(flags, x)


def test_hints_and_protos():
    assert tf.convert_to_tensor([1, 2], dtype_hint=tf.float64).dtype == tf.float64
    assert tf.convert_to_tensor([1.5], dtype_hint=tf.int32).dtype == tf.float32
    assert tf.make_tensor_proto(1.5, shape=[2, 2], allow_broadcast=True).float_val == [1.5]
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        tf.make_tensor_proto([1.0, 2.0], shape=[3], allow_broadcast=True)
    with pytest.raises(ValueError, match="not both"):
        tf.make_tensor_proto(1.0, shape=[3], allow_broadcast=True, verify_shape=True)


def test_random_numbers_without_state():
    with tf.Graph().as_default():
        raw, scaled = value([tf.raw_ops.StatelessRandomNormal(shape=[50], seed=[1, 2]), tf.random.stateless_normal([50], [1, 2], 3.0, 0.5)])
        np.testing.assert_allclose(scaled, raw * 0.5 + 3, rtol=1e-6)
        cut = value(tf.random.stateless_truncated_normal([200], [1, 2], mean=3.0, stddev=0.5))
        assert np.all(np.abs(cut - 3) <= 1)
        raw, scaled = value([tf.raw_ops.StatelessRandomUniform(shape=[50], seed=[1, 2]), tf.random.stateless_uniform([50], [1, 2], 2, 5)])
        np.testing.assert_allclose(scaled, raw * 3 + 2, rtol=1e-6)
        whole = value(tf.random.stateless_uniform([200], [1, 2], 2, 5, tf.int32))
        assert set(whole) == {2, 3, 4}
        with pytest.raises(ValueError, match="maxval"):
            tf.random.stateless_uniform([2], [1, 2], dtype=tf.int32)
        drawn = [tf.random.categorical([[0.0, 9.0]], 5, tf.int32), tf.random.stateless_categorical([[0.0, 9.0]], 5, [1, 2], dtype=tf.int32)]
        assert [d.dtype for d in drawn] == [tf.int32, tf.int32] and value(drawn)[0].shape == (1, 5)


def test_reductions_by_place():
    x = R.rand(2, 3)
    with tf.Graph().as_default():
        for f in (tf.reduce_sum, tf.reduce_max, tf.reduce_logsumexp, tf.reduce_mean):
            made = [f(x, 1, True), f(x, 1, keep_dims=True), f(x, 1, keepdims=True)]
            assert [m.shape.as_list() for m in made] == [[2, 1]] * 3
        assert tf.norm(x, 2, 1, True).shape.as_list() == [2, 1]


def records_of(dataset):
    found = tf.data.make_one_shot_iterator(dataset).get_next() if hasattr(tf.data, "make_one_shot_iterator") else dataset.make_one_shot_iterator().get_next()
    rows = []
    with tf.Session() as session:
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                rows.append(session.run(found))
    return rows


def test_files_read_in_turns(tmp_path):
    """The order is that which TensorFlow 2.21 gives with num_parallel_reads."""
    files = []
    for i, count in enumerate([3, 1, 4, 2, 0, 3]):
        files.append(str(tmp_path / ("%d.txt" % i)))
        (tmp_path / ("%d.txt" % i)).write_text("".join("%d.%d\n" % (i, j) for j in range(count)))
    with tf.Graph().as_default():
        read = records_of(tf.data.TextLineDataset(files, num_parallel_reads=3))
        assert b" ".join(read) == b"0.0 1.0 2.0 0.1 2.1 0.2 3.0 2.2 3.1 2.3 5.0 5.1 5.2"
        assert len(records_of(tf.data.TextLineDataset(files))) == 13
        fixed = records_of(tf.data.FixedLengthRecordDataset(files, 4, num_parallel_reads=2))
        assert b"".join(fixed).split()[:4] == [b"0.0", b"1.0", b"0.1", b"0.2"]


def test_types_of_columns_are_guessed(tmp_path):
    for i in (0, 1):
        (tmp_path / ("%d.csv" % i)).write_text('a,b,c,d,e\n%d,3000000000,0.5,1e300,"x,y"\n2,4,,5,NA\n' % i)
    with tf.Graph().as_default():
        made = tf.data.experimental.make_csv_dataset(str(tmp_path / "*.csv"), 2, label_name="a", shuffle=False, num_epochs=1, na_value="NA")
        assert {k: t.name for k, t in made.output_types[0].items()} == {"b": "int64", "c": "float32", "d": "float64", "e": "string"}
        assert made.output_types[1] == tf.int32
        features, labels = records_of(made)[1]
        assert labels.tolist() == [1, 2] and features["e"].tolist() == [b"x,y", b""] and features["c"].tolist() == [0.5, 0.0]
        (tmp_path / "1.csv").write_text("a,b,c,d,e\n1,2,3,4,5\nwrong,2,3,4,5\n")
        kept = tf.data.experimental.make_csv_dataset(str(tmp_path / "1.csv"), 1, column_defaults=[0] * 5, shuffle=False, num_epochs=1, ignore_errors=True)
        assert len(records_of(kept)) == 1
        with pytest.raises(ValueError, match="compression_type 'ZLIB' is not supported for probing"):
            tf.data.experimental.make_csv_dataset(str(tmp_path / "1.csv"), 1, compression_type="ZLIB")
        with pytest.raises(ValueError, match="1.csv is no text that gzip packed"):
            tf.data.experimental.make_csv_dataset(str(tmp_path / "1.csv"), 1, compression_type="GZIP")


def test_compressed_records(tmp_path):
    for options, opened in [
        (tf.io.TFRecordOptions("GZIP", compression_level=9), gzip.open),
        (tf.io.TFRecordOptions(tf.io.TFRecordCompressionType.ZLIB, window_bits=9, mem_level=1, compression_strategy=2), None),
        (tf.io.TFRecordOptions(), open),
    ]:
        path = str(tmp_path / "r")
        with tf.io.TFRecordWriter(path, options) as writer:
            writer.write(b"abc" * 1000)
        with (opened or open)(path, "rb") as file:
            raw = file.read()
        assert len(raw if opened else zlib.decompress(raw)) == 16 + 3000
        assert list(tf.io.tf_record_iterator(path, options)) == [b"abc" * 1000]
    sizes = []
    for level in (1, 9):
        with tf.io.TFRecordWriter(str(tmp_path / "l"), tf.io.TFRecordOptions("ZLIB", compression_level=level)) as writer:
            writer.write(R.randint(0, 4, 20000).astype(np.uint8).tobytes())
        sizes.append(os.path.getsize(str(tmp_path / "l")))
    assert sizes[0] > sizes[1]
    with pytest.raises(ValueError, match="compression_type"):
        tf.io.TFRecordOptions("BZIP")


@pytest.mark.parametrize("name, wrong, right", [
    ("compression_level", [-2, 10], -1), ("mem_level", [0, 10], 1), ("compression_strategy", [-1, 5], 4), ("window_bits", [0, 16, 24, 47, -8], 9),
    ("output_buffer_size", [0, 1], 2), ("input_buffer_size", [-1], 1),
])  # fmt: skip
def test_numbers_of_compressed_records_that_zlib_refuses_are_named(tmp_path, name, wrong, right):
    path = str(tmp_path / "r")
    for kind in ("ZLIB", "GZIP"):
        for number in wrong:
            with pytest.raises(ValueError, match="^%s .* cannot be %d" % (name, number)):
                tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(kind, **{name: number}))
        for options in (tf.io.TFRecordOptions(kind, **{name: right}), tf.io.TFRecordOptions("", **{name: wrong[0]})):  # of no use to what is not compressed
            with tf.io.TFRecordWriter(path, options) as writer:
                writer.write(b"one")
            assert list(tf.io.tf_record_iterator(path, options)) == [b"one"]
    for other in (name, "flush_mode"):
        with pytest.raises(TypeError, match="^%s .* integer, got 'a'" % other):
            tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(**{other: "a"}))


def test_files_by_their_later_names(tmp_path):
    g = tf.io.gfile
    folder = str(tmp_path / "a" / "b")
    g.makedirs(path=folder)
    with g.GFile(folder + "/f", "w") as file:
        file.write("x")
    g.copy(src=folder + "/f", dst=folder + "/g")
    g.rename(src=folder + "/g", dst=folder + "/h")
    assert g.exists(path=folder + "/h") and g.isdir(path=folder) and sorted(g.listdir(path=folder)) == ["f", "h"]
    assert g.glob(pattern=folder + "/*") == [folder + "/f", folder + "/h"] and g.stat(path=folder + "/f").length == 1
    assert [w[0] for w in g.walk(str(tmp_path / "a"), topdown=False)] == [folder, str(tmp_path / "a")]
    errors = []
    assert list(g.walk(str(tmp_path / "none"), onerror=errors.append)) == [] and isinstance(errors[0], tf.errors.NotFoundError)
    g.remove(path=folder + "/h")
    g.rmtree(path=str(tmp_path / "a"))
    assert not g.exists(folder)


def test_structures_of_composite_tensors():
    with tf.Graph().as_default():
        sparse = tf.SparseTensor([[0, 1]], [5.0], [2, 3])
        ragged = tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 1, 3])
        whole = {"s": sparse, "r": [ragged, 7]}
        flat = tf.nest.flatten(whole, expand_composites=True)
        assert len(flat) == 6 and len(tf.nest.flatten(whole)) == 3
        packed = tf.nest.pack_sequence_as(whole, flat, expand_composites=True)
        assert isinstance(packed["s"], tf.SparseTensor) and packed["s"].values is sparse.values and isinstance(packed["r"][0], tf.RaggedTensor)
        doubled = tf.nest.map_structure(lambda x: x * 2, tf.SparseTensor([[0, 1]], tf.constant([5], tf.int64), [2, 3]), expand_composites=True)
        assert value(doubled.values).tolist() == [10]
        tf.nest.assert_same_structure(sparse, sparse, expand_composites=True)
        with pytest.raises(ValueError, match="Incompatible"):
            tf.nest.assert_same_structure(sparse, tf.SparseTensor([[0]], [1], [2]), expand_composites=True)


def test_keras_functions_have_their_own_arguments():
    K = tf.keras.backend
    x = R.rand(2, 3, 4)
    with tf.Graph().as_default(), tf.Session().as_default():
        assert K.expand_dims(x).shape.as_list() == [2, 3, 4, 1]
        np.testing.assert_array_equal(K.reverse(x=x, axes=1).eval(), x[:, ::-1])
        np.testing.assert_array_equal(K.tile(x[0, 0], n=2).eval(), np.tile(x[0, 0], 2))
        assert K.one_hot(tf.constant([1]), num_classes=3).eval().tolist() == [[0, 1, 0]]
        mean, spread = x.mean((0, 2)), x.var((0, 2))
        np.testing.assert_allclose(
            K.batch_normalization(tf.constant(x), mean, spread, None, None, axis=1, epsilon=0).eval(), (x - mean[:, None]) / np.sqrt(spread[:, None])
        )
        grown = K.resize_images(tf.constant(x[..., None], tf.float32), 2, 2, "channels_last", interpolation="bilinear")
        assert grown.shape.as_list() == [2, 6, 8, 1]
        np.testing.assert_allclose(grown.eval()[:, 0, 0, 0], x[:, 0, 0], rtol=1e-6)
        np.testing.assert_allclose(grown.eval()[:, 1, 0, 0], 0.75 * x[:, 0, 0] + 0.25 * x[:, 1, 0], rtol=1e-6)
        logits, labels = R.rand(2, 5, 3), np.array([[0, 1, 2], [4, 3, 2]])
        got = K.sparse_categorical_crossentropy(tf.constant(labels), tf.constant(logits), True, axis=1).eval()
        rows = logits.transpose(0, 2, 1)
        want = np.log(np.exp(rows).sum(-1)) - np.take_along_axis(rows, labels[..., None], -1)[..., 0]
        np.testing.assert_allclose(got, want, rtol=1e-6)
        ragged = K.placeholder([None, None, 2], dtype="int32", ragged=True)
        assert isinstance(ragged, tf.RaggedTensor) and ragged.shape.as_list()[-1] == 2
        near = tf.keras.losses.cosine_similarity(tf.constant(x), tf.constant(x), axis=1).eval()
        np.testing.assert_allclose(near, np.ones((2, 4)), rtol=1e-6)
    assert tf.keras.utils.to_categorical([1], 2, dtype="int32").dtype == np.int32
    assert tf.keras.initializers.glorot_normal(dtype=tf.float64).dtype == tf.float64


@pytest.mark.parametrize("unroll", [False, True])
def test_loops_of_keras_by_time(unroll):
    x = R.rand(2, 4, 3)
    mask = np.array([[1, 1, 0, 1], [1, 0, 0, 0]], bool)
    with tf.Graph().as_default(), tf.Session() as session:

        def step(inputs, states):
            return inputs + states[0], [states[0] + 1.0]

        def run(time_major, zero):
            given = tf.constant(x.transpose(1, 0, 2) if time_major else x)
            flags = tf.constant(mask.T if time_major else mask)
            made = tf.keras.backend.rnn(
                step, given, [tf.zeros([2, 3], tf.float64)], mask=flags, unroll=unroll, time_major=time_major, zero_output_for_mask=zero
            )
            last, outputs, states = session.run([made[0], made[1], made[2]])
            return last, outputs.transpose(1, 0, 2) if time_major else outputs, states[0]

        for major in (False, True):
            _, outputs, state = run(major, True)
            np.testing.assert_array_equal(outputs[~mask], 0)
            np.testing.assert_allclose(outputs[0, 3], x[0, 3] + 2)
            np.testing.assert_array_equal(state[:, 0], [3, 1])
            assert run(major, False)[1][1, 3].tolist() == (x[1, 0]).tolist()


def test_callbacks_of_later_releases(tmp_path):
    x = np.arange(24.0).reshape(12, 2)
    model = tf.keras.models.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    C = tf.keras.callbacks
    model.fit(x, x[:, :1], batch_size=3, epochs=2, verbose=0, callbacks=[C.ModelCheckpoint(str(tmp_path / "w{epoch}"), save_weights_only=True, save_freq=6)])
    assert (tmp_path / "w1.index").exists() and (tmp_path / "w2.index").exists()
    with pytest.raises(ValueError, match="save_freq"):
        C.ModelCheckpoint("p", save_freq="batch")
    logger = C.BaseLogger(stateful_metrics=["b"])
    logger.set_params({"metrics": ["a", "b"]})
    logger.on_epoch_begin(0)
    logger.on_batch_end(0, {"size": 1, "a": 3.0, "b": 5.0})
    logger.on_batch_end(1, {"size": 3, "a": 7.0, "b": 6.0})
    logs = {}
    logger.on_epoch_end(0, logs)
    assert logs == {"a": 6.0, "b": 6.0}
    cloned = tf.keras.models.clone_model(model, clone_function=lambda _: tf.keras.layers.Dense(1, use_bias=False, input_shape=(2,)))
    assert len(cloned.get_weights()) == 1


def test_checkpoint_states(tmp_path):
    folder = str(tmp_path)
    state = tf.train.generate_checkpoint_state_proto(folder, folder + "/b", [folder + "/a", folder + "/b"], [1.0, 2.0], 0.5)
    assert list(state.all_model_checkpoint_timestamps) == [1.0, 2.0] and state.last_preserved_timestamp == 0.5
    tf.train.update_checkpoint_state(folder, folder + "/b", [folder + "/a", folder + "/b"], None, [1.0, 2.0], 0.5)
    assert list(tf.train.get_checkpoint_state(folder).all_model_checkpoint_timestamps) == [1.0, 2.0]
    paths = [folder + "/a"]
    state = tf.train.generate_checkpoint_state_proto(folder, folder + "/b", paths)
    assert list(state.all_model_checkpoint_paths) == paths == [folder + "/a", folder + "/b"]  # TensorFlow adds to the list that it is given
    with pytest.raises(ValueError, match="timestamps"):
        tf.train.generate_checkpoint_state_proto(folder, folder + "/b", [folder + "/b"], [1.0, 2.0])


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match="save_debug_info"):
        tf.train.export_meta_graph(save_debug_info=True)
    with pytest.raises(NotImplementedError, match="checkpoint_format"):
        tf.keras.estimator.model_to_estimator(tf.keras.models.Sequential(), checkpoint_format="checkpoint")
    with pytest.raises(ValueError, match="synchronization"):
        tf.Variable(1.0, synchronization="auto")
    with tf.Graph().as_default():
        tf.Variable(1.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
        assert tf.trainable_variables() == []


# A place for each parameter, as in TensorFlow 1.15.
PLACES = {
    "reduce_sum": "input_tensor axis keepdims name reduction_indices keep_dims",
    "count_nonzero": "input_tensor axis keepdims dtype name reduction_indices keep_dims input",
    "norm": "tensor ord axis keepdims name keep_dims",
    "gather": "params indices validate_indices name axis batch_dims",
    "string_split": "source sep skip_empty delimiter result_type name",
    "regex_replace": "input pattern rewrite replace_global name",
    "space_to_depth": "input block_size name data_format",
    "random.categorical": "logits num_samples dtype seed name",
    "random.stateless_uniform": "shape seed minval maxval dtype name",
    "nn.conv1d": "value filters stride padding use_cudnn_on_gpu data_format name input dilations",
    "nn.conv2d_backprop_filter": "input filter_sizes out_backprop strides padding use_cudnn_on_gpu data_format dilations name",
    "nn.max_pool_with_argmax": "input ksize strides padding data_format Targmax name output_dtype include_batch_in_index",
    "nn.softmax_cross_entropy_with_logits_v2": "labels logits axis name dim",
    "summary.tensor_summary": "name tensor summary_description collections summary_metadata family display_name",
    "image.adjust_jpeg_quality": "image jpeg_quality name",
    "numpy_function": "func inp Tout name",
    "data.TextLineDataset": "filenames compression_type buffer_size num_parallel_reads",
    "keras.layers.Lambda": "function output_shape mask arguments",
    "keras.backend.rnn": "step_function inputs initial_states go_backwards mask constants unroll input_length time_major zero_output_for_mask",
    "lookup.experimental.DenseHashTable": "key_dtype value_dtype default_value empty_key deleted_key initial_num_buckets name checkpoint",
    "estimator.PoissonRegressionHead": "label_dimension weight_column loss_reduction compute_full_loss name",
}


@pytest.mark.parametrize("name", sorted(PLACES))
def test_places(name):
    found = tf
    for part in name.split("."):
        found = getattr(found, part)
    want = PLACES[name].split()
    assert list(inspect.signature(found).parameters)[: len(want)] == want


@pytest.mark.parametrize("use_resource", [False, True])
def test_rows_of_variables(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        start = np.array([[1.0, 2], [3, 4], [5, 6]], np.float32)
        rows, at = np.array([[2.0, 8], [4, 1]], np.float32), [2, 0]
        for method, want in [
            ("scatter_add", start[at] + rows),
            ("scatter_sub", start[at] - rows),
            ("scatter_mul", start[at] * rows),
            ("scatter_div", start[at] / rows),
            ("scatter_max", np.maximum(start[at], rows)),
            ("scatter_min", np.minimum(start[at], rows)),
            ("scatter_update", rows),
        ]:
            v = tf.Variable(start, use_resource=use_resource)
            session.run(v.initializer)
            made = session.run(getattr(v, method)(tf.IndexedSlices(rows, at)))
            full = start.copy()
            full[at] = want
            np.testing.assert_array_equal(made, full)
            with pytest.raises(TypeError, match="IndexedSlices"):
                getattr(v, method)(rows)
        v = tf.Variable(start, use_resource=use_resource)
        session.run(v.initializer)
        assert session.run(v.scatter_nd_add([[1, 1], [0, 0]], [10.0, 20.0])).tolist() == [[21, 2], [3, 14], [5, 6]]
        assert session.run(v.scatter_nd_sub([[1, 1]], [10.0])).tolist() == [[21, 2], [3, 4], [5, 6]]
        assert session.run(v.scatter_nd_update([[2]], [[0.0, 9.0]])).tolist() == [[21, 2], [3, 4], [0, 9]]
        assert session.run(v.gather_nd([[2, 1], [0, 0]])).tolist() == [9, 21]
        assert session.run(v.batch_scatter_update(tf.IndexedSlices([[7.0], [8.0], [9.0]], [[0], [1], [0]]))).tolist() == [[7, 2], [3, 8], [9, 9]]
        assert v.synchronization is tf.VariableSynchronization.AUTO and v.aggregation is tf.VariableAggregation.NONE


def stepped(optimizer, steps=3):
    """A parameter after some steps down the gradients 1, 2, 3 ..."""
    with tf.Graph().as_default(), tf.Session() as session:
        p, g = tf.Variable([1.0, 2.0]), tf.placeholder(tf.float32, [2])
        train = optimizer.apply_gradients([(g, p)])
        session.run(tf.global_variables_initializer())
        for i in range(steps):
            session.run(train, {g: [i + 1.0, -i - 1.0]})
        return session.run(p)


def test_optimizers_of_keras():
    O = tf.keras.optimizers
    p, mean, middle, kept = np.array([1.0, 2.0]), 0.0, 0.0, 0.0
    for i in range(3):
        g = np.array([i + 1.0, -i - 1.0])
        mean, middle = 0.5 * mean + 0.5 * g * g, 0.5 * middle + 0.5 * g
        kept = 0.9 * kept + 0.1 * g / np.sqrt(mean - middle**2 + 1e-7)
        p = p - kept
    np.testing.assert_allclose(stepped(O.RMSprop(0.1, 0.5, 0.9, centered=True)), p, rtol=1e-4)
    p, total = np.array([1.0, 2.0]), 0.5
    for i in range(3):
        g = np.array([i + 1.0, -i - 1.0])
        total = total + g * g
        p = p - 0.1 * g / (np.sqrt(total) + 1e-7)
    np.testing.assert_allclose(stepped(O.Adagrad(learning_rate=0.1, initial_accumulator_value=0.5)), p, rtol=1e-5)
    p, v = np.array([1.0, 2.0]), 0.0
    for i in range(3):
        g = np.array([i + 1.0, -i - 1.0])
        v = 0.9 * v - 0.1 * g
        p = p + 0.9 * v - 0.1 * g
    np.testing.assert_allclose(stepped(O.SGD(0.1, 0.9, True)), p, rtol=1e-5)
    np.testing.assert_allclose(stepped(O.SGD(0.1, 0.9, 0.0, True)), p, rtol=1e-5)  # lr, momentum, decay, nesterov: as up to 1.12
    np.testing.assert_allclose(stepped(O.SGD(lr=0.1, momentum=0.9, nesterov=True)), p, rtol=1e-5)
    assert O.Adam(0.1, 0.9, 0.99, 1e-7, True, "mine").amsgrad and O.Adam(0.1, 0.9, 0.99, 1e-7, 0.5).get_config()["decay"] == 0.5


def test_functions_that_attributes_are():
    @Defun(tf.float32)
    def plus_one(x):
        return x + 1

    @Defun(tf.float32)
    def twice(x):
        return 2 * x

    x = tf.constant([2.0])
    calls = [
        tf.raw_ops.PartitionedCall(args=[x], Tout=[tf.float32], f=plus_one),
        tf.raw_ops.PartitionedCall(args=[x], Tout=[tf.float32], f=plus_one.name),
        tf.raw_ops.RemoteCall(target="/cpu:0", args=[x], Tout=[tf.float32], f=plus_one),
        tf.raw_ops.If(cond=False, input=[x], Tout=[tf.float32], then_branch=plus_one, else_branch=twice),
        tf.raw_ops.Case(branch_index=1, input=[x], Tout=[tf.float32], branches=[plus_one, twice]),
    ]
    assert [found[0].tolist() for found in value(calls)] == [[3], [3], [3], [4], [4]]
    with pytest.raises(TypeError, match="Expected a string for argument 'f'"):
        tf.raw_ops.PartitionedCall(args=[x], Tout=[tf.float32], f=3)
