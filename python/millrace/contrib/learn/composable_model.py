# SPDX-License-Identifier: Apache-2.0
"""Parts of which programs put estimators together: models that build logits, and train their own variables by a loss."""

from __future__ import annotations

import re
from typing import Any, List, Optional

from millrace.contrib.layers_training import OPTIMIZER_CLS_NAMES
from millrace.contrib.learn.model_builders import deep_logits, linear_logits, usual_linear_rate
from millrace.framework.graph import get_collection
from millrace.ops import math_ops, nn_ops
from millrace.ops.gradients import gradients
from millrace.train.saver import list_variables, load_variable


class _ComposableModel:
    """A model of columns, whose variables are in a scope, and in a collection of its name."""

    _usual_optimizer = ""

    def __init__(self, num_label_columns: int, optimizer: Any, gradient_clip_norm: Optional[float], scope: str, trainable: bool) -> None:
        self._num_label_columns, self._optimizer, self._norm = num_label_columns, optimizer, gradient_clip_norm
        self._scope, self._trainable = scope, trainable
        self._feature_columns: List[Any] = []

    def get_scope_name(self) -> str:
        """The scope of its variables."""
        return self._scope

    def build_model(self, features: Any, feature_columns: Any, is_training: bool) -> Any:
        """The logits."""
        raise NotImplementedError

    def get_train_step(self, loss: Any) -> List[Any]:
        """The operations that train its variables."""
        own = get_collection(self._scope) if self._feature_columns else []
        if not own:
            return []
        slopes = gradients(loss, own)
        if self._norm:
            slopes, _ = math_ops.clip_by_global_norm(slopes, self._norm)
        return [self._get_optimizer().apply_gradients(zip(slopes, own))]

    def _rate(self) -> float:
        raise NotImplementedError

    def _get_optimizer(self) -> Any:
        if self._optimizer is None or isinstance(self._optimizer, str):
            return OPTIMIZER_CLS_NAMES[self._optimizer or self._usual_optimizer](learning_rate=self._rate())
        return self._optimizer() if callable(self._optimizer) else self._optimizer


class LinearComposableModel(_ComposableModel):
    """Weighted sums."""

    _usual_optimizer = "Ftrl"

    def __init__(
        self,
        num_label_columns: int,
        optimizer: Any = None,
        _joint_weights: bool = False,
        gradient_clip_norm: Optional[float] = None,
        num_ps_replicas: int = 0,
        scope: Optional[str] = None,
        trainable: bool = True,
    ) -> None:
        del num_ps_replicas  # nothing is cut
        super().__init__(num_label_columns, optimizer, gradient_clip_norm, scope or "linear", trainable)
        self._joint_weights = _joint_weights

    def build_model(self, features: Any, feature_columns: Any, is_training: bool) -> Any:
        """The logits."""
        del is_training  # they are the same
        self._feature_columns = list(feature_columns)
        return linear_logits(features, self._feature_columns, self._num_label_columns, self._joint_weights, self._scope, self._trainable)

    def get_weights(self, model_dir: str) -> Any:
        """The weights in a checkpoint: an array, or {name: array}."""
        slots = re.compile(r".*/%s(_\d)?$" % re.escape(self._get_optimizer().get_name()))
        names = [name for name, _ in list_variables(model_dir) if name.startswith(self._scope + "/") and not slots.match(name)]
        values = {name: load_variable(model_dir, name) for name in names if name != self._scope + "/bias_weight"}
        return next(iter(values.values())) if len(values) == 1 else values

    def get_bias(self, model_dir: str) -> Any:
        """The bias in a checkpoint."""
        return load_variable(model_dir, self._scope + "/bias_weight")

    def _rate(self) -> float:
        return usual_linear_rate(len(self._feature_columns))


class DNNComposableModel(_ComposableModel):
    """Layers, one above the other."""

    _usual_optimizer = "Adagrad"

    def __init__(
        self,
        num_label_columns: int,
        hidden_units: Any,
        optimizer: Any = None,
        activation_fn: Any = nn_ops.relu,
        dropout: Optional[float] = None,
        gradient_clip_norm: Optional[float] = None,
        num_ps_replicas: int = 0,
        scope: Optional[str] = None,
        trainable: bool = True,
    ) -> None:
        del num_ps_replicas  # nothing is cut
        super().__init__(num_label_columns, optimizer, gradient_clip_norm, scope or "dnn", trainable)
        self._hidden_units, self._activation_fn, self._dropout = hidden_units, activation_fn, dropout

    def build_model(self, features: Any, feature_columns: Any, is_training: bool) -> Any:
        """The logits."""
        self._feature_columns = list(feature_columns)
        dropout = self._dropout if is_training else None
        sizes = self._hidden_units, self._num_label_columns
        return deep_logits(features, self._feature_columns, *sizes, self._activation_fn, dropout, self._scope, self._trainable)

    def get_weights(self, model_dir: str) -> List[Any]:
        """The weights of the layers in a checkpoint."""
        return self._loaded(model_dir, "weights")

    def get_bias(self, model_dir: str) -> List[Any]:
        """The biases of the layers in a checkpoint."""
        return self._loaded(model_dir, "biases")

    def _loaded(self, model_dir: str, what: str) -> List[Any]:
        layers = ["hiddenlayer_%d" % i for i in range(len(self._hidden_units))] + ["logits"]
        return [load_variable(model_dir, "%s/%s/%s" % (self._scope, layer, what)) for layer in layers]

    def _rate(self) -> float:
        return 0.05
