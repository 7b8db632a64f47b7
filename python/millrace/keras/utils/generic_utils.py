# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Objects by name and as settings; a bar of progress."""

from __future__ import annotations

import inspect
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.framework.unique_names import snake as to_snake_case  # noqa: F401

_CUSTOM: Dict[str, Any] = {}


class CustomObjectScope:
    """A context in which more names mean objects."""

    def __init__(self, *args: Dict[str, Any]) -> None:
        self._given = args

    def __enter__(self) -> "CustomObjectScope":
        self._kept = dict(_CUSTOM)
        for objects in self._given:
            _CUSTOM.update(objects)
        return self

    def __exit__(self, *details: Any) -> None:
        _CUSTOM.clear()
        _CUSTOM.update(self._kept)


def custom_object_scope(*args: Dict[str, Any]) -> CustomObjectScope:
    """A context in which more names mean objects."""
    return CustomObjectScope(*args)


def get_custom_objects() -> Dict[str, Any]:
    """The names that mean objects everywhere; may be added to."""
    return _CUSTOM


def serialize_keras_object(instance: Any) -> Any:
    """An object as its class and settings, a function as its name."""
    if instance is None:
        return None
    if hasattr(instance, "get_config"):
        return {"class_name": type(instance).__name__, "config": instance.get_config()}
    if hasattr(instance, "__name__"):
        return instance.__name__
    raise at_user_line(ValueError("Cannot serialize %s" % (instance,)))


def deserialize_keras_object(identifier: Any, module_objects: Any = None, custom_objects: Any = None, printable_module_name: str = "object") -> Any:
    """The object of a name, or of a class and settings."""
    if identifier is None:
        return None
    names = {**(module_objects or {}), **_CUSTOM, **(custom_objects or {})}
    if isinstance(identifier, dict):
        if "class_name" not in identifier or "config" not in identifier:
            raise at_user_line(ValueError("Improper config format: %s" % (identifier,)))
        kind = names.get(identifier["class_name"])
        if kind is None:
            raise at_user_line(ValueError("Unknown %s: %s" % (printable_module_name, identifier["class_name"])))
        if not hasattr(kind, "from_config"):
            return kind(**identifier["config"])
        if "custom_objects" in has_arguments(kind.from_config):
            return kind.from_config(identifier["config"], custom_objects={**_CUSTOM, **(custom_objects or {})})
        with CustomObjectScope(custom_objects or {}):
            return kind.from_config(identifier["config"])
    if isinstance(identifier, str):
        found = names.get(identifier)
        if found is None:
            raise at_user_line(ValueError("Unknown %s: %s" % (printable_module_name, identifier)))
        return found
    raise at_user_line(ValueError("Could not interpret serialized %s: %s" % (printable_module_name, identifier)))


def has_arguments(function: Any) -> List[str]:
    """The names of a function's arguments."""
    return list(inspect.signature(function).parameters)


def has_arg(fn: Any, name: str, accept_all: bool = False) -> bool:
    """Whether a function takes an argument of a name; with accept_all also by **kwargs."""
    parameters = inspect.signature(fn).parameters
    if accept_all and any(p.kind == p.VAR_KEYWORD for p in parameters.values()):
        return True
    return name in parameters and parameters[name].kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


class Progbar:
    """Prints how far something has got: on a terminal in one line that changes, else a line at the end."""

    def __init__(
        self, target: Optional[int], width: int = 30, verbose: int = 1, interval: float = 0.05, stateful_metrics: Any = None, unit_name: str = "step"
    ) -> None:
        self.target, self.width, self.verbose, self.interval = target, width, verbose, interval
        self.unit_name = unit_name
        self.stateful_metrics, self._sums, self._order = set(stateful_metrics or ()), {}, []  # type: Any, Dict[str, Any], List[str]
        self._start, self._last, self.seen_so_far = time.time(), 0.0, 0
        self._written = 0  # characters of the line, which a shorter one covers with spaces

    def update(self, current: int, values: Any = None, force: bool = False) -> None:
        """Says that it has got to `current`, with (name, value) pairs whose means are shown."""
        for name, value in values or []:
            if name not in self._sums:
                self._order.append(name)
                self._sums[name] = [0.0, 0]
            step = current - self.seen_so_far
            self._sums[name] = [value, 1] if name in self.stateful_metrics else [self._sums[name][0] + value * step, self._sums[name][1] + step]
        self.seen_so_far = current
        now, finished = time.time(), self.target is not None and current >= self.target
        if not (force or finished) and now - self._last < self.interval:
            return
        self._last = now
        current_of = "Unknown" if self.target is None else str(self.target)
        counted = "%*d/%s" % (7 if self.target is None else len(current_of), current, current_of)
        shown = "".join(" - %s: %s" % (name, self._mean(name)) for name in self._order)
        live = sys.stdout.isatty()
        if self.verbose == 1 and (live or finished or force):
            timed = "%.0fs %s" % (now - self._start, self._each(current, now)) if finished or force or self.target is None else self._left(current, now)
            line = "%s%s - %s%s" % (counted, self._bar(current), timed, shown)
            sys.stdout.write("%s%s%s" % ("\r" if live else "", line.ljust(self._written if live else 0), "\n" if finished or force or not live else ""))
            sys.stdout.flush()
            self._written = len(line)
        elif self.verbose == 2 and (finished or force):
            sys.stdout.write("%s - %.0fs%s\n" % (counted, now - self._start, shown))
            sys.stdout.flush()

    def _mean(self, name: str) -> str:
        total, count = self._sums[name]
        mean = float(np.mean(total / max(1, count)))
        return ("%.4f" if abs(mean) > 1e-3 else "%.4e") % mean

    def _left(self, current: int, now: float) -> str:
        """How long the rest takes if it goes on so."""
        seconds = int((now - self._start) / current * (self.target - current)) if current and self.target else 0
        if seconds > 3600:
            return "ETA: %d:%02d:%02d" % (seconds // 3600, seconds % 3600 // 60, seconds % 60)
        return "ETA: %d:%02d" % (seconds // 60, seconds % 60) if seconds > 60 else "ETA: %ds" % seconds

    def _each(self, current: int, now: float) -> str:
        """How long a unit took."""
        seconds = (now - self._start) / max(current, 1)
        number, name = next(((seconds * f, n) for f, n in ((1, "s"), (1e3, "ms")) if seconds * f >= 1), (seconds * 1e6, "us"))
        return "%.0f%s/%s" % (number, name, self.unit_name)

    def _bar(self, current: int) -> str:
        if self.target is None:
            return ""
        done = self.width if self.target == 0 else int(self.width * min(1.0, current / self.target))
        head = "" if not done else "=" * (done - 1) + (">" if current < self.target else "=")
        return " [%s%s]" % (head, "." * (self.width - done))

    def add(self, n: int, values: Any = None) -> None:
        """Says that it has got n further."""
        self.update(self.seen_so_far + n, values)


def slice_arrays(arrays: Any, start: Any = None, stop: Any = None) -> Any:
    """A part of each array, by places (a list) or by a range."""

    def of(x: Any) -> Any:
        if x is None or not hasattr(x, "__getitem__"):
            return None
        return x[list(start)] if hasattr(start, "__len__") else x[start:stop]

    if arrays is None:
        return [None]
    if isinstance(arrays, list):
        if isinstance(start, list) and isinstance(stop, list):
            raise at_user_line(ValueError("The stop argument has to be None if the value of start is a list."))
        return [of(x) for x in arrays]
    if hasattr(start, "__len__") and stop is not None:
        raise at_user_line(ValueError("The stop argument has to be None if the value of start is a list."))
    if hasattr(start, "__len__"):
        return arrays[list(start)]
    return arrays[start:stop] if hasattr(start, "__int__") or start is None and hasattr(arrays, "shape") else [None]


def make_batches(size: int, batch_size: int) -> List[Tuple[int, int]]:
    """Where the batches of so many rows begin and end."""
    return [(start, min(size, start + batch_size)) for start in range(0, size, batch_size)]


def to_list(x: Any) -> List[Any]:
    """A list as it is; what is none in one."""
    return x if isinstance(x, list) else [x]


def is_all_none(structure: Any) -> bool:
    """Whether it is None, or a list or tuple of nothing else."""
    return all(x is None for x in (structure if isinstance(structure, (list, tuple)) else [structure]))
