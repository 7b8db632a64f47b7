# SPDX-License-Identifier: Apache-2.0
"""tf.keras.applications.imagenet_utils: images as the models want them, and the names of what they say."""

from __future__ import annotations

import functools
import json
import warnings
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.utils import get_file

_CLASSES = "https://storage.googleapis.com/download.tensorflow.org/data/imagenet_class_index.json"
# What is taken from the channels behind a scale, and what divides them then; "caffe" has blue first.
_MODES: Dict[str, Tuple[float, List[float], Optional[List[float]]]] = {
    "torch": (255.0, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "caffe": (1.0, [103.939, 116.779, 123.68], None),
}


def preprocess_input(x: Any, data_format: Optional[str] = None, mode: str = "caffe") -> Any:
    """Images of values from 0 to 255 as models want them: "tf" from -1 to 1, "torch" normalized by channel, "caffe" with blue first and means taken off.

    An array of floating-point numbers is changed in its place."""
    data_format = data_format or K.image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise at_user_line(ValueError("Unknown data_format %s" % (data_format,)))
    array = isinstance(x, np.ndarray)
    if array and not issubclass(x.dtype.type, np.floating):
        x = x.astype(K.floatx(), copy=False)
    if mode == "tf":
        x /= 127.5
        x -= 1.0
        return x
    scale, mean, deviation = _MODES["torch" if mode == "torch" else "caffe"]
    rank = x.ndim if array else K.ndim(x)
    channels = rank - 3 if data_format == "channels_first" else rank - 1
    if mode == "torch":
        x /= scale
    else:
        x = x[(slice(None),) * channels + (slice(None, None, -1),)]
    along = [-1 if axis == channels else 1 for axis in range(rank)]

    def channelwise(values: List[float]) -> Any:
        made = np.reshape(values, along)
        return made.astype(x.dtype) if array else K.constant(made, dtype=K.dtype(x))

    x -= channelwise(mean)
    if deviation is not None:
        x /= channelwise(deviation)
    return x


@functools.cache
def _classes() -> Dict[str, List[str]]:
    with open(get_file("imagenet_class_index.json", _CLASSES, cache_subdir="models", file_hash="c2c37ea517e94d9795004a39431a14cb")) as file:
        return dict(json.load(file))


def decode_predictions(preds: Any, top: int = 5) -> List[List[Tuple[str, str, Any]]]:
    """For each row of 1000 probabilities the best classes: (id in WordNet, name, probability). Reads imagenet_class_index.json in ~/.keras/models."""
    if len(preds.shape) != 2 or preds.shape[1] != 1000:
        raise at_user_line(
            ValueError(
                "`decode_predictions` expects a batch of predictions (i.e. a 2D array of shape (samples, 1000)). Found array with shape: %s" % (preds.shape,)
            )
        )
    return [[(*_classes()[str(i)], row[i]) for i in row.argsort()[::-1][:top]] for row in preds]


def _obtain_input_shape(input_shape: Any, default_size: Any, min_size: int, data_format: str, require_flatten: bool, weights: Any = None) -> Tuple[Any, ...]:
    """The shape of a model's images: the given one, checked, or the usual one."""
    first = data_format == "channels_first"

    def with_channels(size: Any, channels: int) -> Tuple[Any, ...]:
        return (channels, size, size) if first else (size, size, channels)

    usual = with_channels(default_size, 3)
    if weights == "imagenet" and require_flatten:
        if input_shape is not None and tuple(input_shape) != usual:
            raise at_user_line(ValueError("When setting `include_top=True` and loading `imagenet` weights, `input_shape` should be %s." % (usual,)))
        return usual
    if not input_shape:
        shape = usual if require_flatten else with_channels(None, 3)
    else:
        shape = tuple(input_shape)
        if len(shape) != 3:
            raise at_user_line(ValueError("`input_shape` must be a tuple of three integers."))
        channels, sizes = (shape[0], shape[1:]) if first else (shape[2], shape[:2])
        if weights == "imagenet" and channels != 3:
            raise at_user_line(ValueError("The input must have 3 channels; got `input_shape=%s`" % (input_shape,)))
        if channels not in (1, 3):
            warnings.warn(
                "This model usually expects 1 or 3 input channels. However, it was passed an input_shape with %s input channels." % channels, stacklevel=3
            )
        if any(size is not None and size < min_size for size in sizes):
            raise at_user_line(ValueError("Input size must be at least %dx%d; got `input_shape=%s`" % (min_size, min_size, input_shape)))
    if require_flatten and None in shape:
        raise at_user_line(ValueError("If `include_top` is True, you should specify a static `input_shape`. Got `input_shape=%s`" % (shape,)))
    return shape
