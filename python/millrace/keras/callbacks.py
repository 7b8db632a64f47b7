# SPDX-License-Identifier: Apache-2.0
"""tf.keras.callbacks: what is done while a model trains."""
from __future__ import annotations

import csv
import sys
import time
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from millrace.keras import backend as K


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
    """Prints a line for each epoch."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Prints its number."""
        self._start = time.time()
        print("Epoch %d/%d" % (epoch + 1, self.params["epochs"]))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Prints the loss and metrics."""
        print(" - %ds - %s" % (time.time() - self._start, " - ".join("%s: %.4f" % item for item in (logs or {}).items())))
        sys.stdout.flush()


def _better(monitor: str, mode: str) -> Callable[[Any, Any], bool]:
    more = mode == "max" or mode == "auto" and ("acc" in monitor or monitor.startswith("fmeasure"))
    return (lambda a, b: a > b) if more else (lambda a, b: a < b)


class EarlyStopping(Callback):
    """Stops where a value no longer gets better."""

    def __init__(self, monitor: str = "val_loss", min_delta: float = 0, patience: int = 0, verbose: int = 0, mode: str = "auto", baseline: Any = None,
                 restore_best_weights: bool = False) -> None:
        self.monitor, self.min_delta, self.patience, self.verbose, self.baseline = monitor, abs(min_delta), patience, verbose, baseline
        self.restore_best_weights, self._is_better = restore_best_weights, _better(monitor, mode)

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts anew."""
        self.best, self.wait, self.stopped_epoch, self._weights = self.baseline, 0, 0, None  # type: Any, int, int, Any

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares."""
        value = (logs or {}).get(self.monitor)
        if value is None:
            return
        delta = self.min_delta if self._is_better(1, 0) else -self.min_delta
        if self.best is None or self._is_better(value - delta, self.best):
            self.best, self.wait = value, 0
            self._weights = self.model.get_weights() if self.restore_best_weights else None
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch, self.model.stop_training = epoch, True
            if self._weights is not None:
                self.model.set_weights(self._weights)

    def on_train_end(self, logs: Any = None) -> None:
        """Says so."""
        if self.stopped_epoch and self.verbose:
            print("Epoch %05d: early stopping" % (self.stopped_epoch + 1))


class ModelCheckpoint(Callback):
    """Saves the weights after epochs."""

    def __init__(self, filepath: str, monitor: str = "val_loss", verbose: int = 0, save_best_only: bool = False, save_weights_only: bool = False,
                 mode: str = "auto", period: int = 1) -> None:
        self.filepath, self.monitor, self.verbose, self.save_best_only, self.period = filepath, monitor, verbose, save_best_only, period
        self._is_better, self.best = _better(monitor, mode), None  # type: Any, Any

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves."""
        logs = logs or {}
        value = logs.get(self.monitor)
        if (epoch + 1) % self.period or self.save_best_only and not (value is not None and (self.best is None or self._is_better(value, self.best))):
            return
        self.best = value
        self.model.save_weights(self.filepath.format(epoch=epoch + 1, **logs))


class LearningRateScheduler(Callback):
    """Sets the learning rate at each epoch."""

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self.schedule = schedule

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Sets it."""
        try:
            rate = self.schedule(epoch, float(K.get_value(self.model.optimizer.lr)))
        except TypeError:
            rate = self.schedule(epoch)
        K.set_value(self.model.optimizer.lr, rate)


class ReduceLROnPlateau(Callback):
    """Lowers the learning rate where a value no longer gets better."""

    def __init__(self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0, mode: str = "auto", min_delta: float = 1e-4,
                 cooldown: int = 0, min_lr: float = 0, epsilon: Optional[float] = None) -> None:
        self.monitor, self.factor, self.patience, self.cooldown, self.min_lr = monitor, factor, patience, cooldown, min_lr
        self.min_delta, self._is_better = min_delta if epsilon is None else epsilon, _better(monitor, mode)

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts anew."""
        self.best, self.wait, self._cooling = None, 0, 0  # type: Any, int, int

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares."""
        value = (logs or {}).get(self.monitor)
        if value is None:
            return
        if self._cooling:
            self._cooling, self.wait = self._cooling - 1, 0
        delta = self.min_delta if self._is_better(1, 0) else -self.min_delta
        if self.best is None or self._is_better(value - delta, self.best):
            self.best, self.wait = value, 0
        elif not self._cooling:
            self.wait += 1
            if self.wait >= self.patience:
                rate = self.model.optimizer.lr
                K.set_value(rate, max(float(K.get_value(rate)) * self.factor, self.min_lr))
                self._cooling, self.wait = self.cooldown, 0


class LambdaCallback(Callback):
    """Functions as a callback."""

    def __init__(self, on_epoch_begin: Any = None, on_epoch_end: Any = None, on_batch_begin: Any = None, on_batch_end: Any = None,
                 on_train_begin: Any = None, on_train_end: Any = None) -> None:
        for name, function in list(locals().items()):
            if name.startswith("on_") and function is not None:
                setattr(self, name, function)


class TerminateOnNaN(Callback):
    """Stops where the loss is no number."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Looks."""
        if not np.isfinite((logs or {}).get("loss", 0.0)):
            print("Batch %d: Invalid loss, terminating training" % batch)
            self.model.stop_training = True


class CSVLogger(Callback):
    """Writes the loss and metrics of each epoch to a file."""

    def __init__(self, filename: str, separator: str = ",", append: bool = False) -> None:
        self._path, self._separator, self._mode = filename, separator, "a" if append else "w"

    def on_train_begin(self, logs: Any = None) -> None:
        """Opens the file."""
        self._file = open(self._path, self._mode, newline="", encoding="utf-8")
        self._writer: Any = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes a line."""
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, ["epoch", *sorted(logs)], delimiter=self._separator)
            self._writer.writeheader()
        self._writer.writerow({"epoch": epoch, **logs})
        self._file.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the file."""
        self._file.close()


class TensorBoard(Callback):
    """Writes the loss and metrics of each epoch as summaries."""

    def __init__(self, log_dir: str = "./logs", histogram_freq: int = 0, batch_size: int = 32, write_graph: bool = True, **unused: Any) -> None:
        self.log_dir, self._write_graph = log_dir, write_graph

    def on_train_begin(self, logs: Any = None) -> None:
        """Opens the file."""
        from millrace import summary
        self._writer = summary.FileWriter(self.log_dir, K.get_session().graph if self._write_graph else None)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes."""
        from millrace.protos.definitions import Summary  # type: ignore[attr-defined]
        message = Summary()
        for key, value in (logs or {}).items():
            message.value.add(tag=key, simple_value=float(value))
        self._writer.add_summary(message, epoch)
        self._writer.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the file."""
        self._writer.close()
