# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a snapshot: those that are written while training goes on, and those of one moment between steps.

The pause is one step that reads the variables: their values are one snapshot, and stay as they are while later steps change the variables. A
saver's own operations then run with these values fed in place of the variables, in a thread where training goes on. The step may ask to run
between those that change variables, so that it sees them all as of one moment.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional

from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor
from millrace.protos import definitions

_SAVES = {"SaveV2": 3, "Save": 2, "SaveSlices": 3}  # the first of the inputs that are saved


def saved_tensors(graph: Graph, save_tensor_name: str) -> List[Tensor]:
    """The tensors that a saving operation writes."""
    found: List[Tensor] = []
    start = graph.as_graph_element(save_tensor_name, allow_tensor=True, allow_operation=True)
    stack: List[Operation] = [start.op if isinstance(start, Tensor) else start]
    seen = set(stack)
    while stack:
        op = stack.pop()
        if op.type in _SAVES:
            found.extend(t for t in list(op.inputs)[_SAVES[op.type] :] if t not in found)
            continue
        for before in [t.op for t in op.inputs] + list(op.control_inputs):
            if before not in seen:
                seen.add(before)
                stack.append(before)
    return found


class BackgroundSaver:
    """Writes one checkpoint after the other, in the order in which they were begun. A failure is raised by the next call.

    `asynchronous`: begin returns when the values are read. `consistent`: they are of one moment between steps.
    """

    def __init__(self, asynchronous: bool, consistent: bool) -> None:
        self.is_asynchronous, self._options = asynchronous, definitions.RunOptions(between_steps=True) if consistent else None
        self._thread: Optional[threading.Thread] = None
        self._error: Optional[BaseException] = None
        self._tensors: Dict[Any, List[Tensor]] = {}

    def begin(self, session: Any, save_tensor_name: str, filename_tensor_name: str, path: str, then: Callable[[str], None]) -> None:
        """Takes the values now, after the checkpoint before is whole; `then` has the path when this one is."""
        self.wait()
        key = (session.graph, save_tensor_name)
        if key not in self._tensors:
            self._tensors[key] = saved_tensors(session.graph, save_tensor_name)
        tensors = self._tensors[key]
        if not tensors:
            raise at_user_line(
                ValueError("'%s' saves by operations of its own, which cannot be fed; save without asynchronous=True and consistent=True" % save_tensor_name)
            )
        values = session.run(tensors, options=self._options)
        feeds: Dict[Any, Any] = dict(zip(tensors, values))
        feeds[session.graph.get_tensor_by_name(filename_tensor_name)] = path

        if not self.is_asynchronous:
            then(session.run(save_tensor_name, feeds).decode())
            return

        def write() -> None:
            try:
                then(session.run(save_tensor_name, feeds).decode())
            except BaseException as error:  # whoever waits has it
                self._error = error
            finally:
                feeds.clear()

        if self not in session._writers:
            session._writers.append(self)
        self._thread = threading.Thread(target=write, name="checkpoint")  # no daemon: the process ends when it is whole
        self._thread.start()

    def wait(self) -> None:
        """Returns when nothing is being written; raises what went wrong."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error
