# SPDX-License-Identifier: Apache-2.0
"""tf.keras.callbacks: what is done while a model trains."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import time
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from millrace import tf_logging
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

    def append(self, callback: Any) -> None:
        """Adds a callback."""
        self.callbacks.append(callback)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(("on_", "set_")):
            raise AttributeError(name)

        def each(*args: Any) -> None:
            for callback in self.callbacks:
                getattr(callback, name)(*args)

        return each

    def __iter__(self) -> Any:
        return iter(self.callbacks)


class BaseLogger(Callback):
    """The means of the measures over an epoch, by batch sizes; of the stateful ones the last values. It fills in the epoch's logs that lack them."""

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
        self.seen += size
        for key, value in logs.items():
            self.totals[key] = value if key in self.stateful_metrics else self.totals.get(key, 0) + value * size

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Puts the means where the logs have none."""
        if logs is not None:
            for key in self.params.get("metrics", []):
                if key in self.totals:
                    logs.setdefault(key, self.totals[key] if key in self.stateful_metrics else self.totals[key] / max(self.seen, 1))


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
    """Prints how far the training has got: with verbose=1 a bar on a terminal, and a line for each epoch."""

    def __init__(self, count_mode: str = "samples", stateful_metrics: Any = None) -> None:
        if count_mode not in ("samples", "steps"):
            raise ValueError("Unknown `count_mode`: %s" % count_mode)
        self._samples, self.stateful_metrics = count_mode == "samples", set(stateful_metrics or ())

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Prints its number."""
        from millrace.keras.utils.generic_utils import Progbar

        self._start, self._seen = time.time(), 0
        print("Epoch %d/%d" % (epoch + 1, self.params["epochs"]))
        target = self.params.get("samples") if self._samples else self.params.get("steps")
        unit = "sample" if self._samples else "step"
        shows = self.params.get("verbose") == 1
        self._bar = Progbar(target, verbose=1, stateful_metrics=self.stateful_metrics, unit_name=unit) if shows else None

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Moves the bar on."""
        self._seen += (logs or {}).get("size", 1) if self._samples else 1
        if self._bar is not None and (self._bar.target is None or self._seen < self._bar.target):
            self._bar.update(self._seen, [(k, float(v)) for k, v in (logs or {}).items() if k in self.params["metrics"]])

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Prints the loss and metrics."""
        if self._bar is not None:
            self._bar.stateful_metrics |= set(logs or {})  # they are means of the epoch already
            if self._bar.target is None and not self._samples:
                self._bar.target = self.params.get("steps")
            self._bar.update(self._seen, [(k, float(v)) for k, v in (logs or {}).items()], force=True)
            return
        print(" - %ds - %s" % (time.time() - self._start, " - ".join("%s: %.4f" % item for item in (logs or {}).items())))
        sys.stdout.flush()


def _better(monitor: str, mode: str) -> Callable[[Any, Any], bool]:
    more = mode == "max" or mode == "auto" and ("acc" in monitor or monitor.startswith("fmeasure"))
    return (lambda a, b: a > b) if more else (lambda a, b: a < b)


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
    """Saves the weights after epochs: after each `period` of them, or with a number as save_freq whenever so many samples have been trained.
    With load_weights_on_restart a training begins with what the newest file of this name has, if there is one."""

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
            raise ValueError("Unrecognized save_freq: %r" % (save_freq,))
        self.filepath, self.monitor, self.verbose, self.save_best_only, self.period = filepath, monitor, verbose, save_best_only, period
        self.save_weights_only, self.save_freq, self.load_weights_on_restart = save_weights_only, save_freq, load_weights_on_restart
        self._is_better, self.best = _better(monitor, mode), None  # type: Any, Any
        self._epoch = self._samples = 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Reads the weights, where load_weights_on_restart asks for it."""
        path = self._newest() if self.load_weights_on_restart else None
        if path is not None:
            self.model.load_weights(path)

    def _newest(self) -> Optional[str]:
        """The file or checkpoint of its name, whatever stands for the epoch and the measures in it, that was written last."""
        folder, name = os.path.split(self.filepath)
        parts = re.split(r"\{[^{}]*\}", name)
        pattern = re.compile(".*".join(re.escape(part) for part in parts) + r"(\.index)?")
        there = [f for f in os.listdir(folder or ".") if pattern.fullmatch(f) and ".data-" not in f] if os.path.isdir(folder or ".") else []
        newest = max(there, key=lambda f: os.path.getmtime(os.path.join(folder, f)), default=None)
        return None if newest is None else os.path.join(folder, newest[: -len(".index")] if newest.endswith(".index") else newest)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Notes its number, for the names of files."""
        self._epoch = epoch

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves, where save_freq counts samples."""
        if self.save_freq != "epoch":
            self._samples += (logs or {}).get("size", 1)
            if self._samples >= self.save_freq:
                self._samples = 0
                self._save(self._epoch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves, where save_freq counts epochs."""
        if self.save_freq == "epoch" and (epoch + 1) % self.period == 0:
            self._save(epoch, logs or {})

    def _save(self, epoch: int, logs: Any) -> None:
        value = logs.get(self.monitor)
        if self.save_best_only and not (value is not None and (self.best is None or self._is_better(value, self.best))):
            return
        self.best = value
        path = self.filepath.format(epoch=epoch + 1, **logs)
        whole = not self.save_weights_only and path.endswith((".h5", ".hdf5", ".keras"))
        (self.model.save if whole else self.model.save_weights)(path, overwrite=True)


class LearningRateScheduler(Callback):
    """Sets the learning rate at each epoch."""

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
        if self.verbose:
            print("Epoch %05d: LearningRateScheduler setting learning rate to %s." % (epoch + 1, rate))
        K.set_value(self.model.optimizer.lr, rate)


class ReduceLROnPlateau(Callback):
    """Lowers the learning rate where a value no longer gets better."""

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
        self.min_delta, self._is_better = min_delta if epsilon is None else epsilon, _better(monitor, mode)
        self.on_train_begin()

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
                lower = max(float(K.get_value(rate)) * self.factor, self.min_lr)
                K.set_value(rate, lower)
                if self.verbose:
                    print("Epoch %05d: ReduceLROnPlateau reducing learning rate to %s." % (epoch + 1, lower))
                self._cooling, self.wait = self.cooldown, 0


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


class TensorBoard(Callback):
    """Writes the loss and metrics of each epoch as summaries; with histogram_freq also histograms of weights and outputs on the validation data."""

    def __init__(
        self,
        log_dir: str = "./logs",
        histogram_freq: int = 0,
        batch_size: int = 32,
        write_graph: bool = True,
        write_grads: bool = False,
        write_images: bool = False,
        **unused: Any,
    ) -> None:
        refused = sorted(k for k, v in unused.items() if v and k.startswith("embeddings"))
        if refused:
            raise NotImplementedError("TensorBoard does not write embeddings: leave %s out, and use tf.contrib.tensorboard.plugins.projector." % refused[0])
        self.log_dir, self.histogram_freq, self.write_graph, self.write_grads, self.write_images = (
            log_dir,
            histogram_freq,
            write_graph,
            write_grads,
            write_images,
        )
        self.batch_size = batch_size

    def set_model(self, model: Any) -> None:
        """Makes the summaries, and opens the file."""
        from millrace import summary

        self.model, self._merged = model, None
        if self.histogram_freq:
            made = []
            for layer in model.layers:
                for weight in layer.weights:
                    name = weight.name.replace(":", "_")
                    made.append(summary.histogram(name, weight))
                    if self.write_grads and weight in model.trainable_weights:
                        from millrace.ops.gradients import gradients

                        grad = gradients(model.total_loss, weight)[0]
                        if grad is not None:
                            made.append(summary.histogram("%s_grad" % name, grad.values if hasattr(grad, "values") else grad))
                    if self.write_images:
                        made.append(summary.image(name, self._picture(weight)))
                for i, output in enumerate(n for node in layer._inbound_nodes for n in node.output_tensors):
                    if id(output) in {id(t) for n in model._nodes for t in n.output_tensors}:
                        made.append(summary.histogram("%s_out%s" % (layer.name, "_%d" % i if i else ""), output))
            self._merged = summary.merge(made) if made else None
        self.writer = self._writer = summary.FileWriter(self.log_dir, K.get_session().graph if self.write_graph else None)

    @staticmethod
    def _picture(weight: Any) -> Any:
        from millrace.ops import array_ops

        shape = weight.get_shape().as_list()
        if len(shape) == 2:
            return array_ops.reshape(weight, [1, *shape, 1])
        if len(shape) == 4:
            return array_ops.reshape(array_ops.transpose(weight, [3, 0, 1, 2])[:, :, :, :1], [shape[3], shape[0], shape[1], 1])
        return array_ops.reshape(weight, [1, shape[0] if shape else 1, -1, 1])

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes."""
        from millrace.protos.definitions import Summary  # type: ignore[attr-defined]

        if self._merged is not None and self.histogram_freq and epoch % self.histogram_freq == 0:
            given = getattr(self.model, "_validation_arrays", None)
            if given is None:
                raise ValueError("If printing histograms, validation_data must be provided, and cannot be a generator.")
            inputs, targets, weights = ([None if a is None else a[: self.batch_size] for a in part] for part in given)
            self.writer.add_summary(K.get_session().run(self._merged, self.model._feeds(inputs, targets, weights)), epoch)
        message = Summary()
        for key, value in (logs or {}).items():
            message.value.add(tag=key, simple_value=float(value))
        self.writer.add_summary(message, epoch)
        self.writer.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the file."""
        self.writer.close()
