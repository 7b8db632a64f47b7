# SPDX-License-Identifier: Apache-2.0
"""tf.contrib: what programs use of it. Modules are loaded when they are first used."""
from typing import Any as _Any
from typing import List as _List

from millrace import names as _names


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = globals()[name] = _names.find("contrib." + name)
    return value


def __dir__() -> _List[str]:
    return _names.under("contrib")
