# SPDX-License-Identifier: Apache-2.0
"""What `millrace doctor` asks the system: cores, memory and their limits, what the kernel lets traces see, the library."""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Any, Dict, List, Tuple

import millrace._core as _core
from millrace import settings
from millrace.cli.answers import size

_LITTLE = 512 << 20  # bytes of memory, below which it is worth a word
_VECTORS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile")
Found = Tuple[Dict[str, Any], List[str]]  # facts, and what is wrong with the way out of it


def _words(path: str) -> List[str]:
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def cgroup_limits(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> Dict[str, float]:
    """The cores and bytes of memory that control groups grant, by the least one on the way to the root; what is missing has no limit."""
    limits: Dict[str, float] = {}

    def grant(what: str, value: float) -> None:
        limits[what] = min(value, limits.get(what, value))

    folders = [root]
    for line in _words(own):
        inside = line.split(":")[-1].strip("/")
        while line.startswith("0::") and inside:
            folders.append(os.path.join(root, inside))
            inside = os.path.dirname(inside)
    for folder in folders:
        cpu, memory = _words(os.path.join(folder, "cpu.max")), _words(os.path.join(folder, "memory.max"))
        if len(cpu) == 2 and cpu[0].isdigit():
            grant("cores", int(cpu[0]) / int(cpu[1]))
        if memory and memory[0].isdigit():
            grant("memory", int(memory[0]))
    quota, period = _words(os.path.join(root, "cpu", "cpu.cfs_quota_us")), _words(os.path.join(root, "cpu", "cpu.cfs_period_us"))  # version 1
    if quota and period and int(quota[0]) > 0:
        grant("cores", int(quota[0]) / int(period[0]))
    memory = _words(os.path.join(root, "memory", "memory.limit_in_bytes"))
    if memory and int(memory[0]) < 1 << 60:
        grant("memory", int(memory[0]))
    return limits


def machine() -> Found:
    """Processor, memory and their limits."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    facts: Dict[str, Any] = {
        "system": "%s %s, %s" % (platform.system(), platform.release(), " ".join(platform.libc_ver()).strip() or "a C library that is not glibc"),
        "processor": platform.machine(),
        "cores": cores,
    }
    wrong: List[str] = []
    limits = cgroup_limits()
    granted = []
    if "cores" in limits:
        granted.append("%.3g cores" % limits["cores"])
    if "memory" in limits:
        granted.append(size(limits["memory"]))
        if limits["memory"] < _LITTLE:
            wrong.append("the control group grants %s of memory: raise its memory.max, or the container's limit" % size(limits["memory"]))
    facts["control_group"] = ", ".join(granted) or "no limits"
    try:
        with open("/proc/meminfo") as file:
            memory = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file if len(line.split()) > 2}
        facts["memory"] = "%s, %s available" % (size(memory["MemTotal"]), size(memory["MemAvailable"]))
        if memory["MemAvailable"] < _LITTLE:
            wrong.append("only %s of memory are available: end other programs" % size(memory["MemAvailable"]))
        with open("/proc/cpuinfo") as file:
            flags = next((line.split(":")[1].split() for line in file if line.startswith("flags")), [])
        facts["vectors"] = ", ".join(f for f in _VECTORS if f in flags) or "none known"
        if flags and "sse4_2" not in flags:
            wrong.append("the processor has no SSE 4.2, so that most kernels run without vectors: ask a virtual machine for its host's processor")
    except (OSError, KeyError, ValueError):
        facts["memory"] = "unknown"
    if os.path.isdir("/dev/shm"):
        there = os.statvfs("/dev/shm")
        facts["/dev/shm"] = "%s (servers do not need it)" % size(there.f_blocks * there.f_frsize)
    paranoid = _words("/proc/sys/kernel/perf_event_paranoid")
    if paranoid:
        seen = int(paranoid[0]) <= 2
        facts["perf_event_paranoid"] = paranoid[0] + ("" if seen else ": traces have no thread switches (sysctl -w kernel.perf_event_paranoid=2 shows them)")
    return facts, wrong


def _library_path() -> str:
    return os.path.realpath(settings.text("MILLRACE_LIBRARY") or os.path.join(os.path.dirname(_core.__file__), "libmillrace.so"))


def is_loaded() -> bool:
    """Whether the native library is there, or can be."""
    try:
        _core.version()
    except RuntimeError:
        return False
    return True


def _grpc_beside(path: str) -> str:
    return os.path.join(os.path.dirname(path), "libmillrace_grpc.so")


def has_grpc() -> bool:
    """Whether this installation has what reaches other hosts; whether it can be loaded is another question."""
    return os.path.exists(_grpc_beside(_library_path()))


def library() -> Found:
    """The native library, and whether gRPC can be loaded beside it."""
    try:
        version = _core.version()  # loads it
    except RuntimeError as error:
        given = settings.unchecked("MILLRACE_LIBRARY")
        help = "MILLRACE_LIBRARY is '%s', want the library that belongs to this package: unset it" % given if given else "install the package again"
        return {"library": "cannot be loaded"}, ["%s: %s" % (error, help)]
    path = _library_path()
    facts = {"library": "%s, version %s" % (path, version)}
    beside = _grpc_beside(path)
    if not os.path.exists(beside):
        facts["grpc"] = "none: clusters are of one host (for others build from source with Debian's libgrpc++-dev)"
        return facts, []
    try:
        ctypes.CDLL(beside)
    except OSError as error:
        facts["grpc"] = "cannot be loaded"
        return facts, ["%s cannot be loaded, so that clusters are of one host: apt-get install libgrpc++1.51 (%s)" % (beside, error)]
    facts["grpc"] = beside
    return facts, []
