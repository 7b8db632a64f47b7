# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.nn: what neural networks are made of."""

from typing import TYPE_CHECKING
from typing import Any as _Any

from millrace import names as _names
from millrace.framework import not_provided as _not_provided
from millrace.ops.batch_losses import *  # noqa: F403
from millrace.ops.candidate_sampling import *  # noqa: F403
from millrace.ops.ctc_ops import *  # noqa: F403
from millrace.ops.candidate_sampling import (  # noqa: F401
    all_candidate_sampler,
    compute_accidental_hits,
    fixed_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    learned_unigram_candidate_sampler,
    uniform_candidate_sampler,
)
from millrace.ops.math_ops import sigmoid, tanh  # noqa: F401
from millrace.ops.nn_ops import *  # noqa: F403
from millrace.ops.rnn import *  # noqa: F403
from millrace.ops.pool_ops import *  # noqa: F403
from millrace.ops.morphology import dilation2d, erosion2d, nth_element  # noqa: F401
from millrace.ops.gen_ops import fractional_avg_pool, fractional_max_pool, quantized_avg_pool, quantized_conv2d, quantized_max_pool, quantized_relu_x  # noqa: F401

from millrace.ops.gen_ops import conv3d_backprop_filter_v2, conv3d_backprop_filter_v2 as conv3d_backprop_filter  # noqa: F401
from millrace.ops.block_ops import depth_to_space, space_to_batch, space_to_depth  # noqa: F401
from millrace.ops.gen_ops import (  # noqa: F401
    depthwise_conv2d_native_backprop_filter as depthwise_conv2d_backprop_filter,
    depthwise_conv2d_native_backprop_input as depthwise_conv2d_backprop_input,
)
from millrace.ops.sparse_lookup import safe_embedding_lookup_sparse  # noqa: F401


if TYPE_CHECKING:  # loaded when it is first named, with the layers that cells are
    from millrace.ops import rnn_cell  # noqa: F401
del TYPE_CHECKING


def _later(name: str) -> _Any:
    if name == "rnn_cell":
        return _names.find("nn.rnn_cell")
    if name == "seq2seq":
        return _names.find("contrib.legacy_seq2seq")
    raise AttributeError("module 'millrace.nn' has no attribute %r" % name)


__getattr__ = _not_provided.getter("nn", _later)
