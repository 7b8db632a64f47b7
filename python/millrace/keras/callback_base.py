# SPDX-License-Identifier: Apache-2.0
"""What callbacks are, several as one, and those that each training has."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from millrace.keras.utils.generic_utils import Progbar


class Callback:
    """Base of callbacks."""

    model: Any = None

    def set_model(self, model: Any) -> None:
        """The model that trains."""
        self.model = model

    def set_params(self, params: Dict[str, Any]) -> None:
        """How it trains."""
        self.params = params

    def on_train_begin(self, logs: Any = None) -> None:
        """Before the training."""

    def on_train_end(self, logs: Any = None) -> None:
        """After the training."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch."""

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a step."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a step."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a step."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a step."""
        self.on_batch_end(batch, logs)

    def on_test_begin(self, logs: Any = None) -> None:
        """Before an evaluation, that of a training too."""

    def on_test_end(self, logs: Any = None) -> None:
        """After an evaluation."""

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of an evaluation."""

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of an evaluation."""

    def on_predict_begin(self, logs: Any = None) -> None:
        """Before a prediction."""

    def on_predict_end(self, logs: Any = None) -> None:
        """After a prediction."""

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of a prediction."""

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of a prediction."""


class CallbackList:
    """Several callbacks as one."""

    def __init__(self, callbacks: Any = None, queue_length: int = 10) -> None:
        del queue_length  # no times are averaged
        self.callbacks: List[Any] = list(callbacks or [])
        self.params: Dict[str, Any] = {}
        self.model: Any = None

    def append(self, callback: Any) -> None:
        """Adds a callback."""
        self.callbacks.append(callback)

    def set_params(self, params: Dict[str, Any]) -> None:
        """How it trains."""
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: Any) -> None:
        """The model that trains."""
        self.model = model
        for callback in self.callbacks:
            callback.set_model(model)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_"):
            raise AttributeError(name)

        def each(*args: Any) -> None:
            for callback in self.callbacks:
                getattr(callback, name)(*args)

        return each

    def __iter__(self) -> Any:
        return iter(self.callbacks)


def configure_callbacks(
    callbacks: Any,
    model: Any,
    do_validation: bool = False,
    batch_size: Optional[int] = None,
    epochs: Optional[int] = None,
    steps_per_epoch: Optional[int] = None,
    samples: Optional[int] = None,
    verbose: int = 1,
    count_mode: str = "steps",
    mode: str = "train",
) -> CallbackList:
    """The callbacks of a training ("train"), an evaluation ("test") or a prediction ("predict"), which know the model and how it runs."""
    if isinstance(callbacks, CallbackList):
        return callbacks
    chosen = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
    if mode == "train":
        model.history = History()
        chosen = [BaseLogger(), *chosen, model.history, *([ProgbarLogger(count_mode)] if verbose else [])]
    together = CallbackList(chosen)
    together.set_model(getattr(model, "callback_model", None) or model)
    set_callback_parameters(together, model, do_validation, batch_size, epochs, steps_per_epoch, samples, verbose, mode)
    together.model.stop_training = False
    return together


def set_callback_parameters(
    callback_list: CallbackList,
    model: Any,
    do_validation: bool = False,
    batch_size: Optional[int] = None,
    epochs: Optional[int] = None,
    steps_per_epoch: Optional[int] = None,
    samples: Optional[int] = None,
    verbose: int = 1,
    mode: str = "train",
) -> None:
    """Tells callbacks how it runs, and which measures there are."""
    names = list(getattr(model, "metrics_names", ()))
    for callback in callback_list:
        if isinstance(callback, (BaseLogger, ProgbarLogger)):
            callback.stateful_metrics = set(names[1:])
    measured = [] if mode == "predict" else names + (["val_" + n for n in names] if do_validation else [])
    callback_list.set_params(
        {
            "batch_size": batch_size,
            "epochs": epochs,
            "steps": steps_per_epoch,
            "samples": samples,
            "verbose": verbose,
            "do_validation": do_validation,
            "metrics": measured,
        }
    )


class BaseLogger(Callback):
    """The means of the measures over an epoch, by batch sizes; of the stateful ones the last values. The epoch's logs get them."""

    def __init__(self, stateful_metrics: Any = None) -> None:
        super().__init__()
        self.stateful_metrics = set(stateful_metrics or ())

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Starts at nothing."""
        self.seen, self.totals = 0, {}  # type: int, Dict[str, Any]

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Counts a batch."""
        logs = logs or {}
        size = logs.get("size", 0)
        self.seen += size * logs.get("num_steps", 1)
        for key, value in logs.items():
            self.totals[key] = value if key in self.stateful_metrics else self.totals.get(key, 0) + np.float64(value) * size

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Puts the means into the logs."""
        if logs is not None:
            for key in self.params.get("metrics", []):
                if key in self.totals:
                    logs[key] = self.totals[key] if key in self.stateful_metrics else self.totals[key] / max(self.seen, 1)


class History(Callback):
    """The loss and metrics of each epoch."""

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts empty."""
        self.epoch: List[int] = []
        self.history: Dict[str, List[Any]] = {}

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Keeps them."""
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)


class ProgbarLogger(Callback):
    """Prints how far it has got: with verbose=1 a bar on a terminal, and a line for each epoch."""

    def __init__(self, count_mode: str = "samples", stateful_metrics: Any = None) -> None:
        if count_mode not in ("samples", "steps"):
            raise ValueError("Unknown `count_mode`: %s" % count_mode)
        self.use_steps, self.stateful_metrics = count_mode == "steps", set(stateful_metrics or ())
        self.log_values: List[Any] = []

    def on_train_begin(self, logs: Any = None) -> None:
        """Notes how it trains."""
        self.verbose, self.epochs = self.params["verbose"], self.params["epochs"]

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Prints its number, where there are several."""
        self.seen, self.target = 0, self.params["steps" if self.use_steps else "samples"]
        if self.verbose and (self.epochs or 1) > 1:
            print("Epoch %d/%d" % (epoch + 1, self.epochs))
        unit = "step" if self.use_steps else "sample"
        self.progbar = Progbar(self.target, verbose=self.verbose, stateful_metrics=self.stateful_metrics, unit_name=unit)

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Forgets what was measured before."""
        self.log_values = []

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Moves the bar on."""
        logs = logs or {}
        steps = logs.get("num_steps", 1)
        self.seen += steps if self.use_steps else steps * logs.get("size", 0)
        self._measure(logs)
        if self.verbose and (self.target is None or self.seen < self.target):
            self.progbar.update(self.seen, self.log_values)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Prints the loss and metrics."""
        self._measure(logs or {})
        if self.verbose:
            self.progbar.stateful_metrics |= {name for name, _ in self.log_values}  # they are means of the epoch now
            self.progbar.update(self.seen, self.log_values, force=True)

    def _measure(self, logs: Dict[str, Any]) -> None:
        self.log_values += [(name, logs[name]) for name in self.params["metrics"] if name in logs]
