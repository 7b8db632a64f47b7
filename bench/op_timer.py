# SPDX-License-Identifier: Apache-2.0
"""Rows on one library, in a process of their own: built, run once, then timed as often as asked."""

from __future__ import annotations

import ctypes as C
import multiprocessing as mp
import os
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "case_table"))

import numpy as np

from capi import Library, Output
from dtypes import DType
from op_rows import Declared, OpRow, Rows
from runner import Built

_KEPT = 1 << 16  # elements of an output that are compared


class Failed(Exception):
    """What a library cannot do, or a process that ended."""


def open_library(path: str) -> Library:
    """TensorFlow's library wants its other half in the process before it."""
    half = os.path.join(os.path.dirname(path), "libtensorflow_framework.so.2")
    if "libtensorflow_cc" in os.path.basename(path) and os.path.exists(half):
        C.CDLL(half, mode=C.RTLD_GLOBAL)
    library = Library(path)
    library.lib.TF_SetConfig.restype = None
    library.lib.TF_SetConfig.argtypes = [C.c_void_p, C.c_char_p, C.c_size_t, C.c_void_p]
    return library


class Running:
    """A row's graph and session, and its inputs as tensors."""

    def __init__(self, library: Library, rows: Rows, row: OpRow, threads: int) -> None:
        op, case, types, flat = rows.values(row)
        self.library, self.lib = library, library.lib
        # One thread's time is that of its processor: what other programs do does not count.
        self.clock = time.process_time if threads == 1 else time.perf_counter
        self.built = Built(library, op, case, types, flat)
        graph = self.built.graph
        options = self.lib.TF_NewSessionOptions()
        config = bytes([0x10, threads, 0x28, threads])  # ConfigProto: threads of an op, and of a step
        self.lib.TF_SetConfig(options, config, len(config), library.status)
        graph.session = self.lib.TF_NewSession(graph.graph, options, library.status)
        self.lib.TF_DeleteSessionOptions(options)
        library.check()
        if self.built.initial:
            graph.run(targets=self.built.initial)
        feeds, outputs = self.built.feeds, self.built.outputs
        self.tensors = [library.make_tensor(stored, dtype) for _, stored, dtype in feeds]
        self.feeds = ((Output * len(feeds))(*[f[0] for f in feeds]), (C.c_void_p * len(feeds))(*self.tensors), len(feeds))
        self.fetches = ((Output * len(outputs))(*outputs), (C.c_void_p * max(1, len(outputs)))(), len(outputs))
        self.targets = ((C.c_void_p * 1)(self.built.node), 0 if outputs else 1)

    def once(self) -> Any:
        values = self.fetches[1]
        self.lib.TF_SessionRun(self.built.graph.session, None, *self.feeds, *self.fetches, *self.targets, None, self.library.status)
        return values

    def outputs(self) -> list[tuple[np.ndarray, DType]]:
        values = self.once()
        self.library.check()
        return [self.library.take_tensor(values[k]) for k in range(self.fetches[2])]

    def seconds(self, runs: int) -> float:
        delete, count = self.lib.TF_DeleteTensor, self.fetches[2]
        start = self.clock()
        for _ in range(runs):
            values = self.once()
            for k in range(count):
                delete(values[k])
        took = self.clock() - start
        self.library.check()
        return took / runs

    def close(self) -> None:
        for tensor in self.tensors:
            self.lib.TF_DeleteTensor(tensor)
        self.built.close()


def _serve(path: str, declared: Declared, threads: int, conn: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what a library logs
    rows = Rows(declared)  # before the library: NumPy loads parts of itself late, and TensorFlow's symbols would meet them
    library, running = open_library(path), None
    while True:
        try:
            what, argument = conn.recv()
        except EOFError:
            os._exit(0)
        try:
            if what == "build":
                if running:
                    running.close()
                running = None
                running = Running(library, rows, rows.rows[argument], threads)
                kept = [(v.shape, v.ravel()[:_KEPT], t) for v, t in running.outputs()]
                conn.send((True, kept))
            else:
                assert running
                conn.send((True, running.seconds(argument)))
        except Exception as problem:  # of one row
            conn.send((False, f"{type(problem).__name__}: {problem}"))


class Worker:
    """The process, from outside. One that crashes or hangs is ended, and another begins with the next row."""

    def __init__(self, path: str, declared: Declared, threads: int, patience: float) -> None:
        self.arguments, self.patience = (path, declared, threads), patience
        self.process: Any = None

    def ask(self, what: str, argument: int) -> Any:
        if self.process is None:
            context = mp.get_context("spawn")
            self.conn, other = context.Pipe()
            self.process = context.Process(target=_serve, args=(*self.arguments, other), daemon=True)
            self.process.start()
            other.close()
        try:
            self.conn.send((what, argument))
            if self.conn.poll(self.patience):
                good, answer = self.conn.recv()
                if good:
                    return answer
                raise Failed(answer)
            why = f"no answer in {self.patience:g} s"
        except (EOFError, OSError):
            self.process.join(5)
            why = f"crashed (exit code {self.process.exitcode})"
        self.process.kill()
        self.process.join()
        self.process = None
        raise Failed(why)
