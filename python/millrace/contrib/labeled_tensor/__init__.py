# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.labeled_tensor: tensors whose dimensions have names and labels, by which they are aligned."""

from millrace.contrib.labeled_tensor import core as _core
from millrace.contrib.labeled_tensor import nn as nn
from millrace.contrib.labeled_tensor import ops as _ops
from millrace.contrib.labeled_tensor import reading as _reading
from millrace.contrib.labeled_tensor.core import abs_function as abs
from millrace.contrib.labeled_tensor.core import pow_function as pow
from millrace.contrib.labeled_tensor.core import round_function as round
from millrace.contrib.labeled_tensor.core import slice_function as slice

_OF_OPS = (
    "define_reduce_op select concat pack unpack reshape rename_axis random_crop map_fn foldl squeeze matmul tile pad constant zeros_like ones_like cast "
    "verify_tensor_all_finite boolean_mask where reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum batch "
    "shuffle_batch ReshapeCoder"
)
globals().update({_name: getattr(_ops, _name) for _name in _OF_OPS.split()})
globals().update({_name: getattr(_reading, _name) for _name in ("FixedLenFeature", "parse_example", "parse_single_example", "placeholder")})
globals().update({_name: _value for _name, _value in vars(_core).items() if getattr(_value, "__module__", "").startswith(__name__) and _name[0] != "_"})
