# SPDX-License-Identifier: Apache-2.0
"""What a row of the table is, and what its cases are drawn from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dtypes import DType

Value = Any  # an array, or a list of arrays for a list of inputs
Outputs = Any  # an array, or a tuple of arrays

# Nothing, one element, and sizes around those of vectors, tiles and blocks.
SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (15,), (16,), (17,), (31,), (33,), (1025,), (3, 0, 2), (2, 3, 4))
PAIRS = (
    ((), ()),
    ((0,), (0,)),
    ((1,), (1,)),
    ((15,), (15,)),
    ((16,), ()),
    ((), (17,)),
    ((31,), (1,)),
    ((33,), (33,)),
    ((1025,), (1025,)),
    ((2, 3, 4), (3, 1)),
    ((3, 0), (1, 1)),
    ((2, 1, 5), (4, 1)),
    ((3, 17), (17,)),
    ((1, 33), (2, 1)),
)


@dataclasses.dataclass
class Case:
    inputs: Sequence[Value]
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Type attributes that no input tells, and those to keep away from the row's other choices.
    types: dict[str, DType] = dataclasses.field(default_factory=dict)
    label: str = ""
    gradient: bool = True


class Draw:
    """Seeded values of one dtype, in the wide form that oracles see."""

    def __init__(self, dtype: DType, rng: np.random.Generator) -> None:
        self.dtype, self.rng, self.kind = dtype, rng, dtype.kind

    def uniform(self, shape: Sequence[int] = (), low: float = -2.0, high: float = 2.0) -> np.ndarray:
        """Numbers between; unsigned ones are not below zero, complex ones have both parts between."""
        if self.kind == "f":
            return self.rng.uniform(low, high, shape)
        if self.kind == "c":
            return self.rng.uniform(low, high, shape) + 1j * self.rng.uniform(low, high, shape)
        if self.kind == "b":
            return self.rng.integers(0, 2, shape).astype(bool)
        lowest = max(0, int(np.ceil(low))) if self.kind == "u" else int(np.ceil(low))
        return self.rng.integers(lowest, max(lowest, int(np.floor(high))) + 1, shape)

    def apart(self, shape: Sequence[int] = (), low: float = -2.0, high: float = 2.0) -> np.ndarray:
        """Distinct numbers, far enough from each other and from 0 that a numeric gradient sees no kink."""
        count = int(np.prod(shape, dtype=np.int64))
        if self.kind not in "fc":
            return self.uniform(shape, low, high)
        steps = (self.rng.permutation(count) + 0.5) / max(1, count)
        values = (low + (high - low) * steps).reshape(shape)
        values = np.where(np.abs(values) < 1e-3, 0.05, values)
        return values if self.kind == "f" else values + 1j * self.rng.permutation(values.ravel()).reshape(shape)

    def away(self, shape: Sequence[int] = (), low: float = 0.3, high: float = 2.0) -> np.ndarray:
        """Numbers of either sign whose magnitude is between: divisors."""
        if self.kind == "u":
            return self.rng.integers(1, max(2, int(high) + 1), shape)
        sign = self.rng.choice([-1, 1], shape)
        if self.kind == "i":
            return sign * self.rng.integers(1, max(2, int(high) + 1), shape)
        value = sign * self.rng.uniform(low, high, shape)
        return value if self.kind == "f" else value + 1j * self.rng.uniform(low, high, shape)

    def any(self, shape: Sequence[int] = ()) -> np.ndarray:
        """Values for ops that only move them; strings too."""
        if self.kind in "su":
            return self.rng.integers(0, 200, shape)
        return self.uniform(shape, -100, 100)

    def integers(self, shape: Sequence[int], low: int, high: int) -> np.ndarray:
        """For an input that counts or indexes, whatever the dtype: low <= value < high."""
        return self.rng.integers(low, high, shape)


Cases = Callable[[Draw], Iterator[Case]]
Oracle = Callable[..., Outputs]
Check = Callable[[Case, Sequence[np.ndarray], Sequence[DType]], None]


def real_gradient(cases: Cases) -> Cases:
    """For ops whose gradient follows TensorFlow's, which is that of the reals."""

    def without_complex(d: Draw) -> Iterator[Case]:
        for case in cases(d):
            case.gradient = case.gradient and d.kind != "c"
            yield case

    return without_complex


@dataclasses.dataclass
class Row:
    op: str
    cases: Cases
    oracle: Oracle | None = None
    # Which inputs have a gradient, by index; the elements of a list count one by one. None: the op has none.
    gradient: tuple[int, ...] | None = None
    gradient_of: tuple[int, ...] | None = None  # the outputs whose gradient counts, where the others' is not propagated
    tolerance: float = 1.0  # times what one rounding of the dtype allows
    dtypes: tuple[str, ...] | None = None  # instead of all that the kernels take
    main: str = ""  # the type attribute that the dtypes are of; the first input's, if not said
    check: Check | None = None  # instead of an oracle
    magnitude: bool = False  # the oracle of the absolute inputs bounds the error: sums whose terms cancel
    mutates: bool = False  # the oracle gives what the variables hold afterwards
    gradient_tolerance: float = 1.0
    note: str = ""


class Table:
    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, op: str, cases: Cases, oracle: Oracle | None = None, **more: Any) -> None:
        self.rows.append(Row(op, cases, oracle, **more))
