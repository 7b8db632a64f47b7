# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.lazy_loader: modules that are imported when one of their names is first asked for."""

from __future__ import annotations

import importlib
import types
from typing import Any, Dict, List


class LazyLoader(types.ModuleType):
    """Stands for the module `name`, and gives way to it in the namespace of who uses it once it is imported."""

    def __init__(self, local_name: str, parent_module_globals: Dict[str, Any], name: str) -> None:
        super().__init__(name)
        self.__dict__.update(_local_name=local_name, _parent_module_globals=parent_module_globals)

    def _load(self) -> Any:
        module = importlib.import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        self.__dict__.update(module.__dict__)
        return module

    def __getattr__(self, item: str) -> Any:
        return getattr(self._load(), item)

    def __dir__(self) -> List[str]:
        return dir(self._load())
