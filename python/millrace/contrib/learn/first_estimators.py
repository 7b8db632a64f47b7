# SPDX-License-Identifier: Apache-2.0
"""The estimators that skflow began with, and tf.contrib.learn had up to 0.11: TensorFlowEstimators of the models in learn.models."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Tuple

from millrace.contrib.learn.ops import models
from millrace.contrib.learn.tensor_flow_estimator import TensorFlowEstimator
from millrace.framework.graph import Tensor


class TensorFlowLinearRegressor(TensorFlowEstimator):
    """A linear model of numbers, which begins with zeros."""

    _top = "linear_regression"

    def __init__(
        self,
        n_classes: int = 0,
        batch_size: int = 32,
        steps: int = 200,
        optimizer: Any = "Adagrad",
        learning_rate: Any = 0.1,
        clip_gradients: Optional[float] = 5.0,
        continue_training: bool = False,
        config: Any = None,
        verbose: int = 1,
    ) -> None:
        model = models.linear_regression_zero_init
        super().__init__(model, n_classes, batch_size, steps, optimizer, learning_rate, clip_gradients, None, continue_training, config, verbose)

    weights_ = property(lambda self: self.get_variable_value(self._top + "/weights"), doc="The weights of the linear model.")
    bias_ = property(lambda self: self.get_variable_value(self._top + "/bias"), doc="The bias of the linear model.")


class TensorFlowLinearClassifier(TensorFlowEstimator):
    """A linear model of classes, which begins with zeros."""

    _top = "logistic_regression"

    def __init__(
        self,
        n_classes: int,
        batch_size: int = 32,
        steps: int = 200,
        optimizer: Any = "Adagrad",
        learning_rate: Any = 0.1,
        class_weight: Any = None,
        clip_gradients: Optional[float] = 5.0,
        continue_training: bool = False,
        config: Any = None,
        verbose: int = 1,
    ) -> None:
        model = models.logistic_regression_zero_init
        super().__init__(model, n_classes, batch_size, steps, optimizer, learning_rate, clip_gradients, class_weight, continue_training, config, verbose)

    weights_ = TensorFlowLinearRegressor.weights_
    bias_ = TensorFlowLinearRegressor.bias_


TensorFlowRegressor = TensorFlowLinearRegressor
TensorFlowClassifier = TensorFlowLinearClassifier


class _Deep(TensorFlowEstimator):
    """Layers of hidden_units, and a linear model on them."""

    hidden_units: Sequence[int]
    dropout: Optional[float]
    _top = "linear_regression"

    def _model(self, x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
        made: Tuple[Tensor, Tensor] = models.get_dnn_model(self.hidden_units, getattr(models, self._top), dropout=self.dropout)(x, y)
        return made

    def _of_layers(self, name: str, last: str) -> Any:
        values = [self.get_variable_value("dnn/layer%d/%s" % (i, name)) for i in range(len(self.hidden_units))]
        return [*values, self.get_variable_value("%s/%s" % (self._top, last))]

    weights_ = property(lambda self: self._of_layers("Linear/Matrix", "weights"), doc="The weights of each layer, and of the linear model.")
    bias_ = property(lambda self: self._of_layers("Linear/Bias", "bias"), doc="The bias of each layer, and of the linear model.")


class TensorFlowDNNRegressor(_Deep):
    """A network of numbers."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        n_classes: int = 0,
        batch_size: int = 32,
        steps: int = 200,
        optimizer: Any = "Adagrad",
        learning_rate: Any = 0.1,
        clip_gradients: Optional[float] = 5.0,
        continue_training: bool = False,
        config: Any = None,
        verbose: int = 1,
        dropout: Optional[float] = None,
    ) -> None:
        self.hidden_units, self.dropout = hidden_units, dropout
        super().__init__(self._model, n_classes, batch_size, steps, optimizer, learning_rate, clip_gradients, None, continue_training, config, verbose)


class TensorFlowDNNClassifier(_Deep):
    """A network of classes."""

    _top = "logistic_regression"

    def __init__(
        self,
        hidden_units: Sequence[int],
        n_classes: int,
        batch_size: int = 32,
        steps: int = 200,
        optimizer: Any = "Adagrad",
        learning_rate: Any = 0.1,
        class_weight: Any = None,
        clip_gradients: Optional[float] = 5.0,
        continue_training: bool = False,
        config: Any = None,
        verbose: int = 1,
        dropout: Optional[float] = None,
    ) -> None:
        self.hidden_units, self.dropout = hidden_units, dropout
        super().__init__(self._model, n_classes, batch_size, steps, optimizer, learning_rate, clip_gradients, class_weight, continue_training, config, verbose)


def _as_it_is(x: Any) -> Any:
    return x


class _Recurrent(TensorFlowEstimator):
    """A recurrent network over what input_op_fn makes of the inputs, and a linear model on its last state."""

    _top = "linear_regression"
    _network: Tuple[Any, ...] = ()
    _more: Tuple[Any, ...] = ()

    def _model(self, x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
        made: Tuple[Tensor, Tensor] = models.get_rnn_model(*self._network, getattr(models, self._top), *self._more)(x, y)
        return made

    weights_ = TensorFlowLinearRegressor.weights_
    bias_ = TensorFlowLinearRegressor.bias_


class TensorFlowRNNClassifier(_Recurrent):
    """A recurrent network of classes. cell_type is rnn, gru or lstm."""

    _top = "logistic_regression"

    def __init__(
        self,
        rnn_size: int,
        n_classes: int,
        cell_type: str = "gru",
        num_layers: int = 1,
        input_op_fn: Callable[[Any], Any] = _as_it_is,
        initial_state: Any = None,
        bidirectional: bool = False,
        sequence_length: Any = None,
        attn_length: Optional[int] = None,
        attn_size: Optional[int] = None,
        attn_vec_size: Optional[int] = None,
        batch_size: int = 32,
        steps: int = 50,
        optimizer: Any = "Adagrad",
        learning_rate: Any = 0.1,
        class_weight: Any = None,
        clip_gradients: Optional[float] = 5.0,
        continue_training: bool = False,
        config: Any = None,
        verbose: int = 1,
    ) -> None:
        self._network = (rnn_size, cell_type, num_layers, input_op_fn, bidirectional)
        self._more = (sequence_length, initial_state, attn_length, attn_size, attn_vec_size)
        super().__init__(self._model, n_classes, batch_size, steps, optimizer, learning_rate, clip_gradients, class_weight, continue_training, config, verbose)


class TensorFlowRNNRegressor(_Recurrent):
    """A recurrent network of numbers. cell_type is rnn, gru or lstm."""

    def __init__(
        self,
        rnn_size: int,
        cell_type: str = "gru",
        num_layers: int = 1,
        input_op_fn: Callable[[Any], Any] = _as_it_is,
        initial_state: Any = None,
        bidirectional: bool = False,
        sequence_length: Any = None,
        attn_length: Optional[int] = None,
        attn_size: Optional[int] = None,
        attn_vec_size: Optional[int] = None,
        n_classes: int = 0,
        batch_size: int = 32,
        steps: int = 50,
        optimizer: Any = "Adagrad",
        learning_rate: Any = 0.1,
        clip_gradients: Optional[float] = 5.0,
        continue_training: bool = False,
        config: Any = None,
        verbose: int = 1,
    ) -> None:
        self._network = (rnn_size, cell_type, num_layers, input_op_fn, bidirectional)
        self._more = (sequence_length, initial_state, attn_length, attn_size, attn_vec_size)
        super().__init__(self._model, n_classes, batch_size, steps, optimizer, learning_rate, clip_gradients, None, continue_training, config, verbose)
