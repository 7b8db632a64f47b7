# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.tf_export: decorators that note the public names of functions and classes."""

from __future__ import annotations

import collections
import functools
import sys
from typing import Any, Callable, List, Optional

from millrace.compat import decorators, inspecting

TENSORFLOW_API_NAME, ESTIMATOR_API_NAME, KERAS_API_NAME = "tensorflow", "estimator", "keras"
SUBPACKAGE_NAMESPACES = [ESTIMATOR_API_NAME]
_Attributes = collections.namedtuple("_Attributes", ["names", "constants"])
_PREFIXES = {TENSORFLOW_API_NAME: "_tf", ESTIMATOR_API_NAME: "_estimator", KERAS_API_NAME: "_keras"}
API_ATTRS = {api: _Attributes(p + "_api_names", p + "_api_constants") for api, p in _PREFIXES.items()}
API_ATTRS_V1 = {api: _Attributes(p + "_api_names_v1", p + "_api_constants_v1") for api, p in _PREFIXES.items()}


class SymbolAlreadyExposedError(Exception):
    """A function has public names already."""


class InvalidSymbolNameError(Exception):
    """A name that is not under the package that exports it."""


def get_canonical_name(api_names: Any, deprecated_api_names: Any) -> Optional[str]:
    """The first name that is not deprecated, else the first."""
    return next((n for n in api_names if n not in deprecated_api_names), api_names[0] if api_names else None)


def get_canonical_name_for_symbol(symbol: Any, api_name: str = TENSORFLOW_API_NAME, add_prefix_to_v1_names: bool = False) -> Optional[str]:
    """The public name of a function or class, or None."""
    attributes = getattr(decorators.unwrap(symbol)[1], "__dict__", {})
    if API_ATTRS[api_name].names not in attributes:
        return None
    deprecated = attributes.get("_tf_deprecated_api_names", ())
    found = get_canonical_name(attributes[API_ATTRS[api_name].names], deprecated)
    if found:
        return found
    older = get_canonical_name(attributes[API_ATTRS_V1[api_name].names], deprecated)
    return "compat.v1.%s" % older if add_prefix_to_v1_names else older


def _noted(owner: Any, tables: Any, field: str) -> List[Any]:
    attributes = getattr(owner, "__dict__", {})
    return [name for entry in tables.values() for name in attributes.get(getattr(entry, field), ())]


def get_v1_names(symbol: Any) -> List[str]:
    """The public names in 1.x."""
    return _noted(symbol, API_ATTRS_V1, "names")


def get_v2_names(symbol: Any) -> List[str]:
    """The public names in 2.x."""
    return _noted(symbol, API_ATTRS, "names")


def get_v1_constants(module: Any) -> List[Any]:
    """(names, name in the module) of a module's public constants in 1.x."""
    return _noted(module, API_ATTRS_V1, "constants")


def get_v2_constants(module: Any) -> List[Any]:
    """(names, name in the module) of a module's public constants in 2.x."""
    return _noted(module, API_ATTRS, "constants")


class api_export:
    """A decorator that notes the public names: of 2.x, and of 1.x as v1=[...] where these are others."""

    def __init__(self, *args: str, **kwargs: Any) -> None:
        if "v2" in kwargs:
            raise ValueError('You passed a "v2" argument to tf_export. Pass names of 2.x as positional arguments.')
        self._names, self._names_v1 = args, kwargs.get("v1", args)
        self._api_name = kwargs.get("api_name", TENSORFLOW_API_NAME)
        self._overrides, self._several = kwargs.get("overrides", []), kwargs.get("allow_multiple_exports", False)
        names = {*self._names, *self._names_v1}
        if self._api_name == TENSORFLOW_API_NAME:
            for package in SUBPACKAGE_NAMESPACES:
                if any(n.startswith(package) for n in names):
                    raise InvalidSymbolNameError("@tf_export is not allowed to export symbols under %s.*" % package)
        elif not all(n.startswith(self._api_name) for n in names):
            raise InvalidSymbolNameError("Can only export symbols under the package's own name: %s" % self._api_name)

    def __call__(self, func: Any) -> Any:
        """Notes the names at the function, and takes them from those that it overrides."""
        pairs = ((API_ATTRS[self._api_name].names, self._names), (API_ATTRS_V1[self._api_name].names, self._names_v1))
        for other in self._overrides:
            for attribute, _ in pairs:
                delattr(decorators.unwrap(other)[1], attribute)
        target = decorators.unwrap(func)[1]
        for attribute, names in pairs:
            if attribute in vars(target) and not self._several:
                raise SymbolAlreadyExposedError("Symbol %s is already exposed as %s." % (target.__name__, getattr(target, attribute)))
            setattr(target, attribute, names)
        return func

    def export_constant(self, module_name: str, name: str) -> None:
        """Notes the names of a constant of a module."""
        attributes = vars(sys.modules[module_name])
        attributes.setdefault(API_ATTRS[self._api_name].constants, []).append((self._names, name))
        attributes.setdefault(API_ATTRS_V1[self._api_name].constants, []).append((self._names_v1, name))


tf_export = functools.partial(api_export, api_name=TENSORFLOW_API_NAME)
estimator_export = functools.partial(api_export, api_name=ESTIMATOR_API_NAME)
keras_export = functools.partial(api_export, api_name=KERAS_API_NAME)


def kwarg_only(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of functions that take named arguments alone."""
    spec = inspecting.getargspec(f)

    def call(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise TypeError("%s only takes keyword args (possible keys: %s). Please pass these args as kwargs instead." % (f.__name__, spec.args))
        return f(**kwargs)

    return decorators.make_decorator(f, call, decorator_argspec=spec)
