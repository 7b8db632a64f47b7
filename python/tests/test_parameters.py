# SPDX-License-Identifier: Apache-2.0
"""Parameters that are accepted and never read: each must be obeyed, refused or dropped by `del` with a reason.

A method that fills in an empty one of another class (a hook's, a callback's, a layer's) has to take what is handed to it.
"""

import ast
import os
import re

HERE = os.path.dirname(__file__)
PACKAGE = os.path.join(HERE, "..", "millrace")


def is_empty(function):
    """Only a docstring, and what says that it is to be written elsewhere or does nothing."""
    body = [n for n in function.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    return all(isinstance(n, (ast.Pass, ast.Raise)) or isinstance(n, ast.Return) and (n.value is None or isinstance(n.value, ast.Constant)) for n in body)


def parsed(path):
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def to_be_filled_in(tree):
    """(name, parameter) of the empty methods of classes."""
    return {
        (f.name, a.arg)
        for c in ast.walk(tree)
        if isinstance(c, ast.ClassDef)
        for f in c.body
        if isinstance(f, ast.FunctionDef) and is_empty(f)
        for a in f.args.args
    }


def unread(path, interfaces=frozenset()):
    """ "function: parameter" of each parameter of a public function that its body never names."""
    tree = parsed(path)
    found = []

    def visit(node, owner, inside):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                visit(child, owner + child.name + ".", inside or child.name.startswith("_"))
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                public = not inside and (not child.name.startswith("_") or child.name in ("__init__", "__call__"))
                if public and not is_empty(child):
                    arguments = child.args
                    names = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
                    used = {n.id for statement in child.body for n in ast.walk(statement) if isinstance(n, ast.Name)}
                    if "locals" not in used:
                        found.extend(
                            "%s%s: %s" % (owner, child.name, n)
                            for n in names
                            if n not in used
                            and n not in ("self", "cls")
                            and not (owner and (child.name, n) in interfaces)
                            and not n.startswith(("_", "unused"))
                        )
            elif isinstance(child, (ast.If, ast.Try, ast.With)):
                visit(child, owner, inside)

    visit(tree, "", False)
    return found


def dropped_without_reason(path):
    """ "function: parameter" of each parameter that is dropped by `del`, with no comment beside it and no word of it in the docstring."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    found = []
    for function in ast.walk(parsed(path)):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        arguments = function.args
        names = {a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs}
        text = ast.get_docstring(function) or ""
        for statement in function.body:
            if isinstance(statement, ast.Delete) and "#" not in lines[statement.lineno - 1]:
                dropped = [t.id for t in statement.targets if isinstance(t, ast.Name) and t.id in names]
                found.extend("%s: %s" % (function.name, n) for n in dropped if not re.search(r"\b%s\b" % n, text))
    return found


def everywhere():
    paths = [os.path.join(folder, name) for folder, _, files in os.walk(PACKAGE) for name in files if name.endswith(".py") and name != "gen_ops.py"]
    interfaces = frozenset().union(*(to_be_filled_in(parsed(path)) for path in paths))
    return {"%s %s" % (os.path.relpath(path, PACKAGE), row) for path in paths for row in unread(path, interfaces)}


def test_no_parameter_is_ignored_in_silence():
    assert sorted(everywhere()) == [], "accepted and never read: obey, refuse, or drop it by `del` with a reason"


def test_what_is_dropped_has_a_reason():
    paths = [os.path.join(folder, name) for folder, _, files in os.walk(PACKAGE) for name in files if name.endswith(".py") and name != "gen_ops.py"]
    rows = ["%s %s" % (os.path.relpath(path, PACKAGE), row) for path in sorted(paths) for row in dropped_without_reason(path)]
    assert rows == [], "say beside `del`, or in the docstring, why the value cannot matter"


def test_the_rule_of_reasons_sees_what_it_should(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("def f(a, b, c):\n    'Takes b, which is nothing.'\n    del a\n    del b\n    del c  # it is late\n    d = 1\n    del d\n")
    assert dropped_without_reason(str(path)) == ["f: a"]


def test_the_rule_sees_what_it_should(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "def f(a, b, c=None, *d, unused=0):\n    'text'\n    del c\n    return a\n\nclass K:\n    def g(self, x, y):\n        return lambda: x\n"
        "    def _h(self, z):\n        return 1 + 1\n    def empty(self, z):\n        raise NotImplementedError\n"
    )
    assert unread(str(path)) == ["f: b", "K.g: y"]
    assert to_be_filled_in(parsed(str(path))) == {("empty", "self"), ("empty", "z")}
    assert unread(str(path), {("g", "y"), ("f", "b")}) == ["f: b"]


def test_what_is_not_provided_is_refused():
    import pytest

    import millrace as tf

    for make in [lambda: tf.contrib.rnn.CoupledInputForgetGateLSTMCell(3, num_unit_shards=2), lambda: tf.data.experimental.ignore_errors(log_warning=True)]:
        with pytest.raises(NotImplementedError, match="is not provided: leave it out"):
            make()
    assert tf.nn.rnn_cell.LSTMCell(3, num_unit_shards=1, dtype=tf.float64).dtype == tf.float64
