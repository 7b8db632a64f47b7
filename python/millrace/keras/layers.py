# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
# ruff: noqa: F401, F403
"""tf.keras.layers: the layers of millrace.layers that name their weights themselves."""

from typing import Any as _Any

from millrace.framework import not_provided as _not_provided
from millrace.keras import metric_base as _metric_base
from millrace.keras.engine.inputs import Input, InputLayer
from millrace.layers import (
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
from millrace.layers.advanced_activations import ELU, LeakyReLU, PReLU, ReLU, Softmax, ThresholdedReLU
from millrace.layers.base import Layer
from millrace.layers.attention import AdditiveAttention, Attention
from millrace.layers.nodes import InputSpec
from millrace.layers.columns import DenseFeatures
from millrace.layers.convolutional import *
from millrace.layers.convolutional_recurrent import ConvLSTM2D, ConvLSTM2DCell
from millrace.layers.core import *
from millrace.layers.embeddings import Embedding
from millrace.layers.local import LocallyConnected1D, LocallyConnected2D
from millrace.layers.merge import *
from millrace.layers.noise import AlphaDropout, GaussianDropout, GaussianNoise
from millrace.layers.normalization import BatchNormalization, LayerNormalization
from millrace.layers.pooling import *
from millrace.layers.recurrent import GRU, LSTM, RNN, AbstractRNNCell, GRUCell, LSTMCell, SimpleRNN, SimpleRNNCell, StackedRNNCells
from millrace.layers.wrappers import Bidirectional, TimeDistributed, Wrapper


def serialize(layer: _Any) -> _Any:
    """A layer as its class and settings."""
    return {"class_name": type(layer).__name__, "config": layer.get_config()}


def deserialize(config: _Any, custom_objects: _Any = None) -> _Any:
    """The layer, or model, of a class and settings."""
    from millrace.keras import models
    from millrace.keras.utils.generic_utils import deserialize_keras_object
    import millrace.layers.scoped as _plain

    names = {
        **{n: v for n, v in vars(_plain).items() if isinstance(v, type)},
        **globals(),
        "Model": models.Model,
        "Network": models.Model,
        "Sequential": models.Sequential,
    }
    return deserialize_keras_object(config, names, custom_objects, "layer")


__getattr__ = _not_provided.getter("keras.layers")
