# SPDX-License-Identifier: Apache-2.0
"""Sandblaster L-BFGS: batch optimisation over parameter servers and model replicas, led by a coordinator that has no parameters."""

from __future__ import annotations

import collections
import threading
import time
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Set

from millrace import _core, tf_logging
from millrace.framework import dtypes
from millrace.framework.errors import FailedPreconditionError, OpError, at_user_line
from millrace.framework.graph import Tensor, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.gradients import gradients
from millrace.ops.variables import Variable
from millrace.train.lbfgs import LBFGSResult, ShardedVectors

__all__ = ["SandblasterOptimizer"]


class _Replica(NamedTuple):
    device: str
    fetch: Any  # copies the parameters, and begins the sum of gradients anew
    compute: Any  # the gradient of a portion, aside; gives its loss
    keep: Any  # adds what was computed last to the sum
    push: Any  # adds the sum to the gradient on the shards
    portion: Tensor


class _Batch:
    """The portions of one evaluation, as they are handed out and come back. Who waits for nothing gets what others are still at: the first
    result counts. Thread-safe."""

    def __init__(self, portions: int, number: int) -> None:
        self.number, self.changed = number, threading.Condition()
        self._free: Deque[int] = collections.deque(range(portions))
        self._out: Dict[int, Set[int]] = {}  # portion: the replicas that are at it
        self._since: Dict[int, float] = {}
        self._results: Dict[int, Any] = {}  # portion: who has it in its sum, and its loss
        self._portions, self.copies, self.is_over = portions, 0, False

    def take(self, replica: int) -> Optional[int]:
        """A portion for this replica; None: there is none that it could do now."""
        with self.changed:
            if self.is_over:
                return None
            if self._free:
                portion = self._free.popleft()
                self._since[portion] = time.monotonic()
            else:
                others = [p for p, at in self._out.items() if replica not in at and p not in self._results]
                if not others:
                    return None
                portion = min(others, key=lambda p: (len(self._out[p]), self._since[p]))
                self.copies += 1
            self._out.setdefault(portion, set()).add(replica)
            return portion

    def wins(self, replica: int, portion: int) -> bool:
        """Whether this replica is the first with the portion, and is to keep it."""
        with self.changed:
            self._out.get(portion, set()).discard(replica)
            if self.is_over or portion in self._results:
                return False
            self._results[portion] = (replica, None)
            return True

    def kept(self, replica: int, portion: int, loss: float) -> None:
        """The replica has it in its sum."""
        with self.changed:
            self._results[portion] = (replica, loss)
            self.changed.notify_all()

    def lose(self, replica: int) -> int:
        """All that this replica had, done or not, is to be done by others. Gives the number of portions."""
        with self.changed:
            lost = {p for p, (who, _) in self._results.items() if who == replica}
            for portion in lost:
                del self._results[portion]
            for portion, at in list(self._out.items()):
                if replica in at:
                    at.discard(replica)
                    if not at and portion not in self._results:
                        lost.add(portion)
            self._free.extend(sorted(lost - set(self._free)))
            self.changed.notify_all()
            return len(lost)

    def is_complete(self) -> bool:
        """Whether every portion is in somebody's sum."""
        with self.changed:
            return len(self._results) == self._portions and all(loss is not None for _, loss in self._results.values())

    def outcome(self) -> Any:
        """The replicas with something in their sums, and the loss: the sum in the order of portions."""
        with self.changed:
            return sorted({who for who, _ in self._results.values()}), sum(self._results[p][1] for p in range(self._portions))


class SandblasterOptimizer:
    """L-BFGS (see LBFGSOptimizer) over parameters on parameter servers, whose loss is the sum over `num_portions` portions of the data.

    Replicas copy the parameters once for each evaluation, take portions as they become free, and add up gradients, which go to the shards
    once all portions are done. When none is left to hand out, those still being worked at are given to idle replicas too, and the first
    result counts: nobody waits for a slow replica. A replica whose steps fail is left out; its portions are done by others.

        sandblaster = tf.train.SandblasterOptimizer(parameters, num_portions=100)
        for device in worker_devices:
            sandblaster.add_replica(device, lambda parameters, portion: loss_of(parameters, data_of(portion)))
        result = sandblaster.minimize(session, replica_sessions)
    """

    def __init__(
        self,
        var_list: Sequence[Any],
        num_portions: int,
        history: int = 10,
        max_iterations: int = 100,
        gradient_tolerance: float = 1e-5,
        loss_tolerance: float = 2.2e-9,
        max_tries: int = 20,
        name: str = "Sandblaster",
    ) -> None:
        if num_portions < 1:
            raise at_user_line(ValueError("num_portions must be positive, got %s" % num_portions))
        self._options = dict(
            history=history, max_iterations=max_iterations, max_tries=max_tries, gradient_tolerance=gradient_tolerance, loss_tolerance=loss_tolerance
        )
        _core.Lbfgs(**self._options)
        self._name, self._portions = name, num_portions
        self._vectors = ShardedVectors(var_list, history, name)
        self._clear = control_flow_ops.group(*self._vectors.store([None] * len(self._vectors.variables)))
        self._replicas: List[_Replica] = []
        self.copies = 0  #: portions that were handed out again because somebody was slow, by the last minimize()
        self.lost_replicas: List[int] = []  #: replicas that the last minimize() had to do without

    def add_replica(self, device: Any, loss_fn: Callable[[List[Tensor], Tensor], Any]) -> int:
        """Builds the model on `device`: `loss_fn(parameters, portion)` gives the loss of a portion (an int64 scalar) with these parameters.
        Gives the replica's number."""
        graph, parameters = get_default_graph(), self._vectors.variables
        with name_scope(None, "%s/replica_%d" % (self._name, len(self._replicas))), graph.device(device):

            def local(value: Any, name: str) -> Variable:
                return Variable(array_ops.zeros(value.get_shape(), value.dtype.base_dtype), trainable=False, collections=[], name=name)

            copies, latest, sums = ([local(v, part) for v in parameters] for part in ("copy", "latest", "sum"))
            portion = array_ops.placeholder(dtypes.int64, [], name="portion")
            values = [c.read_value() for c in copies]
            loss = loss_fn(values, portion)
            found = gradients(loss, values)
            dense = [array_ops.zeros_like(c) if g is None else g for g, c in zip(found, copies)]
            fetch = [c.assign(v.read_value() if isinstance(v, Variable) else v).op for c, v in zip(copies, parameters)]
            fetch += [s.assign(array_ops.zeros_like(c)).op for s, c in zip(sums, copies)]
            with graph.control_dependencies([v.assign(g).op for v, g in zip(latest, dense)]):
                computed = math_ops.cast(array_ops.identity(loss), dtypes.float64)
            keep = [s.assign_add(v.read_value()).op for s, v in zip(sums, latest)]
            push = []
            for s, there in zip(sums, self._vectors.there):
                flat = array_ops.reshape(s.read_value(), there.get_shape())
                with graph.device(there.device):
                    push.append(gen_ops.assign_add(there.op.outputs[0], flat, use_locking=True).op)
            group = control_flow_ops.group
            self._replicas.append(_Replica(str(device), group(*fetch), computed, group(*keep), group(*push), portion))
        return len(self._replicas) - 1

    def minimize(self, session: Any, replica_sessions: Optional[Sequence[Any]] = None, callback: Optional[Callable[[int, float], None]] = None) -> LBFGSResult:
        """Minimises from the parameters' values on. Each replica runs in its own of `replica_sessions` (all in `session` unless given), on a
        thread of its own."""
        if not self._replicas:
            raise at_user_line(ValueError("add_replica() must be called before minimize()"))
        sessions = list(replica_sessions) if replica_sessions is not None else [session] * len(self._replicas)
        if len(sessions) != len(self._replicas):
            raise at_user_line(ValueError("%d sessions for %d replicas" % (len(sessions), len(self._replicas))))
        run = _Run(self, session, sessions)
        try:
            return self._vectors.minimize(lambda fetches, feed=None: session.run(fetches, feed), run.evaluate, _core.Lbfgs(**self._options), callback)
        finally:
            run.stop()
            self.copies, self.lost_replicas = run.copies, sorted(run.lost)


class _Run:
    """One minimisation: the replicas' threads."""

    def __init__(self, optimizer: SandblasterOptimizer, session: Any, sessions: Sequence[Any]) -> None:
        self._optimizer, self._session, self._sessions = optimizer, session, sessions
        self._news, self._batch, self._stopped = threading.Condition(), None, False  # type: threading.Condition, Optional[_Batch], bool
        self.copies, self.lost, self._first_failure = 0, set(), None  # type: int, Set[int], Optional[OpError]
        self._threads = [threading.Thread(target=self._work, args=(i,), daemon=True) for i in range(len(sessions))]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends the threads, without waiting for a step that a slow replica is still at."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
        if self._batch is not None:
            with self._batch.changed:
                self._batch.is_over = True
                self._batch.changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=0.5)

    def evaluate(self) -> float:
        """The loss at the parameters' values; their gradient is in the shards."""
        while True:
            self._session.run(self._optimizer._clear)
            batch = _Batch(self._optimizer._portions, 0 if self._batch is None else self._batch.number + 1)
            with self._news:
                self._batch = batch
                self._news.notify_all()
            with batch.changed:
                while not (len(batch._results) == batch._portions and all(loss is not None for _, loss in batch._results.values())):
                    if len(self.lost) == len(self._sessions):
                        raise self._first_failure or FailedPreconditionError(None, None, "no replica is left")
                    batch.changed.wait(0.1)
                batch.is_over = True
            self.copies += batch.copies
            replicas, loss = batch.outcome()
            try:
                for i in replicas:
                    self._sessions[i].run(self._optimizer._replicas[i].push)
                return float(loss)
            except OpError as failure:  # some shards may have it and others not: all again
                self._lose(i, batch, failure)
                if len(self.lost) == len(self._sessions):
                    raise

    def _lose(self, replica: int, batch: Optional[_Batch], failure: OpError) -> None:
        tf_logging.warning("Sandblaster goes on without replica %d: %s", replica, failure.message)
        self._first_failure = self._first_failure or failure
        self.lost.add(replica)
        if batch is not None:
            batch.lose(replica)

    def _next(self, after: int) -> Optional[_Batch]:
        with self._news:
            while not self._stopped and (self._batch is None or self._batch.number <= after):
                self._news.wait()
            return None if self._stopped else self._batch

    def _work(self, i: int) -> None:
        replica, session, done = self._optimizer._replicas[i], self._sessions[i], -1
        batch: Optional[_Batch] = None
        try:
            while True:
                batch = self._next(done)
                if batch is None or i in self.lost:
                    return
                done = batch.number
                if not batch.is_over:
                    session.run(replica.fetch)
                while not batch.is_over:
                    portion = batch.take(i)
                    if portion is None:
                        with batch.changed:
                            if not batch.is_over:
                                batch.changed.wait(0.02)
                        continue
                    loss = session.run(replica.compute, {replica.portion: portion})
                    if batch.wins(i, portion):
                        session.run(replica.keep)
                        batch.kept(i, portion, float(loss))
        except OpError as failure:
            if not self._stopped:
                self._lose(i, batch, failure)
