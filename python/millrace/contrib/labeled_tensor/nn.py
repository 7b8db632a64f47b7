# SPDX-License-Identifier: Apache-2.0
"""Functions of neural networks of labeled tensors; cross entropies take logits before labels."""

from __future__ import annotations

from typing import Any, Callable

from millrace import nn
from millrace.contrib.labeled_tensor.core import define_binary_op, define_unary_op

relu = define_unary_op("relu", nn.relu)
relu6 = define_unary_op("relu6", nn.relu6)
crelu = define_unary_op("crelu", nn.crelu)
elu = define_unary_op("elu", nn.elu)
softplus = define_unary_op("softplus", nn.softplus)
l2_loss = define_unary_op("l2_loss", nn.l2_loss)
softmax = define_unary_op("softmax", nn.softmax)
log_softmax = define_unary_op("log_softmax", nn.log_softmax)


def _flipped(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda logits, labels, name=None: function(labels=labels, logits=logits, name=name)


sigmoid_cross_entropy_with_logits = define_binary_op("sigmoid_cross_entropy_with_logits", _flipped(nn.sigmoid_cross_entropy_with_logits))
softmax_cross_entropy_with_logits = define_binary_op("softmax_cross_entropy_with_logits", _flipped(nn.softmax_cross_entropy_with_logits))
sparse_softmax_cross_entropy_with_logits = define_binary_op("sparse_softmax_cross_entropy_with_logits", _flipped(nn.sparse_softmax_cross_entropy_with_logits))
