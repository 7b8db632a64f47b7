# SPDX-License-Identifier: Apache-2.0
"""Convolutions and windows, tap by tap, for any number of spatial dimensions; channels are last."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

Pads = list[tuple[int, int]]
Slices = tuple[slice, ...]


def padding(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], kind: str, explicit: Sequence[int] = ()
) -> tuple[Pads, list[int]]:
    """What is added before and after each dimension, and the number of windows."""
    pads, counts = [], []
    for k, (size, taps, stride, dilation) in enumerate(zip(sizes, kernel, strides, dilations)):
        reach = (taps - 1) * dilation + 1
        if kind == "SAME":
            count = -(-size // stride)
            total = max(0, (count - 1) * stride + reach - size)
            pads.append((total // 2, total - total // 2))
        elif kind == "EXPLICIT":
            pads.append((explicit[2 * k], explicit[2 * k + 1]))
            count = (size + sum(pads[-1]) - reach) // stride + 1
        else:
            pads.append((0, 0))
            count = (size - reach) // stride + 1 if size >= reach else 0
        counts.append(max(0, count))
    return pads, counts


def windows(kernel: Sequence[int], counts: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Slices]]:
    """Each tap, with where the windows meet it in the padded input [batch, spatial..., channels]."""
    for tap in itertools.product(*map(range, kernel)):
        where = tuple(slice(t * d, t * d + (n - 1) * s + 1 if n else 0, s) for t, d, n, s in zip(tap, dilations, counts, strides))
        yield tap, (slice(None), *where, slice(None))


def padded(x: np.ndarray, pads: Pads, value: float = 0) -> np.ndarray:
    return np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=value)


def unpadded(x: np.ndarray, pads: Pads) -> np.ndarray:
    inner = [slice(before, x.shape[k + 1] - after) for k, (before, after) in enumerate(pads)]
    return x[tuple([slice(None), *inner])]


class Convolution:
    def __init__(
        self,
        input_shape: Sequence[int],
        kernel: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        kind: str,
        explicit: Sequence[int] = (),
        depthwise: bool = False,
    ) -> None:
        self.kernel, self.strides, self.dilations, self.depthwise = (list(kernel), list(strides), list(dilations), depthwise)
        self.input_shape = list(input_shape)
        self.pads, self.counts = padding(input_shape[1:-1], kernel, strides, dilations, kind, explicit)

    def _taps(self) -> Iterator[tuple[tuple[int, ...], Slices]]:
        return windows(self.kernel, self.counts, self.strides, self.dilations)

    def forward(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        outputs = w.shape[-2] * w.shape[-1] if self.depthwise else w.shape[-1]
        y = np.zeros([x.shape[0], *self.counts, outputs], x.dtype)
        base = padded(x, self.pads)
        for tap, where in self._taps():
            y += self._times(base[where], w[tap])
        return y

    def _times(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        if not self.depthwise:
            return x @ w
        return (x[..., None] * w).reshape(*x.shape[:-1], w.shape[-2] * w.shape[-1])

    def to_input(self, w: np.ndarray, g: np.ndarray) -> np.ndarray:
        base = padded(np.zeros(self.input_shape, g.dtype), self.pads)
        for tap, where in self._taps():
            if self.depthwise:
                base[where] += (g.reshape(*g.shape[:-1], *w.shape[-2:]) * w[tap]).sum(-1)
            else:
                base[where] += g @ w[tap].T
        return unpadded(base, self.pads)

    def to_filter(self, x: np.ndarray, g: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        w = np.zeros(shape, g.dtype)
        base = padded(x, self.pads)
        for tap, where in self._taps():
            flat = base[where].reshape(g.size // g.shape[-1], x.shape[-1])
            if self.depthwise:
                w[tap] = np.einsum("nc,ncm->cm", flat, g.reshape(len(flat), *shape[-2:]))
            else:
                w[tap] = flat.T @ g.reshape(len(flat), g.shape[-1])
        return w


class Pooling:
    def __init__(self, shape: Sequence[int], kernel: Sequence[int], strides: Sequence[int], kind: str) -> None:
        self.shape, self.kernel, self.strides = list(shape), list(kernel), list(strides)
        self.ones = [1] * len(kernel)
        self.pads, self.counts = padding(shape[1:-1], kernel, strides, self.ones, kind)

    def stacked(self, x: np.ndarray, outside: float) -> np.ndarray:
        """The taps of every window in a first dimension of their own."""
        base = padded(x, self.pads, outside)
        return np.stack([base[where] for _, where in windows(self.kernel, self.counts, self.strides, self.ones)])

    def spread(self, taps: np.ndarray) -> np.ndarray:
        """The transpose of `stacked`."""
        base = padded(np.zeros(self.shape, taps.dtype), self.pads)
        for tap, (_, where) in zip(taps, windows(self.kernel, self.counts, self.strides, self.ones)):
            base[where] += tap
        return unpadded(base, self.pads)
