# SPDX-License-Identifier: Apache-2.0
"""What TensorBoard's projector shows: which tensors, and where their labels and pictures lie."""

from __future__ import annotations

import os
from typing import Any

from millrace import gfile
from millrace.protos import text_format
from millrace.protos.definitions import EmbeddingInfo as EmbeddingInfo, ProjectorConfig as ProjectorConfig, SpriteMetadata as SpriteMetadata

PROJECTOR_FILENAME = "projector_config.pbtxt"


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Writes the configuration into the folder of a summary writer."""
    with gfile.Open(os.path.join(summary_writer.get_logdir(), PROJECTOR_FILENAME), "w") as file:
        file.write(text_format.MessageToString(config))
