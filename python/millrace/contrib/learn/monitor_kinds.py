# SPDX-License-Identifier: Apache-2.0
"""Monitors of tf.contrib.learn: one says before a step which tensors it wants, and gets their values after it."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from millrace import tf_logging
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, get_collection
from millrace.train.hooks import NanLossDuringTrainingError


class BaseMonitor:
    """Does nothing. The order of calls: begin, then for each step step_begin, step_end and post_step, then end."""

    def __init__(self) -> None:
        self._begun = False
        self._current_epoch: Optional[int] = None
        self._current_step: Optional[int] = None
        self._max_steps: Optional[int] = None
        self._estimator: Any = None

    run_on_all_workers = property(lambda self: False, doc="Whether workers other than the chief run it, too.")

    def set_estimator(self, estimator: Any) -> None:
        """The estimator that trains."""
        self._estimator = estimator

    def begin(self, max_steps: Optional[int] = None) -> None:
        """Training begins."""
        if self._begun:
            raise at_user_line(ValueError("begin called twice without end."))
        self._max_steps, self._begun = max_steps, True

    def end(self, session: Any = None) -> None:
        """Training ends."""
        del session  # for subclasses
        if not self._begun:
            raise at_user_line(ValueError("end called without begin."))
        self._max_steps, self._begun = None, False

    def epoch_begin(self, epoch: int) -> None:
        """An epoch begins."""
        if self._current_epoch is not None:
            raise at_user_line(ValueError("epoch_begin called twice without epoch_end."))
        if epoch < 0:
            raise at_user_line(ValueError("Invalid epoch %s." % epoch))
        self._current_epoch = epoch

    def epoch_end(self, epoch: int) -> None:
        """An epoch ends."""
        if self._current_epoch != epoch:
            raise at_user_line(ValueError("epoch_end expected %s but got %s." % (self._current_epoch, epoch)))
        self._current_epoch = None

    def _check_step(self, step: int) -> None:
        if step < 0 or self._max_steps is not None and step > self._max_steps:
            raise at_user_line(ValueError("Invalid step %s." % step))

    def step_begin(self, step: int) -> List[Any]:
        """The tensors whose values are wanted of this step, or their names."""
        self._check_step(step)
        self._current_step = step
        return []

    def step_end(self, step: int, output: Any) -> bool:
        """Whether training shall stop; `output` has the values by the names."""
        del output  # for subclasses
        if self._current_step != step:
            raise at_user_line(ValueError("step_end expected %s but got %s." % (self._current_step, step)))
        self._current_step = None
        return False

    def post_step(self, step: int, session: Any) -> None:
        """The step is done, and the session may be asked."""
        del session  # for subclasses
        self._check_step(step)


class EveryN(BaseMonitor):
    """Calls every_n_step_begin, every_n_step_end and every_n_post_step in the first steps, every so many steps, and the last one."""

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        super().__init__()
        self._every_n_steps, self._first_n_steps = every_n_steps, first_n_steps
        self._last_successful_step: Optional[int] = None
        self._last_active_step, self._active = 0, False

    def every_n_step_begin(self, step: int) -> List[Any]:
        """The tensors whose values are wanted."""
        del step  # for subclasses
        return []

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Whether training shall stop."""
        del step, outputs  # for subclasses
        return False

    def every_n_post_step(self, step: int, session: Any) -> None:
        """The step is done; also called at the end where the last step was none of these."""

    def step_begin(self, step: int) -> List[Any]:
        """Asks in the steps that count."""
        super().step_begin(step)
        self._active = step <= self._first_n_steps or step >= self._every_n_steps + self._last_active_step or step == self._max_steps
        return self.every_n_step_begin(step) if self._active else []

    def step_end(self, step: int, output: Any) -> bool:
        """Tells in the steps that count."""
        super().step_end(step, output)
        return self.every_n_step_end(step, output) if self._active else False

    def post_step(self, step: int, session: Any) -> None:
        """Tells in the steps that count."""
        super().post_step(step, session)
        if self._active:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_successful_step = step

    def end(self, session: Any = None) -> None:
        """The last step counts."""
        super().end(session)
        if self._last_successful_step is not None and self._last_successful_step != self._last_active_step:
            self.every_n_post_step(self._last_successful_step, session)


class StopAtStep(BaseMonitor):
    """Ends the training: at a step, or so many after its first one."""

    def __init__(self, num_steps: Optional[int] = None, last_step: Optional[int] = None) -> None:
        super().__init__()
        if num_steps is None and last_step is None:
            raise at_user_line(ValueError("One of num_steps or last_step must be specified."))
        if num_steps is not None and last_step is not None:
            raise at_user_line(ValueError("Only one of num_steps or last_step can be specified."))
        self._num_steps, self._last_step = num_steps, last_step

    run_on_all_workers = property(lambda self: True, doc="Each worker stops.")

    def step_begin(self, step: int) -> List[Any]:
        """Finds the last step."""
        super().step_begin(step)
        if self._last_step is None:
            self._last_step = step + (self._num_steps or 0) - 1
        return []

    def step_end(self, step: int, output: Any) -> bool:
        """Whether it was the last step."""
        super().step_end(step, output)
        return self._last_step is not None and step >= self._last_step


def _log(step: int, names: Dict[str, str], outputs: Dict[str, Any]) -> None:
    tf_logging.info("Step %d: %s", step, ", ".join("%s = %s" % (tag, outputs[name]) for tag, name in names.items() if name in outputs))


class PrintTensor(EveryN):
    """Logs tensors, given by their names."""

    def __init__(self, tensor_names: Any, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._names = tensor_names if isinstance(tensor_names, dict) else {name: name for name in tensor_names}

    def every_n_step_begin(self, step: int) -> List[Any]:
        """The tensors."""
        super().every_n_step_begin(step)
        return list(self._names.values())

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Logs them."""
        super().every_n_step_end(step, outputs)
        _log(step, self._names, outputs)
        return False


class LoggingTrainable(EveryN):
    """Logs the trainable variables of a scope."""

    def __init__(self, scope: Optional[str] = None, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._scope = scope
        self._names: Dict[str, str] = {}

    def every_n_step_begin(self, step: int) -> List[Any]:
        """The variables."""
        super().every_n_step_begin(step)
        self._names = {v.name: v.name for v in get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=self._scope)}
        return list(self._names)

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Logs them."""
        super().every_n_step_end(step, outputs)
        _log(step, self._names, outputs)
        return False


class CaptureVariable(EveryN):
    """Keeps the values of a variable, by steps."""

    def __init__(self, var_name: str, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._var_name = var_name
        self._var_values: Dict[int, Any] = {}

    values = property(lambda self: self._var_values, doc="{step: value}.")

    def every_n_step_begin(self, step: int) -> List[Any]:
        """The variable."""
        super().every_n_step_begin(step)
        return [self._var_name]

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Keeps the value."""
        super().every_n_step_end(step, outputs)
        self._var_values[step] = outputs[self._var_name]
        return False


class NanLoss(EveryN):
    """Ends the training where the loss is no number: with an error, or (fail_on_nan_loss=False) quietly."""

    def __init__(self, loss_tensor: Any, every_n_steps: int = 100, fail_on_nan_loss: bool = True) -> None:
        super().__init__(every_n_steps)
        self._loss_tensor, self._fail_on_nan_loss = loss_tensor, fail_on_nan_loss

    def every_n_step_begin(self, step: int) -> List[Any]:
        """The loss."""
        super().every_n_step_begin(step)
        return [self._loss_tensor]

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Whether it is no number."""
        super().every_n_step_end(step, outputs)
        if not np.isnan(value_of(outputs, self._loss_tensor)):
            return False
        message = "Model diverged with loss = NaN."
        if self._fail_on_nan_loss:
            tf_logging.error(message)
            raise NanLossDuringTrainingError
        tf_logging.warning(message)
        return True


def value_of(outputs: Any, tensor: Any) -> Any:
    """The value of a tensor among outputs, which are by names or by tensors."""
    name = tensor if isinstance(tensor, str) else tensor.name
    return outputs[name] if isinstance(outputs, dict) and name in outputs else outputs[tensor]
