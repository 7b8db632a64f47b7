# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.training.Feeder: a queue that tasks share, filled in this process or by other tasks of the cluster."""

from __future__ import annotations

import threading
from typing import Any, Callable, List, Optional

from millrace.contrib.failure_tolerator import FailureTolerator
from millrace.framework.convert import constant
from millrace.framework.device import DeviceSpec
from millrace.framework.errors import at_user_line
from millrace.framework.graph import device
from millrace.ops.queues import FIFOQueue
from millrace.train.coordinator import Coordinator
from millrace.train.queue_runner import QueueRunner, add_queue_runner, start_queue_runners


def _feed(session: Any, outer: Coordinator) -> None:
    """Fills the queues of the other tasks until somebody asks to stop or a fill fails, whose error this raises."""
    coord = Coordinator(clean_stop_exception_types=())
    threads = start_queue_runners(session, coord=coord, collection=Feeder.REMOTE_QUEUE_RUNNERS)
    while not outer.should_stop() and not coord.wait_for_stop(0.1):
        pass
    coord.request_stop()
    session.close()  # what ends fills of queues that are full: they are other tasks', and stay open
    if not outer.should_stop():
        coord.join(threads)


class Feeder:
    """A queue of elements with parts of the given types and shapes, which all that make it with the same arguments in a task share.

    The task that reads takes get_fed_tensors or get_many_fed_tensors. What fills it says set_fed_tensors or set_many_fed_tensors, in the same graph,
    or in another task, which adds the devices to fill by add_remote_device and calls run_feeding_forever."""

    REMOTE_QUEUE_RUNNERS = "feeder_remote_queue_runners"

    def __init__(self, dtypes: Any, shapes: Any = None, capacity: int = 10, shared_name: str = "feeding_queue") -> None:
        self._dtypes, self._shapes, self._capacity, self._shared_name = dtypes, shapes, capacity, shared_name
        self._local_q = self._queue()
        self._nothing = constant("dummy close", name="feeder_fake_op").op  # in place of closing the queue of another task
        self._num_remote_feeds = 0
        self._feeding = threading.Event()

    def _queue(self) -> FIFOQueue:
        return FIFOQueue(self._capacity, self._dtypes, self._shapes, name=self._shared_name, shared_name=self._shared_name)

    # ---- what reads ----

    def get_fed_tensors(self) -> Any:
        """The parts of the next element."""
        return self._local_q.dequeue()

    def get_many_fed_tensors(self, batch_size: Any) -> Any:
        """The parts of the next batch_size elements, stacked."""
        return self._local_q.dequeue_many(batch_size)

    # ---- what fills ----

    def set_fed_tensors(self, tensors: Any) -> None:
        """Fills the queue with these, again and again."""
        add_queue_runner(QueueRunner(self._local_q, [self._local_q.enqueue(tensors)]))

    def set_many_fed_tensors(self, tensors: Any) -> None:
        """Fills the queue with the rows of these, again and again."""
        add_queue_runner(QueueRunner(self._local_q, [self._local_q.enqueue_many(tensors)]))

    def add_remote_device(self, remote_device: Any) -> None:
        """Sends elements of the queue to that of another device too."""
        element = self._local_q.dequeue()
        with device(remote_device):
            queue = self._queue()
            fill = queue.enqueue(element)
        self._num_remote_feeds += 1
        add_queue_runner(QueueRunner(queue, [fill], close_op=self._nothing, cancel_op=self._nothing), collection=Feeder.REMOTE_QUEUE_RUNNERS)

    def add_remote_devices(self, devices: Any) -> None:
        """add_remote_device of each."""
        for each in devices:
            self.add_remote_device(each)

    def add_remote_replicas(
        self, job_name: str, replica_count: int, feeder_task_num: Optional[int] = None, replicas_per_feeder: Optional[int] = None, base_device_spec: Any = None
    ) -> None:
        """Sends to all replica_count replicas of a job, or to replicas_per_feeder of them, which the number of this task chooses."""
        numbers: List[int] = list(range(replica_count))
        if replicas_per_feeder is not None:
            if replicas_per_feeder <= 0:
                raise at_user_line(ValueError("replicas_per_feeder must be positive, got %s" % replicas_per_feeder))
            if feeder_task_num is None:
                raise at_user_line(ValueError("Must set feeder_task_num if replicas_per_feeder is provided."))
            first = feeder_task_num * replicas_per_feeder
            numbers = [number % replica_count for number in range(first, first + replicas_per_feeder)]
        for number in numbers:
            spec = DeviceSpec.from_string(base_device_spec or "")
            spec.job, spec.replica = job_name, number
            self.add_remote_device(spec)

    def run_feeding_forever(
        self,
        sess_callback: Callable[[], Any],
        outer_coordinator: Optional[Coordinator] = None,
        tolerator: Optional[FailureTolerator] = None,
        start_queue_runners: bool = True,
    ) -> None:
        """Fills until the coordinator stops, with sessions that sess_callback makes, one after another where the tolerator lets errors pass."""
        outer, forgiving = outer_coordinator or Coordinator(), tolerator or FailureTolerator(limit=5)
        session = sess_callback()
        if start_queue_runners:
            _start(session, outer)
        self._feeding.set()
        with outer.stop_on_exception():
            while self._num_remote_feeds and not outer.should_stop():
                with forgiving.forgive():
                    _feed(sess_callback(), outer)
        outer.join()
        session.close()

    def wait_until_feeding(self, timeout: Optional[float] = None) -> bool:
        """Waits until run_feeding_forever has made its session: whether it has in that many seconds."""
        return self._feeding.wait(timeout)


def _start(session: Any, coord: Coordinator) -> None:
    for thread in start_queue_runners(session, coord=coord):
        coord.register_thread(thread)
