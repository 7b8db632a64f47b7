# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.layers."""

from typing import Any as _Any

from millrace.framework import not_provided as _not_provided
from millrace.keras.engine.base import Layer
from millrace.keras.engine.inputs import Input, InputLayer
from millrace.keras.layers import (
    advanced_activations,
    convolutional,
    convolutional_recurrent,
    core,
    embeddings,
    local,
    merge,
    noise,
    normalization,
    pooling,
    recurrent,
    wrappers,
)
from millrace.keras.layers.advanced_activations import ELU, LeakyReLU, PReLU, ReLU, Softmax, ThresholdedReLU
from millrace.keras.layers.attention import AdditiveAttention, Attention
from millrace.keras.layers.columns import DenseFeatures
from millrace.keras.layers.convolutional import *  # noqa: F403
from millrace.keras.layers.convolutional_recurrent import ConvLSTM2D, ConvLSTM2DCell
from millrace.keras.layers.core import *  # noqa: F403
from millrace.keras.layers.embeddings import Embedding
from millrace.keras.layers.local import LocallyConnected1D, LocallyConnected2D
from millrace.keras.layers.merge import *  # noqa: F403
from millrace.keras.layers.noise import AlphaDropout, GaussianDropout, GaussianNoise
from millrace.keras.layers.normalization import BatchNormalization, LayerNormalization
from millrace.keras.layers.pooling import *  # noqa: F403
from millrace.keras.layers.recurrent import GRU, LSTM, RNN, AbstractRNNCell, GRUCell, LSTMCell, SimpleRNN, SimpleRNNCell, StackedRNNCells
from millrace.keras.layers.wrappers import Bidirectional, TimeDistributed, Wrapper
from millrace.layer_base import InputSpec


def serialize(layer: _Any) -> _Any:
    """A layer as its class and settings."""
    return {"class_name": type(layer).__name__, "config": layer.get_config()}


def deserialize(config: _Any, custom_objects: _Any = None) -> _Any:
    """The layer, or model, of a class and settings."""
    from millrace import layers as _plain
    from millrace.keras import models
    from millrace.keras.utils.generic_utils import deserialize_keras_object

    names = {
        **{n: v for n, v in vars(_plain).items() if isinstance(v, type)},
        **globals(),
        "Model": models.Model,
        "Network": models.Model,
        "Sequential": models.Sequential,
    }
    return deserialize_keras_object(config, names, custom_objects, "layer")


__getattr__ = _not_provided.getter("keras.layers")
