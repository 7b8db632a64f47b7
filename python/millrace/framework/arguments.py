# SPDX-License-Identifier: Apache-2.0
"""Arguments that functions of TensorFlow have and that mean nothing here but as their defaults."""

from __future__ import annotations

from typing import Any

from millrace import tf_logging
from millrace.framework.errors import at_user_line


def only(default: Any, **given: Any) -> None:
    """NotImplementedError for an argument that is other than its default."""
    for name, value in given.items():
        if value is default or type(value) is type(default) and value == default:
            continue
        raise at_user_line(NotImplementedError("%s=%r is not provided: leave it out, or pass %r." % (name, value, default)))


def deprecated(**given: Any) -> None:
    """A warning for arguments that TensorFlow itself ignores."""
    for name, value in given.items():
        if value is not None:
            tf_logging.warn("The %s parameter is deprecated and ignored.", name)
