# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.seq2seq."""

from __future__ import annotations

from typing import Any, Optional

from millrace.contrib.legacy_seq2seq import loss_of
from millrace.framework import missing as _missing
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.keras.losses import Loss
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
from millrace.ops.attention import (  # noqa: F401
    AttentionMechanism,
    AttentionWrapper,
    AttentionWrapperState,
    BahdanauAttention,
    BahdanauMonotonicAttention,
    LuongAttention,
    LuongMonotonicAttention,
    hardmax,
    monotonic_attention,
    safe_cumprod,
)
from millrace.ops.beam_search import (  # noqa: F401
    BeamSearchDecoder,
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
    gather_tree,
    gather_tree_from_array,
    tile_batch,
)
from millrace.contrib.seq2seq_functions import (  # noqa: F401
    attention_decoder_fn_inference,
    attention_decoder_fn_train,
    dynamic_rnn_decoder,
    prepare_attention,
    simple_decoder_fn_inference,
    simple_decoder_fn_train,
)
from millrace.ops.decoders import (  # noqa: F401
    BasicDecoder,
    BasicDecoderOutput,
    CustomHelper,
    Decoder,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
    TrainingHelper,
    dynamic_decode,
)


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Any = None,
    name: Optional[str] = None,
) -> Tensor:
    """The weighted cross entropy of logits [batch, time, classes], averaged over steps or the batch by their weights. Where it is summed over them, it
    is divided by how many weights are not zero; where one is averaged the other is not summed."""
    for averaged, summed, axis in ((average_across_timesteps, sum_over_timesteps, "timesteps"), (average_across_batch, sum_over_batch, "batch")):
        if averaged and summed:
            raise at_user_line(ValueError("average_across_%s and sum_over_%s cannot be set to True at same time." % (axis, axis)))
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        logits, targets, weights = convert_to_tensor(logits), convert_to_tensor(targets), convert_to_tensor(weights)
        if logits.get_shape().ndims not in (None, 3):
            raise at_user_line(ValueError("Logits must be a [batch_size x sequence_length x logits] tensor"))
        if softmax_loss_function is None and not (sum_over_timesteps or sum_over_batch):
            return gen_ops.sequence_loss(logits, targets, weights, average_across_timesteps, average_across_batch)
        if softmax_loss_function is None:
            softmax_loss_function = nn_ops.sparse_softmax_cross_entropy_with_logits
        classes = array_ops.shape(logits)[2]
        flat_logits = array_ops.reshape(logits, array_ops.stack([-1, classes]))
        value = loss_of(softmax_loss_function, array_ops.reshape(targets, [-1]), flat_logits) * array_ops.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return math_ops.reduce_sum(value) / (math_ops.reduce_sum(weights) + 1e-12)
        value = array_ops.reshape(value, array_ops.shape(logits)[:2])
        value.set_shape(logits.get_shape()[:2])
        if average_across_timesteps:
            value = math_ops.reduce_sum(value, [1]) / (math_ops.reduce_sum(weights, [1]) + 1e-12)
        elif average_across_batch:
            value = math_ops.reduce_sum(value, [0]) / (math_ops.reduce_sum(weights, [0]) + 1e-12)
        elif sum_over_timesteps or sum_over_batch:
            axes = [axis for axis, asked in enumerate((sum_over_batch, sum_over_timesteps)) if asked]
            counted = math_ops.reduce_sum(math_ops.cast(gen_ops.not_equal(weights, 0), value.dtype), axes)
            value = gen_ops.div_no_nan(math_ops.reduce_sum(value, axes), counted)
        return value


class SequenceLoss(Loss):
    """sequence_loss of y_true and y_pred by sample_weight [batch, time]; where nothing else is said summed, and divided by how many weights are not
    zero."""

    def __init__(
        self,
        average_across_timesteps: bool = False,
        average_across_batch: bool = False,
        sum_over_timesteps: bool = True,
        sum_over_batch: bool = True,
        softmax_loss_function: Any = None,
        name: Optional[str] = None,
    ) -> None:
        super().__init__(name=name)
        self.average_across_timesteps, self.average_across_batch = average_across_timesteps, average_across_batch
        self.sum_over_timesteps, self.sum_over_batch = sum_over_timesteps, sum_over_batch
        self.softmax_loss_function = softmax_loss_function

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """The loss."""
        kinds = (self.average_across_timesteps, self.average_across_batch, self.sum_over_timesteps, self.sum_over_batch)
        return sequence_loss(y_pred, y_true, sample_weight, *kinds, self.softmax_loss_function, self.name)


_missing.fill(globals(), "contrib.seq2seq.", {"DynamicAttentionWrapper": "AttentionWrapper"})
