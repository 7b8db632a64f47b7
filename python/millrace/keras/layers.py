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
from millrace.layers import serialization as _serialization
from millrace.layers.attention import AdditiveAttention, Attention, BaseDenseAttention as _BaseDenseAttention
from millrace.layers.nodes import InputSpec
from millrace.layers.columns import DenseFeatures, SequenceFeatures as _SequenceFeatures
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
from millrace.layers.recurrent import PeepholeLSTMCell as _PeepholeLSTMCell
from millrace.layers.recurrent_cudnn import CuDNNGRU, CuDNNLSTM
from millrace.layers.serialization import deserialize, serialize
from millrace.layers.wrappers import Bidirectional, TimeDistributed, Wrapper

_UNNAMED = (_BaseDenseAttention, _PeepholeLSTMCell, _SequenceFeatures)  # files have them

_serialization.CLASSES.update({n: v for n, v in globals().items() if isinstance(v, type)})
_serialization.CLASSES.update((kind.__name__, kind) for kind in _UNNAMED)
_serialization.CLASSES.update(dict.fromkeys(("BatchNormalizationV1", "BatchNormalizationV2"), BatchNormalization))  # of files of others
__getattr__ = _not_provided.getter("keras.layers")
