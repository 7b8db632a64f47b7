# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.eager.context: there are graphs alone."""

from __future__ import annotations

import contextlib
from typing import Any

from millrace.framework.errors import at_user_line

GRAPH_MODE, EAGER_MODE = 0, 1
SYNC, ASYNC = 0, 1  # how operations without graphs would run


def executing_eagerly() -> bool:
    """Never."""
    return False


in_eager_mode = executing_eagerly


def in_graph_mode() -> bool:
    """Always."""
    return True


def graph_mode() -> Any:
    """A context that changes nothing."""
    return contextlib.nullcontext()


def eager_mode() -> Any:
    """Refused: there is no eager execution."""
    raise at_user_line(NotImplementedError("eager execution is not provided: build a graph and run it with tf.Session."))


def num_gpus() -> int:
    """The number of GPUs."""
    from millrace.device_lib import list_local_devices

    return sum(d.device_type == "GPU" for d in list_local_devices())


def device(name: Any) -> Any:
    """tf.device."""
    from millrace.framework import graph

    return graph.device(name)


def list_devices() -> Any:
    """The names of this process's devices."""
    from millrace.device_lib import list_local_devices

    return ["/job:localhost/replica:0/task:0%s" % d.name for d in list_local_devices()]
