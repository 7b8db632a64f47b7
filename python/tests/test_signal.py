# SPDX-License-Identifier: Apache-2.0
"""tf.signal beside NumPy, and beside sums written out."""

import numpy as np
import pytest

import millrace as tf

RNG = np.random.RandomState(7)


def run(*tensors, **kwargs):
    with tf.Session() as sess:
        got = sess.run(tensors, **kwargs)
    return got[0] if len(tensors) == 1 else got


def near(got, want, tolerance=1e-5):
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, np.abs(want).max() if np.size(want) else 0))


@pytest.mark.parametrize("axes,shape", [(1, (3, 7)), (1, (2, 8)), (2, (2, 5, 6)), (3, (4, 3, 5))])
@pytest.mark.parametrize("fed", [False, True])
def test_real_transforms_take_lengths_and_pad(axes, shape, fed):
    x = RNG.randn(*shape).astype(np.float32)
    forward, back = [getattr(tf.signal, n + ("", "2d", "3d")[axes - 1]) for n in ("rfft", "irfft")]
    t = tf.placeholder(tf.float32) if fed else tf.constant(x)
    if fed:
        t = tf.placeholder(tf.float32, [None] * len(shape))
    feeds = {t: x} if fed else {}
    last = tuple(range(-axes, 0))
    near(run(forward(t), feed_dict=feeds), np.fft.rfftn(x, axes=last))
    lengths = [n + i - 1 for i, n in enumerate(shape[-axes:])]
    near(run(forward(t, lengths), feed_dict=feeds), np.fft.rfftn(x, lengths, axes=last))
    near(run(back(forward(t), shape[-axes:]), feed_dict=feeds), x)
    near(run(back(forward(t), lengths), feed_dict=feeds), np.fft.irfftn(np.fft.rfftn(x, axes=last), lengths, axes=last))
    even = list(shape[-axes:-1]) + [2 * (shape[-1] // 2)]
    near(run(back(forward(t)), feed_dict=feeds), np.fft.irfftn(np.fft.rfftn(x, axes=last), even, axes=last))
    assert tf.spectral.rfft is tf.signal.rfft and tf.fft is tf.spectral.fft


def test_shift():
    x = np.arange(35.0).reshape(5, 7).astype(np.float32)
    near(run(tf.signal.fftshift(x)), np.fft.fftshift(x))
    near(run(tf.signal.ifftshift(x, axes=[1])), np.fft.ifftshift(x, axes=1))


def cosines(x, kind):
    n = x.shape[-1]
    j, k = np.arange(n)[None, :], np.arange(n)[:, None]
    if kind == 1:
        weight = np.where((j == 0) | (j == n - 1), 1.0, 2.0)
        return x @ (weight * np.cos(np.pi * j * k / (n - 1))).T
    if kind == 2:
        return x @ (2 * np.cos(np.pi * k * (2 * j + 1) / (2 * n))).T
    if kind == 4:
        return x @ (2 * np.cos(np.pi * (2 * j + 1) * (2 * k + 1) / (4 * n))).T
    return x @ (np.where(j == 0, 1.0, 2.0) * np.cos(np.pi * j * (2 * k + 1) / (2 * n))).T


@pytest.mark.parametrize("kind,shape", [(1, (2, 5)), (2, (3, 6)), (3, (2, 2, 7)), (2, (1,)), (3, (8,)), (4, (2, 5)), (4, (1,))])
def test_cosine_transforms(kind, shape):
    x = RNG.randn(*shape)
    near(run(tf.signal.dct(x.astype(np.float32), kind)), cosines(x, kind), 1e-4)
    n = shape[-1]
    undone = run(tf.signal.idct(tf.signal.dct(x.astype(np.float32), kind), kind))
    near(undone, x * (2 * (n - 1) if kind == 1 else 2 * n), 1e-4)
    if kind != 1:
        near(run(tf.signal.idct(tf.signal.dct(x.astype(np.float32), kind, norm="ortho"), kind, norm="ortho")), x, 1e-4)
        first = np.where(np.arange(n) == 0, np.sqrt(0.25 / n), np.sqrt(0.5 / n))
        if kind == 2:
            near(run(tf.signal.dct(x.astype(np.float32), kind, norm="ortho")), cosines(x, 2) * first, 1e-4)
    near(run(tf.signal.dct(x.astype(np.float32), kind, n=n + 2)), cosines(np.concatenate([x, np.zeros((*shape[:-1], 2))], -1), kind), 1e-4)
    with pytest.raises(ValueError):
        tf.signal.dct(x, 5)


def test_windows():
    for n in (1, 2, 5, 8):
        near(run(tf.signal.hann_window(n, periodic=False)), np.hanning(n))
        near(run(tf.contrib.signal.hamming_window(n, periodic=False)), np.hamming(n) if n > 1 else [1.0])
    near(run(tf.signal.hann_window(8)), np.hanning(9)[:8])
    near(run(tf.signal.hann_window(7)), np.hanning(7))


@pytest.mark.parametrize("pad_end", [False, True])
def test_frames(pad_end):
    x = RNG.randn(2, 11, 3).astype(np.float32)
    whole = np.concatenate([x, np.full((2, 9, 3), 5, np.float32)], 1)
    count = 4 if pad_end else 3
    want = np.stack([whole[:, 3 * i : 3 * i + 4] for i in range(count)], 1)
    got = tf.signal.frame(x, 4, 3, pad_end=pad_end, pad_value=5, axis=1)
    assert got.get_shape().as_list() == [2, count, 4, 3]
    near(run(got), want)
    t = tf.placeholder(tf.float32, [2, None, 3])
    near(run(tf.signal.frame(t, 4, 3, pad_end=pad_end, pad_value=5, axis=-2), feed_dict={t: x}), want)
    assert run(tf.signal.frame(x[:, :2], 4, 3, axis=1)).shape == (2, 0, 4, 3)


@pytest.mark.parametrize("step", [1, 2, 3, 4, 6])
def test_overlap_and_add(step):
    x = RNG.randn(2, 5, 4).astype(np.float32)
    want = np.zeros((2, 4 + 4 * step), np.float32)
    for i in range(5):
        want[:, i * step : i * step + 4] += x[:, i]
    got = tf.signal.overlap_and_add(x, step)
    assert got.get_shape().as_list() == [2, 4 + 4 * step]
    near(run(got), want)


@pytest.mark.parametrize("length,step,size", [(8, 4, None), (9, 3, 16), (8, 2, 8), (6, 4, 9)])
def test_short_time_spectra_and_back(length, step, size):
    x = RNG.randn(3, 60).astype(np.float32)
    window = np.hanning(length + 1)[:-1] if length % 2 == 0 else np.hanning(length)
    spectra = tf.signal.stft(x, length, step, size)
    count, real = 1 + (60 - length) // step, size or 1 << (length - 1).bit_length()
    assert spectra.get_shape().as_list() == [3, count, real // 2 + 1]
    want = np.stack([np.fft.rfft(x[:, i * step : i * step + length] * window, real) for i in range(count)], 1)
    near(run(spectra), want)
    if (length, step) in ((8, 4), (8, 2), (9, 3)):
        back = tf.signal.inverse_stft(spectra, length, step, size, tf.signal.inverse_stft_window_fn(step))
        got = run(back)
        near(got[:, length:-length], x[:, length : got.shape[1] - length], 1e-4)
    loss = tf.reduce_sum(tf.square(tf.abs(spectra)))
    assert tf.gradients(loss, spectra)[0] is not None


def test_gradient_of_stft():
    x = RNG.randn(20)
    t = tf.placeholder(tf.float32, [20])
    loss = tf.reduce_sum(tf.square(tf.abs(tf.signal.stft(t, 6, 2, 8))))
    (slope,) = tf.gradients(loss, [t])
    with tf.Session() as sess:
        got = sess.run(slope, {t: x})
        for i in (0, 7, 19):
            d = np.zeros(20)
            d[i] = 1e-2
            difference = (sess.run(loss, {t: x + d}) - sess.run(loss, {t: x - d})) / 2e-2
            assert abs(difference - got[i]) < 2e-2 * max(1.0, abs(got[i]))


def test_mel_scale():
    weights = run(tf.signal.linear_to_mel_weight_matrix(10, 65, 8000, 100.0, 3500.0))
    assert weights.shape == (65, 10) and weights.min() == 0 and weights.max() <= 1 and not weights[0].any()
    mel = 1127 * np.log1p(np.linspace(0, 4000, 65) / 700)
    edges = np.linspace(1127 * np.log1p(100 / 700), 1127 * np.log1p(3500 / 700), 12)
    for band in range(10):
        inside = (mel > edges[band]) & (mel < edges[band + 2])
        assert (weights[1:, band] > 0).tolist() == inside[1:].tolist()
        near(weights[inside, band], np.minimum((mel[inside] - edges[band]), (edges[band + 2] - mel[inside])) / (edges[1] - edges[0]))
    x = RNG.randn(2, 3, 10).astype(np.float32)
    near(run(tf.signal.mfccs_from_log_mel_spectrograms(x)), cosines(x, 2) / np.sqrt(20))
    with pytest.raises(ValueError):
        tf.signal.linear_to_mel_weight_matrix(sample_rate=100)


def test_kernel_labels_are_attributes():
    with tf.Graph().as_default() as graph:
        with graph._kernel_label_map({"Neg": "fast"}):
            labelled = tf.negative(1.0)
        assert labelled.op.get_attr("_kernel") == b"fast" and not tf.negative(1.0).op.node_def.attr["_kernel"].s


# ---- double stays double ----

PAIR = RNG.randn(2, 4, 6) + 1j * RNG.randn(2, 4, 6)


def test_arrays_say_the_type_of_a_transform():
    for name in ("fft", "ifft", "fft2d", "ifft2d", "fft3d", "ifft3d"):
        function = getattr(tf.signal, name)
        wanted = np.fft.fftn if name[0] == "f" else np.fft.ifftn
        axes = {"t": (-1,), "2d": (-2, -1), "3d": (-3, -2, -1)}[name[-2:] if name[-1] == "d" else "t"]
        assert function(PAIR.astype(np.complex64)).dtype == tf.complex64
        assert function([[[1j, 2.0]]]).dtype == tf.complex64
        near(run(function(PAIR)), wanted(PAIR, axes=axes), 1e-13)
    for function in (tf.real, tf.imag, tf.abs, tf.angle):
        assert function(PAIR).dtype == tf.float64
    assert tf.raw_ops.Conj(input=PAIR).dtype == tf.complex128
    assert tf.fill(np.array([2**33]), 1.0).get_shape().as_list() == [2**33]  # an index type that an array says


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_real_transforms_of_double(axes):
    last, suffix = tuple(range(-axes, 0)), ("", "2d", "3d")[axes - 1]
    forward, back = [getattr(tf.signal, n + suffix) for n in ("rfft", "irfft")]
    x = tf.constant(PAIR.real)
    spectra = forward(x)
    assert spectra.dtype == tf.complex128
    near(run(spectra), np.fft.rfftn(PAIR.real, axes=last), 1e-13)
    lengths = [n + 1 for n in PAIR.shape[-axes:]]
    near(run(forward(x, lengths)), np.fft.rfftn(PAIR.real, lengths, axes=last), 1e-13)
    assert back(spectra).dtype == tf.float64
    near(run(back(spectra)), PAIR.real, 1e-13)
    # of arrays and lists too TensorFlow takes float32, unless it is told
    assert forward(PAIR.real).dtype == tf.complex64 and back(PAIR).dtype == tf.float32
    with pytest.raises(ValueError, match="rfft.* takes float32 or float64"):
        forward(tf.constant(np.ones((2, 2, 2), np.int32)))
    with pytest.raises(ValueError, match="irfft.* takes complex64 or complex128"):
        back(x)


def test_gradients_of_real_transforms_of_double():
    x = tf.placeholder(tf.float64, [2, 6])
    weights = RNG.randn(2, 4) + 1j * RNG.randn(2, 4)
    loss = tf.reduce_sum(tf.real(tf.signal.rfft(x) * weights)) + tf.reduce_sum(tf.signal.irfft(tf.signal.rfft(x) * weights) ** 2)
    (slope,) = tf.gradients(loss, [x])
    at = RNG.randn(2, 6)
    with tf.Session() as sess:
        got = sess.run(slope, {x: at})
        for place in ((0, 0), (1, 3), (0, 5)):
            d = np.zeros((2, 6))
            d[place] = 1e-5
            difference = (sess.run(loss, {x: at + d}) - sess.run(loss, {x: at - d})) / 2e-5
            assert abs(difference - got[place]) < 1e-7 * max(1.0, abs(got[place]))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_transforms_of_double(kind):
    x = RNG.randn(3, 7)
    made = tf.signal.dct(x, kind)
    assert made.dtype == tf.float64 and tf.signal.dct(x.tolist(), kind).dtype == tf.float32
    near(run(made), cosines(x, kind), 1e-13)
    near(run(tf.signal.idct(made, kind)), x * (12 if kind == 1 else 14), 1e-13)
    if kind > 1:
        near(run(tf.signal.idct(tf.signal.dct(x, kind, norm="ortho"), kind, norm="ortho")), x, 1e-13)


def test_short_time_spectra_of_double():
    x = RNG.randn(2, 40)
    spectra = tf.signal.stft(x, 8, 4)
    assert spectra.dtype == tf.complex128
    window = np.hanning(9)[:-1]
    near(run(spectra), np.stack([np.fft.rfft(x[:, i : i + 8] * window) for i in range(0, 36, 4)], 1), 1e-13)
    back = tf.signal.inverse_stft(spectra, 8, 4, window_fn=tf.signal.inverse_stft_window_fn(4))
    assert back.dtype == tf.float64
    near(run(back)[:, 8:-8], x[:, 8:-8], 1e-13)
    assert tf.signal.mfccs_from_log_mel_spectrograms(x).dtype == tf.float64


def test_frames_of_signals_whose_rank_the_step_tells():
    x = RNG.randn(2, 9, 3).astype(np.float32)
    hidden = tf.placeholder_with_default(x, None)
    for axis in (1, -2):
        got, wanted = run(tf.signal.frame(hidden, 4, 3, True, 1.5, axis), tf.signal.frame(x, 4, 3, True, 1.5, axis))
        np.testing.assert_array_equal(got, wanted)
    flat = tf.placeholder_with_default(x[0, :, 0], None)
    near(*run(tf.signal.stft(flat, 4, 2), tf.signal.stft(x[0, :, 0], 4, 2)))
    for wrong in (lambda: tf.signal.frame([1.0], [1], 1), lambda: tf.signal.frame([1.0], 1, [1]), lambda: tf.signal.frame([1.0], 1, 1, True, [1.0])):
        with pytest.raises(ValueError, match="must be a scalar"):
            wrong()


def test_mel_weights_of_a_number_of_bins_that_the_step_tells():
    bins = tf.placeholder(tf.int32, [])
    near(run(tf.signal.linear_to_mel_weight_matrix(10, bins), feed_dict={bins: 65}), run(tf.signal.linear_to_mel_weight_matrix(10, 65)))
    for wrong in ({"num_spectrogram_bins": 0}, {"sample_rate": tf.placeholder(tf.float32)}):
        with pytest.raises(ValueError, match="must be"):
            tf.signal.linear_to_mel_weight_matrix(**wrong)
    with pytest.raises(ValueError, match="greater than one"):
        tf.signal.dct(np.zeros(1), type=1)
