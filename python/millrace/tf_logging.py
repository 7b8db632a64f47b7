# SPDX-License-Identifier: Apache-2.0
"""tf.logging."""

from __future__ import annotations

import sys as _sys
from typing import TYPE_CHECKING, Any, Dict

if TYPE_CHECKING:
    import logging as _logging

DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50  # those of logging
_counts: Dict[Any, int] = {}


def _log() -> _logging.Logger:
    import logging  # takes milliseconds, and most programs log nothing

    logger = logging.getLogger("tensorflow")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(_sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
        if logger.level == logging.NOTSET:
            logger.setLevel(WARN)
    return logger


def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at a level."""
    _log().log(level, msg, *args, **kwargs)


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at level DEBUG."""
    _log().debug(msg, *args, **kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at level INFO."""
    _log().info(msg, *args, **kwargs)


def warn(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at level WARN."""
    _log().warning(msg, *args, **kwargs)


warning = warn


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at level ERROR."""
    _log().error(msg, *args, **kwargs)


def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at level FATAL."""
    _log().critical(msg, *args, **kwargs)


def vlog(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at a level."""
    _log().log(level, msg, *args, **kwargs)


def log_every_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Logs every n-th time."""
    count = _counts[msg] = _counts.get(msg, -1) + 1
    if count % n == 0:
        log(level, msg, *args)


def log_first_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Logs the first n times."""
    count = _counts[msg] = _counts.get(msg, -1) + 1
    if count < n:
        log(level, msg, *args)


def log_if(level: int, msg: Any, condition: Any, *args: Any) -> None:
    """Logs when a condition is true."""
    if condition:
        log(level, msg, *args)


def flush() -> None:
    """Nothing to do."""


def get_verbosity() -> int:
    """The level from which on messages are shown."""
    return _log().getEffectiveLevel()


def set_verbosity(v: Any) -> None:
    """Sets the level from which on messages are shown."""
    _log().setLevel(v)


def TaskLevelStatusMessage(msg: Any) -> None:
    """Logs at level ERROR."""
    error(msg)
