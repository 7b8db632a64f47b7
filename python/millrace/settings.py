# SPDX-License-Identifier: Apache-2.0
"""Settings that the environment gives, MILLRACE_NUM_THREADS and others. The library declares each once (src/base/settings_table.cc); readers here,
`millrace doctor` and the table of docs/running.md, which `python -m millrace.settings` prints, come from there."""

from __future__ import annotations

import difflib
import functools
import math
import os
import re
import tempfile
from typing import Dict, List, Mapping, NamedTuple, Optional

import millrace._core as _core

Environment = Mapping[str, str]


class Setting(NamedTuple):
    """A setting as it is declared."""

    name: str
    kind: str  # switch, number, seconds, choice; text, file, folder, steps, pairs, address, place: texts, whose readers check them
    values: str  # the choices, with commas; what a text looks like
    least: int
    most: int
    otherwise: str  # what holds when it is unset
    means: str  # in Markdown

    @property
    def wants(self) -> str:
        """What its values look like."""
        if self.kind in ("number", "seconds"):
            what = "seconds" if self.kind == "seconds" else "a number"
            return "%s from %d%s" % (what, self.least, " on" if self.most == 2**63 - 1 else " to %d" % self.most)
        return {"switch": "0 or 1", "choice": "one of " + self.values}.get(self.kind, self.values)

    def fault(self, value: str) -> Optional[str]:
        """What is wrong with a value; None: nothing. An empty one is as none, and texts are their readers' to check."""
        if not value or self.kind not in ("switch", "number", "seconds", "choice"):
            return None
        if self.kind in ("number", "seconds"):
            try:
                number = int(value) if self.kind == "number" else float(value)
                right = math.isfinite(number) and self.least <= number <= self.most
            except ValueError:
                right = False
        else:
            right = value in (("0", "1") if self.kind == "switch" else self.values.split(", "))
        return None if right else self._refusal(value)

    def fault_of_text(self, value: str) -> Optional[str]:
        """What is wrong with a text, as far as its form says, and the files that there are; None: nothing."""
        if not value:
            return None
        if self.kind in _FORMS and not re.fullmatch(_FORMS[self.kind], value):
            return self._refusal(value)
        if self.kind == "steps" and any(int(first) > int(last) for first, last in re.findall(r"(\d+)-(\d+)", value)):
            return self._refusal(value)
        if self.kind == "file":
            why = _cannot_be_read(value)
        else:
            why = _cannot_be_made(value) if self.kind == "folder" else ""
        return self._refusal(value) + ": " + why if why else None

    def _refusal(self, value: str) -> str:
        return "%s is '%s', want %s" % (self.name, value[:100], self.wants)


_FORMS = {
    "steps": r"\d+(-\d+)?(,\d+(-\d+)?)*",
    "pairs": r"\s*\w+=[^,]*(,\s*\w+=[^,]*)*",
    "address": r"(.*:)?\d{1,5}",
    "place": r"(\[[0-9a-fA-F:.]+\]|[^:]+)(:\d{1,5})?",
}


def _cannot_be_read(path: str) -> str:
    try:
        with open(path, "rb"):
            return ""
    except OSError as error:
        return str(error.strerror)


def _cannot_be_made(folder: str) -> str:
    """Why there can be no files in a folder, which need not be there."""
    above = os.path.abspath(folder)
    while not os.path.exists(above):
        above = os.path.dirname(above)
    try:
        with tempfile.TemporaryDirectory(dir=above):
            return ""
    except OSError as error:
        return "%s: %s" % (above, error.strerror)


@functools.cache
def declared() -> Dict[str, Setting]:
    """All settings by name, in the order of the documentation."""
    return {r[0]: Setting(r[0], r[1], r[2], int(r[3]), int(r[4]), r[5], r[6]) for r in _rows() if r[1] != "test"}


def _rows() -> List[List[str]]:
    return [line.split("\t") for line in _core.settings_table().splitlines()]


def names_of_tests() -> List[str]:
    """What tests and tools ask the environment for."""
    return [r[0] for r in _rows() if r[1] == "test"]


def text(name: str, environ: Optional[Environment] = None) -> str:
    """The value of a setting, empty where it is unset. ValueError says what is wrong with it."""
    value = (os.environ if environ is None else environ).get(name, "")
    fault = declared()[name].fault(value)
    if fault is not None:
        raise ValueError(fault)
    return value


def unchecked(name: str) -> str:
    """What the environment says, empty for nothing: for those who tell what is wrong where nothing can be checked."""
    return os.environ.get(name, "")


def seconds(name: str) -> float:
    """The value, or the declared default."""
    return float(text(name) or declared()[name].otherwise)


def number(name: str, otherwise: int, environ: Optional[Environment] = None) -> int:
    """The value, or what the caller does without."""
    return int(text(name, environ) or otherwise)


def faults(environ: Optional[Environment] = None) -> List[str]:
    """What is wrong with the settings, and names that are like one but none."""
    known, of_tests, wrong = declared(), names_of_tests(), []
    for name, value in sorted((os.environ if environ is None else environ).items()):
        if not name.startswith("MILLRACE_") or name in of_tests:
            continue
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            wrong.append("%s is no setting%s" % (name, "; did you mean %s?" % near[0] if near else ": unset it"))
        else:
            fault = known[name].fault(value) or known[name].fault_of_text(value)
            wrong += [fault] if fault else []
    return wrong


def markdown() -> str:
    """The table of docs/running.md."""
    rows = ["| variable | wants | default | means |", "|---|---|---|---|"]
    rows += ["| `%s` | %s | %s | %s |" % (s.name, s.wants, s.otherwise, s.means) for s in declared().values()]
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown())
