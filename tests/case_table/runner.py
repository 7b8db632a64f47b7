# SPDX-License-Identifier: Apache-2.0
"""Runs a row for each dtype of the op's kernels: value against the oracle, gradient against its central differences."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from capi import Error, Graph, Library, Output
from dtypes import ABSOLUTE, BY_NUMBER, C128, DType, F32, F64, RELATIVE, RESOURCE, WITH_VALUES, narrow, rounded, widen
from table import Case, Draw, Row
from wire import Arg, Op

_UNIMPLEMENTED = 12
_STEP = 1e-5
_MOST_DIFFERENCES = 24  # elements of an input whose difference is taken
_LARGEST_DIFFERENTIATED = 400


class Mismatch(Exception):
    pass


@dataclasses.dataclass
class Stats:
    values: int = 0
    gradients: int = 0
    not_there: int = 0  # cases that the device's kernels refuse


@dataclasses.dataclass
class Flat:
    """One input, lists taken apart."""

    value: np.ndarray
    dtype: DType
    arg: Arg


def main_attr(op: Op, row: Row) -> str:
    if row.main:
        return row.main
    candidates = [a.type_attr for a in op.inputs if a.type_attr] + [a.name for a in op.attrs.values() if a.kind == "type"]
    return candidates[0] if candidates else ""


class Runner:
    def __init__(self, library: Library, seed: int) -> None:
        self.library, self.seed = library, seed
        self.ops = library.ops()
        self.stats = Stats()
        self.kernel_types: dict[str, dict[str, set[DType]]] = {}
        for kernel in library.kernels():
            known = self.kernel_types.setdefault(kernel.op, {})
            for attr, spec in self.ops[kernel.op].attrs.items():
                if spec.kind == "type":
                    allowed = kernel.types.get(attr) or spec.allowed or WITH_VALUES
                    known.setdefault(attr, set()).update(t for t in allowed if t.stored)

    def allowed(self, op: Op, attr: str) -> list[DType]:
        found = self.kernel_types.get(op.name, {}).get(attr, set())
        declared = op.attrs[attr].allowed
        return sorted((t for t in found if declared is None or t in declared), key=lambda t: t.number)

    def choices(self, op: Op, row: Row) -> Iterator[dict[str, DType]]:
        """Every dtype of the main attribute with the defaults of the others, then every dtype of each other one."""
        main = main_attr(op, row)
        others = [a.name for a in op.attrs.values() if a.kind == "type" and a.name != main]
        usual: dict[str, DType] = {}
        for other in others:
            types = self.allowed(op, other)
            default = op.attrs[other].default
            usual[other] = default if default in types else types[0] if types else F32
        if not main:
            yield usual
            return
        types = [t for t in self.allowed(op, main) if row.dtypes is None or t.name in row.dtypes]
        for dtype in types:
            yield {main: dtype, **usual}
        for other in others:
            for dtype in self.allowed(op, other):
                if types and dtype != usual[other]:
                    yield {main: F32 if F32 in types else types[0], **usual, other: dtype}

    def run_row(self, row: Row) -> Iterator[str]:
        """Yields what is wrong, a line per case."""
        op = self.ops[row.op]
        main = main_attr(op, row)
        ran = 0
        for types in self.choices(op, row):
            dtype = types.get(main, F32)
            text = "/".join(f"{k}={v}" for k, v in types.items())
            seed = zlib.crc32(f"{row.op} {row.note} {text}".encode()) ^ self.seed
            for number, case in enumerate(row.cases(Draw(dtype, np.random.default_rng(seed)))):
                if any(types.get(k, v) != v and k != main and op.attrs[k].name in _from_inputs(op) for k, v in case.types.items()):
                    continue
                ran += 1
                try:
                    self._run_case(op, row, case, {**types, **case.types}, np.random.default_rng(seed + number))
                except Exception as problem:  # an oracle's own error is one case's, too
                    if self.library.device and isinstance(problem, Error) and problem.code == _UNIMPLEMENTED:
                        self.stats.not_there += 1
                        continue
                    shapes = ", ".join(_shape_text(v) for v in case.inputs)
                    where = f"{row.op} case {number} {case.label} [{text}] inputs ({shapes}) {case.attrs or ''}"
                    yield f"{where}: {_said(problem)}"
        if not ran:
            yield f"{row.op} {row.note}: no case ran: the kernels take none of the row's dtypes"

    def _flatten(self, op: Op, case: Case, types: dict[str, DType]) -> list[Flat]:
        flat = []
        for arg, value in zip(op.inputs, case.inputs, strict=True):
            dtype = types[arg.type_attr] if arg.type_attr else BY_NUMBER[arg.type % 100] if arg.type else F32
            if dtype == RESOURCE:
                dtype = next((types[a] for a in ("dtype", "T") if a in types), F32)
            if arg.is_list:
                flat += [Flat(np.asarray(v), _natural(v, dtype, arg), arg) for v in value]
            else:
                flat.append(Flat(np.asarray(value), dtype, arg))
        for f in flat:
            f.value = rounded(f.value, f.dtype)
        return flat

    def _regroup(self, case: Case, values: Sequence[np.ndarray]) -> list[Any]:
        rest = iter(values)
        return [[next(rest) for _ in v] if isinstance(v, (list, tuple)) else next(rest) for v in case.inputs]

    def _run_case(self, op: Op, row: Row, case: Case, types: dict[str, DType], rng: np.random.Generator) -> None:
        flat = self._flatten(op, case, types)
        built = Built(self.library, op, case, types, flat)
        try:
            got = built.run(row.mutates)
            self.stats.values += 1
            if row.check:
                row.check(case, [widen(v, t) for v, t in got], [t for _, t in got])
            else:
                values = [f.value for f in flat]
                self._compare(row, self._want(row, case, values), got, self._magnitudes(row, case, flat))
            if not row.mutates:
                _check_promises(built, got)
            if self._differentiates(row, case, types, flat):
                self._check_gradient(row, case, built, flat, rng)
        finally:
            built.close()

    def _want(self, row: Row, case: Case, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        assert row.oracle is not None, "a row needs an oracle or a check"
        with np.errstate(all="ignore"):
            want = row.oracle(*self._regroup(case, values), **case.attrs)
        return [np.asarray(w) for w in want] if isinstance(want, (tuple, list)) else [np.asarray(want)]

    def _magnitudes(self, row: Row, case: Case, flat: Sequence[Flat]) -> Sequence[np.ndarray | float]:
        if not row.magnitude:
            return [0.0] * 100
        return self._want(row, case, [np.abs(f.value) if f.dtype.is_inexact else f.value for f in flat])

    def _compare(self, row: Row, want: Sequence[np.ndarray], got: Sequence[tuple[np.ndarray, DType]], magnitudes: Sequence[np.ndarray | float]) -> None:
        if len(want) > len(got):
            raise Mismatch(f"{len(got)} outputs, wanted {len(want)}")
        for k, (expected, (stored, dtype)) in enumerate(zip(want, got)):
            compare(f"output {k}", expected, stored, dtype, row.tolerance, magnitudes[k])

    def _differentiates(self, row: Row, case: Case, types: dict[str, DType], flat: Sequence[Flat]) -> bool:
        """Doubles if the op takes them; an op of float32 only is differentiated in float32."""
        if not case.gradient or row.mutates or row.check:
            return False
        floats = [f.dtype for f in flat if f.dtype.is_inexact and not f.arg.is_ref]
        if not floats or sum(f.value.size for f in flat) > _LARGEST_DIFFERENTIATED:
            return False
        main = main_attr(self.ops[row.op], row)
        has_double = main in self.ops[row.op].attrs and F64 in self.allowed(self.ops[row.op], main)
        return floats[0] in (F64, C128) or (floats[0] == F32 and not has_double and C128 not in self.kernel_types.get(row.op, {}).get(main, ()))

    def _check_gradient(self, row: Row, case: Case, built: Built, flat: Sequence[Flat], rng: np.random.Generator) -> None:
        inexact = [i for i, y in enumerate(built.outputs) if built.graph.dtype(y).is_inexact and (row.gradient_of is None or i in row.gradient_of)]
        xs = [k for k, f in enumerate(flat) if f.dtype.is_inexact]
        values = [f.value for f in flat]
        outputs = self._want(row, case, values)
        inexact = [i for i in inexact if i < len(outputs)]
        if not inexact:
            return
        weights = {}
        for i in inexact:
            draw = Draw(built.graph.dtype(built.outputs[i]), rng)
            weights[i] = rounded(draw.uniform(outputs[i].shape), draw.dtype)
        ys = [built.outputs[i] for i in inexact]
        seeds = [built.graph.constant(narrow(w, t), t) for w, t in ((weights[i], built.graph.dtype(built.outputs[i])) for i in inexact)]
        try:
            made = built.graph.gradients(ys, [built.inputs[k] for k in xs], seeds)
        except Error as error:
            if row.gradient is None:
                return
            raise Mismatch(f"no gradient: {error}") from error
        made_by_input = dict(zip(xs, made))
        for k in row.gradient or ():
            if k in made_by_input and not made_by_input[k].oper:
                raise Mismatch(f"input {k} has no gradient")
        for k in xs:
            if not made_by_input[k].oper:
                continue
            got = built.graph.run(built.feeds, [made_by_input[k]])[0]
            self.stats.gradients += 1
            if got[0].shape != values[k].shape:
                raise Mismatch(f"gradient of input {k} has shape {got[0].shape}, wanted {values[k].shape}")
            self._check_differences(row, case, flat, k, weights, widen(*got), rng)

    def _check_differences(
        self, row: Row, case: Case, flat: Sequence[Flat], k: int, weights: dict[int, np.ndarray], got: np.ndarray, rng: np.random.Generator
    ) -> None:
        values = [f.value for f in flat]

        def loss(element: int, delta: complex) -> float:
            moved = values[k].copy()
            moved.reshape(-1)[element] += delta
            outputs = self._want(row, case, [*values[:k], moved, *values[k + 1 :]])
            return float(sum(np.sum((np.conj(w) * outputs[i]).real) for i, w in weights.items()))

        count = values[k].size
        picked = range(count) if count <= _MOST_DIFFERENCES else sorted(rng.choice(count, _MOST_DIFFERENCES, False))
        single = flat[k].dtype == F32
        for e in picked:
            want: complex = (loss(e, _STEP) - loss(e, -_STEP)) / (2 * _STEP)
            if flat[k].dtype.kind == "c":
                want += 1j * (loss(e, 1j * _STEP) - loss(e, -1j * _STEP)) / (2 * _STEP)
            bound = row.gradient_tolerance * (1e-5 + 1e-4 * abs(want)) * (20 if single else 1)
            have = got.reshape(-1)[e]
            if not abs(have - want) <= bound:
                raise Mismatch(f"gradient of input {k} element {e}: got {have:.9g}, wanted {want:.9g} from differences")


class Built:
    """The case as a graph: inputs are fed, unless they are variables."""

    def __init__(self, library: Library, op: Op, case: Case, types: dict[str, DType], flat: Sequence[Flat]) -> None:
        self.graph = Graph(library)
        self.feeds: list[tuple[Output, np.ndarray, DType]] = []
        self.inputs: list[Output] = []
        self.variables: list[tuple[Output, DType]] = []
        self.initial: list[int] = []
        for f in flat:
            self.inputs.append(self._input(f))
        grouped: list[Output | list[Output]] = []
        rest = iter(self.inputs)
        for arg, value in zip(op.inputs, case.inputs):
            grouped.append([next(rest) for _ in value] if arg.is_list else next(rest))
        attrs = {name: (op.attrs[name].kind, value) for name, value in case.attrs.items() if name in op.attrs}
        told = _from_inputs(op)
        for name, dtype in types.items():
            if name in op.attrs and name not in told and op.attrs[name].kind == "type":
                attrs[name] = ("type", dtype)
        self.node = self.graph.node(op.name, grouped, attrs)
        self.outputs = self.graph.outputs(self.node)

    def _input(self, f: Flat) -> Output:
        stored = narrow(f.value, f.dtype)
        resource = BY_NUMBER.get(f.arg.type) == RESOURCE
        if not f.arg.is_ref and not resource:
            placeholder = self.graph.placeholder(f.dtype)
            self.feeds.append((placeholder, stored, f.dtype))
            return placeholder
        attrs: dict[str, tuple[str, Any]] = {"dtype": ("type", f.dtype), "shape": ("shape", stored.shape), "shared_name": ("string", f"v{len(self.variables)}")}
        variable = Output(self.graph.node("VarHandleOp" if resource else "VariableV2", attrs=attrs), 0)
        initial = self.graph.constant(stored, f.dtype)
        self.initial.append(self.graph.node("AssignVariableOp" if resource else "Assign", [variable, initial]))
        read = variable
        if resource:
            read = Output(self.graph.node("ReadVariableOp", [variable], {"dtype": ("type", f.dtype)}), 0)
        self.variables.append((read, f.dtype))
        return variable

    def run(self, mutates: bool) -> list[tuple[np.ndarray, DType]]:
        if self.initial:
            self.graph.run(targets=self.initial)
        if not mutates:
            if self.outputs:
                return self.graph.run(self.feeds, self.outputs)
            self.graph.run(self.feeds, targets=[self.node])
            return []
        answers = self.graph.run(self.feeds, self.outputs, [self.node])
        held = self.graph.run(fetches=[v for v, _ in self.variables])
        for stored, dtype in answers:
            compare("the op's reference against its variable", widen(*held[0]), stored, dtype, 0)
        return held

    def close(self) -> None:
        self.graph.close()


def _from_inputs(op: Op) -> set[str]:
    return {a.type_attr for a in op.inputs if a.type_attr}


def _natural(value: Any, dtype: DType, arg: Arg) -> DType:
    """The dtype of one of a list of inputs of several dtypes, which NumPy's own types tell."""
    if not arg.type_list_attr:
        return dtype
    name = np.asarray(value).dtype.name
    return next((t for t in WITH_VALUES if t.stored == name), F32)


def _said(problem: Exception) -> str:
    return str(problem) if isinstance(problem, (Mismatch, Error)) else f"the table's own {type(problem).__name__}: {problem}"


def _shape_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_shape_text(v) for v in value) + "]"
    return str(list(np.shape(value))).replace(" ", "")


def _check_promises(built: Built, got: Sequence[tuple[np.ndarray, DType]]) -> None:
    for k, (output, (stored, dtype)) in enumerate(zip(built.outputs, got)):
        promised = built.graph.shape(output)
        if promised is not None and (len(promised) != stored.ndim or any(p not in (-1, d) for p, d in zip(promised, stored.shape))):
            raise Mismatch(f"output {k} was promised as {promised}, got {stored.shape}")
        if built.graph.dtype(output) != dtype:
            raise Mismatch(f"output {k} was promised as {built.graph.dtype(output)}, got {dtype}")


def compare(what: str, expected: np.ndarray, stored: np.ndarray, dtype: DType, tolerance: float, magnitude: np.ndarray | float = 0.0) -> None:
    if stored.shape != expected.shape:
        raise Mismatch(f"{what} has shape {stored.shape}, wanted {expected.shape}")
    if dtype.kind == "s" or not dtype.is_inexact:
        same = stored == narrow(expected, dtype)
    else:
        have = widen(stored, dtype)
        with np.errstate(all="ignore"):
            want = rounded(expected, dtype)
            bound = tolerance * (ABSOLUTE[dtype.name] + RELATIVE[dtype.name] * np.maximum(np.abs(want), np.abs(magnitude)))
            same = (have == want) | (np.isnan(have) & np.isnan(want)) | (np.abs(have - want) <= bound)
            same &= np.isfinite(have) | ~np.isfinite(want)
    same = np.asarray(same)
    if same.all():
        return
    at = np.unravel_index(int(np.argmin(same)), same.shape) if same.ndim else ()
    have_one = widen(stored, dtype)[at]
    want_one = narrow(expected, dtype)[at] if not dtype.is_inexact else expected[at]
    raise Mismatch(f"{what} at {[int(i) for i in at]}: got {have_one!r}, wanted {want_one!r} ({int(same.size - same.sum())} of {same.size} differ)")
