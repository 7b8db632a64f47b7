# SPDX-License-Identifier: Apache-2.0
"""The rows of `script/bench ops`: every op of the library's registry has one, or a line that says why not.

A row's values come from op_cases.py where it has large cases of the op; else from the case table (tests/case_table), whose
element-wise families are asked for a million elements, and whose other families give the largest of their own, small cases.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "case_table"))

import numpy as np

import families
import programs
import special  # noqa: F401
from dtypes import F32, BY_NAME, DType
import op_shapes
from op_cases import CASES
from reasons import REASONS
from runner import Flat, Runner, main_attr
from table import Case, Draw, Row, Table
from wire import Kernel, Op

SCALED = 1 << 20  # elements of the element-wise rows
_LOOKED_AT = 40  # cases of a family, for the largest

_NOT_ALONE = "is part of a program of several ops: tests/case_table/programs.py"


@dataclasses.dataclass
class OpRow:
    op: str
    label: str
    types: dict[str, DType]
    make: Callable[[], Case]
    tested: Row | None  # the case table's, with its oracle
    elementwise: bool = False  # so that the oracle may see a part
    exact: bool = False  # error in ulp

    @property
    def name(self) -> str:
        return f"{self.op} {self.label}"


@dataclasses.dataclass
class Declared:
    """What a library declares, as data that other processes can have: in a Runner's eyes a library."""

    declared: dict[str, Op]
    registered: list[Kernel]
    shapes: bool = False  # with the rows of op_shapes.py

    def ops(self) -> dict[str, Op]:
        return self.declared

    def kernels(self) -> list[Kernel]:
        return self.registered


def _size(case: Case) -> int:
    parts: list[Any] = []
    for value in case.inputs:
        parts += value if isinstance(value, (list, tuple)) else [value]
    return max([int(np.size(p)) for p in parts] or [0])


def _set_sizes(shapes: Any, pairs: Any) -> Callable[[], None]:
    """Lets the families of the case table draw these shapes; the result takes that back."""
    kept = []
    for name, module in list(sys.modules.items()):
        for list_name, value in (("SHAPES", shapes), ("PAIRS", pairs)):
            if name.endswith("_rows") and hasattr(module, list_name):
                kept.append((module, list_name, getattr(module, list_name)))
                setattr(module, list_name, value)

    def restore() -> None:
        for module, list_name, value in kept:
            setattr(module, list_name, value)

    return restore


class Rows:
    def __init__(self, declared: Declared) -> None:
        self.runner = Runner(declared, 0)  # type: ignore[arg-type]
        table = Table()
        families.add_to(table)
        self.tested: dict[str, list[Row]] = {}
        for row in table.rows:
            self.tested.setdefault(row.op, []).append(row)
        self.rows: list[OpRow] = []
        self.reasons: dict[str, str] = {}
        large: dict[str, list[Any]] = {}
        for case in CASES:
            large.setdefault(case.op, []).append(case)
        shapes: dict[str, list[Any]] = {}
        for case in op_shapes.CASES if declared.shapes else ():
            shapes.setdefault(case.op, []).append(case)
        for op in sorted(self.runner.ops):
            made = [self._large(op, case) for case in large.get(op, ())]
            if not made or any(case.label[0] == "2" and op in ("Add", "Mul", "Maximum") for case in large.get(op, ())):
                made += self._from_table(op)
            made += [self._large(op, case) for case in shapes.get(op, ())]
            self.rows += made
            if not made:
                self.reasons[op] = _why_not(op)
        unknown = sorted((large.keys() | shapes.keys()) - self.runner.ops.keys())
        if unknown:
            raise SystemExit(f"op_cases.py or op_shapes.py has cases of ops that the library does not have: {', '.join(unknown)}")

    def _types(self, op: str, row: Row | None, main: str) -> dict[str, DType]:
        """The dtypes of a case: `main` for the main attribute where kernels take it, the first that they take else."""
        schema, choice = self.runner.ops[op], {}
        for choice in self.runner.choices(schema, row or Row(op, lambda d: iter(()))):
            attr = main_attr(schema, row or Row(op, lambda d: iter(())))
            if not attr or choice.get(attr) == BY_NAME[main]:
                break
        else:
            choice = next(iter(self.runner.choices(schema, row or Row(op, lambda d: iter(())))), choice)
        return choice

    def _drawn(self, op: str, label: str, types: dict[str, DType], row: Row | None) -> Draw:
        dtype = types.get(main_attr(self.runner.ops[op], row or Row(op, lambda d: iter(()))), F32)
        return Draw(dtype, np.random.default_rng(zlib.crc32(f"{op} {label}".encode())))

    def _large(self, op: str, case: Any) -> OpRow:
        tested = next(iter(self.tested.get(op, ())), None)
        types = self._types(op, tested, case.dtype)
        return OpRow(op, case.label, types, lambda: case.make(self._drawn(op, case.label, types, tested)), tested, exact=case.exact)

    def _from_table(self, op: str) -> list[OpRow]:
        for row in self.tested.get(op, ()):
            types = self._types(op, row, "float32")
            scaled = self._best(op, row, types, True)
            if scaled is not None:
                return [OpRow(op, "1M", types, lambda row=row, types=types: self._case(op, row, types, True), row, True, True)]
        for row in self.tested.get(op, ()):
            types = self._types(op, row, "float32")
            if self._best(op, row, types, False) is not None:
                return [OpRow(op, "small", types, lambda row=row, types=types: self._case(op, row, types, False), row)]
        return []

    def _cases(self, op: str, row: Row, types: dict[str, DType], size: int) -> Iterator[Case]:
        restore = _set_sizes(((size,),), (((size,), (size,)),)) if size else lambda: None
        try:
            yield from itertools.islice(row.cases(self._drawn(op, "", types, row)), _LOOKED_AT)
        finally:
            restore()

    def _best(self, op: str, row: Row, types: dict[str, DType], scaled: bool) -> int | None:
        """Which of a row's cases to time: the first of the size asked for, or the largest."""
        sizes = [_size(case) for case in self._cases(op, row, types, 64 if scaled else 0)]
        if not sizes:
            return None
        at = sizes.index(max(sizes))
        whole = next(itertools.islice(self._cases(op, row, types, 65), at, None), None) if scaled else None
        if scaled and (sizes[at] != 64 or whole is None or _size(whole) != 65):
            return None  # its sizes are its own
        return at

    def _case(self, op: str, row: Row, types: dict[str, DType], scaled: bool) -> Case:
        at = self._best(op, row, types, scaled) or 0
        return next(itertools.islice(self._cases(op, row, types, SCALED if scaled else 0), at, None))

    def values(self, row: OpRow) -> tuple[Op, Case, dict[str, DType], list[Flat]]:
        schema, case = self.runner.ops[row.op], row.make()
        types = {**row.types, **case.types}
        return schema, case, types, self.runner._flatten(schema, case, types)

    def expected(self, row: OpRow, most: int) -> list[np.ndarray] | None:
        """What NumPy says in float64 of the first `most` elements, of element-wise rows, or of all."""
        if row.tested is None or row.tested.oracle is None or not row.exact:
            return None
        _, case, _, flat = self.values(row)
        values = [f.value[:most] if row.elementwise and f.value.ndim == 1 else f.value for f in flat]
        return self.runner._want(row.tested, case, values)


def _why_not(op: str) -> str:
    if op in REASONS:
        return REASONS[op]
    return _NOT_ALONE if any(op in ops for ops in programs.PROGRAMS.values()) else ""
