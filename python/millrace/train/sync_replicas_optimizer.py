# SPDX-License-Identifier: Apache-2.0
"""tf.train.SyncReplicasOptimizer: the gradients of several replicas become one before they are applied."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace import tf_logging
from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.ops.accumulators import ConditionalAccumulator, SparseConditionalAccumulator
from millrace.ops.queues import FIFOQueue
from millrace.ops.variables import Variable, global_variables, report_uninitialized_variables
from millrace.train.hooks import SessionRunHook
from millrace.train.optimizer import Optimizer
from millrace.train.queue_runner import QueueRunner
from millrace.train.session_manager import _ready


class SyncReplicasOptimizer(Optimizer):
    """Wraps an optimizer: each replica adds its gradients to accumulators, the chief's thread applies their mean once there are
    `replicas_to_aggregate`, and gives each replica a token with which it goes on. Gradients of steps that are over are dropped.

    `variable_averages`: an ExponentialMovingAverage of `variables_to_average`, updated after each step.
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: Optional[int] = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt, self._replicas = opt, replicas_to_aggregate
        self._total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        tf_logging.info("SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s", self._replicas, self._total)
        self._averages, self._averaged = variable_averages, variables_to_average
        self._gradients_applied = False
        self._tokens_per_step = max(self._total, self._replicas)
        self._global_step: Any = None
        self._tokens: Any = None
        self._runner: Optional[QueueRunner] = None
        self._accumulators: List[Tuple[Any, str]] = []

    def compute_gradients(self, *args: Any, **kwargs: Any) -> List[Tuple[Any, Any]]:
        """The gradients that the wrapped optimizer computes."""
        return self._opt.compute_gradients(*args, **kwargs)

    def _accumulated(self, grad: Any, var: Any, adds: List[Any]) -> Any:
        """The mean of the replicas' gradients of a variable. What adds this one's goes into `adds`."""
        if grad is None:
            return None
        name = var.name + "/grad_accum"
        if isinstance(grad, Tensor):
            dense = ConditionalAccumulator(grad.dtype, shape=var.get_shape(), shared_name=name)
            adds.append(dense.apply_grad(grad, local_step=self._local_step.value()))
            self._accumulators.append((dense, var.device))
            return dense.take_grad(self._replicas)
        if not isinstance(grad, IndexedSlices):
            raise at_user_line(ValueError("Unknown grad type!"))
        sparse = SparseConditionalAccumulator(grad.dtype, shape=(), shared_name=name)
        adds.append(sparse.apply_indexed_slices_grad(grad, local_step=self._local_step.value()))
        self._accumulators.append((sparse, var.device))
        return sparse.take_indexed_slices_grad(self._replicas)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Operation:
        """An operation that gives this replica's gradients to the others, and waits for the step to be over."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise at_user_line(ValueError("Must supply at least one variable"))
        if global_step is None:
            raise at_user_line(ValueError("Global step is required to check staleness"))
        self._global_step = global_step
        graph, dtype = get_default_graph(), global_step.dtype.base_dtype
        self._local_step = Variable(array_ops.zeros([], dtype), trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], name="sync_rep_local_step")
        self.local_step_init_op = self._local_step.assign(global_step)
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        adds: List[Any] = []
        with name_scope(name, self._name):
            applied = []
            for grad, var in pairs:
                with graph.device(var.device):
                    applied.append((self._accumulated(grad, var, adds), var))
            with graph.device(global_step.device), name_scope(""):
                update = self._opt.apply_gradients(applied, global_step)
                self._tokens = FIFOQueue(-1, dtype, shapes=(), name="sync_token_q", shared_name="sync_token_q")
                unused = FIFOQueue(1, dtypes.int32, shapes=(), name="dummy_queue", shared_name="dummy_queue")
                with graph.control_dependencies(adds):
                    token = self._tokens.dequeue()
                train = self._local_step.assign(token)
                with graph.control_dependencies([update]):
                    sync = self._tokens.enqueue_many((self._filled(self._tokens_per_step),))
                if self._averages is not None:
                    with graph.control_dependencies([sync]):
                        sync = self._averages.apply(self._averaged)
            self._runner = QueueRunner(unused, [sync])
            starts = [self.local_step_init_op]
            for accumulator, device in self._accumulators:
                with graph.device(device):
                    starts.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
            self.chief_init_op = control_flow_ops.group(*starts)
        self._gradients_applied = True
        return train

    def _filled(self, count: int) -> Tensor:
        step = self._global_step
        return gen_ops.fill([count], step.read_value() if isinstance(step, Variable) else step)

    def get_chief_queue_runner(self) -> Optional[QueueRunner]:
        """The thread that applies gradients, which the chief starts."""
        if not self._gradients_applied:
            raise at_user_line(ValueError("Should be called after apply_gradients()."))
        return self._runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """An operation that gives the first tokens, which the chief runs before its runner starts."""
        if not self._gradients_applied:
            raise at_user_line(ValueError("get_init_tokens_op() should be called after apply_gradients()."))
        needed = self._replicas - self._total
        if num_tokens == -1:
            num_tokens = self._replicas
        elif num_tokens < needed:
            raise at_user_line(ValueError("Too few tokens to finish the first step: %d (given) vs %d (needed)" % (num_tokens, needed)))
        if num_tokens <= 0:
            return control_flow_ops.no_op(name="no_init_tokens")
        with get_default_graph().device(self._global_step.device), name_scope(""):
            return self._tokens.enqueue_many((self._filled(num_tokens),))

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """A slot of the wrapped optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> List[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> List[Variable]:
        """The variables of the wrapped optimizer."""
        return self._opt.variables()

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """A hook that starts what the optimizer needs in a session."""
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)


class _SyncReplicasOptimizerHook(SessionRunHook):
    """Initialises the replica's step, and for the chief the accumulators, the tokens and the thread."""

    def __init__(self, sync_optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._sync_optimizer, self._is_chief, self._num_tokens = sync_optimizer, is_chief, num_tokens

    def begin(self) -> None:
        """Finds the operations."""
        made = self._sync_optimizer
        if not made._gradients_applied:
            raise at_user_line(ValueError("SyncReplicasOptimizer.apply_gradient should be called before using the hook."))
        self._local_init_op = made.chief_init_op if self._is_chief else made.local_step_init_op
        self._runner = made.get_chief_queue_runner() if self._is_chief else None
        self._init_tokens_op = made.get_init_tokens_op(self._num_tokens) if self._is_chief else None

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs them."""
        ready, missing = _ready(self._sync_optimizer.ready_for_local_init_op, session, "Model is not ready for SyncReplicasOptimizer local init.")
        if not ready:
            raise at_user_line(
                RuntimeError(
                    "Init operations did not make model ready for SyncReplicasOptimizer local_init. Init op: %s, error: %s"
                    % (self._local_init_op.name, missing)
                )
            )
        session.run(self._local_init_op)
        if self._init_tokens_op is not None:
            session.run(self._init_tokens_op)
        if self._runner is not None:
            self._runner.create_threads(session, coord=coord, daemon=True, start=True)
