# SPDX-License-Identifier: Apache-2.0
"""The kinds of summaries of tf.compat.v2.summary: tensors with a note which of TensorBoard's plugins shows them. Each gives a tensor that says whether
it was written; the step is that of set_step() unless it is given."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, control_flow_ops, functional_ops, gen_ops, image_dtypes, math_ops
from millrace.ops.summary_writers import summary_scope, write
from millrace.protos import definitions

_WAV = b"\x10\x0b"  # the encoding, which the plugin of sounds wants to know


def _metadata(plugin: str, description: Optional[str], content: bytes = b"") -> Any:
    data = definitions.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return definitions.SummaryMetadata(plugin_data=data, summary_description=description or "")


def _with_rank(data: Any, rank: int, what: str) -> Tensor:
    tensor = convert_to_tensor(data)
    if not tensor.shape.is_compatible_with([None] * rank):
        raise at_user_line(ValueError("%s must have rank %d, got shape %s" % (what, rank, tensor.shape)))
    return tensor


def scalar(name: str, data: Any, step: Any = None, description: Optional[str] = None) -> Tensor:
    """Writes a number, as float32."""
    with summary_scope(name, "scalar_summary") as (tag, _scope):
        return write(tag, gen_ops.cast(_with_rank(data, 0, "a scalar"), dtypes.float32), step, _metadata("scalars", description))


def text(name: str, data: Any, step: Any = None, description: Optional[str] = None) -> Tensor:
    """Writes strings, a tensor of any shape."""
    with summary_scope(name, "text_summary") as (tag, _scope):
        tensor = convert_to_tensor(data)
        if tensor.dtype.base_dtype != dtypes.string:
            raise at_user_line(ValueError("text must be a tensor of strings, got %s" % tensor.dtype.name))
        return write(tag, tensor, step, _metadata("text", description))


def histogram(name: str, data: Any, step: Any = None, buckets: int = 30, description: Optional[str] = None) -> Tensor:
    """Writes how numbers are distributed: rows of left end, right end and count. Equal numbers have one bucket of width 1."""
    with summary_scope(name, "histogram_summary") as (tag, _scope):
        values = gen_ops.reshape(gen_ops.cast(convert_to_tensor(data), dtypes.float64), [-1])

        def nothing() -> Tensor:
            return array_ops.zeros([0, 3], dtypes.float64)

        def counted() -> Tensor:
            low, high = math_ops.reduce_min(values), math_ops.reduce_max(values)

            def one() -> Tensor:
                return gen_ops.pack([[high - 0.5, high + 0.5, gen_ops.cast(gen_ops.size(values), dtypes.float64)]])

            def several() -> Tensor:
                places = gen_ops.cast(gen_ops.floor((values - low) / ((high - low) / buckets)), dtypes.int32)
                counts = gen_ops.bincount(gen_ops.minimum(places, buckets - 1), buckets, gen_ops.ones_like(values))
                edges = gen_ops.lin_space(low, high, buckets + 1)
                return gen_ops.pack([edges[:-1], edges[1:], counts], axis=1)

            return control_flow_ops.cond(gen_ops.equal(low, high), one, several)

        rows = control_flow_ops.cond(gen_ops.equal(gen_ops.size(values), 0), nothing, counted)
        return write(tag, rows, step, _metadata("histograms", description))


def _each(encode: Callable[[Any], Tensor], data: Tensor, most: int) -> Tensor:
    """The first parts, at most so many, as strings."""
    first = data[:most]
    some = gen_ops.greater(gen_ops.shape(first)[0], 0)
    return control_flow_ops.cond(some, lambda: functional_ops.map_fn(encode, first, dtype=dtypes.string), lambda: array_ops.zeros([0], dtypes.string))


def image(name: str, data: Any, step: Any = None, max_outputs: int = 3, description: Optional[str] = None) -> Tensor:
    """Writes images [batch, height, width, channels], as PNG: of integers, or of floats in [0, 1)."""
    with summary_scope(name, "image_summary") as (tag, _scope):
        pixels = image_dtypes.convert_image_dtype(_with_rank(data, 4, "images"), dtypes.uint8, saturate=True)
        sizes = gen_ops.as_string(array_ops.stack([gen_ops.shape(pixels)[2], gen_ops.shape(pixels)[1]]))
        encoded = gen_ops.concat_v2([sizes, _each(gen_ops.encode_png, pixels, max_outputs)], 0)
        return write(tag, encoded, step, _metadata("images", description))


def audio(
    name: str, data: Any, sample_rate: Any, step: Any = None, max_outputs: int = 3, encoding: Optional[str] = None, description: Optional[str] = None
) -> Tensor:
    """Writes sounds [batch, frames, channels] between -1 and 1, as WAV files."""
    if encoding not in (None, "wav"):
        raise at_user_line(ValueError("Unknown encoding: %r" % encoding))
    with summary_scope(name, "audio_summary") as (tag, _scope):
        sounds = _with_rank(data, 3, "sounds")
        encoded = _each(lambda sound: gen_ops.encode_wav(sound, sample_rate), sounds, max_outputs)
        labelled = gen_ops.pack([encoded, array_ops.zeros_like(encoded)], axis=1)
        return write(tag, labelled, step, _metadata("audio", description, _WAV))
