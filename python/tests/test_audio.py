# SPDX-License-Identifier: Apache-2.0
"""Sounds: files, and what frequencies they have."""

import numpy as np
import pytest

import millrace as tf


def run(fetch, feed_dict=None):
    with tf.Session() as session:
        return session.run(fetch, feed_dict)


def test_files():
    samples = np.linspace(-1, 0.99, 20, dtype=np.float32).reshape(10, 2)
    data = run(tf.audio.encode_wav(samples, 8000))
    contents = tf.placeholder(tf.string, [])
    sound, more = tf.audio.decode_wav(contents), tf.audio.decode_wav(contents, desired_channels=3, desired_samples=12)
    assert more.audio.get_shape().as_list() == [12, 3]
    with tf.Session() as session:
        got, rate = session.run(list(sound), {contents: data})
        assert rate == 8000 and np.abs(got - samples).max() < 2**-15
        padded = session.run(more.audio, {contents: data})
        assert padded[:10, 2].tolist() == got[:, 1].tolist() and not padded[10:].any()
        for cut in range(len(data)):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(sound.audio, {contents: data[:cut]})
        for at in range(44):  # no byte of the header makes it read what is not there
            broken = bytearray(data)
            for value in (0, 1, 128, 255):
                broken[at] = value
                try:
                    session.run(sound.audio, {contents: bytes(broken)})
                except tf.errors.InvalidArgumentError:
                    pass
    for wrong in (np.zeros(3, np.float32), np.zeros([3, 0], np.float32)):
        with tf.Graph().as_default(), pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            run(tf.audio.encode_wav(wrong, 8000))


def test_spectrograms():
    time = np.arange(400) / 8000
    wave = np.stack([np.sin(2 * np.pi * 1000 * time), np.zeros(400)], 1).astype(np.float32)
    spectrogram = tf.audio.audio_spectrogram(wave, window_size=128, stride=100, magnitude_squared=True)
    assert spectrogram.get_shape().as_list() == [2, 3, 65]
    got = run(spectrogram)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(128) / 128)
    expected = [np.abs(np.fft.rfft(wave[i : i + 128, 0] * window)) ** 2 for i in (0, 100, 200)]
    assert np.allclose(got[0], expected, rtol=1e-4, atol=1e-4) and got[0, 0].argmax() == 16 and not got[1].any()
    cepstrum = run(tf.audio.mfcc(got, 8000, dct_coefficient_count=5))
    assert cepstrum.shape == (2, 3, 5) and np.isfinite(cepstrum).all()
    for options in (
        dict(upper_frequency_limit=float("inf")),
        dict(lower_frequency_limit=-1.0),
        dict(dct_coefficient_count=50),
        dict(filterbank_channel_count=0),
    ):
        with tf.Graph().as_default(), pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            run(tf.audio.mfcc(got, 8000, **options))
    with tf.Graph().as_default(), pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        run(tf.audio.audio_spectrogram(wave, window_size=2**40, stride=1))


def test_the_old_path():
    assert tf.contrib.framework.audio_ops.decode_wav is tf.audio.decode_wav
