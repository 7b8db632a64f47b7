# SPDX-License-Identifier: Apache-2.0
"""Programs over conditionals, stacks, tensor arrays and tensor lists: what goes in comes out where it should."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from capi import Graph, Output
from dtypes import BOOL, F32, I32, I64, DType, narrow

_ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
_TYPE: dict[str, Any] = {"dtype": ("type", F32)}
_ELEMENT: dict[str, Any] = {"element_dtype": ("type", F32)}
Attrs = dict[str, Any]


def _expect(have: np.ndarray, want: Any) -> None:
    assert np.array_equal(have, want), f"got {have.tolist()}, wanted {np.asarray(want).tolist()}"


def _is(g: Graph, fetches: Sequence[Output], wanted: Sequence[Any]) -> None:
    for (have, _), want in zip(g.run(fetches=fetches), wanted, strict=True):
        _expect(have, want)


class Maker:
    def __init__(self, g: Graph) -> None:
        self.g = g

    def constant(self, value: object, dtype: DType = F32) -> Output:
        return self.g.constant(narrow(np.asarray(value), dtype), dtype)

    def many(self, op: str, *inputs: Output | list[Output], after: Sequence[Output] = (), **attrs: Any) -> list[Output]:
        return self.g.outputs(self.g.node(op, inputs, attrs, [o.oper for o in after]))

    def one(self, op: str, *inputs: Output | list[Output], after: Sequence[Output] = (), **attrs: Any) -> Output:
        return self.many(op, *inputs, after=after, **attrs)[0]

    def variable(self, value: float, name: str) -> Output:
        held = self.one("VariableV2", dtype=("type", F32), shape=("shape", ()), shared_name=("string", name))
        self.g.run(targets=[self.g.node("Assign", [held, self.constant(value)])])
        return held


def conditionals(g: Graph) -> None:
    """The branch that is taken is alive, of values and of references."""
    m = Maker(g)
    first, second = m.variable(2, "first"), m.variable(5, "second")
    for truth in (True, False):
        pred = m.constant(truth, BOOL)
        no, yes = m.many("Switch", m.constant(3.0), pred)
        merged = m.many("Merge", [m.one("Neg", no), m.one("Square", yes)])
        _is(g, merged, [9.0 if truth else -3.0, int(truth)])
        no, yes = m.many("RefSwitch", first, pred)
        both = m.many("RefMerge", [no, yes])
        _is(g, [m.one("Identity", both[0]), both[1]], [2.0, int(truth)])
    for index, want in ((0, 2.0), (1, 5.0)):
        _is(g, [m.one("Identity", m.one("RefSelect", m.constant(index, I32), [first, second]))], [want])


def stacks(g: Graph) -> None:
    m = Maker(g)
    for suffix in ("", "V2"):
        attrs: Attrs = {"elem_type": ("type", F32), "stack_name": ("string", "s" + suffix)}
        handle = m.one("Stack" + suffix, *([m.constant(9, I32)] if suffix else []), **attrs)
        first = m.one("StackPush" + suffix, handle, m.constant([1.0]))
        second = m.one("StackPush" + suffix, handle, m.constant([2.0, 3.0]), after=[first])
        one = m.one("StackPop" + suffix, handle, after=[second], elem_type=("type", F32))
        two = m.one("StackPop" + suffix, handle, after=[one], elem_type=("type", F32))
        close = g.node("StackClose" + suffix, [handle], after=[two.oper])
        out = g.run(fetches=[one, two], targets=[close])
        _expect(out[0][0], [2.0, 3.0])
        _expect(out[1][0], [1.0])


class Arrays:
    """One generation of the tensor array ops."""

    def __init__(self, g: Graph, suffix: str) -> None:
        self.m, self.g, self.suffix = Maker(g), g, suffix

    def make(self, size: int) -> tuple[Output, Output]:
        attrs: Attrs = {**_TYPE, "clear_after_read": ("bool", False)}
        outputs = self.m.many("TensorArray" + self.suffix, self.m.constant(size, I32), **attrs)
        return outputs[0], outputs[1] if len(outputs) > 1 else self.m.constant(0.0)

    def op(self, name: str, *inputs: Output, **attrs: Any) -> list[Output]:
        return self.m.many(f"TensorArray{name}{self.suffix}", *inputs, **attrs)

    def filled(self) -> tuple[Output, Output]:
        handle, flow = self.make(4)
        for i, row in enumerate(_ROWS):
            flow = self.op("Write", handle, self.m.constant(i, I32), self.m.constant(row), flow)[0]
        return handle, flow

    def check(self) -> None:
        handle, flow = self.filled()
        at = self.m.constant(2, I32)
        _is(self.g, [self.op("Read", handle, at, flow, **_TYPE)[0], self.op("Size", handle, flow)[0]], [_ROWS[2], 4])
        handle, flow = self.filled()
        picked = self.m.constant([3, 0], I32)
        _is(self.g, self.op("Gather", handle, picked, flow, **_TYPE), [_ROWS[[3, 0]]])
        handle, flow = self.make(4)
        flow = self.op("Scatter", handle, self.m.constant([1, 0], I32), self.m.constant(_ROWS[:2]), flow)[0]
        _is(self.g, self.op("Read", handle, self.m.constant(0, I32), flow, **_TYPE), [_ROWS[1]])
        handle, flow = self.make(3)
        flow = self.op("Split", handle, self.m.constant(_ROWS), self.m.constant([1, 0, 3], I64), flow)[0]
        _is(self.g, self.op("Concat", handle, flow, **_TYPE), [_ROWS, [1, 0, 3]])
        handle, flow = self.filled()
        self.g.run(fetches=[flow], targets=[self.g.node("TensorArrayClose" + self.suffix, [handle], after=[flow.oper])])

    def check_gradient(self) -> None:
        """What is written to a gradient twice adds up."""
        handle, flow = self.filled()
        outputs = self.op("Grad", handle, flow, source=("string", "back"))
        gradient, back = outputs[0], outputs[1] if len(outputs) > 1 else flow
        at = self.m.constant(1, I32)
        once = self.op("Write", gradient, at, self.m.constant(_ROWS[0]), back)[0]
        twice = self.op("Write", gradient, at, self.m.constant(_ROWS[3]), once)[0]
        _is(self.g, self.op("Read", gradient, at, twice, **_TYPE), [_ROWS[0] + _ROWS[3]])


def resource_arrays(g: Graph) -> None:
    arrays = Arrays(g, "V3")
    arrays.check()
    arrays.check_gradient()
    handle, flow = arrays.make(1)
    flow = arrays.op("Write", handle, arrays.m.constant(0, I32), arrays.m.constant(_ROWS[0]), flow)[0]
    prefix = arrays.m.constant([2], I32)
    gradient, back = arrays.m.many("TensorArrayGradWithShape", handle, flow, prefix, source=("string", "wide"))
    at = arrays.m.constant(0, I32)
    written = arrays.op("Write", gradient, at, arrays.m.constant(_ROWS[:2]), back)[0]
    _is(g, arrays.op("Read", gradient, at, written, **_TYPE), [_ROWS[:2]])


def named_arrays(g: Graph) -> None:
    arrays = Arrays(g, "V2")
    arrays.check()
    arrays.check_gradient()


def reference_arrays(g: Graph) -> None:
    arrays = Arrays(g, "")
    arrays.check()
    handle, flow = arrays.make(4)
    flow = arrays.op("Unpack", handle, arrays.m.constant(_ROWS), flow)[0]
    _is(g, arrays.op("Pack", handle, flow, **_TYPE), [_ROWS])


def _list_of(m: Maker, rows: np.ndarray) -> Output:
    return m.one("TensorListFromTensor", m.constant(rows), m.constant([3], I32))


def _stacked(m: Maker, handle: Output) -> Output:
    return m.one("TensorListStack", handle, m.constant([3], I32), **_ELEMENT)


def lists(g: Graph) -> None:
    """Built up, cut down, written in the middle; the list that was read from stays as it was."""
    m = Maker(g)
    shape = m.constant([3], I32)
    empty = m.one("EmptyTensorList", shape, m.constant(9, I32), **_ELEMENT)
    one = m.one("TensorListPushBack", empty, m.constant(_ROWS[0]))
    two = m.one("TensorListPushBack", one, m.constant(_ROWS[1]))
    _is(g, [_stacked(m, two), m.one("TensorListLength", one), _stacked(m, one)], [_ROWS[:2], 1, _ROWS[:1]])
    left, last = m.many("TensorListPopBack", two, shape, **_ELEMENT)
    _is(g, [_stacked(m, left), last], [_ROWS[:1], _ROWS[1]])
    whole = _list_of(m, _ROWS)
    changed = m.one("TensorListSetItem", whole, m.constant(2, I32), m.constant(_ROWS[0]))
    item = m.one("TensorListGetItem", changed, m.constant(2, I32), shape, **_ELEMENT)
    _is(g, [item, _stacked(m, whole)], [_ROWS[0], _ROWS])
    picked = m.one("TensorListGather", whole, m.constant([3, 1], I32), shape, **_ELEMENT)
    _is(g, [picked, m.one("TensorListElementShape", whole, shape_type=("type", I32))], [_ROWS[[3, 1]], [3]])
    reserved = m.one("TensorListReserve", shape, m.constant(2, I32), **_ELEMENT)
    _is(g, [_stacked(m, reserved)], [np.zeros((2, 3))])
    resized = m.one("TensorListResize", whole, m.constant(2, I32))
    _is(g, [_stacked(m, resized)], [_ROWS[:2]])


def joined_lists(g: Graph) -> None:
    m = Maker(g)
    whole, shape = _list_of(m, _ROWS), m.constant([3], I32)
    both = m.one("TensorListConcatLists", whole, _list_of(m, _ROWS[:1]), **_ELEMENT)
    _is(g, [_stacked(m, both)], [_ROWS[[0, 1, 2, 3, 0]]])
    swapped = m.constant([1, 0], I32)
    first_two = m.constant(_ROWS[:2])
    _is(g, [_stacked(m, m.one("TensorListScatter", first_two, swapped, shape))], [_ROWS[[1, 0]]])
    wider = m.one("TensorListScatterV2", first_two, swapped, shape, m.constant(3, I32))
    _is(g, [m.one("TensorListLength", wider)], [3])
    into = m.one("TensorListScatterIntoExistingList", whole, first_two, m.constant([3, 2], I32))
    _is(g, [_stacked(m, into)], [_ROWS[[0, 1, 1, 0]]])
    parts = m.one("TensorListSplit", m.constant(_ROWS), m.constant([-1, 3], I32), m.constant([1, 3], I64))
    _is(g, m.many("TensorListConcat", parts, **_ELEMENT), [_ROWS, [1, 3]])
    leading = m.constant(np.zeros(0), I64)
    _is(g, m.many("TensorListConcatV2", parts, m.constant([-1, 3], I32), leading, **_ELEMENT), [_ROWS, [1, 3]])
    pair = m.one("Pack", [_list_of(m, _ROWS[:1]), _list_of(m, _ROWS[1:2])])
    longer = m.one("TensorListPushBackBatch", pair, m.constant(_ROWS[2:]))
    second = m.many("Unpack", longer, num=("int", 2))[1]
    _is(g, [_stacked(m, second)], [_ROWS[[1, 3]]])


def optionals(g: Graph) -> None:
    m = Maker(g)
    held = m.one("OptionalFromValue", [m.constant(_ROWS), m.constant(7, I32)])
    kinds: Attrs = {"output_types": ("list(type)", [F32, I32]), "output_shapes": ("list(shape)", [_ROWS.shape, ()])}
    _is(g, m.many("OptionalGetValue", held, **kinds), [_ROWS, 7])
    _is(g, [m.one("OptionalHasValue", held), m.one("OptionalHasValue", m.one("OptionalNone"))], [True, False])


def _array_ops(suffix: str, names: str) -> tuple[str, ...]:
    return tuple(f"TensorArray{name}{suffix}" for name in ["", *names.split()])


_COMMON = "Write Read Size Gather Scatter Split Concat Close"
PROGRAMS: dict[Callable[[Graph], None], tuple[str, ...]] = {
    conditionals: ("Switch", "Merge", "RefSwitch", "RefMerge", "RefSelect"),
    optionals: tuple("Optional" + name for name in "FromValue GetValue HasValue None".split()),
    stacks: tuple(name + suffix for name in ("Stack", "StackPush", "StackPop", "StackClose") for suffix in ("", "V2")),
    resource_arrays: (*_array_ops("V3", _COMMON + " Grad"), "TensorArrayGradWithShape"),
    named_arrays: _array_ops("V2", _COMMON + " Grad"),
    reference_arrays: _array_ops("", _COMMON + " Unpack Pack"),
    lists: tuple("TensorList" + name for name in (
        "PushBack Length PopBack FromTensor SetItem GetItem Gather ElementShape Reserve Resize Stack").split())
    + ("EmptyTensorList",),
    joined_lists: tuple("TensorList" + name for name in (
        "ConcatLists Scatter ScatterV2 ScatterIntoExistingList Split Concat ConcatV2 PushBackBatch").split()),
}  # fmt: skip
