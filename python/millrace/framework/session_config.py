# SPDX-License-Identifier: Apache-2.0
"""What sessions refuse of a ConfigProto."""

from __future__ import annotations

from typing import Any

from millrace.framework.errors import InvalidArgumentError, NotFoundError, at_user_line

_EXECUTORS = ("", "DEFAULT", "SINGLE_THREADED_EXECUTOR")


def check_experimental(config: Any) -> None:
    """Refuses what of ConfigProto.experimental means nothing here; whatever else it may ask for changes no value (docs/compatibility.md)."""
    asked = getattr(config, "experimental", None)
    if asked is None:  # the bytes of a program that made them by itself
        return
    if asked.executor_type not in _EXECUTORS:
        raise at_user_line(
            NotFoundError(None, None, "ConfigProto.experimental.executor_type is '%s', want one of %s" % (asked.executor_type, list(_EXECUTORS[1:])))
        )
    version = asked.session_metadata.version
    if version < 0:
        raise at_user_line(InvalidArgumentError(None, None, "ConfigProto.experimental.session_metadata.version is %d, want 0 or more" % version))
