# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.signal: tf.signal under its older name."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops
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


def frames(signal: Any, frame_length: Any, frame_step: Any, name: Optional[str] = None) -> Tensor:
    """Frames of signals [..., samples], each frame_step after the one before, as many as it takes to have all samples in one; zeros fill up the last.
    [..., frames, frame_length]. tf.signal.frame has one for each step within the signal instead."""
    with name_scope(name, "frames", [signal, frame_length, frame_step]):
        given = convert_to_tensor(signal)
        beyond = array_ops.shape(given)[-1] - frame_length
        count = gen_ops.maximum(1 - gen_ops.floor_div(-beyond, frame_step), 0)
        return frame(given, frame_length, frame_step, pad_end=True)[..., :count, :]
