# SPDX-License-Identifier: Apache-2.0
"""Seeds of random ops: of the graph, and of each op."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework.graph import get_default_graph

DEFAULT_GRAPH_SEED = 87654321


def get_seed(op_seed: Optional[int]) -> Tuple[Optional[int], Optional[int]]:
    """The two seeds that a random op gets; (None, None) when it is to be random."""
    graph = get_default_graph()
    if graph.seed is not None:
        if op_seed is None:
            op_seed = graph.version
        return int(graph.seed) & 0x7FFFFFFFFFFFFFFF, int(op_seed)
    if op_seed is not None:
        return DEFAULT_GRAPH_SEED, int(op_seed)
    return 0, 0


def set_random_seed(seed: Any) -> None:
    """Sets the seed of the default graph."""
    get_default_graph().seed = None if seed is None else int(seed)
