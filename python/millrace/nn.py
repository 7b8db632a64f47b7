# SPDX-License-Identifier: Apache-2.0
"""tf.nn: what neural networks are made of."""
from millrace.ops.candidate_sampling import *  # noqa: F401,F403
from millrace.ops.candidate_sampling import (fixed_unigram_candidate_sampler, log_uniform_candidate_sampler,  # noqa: F401
                                             learned_unigram_candidate_sampler, uniform_candidate_sampler)
from millrace.ops.math_ops import sigmoid, tanh  # noqa: F401
from millrace.ops.nn_ops import *  # noqa: F401,F403
