# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.ops and .models: parts of models of the first skflow."""

from __future__ import annotations

import types
from typing import Any, Callable, List, Optional, Sequence, Tuple

from millrace import losses
from millrace.contrib.learn.networks import bidirectional_rnn, get_dnn_model, get_rnn_model
from millrace.layers import scoped as layers
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, get_default_graph, name_scope
from millrace.ops import array_ops, init_ops, math_ops, nn_ops, rnn
from millrace.ops.variable_scope import get_variable, variable_scope


def one_hot_matrix(tensor_in: Any, num_classes: int, on_value: float = 1.0, off_value: float = 0.0) -> Tensor:
    """Numbers of classes as rows with one 1."""
    return array_ops.one_hot(math_ops.cast(tensor_in, dtypes.int64), num_classes, on_value, off_value)


def embedding_lookup(params: Any, ids: Any, name: str = "embedding_lookup") -> Tensor:
    """The rows of params that ids name, in the shape of ids."""
    return nn_ops.embedding_lookup(convert_to_tensor(params), convert_to_tensor(ids), name=name)


def categorical_variable(tensor_in: Any, n_classes: int, embedding_size: int, name: str) -> Tensor:
    """A learned row for each class."""
    with variable_scope(name):
        embeddings = get_variable(name + "_embeddings", [n_classes, embedding_size])
        return embedding_lookup(embeddings, tensor_in)


def dnn(tensor_in: Any, hidden_units: Sequence[int], activation: Callable[..., Any] = nn_ops.relu, dropout: Optional[float] = None) -> Tensor:
    """Dense layers, one after the other; of what each gives `dropout` is the probability to be kept."""
    with variable_scope("dnn"):
        for i, units in enumerate(hidden_units):
            with variable_scope("layer%d" % i):
                tensor_in = layers.dense(tensor_in, units, activation, name="dense")
                if dropout is not None:
                    tensor_in = nn_ops.dropout(tensor_in, keep_prob=dropout)
    return tensor_in


def conv2d(
    tensor_in: Any,
    n_filters: int,
    filter_shape: Sequence[int],
    strides: Any = None,
    padding: str = "SAME",
    bias: bool = True,
    activation: Any = None,
    batch_norm: bool = False,
) -> Tensor:
    """A convolution with a bias, an activation, and normalized batches."""
    with variable_scope("convolution"):
        steps = [1, 1, 1, 1] if strides is None else list(strides)
        shape = [*filter_shape, convert_to_tensor(tensor_in).get_shape()[3].value, n_filters]
        made = nn_ops.conv2d(tensor_in, get_variable("filters", shape, dtypes.float32), steps, padding)
        if bias:
            made = made + get_variable("bias", [n_filters], dtypes.float32, init_ops.zeros_initializer())
        if batch_norm:
            made = layers.batch_normalization(made, training=True)
        return made if activation is None else activation(made)


def split_squeeze(dim: int, num_split: int, tensor_in: Any) -> List[Tensor]:
    """The slices along a dimension, without it."""
    return [array_ops.squeeze(x, [dim]) for x in array_ops.split(tensor_in, num_split, dim)]


def seq2seq_inputs(x: Any, y: Any, input_length: int, output_length: int, sentinel: Any = None, name: Optional[str] = None) -> Tuple[Any, Any, Any]:
    """(inputs of the encoder, of the decoder, and what it is to say): lists, the last two with a sentinel before and behind."""
    with name_scope(name, "seq2seq_inputs", [x, y]):
        x, y = convert_to_tensor(x), convert_to_tensor(y)
        into, out = split_squeeze(1, input_length, x), split_squeeze(1, output_length, y)
        if sentinel is None:
            sentinel = array_ops.zeros(array_ops.stack([array_ops.shape(x)[0], y.get_shape()[2].value]), y.dtype.base_dtype)
            sentinel.set_shape(out[0].get_shape())
        return into, [sentinel, *out], [*out, sentinel]


def rnn_decoder(decoder_inputs: Sequence[Any], initial_state: Any, cell: Any, scope: Any = None) -> Tuple[Any, Any, Any, Any]:
    """(outputs, states) fed with what is right, then (outputs, states) fed with its own outputs."""
    with variable_scope(scope or "dnn_decoder"):
        states, sampling_states, outputs, sampling_outputs = [initial_state], [initial_state], [], []  # type: Any, Any, Any, Any
        for i, given in enumerate(decoder_inputs):
            with variable_scope("rnn", reuse=True if i > 0 else None):
                output, state = cell(given, states[-1])
                outputs.append(output)
                states.append(state)
            with variable_scope("rnn", reuse=True):
                own, own_state = cell(sampling_outputs[-1], sampling_states[-1]) if i > 0 else (output, state)
                sampling_outputs.append(own)
                sampling_states.append(own_state)
    return outputs, states, sampling_outputs, sampling_states


def rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], encoder_cell: Any, decoder_cell: Any = None, dtype: Any = dtypes.float32, scope: Any = None
) -> Tuple[Any, Any, Any, Any]:
    """An encoder whose last state a decoder begins with."""
    with variable_scope(scope or "rnn_seq2seq"):
        _, last = rnn.static_rnn(encoder_cell, list(encoder_inputs), dtype=dtype)
        return rnn_decoder(decoder_inputs, last, decoder_cell or encoder_cell)


def sequence_classifier(decoding: Sequence[Any], labels: Sequence[Any], sampling_decoding: Any = None, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(probabilities [batch, steps, classes], the sum of cross entropies)."""
    with name_scope(name, "sequence_classifier", []):
        entropy = [nn_ops.softmax_cross_entropy_with_logits(labels=label, logits=said) for said, label in zip(decoding, labels)]
        predictions = [nn_ops.softmax(x) for x in (sampling_decoding or decoding)]
        return array_ops.stack(predictions, 1), math_ops.reduce_sum(math_ops.add_n(entropy), name=name)


def softmax_classifier(tensor_in: Any, labels: Any, weights: Any, biases: Any, class_weight: Any = None, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(probabilities, the mean cross entropy)."""
    with name_scope(name, "softmax_classifier", [tensor_in, labels]):
        logits = nn_ops.xw_plus_b(tensor_in, weights, biases)
        if class_weight is not None:
            logits = logits * class_weight
        return nn_ops.softmax(logits), losses.softmax_cross_entropy(labels, logits)


def mean_squared_error_regressor(tensor_in: Any, labels: Any, weights: Any, biases: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(predictions, the mean squared error)."""
    with name_scope(name, "mean_squared_error_regressor", [tensor_in, labels]):
        made = nn_ops.xw_plus_b(tensor_in, weights, biases)
        labels = convert_to_tensor(labels)
        if labels.get_shape().ndims == 1:
            made = array_ops.squeeze(made, [1])
        return made, losses.mean_squared_error(labels, made)


def _linear(scope: str, x: Any, y: Any, init_mean: Any, init_stddev: Any) -> Any:
    from millrace import summary

    with variable_scope(scope):
        summary.histogram("X", x)
        summary.histogram("y", y)
        outputs = 1 if y.get_shape().ndims == 1 else y.get_shape()[1].value
        start: Any = None if init_mean is None else init_ops.random_normal_initializer(init_mean, init_stddev)
        weights = get_variable("weights", [x.get_shape()[1].value, outputs], x.dtype.base_dtype, start)
        bias = get_variable("bias", [outputs], x.dtype.base_dtype, start)
        summary.histogram("weights", weights)
        summary.histogram("bias", bias)
        return weights, bias


def linear_regression(x: Any, y: Any, init_mean: Any = None, init_stddev: float = 1.0) -> Tuple[Tensor, Tensor]:
    """(predictions, loss) of a linear model."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    return mean_squared_error_regressor(x, y, *_linear("linear_regression", x, y, init_mean, init_stddev))


def logistic_regression(x: Any, y: Any, class_weight: Any = None, init_mean: Any = None, init_stddev: float = 1.0) -> Tuple[Tensor, Tensor]:
    """(probabilities, loss) of a linear model; y are rows with one 1."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    if class_weight is None:  # TensorFlowEstimator has put it into the graph
        found = [op for op in get_default_graph().get_operations() if op.name == "class_weight"]
        class_weight = found[0].outputs[0] if found else None
    weights, bias = _linear("logistic_regression", x, y, init_mean, init_stddev)
    return softmax_classifier(x, y, weights, bias, class_weight)


def linear_regression_zero_init(x: Any, y: Any) -> Tuple[Tensor, Tensor]:
    """linear_regression that begins with zeros."""
    return linear_regression(x, y, init_mean=0.0, init_stddev=0.0)


def logistic_regression_zero_init(x: Any, y: Any) -> Tuple[Tensor, Tensor]:
    """logistic_regression that begins with zeros."""
    return logistic_regression(x, y, init_mean=0.0, init_stddev=0.0)


models = types.SimpleNamespace(
    linear_regression=linear_regression,
    linear_regression_zero_init=linear_regression_zero_init,
    logistic_regression=logistic_regression,
    logistic_regression_zero_init=logistic_regression_zero_init,
    get_dnn_model=get_dnn_model,
    bidirectional_rnn=bidirectional_rnn,
    get_rnn_model=get_rnn_model,
)
