# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.summaries: summaries of tensors, activations and collections."""

from __future__ import annotations

import re
from typing import Any, Callable, List, Optional

from millrace import summary
from millrace.framework import dtypes
from millrace.framework.graph import GraphKeys, get_collection
from millrace.ops import gen_ops, math_ops


def summarize_tensor(tensor: Any, tag: Optional[str] = None) -> Any:
    """A scalar or histogram summary; of texts and truths there is none."""
    if tensor.dtype.base_dtype in (dtypes.string, dtypes.bool_):
        return None
    op = summary.scalar if tensor.get_shape().ndims == 0 else summary.histogram
    return op(tag or "%s_summary" % tensor.op.name, tensor)


def summarize_activation(op: Any) -> Any:
    """A histogram, and of what is bounded the share that lies at the bounds."""

    def share(relation: Any, bound: float, name: str) -> None:
        before = op.op.inputs[0]
        summary.scalar("%s/%s" % (op.op.name, name), math_ops.reduce_mean(math_ops.to_float(relation(before, math_ops.cast(bound, before.dtype)))))

    if op.op.type in ("Relu", "Softplus", "Relu6"):
        share(gen_ops.less, 0.0, "zeros")
    if op.op.type == "Relu6":
        share(gen_ops.greater, 6.0, "sixes")
    return summary.histogram("%s/activation" % op.op.name, op)


def summarize_tensors(tensors: Any, summarizer: Any = summarize_tensor) -> List[Any]:
    """Summaries of tensors."""
    return [summarizer(t) for t in tensors]


def summarize_collection(collection: str, name_filter: Optional[str] = None, summarizer: Any = summarize_tensor) -> List[Any]:
    """Summaries of those in a collection whose names begin as the filter says."""
    return summarize_tensors([t for t in get_collection(collection) if name_filter is None or re.match(name_filter, t.op.name)], summarizer)


def _summaries_of(collection: str, doc: str, usual: Any = summarize_tensor) -> Callable[..., List[Any]]:
    def call(name_filter: Optional[str] = None, summarizer: Any = usual) -> List[Any]:
        return summarize_collection(collection, name_filter, summarizer)

    call.__doc__ = doc
    return call


summarize_activations = _summaries_of(GraphKeys.ACTIVATIONS, "Summaries of the activations.", summarize_activation)
summarize_variables = _summaries_of(GraphKeys.GLOBAL_VARIABLES, "Summaries of the variables.")
summarize_weights = _summaries_of(GraphKeys.WEIGHTS, "Summaries of the weights.")
summarize_biases = _summaries_of(GraphKeys.BIASES, "Summaries of the biases.")
