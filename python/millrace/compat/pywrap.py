# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tensorflow.python.pywrap_tensorflow: what programs take from TensorFlow's own extension module."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

from millrace.framework.dtypes import bfloat16
from millrace.framework.versions import CXX11_ABI_FLAG as __cxx11_abi_flag__  # noqa: F401
from millrace.framework.versions import GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER, GRAPH_DEF_VERSION_MIN_PRODUCER, __version__  # noqa: F401
from millrace.profiler.stat_summarizer import DeleteStatSummarizer, NewStatSummarizer, StatSummarizer  # noqa: F401
from millrace.protos.definitions import Event  # type: ignore[attr-defined]
from millrace.python_io import TFRecordWriter
from millrace.testing.graph_defs import EqualGraphDefWrapper  # noqa: F401
from millrace.testing.test_util import CudaSupportsHalfMatMulAndConv, IsGoogleCudaEnabled, IsMklEnabled  # noqa: F401
from millrace.train.saver import CheckpointReader, NewCheckpointReader  # noqa: F401


def TF_bfloat16_type() -> Any:
    """NumPy's type for tf.bfloat16."""
    return bfloat16.as_numpy_dtype


class EventsWriter:
    """Writes an event file <prefix>.out.tfevents.<seconds>.<host><suffix>; it is made by the first event."""

    def __init__(self, file_prefix: Any) -> None:
        self._prefix, self._suffix = os.fsdecode(file_prefix), ""
        self._name = ""
        self._writer: Any = None

    def InitWithSuffix(self, suffix: Any) -> bool:
        """Sets what the file's name ends in, and makes it."""
        self._suffix = os.fsdecode(suffix)
        return self._open() is not None

    def Init(self) -> bool:
        """Makes the file."""
        return self._open() is not None

    def FileName(self) -> bytes:
        """The path of the file."""
        self._open()
        return os.fsencode(self._name)

    def _open(self) -> Any:
        if self._writer is None:
            now = time.time()
            self._name = "%s.out.tfevents.%010d.%s%s" % (self._prefix, int(now), socket.gethostname(), self._suffix)
            self._writer = TFRecordWriter(self._name)
            self._writer.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        return self._writer

    def WriteEvent(self, event: Any) -> None:
        """Appends an Event."""
        self._open().write(event.SerializeToString())

    def WriteSerializedEvent(self, event: bytes) -> None:
        """Appends an encoded Event."""
        self._open().write(event)

    def Flush(self) -> bool:
        """Writes what is still in memory."""
        if self._writer is not None:
            self._writer.flush()
        return True

    def Close(self) -> bool:
        """Ends the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        return True
