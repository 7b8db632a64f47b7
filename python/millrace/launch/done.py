# SPDX-License-Identifier: Apache-2.0
"""Parameter servers that end when all workers are done, for schedulers that wait for every process: Slurm, mpirun.

Each parameter server has a table of the tasks that are done, which they write themselves: telling twice is telling once, and nobody waits for a reader.
"""

from __future__ import annotations

import time
from typing import Any, Iterator, List, Tuple

from millrace import tf_logging
from millrace.framework import dtypes, errors
from millrace.framework.convert import constant
from millrace.framework.graph import Graph, device
from millrace.framework.session import Session
from millrace.launch.identity import Identity
from millrace.ops.lookup_ops import MutableHashTable
from millrace.protos.definitions import ConfigProto  # type: ignore[attr-defined]

_PAUSE, _PROBE_EVERY, _PROBE_MS = 0.5, 5.0, 2000


def _table(job: str, task: int) -> Any:
    with device("/job:%s/task:%d" % (job, task)):
        return MutableHashTable(dtypes.string, dtypes.bool, False, shared_name="millrace_done", checkpoint=False)


def _others(me: Identity) -> Iterator[Tuple[str, str]]:
    """The name and the address of each task of the other jobs."""
    for job, tasks in me.cluster.items():
        for task, address in tasks.items() if job != me.job else ():
            yield "%s/%d" % (job, task), address


def serve_until_done(server: Any, me: Identity, patience: float = 600.0) -> None:
    """Waits until every task of the other jobs has called tell_done, or those that have not could not be reached for `patience` seconds.

    So a parameter server that was started again ends too, although it has forgotten who told its predecessor.
    """
    assert me.job is not None and me.task is not None
    own = "/job:%s/task:%d" % (me.job, me.task)
    waited_for, seen, probed = dict(_others(me)), time.monotonic(), time.monotonic()
    if not waited_for:
        return
    with Graph().as_default():
        names = sorted(waited_for)
        with device(own):
            done = _table(me.job, me.task).lookup(constant(names))
        with Session(server.target, config=ConfigProto(device_filters=[own])) as session:
            while True:
                for name, is_done in zip(names, session.run(done)):
                    if is_done:
                        waited_for.pop(name, None)
                if not waited_for:
                    return
                if time.monotonic() - probed >= _PROBE_EVERY:
                    if _is_anyone_there(list(waited_for.values())):
                        seen = time.monotonic()
                    probed = time.monotonic()
                    if probed - seen >= patience:
                        tf_logging.warning(
                            "%s have not said that they are done, and could not be reached for %g s: this server ends", sorted(waited_for), patience
                        )
                        return
                time.sleep(_PAUSE)


def _is_anyone_there(addresses: List[str]) -> bool:
    import millrace._core as core

    for address in addresses:
        try:
            core.target_status("grpc://" + address, _PROBE_MS)
            return True
        except errors.PermissionDeniedError:  # it answers
            return True
        except errors.OpError:
            pass
    return False


def tell_done(server: Any, me: Identity, job: str = "ps", timeout: float = 60.0) -> None:
    """Tells all tasks of a job that this one is done. What cannot be reached within `timeout` seconds is left out with a warning."""
    for task in sorted(me.cluster.get(job, {})):
        filters = ["/job:%s/task:%d" % (job, task), "/job:%s/task:%s" % (me.job, me.task)]
        with Graph().as_default():
            told = _table(job, task).insert(constant("%s/%s" % (me.job, me.task)), constant(True))
            try:
                with Session(server.target, config=ConfigProto(device_filters=filters, operation_timeout_in_ms=max(1, int(1000 * timeout)))) as session:
                    session.run(told)
            except (errors.DeadlineExceededError, errors.UnavailableError, errors.AbortedError) as error:
                tf_logging.warning("/job:%s/task:%d could not be told that /job:%s/task:%s is done: %s", job, task, me.job, me.task, error.message)
