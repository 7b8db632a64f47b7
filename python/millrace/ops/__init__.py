# SPDX-License-Identifier: Apache-2.0
"""Functions that make ops. gen_ops is generated; the other modules give its functions TensorFlow's names and arguments."""

import importlib as _importlib
import sys as _sys
from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    """tf.ops of 0.x: names of the package, and of modules here."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return _importlib.import_module("millrace.ops." + name)
    except ModuleNotFoundError as error:
        if error.name != "millrace.ops." + name:
            raise
    return getattr(_sys.modules["millrace"], name)
