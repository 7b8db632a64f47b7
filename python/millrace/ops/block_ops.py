# SPDX-License-Identifier: Apache-2.0
"""Blocks of images as batches or channels, patches of them; segments of rows; under all names that their arguments have had."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import gen_ops
from millrace.ops.dialects import given

__all__ = [
    "batch_to_space",
    "depth_to_space",
    "ensure_shape",
    "extract_image_patches",
    "space_to_batch",
    "space_to_depth",
    "sparse_segment_mean",
    "sparse_segment_sqrt_n",
    "sparse_segment_sum",
    "string_to_hash_bucket",
    "where_v2",
]


def space_to_batch(input: Any, paddings: Any, block_size: Optional[int] = None, name: Optional[str] = None, block_shape: Optional[int] = None) -> Tensor:
    """The cells of blocks of images as images of their own: [b, h, w, c] -> [b size^2, h' / size, w' / size, c], padded to h' and w'."""
    return gen_ops.space_to_batch(input, paddings, given("space_to_batch", block_size=block_size, block_shape=block_shape), name=name)


def batch_to_space(input: Any, crops: Any, block_size: Optional[int] = None, name: Optional[str] = None, block_shape: Optional[int] = None) -> Tensor:
    """The inverse of space_to_batch: images of a batch as the cells of blocks, of which `crops` are cut off."""
    return gen_ops.batch_to_space(input, crops, given("batch_to_space", block_size=block_size, block_shape=block_shape), name=name)


def batch_to_space_v2(input: Any, block_shape: Any, crops: Any, name: Optional[str] = None) -> Tensor:
    """batch_to_space_nd, where one number is the size of both sides of a block of images."""
    if isinstance(block_shape, int):
        block_shape = convert_to_tensor([block_shape, block_shape], dtypes.int64)
    return gen_ops.batch_to_space_nd(input, block_shape, crops, name=name)


def space_to_depth(input: Any, block_size: int, name: Optional[str] = None, data_format: str = "NHWC") -> Tensor:
    """The cells of blocks of images as channels: [b, h, w, c] -> [b, h / size, w / size, c size^2]."""
    return gen_ops.space_to_depth(input, block_size, data_format=data_format, name=name)


def depth_to_space(input: Any, block_size: int, name: Optional[str] = None, data_format: str = "NHWC") -> Tensor:
    """The inverse of space_to_depth."""
    return gen_ops.depth_to_space(input, block_size, data_format=data_format, name=name)


def extract_image_patches(
    images: Any, ksizes: Any = None, strides: Any = None, rates: Any = None, padding: Any = None, name: Optional[str] = None, sizes: Any = None
) -> Tensor:
    """Windows of images, each as the channels of one place."""
    return gen_ops.extract_image_patches(images, given("extract_image_patches", ksizes=ksizes, sizes=sizes), strides, rates, padding, name=name)


def ensure_shape(x: Any, shape: Any, name: Optional[str] = None) -> Tensor:
    """x, whose shape is from here on known to fit another; an error in the step where it does not."""
    return gen_ops.ensure_shape(x, shape, name=name)


def _segments(op: Any, counted: Any, what: str) -> Any:
    def function(data: Any, indices: Any, segment_ids: Any, name: Optional[str] = None, num_segments: Any = None) -> Tensor:
        if num_segments is None:
            return op(data, indices, segment_ids, name=name)
        return counted(data, indices, segment_ids, num_segments, name=name)

    function.__name__ = function.__qualname__ = op.__name__
    function.__doc__ = "%s of the rows data[indices] of each segment; as many as the last id says, or num_segments, of which those without rows are 0." % what
    return function


sparse_segment_sum = _segments(gen_ops.sparse_segment_sum, gen_ops.sparse_segment_sum_with_num_segments, "The sums")
sparse_segment_mean = _segments(gen_ops.sparse_segment_mean, gen_ops.sparse_segment_mean_with_num_segments, "The means")
sparse_segment_sqrt_n = _segments(
    gen_ops.sparse_segment_sqrt_n, gen_ops.sparse_segment_sqrt_n_with_num_segments, "The sums, by the square root of their number,"
)


def string_to_hash_bucket(string_tensor: Any = None, num_buckets: Optional[int] = None, name: Optional[str] = None, input: Any = None) -> Tensor:
    """The number below num_buckets that each string is hashed to."""
    if num_buckets is None:
        raise at_user_line(TypeError("string_to_hash_bucket() missing the argument 'num_buckets'"))
    strings = given("string_to_hash_bucket", string_tensor=string_tensor, input=input)
    return gen_ops.string_to_hash_bucket(convert_to_tensor(strings, dtypes.string), num_buckets, name=name)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: Optional[str] = None) -> Tensor:
    """x where the condition is true and y elsewhere, all three broadcast; without them where the condition is true."""
    if (x is None) != (y is None):
        raise at_user_line(ValueError("x and y must both be non-None or both be None."))
    return gen_ops.where(condition, name=name) if x is None else gen_ops.select_v2(condition, x, y, name=name)
