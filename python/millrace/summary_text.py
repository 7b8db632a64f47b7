# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.summary.text_summary: summaries of text."""

from __future__ import annotations

from typing import Any

from millrace import summary
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.protos.definitions import SummaryMetadata
from millrace.summary_plugins import *  # noqa: F403


def text_summary(name: str, tensor: Any, collections: Any = None) -> Any:
    """A record of text. ValueError unless the tensor is of strings."""
    if tensor.dtype.base_dtype != dtypes.string:
        raise at_user_line(ValueError("Expected tensor %s to have dtype string, got %s" % (tensor.name, tensor.dtype)))
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    return summary.tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)
