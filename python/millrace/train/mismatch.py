# SPDX-License-Identifier: Apache-2.0
"""In what a checkpoint, or a safetensors file, differs from the variables that are to be restored from it."""

from __future__ import annotations

import difflib
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

import millrace._core as _core
from millrace.framework.dtypes import as_dtype
from millrace.framework.graph import Operation, Tensor
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import TensorShape
from millrace.train.safetensors import SafetensorsFile

_SHOWN = 12  # names of a kind in a message
_RESTORES = ("RestoreV2", "Restore", "RestoreSlice")


class Wanted(NamedTuple):
    """A tensor that is restored."""

    shape: Optional[List[int]]  # of the whole tensor; None: any
    dtype: Any  # a NumPy dtype; None: any


class Restored(NamedTuple):
    """A tensor that an operation restores."""

    name: str  # in the checkpoint
    part: str  # of a variable that is cut: the whole's shape, then begin and length by dimension, "10 4 0,5:-"; "": all of it
    output: Tensor  # of the operation that reads it


class Mismatch(NamedTuple):
    """Empty (false) when all that is wanted is there as it is wanted."""

    path: str
    missing: List[Tuple[str, List[str]]]  # name, names of the checkpoint that are like it
    unexpected: List[str]  # names of the checkpoint that nothing takes
    shapes: List[Tuple[str, List[int], List[int]]]  # name, wanted, found
    dtypes: List[Tuple[str, str, str]]

    def __bool__(self) -> bool:
        return bool(self.missing or self.shapes or self.dtypes)

    def __str__(self) -> str:
        parts = ["%s does not fit these variables:" % self.path]
        parts += _lines("not in the checkpoint", ["%s%s" % (name, ", did you mean %s?" % " or ".join(near) if near else "") for name, near in self.missing])
        parts += _lines("of another shape", ["%s: wanted %s, found %s" % row for row in self.shapes])
        parts += _lines("of another type", ["%s: wanted %s, found %s" % row for row in self.dtypes])
        parts += _lines("in the checkpoint alone", self.unexpected)
        return "\n".join(parts)


def _lines(what: str, rows: List[str]) -> List[str]:
    if not rows:
        return []
    more = ["    and %d more" % (len(rows) - _SHOWN)] if len(rows) > _SHOWN else []
    return ["  %s (%d):" % (what, len(rows))] + ["    " + row for row in rows[:_SHOWN]] + more


def compare(path: str, wanted: Dict[str, Wanted], reader: Any = None) -> Mismatch:
    """What a checkpoint lacks of what is wanted; `reader` is for one that is to be read in another way."""
    reader = reader or (SafetensorsFile(path) if path.endswith(".safetensors") else _core.CheckpointReader(path))
    there = sorted(reader.names())
    known = set(there)
    lost = sorted(set(wanted) - known)
    taken = known & set(wanted)
    unexpected = [name for name in there if name not in taken]
    missing = [(name, _near(name, unexpected)) for name in lost]
    shapes, dtypes = [], []
    for name in sorted(taken):
        if wanted[name] == Wanted(None, None):
            continue
        dtype, shape = _described(reader, name)
        if wanted[name].shape is not None and shape != wanted[name].shape:
            shapes.append((name, wanted[name].shape or [], shape))
        if None not in (dtype, wanted[name].dtype) and dtype != wanted[name].dtype and object not in (dtype, wanted[name].dtype):
            dtypes.append((name, np.dtype(wanted[name].dtype).name, np.dtype(dtype).name))
    return Mismatch(path, missing, unexpected, shapes, dtypes)


def _described(reader: Any, name: str) -> Tuple[Any, List[int]]:
    """NumPy type (None: strings) and shape of a tensor."""
    if isinstance(reader, SafetensorsFile):
        return reader.describe(name)
    number, shape = reader.describe(name)
    dtype = as_dtype(number)
    return None if dtype.name == "string" else np.dtype(dtype.as_numpy_dtype), shape


def _near(name: str, others: List[str]) -> List[str]:
    """Names like this one: with the same end first, then by their letters."""
    end = name.rsplit("/", 1)[-1]
    same_end = [o for o in others if o == end or o.endswith("/" + end) or name.endswith("/" + o)]
    close = difflib.get_close_matches(name, others, 3, 0.75)
    return list(dict.fromkeys(sorted(same_end, key=lambda o: -difflib.SequenceMatcher(None, name, o).ratio()) + close))[:3]


def restored_by(operation: Operation) -> List[Restored]:
    """What an operation that restores reads: by the RestoreV2 (and older) operations that it waits for. Names that are computed are left out."""
    found: List[Restored] = []
    seen, stack = {operation}, [operation]
    while stack:
        op = stack.pop()
        if op.type in _RESTORES:
            names, parts = (constant_value(op.inputs[1]), constant_value(op.inputs[2]) if len(op.inputs) > 2 else None)
            if names is not None:
                names = names.reshape(-1)
                parts = [b""] * len(names) if parts is None else parts.reshape(-1)
                found += [Restored(_text(name), _text(part), output) for name, part, output in zip(names, parts, op.outputs)]
        for before in [t.op for t in op.inputs] + list(op.control_inputs):
            if before not in seen:
                seen.add(before)
                stack.append(before)
    return found


def _text(text: Any) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)


def wanted_by(operation: Operation) -> Dict[str, Wanted]:
    """By name, what an operation that restores reads."""
    wanted: Dict[str, Wanted] = {}
    for name, part, output in restored_by(operation):
        if part:
            shape: Optional[List[int]] = [int(d) for d in part.split()[:-1]]
        else:
            shapes = [s for s in map(_shape_of_variable, _takers(output)) if s is not None]
            shape = shapes[0] if len(shapes) == 1 else None
        dtype = output.dtype.base_dtype
        wanted[name] = Wanted(shape, None if dtype.name == "string" else dtype.as_numpy_dtype)
    return wanted


def values_for(operation: Operation, file: Any) -> Dict[Tensor, Any]:
    """The arrays of a file in place of what an operation that restores reads."""
    values: Dict[Tensor, Any] = {}
    for name, part, output in restored_by(operation):
        value = file.read(name)
        ranges = [r.split(",") for r in part.split()[-1].split(":")] if part else []
        values[output] = value[tuple(slice(None) if r == ["-"] else slice(int(r[0]), int(r[0]) + int(r[1])) for r in ranges)]
    return values


def _takers(tensor: Tensor) -> List[Operation]:
    return [taker for op in tensor.consumers() for taker in (_takers(op.outputs[0]) if op.type in ("Identity", "EnsureShape") else [op])]


def _shape_of_variable(assign: Operation) -> Optional[List[int]]:
    """That of the variable that is assigned to, when it must be the value's."""
    if assign.type == "Assign" and assign.get_attr("validate_shape"):
        shape = assign.inputs[0].get_shape()
    elif assign.type == "AssignVariableOp" and assign.inputs[0].op.type == "VarHandleOp":
        shape = TensorShape(assign.inputs[0].op.get_attr("shape"))
    else:
        return None
    return [int(d or 0) for d in shape.as_list()] if shape.is_fully_defined() else None
