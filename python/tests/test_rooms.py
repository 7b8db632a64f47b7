# SPDX-License-Identifier: Apache-2.0
"""The rules of imports, python/layers.txt, find what breaks them, and the package obeys."""

import importlib.util
import os

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(ROOT, "tools", "python_layers.py")
if not os.path.exists(RULES):
    pytest.skip("the sources are not beside the tests", allow_module_level=True)
_spec = importlib.util.spec_from_file_location("python_layers", RULES)
rules = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rules)


def found(folder, table, **files):
    package = folder / "python" / "millrace"
    (package / "low").mkdir(parents=True)
    (folder / "python" / "layers.txt").write_text(table)
    for name, text in files.items():
        (package / (name.replace("__", "/") + ".py")).write_text(text)
    return [(os.path.basename(path), line, message) for path, line, message in rules.check(str(folder))]


def test_the_package_obeys():
    assert rules.check(ROOT) == []


def test_rooms_import_downwards(tmp_path):
    made = found(tmp_path, "low\nhigh\n", low__a="def f():\n    from millrace.high import g\n", high="from millrace.low.a import f\n\ndef g(): ...\n")
    assert [(p, n) for p, n, _ in made] == [("a.py", 2), ("high.py", 1)]
    assert "low may not import high" in made[0][2] and "high -> low.a -> high" in made[1][2]


def test_circles_inside_functions_are_found_unless_they_stand(tmp_path):
    files = dict(low__a="import millrace.low.b\n", low__b="def f():\n    from millrace.low import a\n", other="")
    (problem,) = found(tmp_path / "1", "low\n+ other\n", **files)
    assert problem == ("a.py", 1, "modules import each other: low.a -> low.b -> low.a")
    assert found(tmp_path / "2", "low other\ncircle low.b low.a why\n", **files) == []
    (problem,) = found(tmp_path / "3", "low other\ncircle low.b low.a why\ncircle low.a low.c why\n", **files)
    assert "no such import any more: circle low.a low.c" in problem[2]


def test_types_alone_and_modules_without_a_room(tmp_path):
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from millrace import high\n"
    assert found(tmp_path / "1", "low\nhigh\n", low__a=text, high="import millrace.low.a\n") == []
    (problem,) = found(tmp_path / "2", "low\n", low__a="", high="")
    assert problem[:2] == ("high.py", 1) and "no place" in problem[2]
