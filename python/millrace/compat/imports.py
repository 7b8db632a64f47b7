# SPDX-License-Identifier: Apache-2.0
"""Makes `import tensorflow` and its module paths mean this package. Which path means what: millrace/names.py."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
from typing import Any, Optional

from millrace import names

_OUTER = ("compat.v1.", "compat.v2.compat.")  # the names of 1.x, as TensorFlow 1.13 and later has them, also within those of 2


def _module_of(path: str) -> Optional[types.ModuleType]:
    """The module that a path below `tensorflow` means, or None."""
    while path.startswith(_OUTER):
        path = path[len("compat.vN.") :]
    return importlib.import_module("millrace") if path in ("", "compat.v1") else names.module(path)


def _path_of(name: str) -> Optional[str]:
    """The path below `tensorflow` that the name of a module means, or None. From 1.13 on estimators are also a package of their own."""
    package, _, inner = name.partition(".")
    if package == "tensorflow_estimator":
        return "" if inner in ("_api", "_api.v1") else inner[len("_api.v1.") :] if inner.startswith("_api.v1.") else inner
    return inner if package == "tensorflow" else None


def _take_log_level() -> None:
    """How much of the library's log a program wants to see, which it says before it imports TensorFlow. The levels mean the same."""
    wanted = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "")
    if wanted.isdigit():
        os.environ.setdefault("MILLRACE_MIN_LOG_LEVEL", wanted)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        inner = _path_of(fullname)
        if inner is None:
            return None
        if inner == "":
            _take_log_level()
        if _module_of(inner) is None:
            raise ModuleNotFoundError("%s is not provided by Millrace" % fullname, name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        """Another name of the module: what is set on one of them is set on both."""
        path = _path_of(spec.name)
        real = None if path is None else _module_of(path)
        assert path is not None and real is not None  # find_spec has asked
        return names.Joined(path, [real])

    def exec_module(self, module: Any) -> None:
        """Nothing to do: the module behind it was run by its own import."""


def install() -> None:
    """Makes `import tensorflow` mean this package, in this process."""
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
