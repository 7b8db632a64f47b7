# SPDX-License-Identifier: Apache-2.0
"""Signals of training programs: SIGTERM ends the step, saves and leaves with exit code 143, SIGUSR1 saves (docs/cluster.md)."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any, Callable, List, Optional

from millrace import tf_logging
from millrace.launch.contract import Signals
from millrace.train.hooks import CheckpointSaverHook, SessionRunHook


class SignalHook(SessionRunHook):
    """The last hook of a MonitoredTrainingSession: between two steps it does what a signal has asked for."""

    def __init__(self, hooks: List[Any]) -> None:
        self._savers = [h for h in hooks if isinstance(h, CheckpointSaverHook)]
        self._wants_checkpoint = self._has_session = False
        self._signals: Optional[Signals] = None

    def begin(self) -> None:
        """Takes the signals that nobody else has. Who sits at a prompt wants Ctrl-C to end the step, and no more."""
        has_prompt = hasattr(sys, "ps1") or sys.flags.interactive
        self._signals = Signals(self._stop, self._ask, stops=(signal.SIGTERM,) if has_prompt else (signal.SIGTERM, signal.SIGINT))

    def after_create_session(self, session: Any, coord: Any) -> None:
        """From now on there is something to save."""
        self._has_session = True

    def _stop(self, number: int) -> None:
        if not self._has_session:
            self._signals.leave()  # type: ignore[union-attr]
        if number == signal.SIGINT:
            sys.stderr.write("\nSIGINT: the step ends, then the program saves and leaves. Once more: it ends now.\n")

    def _ask(self) -> None:
        self._wants_checkpoint = True

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Saves, or saves and leaves."""
        stops = self._signals is not None and self._signals.received is not None
        if stops or self._wants_checkpoint:
            self._wants_checkpoint = False
            for saver in self._savers:
                saver.save_now(run_context.session)
        if stops:
            tf_logging.info("The program was told to stop; %s.", "its state is saved" if self._savers else "it keeps no checkpoints")
            self._signals.leave()  # type: ignore[union-attr]

    def release(self) -> None:
        """Gives the signals back."""
        if self._signals is not None:
            self._signals.release()


class SupervisedSignals:
    """Those of a Supervisor, whose steps it does not see: SIGTERM and SIGUSR1 save from a thread, SIGTERM asks the program to stop then."""

    def __init__(self, supervisor: Any, session: Any) -> None:
        self._supervisor, self._session = supervisor, session
        self._saving = threading.Lock()
        self._signals = Signals(lambda _: self._start(True), lambda: self._start(False))

    def _start(self, stops: bool) -> None:
        threading.Thread(target=self._save, args=(stops,), daemon=True).start()

    def _save(self, stops: bool) -> None:
        sv = self._supervisor
        try:
            with self._saving:
                if sv.is_chief and sv.saver is not None and sv.save_path:
                    sv.saver.save(self._session, sv.save_path, global_step=sv.global_step)
        except Exception as error:
            tf_logging.error("A signal asked for a checkpoint, which failed: %s", error)
        if stops:
            sv.request_stop()

    def end(self) -> Optional[Callable[[], None]]:
        """What ends a program that was told to stop; nothing when it was not, and the signals are given back."""
        if self._signals.received is None:
            self._signals.release()
            return None
        with self._saving:  # it is being written
            pass

        def leave() -> None:
            raise SystemExit(self._signals.exit_code)

        return leave
