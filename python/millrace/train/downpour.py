# SPDX-License-Identifier: Apache-2.0
"""Downpour SGD: replicas that train copies of their own, and exchange with the parameter servers now and then."""

from __future__ import annotations

import time
from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.ops.variables import Variable
from millrace.train.hooks import SessionRunHook
from millrace.train.optimizer import Optimizer

__all__ = ["DownpourOptimizer"]


class DownpourOptimizer(Optimizer):
    """Each replica applies its gradients to its own copy of the parameters at once, with `local_learning_rate`, and adds them up. Every
    `n_push` steps it gives the sum to the parameter servers, which apply it by `opt` (Adagrad, whose rates adapt on each shard, is usual);
    every `n_fetch` steps it takes their parameters. Replicas never wait for each other.

    The model's variables are built on the replica; the servers' copies, the centre, are made on `center_device` (a device or a device
    function such as replica_device_setter), under the same names in all replicas:

        with tf.device("/job:worker/task:%d" % task):
            loss = ...                                     # variables here: this replica's
        opt = tf.train.DownpourOptimizer(tf.train.AdagradOptimizer(0.1), tf.train.replica_device_setter(ps_tasks=2), n_push=5, n_fetch=5)
        step = opt.minimize(loss, global_step=global_step)
        hook = opt.make_session_run_hook(is_chief=task == 0, warm_start_steps=100)

    With `warm_start_steps` the chief trains alone until the global step, which counts pushes, is there; then the others begin.
    """

    def __init__(
        self,
        opt: Optimizer,
        center_device: Any,
        n_push: int = 1,
        n_fetch: int = 1,
        local_learning_rate: Any = 0.01,
        use_locking: bool = True,
        name: str = "Downpour",
    ) -> None:
        super().__init__(use_locking, name)
        if n_push < 1 or n_fetch < 1:
            raise at_user_line(ValueError("n_push and n_fetch must be positive, got %s and %s" % (n_push, n_fetch)))
        self._opt, self._device, self._n_push, self._n_fetch, self._rate = opt, center_device, n_push, n_fetch, local_learning_rate
        self._centers: List[Variable] = []
        self._locals: List[Any] = []
        self._global_step: Any = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> List[Tuple[Any, Any]]:
        """The gradients that the wrapped optimizer computes, at the replica's parameters."""
        return self._opt.compute_gradients(*args, **kwargs)

    @property
    def centers(self) -> List[Variable]:
        """The servers' parameters, in the order of the variables."""
        return self._centers

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Operation:
        """An operation that is one step of this replica; `global_step` counts the pushes of all."""
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise at_user_line(ValueError("No gradients provided for any variable"))
        if self._centers:
            raise at_user_line(ValueError("apply_gradients() of a DownpourOptimizer makes the centre: call it once"))
        graph = get_default_graph()
        self._global_step, self._locals = global_step, [v for _, v in pairs]
        self._make_local(graph)
        with name_scope(name, self._name):
            sums, accrue = [], []
            for g, v in pairs:
                dense = convert_to_tensor(g) if isinstance(g, IndexedSlices) else g
                with graph.device(self._device), name_scope(None):
                    self._centers.append(Variable(v.initialized_value(), trainable=False, name="%s/%s/center" % (self._name, v.op.name)))
                with graph.device(v.device):
                    total = Variable(
                        array_ops.zeros(v.get_shape(), v.dtype.base_dtype),
                        trainable=False,
                        collections=[GraphKeys.LOCAL_VARIABLES],
                        name=v.op.name + "/accrued",
                    )
                    sums.append(total)
                    rate = gen_ops.cast(convert_to_tensor(self._rate), DstT=v.dtype.base_dtype)
                    accrue += [total.assign_add(dense).op, v.assign_sub(rate * dense).op]
            with graph.device(self._locals[0].device):
                count = Variable(array_ops.zeros([], dtypes.int64), trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], name="local_step")
                with graph.control_dependencies(accrue):
                    now = gen_ops.identity(count.assign_add(1))
            self.local_init_op = self._fetch()
            with graph.control_dependencies([now]):
                pushed = control_flow_ops.cond(self._is_turn(now, self._n_push), lambda: self._push(sums), control_flow_ops.no_op)
            with graph.control_dependencies([pushed]):
                return control_flow_ops.cond(self._is_turn(now, self._n_fetch), self._fetch, control_flow_ops.no_op).op

    def _make_local(self, graph: Any) -> None:
        """Each replica initialises its own parameters; checkpoints have the centre."""
        everybodys = graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
        everybodys[:] = [v for v in everybodys if not any(v is own for own in self._locals)]
        graph.get_collection_ref(GraphKeys.LOCAL_VARIABLES).extend(self._locals)

    @staticmethod
    def _is_turn(now: Any, every: int) -> Any:
        return gen_ops.equal(gen_ops.floor_mod(now, convert_to_tensor(every, dtype=dtypes.int64)), convert_to_tensor(0, dtype=dtypes.int64))

    def _push(self, sums: List[Variable]) -> Operation:
        values = [s.read_value() for s in sums]
        update = self._opt.apply_gradients(list(zip(values, self._centers)), self._global_step)
        with get_default_graph().control_dependencies([update]):
            return control_flow_ops.group(*[s.assign(array_ops.zeros_like(v)).op for s, v in zip(sums, values)])

    def _fetch(self) -> Operation:
        return control_flow_ops.group(*[v.assign(c.read_value()).op for v, c in zip(self._locals, self._centers)])

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """A slot of the wrapped optimizer, of a centre."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> List[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> List[Variable]:
        """The variables of the wrapped optimizer."""
        return self._opt.variables()

    def make_session_run_hook(self, is_chief: bool, warm_start_steps: int = 0, patience: float = 600.0) -> SessionRunHook:
        """A hook that gives the replica the parameters of the centre. Others than the chief wait until the global step is `warm_start_steps`,
        for at most `patience` seconds."""
        if not self._centers:
            raise at_user_line(ValueError("make_session_run_hook() should be called after apply_gradients()."))
        if warm_start_steps > 0 and self._global_step is None:
            raise at_user_line(ValueError("warm_start_steps needs a global step"))
        return _DownpourHook(self, is_chief, warm_start_steps, patience)


class _DownpourHook(SessionRunHook):
    def __init__(self, optimizer: DownpourOptimizer, is_chief: bool, warm_start_steps: int, patience: float) -> None:
        self._optimizer, self._is_chief, self._steps, self._patience = optimizer, is_chief, warm_start_steps, patience

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Waits for the chief, and takes the centre's parameters."""
        opt, end = self._optimizer, time.monotonic() + self._patience
        while not self._is_chief and self._steps > 0 and session.run(opt._global_step) < self._steps and not (coord and coord.should_stop()):
            if time.monotonic() > end:
                raise at_user_line(RuntimeError("the chief has not made %d steps in %g s" % (self._steps, self._patience)))
            time.sleep(0.05)
        session.run(opt.local_init_op)
