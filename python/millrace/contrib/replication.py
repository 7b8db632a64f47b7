# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator.replicate_model_fn: a model on each of several devices. There is one here."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, Sequence

from millrace import losses
from millrace.framework.errors import at_user_line
from millrace.framework.graph import device
from millrace.train.optimizer import Optimizer


def replicate_model_fn(
    model_fn: Callable[..., Any], loss_reduction: str = losses.Reduction.SUM_BY_NONZERO_WEIGHTS, devices: Optional[Sequence[str]] = None
) -> Callable[..., Any]:
    """The model_fn, on the one device that is given or on that of this machine. How losses of several would be put together makes no difference."""
    losses.Reduction.validate(loss_reduction)
    if devices is not None and len(devices) != 1:
        raise at_user_line(NotImplementedError("replicate_model_fn on %d devices is not provided: leave devices out, or name one." % len(devices)))

    @functools.wraps(model_fn)
    def replicated(*args: Any, **kwargs: Any) -> Any:
        with device(devices[0] if devices else None):
            return model_fn(*args, **kwargs)

    return replicated


class TowerOptimizer(Optimizer):
    """An optimizer, or what a function makes, in a replicated model_fn: it sums up the gradients of the devices, of which there is one."""

    def __init__(self, optimizer_or_optimizer_fn: Any) -> None:
        made = optimizer_or_optimizer_fn
        self._inner = made() if callable(made) and not isinstance(made, Optimizer) else made
        super().__init__(False, "TowerOptimizer")

    def get_name(self) -> str:
        """That of the optimizer."""
        return str(self._inner.get_name())

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """Those of the optimizer."""
        return self._inner.compute_gradients(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None, **kwargs: Any) -> Any:
        """Changes the variables."""
        return self._inner.apply_gradients(grads_and_vars, global_step=global_step, name=name, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """What the optimizer keeps for a variable."""
        return self._inner.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The names of what the optimizer keeps."""
        return self._inner.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """The variables of the optimizer."""
        return self._inner.variables()
