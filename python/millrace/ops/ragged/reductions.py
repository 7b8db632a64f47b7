# SPDX-License-Identifier: Apache-2.0
"""Reductions of ragged tensors, and sums and their like of segments, under the names of TensorFlow's ragged_math_ops."""

from __future__ import annotations

from millrace.ops import math_ops
from millrace.ops.ragged import handlers

reduce_all = handlers.find("reduce_all", math_ops.reduce_all)
reduce_any = handlers.find("reduce_any", math_ops.reduce_any)
reduce_max = handlers.find("reduce_max", math_ops.reduce_max)
reduce_mean = handlers.find("reduce_mean", math_ops.reduce_mean)
reduce_min = handlers.find("reduce_min", math_ops.reduce_min)
reduce_prod = handlers.find("reduce_prod", math_ops.reduce_prod)
reduce_sum = handlers.find("reduce_sum", math_ops.reduce_sum)
segment_max = handlers.SEGMENTS["unsorted_segment_max"]
segment_mean = handlers.SEGMENTS["unsorted_segment_mean"]
segment_min = handlers.SEGMENTS["unsorted_segment_min"]
segment_prod = handlers.SEGMENTS["unsorted_segment_prod"]
segment_sqrt_n = handlers.SEGMENTS["unsorted_segment_sqrt_n"]
segment_sum = handlers.SEGMENTS["unsorted_segment_sum"]
