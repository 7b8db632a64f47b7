# SPDX-License-Identifier: Apache-2.0
"""The nets that every library trains: layers, first weights, data, all from seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

RATE = 0.01


@dataclasses.dataclass(frozen=True)
class Conv:
    filters: int
    kernel: int
    stride: int = 1
    same: bool = True  # else no padding


@dataclasses.dataclass(frozen=True)
class Pool:
    size: int
    stride: int


@dataclasses.dataclass(frozen=True)
class Dense:
    units: int
    relu: bool = True


@dataclasses.dataclass(frozen=True)
class Lstm:
    """Reads [steps, width], gives [steps, units]. Gates: input, candidate, forget (with 1 added), output."""

    units: int


Layer = Conv | Pool | Dense | Lstm


@dataclasses.dataclass(frozen=True)
class Net:
    what: str
    batch: int
    image: tuple[int, ...]  # height, width, channels; or steps, width; or the inputs of a first dense layer
    layers: tuple[Layer, ...]

    @property
    def classes(self) -> int:
        last = self.layers[-1]
        assert isinstance(last, Dense)
        return last.units

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(7)
        x = rng.normal(size=(self.batch, *self.image)).astype(np.float32)
        return x, rng.integers(0, self.classes, self.batch)

    def weights(self) -> Iterator[tuple[Layer, np.ndarray | None, tuple[int, ...]]]:
        """Each layer, its weights (convolutions: height, width, in, out), and the shape that it gives an example."""
        shape = self.image
        for k, layer in enumerate(self.layers):
            if isinstance(layer, Pool):
                shape = (*((n - layer.size) // layer.stride + 1 for n in shape[:2]), shape[2])
                yield layer, None, shape
                continue
            if isinstance(layer, Conv):
                size: tuple[int, ...] = (layer.kernel, layer.kernel, shape[2], layer.filters)
                reach = 1 if layer.same else layer.kernel
                shape = (*((n - reach) // layer.stride + 1 for n in shape[:2]), layer.filters)
            elif isinstance(layer, Lstm):
                size = (shape[1] + layer.units, 4 * layer.units)
                shape = (shape[0], layer.units)
            else:
                size = (int(np.prod(shape)), layer.units)
                shape = (layer.units,)
            deviation = (2.0 / np.prod(size[:-1])) ** 0.5
            yield layer, np.random.default_rng(100 + k).normal(0, deviation, size).astype(np.float32), shape


NETS = {
    "mlp": Net("784-512-512-10, batch 128", 128, (784,), (Dense(512), Dense(512), Dense(10, False))),
    "digits": Net(
        "two 3x3 convolutions, two dense layers, 28x28, batch 64",
        64,
        (28, 28, 1),
        (Conv(32, 3), Pool(2, 2), Conv(64, 3), Pool(2, 2), Dense(128), Dense(10, False)),
    ),
    "lstm": Net("two LSTM layers of 160 over 50 steps of 64, batch 32", 32, (50, 64), (Lstm(160), Lstm(160), Dense(10, False))),
    "alexnet": Net(
        "AlexNet of one tower, 227x227, batch 32",
        32,
        (227, 227, 3),
        (
            Conv(64, 11, 4, same=False),
            Pool(3, 2),
            Conv(192, 5),
            Pool(3, 2),
            Conv(384, 3),
            Conv(256, 3),
            Conv(256, 3),
            Pool(3, 2),
            Dense(4096),
            Dense(4096),
            Dense(1000, False),
        ),
    ),
}
