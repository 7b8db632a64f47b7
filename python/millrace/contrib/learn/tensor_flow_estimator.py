# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.TensorFlowEstimator: a model function trained on arrays, as the first skflow had it."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Optional

import numpy as np

from millrace import train
from millrace.contrib.layers_training import optimize_loss
from millrace.contrib.learn.networks import DROPOUTS
from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.framework.random_seed import set_random_seed
from millrace.framework.session import Session
from millrace.ops import array_ops
from millrace.ops.variables import global_variables_initializer


class TensorFlowEstimator:
    """model_fn(X, y) gives (predictions, loss). n_classes is 0 for regression; y is then numbers, else rows with one 1."""

    def __init__(
        self,
        model_fn: Callable[..., Any],
        n_classes: int = 0,
        batch_size: int = 32,
        steps: int = 200,
        optimizer: Any = "Adagrad",
        learning_rate: Any = 0.1,
        clip_gradients: Optional[float] = 5.0,
        class_weight: Any = None,
        continue_training: bool = False,
        config: Any = None,
        verbose: int = 1,
    ) -> None:
        self.model_fn, self.n_classes, self.batch_size, self.steps, self.optimizer = model_fn, n_classes, batch_size, steps, optimizer
        self.learning_rate, self.clip_gradients, self.class_weight, self.continue_training, self._config = (
            learning_rate,
            clip_gradients,
            class_weight,
            continue_training,
            config,
        )
        self.verbose = verbose
        self._session: Any = None
        self._shapes: Any = None

    def _build(self, x_shape: Any, y_shape: Any) -> None:
        self._shapes = [list(x_shape), list(y_shape)]
        with Graph().as_default():
            set_random_seed(getattr(self._config, "tf_random_seed", 42))
            step = train.get_or_create_global_step()
            if self.class_weight is not None:
                constant(self.class_weight, name="class_weight")
            self._inputs = array_ops.placeholder(dtypes.float32, [None, *x_shape], "input")
            wanted = array_ops.placeholder(dtypes.int64 if self.n_classes > 1 else dtypes.float32, [None, *y_shape], "output")
            self._outputs = wanted
            truth = array_ops.one_hot(wanted, self.n_classes, 1.0, 0.0) if self.n_classes > 1 else wanted
            self._predictions, self._loss = self.model_fn(self._inputs, truth)
            rate = self.learning_rate(step) if callable(self.learning_rate) else self.learning_rate
            self._train = optimize_loss(self._loss, step, rate, self.optimizer, clip_gradients=self.clip_gradients)
            self._session, self._saver = Session(config=getattr(self._config, "tf_config", None)), train.Saver()
            self._session.run(global_variables_initializer())

    def fit(self, x: Any, y: Any, monitor: Any = None, logdir: Optional[str] = None) -> "TensorFlowEstimator":
        """Trains `steps` batches, drawn from shuffled rows; anew, unless continue_training."""
        x, y = np.asarray(x, np.float32), np.asarray(y)
        if self._session is None or not self.continue_training:
            self._build(x.shape[1:], y.shape[1:])
        order = np.random.RandomState(42)
        rows: Any = []
        for i in range(self.steps):
            if len(rows) < min(self.batch_size, len(x)):
                rows = [*rows, *order.permutation(len(x))]
            at, rows = rows[: self.batch_size], rows[self.batch_size :]
            feed = dict(self._session.graph.get_collection(DROPOUTS))
            _, loss = self._session.run([self._train, self._loss], {self._inputs: x[at], self._outputs: y[at], **feed})
            if self.verbose and (i + 1) % max(1, self.steps // 10) == 0:
                print("Step #%d, loss: %.5f" % (i + 1, loss))
            if monitor is not None and hasattr(monitor, "step_end") and monitor.step_end(i, {"loss": loss}):
                break
        if logdir is not None:
            self.save(logdir)
        return self

    def partial_fit(self, x: Any, y: Any) -> "TensorFlowEstimator":
        """Trains on, without beginning anew."""
        before, self.continue_training = self.continue_training, True
        try:
            return self.fit(x, y)
        finally:
            self.continue_training = before

    def _predict(self, x: Any, batch_size: Optional[int]) -> Any:
        if self._session is None:
            raise at_user_line(ValueError("fit() has to run before predictions"))
        x = np.asarray(x, np.float32)
        size = batch_size or self.batch_size
        return np.concatenate([self._session.run(self._predictions, {self._inputs: x[i : i + size]}) for i in range(0, len(x), size)])

    def predict(self, x: Any, axis: int = 1, batch_size: Optional[int] = None) -> Any:
        """Classes, or numbers."""
        made = self._predict(x, batch_size)
        return made.argmax(axis) if self.n_classes > 1 else made

    def predict_proba(self, x: Any, batch_size: Optional[int] = None) -> Any:
        """The probability of each class."""
        return self._predict(x, batch_size)

    def score(self, x: Any, y: Any) -> float:
        """How often classes are right; of numbers, the share of the variance that is explained."""
        made, y = self.predict(x), np.asarray(y)
        if self.n_classes > 1:
            return float(np.mean(made == y))
        return float(1 - ((made.reshape(y.shape) - y) ** 2).sum() / ((y - y.mean(0)) ** 2).sum())

    def get_tensor(self, name: str) -> Any:
        """A tensor of the graph."""
        return self._session.graph.get_tensor_by_name(name)

    def get_tensor_value(self, name: str) -> Any:
        """The value of a tensor."""
        return self._session.run(self.get_tensor(name))

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable."""
        return self.get_tensor_value(name if ":" in name else name + ":0")

    def save(self, path: str) -> None:
        """Writes the variables into a folder, and what shapes the model takes."""
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "model.def"), "w", encoding="utf-8") as file:
            json.dump(
                {"class_name": type(self).__name__, "shapes": self._shapes, "n_classes": self.n_classes, "batch_size": self.batch_size, "steps": self.steps},
                file,
            )
        self._saver.save(self._session, os.path.join(path, "model"), write_meta_graph=False)

    def load(self, path: str) -> "TensorFlowEstimator":
        """Reads the variables that save wrote."""
        with open(os.path.join(path, "model.def"), encoding="utf-8") as file:
            self._build(*json.load(file)["shapes"])
        self._saver.restore(self._session, os.path.join(path, "model"))
        return self

    @classmethod
    def restore(cls, path: str, config: Any = None) -> Any:
        """Is not there: a folder does not hold the model function."""
        raise at_user_line(
            NotImplementedError("TensorFlowEstimator.restore(%r, config=%r): make the estimator with its model_fn, and call load(path)." % (path, config))
        )
