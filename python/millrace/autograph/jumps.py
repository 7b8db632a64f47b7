# SPDX-License-Identifier: Apache-2.0
"""return, break and continue within statements, as assignments: so each block of a function runs to its end, and can be a branch or a
loop's body of the graph.

What follows a conditional that may jump is stated at the end of both of its branches. A jump out of a loop, or of a `with` or `try`, sets a
flag that is looked at behind it."""

from __future__ import annotations

import ast
import copy
import dataclasses
from typing import Any, Callable, List, Optional, Set

RESULT = "ag_result"
_MOST_NODES = 20_000  # of a function: what follows conditionals is copied


class CannotConvert(Exception):
    """A function that holds what is not converted."""


class Names:
    """New names for a function that uses others."""

    def __init__(self, used: Set[str]) -> None:
        self._used = set(used)

    def new(self, stem: str) -> str:
        name, count = stem, 0
        while name in self._used:
            count += 1
            name = "%s_%d" % (stem, count)
        self._used.add(name)
        return name


def _name(name: str, store: bool = False) -> ast.expr:
    return ast.Name(name, ast.Store() if store else ast.Load())


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([_name(name, True)], value)


def _flag(name: str, value: bool) -> ast.stmt:
    return _assign(name, ast.Constant(value))


def _if(name: str, body: List[ast.stmt], orelse: Optional[List[ast.stmt]] = None) -> ast.stmt:
    return ast.If(_name(name), body, orelse or [])


def _and_not(flag: str, test: ast.expr) -> ast.expr:
    return ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), _name(flag)), test])


@dataclasses.dataclass
class _Jumps:
    """What a jump becomes. None: it stays."""

    on_return: Callable[[ast.expr], List[ast.stmt]]
    on_break: Callable[[], List[ast.stmt]]
    on_continue: Callable[[], List[ast.stmt]]


def _finds(kinds: Any, statements: Any, into_loops: bool) -> bool:
    """Whether there is a statement of these kinds, outside of nested functions (and loops)."""
    for s in statements:
        if isinstance(s, kinds):
            return True
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(s, (ast.For, ast.While)) and not into_loops:
            if _finds(kinds, s.orelse, into_loops):
                return True
            continue
        inner = [x for field in ("body", "orelse", "finalbody") for x in getattr(s, field, ())]
        inner += [x for h in getattr(s, "handlers", ()) for x in h.body]
        if _finds(kinds, inner, into_loops):
            return True
    return False


def _may_jump(s: ast.stmt) -> bool:
    return _finds(ast.Return, [s], True) or _finds((ast.Break, ast.Continue), [s], False)


class _Lowering:
    def __init__(self, names: Names) -> None:
        self._names = names
        self._count = 0

    def block(self, statements: List[ast.stmt], jumps: _Jumps) -> List[ast.stmt]:
        made: List[ast.stmt] = []
        for i, s in enumerate(statements):
            self._count += 1
            if self._count > _MOST_NODES:
                raise CannotConvert("its conditionals return at too many places")
            rest = statements[i + 1 :]
            if isinstance(s, ast.Return):
                return made + [ast.copy_location(x, s) for x in jumps.on_return(s.value or ast.Constant(None))]
            if isinstance(s, ast.Break):
                return made + jumps.on_break()
            if isinstance(s, ast.Continue):
                return made + jumps.on_continue()
            if isinstance(s, (ast.For, ast.While)):
                loop, behind = self._loop(s, jumps)
                made += loop
                if behind:
                    return made + self.block(behind + rest, jumps)
            elif not _may_jump(s):
                made.append(self._inside(s, jumps))
            elif isinstance(s, ast.If):
                body, orelse = (self.block(copy.deepcopy(part + rest), jumps) for part in (s.body, s.orelse))
                return [*made, ast.copy_location(ast.If(s.test, body or [ast.Pass()], orelse), s)]
            else:
                block, behind = self._guarded(s)
                made += block
                return made + self.block(behind + rest, jumps)
        return made

    def _inside(self, s: ast.stmt, jumps: _Jumps) -> ast.stmt:
        """A statement that does not jump, with the loops in it."""
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return s
        for field in ("body", "orelse", "finalbody"):
            if getattr(s, field, None):
                setattr(s, field, self.block(getattr(s, field), jumps))
        for handler in getattr(s, "handlers", ()):
            handler.body = self.block(handler.body, jumps)
        return s

    def _returning(self, flag: str) -> Callable[[ast.expr], List[ast.stmt]]:
        return lambda value: [_flag(flag, True), _assign(RESULT, value)]

    def _loop(self, s: Any, jumps: _Jumps) -> Any:
        """The loop's statements, and what is to be stated behind them."""
        returns, breaks = _finds(ast.Return, s.body, True), _finds(ast.Break, s.body, False)
        stopped, returned = self._names.new("ag_break"), self._names.new("ag_return")
        stop = [_flag(stopped, True)]
        inner = _Jumps(lambda value: self._returning(returned)(value) + copy.deepcopy(stop), lambda: copy.deepcopy(stop), list)
        s.body = self.block(s.body, inner) or [ast.Pass()]
        orelse, s.orelse = s.orelse, []
        if not returns and not breaks:
            return [s], orelse
        made = [_flag(stopped, False)]
        if returns:
            made.append(_flag(returned, False))
        if isinstance(s, ast.While):
            s.test = _and_not(stopped, s.test)
        else:
            s.ag_stopped = stopped  # type: ignore[attr-defined]
        behind = [_if(returned, [ast.Return(_name(RESULT))])] if returns else []
        if orelse:
            behind.append(ast.If(ast.UnaryOp(ast.Not(), _name(stopped)), orelse, []))
        return [*made, s], behind

    def _guarded(self, s: Any) -> Any:
        """A `with` or `try` that something jumps out of: flags, looked at behind it."""
        flags = [self._names.new("ag_return"), self._names.new("ag_break"), self._names.new("ag_continue")]
        used = [_finds(ast.Return, [s], True), _finds(ast.Break, [s], False), _finds(ast.Continue, [s], False)]
        inner = _Jumps(self._returning(flags[0]), lambda: [_flag(flags[1], True)], lambda: [_flag(flags[2], True)])
        if isinstance(s, ast.Try) and s.orelse and _finds((ast.Return, ast.Break, ast.Continue), s.body, True):
            raise CannotConvert("a `try` with `else` that is jumped out of")
        self._inside(s, inner)
        then: List[ast.stmt] = [ast.Return(_name(RESULT)), ast.Break(), ast.Continue()]
        made = [_flag(f, False) for f, u in zip(flags, used) if u]
        return [*made, s], [_if(f, [t]) for f, u, t in zip(flags, used, then) if u]


def without_jumps(function: Any, names: Names) -> None:
    """Restates the body of a FunctionDef: it has one return, the last statement, and neither break nor continue."""

    def never() -> List[ast.stmt]:
        raise CannotConvert("a jump outside of a loop")

    last = function.body[-1]
    early = _finds(ast.Return, function.body[:-1] if isinstance(last, ast.Return) else function.body, True)
    on_return: Any = (lambda value: [_assign(RESULT, value)]) if early else (lambda value: [ast.Return(value)])
    body = function.body if isinstance(last, ast.Return) or not early else [*function.body, ast.Return(ast.Constant(None))]
    function.body = _Lowering(names).block(body, _Jumps(on_return, never, never))
    if early:
        function.body.append(ast.Return(ast.Call(ast.Attribute(_name("ag__"), "returned", ast.Load()), [_name(RESULT)], [])))
