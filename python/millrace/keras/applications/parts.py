# SPDX-License-Identifier: Apache-2.0
"""What the models for ImageNet have in common: how they begin, how they end, and where their weights are."""

from __future__ import annotations

import contextvars
import functools
import os
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras import layers as keras_layers
from millrace.keras.applications.imagenet_utils import _obtain_input_shape
from millrace.keras.models import Model
from millrace.keras.utils import get_file, get_source_inputs

KERNELS = "_weights_tf_dim_ordering_tf_kernels"

_given: contextvars.ContextVar[Any] = contextvars.ContextVar("given", default=keras_layers)


class _Layers:
    """What models are made of: tf.keras.layers, or the object with functions of its names that the program gives."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_given.get(), name)


layers = _Layers()


def of_given_layers(make: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a model also takes `layers`, as in 1.15; `backend`, `models` and `utils`, which that replaced by its own, count for nothing."""

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        given = kwargs.pop("layers", None)
        for replaced in ("backend", "models", "utils"):
            kwargs.pop(replaced, None)
        before = _given.set(keras_layers if given is None else given)
        try:
            return make(*args, **kwargs)
        finally:
            _given.reset(before)

    return made


class Request(NamedTuple):
    """What a program asks of a model."""

    include_top: bool
    weights: Optional[str]
    input_tensor: Any
    input_shape: Any
    pooling: Optional[str]
    classes: int

    def check(self) -> None:
        """ValueError for weights that cannot be."""
        if self.weights not in (None, "imagenet") and not os.path.exists(self.weights):
            raise at_user_line(
                ValueError(
                    "The `weights` argument should be either `None` (random initialization), `imagenet` (pre-training on ImageNet), "
                    "or the path to the weights file to be loaded."
                )
            )
        if self.weights == "imagenet" and self.include_top and self.classes != 1000:
            raise at_user_line(ValueError('If using `weights` as `"imagenet"` with `include_top` as true, `classes` should be 1000'))

    def sizes(self) -> Tuple[Any, Any]:
        """The height and width that the program gives, None where it gives none."""
        shape = self.input_shape
        if shape is None and self.input_tensor is not None and K.is_keras_tensor(self.input_tensor):
            shape = K.int_shape(self.input_tensor)[1:]
        if shape is None:
            return None, None
        return tuple(shape[1:3]) if K.image_data_format() == "channels_first" else tuple(shape[:2])

    def shape(self, default_size: int, min_size: int = 32, flat: Optional[bool] = None) -> Tuple[Any, ...]:
        """The shape of an image. `flat`: all of its sizes must be known (where there is a top)."""
        flat = self.include_top if flat is None else flat
        return _obtain_input_shape(self.input_shape, default_size, min_size, K.image_data_format(), flat, self.weights)

    def image(self, shape: Any) -> Any:
        """Where the model begins."""
        if self.input_tensor is None:
            return layers.Input(shape=shape)
        return self.input_tensor if K.is_keras_tensor(self.input_tensor) else layers.Input(tensor=self.input_tensor, shape=shape)

    def pooled(self, x: Any, named: bool = False) -> Any:
        """Without a top: one value for each channel, where that is asked for. `named`: the layer is called avg_pool or max_pool."""
        kinds: Dict[Any, Any] = {"avg": layers.GlobalAveragePooling2D, "max": layers.GlobalMaxPooling2D}
        return kinds[self.pooling](name=self.pooling + "_pool" if named and self.pooling else None)(x) if self.pooling in kinds else x

    def classified(self, x: Any, name: str = "predictions", pool: Optional[str] = "avg_pool") -> Any:
        """The usual end: averages and one layer of classes, or `pooled`."""
        if not self.include_top:
            return self.pooled(x)
        return layers.Dense(self.classes, activation="softmax", name=name)(layers.GlobalAveragePooling2D(name=pool)(x))

    def model(self, image: Any, x: Any, name: str, files: Optional["Files"]) -> Model:
        """The model from the image to x, with the weights that are asked for."""
        model = Model(image if self.input_tensor is None else get_source_inputs(self.input_tensor), x, name=name)
        if self.weights == "imagenet" and files is not None:
            model.load_weights(files.path(self.include_top))
        elif self.weights is not None:
            model.load_weights(self.weights)
        return model


class Files(NamedTuple):
    """The weights that were published with and without a top: names, what MD5 or SHA-256 gives for each, and where they are."""

    address: str
    names: Tuple[str, str]
    hashes: Tuple[Optional[str], Optional[str]] = (None, None)
    origins: Optional[Tuple[str, str]] = None  # their names at the address, where those are others

    @classmethod
    def of(cls, address: str, stem: str, top: str, no_top: str) -> "Files":
        """Those of the usual names."""
        return cls(address, (stem + KERNELS + ".h5", stem + KERNELS + "_notop.h5"), (top, no_top))

    def path(self, include_top: bool) -> str:
        """The file in ~/.keras/models."""
        i = 0 if include_top else 1
        return get_file(self.names[i], self.address + (self.origins or self.names)[i], cache_subdir="models", file_hash=self.hashes[i])


def channel_axis() -> int:
    """The axis of channels of a batch of images."""
    return 1 if K.image_data_format() == "channels_first" else 3


def channels(x: Any) -> int:
    """How many channels it has."""
    return int(K.int_shape(x)[channel_axis()])


def padded_evenly(x: Any, kernel_size: int, name: Optional[str] = None) -> Any:
    """Zeros around it as `same` has them for a stride of 2 over an even size: fewer above and to the left."""
    start = 2 if channel_axis() == 1 else 1
    sizes = K.int_shape(x)[start : start + 2]
    half = kernel_size // 2
    odd = [0 if sizes[0] is None else size % 2 for size in sizes]
    return layers.ZeroPadding2D(padding=tuple((half - 1 + o, half) for o in odd), name=name)(x)
