# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.memory_stats: what its functions say where there is no GPU, whose memory they measure."""

from __future__ import annotations

from millrace.framework import missing

_INSTEAD = "tf.RunMetadata and tf.profiler, or Session.explain: the ops measure the memory of GPUs"
missing.fill(globals(), "contrib.memory_stats.", dict.fromkeys(("BytesInUse", "BytesLimit", "MaxBytesInUse"), _INSTEAD))
