# SPDX-License-Identifier: Apache-2.0
"""Lists of hosts as schedulers write them: Slurm's brackets, counts of tasks a node, host files of MPI."""

from __future__ import annotations

import re
from typing import List

_MOST_HOSTS = 100_000


def expand_nodelist(text: str) -> List[str]:
    """The hosts of Slurm's "gpu[01-03,7],login,r[1-2]n[0-1]", in its order."""
    hosts: List[str] = []
    for part in _split(text):
        hosts += _expand(part, text)
        if len(hosts) > _MOST_HOSTS:
            raise ValueError("node list '%s...' has more than %d hosts" % (text[:80], _MOST_HOSTS))
    if not hosts:
        raise ValueError("the node list is empty")
    return hosts


def _split(text: str) -> List[str]:
    """The parts between commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if depth not in (0, 1):
            raise ValueError("node list '%s': brackets do not match" % text[:200])
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    if depth:
        raise ValueError("node list '%s': brackets do not match" % text[:200])
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def _expand(part: str, whole: str) -> List[str]:
    hosts = [""]
    for i, piece in enumerate(re.split(r"\[([^\]]*)\]", part)):
        choices = [piece] if i % 2 == 0 else _numbers(piece, whole)
        if len(hosts) * len(choices) > _MOST_HOSTS:
            raise ValueError("node list '%s...' has more than %d hosts" % (whole[:80], _MOST_HOSTS))
        hosts = [h + c for h in hosts for c in choices]
    return hosts


def _numbers(text: str, whole: str) -> List[str]:
    """01-03,7 as 01 02 03 7: leading zeros are kept."""
    numbers: List[str] = []
    for item in text.split(","):
        found = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", item.strip())
        if not found:
            raise ValueError("node list '%s': [%s] holds '%s', want numbers and ranges such as 1-4" % (whole[:200], text[:80], item[:80]))
        first, last = found.group(1), found.group(2) or found.group(1)
        if int(last) < int(first) or int(last) - int(first) >= _MOST_HOSTS:
            raise ValueError("node list '%s': the range %s goes from more to less, or is too long" % (whole[:200], item[:80]))
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return numbers


def expand_counts(text: str) -> List[int]:
    """The tasks of each node in Slurm's "2(x3),1": 2 2 2 1."""
    counts: List[int] = []
    for item in text.split(","):
        found = re.fullmatch(r"(\d{1,6})(?:\(x(\d{1,6})\))?", item.strip())
        if not found or int(found.group(2) or 1) > _MOST_HOSTS:
            raise ValueError("tasks per node are '%s', want such as 2(x3),1" % text[:200])
        counts += [int(found.group(1))] * int(found.group(2) or 1)
    return counts


def read_hostfile(path: str) -> List[str]:
    """A host for each slot of an MPI host file: lines of "host slots=2" or "host:2"."""
    hosts: List[str] = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            found = re.fullmatch(r"([^\s:]+)(?::(\d{1,5}))?", words[0])
            slots = [re.fullmatch(r"slots=(\d{1,5})", w) for w in words[1:] if w.startswith("slots")]
            if not found or None in slots or len(slots) > 1:
                raise ValueError("%s:%d: '%s', want HOST, HOST:N or HOST slots=N" % (path, number, line.strip()[:200]))
            count = int(slots[0].group(1)) if slots and slots[0] else int(found.group(2) or 1)
            hosts += [found.group(1)] * count
    if not hosts:
        raise ValueError("the host file %s names no host" % path)
    return hosts
