# SPDX-License-Identifier: Apache-2.0
"""What tf.contrib.layers has against gradients that keep too much."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.protos import definitions


def recompute_grad(fn: Optional[Callable[..., Any]] = None, use_data_dep: Any = None, tupleize_grads: bool = False) -> Callable[..., Any]:
    """Decorator, with arguments or without: what `fn` computes from its tensors is not kept for gradients, but computed again when they need it.

    Its arguments and results are kept. The same values come out, also of random ops, whose draws are kept. TensorFlow's arguments
    `use_data_dep` and `tupleize_grads` choose how its copies wait for gradients; here they always wait.
    """
    for name, value in (("use_data_dep", use_data_dep), ("tupleize_grads", tupleize_grads)):
        if value not in (None, True, False):
            raise at_user_line(TypeError("%s must be a bool, got %r" % (name, value)))
    if fn is None:
        return functools.partial(recompute_grad, use_data_dep=use_data_dep, tupleize_grads=tupleize_grads)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [convert_to_tensor(a) for a in args]
        graph = get_default_graph()
        known = len(graph.get_operations())
        results = fn(*given, **kwargs)
        made = graph.get_operations()[known:]
        if made:
            block = definitions.AttrValue(s=made[0].name.encode()).SerializeToString()
            for op in made:
                op._set_attr("_recompute_grad", block)
        return results

    return call


def recomputed(f: Callable[..., Any]) -> Callable[..., Any]:
    """recompute_grad as `tf` has it: of the function alone."""
    return recompute_grad(f)
