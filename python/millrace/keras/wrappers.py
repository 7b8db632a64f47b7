# SPDX-License-Identifier: Apache-2.0
"""tf.keras.wrappers.scikit_learn: models with the methods of scikit-learn's estimators."""

from __future__ import annotations

import copy
import inspect
import types
from typing import Any, Dict, List

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.keras import losses
from millrace.keras.models import Sequential
from millrace.keras.utils.np_utils import to_categorical


class BaseWrapper:
    """A model that build_fn makes, with arguments for it, and for fit, predict and score, in sk_params."""

    def __init__(self, build_fn: Any = None, **sk_params: Any) -> None:
        self.build_fn, self.sk_params = build_fn, sk_params
        self.check_params(sk_params)

    def _build(self) -> Any:
        if self.build_fn is None:
            return self.__call__  # type: ignore[operator]
        return self.build_fn if inspect.isfunction(self.build_fn) or inspect.ismethod(self.build_fn) else self.build_fn.__call__

    def check_params(self, params: Dict[str, Any]) -> None:
        """ValueError where one is no argument of these functions."""
        functions = [Sequential.fit, Sequential.predict, Sequential.evaluate, self._build()]
        legal = {name for f in functions for name in inspect.signature(f).parameters}
        for name in params:
            if name not in legal and name != "nb_epoch":
                raise at_user_line(ValueError("%s is not a legal parameter" % name))

    def get_params(self, **unused: Any) -> Dict[str, Any]:
        """What it was made with."""
        return {**copy.deepcopy(self.sk_params), "build_fn": self.build_fn}

    def set_params(self, **params: Any) -> Any:
        """Changes arguments."""
        self.check_params(params)
        self.sk_params.update(params)
        return self

    def filter_sk_params(self, fn: Any, override: Any = None) -> Dict[str, Any]:
        """Those that are arguments of a function."""
        taken = inspect.signature(fn).parameters
        return {**{k: v for k, v in self.sk_params.items() if k in taken}, **(override or {})}

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
        """Makes the model and trains it; its History."""
        self.model = self._build()(**self.filter_sk_params(self._build()))
        if getattr(self.model, "loss", None) in (losses.categorical_crossentropy, "categorical_crossentropy") and np.ndim(y) != 2:
            y = to_categorical(y)
        return self.model.fit(x, y, **{**self.filter_sk_params(Sequential.fit), **kwargs})


def _index(names: List[str], wanted: Any) -> int:
    return next((i for i, name in enumerate(names) if name in wanted), -1)


class KerasClassifier(BaseWrapper):
    """A classifier; classes may be any values."""

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
        """Makes the model and trains it; its History."""
        y = np.array(y)
        if y.ndim == 2 and y.shape[1] > 1:
            self.classes_ = np.arange(y.shape[1])
        elif y.ndim == 1 or y.ndim == 2 and y.shape[1] == 1:
            self.classes_ = np.unique(y)
            y = np.searchsorted(self.classes_, y)
        else:
            raise at_user_line(ValueError("Invalid shape for y: %s" % (y.shape,)))
        self.n_classes_ = len(self.classes_)
        return super().fit(x, y, **kwargs)

    def predict_proba(self, x: Any, **kwargs: Any) -> Any:
        """The probability of each class."""
        made = self.model.predict(x, **self.filter_sk_params(Sequential.predict, kwargs))
        return np.hstack([1 - made, made]) if made.shape[1] == 1 else made

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """The classes."""
        return self.classes_[self.predict_proba(x, **kwargs).argmax(-1)]

    def score(self, x: Any, y: Any, **kwargs: Any) -> float:
        """How often it is right; the model must have been compiled with metrics=["accuracy"]."""
        y = np.searchsorted(self.classes_, y)
        if getattr(self.model, "loss", None) in (losses.categorical_crossentropy, "categorical_crossentropy") and y.ndim != 2:
            y = to_categorical(y)
        made = self.model.evaluate(x, y, **self.filter_sk_params(Sequential.evaluate, kwargs))
        at = _index(self.model.metrics_names, ("acc", "accuracy"))
        if at < 0:
            raise at_user_line(
                ValueError('The model is not configured to compute accuracy. You should pass `metrics=["accuracy"]` to the `model.compile()` method.')
            )
        return float(made[at])


class KerasRegressor(BaseWrapper):
    """A regressor."""

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """The numbers."""
        return np.squeeze(self.model.predict(x, **self.filter_sk_params(Sequential.predict, kwargs)), -1)

    def score(self, x: Any, y: Any, **kwargs: Any) -> float:
        """Less the loss: more is better."""
        made = self.model.evaluate(x, y, **self.filter_sk_params(Sequential.evaluate, kwargs))
        return -float(made[0] if isinstance(made, list) else made)


scikit_learn = types.SimpleNamespace(KerasClassifier=KerasClassifier, KerasRegressor=KerasRegressor)
