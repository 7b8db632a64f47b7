# SPDX-License-Identifier: Apache-2.0
"""Conditionals, loops and boolean expressions of a function as calls of millrace.autograph.operators (`ag__`), whose parts are functions;
calls as those of millrace.autograph.conversion's converted_call (`ag_call`).

A statement's variables are the names, and attributes of names, that it assigns: `get` gives their values, `set` sets them."""

from __future__ import annotations

import ast
import collections
import copy
from typing import Any, Dict, List, Optional, Set, Tuple

from millrace.autograph.jumps import CannotConvert, Names, without_jumps

_AS_THEY_ARE = {"locals", "globals", "vars", "eval", "exec", "dir", "breakpoint"}  # they look at who calls


def _template(text: str, **parts: Any) -> List[ast.stmt]:
    """Statements, where each name of `parts` is replaced by an expression or, as a statement of its own, by statements."""

    class Fill(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> Any:
            if isinstance(node.value, ast.Name) and isinstance(parts.get(node.value.id), list):
                return parts[node.value.id] or ast.Pass()
            return self.generic_visit(node)

        def visit_Name(self, node: ast.Name) -> Any:
            value = parts.get(node.id, node)
            return ast.Name(value, node.ctx) if isinstance(value, str) else value

        def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
            node.name = parts.get(node.name, node.name)
            return self.generic_visit(node)

    made: List[ast.stmt] = []
    for s in _unplaced(ast.parse(text)).body:
        made.append(Fill().visit(s))
    return made


def _unplaced(tree: Any) -> Any:
    """A tree whose nodes are at no line: they get that of what they stand for."""
    for node in ast.walk(tree):
        for attribute in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            if hasattr(node, attribute):
                delattr(node, attribute)
    return tree


def _expression(text: str) -> ast.expr:
    made: ast.expr = _unplaced(ast.parse(text, mode="eval")).body
    return made


def _lambda(body: ast.expr) -> ast.expr:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, body)


def _ag(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load()), list(args), [])


def _dotted(node: ast.expr) -> Optional[str]:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return base and "%s.%s" % (base, node.attr)
    return None


class _Assigned(ast.NodeVisitor):
    """The names, and the attributes of names, that statements assign in this function."""

    def __init__(self) -> None:
        self.names: Dict[str, None] = {}
        self.attributes: Dict[str, None] = {}

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.names[node.id] = None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = _dotted(node)
        if isinstance(node.ctx, ast.Store) and dotted:
            self.attributes[dotted] = None
        self.generic_visit(node)

    def _named(self, node: Any) -> None:
        self.names[node.name] = None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._named(node)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._named(node)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.names[(node.asname or node.name).split(".")[0]] = None

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def _comprehension(self, node: Any) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.visit(inner.target)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def _assigned(statements: Any) -> _Assigned:
    found = _Assigned()
    for s in statements:
        found.visit(s)
    return found


class _Names(ast.NodeVisitor):
    """All names that a function mentions, nested ones too."""

    def __init__(self) -> None:
        self.all: Set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        self.all.add(node.id)

    def visit_arg(self, node: ast.arg) -> None:
        self.all.add(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.all.add(node.name)
        self.generic_visit(node)


class _Function(ast.NodeTransformer):
    """The statements of one function; nested functions each get one of their own."""

    def __init__(self, function: ast.FunctionDef, class_name: str) -> None:
        self._class_name = class_name
        mentioned = _Names()
        mentioned.visit(function)
        self._fresh = Names(mentioned.all)
        given = function.args
        everything = [*given.posonlyargs, *given.args, *given.kwonlyargs, *(a for a in (given.vararg, given.kwarg) if a)]
        self._arguments = {a.arg for a in everything}
        self._outside: Dict[str, type] = {}  # global and nonlocal names
        for s in ast.walk(function):
            if isinstance(s, (ast.Global, ast.Nonlocal)):
                self._outside.update(dict.fromkeys(s.names, type(s)))
        self._used: Dict[str, None] = {}  # variables of statements

    def run(self, function: ast.FunctionDef) -> None:
        without_jumps(function, self._fresh)
        self._loaded = collections.Counter(n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        declared = [s for s in function.body if isinstance(s, (ast.Global, ast.Nonlocal))]
        text = [s for s in function.body[:1] if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)]
        function.body = self._block([s for s in function.body if s not in declared and s not in text])
        undefined = [n for n in self._used if n not in self._arguments and n not in self._outside]
        first = [ast.Assign([ast.Name(n, ast.Store())], _ag("Undefined", ast.Constant(n))) for n in undefined]
        function.body = [*text, *declared, *first, *function.body]

    def visit(self, node: ast.AST) -> Any:
        new = super().visit(node)
        for n in new if isinstance(new, list) else [new]:
            if not hasattr(n, "lineno") and hasattr(node, "lineno"):
                ast.copy_location(n, node)
        return new

    def _block(self, statements: List[ast.stmt]) -> List[ast.stmt]:
        made: List[ast.stmt] = []
        for s in statements:
            new = self.visit(s)
            made += new if isinstance(new, list) else [new]
        return made

    # Statements.

    def _parts(self, statements: Any, without: Any = ()) -> Tuple[List[ast.stmt], Dict[str, Any]]:
        """(the functions get and set, what a template needs) for the variables that statements assign."""
        found = _assigned(statements)
        names = [n for n in found.names if not n.startswith("ag_state")]
        attributes = [a for a in found.attributes if a.split(".")[0] not in found.names]
        self._used.update(dict.fromkeys(names))
        get, put = self._fresh.new("ag_get"), self._fresh.new("ag_set")
        values = [_ag("ld", _lambda(ast.Name(n, ast.Load())), ast.Constant(n)) if n in self._outside else ast.Name(n, ast.Load()) for n in names]
        values += [_ag("ld", _lambda(_expression(a)), ast.Constant(a)) for a in attributes]
        targets: List[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
        states = ast.Name("ag_state", ast.Load())
        set_them: List[ast.stmt] = self._declared(names)
        if names:
            which = ast.Subscript(states, ast.Slice(None, ast.Constant(len(names)), None), ast.Load())
            set_them.append(ast.Assign([ast.Tuple(targets, ast.Store())], which))
        for i, a in enumerate(attributes, len(names)):
            base, _, attribute = a.rpartition(".")
            value = ast.Subscript(states, ast.Constant(i), ast.Load())
            set_them.append(ast.Expr(_ag("set_attribute", _expression(base), ast.Constant(attribute), value)))
        parts = {
            "GET": get,
            "SET": put,
            "VALUES": ast.Tuple(values, ast.Load()),
            "SETS": set_them,
            "NAMES": ast.Tuple([ast.Constant(n) for n in [*names, *attributes]], ast.Load()),
        }
        return self._declared(names), parts

    def _declared(self, names: List[str]) -> List[ast.stmt]:
        outer = [n for n in names if self._outside.get(n) is ast.Global]
        here = [n for n in names if self._outside.get(n) is not ast.Global]
        made: List[ast.stmt] = [ast.Global(outer)] if outer else []
        return [*made, ast.Nonlocal(here)] if here else made

    def visit_If(self, node: ast.If) -> Any:
        declared, parts = self._parts([*node.body, *node.orelse])
        test = self.visit(node.test)
        body, orelse = self._block(node.body), self._block(node.orelse)
        return _template(
            "def BODY():\n DECLARED\n TRUE\ndef ORELSE():\n DECLARED\n FALSE\ndef GET():\n return VALUES\ndef SET(ag_state):\n SETS\n"
            "ag__.if_stmt(TEST, BODY, ORELSE, GET, SET, NAMES)",
            BODY=self._fresh.new("ag_body"),
            ORELSE=self._fresh.new("ag_orelse"),
            TRUE=body,
            FALSE=orelse,
            DECLARED=declared,
            TEST=test,
            **parts,
        )

    def visit_While(self, node: ast.While) -> Any:
        return self._loop(node, "ag__.while_stmt(lambda: TEST, BODY, GET, SET, NAMES, LOCAL, lambda: OPTIONS)", self.visit(node.test), [])

    def visit_For(self, node: ast.For) -> Any:
        item = self._fresh.new("ag_item")
        first = ast.copy_location(ast.Assign([node.target], ast.Name(item, ast.Load())), node)
        stopped = getattr(node, "ag_stopped", None)
        more = ast.Constant(None) if stopped is None else _lambda(_ag("not_", ast.Name(stopped, ast.Load())))
        made = self._loop(node, "ag__.for_stmt(TEST, MORE, BODY, GET, SET, NAMES, LOCAL, lambda: OPTIONS)", self.visit(node.iter), [first], more)
        made[0].args.args = [ast.arg(item)]  # type: ignore[attr-defined]
        return made

    def _loop(self, node: Any, call: str, test: ast.expr, first: List[ast.stmt], more: Any = None) -> List[ast.stmt]:
        options, body = self._options([*first, *node.body])
        local = [n for n in _assigned(first).names if n not in self._outside]
        local += [n for n in _written_first(body) if n not in self._outside and n not in local and self._loaded[n] == _loads_in(body, n)]
        declared, parts = self._parts(body)
        return _template(
            "def BODY():\n DECLARED\n TRUE\ndef GET():\n return VALUES\ndef SET(ag_state):\n SETS\n" + call,
            BODY=self._fresh.new("ag_body"),
            TRUE=self._block(body),
            DECLARED=declared,
            TEST=test,
            MORE=more,
            LOCAL=ast.Tuple([ast.Constant(n) for n in local], ast.Load()),
            OPTIONS=options,
            **parts,
        )

    def _options(self, body: List[ast.stmt]) -> Tuple[ast.expr, List[ast.stmt]]:
        """The arguments of set_loop_options, a call at the beginning of a loop's body."""
        for i, s in enumerate(body):
            if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and (_dotted(s.value.func) or "").split(".")[-1] == "set_loop_options":
                call = copy.deepcopy(s.value)
                asked = ast.Call(ast.Attribute(ast.Name("ag__", ast.Load()), "loop_options", ast.Load()), call.args, call.keywords)
                return asked, body[:i] + body[i + 1 :]
        return ast.Constant(None), body

    def visit_Assert(self, node: ast.Assert) -> Any:
        message = _lambda(self.visit(node.msg)) if node.msg else ast.Constant(None)
        return ast.Expr(_ag("assert_stmt", self.visit(node.test), message))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        restate(node, self._class_name)
        return node

    def visit_AsyncFunctionDef(self, node: Any) -> Any:
        return node

    visit_ClassDef = visit_AsyncFunctionDef

    # Expressions.

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.body = self.visit(node.body)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return _ag(name, *(_lambda(self.visit(v)) for v in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.visit(node.operand)
        return _ag("not_", operand) if isinstance(node.op, ast.Not) else ast.UnaryOp(node.op, operand)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) == 1:
            return self.generic_visit(node)
        operands = [self.visit(v) for v in (node.left, *node.comparators)]
        if not all(isinstance(v, (ast.Name, ast.Constant)) for v in operands[1:-1]):
            return ast.Compare(operands[0], node.ops, operands[1:])  # what is in the middle is evaluated once
        pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(operands, node.ops, operands[1:])]
        return _ag("and_", *(_lambda(p) for p in pairs))

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return _ag("if_exp", self.visit(node.test), _lambda(self.visit(node.body)), _lambda(self.visit(node.orelse)))

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id in _AS_THEY_ARE or (_dotted(node.func) or "").startswith("ag__."):
            return self.generic_visit(node)
        function, args = self.visit(node.func), [self.visit(a) for a in node.args]
        keywords = [(k.arg, self.visit(k.value)) for k in node.keywords]
        named = ast.Dict([None if k is None else ast.Constant(k) for k, _ in keywords], [v for _, v in keywords])  # type: ignore[misc]
        return ast.Call(ast.Name("ag_call", ast.Load()), [function, ast.Tuple(args, ast.Load()), named], [])


def _loads_in(statements: List[ast.stmt], name: str) -> int:
    return sum(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id == name for s in statements for n in ast.walk(s))


def _written_first(body: List[ast.stmt]) -> List[str]:
    """Names that each pass of a loop's body assigns before it reads them."""
    found: List[str] = []
    read: Set[str] = set()
    for s in body:
        read |= {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if isinstance(s, ast.Assign):
            stored = [n.id for t in s.targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
            found += [n for n in stored if n not in read and n not in found]
    return found


def restate(function: ast.FunctionDef, class_name: str = "") -> None:
    """Restates a function's body. CannotConvert where it is a generator."""
    own = [*function.args.posonlyargs, *function.args.args][:1]
    for inner in ast.walk(function):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "super" and not inner.args and own:
            inner.args = [ast.copy_location(ast.Name(name, ast.Load()), inner) for name in ("__class__", own[0].arg)]
        if isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            raise CannotConvert("a generator or coroutine")
        if isinstance(inner, ast.Delete) and any(isinstance(t, ast.Name) for t in inner.targets):
            raise CannotConvert("`del` of a name")
        if type(inner).__name__ in ("Match", "TryStar"):
            raise CannotConvert("`%s`" % {"Match": "match", "TryStar": "except*"}[type(inner).__name__])
        if isinstance(inner, ast.NamedExpr):
            raise CannotConvert("an assignment within an expression")
        if isinstance(inner, ast.Attribute) and class_name and inner.attr.startswith("__") and not inner.attr.endswith("__"):
            inner.attr = "_%s%s" % (class_name.lstrip("_"), inner.attr)  # private to the class, as the compiler does within it
    _Function(function, class_name).run(function)
