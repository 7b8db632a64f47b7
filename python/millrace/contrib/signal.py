# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.signal: tf.signal under its older name."""

from millrace.signal import (  # noqa: F401
    frame,
    hamming_window,
    hann_window,
    inverse_stft,
    inverse_stft_window_fn,
    linear_to_mel_weight_matrix,
    mfccs_from_log_mel_spectrograms,
    overlap_and_add,
    stft,
)
