# SPDX-License-Identifier: Apache-2.0
"""How an Experiment exports what it has trained."""

from __future__ import annotations

import inspect
from typing import Any, Callable, NamedTuple, Optional

from millrace.framework.errors import at_user_line


class ExportStrategy(NamedTuple):
    """A name, which is a folder below export, and a function of an estimator and that folder."""

    name: str
    export_fn: Callable[..., Any]
    strip_default_attrs: Optional[bool] = None

    def export(self, estimator: Any, export_path: str, checkpoint_path: Optional[str] = None, eval_result: Any = None) -> Any:
        """Calls the function, with as much as it takes: what is given and not taken is an error."""
        taken = inspect.signature(self.export_fn).parameters
        every = any(p.kind is p.VAR_KEYWORD for p in taken.values())
        given = {"checkpoint_path": checkpoint_path, "eval_result": eval_result}
        for name, value in given.items():
            if value is not None and name == "checkpoint_path" and name not in taken and not every:
                raise at_user_line(ValueError("The export_fn of %s must take %s to get it." % (self.name, name)))
        kwargs = {name: value for name, value in given.items() if name in taken or every}
        if "strip_default_attrs" in taken:
            kwargs["strip_default_attrs"] = self.strip_default_attrs
        return self.export_fn(estimator, export_path, **kwargs)
