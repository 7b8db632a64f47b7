# SPDX-License-Identifier: Apache-2.0
"""tf.python: attribute paths such as tf.python.framework.ops mean what imports of them mean."""

from typing import Any as _Any
from typing import List as _List

from millrace import names as _names


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _names.find("python." + name)


def __dir__() -> _List[str]:
    return _names.under("python")
