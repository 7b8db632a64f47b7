# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.framework.CriticalSection, whose functions may be given arguments, as up to 1.12."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Optional

from millrace.ops import critical_section


class CriticalSection(critical_section.CriticalSection):
    """tf.CriticalSection; what stands behind fn goes to it."""

    def execute(self, fn: Callable[..., Any], *args: Any, exclusive_resource_access: bool = True, name: Optional[str] = None, **kwargs: Any) -> Any:  # type: ignore[override]
        """What fn(*args, **kwargs) returns, while nobody else is in the section. Tensors among the arguments are there before it is entered. For a
        function without parameters these are exclusive_resource_access and name, as in 1.15."""
        if args and not inspect.signature(fn).parameters:
            return super().execute(fn, *args, **kwargs)
        return super().execute(functools.partial(fn, *args, **kwargs), exclusive_resource_access, name)
