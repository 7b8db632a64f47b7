# SPDX-License-Identifier: Apache-2.0
"""Name scopes of the functions of tf.image."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar, cast

from millrace.framework.graph import Tensor, name_scope

_F = TypeVar("_F", bound=Callable[..., Any])


def scoped(function: _F) -> _F:
    """Puts the nodes that a function without a parameter `name` makes into a name scope called after it."""

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with name_scope(None, function.__name__, [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]):
            return function(*args, **kwargs)

    return cast(_F, inside)
