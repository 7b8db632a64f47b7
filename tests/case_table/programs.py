# SPDX-License-Identifier: Apache-2.0
"""Ops that a single node does not show: each is a little graph of its own."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable

import numpy as np

import data_flow_programs
from capi import Error, Graph, Library, Output
from dtypes import BOOL, F32, STRING, narrow

INVALID_ARGUMENT = 3
NOT_FOUND = 5
FAILED_PRECONDITION = 9
ABORTED = 10
_VALUE = np.arange(6, dtype=np.float32).reshape(2, 3)
_TYPED = {"dtype": ("type", F32), "shape": ("shape", (2, 3))}


def _constant(g: Graph, value: np.ndarray = _VALUE) -> Output:
    return g.constant(value, F32)


def _text(g: Graph, value: object) -> Output:
    return g.constant(narrow(np.asarray(value, object), STRING), STRING)


def _expect(have: np.ndarray, want: np.ndarray) -> None:
    assert np.array_equal(have, want), f"got {have.tolist()}, wanted {want.tolist()}"


def _refused(code: int, run: Callable[[], object]) -> None:
    try:
        run()
    except Error as error:
        assert error.code == code, f"status {error.code}, wanted {code}"
        return
    raise AssertionError(f"ran, wanted status {code}")


def feeding(g: Graph) -> None:
    """Const and Placeholder: what goes in comes out; an unfed placeholder is refused."""
    fed = g.placeholder(F32)
    _expect(g.run([(fed, _VALUE, F32)], [fed])[0][0], _VALUE)
    _expect(g.run(fetches=[_constant(g)])[0][0], _VALUE)
    _refused(INVALID_ARGUMENT, lambda: g.run(fetches=[fed]))


def older_placeholder(g: Graph) -> None:
    fed = Output(g.node("PlaceholderV2", attrs=dict(_TYPED)), 0)
    _expect(g.run([(fed, _VALUE, F32)], [fed])[0][0], _VALUE)


def order(g: Graph) -> None:
    """Control edges through NoOp and ControlTrigger: the assignment is before the read."""
    for op in ("NoOp", "ControlTrigger"):
        variable = Output(g.node("VariableV2", attrs={**_TYPED, "shared_name": ("string", op)}), 0)
        assign = g.node("Assign", [variable, _constant(g)])
        gate = g.node(op, after=[assign])
        read = g.node("Identity", [variable], after=[gate])
        _expect(g.run(fetches=[Output(read, 0)])[0][0], _VALUE)


def variables(g: Graph) -> None:
    """Variables of one shared name are one; an unset one is refused."""
    for op, assign in (("Variable", "Assign"), ("VariableV2", "Assign"), ("VarHandleOp", "AssignVariableOp")):
        attrs = {**_TYPED, "shared_name": ("string", "one" + op)}
        first, second = (Output(g.node(op, attrs=attrs), 0) for _ in range(2))
        read = second if assign == "Assign" else Output(g.node("ReadVariableOp", [second], {"dtype": ("type", F32)}), 0)
        _refused(FAILED_PRECONDITION, functools.partial(g.run, fetches=[Output(g.node("Identity", [read]), 0)]))
        g.run(targets=[g.node(assign, [first, _constant(g)])])
        _expect(g.run(fetches=[read])[0][0], _VALUE)


def destroyed(g: Graph) -> None:
    attrs = {**_TYPED, "shared_name": ("string", "gone")}
    handle = Output(g.node("VarHandleOp", attrs=attrs), 0)
    held = g.node("VarIsInitializedOp", [handle])
    g.run(targets=[g.node("AssignVariableOp", [handle, _constant(g)])])
    assert bool(g.run(fetches=[Output(held, 0)])[0][0]), "unset after its assignment"
    g.run(targets=[g.node("DisableCopyOnRead", [handle])])
    g.run(targets=[g.node("DestroyResourceOp", [handle], {"ignore_lookup_error": ("bool", False)})])
    assert not bool(g.run(fetches=[Output(held, 0)])[0][0]), "set after its end"
    _refused(NOT_FOUND, lambda: g.run(targets=[g.node("DestroyResourceOp", [handle], {"ignore_lookup_error": ("bool", False)})]))


def temporary(g: Graph) -> None:
    """A temporary variable lives within one step."""
    held = Output(g.node("TemporaryVariable", attrs={**_TYPED, "var_name": ("string", "brief")}), 0)
    assigned = Output(g.node("Assign", [held, _constant(g)]), 0)
    added = Output(g.node("AssignAdd", [assigned, _constant(g)]), 0)
    value = Output(g.node("DestroyTemporaryVariable", [added], {"var_name": ("string", "brief")}), 0)
    for _ in range(2):
        _expect(g.run(fetches=[value])[0][0], _VALUE + _VALUE)


def asserted(g: Graph) -> None:
    for truth in (True, False):
        node = g.node("Assert", [g.constant(np.array(truth), BOOL), [_constant(g)]])
        if truth:
            g.run(targets=[node])
        else:
            _refused(INVALID_ARGUMENT, functools.partial(g.run, targets=[node]))


def aborted(g: Graph) -> None:
    """Abort ends the step, not the process."""
    _refused(ABORTED, functools.partial(g.run, targets=[g.node("Abort", attrs={"error_msg": ("string", "enough")})]))
    g.run(targets=[g.node("Abort", attrs={"exit_without_error": ("bool", True)})])


def printed(g: Graph) -> None:
    """Print hands its input on; PrintV2 writes to a file."""
    node = g.node("Print", [_constant(g), [_constant(g)]], {"first_n": ("int", 0)})
    _expect(g.run(fetches=[Output(node, 0)])[0][0], _VALUE)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out")
        g.run(targets=[g.node("PrintV2", [_text(g, "hello")], {"output_stream": ("string", "file://" + path)})])
        with open(path, encoding="utf-8") as file:
            assert file.read() == "hello\n", "PrintV2 wrote something else"


def checkpoints(g: Graph) -> None:
    """Two parts saved, merged and restored, a slice of one too; a name that is not there is refused."""
    with tempfile.TemporaryDirectory() as folder:
        parts = [os.path.join(folder, f"part{i}") for i in range(2)]
        whole = os.path.join(folder, "whole")
        for i, part in enumerate(parts):
            values = [_constant(g, _VALUE + i)]
            g.run(targets=[g.node("SaveV2", [_text(g, part), _text(g, [f"x{i}"]), _text(g, [""]), values])])
        g.run(targets=[g.node("MergeV2Checkpoints", [_text(g, parts), _text(g, whole)])])
        types = {"dtypes": ("list(type)", [F32, F32])}
        restore = g.node("RestoreV2", [_text(g, whole), _text(g, ["x1", "x0"]), _text(g, ["", "2 3 0,2:1,2"])], types)
        got = g.run(fetches=g.outputs(restore))
        _expect(got[0][0], _VALUE + 1)
        _expect(got[1][0], _VALUE[0:2, 1:3])
        lost = g.node("RestoreV2", [_text(g, whole), _text(g, ["x2"]), _text(g, [""])], {"dtypes": ("list(type)", [F32])})
        _refused(NOT_FOUND, lambda: g.run(fetches=[Output(lost, 0)]))


PROGRAMS: dict[Callable[[Graph], None], tuple[str, ...]] = {
    feeding: ("Const", "Placeholder"),
    older_placeholder: ("PlaceholderV2",),
    order: ("NoOp", "ControlTrigger"),
    variables: ("Variable", "VariableV2", "VarHandleOp"),
    destroyed: ("DestroyResourceOp", "DisableCopyOnRead"),
    temporary: ("TemporaryVariable", "DestroyTemporaryVariable"),
    asserted: ("Assert",),
    aborted: ("Abort",),
    printed: ("Print", "PrintV2"),
    **data_flow_programs.PROGRAMS,
    checkpoints: ("SaveV2", "MergeV2Checkpoints", "RestoreV2"),
}


def run_all(library: Library, only: str) -> list[str]:
    wrong = []
    for program, ops in PROGRAMS.items():
        if only and not any(only.lower() in op.lower() for op in ops):
            continue
        g = Graph(library)
        try:
            program(g)
        except (AssertionError, Error) as problem:
            wrong.append(f"program {program.__name__} ({', '.join(ops)}): {problem}")
        finally:
            g.close()
    return wrong
