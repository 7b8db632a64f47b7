# SPDX-License-Identifier: Apache-2.0
"""Threads that stop together."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Any, Iterator, Optional, Set

from millrace import tf_logging
from millrace.framework import errors
from millrace.framework.errors import at_user_line


class Coordinator:
    """Lets threads ask each other to stop, and hands the first exception on to who joins them."""

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        self._clean = (errors.OutOfRangeError,) if clean_stop_exception_types is None else tuple(clean_stop_exception_types)
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._exception: Any = None
        self._joined = False
        self._registered_threads: Set[threading.Thread] = set()

    def __repr__(self) -> str:
        state = "asked to stop" + (" by %s" % self._exception[0].__name__ if self._exception else "") if self._stop.is_set() else "running"
        return "<Coordinator, %s, %d threads>" % (state, len(self._registered_threads))

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop; with an exception, join() raises it unless it means a clean end."""
        with self._lock:
            ex = self._filter(ex)
            if self._joined:
                if isinstance(ex, tuple):
                    raise ex[1].with_traceback(ex[2])
                if ex is not None:
                    raise ex
            if not self._stop.is_set():
                if ex is not None:
                    tf_logging.info("Error reported to Coordinator: %s", ex[1] if isinstance(ex, tuple) else ex)
                    self._exception = ex if isinstance(ex, tuple) else (type(ex), ex, getattr(ex, "__traceback__", None))
                self._stop.set()

    def _filter(self, ex: Any) -> Any:
        value = ex[1] if isinstance(ex, tuple) else ex
        return None if isinstance(value, self._clean) else ex

    def clear_stop(self) -> None:
        """Forgets that a stop was asked for."""
        with self._lock:
            self._joined, self._exception = False, None
            self._stop.clear()

    def should_stop(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context in which an exception asks all threads to stop."""
        try:
            yield
        except:  # noqa: E722 - whatever it is
            self.request_stop(ex=sys.exc_info())

    def wait_for_stop(self, timeout: Optional[float] = None) -> bool:
        """Waits until a stop is asked for."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread to those that join() waits for."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(self, threads: Any = None, stop_grace_period_secs: float = 120, ignore_live_threads: bool = False) -> None:
        """Waits for the threads to end; raises what one of them reported."""
        with self._lock:
            threads = list(dict.fromkeys([*(threads or []), *self._registered_threads]))
        while any(t.is_alive() for t in threads) and not self.wait_for_stop(1.0):
            pass
        deadline = time.time() + stop_grace_period_secs
        while any(t.is_alive() for t in threads) and time.time() < deadline:
            for t in threads:
                t.join(0.05)
        alive = [t.name for t in threads if t.is_alive()]
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            if self._exception:
                raise self._exception[1].with_traceback(self._exception[2])
            if alive:
                message = "Coordinator stopped with threads still running: %s" % " ".join(alive)
                if not ignore_live_threads:
                    raise RuntimeError(message)
                tf_logging.info(message)

    @property
    def joined(self) -> bool:
        """Whether the threads were joined."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raises what a thread reported."""
        with self._lock:
            if self._exception:
                raise self._exception[1].with_traceback(self._exception[2])


class LooperThread(threading.Thread):
    """A thread that calls run_loop() every so many seconds until the coordinator stops; with None, again and again."""

    def __init__(self, coord: Coordinator, timer_interval_secs: Optional[float], target: Any = None, args: Any = None, kwargs: Any = None) -> None:
        if not isinstance(coord, Coordinator):
            raise at_user_line(ValueError("'coord' argument must be a Coordinator: %s" % (coord,)))
        if target is None and (args or kwargs):
            raise at_user_line(ValueError("'args' and 'kwargs' argument require that you also pass 'target'"))
        super().__init__(daemon=True)
        self._coord, self._interval, self._target_function, self._arguments = coord, timer_interval_secs, target, (args or (), kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(coord: Coordinator, timer_interval_secs: Optional[float], target: Any, args: Any = None, kwargs: Any = None) -> "LooperThread":
        """Starts one."""
        made = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        made.start()
        return made

    def run(self) -> None:
        """The thread's loop."""
        with self._coord.stop_on_exception():
            self.start_loop()
            due = time.monotonic()
            while not self._coord.wait_for_stop(max(0.0, due - time.monotonic()) if self._interval is not None else 0):
                due += self._interval or 0
                self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called when the thread starts."""

    def stop_loop(self) -> None:
        """Called when the thread stops."""

    def run_loop(self) -> None:
        """Called each time."""
        if self._target_function:
            self._target_function(*self._arguments[0], **self._arguments[1])
