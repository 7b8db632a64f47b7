# SPDX-License-Identifier: Apache-2.0
"""How processes of a cluster end: exit codes that schedulers understand, and signals.

0 done; 1 the program's error; 2 bad configuration; 130 and 143 interrupted (SIGINT, SIGTERM) after a clean drain; 138 lost a peer, or the port is taken: start me again.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import threading
from typing import Any, Callable, Dict, List, Optional

from millrace import settings

DONE, USER_ERROR, BAD_CONFIGURATION, LOST_PEER = 0, 1, 2, 138
_PORT_IS_TAKEN = re.compile(r"\bcannot (listen at|take) \S+: Address already in use")
_PEER_DID_NOT_COME = re.compile(r"\bwaited \S+: ")  # of sessions: for a server, or for a task of its cluster


def drain_seconds() -> float:
    """How long a process may take to end after a signal: MILLRACE_DRAIN_SECONDS. ValueError when that is no number from 0 on."""
    return settings.seconds("MILLRACE_DRAIN_SECONDS")


def exit_code_of(error: BaseException) -> int:
    """The exit code of a program that this error has ended."""
    from millrace.framework import errors

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else DONE if error.code is None else USER_ERROR
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT
    return LOST_PEER if _is_of_a_peer(error, errors) or is_taken_port(error) else USER_ERROR


def is_taken_port(error: BaseException) -> bool:
    """Whether a server did not start since another process, perhaps the one before it, has its port still."""
    return bool(_PORT_IS_TAKEN.search(str(getattr(error, "message", ""))))


def _is_of_a_peer(error: BaseException, errors: Any) -> bool:
    if isinstance(error, errors.DeadlineExceededError):  # of steps, it is the program's
        return bool(getattr(error, "peer_did_not_come", False) or _PEER_DID_NOT_COME.search(str(error.message)))
    return isinstance(error, (errors.UnavailableError, errors.AbortedError))


_hook_before: List[Any] = []


def tell_lost_peers() -> None:
    """From now on a program that ends because a task of its cluster is gone, or its own port is taken, has exit code 138, not 1."""
    if _hook_before:
        return
    _hook_before.append(sys.excepthook)

    def hook(kind: Any, error: Any, trace: Any) -> None:
        _hook_before[0](kind, error, trace)
        if exit_code_of(error) == LOST_PEER:
            atexit.register(_leave, LOST_PEER)  # the last to be registered is the first to be called, so it calls the others

    sys.excepthook = hook


def _leave(code: int) -> None:
    atexit.unregister(_leave)
    try:
        atexit._run_exitfuncs()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


_leaving: List["Signals"] = []


def is_leaving() -> bool:
    """Whether a signal has told this process to stop."""
    return bool(_leaving)


def leave_if_told() -> None:
    """Leaves now, where a signal has told this process to stop: for waits of which nothing would come that is worth saving."""
    if _leaving:
        _leaving[-1].leave()


_stand_ins: List[Any] = []  # handlers of answer_requests, which give way to a training's


def answer_requests(describe: Callable[[], str], tell: Callable[[str], None]) -> None:
    """From now on SIGUSR1 ("save now") does not end a process that has a server and no training, and SIGUSR2 tells the steps under way.

    Only the main thread can have signals, and only those are taken that nobody else handles.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def has_nothing_to_save(*_: Any) -> None:
        tell("SIGUSR1 asks for a checkpoint, which trainings save; none is under way in this process")

    def tell_steps(*_: Any) -> None:
        for line in describe().splitlines():
            tell(line)

    for number, handler in ((signal.SIGUSR1, has_nothing_to_save), (signal.SIGUSR2, tell_steps)):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.SIG_IGN):
            _stand_ins.append(handler)
            signal.signal(number, handler)


class Signals:
    """SIGTERM and others asked for, while this is held: the first calls a function, a second one ends the process at once, and so does the end of the drain.

    Only the main thread can have signals, and only those are taken that nobody else handles; elsewhere nothing happens. The functions run between two
    lines of the main thread: they must not take long.
    """

    def __init__(self, on_stop: Callable[[int], None], on_checkpoint: Optional[Callable[[], None]] = None, stops: Any = (signal.SIGTERM,)) -> None:
        self._on_stop, self._on_checkpoint = on_stop, on_checkpoint
        self._before: Dict[int, Any] = {}
        self._drain: Optional[threading.Timer] = None
        self.received: Optional[int] = None
        if threading.current_thread() is not threading.main_thread():
            return
        for number in stops:
            self._take(number, self._stop)
        if on_checkpoint is not None:
            self._take(signal.SIGUSR1, lambda *_: on_checkpoint())

    def _take(self, number: int, handler: Any) -> None:
        before = signal.getsignal(number)
        # `millrace launch` starts its tasks with SIGUSR1 ignored: it may come before anybody here could take it.
        is_free = before in (signal.SIG_DFL, signal.default_int_handler) or before in _stand_ins or (number == signal.SIGUSR1 and before == signal.SIG_IGN)
        if is_free:
            self._before[number] = before
            signal.signal(number, handler)

    def _stop(self, number: int, _: Any) -> None:
        if self.received is not None:
            os._exit(128 + number)
        self.received = number
        _leaving.append(self)
        self._drain = threading.Timer(drain_seconds(), self._give_up)
        self._drain.daemon = True
        self._drain.start()
        self._on_stop(number)

    def _give_up(self) -> None:
        if self.received is not None:
            sys.stderr.write("millrace: %s came %g s ago, and the process has not ended: it ends now\n" % (signal.Signals(self.received).name, drain_seconds()))
            sys.stderr.flush()
            os._exit(128 + self.received)

    @property
    def exit_code(self) -> int:
        """Of a process that has been told to stop and has done so."""
        return 128 + (self.received or signal.SIGTERM)

    def leave(self) -> None:
        """Raises what ends a process that has drained: for SIGINT KeyboardInterrupt, which a program may catch, and nothing that it does then is cut short."""
        if self.received != signal.SIGINT:
            raise SystemExit(self.exit_code)
        if self._drain is not None:
            self._drain.cancel()
        _leaving.clear()
        self.received = None
        self.release()
        raise KeyboardInterrupt

    def release(self) -> None:
        """Gives the signals back to whom they were. A process that was told to stop keeps them: it is about to end."""
        if self.received is None and threading.current_thread() is threading.main_thread():
            for number, before in self._before.items():
                signal.signal(number, before)
            self._before.clear()
