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
        """Calls the function, with as much of this as it takes."""
        taken = inspect.signature(self.export_fn).parameters
        if "eval_result" in taken and "checkpoint_path" not in taken:
            raise at_user_line(ValueError("An export_fn accepting eval_result must also accept checkpoint_path."))
        given = {"checkpoint_path": checkpoint_path, "eval_result": eval_result, "strip_default_attrs": self.strip_default_attrs}
        return self.export_fn(estimator, export_path, **{name: value for name, value in given.items() if name in taken})
