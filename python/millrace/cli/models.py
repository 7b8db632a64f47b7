# SPDX-License-Identifier: Apache-2.0
"""Where the variables of a model have their values, and what a graph answers where nobody says."""

from __future__ import annotations

import os
import re
from typing import Any, List, Optional

from millrace.cli import sources
from millrace.framework.session import Session
from millrace.protos.definitions import ConfigProto  # type: ignore[attr-defined]
from millrace.train.checkpoint_management import checkpoint_exists

_CHECKPOINT_HELP = "of a graph: the variables' values; of FILE.meta it is FILE unless this says otherwise"
_NO_ANSWERS = ("NoOp", "Const", "Assign", "AssignVariableOp", "SaveV2", "SaveSlices", "Save", "RestoreV2", "Placeholder", "PlaceholderV2", "MergeSummary")


def add_checkpoint_to(parser: Any) -> None:
    """The argument --checkpoint."""
    parser.add_argument("--checkpoint", metavar="PREFIX", help=_CHECKPOINT_HELP)


def session() -> Session:
    """A session of the default graph, which runs here what was made where there were other devices."""
    return Session(config=ConfigProto(allow_soft_placement=True))


def is_folder(source: sources.Source) -> bool:
    """Whether it is a SavedModel with its variables."""
    return source.kind == "saved_model" and os.path.isdir(source.path)


def checkpoint_of(source: sources.Source, given: Optional[str]) -> Optional[str]:
    """Where the variables of a graph have their values; None when nobody says."""
    if given:
        found = sources.open_source(given)
        sources.Values(found)  # or it says what is wrong
        return found.path
    prefix, end = os.path.splitext(source.path)
    return prefix if end == ".meta" and checkpoint_exists(prefix) else None


def ends(graph: Any) -> List[str]:
    """The nodes of a GraphDef that no other reads, without those that only do something, and the savers'."""
    read = {i.lstrip("^").split(":")[0] for n in graph.node for i in n.input}
    return [n.name for n in graph.node if n.name not in read and n.op not in _NO_ANSWERS and not re.match(r"save(_\d+)?/", n.name)]
