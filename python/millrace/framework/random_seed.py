# SPDX-License-Identifier: Apache-2.0
"""Seeds of random ops: of the graph, and of each op."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework.graph import get_default_graph

DEFAULT_GRAPH_SEED = 87654321


_LARGEST = 2**31 - 1  # TensorFlow keeps seeds below this


def get_seed(op_seed: Optional[int], made_first: int = 0) -> Tuple[Optional[int], Optional[int]]:
    """The two seeds that a random op gets; (None, None) when it is to be random. Where no seed of its own is given, the graph's seed goes with the
    number of operations before the op: those there are, and made_first more that TensorFlow makes ahead of it."""
    graph = get_default_graph()
    if graph.seed is not None:
        seeds = int(graph.seed) % _LARGEST, int(graph.version + made_first if op_seed is None else op_seed) % _LARGEST
    elif op_seed is not None:
        seeds = DEFAULT_GRAPH_SEED, int(op_seed) % _LARGEST
    else:
        return None, None
    return (0, _LARGEST) if seeds == (0, 0) else seeds


def op_seeds(op_seed: Optional[int], made_first: int = 0) -> Tuple[int, int]:
    """get_seed as the attributes of an op: (0, 0) is random."""
    first, second = get_seed(op_seed, made_first)
    return first or 0, second or 0


def set_random_seed(seed: Any) -> None:
    """Sets the seed of the default graph."""
    get_default_graph().seed = None if seed is None else int(seed)
