# SPDX-License-Identifier: Apache-2.0
"""Which of many exports stay."""

from __future__ import annotations

import os
from typing import Any, Callable, List, NamedTuple, Optional

from millrace import gfile
from millrace.compat import as_str_any


class Path(NamedTuple):
    """A folder and the number of its version."""

    path: str
    export_version: Any


_Filter = Callable[[List[Path]], List[Path]]


def _largest_export_versions(n: int) -> _Filter:
    """Keeps the n newest."""
    return lambda paths: sorted(sorted((p for p in paths if p.export_version is not None), key=lambda p: p.export_version)[-n:] if n else [])


def _one_of_every_n_export_versions(n: int) -> _Filter:
    """Keeps the newest of each range of n versions: 1 to n, n + 1 to 2n, ... Version 0 belongs to the first."""

    def keep(paths: List[Path]) -> List[Path]:
        newest = {max(p.export_version - 1, 0) // n: p for p in sorted((p for p in paths if p.export_version is not None), key=lambda p: p.export_version)}
        return sorted(newest.values())

    return keep


def _mod_export_version(n: int) -> _Filter:
    """Keeps the versions that n divides."""
    return lambda paths: sorted(p for p in paths if p.export_version % n == 0)


def _union(lf: _Filter, rf: _Filter) -> _Filter:
    """Keeps what either keeps."""
    return lambda paths: sorted({*lf(paths), *rf(paths)})


def _negation(f: _Filter) -> _Filter:
    """Keeps what the other does not keep."""
    return lambda paths: sorted(set(paths) - set(f(paths)))


def _get_paths(base_dir: Any, parser: Callable[[Path], Optional[Path]]) -> List[Path]:
    """What the parser makes of a folder's entries; None leaves one out."""
    entries = [Path(os.path.join(as_str_any(base_dir), as_str_any(name).rstrip("/")), None) for name in gfile.ListDirectory(base_dir)]
    return sorted(p for p in map(parser, entries) if p)
