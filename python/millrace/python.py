# SPDX-License-Identifier: Apache-2.0
"""tf.python: attribute paths such as tf.python.framework.ops mean what imports of them mean."""
import importlib as _importlib
from typing import Any as _Any

from millrace.compat import imports as _imports


class _Path:
    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> _Any:
        return _resolve(self._path + "." + name)


def _resolve(path: str) -> _Any:
    target = _imports._PATHS.get(path)
    if target is not None:
        return _importlib.import_module("millrace" if target == "python_names" else "millrace." + target)
    if any(p.startswith(path + ".") for p in _imports._PATHS):
        return _Path(path)
    if path.startswith(_imports._WHOLE):
        return _importlib.import_module("millrace")
    raise AttributeError("tf.%s is not provided by Millrace" % path)


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _resolve("python." + name)
