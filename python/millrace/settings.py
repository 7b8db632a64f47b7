# SPDX-License-Identifier: Apache-2.0
"""Settings that the environment gives, MILLRACE_NUM_THREADS and others. The library declares each once (src/base/settings_table.cc); readers here,
`millrace doctor` and the table of docs/running.md, which `python -m millrace.settings` prints, come from there."""

from __future__ import annotations

import difflib
import functools
import math
import os
from typing import Dict, List, Mapping, NamedTuple, Optional

Environment = Mapping[str, str]


class Setting(NamedTuple):
    """A setting as it is declared."""

    name: str
    kind: str  # switch, number, seconds, choice, text
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
        """What is wrong with a value; None: nothing. An empty one is as none."""
        if not value or self.kind == "text":
            return None
        if self.kind in ("number", "seconds"):
            try:
                number = int(value) if self.kind == "number" else float(value)
                right = math.isfinite(number) and self.least <= number <= self.most
            except ValueError:
                right = False
        else:
            right = value in (("0", "1") if self.kind == "switch" else self.values.split(", "))
        return None if right else "%s is '%s', want %s" % (self.name, value[:100], self.wants)


@functools.cache
def declared() -> Dict[str, Setting]:
    """All settings by name, in the order of the documentation."""
    import millrace._core as _core

    rows = [line.split("\t") for line in _core.settings_table().splitlines()]
    return {r[0]: Setting(r[0], r[1], r[2], int(r[3]), int(r[4]), r[5], r[6]) for r in rows}


def text(name: str, environ: Optional[Environment] = None) -> str:
    """The value of a setting, empty where it is unset. ValueError says what is wrong with it."""
    value = (os.environ if environ is None else environ).get(name, "")
    fault = declared()[name].fault(value)
    if fault is not None:
        raise ValueError(fault)
    return value


def seconds(name: str) -> float:
    """The value, or the declared default."""
    return float(text(name) or declared()[name].otherwise)


def number(name: str, otherwise: int, environ: Optional[Environment] = None) -> int:
    """The value, or what the caller does without."""
    return int(text(name, environ) or otherwise)


def faults(environ: Optional[Environment] = None) -> List[str]:
    """What is wrong with the settings, and names that are like one but none."""
    known, wrong = declared(), []
    for name, value in sorted((os.environ if environ is None else environ).items()):
        if not name.startswith("MILLRACE_"):
            continue
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            wrong.append("%s is no setting%s" % (name, "; did you mean %s?" % near[0] if near else ": unset it"))
        elif known[name].fault(value) is not None:
            wrong.append(str(known[name].fault(value)))
    return wrong


def markdown() -> str:
    """The table of docs/running.md."""
    rows = ["| variable | wants | default | means |", "|---|---|---|---|"]
    rows += ["| `%s` | %s | %s | %s |" % (s.name, s.wants, s.otherwise, s.means) for s in declared().values()]
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown())
