# SPDX-License-Identifier: Apache-2.0
"""Zeros around sequences, images and volumes, cuts from them, and repeats."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.backend_windows import layout
from millrace.layers.settings import InputSpec, SettingsLayer
from millrace.layers.utils import normalize_tuple
from millrace.ops import array_ops


def _pairs(value: Any, n: int, what: str) -> Tuple[Any, ...]:
    """(before, after) for each axis, from a number, one for each axis, or pairs."""
    if isinstance(value, int):
        return ((value, value),) * n
    if n == 1:
        return (normalize_tuple(value, 2, what),)
    if not hasattr(value, "__len__") or len(value) != n:
        raise at_user_line(ValueError("`%s` should have %d elements. Found: %s" % (what, n, value)))
    return tuple((v, v) if isinstance(v, int) else normalize_tuple(v, 2, "%d entry of %s" % (i + 1, what)) for i, v in enumerate(value))


class _Bordered(SettingsLayer):
    rank, what = 2, "padding"

    def _begin(self, value: Any, data_format: Any) -> None:
        self.data_format = layout(data_format)
        setattr(self, self.what, _pairs(value, self.rank, self.what))
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def _first(self) -> bool:
        return bool(self.data_format == "channels_first" and self.rank > 1)

    def get_config(self) -> Any:
        """The arguments that make such a layer."""
        config = super().get_config()
        config[self.what] = config[self.what][0] if self.rank == 1 else config[self.what]
        return config


class ZeroPadding2D(_Bordered):
    """Zeros around images."""

    settings: Tuple[str, ...] = ("padding", "data_format")

    def __init__(self, padding: Any = 1, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._begin(padding, data_format)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        inner = [list(p) for p in self.padding]
        return array_ops.pad(inputs, [[0, 0], [0, 0], *inner] if self._first else [[0, 0], *inner, [0, 0]])


class ZeroPadding1D(ZeroPadding2D):
    """Zeros before and after sequences."""

    settings: Tuple[str, ...] = ("padding",)
    rank = 1


class ZeroPadding3D(ZeroPadding2D):
    """Zeros around volumes."""

    rank = 3


class Cropping2D(_Bordered):
    """Images without their borders."""

    settings: Tuple[str, ...] = ("cropping", "data_format")
    what = "cropping"

    def __init__(self, cropping: Any = ((0, 0), (0, 0)), data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._begin(cropping, data_format)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        inner = tuple(slice(a, -b if b else None) for a, b in self.cropping)
        everything = slice(None)
        return inputs[(everything, everything, *inner) if self._first else (everything, *inner, everything)]


class Cropping1D(Cropping2D):
    """Sequences without their ends."""

    settings: Tuple[str, ...] = ("cropping",)
    rank = 1

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any) -> None:
        super().__init__(cropping, "channels_last", **kwargs)


class Cropping3D(Cropping2D):
    """Volumes without their borders."""

    rank = 3

    def __init__(self, cropping: Any = ((1, 1), (1, 1), (1, 1)), data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(cropping, data_format, **kwargs)


class UpSampling2D(SettingsLayer):
    """Each row and column several times."""

    settings: Tuple[str, ...] = ("size", "data_format", "interpolation")
    rank = 2

    def __init__(self, size: Any = 2, data_format: Any = None, interpolation: str = "nearest", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if interpolation not in ("nearest", "bilinear"):
            raise at_user_line(ValueError('`interpolation` argument should be one of `"nearest"` or `"bilinear"`.'))
        self.data_format, self.size, self.interpolation = layout(data_format), normalize_tuple(size, self.rank, "size"), interpolation
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        first = self.data_format == "channels_first" and self.rank > 1
        if self.interpolation == "bilinear":
            return K.resize_images(inputs, self.size[0], self.size[1], self.data_format, self.interpolation)
        for i, times in enumerate(self.size):
            inputs = K.repeat_elements(inputs, times, i + (2 if first else 1))
        return inputs


class UpSampling1D(UpSampling2D):
    """Each step several times."""

    settings: Tuple[str, ...] = ("size",)
    rank = 1

    def __init__(self, size: int = 2, **kwargs: Any) -> None:
        super().__init__(size, "channels_last", **kwargs)
        self.size = int(size) if isinstance(size, int) else int(size[0])  # type: ignore[assignment]

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return K.repeat_elements(inputs, self.size, 1)  # type: ignore[arg-type]


class UpSampling3D(UpSampling2D):
    """Each layer, row and column several times."""

    settings: Tuple[str, ...] = ("size", "data_format")
    rank = 3
