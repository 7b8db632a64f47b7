# SPDX-License-Identifier: Apache-2.0
"""Optimizers by name."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.errors import at_user_line

_CLASSES = {"Adagrad": "AdagradOptimizer", "Adam": "AdamOptimizer", "Ftrl": "FtrlOptimizer", "RMSProp": "RMSPropOptimizer", "SGD": "GradientDescentOptimizer"}


def get_optimizer_instance(opt: Any, learning_rate: Optional[float] = None) -> Any:
    """An optimizer as it is, what a function without arguments makes, or one of these names with the rate."""
    from millrace import train

    if isinstance(opt, str):
        if opt not in _CLASSES:
            raise at_user_line(ValueError("Unsupported optimizer name: %s. Supported names are: %s" % (opt, tuple(sorted(_CLASSES)))))
        if not learning_rate:
            raise at_user_line(ValueError("learning_rate must be specified when opt is string."))
        return getattr(train, _CLASSES[opt])(learning_rate)
    made = opt() if callable(opt) else opt
    if not isinstance(made, train.Optimizer):
        raise at_user_line(ValueError("The given object is not an Optimizer instance. Given: %s" % (made,)))
    return made
