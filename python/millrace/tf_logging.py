# SPDX-License-Identifier: Apache-2.0
"""tf.logging."""

from __future__ import annotations

import logging as _logging
import sys as _sys
from typing import Any, Dict

DEBUG, INFO, WARN, ERROR, FATAL = _logging.DEBUG, _logging.INFO, _logging.WARN, _logging.ERROR, _logging.FATAL
_logger = _logging.getLogger("tensorflow")
_counts: Dict[Any, int] = {}


def _log() -> _logging.Logger:
    if not _logger.handlers and not _logging.getLogger().handlers:
        handler = _logging.StreamHandler(_sys.stderr)
        handler.setFormatter(_logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
        _logger.addHandler(handler)
        _logger.propagate = False
        if _logger.level == _logging.NOTSET:
            _logger.setLevel(WARN)
    return _logger


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
