# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.summaries: summaries of tensors under the names of their operations."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from millrace import summary
from millrace.framework.graph import GraphKeys, add_to_collection
from millrace.ops import control_flow_ops, nn_ops


def _name(tensor: Any, name: Optional[str], prefix: Optional[str], postfix: Optional[str] = None) -> str:
    return "/".join(filter(None, (prefix, name or tensor.op.name, postfix)))


def _add(make: Callable[..., Any], tensor: Any, name: str, print_summary: bool) -> Any:
    """A summary in the collection of all; with print_summary running it prints the tensor too."""
    made = make(name, tensor, collections=[] if print_summary else None)
    if print_summary:
        made = control_flow_ops.Print(made, [tensor], name)
        add_to_collection(GraphKeys.SUMMARIES, made)
    return made


def add_histogram_summary(tensor: Any, name: Optional[str] = None, prefix: Optional[str] = None) -> Any:
    """A histogram."""
    return summary.histogram(_name(tensor, name, prefix), tensor)


def add_image_summary(tensor: Any, name: Optional[str] = None, prefix: Optional[str] = None, print_summary: bool = False) -> Any:
    """Images [batch, height, width, channels]."""
    return _add(summary.image, tensor, _name(tensor, name, prefix), print_summary)


def add_scalar_summary(tensor: Any, name: Optional[str] = None, prefix: Optional[str] = None, print_summary: bool = False) -> Any:
    """A number."""
    return _add(summary.scalar, tensor, _name(tensor, name, prefix), print_summary)


def add_zero_fraction_summary(tensor: Any, name: Optional[str] = None, prefix: Optional[str] = None, print_summary: bool = False) -> Any:
    """The share of elements that are 0."""
    full = _name(tensor, name, prefix, "Fraction of Zero Values")
    return add_scalar_summary(nn_ops.zero_fraction(tensor), full, print_summary=print_summary)


def add_histogram_summaries(tensors: Any, prefix: Optional[str] = None) -> List[Any]:
    """add_histogram_summary of each."""
    return [add_histogram_summary(t, prefix=prefix) for t in tensors]


def add_image_summaries(tensors: Any, prefix: Optional[str] = None) -> List[Any]:
    """add_image_summary of each."""
    return [add_image_summary(t, prefix=prefix) for t in tensors]


def add_scalar_summaries(tensors: Any, prefix: Optional[str] = None, print_summary: bool = False) -> List[Any]:
    """add_scalar_summary of each."""
    return [add_scalar_summary(t, prefix=prefix, print_summary=print_summary) for t in tensors]


def add_zero_fraction_summaries(tensors: Any, prefix: Optional[str] = None) -> List[Any]:
    """add_zero_fraction_summary of each."""
    return [add_zero_fraction_summary(t, prefix=prefix) for t in tensors]
