# SPDX-License-Identifier: Apache-2.0
"""What commands answer, and how it is laid out for people."""

from __future__ import annotations

import sys
import time
from typing import Any, Iterable, Iterator, List, NamedTuple, Sequence


class Answer(NamedTuple):
    """The same for programs and for people."""

    facts: Any  # what json can write
    text: str
    status: int = 0


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = (), indent: str = "") -> str:
    """Columns as wide as they must be; numbers to the right."""
    lines = [[str(cell) for cell in row] for row in rows]
    if not lines:
        return indent + "(none)"
    right = [all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(lines[0]))] if isinstance(rows, list) else [False] * len(lines[0])
    if head:
        lines.insert(0, list(head))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join((indent + "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right))).rstrip() for line in lines)


def size(count: float) -> str:
    """Bytes in the unit that reads best."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return "%d %s" % (count, unit) if unit == "B" else "%.1f %s" % (count, unit)
        count /= 1024
    return "%.1f TiB" % count


def shape(dims: Any) -> str:
    """[2, ?, 3]; ? where it is not known."""
    return "?" if dims is None else "[%s]" % ", ".join("?" if d is None or d < 0 else str(d) for d in dims)


class Progress:
    """How far long work has come, with its rate and the time left, on a line of a terminal; elsewhere nothing."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, max(total, 1)
        self._start = self._shown = time.monotonic()
        self._visible = False

    def at(self, done: int, unit: str = "B") -> None:
        """`done` of the total, in bytes or in what `unit` says."""
        now = time.monotonic()
        if now - self._shown < 0.2 or now - self._start < 1 or not sys.stderr.isatty():
            return
        self._shown, self._visible = now, True
        rate = done / (now - self._start)
        amount = size(rate) if unit == "B" else "%.0f %s" % (rate, unit)
        left = (self._total - done) / rate if rate else 0
        sys.stderr.write("\r%s: %3.0f %%, %s/s, %.0f s left\x1b[K" % (self._what, 100.0 * done / self._total, amount, left))
        sys.stderr.flush()

    def end(self) -> None:
        """Clears the line."""
        if self._visible:
            sys.stderr.write("\r\x1b[K")


def each(items: Sequence[Any], what: str, unit: str) -> Iterator[Any]:
    """The items, with progress."""
    progress = Progress(what, len(items))
    try:
        for i, item in enumerate(items):
            yield item
            progress.at(i + 1, unit)
    finally:
        progress.end()


def sections(*parts: str) -> str:
    """Paragraphs, without the empty ones."""
    kept: List[str] = [p for p in parts if p]
    return "\n\n".join(kept)
