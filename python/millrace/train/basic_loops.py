# SPDX-License-Identifier: Apache-2.0
"""A loop of training steps that goes on after a preemption."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.framework.errors import AbortedError
from millrace.train.supervisor import Supervisor


def basic_train_loop(supervisor: Supervisor, train_step_fn: Callable[..., Any], args: Any = None, kwargs: Optional[Any] = None, master: str = "") -> None:
    """Calls train_step_fn(session, *args, **kwargs) until the supervisor says stop; after an AbortedError with a new session."""
    while True:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or []), **(kwargs or {}))
                return
        except AbortedError:
            continue
