# SPDX-License-Identifier: Apache-2.0
"""Modules and names that other packages took away since programs were written for TensorFlow 1.x: `python -m millrace.compat` puts them back.

Nothing is imported before the program asks for it; what a package still has stays as it is.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any, Callable, Dict


def _scipy_misc() -> Dict[str, Any]:
    special = importlib.import_module("scipy.special")
    names = {name: getattr(special, name) for name in ("comb", "factorial", "factorial2", "factorialk", "logsumexp")}
    from millrace.compat import scipy_images

    return dict(names, **{name: getattr(scipy_images, name) for name in scipy_images.__all__})


def _all_of(module: str) -> Dict[str, Any]:
    return {name: value for name, value in vars(importlib.import_module(module)).items() if not name.startswith("__")}


def _eigen() -> Dict[str, Any]:
    linalg = importlib.import_module("scipy.sparse.linalg")
    return {name: getattr(linalg, name) for name in ("eigs", "eigsh", "lobpcg", "svds", "ArpackError", "ArpackNoConvergence")}


_MADE: Dict[str, Callable[[], Dict[str, Any]]] = {
    "scipy.misc": _scipy_misc,
    "scipy.sparse.linalg.eigen": lambda: dict(_eigen(), __path__=[]),
    "scipy.sparse.linalg.eigen.arpack": _eigen,
    "sklearn.cross_validation": lambda: _all_of("sklearn.model_selection"),
    "sklearn.externals.joblib": lambda: _all_of("joblib"),
}


def _add_filters(image: Any) -> None:
    """The names that PIL.Image had for the filters of resize."""
    for old, new in (("NEAREST", "NEAREST"), ("LINEAR", "BILINEAR"), ("CUBIC", "BICUBIC"), ("ANTIALIAS", "LANCZOS")):
        if not hasattr(image, old):
            setattr(image, old, getattr(image, "Resampling", image).__dict__[new])


def _add_images(misc: Any) -> None:
    """What scipy.misc lacks of that which it had."""
    for name, value in _scipy_misc().items():
        if not hasattr(misc, name):
            setattr(misc, name, value)


def _add_old_distributions(stats: Any) -> None:
    """The names that scipy.stats had for Weibull's distributions."""
    for old, new in (("frechet_r", "weibull_min"), ("frechet_l", "weibull_max")):
        if not hasattr(stats, old):
            setattr(stats, old, getattr(stats, new))


def _let_hold_modules(module: Any) -> None:
    """Makes a package of what was one, so that modules that were in it are looked for."""
    if not hasattr(module, "__path__"):
        module.__path__ = []


_ADDED: Dict[str, Callable[[Any], None]] = {
    "PIL.Image": _add_filters,
    "scipy.misc": _add_images,
    "scipy.sparse.linalg.eigen": _let_hold_modules,
    "scipy.stats": _add_old_distributions,
}


class _Adding(importlib.abc.Loader):
    """Runs a module as its own loader does, and adds names to it."""

    def __init__(self, loader: Any, add: Callable[[Any], None]) -> None:
        self._loader, self._add = loader, add

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._loader.exec_module(module)
        self._add(module)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules to which names are added, and after all others those that are gone."""

    def __init__(self) -> None:
        self._asked = ""  # what the others are being asked for

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in _ADDED and fullname not in _MADE or self._asked == fullname:
            return None
        self._asked = fullname
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asked = ""
        if spec is None or spec.loader is None:
            return importlib.machinery.ModuleSpec(fullname, self) if fullname in _MADE else None
        if fullname in _ADDED:
            spec.loader = _Adding(spec.loader, _ADDED[fullname])
        return spec

    def create_module(self, spec: Any) -> Any:
        return types.ModuleType(spec.name, "What programs use of a module that is gone.")

    def exec_module(self, module: Any) -> None:
        vars(module).update(_MADE[module.__name__]())


def install() -> None:
    """Makes imports find what is gone, in this process."""
    if any(isinstance(f, _Finder) for f in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for name, add in _ADDED.items():
        if name in sys.modules:
            add(sys.modules[name])
