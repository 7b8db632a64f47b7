# SPDX-License-Identifier: Apache-2.0
"""Which of many exports are kept: a filter takes Paths and gives those to keep, sorted."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional

from millrace import gfile
from millrace.compat import as_str_any


class Path(NamedTuple):
    """A folder of an export, with its version."""

    path: Any
    export_version: Optional[int]


Filter = Callable[[List[Any]], List[Any]]


def largest_export_versions(n: int) -> Filter:
    """Keeps the n with the largest versions."""

    def keep(paths: List[Any]) -> List[Any]:
        numbered = [(path.export_version, i) for i, path in enumerate(paths) if path.export_version is not None]
        return sorted(paths[i] for _, i in sorted(numbered, reverse=True)[:n])

    return keep


def one_of_every_n_export_versions(n: int) -> Filter:
    """Keeps the largest of each interval [0, n], [n + 1, 2n], ..."""

    def keep(paths: List[Any]) -> List[Any]:
        largest: Dict[int, Any] = {}
        for path in paths:
            if path.export_version is None:
                continue
            interval = max(path.export_version - 1, 0) // n
            if interval not in largest or largest[interval].export_version < path.export_version:
                largest[interval] = path
        return sorted(largest.values())

    return keep


def mod_export_version(n: int) -> Filter:
    """Keeps those whose version is a multiple of n."""
    return lambda paths: sorted(path for path in paths if path.export_version % n == 0)


def union(lf: Filter, rf: Filter) -> Filter:
    """Keeps what either filter does."""
    return lambda paths: sorted(set(lf(paths)) | set(rf(paths)))


def negation(f: Filter) -> Filter:
    """Keeps what a filter does not."""
    return lambda paths: sorted(set(paths) - set(f(paths)))


def get_paths(base_dir: Any, parser: Callable[[Path], Optional[Path]]) -> List[Path]:
    """The folders in base_dir as `parser` makes them of Paths without a version; those that it gives None for are left out."""
    base = as_str_any(base_dir)
    folders = (Path("%s/%s" % (base.rstrip("/"), as_str_any(name).rstrip("/")), None) for name in gfile.ListDirectory(base))
    return sorted(made for made in (parser(folder) for folder in folders if gfile.IsDirectory(folder.path)) if made)
