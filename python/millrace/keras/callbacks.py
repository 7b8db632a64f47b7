# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.callbacks: what is done while a model trains."""

from __future__ import annotations

import csv
import json
import os
import re
from typing import Any, Callable, Dict, Optional

import numpy as np

from millrace import tf_logging
from millrace.keras import backend as K
from millrace.keras.callback_base import BaseLogger, Callback, CallbackList, History, ProgbarLogger  # noqa: F401
from millrace.keras.callback_base import configure_callbacks, set_callback_parameters  # noqa: F401
from millrace.train.checkpoint_management import latest_checkpoint


def _better(monitor: str, mode: str, of: str, words: Any = ("acc",)) -> Callable[[Any, Any], Any]:
    """Whether a value is better than another: np.greater for accuracies and the like, np.less for others, unless the mode says which."""
    if mode not in ("auto", "min", "max"):
        tf_logging.warning("%s mode %s is unknown, fallback to auto mode.", of, mode)
        mode = "auto"
    return np.greater if mode == "max" or mode == "auto" and any(word in monitor for word in words) else np.less


def _worst(better: Any) -> float:
    return float("-inf") if better is np.greater else float("inf")


class EarlyStopping(Callback):
    """Stops where a value no longer gets better."""

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: Any = None,
        restore_best_weights: bool = False,
    ) -> None:
        self.monitor, self.patience, self.verbose, self.baseline, self.restore_best_weights = monitor, patience, verbose, baseline, restore_best_weights
        self.monitor_op = _better(monitor, mode, "EarlyStopping")
        self.min_delta = abs(min_delta) if self.monitor_op is np.greater else -abs(min_delta)
        self.wait = self.stopped_epoch = 0
        self.best_weights: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts anew."""
        self.wait = self.stopped_epoch = 0
        self.best = _worst(self.monitor_op) if self.baseline is None else self.baseline

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares."""
        value = self.get_monitor_value(logs)
        if value is None:
            return
        if self.monitor_op(value - self.min_delta, self.best):
            self.best, self.wait = value, 0
            self.best_weights = self.model.get_weights() if self.restore_best_weights else None
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch, self.model.stop_training = epoch, True
            if self.best_weights is not None:
                if self.verbose > 0:
                    print("Restoring model weights from the end of the best epoch.")
                self.model.set_weights(self.best_weights)

    def on_train_end(self, logs: Any = None) -> None:
        """Says so."""
        if self.stopped_epoch and self.verbose:
            print("Epoch %05d: early stopping" % (self.stopped_epoch + 1))

    def get_monitor_value(self, logs: Any) -> Any:
        """The value in the logs; None, with a warning, where they have none."""
        logs = logs or {}
        if self.monitor not in logs:
            tf_logging.warning("Early stopping conditioned on metric `%s` which is not available. Available metrics are: %s", self.monitor, ",".join(logs))
        return logs.get(self.monitor)


class ModelCheckpoint(Callback):
    """Saves the model, or with save_weights_only its weights, after epochs: after each `period` of them, or with a number as save_freq whenever so many
    samples have been trained. With load_weights_on_restart a training begins with what the newest file of this name has, if there is one."""

    def __init__(
        self,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        period: int = 1,
        load_weights_on_restart: bool = False,
    ) -> None:
        if save_freq != "epoch" and (isinstance(save_freq, (bool, str)) or int(save_freq) < 1):
            raise ValueError("Unrecognized save_freq: {}".format(save_freq))
        self.filepath, self.monitor, self.verbose, self.save_best_only, self.period = filepath, monitor, verbose, save_best_only, period
        self.save_weights_only, self.save_freq, self.load_weights_on_restart = save_weights_only, save_freq, load_weights_on_restart
        self.monitor_op = _better(monitor, mode, "ModelCheckpoint", ("acc", "fmeasure"))
        self.best: Any = _worst(self.monitor_op)
        self.epochs_since_last_save = self._epoch = self._samples = 0

    def set_model(self, model: Any) -> None:
        """Of a model that is a subclass weights alone are saved: it has no config."""
        self.model = model
        self.save_weights_only = self.save_weights_only or not getattr(model, "_has_config", True)

    def on_train_begin(self, logs: Any = None) -> None:
        """Reads the weights, where load_weights_on_restart asks for it."""
        path = self._get_most_recently_modified_file_matching_pattern(self.filepath) if self.load_weights_on_restart else None
        if path is not None:
            try:
                self.model.load_weights(path)
            except (OSError, ValueError) as error:
                raise ValueError("Error loading file from {}. Reason: {}".format(path, error)) from error

    @staticmethod
    def _get_most_recently_modified_file_matching_pattern(pattern: str) -> Optional[str]:
        """The file or checkpoint of a name, whatever stands for the epoch and the measures in it: the folder's newest checkpoint, or the file that was
        written last, of several of one time the one with the largest name."""
        folder, name = os.path.split(pattern)
        parts = [re.escape(part) for part in re.split(r"\{[^{}]*\}", name)]
        fits = re.compile(".*".join(parts) + r"(\.index)?")
        checkpoint = latest_checkpoint(folder or ".")
        if checkpoint is not None and fits.fullmatch(os.path.basename(checkpoint)):
            return checkpoint
        there = [f for f in os.listdir(folder or ".") if fits.fullmatch(f) and ".data-" not in f] if os.path.isdir(folder or ".") else []
        times = {f: os.path.getmtime(os.path.join(folder, f)) for f in there}
        found = max((f for f in there if times[f] == max(times.values())), default=None)
        return None if found is None else os.path.join(folder, found[: -len(".index")] if found.endswith(".index") else found)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Notes its number, for the names of files."""
        self._epoch = epoch

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves, where save_freq counts samples."""
        if self.save_freq != "epoch":
            self._samples += (logs or {}).get("size", 1)
            if self._samples >= self.save_freq:
                self._samples = 0
                self._save_model(self._epoch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves, where save_freq counts epochs."""
        self.epochs_since_last_save += 1
        if self.save_freq == "epoch" and self.epochs_since_last_save >= self.period:
            self.epochs_since_last_save = 0
            self._save_model(epoch, logs or {})

    def _save_model(self, epoch: int, logs: Dict[str, Any]) -> None:
        value: Any = logs.get(self.monitor)
        path = self.filepath.format(epoch=epoch + 1, **logs)
        if self.save_best_only and value is None:
            tf_logging.warning("Can save best model only with %s available, skipping.", self.monitor)
            return
        improved = not self.save_best_only or self.monitor_op(value, self.best)
        if self.verbose > 0:
            told = (
                "saving model to %s" % path
                if not self.save_best_only
                else "%s improved from %0.5f to %0.5f, saving model to %s" % (self.monitor, self.best, value, path)
                if improved
                else "%s did not improve from %0.5f" % (self.monitor, self.best)
            )
            print("\nEpoch %05d: %s" % (epoch + 1, told))
        if improved:
            self.best = value if self.save_best_only else self.best
            (self.model.save_weights if self.save_weights_only else self.model.save)(path, overwrite=True)


class LearningRateScheduler(Callback):
    """Sets the learning rate at each epoch, and puts it into the logs."""

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Sets it."""
        if not hasattr(self.model.optimizer, "lr"):
            raise ValueError('Optimizer must have a "lr" attribute.')
        try:
            rate = self.schedule(epoch, float(K.get_value(self.model.optimizer.lr)))
        except TypeError:
            rate = self.schedule(epoch)
        if not isinstance(rate, (float, np.float32, np.float64)):
            raise ValueError('The output of the "schedule" function should be float.')
        K.set_value(self.model.optimizer.lr, rate)
        if self.verbose > 0:
            print("\nEpoch %05d: LearningRateScheduler reducing learning rate to %s." % (epoch + 1, rate))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Notes it."""
        if logs is not None:
            logs["lr"] = K.get_value(self.model.optimizer.lr)


class ReduceLROnPlateau(Callback):
    """Lowers the learning rate where a value no longer gets better, and puts it into the logs."""

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: Optional[float] = None,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("ReduceLROnPlateau does not support a factor >= 1.0.")
        self.monitor, self.factor, self.patience, self.cooldown, self.min_lr, self.verbose = monitor, factor, patience, cooldown, min_lr, verbose
        if epsilon is not None:
            tf_logging.warning("`epsilon` argument is deprecated and will be removed, use `min_delta` instead.")
        self.min_delta, self._better = min_delta if epsilon is None else epsilon, _better(monitor, mode, "Learning Rate Plateau Reducing")
        self.on_train_begin()

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts anew."""
        self.best, self.wait, self.cooldown_counter = _worst(self._better), 0, 0

    def monitor_op(self, value: Any, best: Any) -> Any:
        """Whether a value is better than another by more than min_delta."""
        return self._better(value, best + (self.min_delta if self._better is np.greater else -self.min_delta))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares."""
        logs = {} if logs is None else logs
        logs["lr"] = K.get_value(self.model.optimizer.lr)
        value = logs.get(self.monitor)
        if value is None:
            tf_logging.warning(
                "Reduce LR on plateau conditioned on metric `%s` which is not available. Available metrics are: %s", self.monitor, ",".join(logs)
            )
            return
        if self.in_cooldown():
            self.cooldown_counter, self.wait = self.cooldown_counter - 1, 0
        if self.monitor_op(value, self.best):
            self.best, self.wait = value, 0
        elif not self.in_cooldown():
            self.wait += 1
            rate = float(K.get_value(self.model.optimizer.lr))
            if self.wait >= self.patience and rate > self.min_lr:
                lower = max(rate * self.factor, self.min_lr)
                K.set_value(self.model.optimizer.lr, lower)
                if self.verbose > 0:
                    print("\nEpoch %05d: ReduceLROnPlateau reducing learning rate to %s." % (epoch + 1, lower))
                self.cooldown_counter, self.wait = self.cooldown, 0

    def in_cooldown(self) -> bool:
        """Whether it waits after it has lowered the rate."""
        return self.cooldown_counter > 0


class LambdaCallback(Callback):
    """Functions as a callback."""

    def __init__(
        self,
        on_epoch_begin: Any = None,
        on_epoch_end: Any = None,
        on_batch_begin: Any = None,
        on_batch_end: Any = None,
        on_train_begin: Any = None,
        on_train_end: Any = None,
        **kwargs: Any,
    ) -> None:
        given = {k: v for k, v in locals().items() if k.startswith("on_") and v is not None}
        for name, function in {**given, **kwargs}.items():
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
        self.filename, self.sep, self.append = filename, separator, append
        self._header = True

    def on_train_begin(self, logs: Any = None) -> None:
        """Opens the file."""
        if self.append:
            self._header = not (os.path.exists(self.filename) and os.path.getsize(self.filename) > 0)
        self._file = open(self.filename, "a" if self.append else "w", newline="", encoding="utf-8")
        self._writer: Any = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes a line."""
        logs = logs or {}

        def plain(value: Any) -> Any:
            many = isinstance(value, (list, tuple)) or isinstance(value, np.ndarray) and value.ndim > 0
            return '"[%s]"' % ", ".join(map(str, value)) if many else value

        if self._writer is None:
            self.keys = sorted(logs)
            separator = self.sep
            self._writer = csv.DictWriter(self._file, ["epoch", *self.keys], dialect=type("Dialect", (csv.excel,), {"delimiter": separator}))
            if self._header:
                self._writer.writeheader()
        self._writer.writerow({"epoch": epoch, **{k: plain(logs.get(k, "NA")) for k in self.keys}})
        self._file.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the file."""
        self._file.close()
        self._writer = None


class RemoteMonitor(Callback):
    """Sends the loss and metrics of each epoch to a server: in a field of a form, or with send_as_json as the whole message."""

    def __init__(
        self, root: str = "http://localhost:9000", path: str = "/publish/epoch/end/", field: str = "data", headers: Any = None, send_as_json: bool = False
    ) -> None:
        self.root, self.path, self.field, self.headers, self.send_as_json = root, path, field, headers, send_as_json

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Sends them; a server that is not there is only warned of."""
        try:
            import requests  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError("RemoteMonitor requires the `requests` library.") from None
        text = json.dumps({"epoch": epoch, **(logs or {})}, default=float)
        content: Dict[str, Any] = {"json": json.loads(text)} if self.send_as_json else {"data": {self.field: text}}
        try:
            requests.post(self.root + self.path, headers=self.headers, timeout=10, **content)
        except requests.exceptions.RequestException:
            print("Warning: could not reach RemoteMonitor root server at %s" % self.root)


def __getattr__(name: str) -> Any:
    if name == "TensorBoard":
        from millrace.keras.callbacks_v1 import TensorBoard

        return TensorBoard
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
