# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.summary.text_summary: summaries of text."""

from __future__ import annotations

from typing import Any

from millrace import summary
from millrace.summary_plugins import *  # noqa: F403


def text_summary(name: str, tensor: Any, collections: Any = None) -> Any:
    """A record of text. ValueError unless the tensor is of strings."""
    return summary.text(name, tensor, collections)
