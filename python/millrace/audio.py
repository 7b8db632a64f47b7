# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.audio, and the audio_ops of tf.contrib.framework: WAV files and spectra."""

from millrace.ops.gen_ops import audio_spectrogram, decode_wav, encode_wav, mfcc  # noqa: F401
