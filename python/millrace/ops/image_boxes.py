# SPDX-License-Identifier: Apache-2.0
"""Boxes [top, left, bottom, right] and windows of images."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import name_scope
from millrace.framework.graph import Tensor
from millrace.framework.random_seed import get_seed
from millrace.ops import dialects, gen_ops


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: Optional[str] = None,
    box_indices: Any = None,
) -> Tensor:
    """For each box the part of an image that is in it, resized to crop_size."""
    which = dialects.either("box_indices", box_indices, "box_ind", box_ind)
    return gen_ops.crop_and_resize(image, boxes, which, crop_size, method=method, extrapolation_value=extrapolation_value, name=name)


def draw_bounding_boxes(images: Any, boxes: Any, name: Optional[str] = None, colors: Any = None) -> Tensor:
    """Images with the outlines of their boxes drawn in."""
    if isinstance(images, np.ndarray) and images.dtype == np.float16:
        images = convert_to_tensor(images)
    if colors is None:
        return gen_ops.draw_bounding_boxes(images, boxes, name=name)
    return gen_ops.draw_bounding_boxes_v2(images, boxes, colors, name=name)


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: Optional[int] = None,
    seed2: Optional[int] = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: Optional[int] = None,
    use_image_if_no_bounding_boxes: Optional[bool] = None,
    name: Optional[str] = None,
) -> Any:
    """(begin, size, bboxes) of a random window that covers a part of one of the boxes."""
    given = {
        "seed": seed,
        "seed2": seed2,
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "max_attempts": max_attempts,
        "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
    }
    covered = 0.1 if min_object_covered is None else min_object_covered
    return gen_ops.sample_distorted_bounding_box_v2(image_size, bounding_boxes, covered, name=name, **{k: v for k, v in given.items() if v is not None})


def sample_distorted_bounding_box_v2(
    image_size: Any,
    bounding_boxes: Any,
    seed: Optional[int] = 0,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: Optional[int] = None,
    use_image_if_no_bounding_boxes: Optional[bool] = None,
    name: Optional[str] = None,
) -> Any:
    """sample_distorted_bounding_box with one seed, which the seed of the graph goes with; 0 is another one in each session."""
    seeds = get_seed(seed) if seed else (0, 0)
    return sample_distorted_bounding_box(
        image_size, bounding_boxes, *seeds, min_object_covered, aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes, name
    )


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: Optional[bool] = None,
    normalized: Optional[bool] = None,
    uniform_noise: Optional[bool] = None,
    name: Optional[str] = None,
) -> Tensor:
    """For each image a window of a size at a place."""
    given = {"centered": centered, "normalized": normalized, "uniform_noise": uniform_noise}
    return gen_ops.extract_glimpse(input, size, offsets, name=name, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]


def extract_glimpse_v2(
    input: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True, noise: str = "uniform", name: Optional[str] = None
) -> Tensor:
    """extract_glimpse, with what stands outside of the image by its name: "uniform", "gaussian" or "zero"."""
    return gen_ops.extract_glimpse(input, size, offsets, centered=centered, normalized=normalized, uniform_noise=False, noise=noise, name=name)


def non_max_suppression(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = float("-inf"), name: Optional[str] = None
) -> Tensor:
    """The boxes that no better one overlaps by more than iou_threshold."""
    return gen_ops.non_max_suppression_v3(
        boxes, scores, max_output_size, convert_to_tensor(iou_threshold, dtypes.float32), convert_to_tensor(score_threshold, dtypes.float32), name=name
    )


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    soft_nms_sigma: Any = 0.0,
    name: Optional[str] = None,
) -> Any:
    """The boxes that stay, and their scores, which fall softly where soft_nms_sigma is above 0."""
    with name_scope(name, "non_max_suppression_with_scores"):
        chosen, kept, _ = gen_ops.non_max_suppression_v5(
            boxes,
            scores,
            max_output_size,
            *(
                convert_to_tensor(v, dtypes.float32)
                for v in (  # type: ignore[arg-type, misc]
                    iou_threshold,
                    score_threshold,
                    soft_nms_sigma,
                )
            ),
            pad_to_max_output_size=False,
        )
    return chosen, kept


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: Optional[str] = None,
) -> Any:
    """The boxes that stay, with zeros behind them if wanted, and how many they are."""
    with name_scope(name, "non_max_suppression_padded"):
        iou, least = convert_to_tensor(iou_threshold, dtypes.float32), convert_to_tensor(score_threshold, dtypes.float32)
        made = gen_ops.non_max_suppression_v4(boxes, scores, max_output_size, iou, least, pad_to_max_output_size=pad_to_max_output_size)
    return made[0], made[1]


def non_max_suppression_with_overlaps(
    overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any = 0.5, score_threshold: Any = float("-inf"), name: Optional[str] = None
) -> Any:
    """The things that stay when those that overlap a better one too much are left out."""
    with name_scope(name, "non_max_suppression_overlaps"):
        return gen_ops.non_max_suppression_with_overlaps(
            overlaps, scores, max_output_size, convert_to_tensor(overlap_threshold, dtypes.float32), convert_to_tensor(score_threshold, dtypes.float32)
        )


non_max_suppression_overlaps = non_max_suppression_with_overlaps


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: Optional[str] = None,
) -> Any:
    """The best boxes of all classes, for each image."""
    with name_scope(name, "combined_non_max_suppression"):
        return gen_ops.combined_non_max_suppression(
            boxes,
            scores,
            max_output_size_per_class,
            max_total_size,
            convert_to_tensor(iou_threshold, dtypes.float32),
            convert_to_tensor(score_threshold, dtypes.float32),
            pad_per_class,
            clip_boxes,
        )
