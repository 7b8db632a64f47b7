# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.nn: what neural networks are made of."""
from typing import Any as _Any

from millrace.ops.candidate_sampling import *  # noqa: F403
from millrace.ops.ctc_ops import *  # noqa: F403
from millrace.ops.candidate_sampling import (all_candidate_sampler, compute_accidental_hits, fixed_unigram_candidate_sampler, log_uniform_candidate_sampler,  # noqa: F401
                                             learned_unigram_candidate_sampler, uniform_candidate_sampler)
from millrace.ops.math_ops import sigmoid, tanh  # noqa: F401
from millrace.ops.nn_ops import *  # noqa: F403
from millrace.ops import rnn_cell  # noqa: F401
from millrace.ops.rnn import *  # noqa: F403
from millrace.ops.morphology import dilation2d, erosion2d, nth_element  # noqa: F401
from millrace.ops.gen_ops import (fractional_avg_pool, fractional_max_pool, quantized_avg_pool, quantized_conv2d, quantized_max_pool, quantized_relu_x)  # noqa: F401

def __getattr__(name: str) -> _Any:
    if name == "seq2seq":
        from millrace.contrib import legacy_seq2seq
        return legacy_seq2seq
    raise AttributeError("module 'millrace.nn' has no attribute %r" % name)
