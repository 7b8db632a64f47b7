# SPDX-License-Identifier: Apache-2.0
"""Optimizers of tf.contrib.opt whose workers train variables of their own, and meet now and then in central ones on the parameter servers.

A custom getter makes both: each trainable variable is a local one on the worker, beside it there is a central one, which
tf.train.replica_device_setter places. A hook makes the local ones equal to the central ones before training begins.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, add_to_collection, colocate_with, control_dependencies, device, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops, queues
from millrace.ops.accumulators import ConditionalAccumulator
from millrace.ops.variable_scope import get_variable
from millrace.ops.variables import Variable, trainable_variables
from millrace.train.hooks import SessionRunHook
from millrace.train.optimizer import Optimizer
from millrace.train.saveable import by_name
from millrace.train.saver import Saver

LOCAL_VARIABLE_NAME = "local_center_variable"
GLOBAL_VARIABLE_NAME = "global_center_variable"
GRAD_VARIABLE_NAME = "grad_variable"


class _CustomGetter:
    """Makes a local variable on the worker in place of a trainable one, and its companions."""

    def __init__(self, worker_device: Any) -> None:
        self._worker_device = worker_device

    def __call__(self, getter: Any, name: str, trainable: Any, collections: Any, *args: Any, **kwargs: Any) -> Any:
        if not trainable:
            with device(self._worker_device) if GraphKeys.LOCAL_VARIABLES in (collections or ()) else contextlib.nullcontext():
                return getter(name, *args, trainable=trainable, collections=collections, **kwargs)
        local = self._make(getter, name, True, True, args, kwargs)
        if kwargs.get("reuse") is not True:
            self._accompany(local, getter, name, args, kwargs)
        return local

    def _make(self, getter: Any, name: str, here: bool, trainable: bool, args: Any, kwargs: Any) -> Any:
        with device(self._worker_device) if here else contextlib.nullcontext():
            keys = [GraphKeys.LOCAL_VARIABLES if here else GraphKeys.GLOBAL_VARIABLES]
            return getter(name, *args, trainable=trainable, collections=keys, **kwargs)

    def _accompany(self, local: Any, getter: Any, name: str, args: Any, kwargs: Any) -> None:
        raise NotImplementedError


class _Companions(_CustomGetter):
    """One whose companions are a central variable, and a second one on the worker; parts have parts."""

    _second_name = ""

    def __init__(self, worker_device: Any) -> None:
        super().__init__(worker_device)
        self._global_map: Dict[Any, Any] = {}
        self._second_map: Dict[Any, Any] = {}

    def _accompany(self, local: Any, getter: Any, name: str, args: Any, kwargs: Any) -> None:
        center = self._make(getter, "%s/%s" % (GLOBAL_VARIABLE_NAME, name), False, False, args, kwargs)
        second = self._make(getter, "%s/%s" % (self._second_name, name), True, False, args, kwargs)
        whole = kwargs.get("partitioner") is None
        self._global_map.update([(local, center)] if whole else zip(local, center))
        self._second_map.update([(local, second)] if whole else zip(local, second))


class ElasticAverageCustomGetter(_Companions):
    """Makes, for ElasticAverageOptimizer, a local variable, its central one, and a copy of that on the worker."""

    _second_name = LOCAL_VARIABLE_NAME
    _local_map = property(lambda self: self._second_map)


class AGNCustomGetter(_Companions):
    """Makes, for AGNOptimizer, a local variable, its central one, and the sum of gradients on the worker."""

    _second_name = GRAD_VARIABLE_NAME
    _grad_map = property(lambda self: self._second_map)


class ModelAverageCustomGetter(_CustomGetter):
    """Makes, for ModelAverageOptimizer, a local variable and its central one."""

    def __init__(self, worker_device: Any) -> None:
        super().__init__(worker_device)
        self._local_2_global: Dict[Any, Any] = {}

    def _accompany(self, local: Any, getter: Any, name: str, args: Any, kwargs: Any) -> None:
        keys = [GraphKeys.GLOBAL_VARIABLES]
        self._local_2_global[local] = Variable(
            local.initialized_value(), name="%s/%s" % (GLOBAL_VARIABLE_NAME, name), trainable=False, collections=keys, use_resource=local._is_resource
        )


class _BeginAtCenters(SessionRunHook):
    """Makes local variables equal to central ones when a session begins."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def begin(self) -> None:
        """Makes the operation."""
        self._operation = self._make()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs it."""
        session.run(self._operation)


class _MeetingOptimizer(Optimizer):
    """Another optimizer trains local variables; each so many steps they meet the central ones."""

    def __init__(self, opt: Any, period: int, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt, self._period = opt, period
        self._local_step = get_variable("local_step", initializer=0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._opt.compute_gradients(*args, **kwargs)

    def _local_train_op(self, grads_and_vars: Any, name: Optional[str]) -> Operation:
        """The optimizer's step; what it keeps for it stays with the worker."""
        with _made_local():
            return self._opt.apply_gradients(grads_and_vars, name=name)

    def _meet(self, after: Sequence[Operation], meet: Any) -> Operation:
        """Counts a step after some operations, and each so many steps runs what `meet` makes."""
        with control_dependencies(after):
            counted = self._local_step.assign_add(1, name="local_step_update")
        with control_dependencies([getattr(counted, "op", counted)]):
            due = gen_ops.equal(math_ops.mod(self._local_step.read_value(), self._period), 0)
            return control_flow_ops.cond(due, meet, control_flow_ops.no_op)


@contextlib.contextmanager
def _made_local() -> Iterator[None]:
    """A scope within which global variables that are made become local ones."""
    found = get_default_graph().get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
    known = {id(v) for v in found}
    yield
    for v in [v for v in found if id(v) not in known]:
        add_to_collection(GraphKeys.LOCAL_VARIABLES, v)
    found[:] = [v for v in found if id(v) in known]


def _counted(global_step: Any) -> List[Any]:
    """The next global step, where there is one."""
    if global_step is None:
        return []
    with colocate_with(getattr(global_step, "op", global_step)):
        return [global_step.assign_add(1)]


def _variables_of(companions: Any) -> List[Any]:
    """The trainable variables, which all must have companions."""
    found = trainable_variables()
    if not found or not companions:
        raise at_user_line(ValueError("There must be trainable variables, made by get_variable with the optimizer's custom getter."))
    return found


class ElasticAverageOptimizer(_MeetingOptimizer):
    """Elastic averaging (Zhang, Choromanska and LeCun, 2015): each communication_period steps, local and central variables move towards each
    other by moving_rate of their difference. compute_gradients holds local variables near the last central ones by rho."""

    BETA = 0.9

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        ea_custom_getter: ElasticAverageCustomGetter,
        communication_period: int = 10,
        moving_rate: Optional[float] = None,
        rho: Any = None,
        use_locking: bool = True,
        synchronous: bool = False,
        name: str = "ElasticAverageOptimizer",
    ) -> None:
        super().__init__(opt, communication_period, use_locking, name)
        self._num_worker, self._synchronous = num_worker, synchronous
        self._local_map, self._global_map = ea_custom_getter._local_map, ea_custom_getter._global_map
        self._moving_rate = self.BETA / communication_period / num_worker if moving_rate is None else moving_rate
        self._rho = self._moving_rate / self._opt._learning_rate if rho is None else rho

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's, of the loss and rho times how far the variables are from what the central ones were."""
        variables = var_list or trainable_variables()
        away = [nn_ops.l2_loss(v - self._local_map[v]) for v in variables]
        return self._opt.compute_gradients(loss + self._rho * math_ops.add_n(away), variables, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Operation:
        """An operation that makes a step, and meets when it is time; global_step counts meetings."""
        pairs = list(grads_and_vars)
        variables = [v for g, v in pairs if g is not None]

        def meet() -> Operation:
            centers, seen = [self._global_map[v] for v in variables], [self._local_map[v] for v in variables]
            with control_dependencies([_op(s.assign(_center_value(c))) for s, c in zip(seen, centers)]):
                moves = []
                for v, s in zip(variables, seen):
                    with device(v.device):
                        moves.append(self._moving_rate * (v.read_value() - s.read_value()))
                changes = [v.assign_sub(move) for v, move in zip(variables, moves)] + [c.assign_add(move) for c, move in zip(centers, moves)]
                return control_flow_ops.group(*changes, *_counted(global_step))

        return self._meet([self._local_train_op(pairs, name)], meet)

    def get_init_op(self, task_index: int) -> Operation:
        """An operation that makes local variables equal to central ones; a synchronous one waits until all workers did."""
        begin = []
        for v in _variables_of(self._global_map):
            begin += [v.assign(_center_value(self._global_map[v])), self._local_map[v].assign(_center_value(self._global_map[v]))]
        done = control_flow_ops.group(*begin)
        if not self._synchronous:
            return done
        meeting = [queues.FIFOQueue(self._num_worker, [dtypes.bool], [[]], shared_name="variable_init_sync_queue%d" % i) for i in range(self._num_worker)]
        with control_dependencies([done]):
            told = [queue.enqueue(False) for i, queue in enumerate(meeting) if i != task_index]
        return control_flow_ops.group(*told, meeting[task_index].dequeue_many(self._num_worker - 1))

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """A hook that runs get_init_op when a session begins."""
        del is_chief  # all workers begin alike
        return _BeginAtCenters(lambda: self.get_init_op(task_index))

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Saver:
        """A Saver that writes central variables under the names of the local ones."""
        if not self._global_map:
            raise at_user_line(
                RuntimeError("There are no central variables yet: call swapping_saver after the model is made, with variables of ElasticAverageCustomGetter.")
            )
        chosen = trainable_variables() if var_list is None else var_list
        named = chosen if isinstance(chosen, dict) else by_name(chosen)

        def center(v: Any) -> Any:
            return self._global_map.get(v, v)

        return Saver({key: [center(part) for part in v] if isinstance(v, list) else center(v) for key, v in named.items()}, name=name, **kwargs)


class AGNOptimizer(_MeetingOptimizer):
    """Accumulated gradient normalization (Hermans, Spanakis and Moeckel, 2017): each communication_period steps, the mean of a worker's
    gradients changes the central variables, which the worker then goes on from."""

    def __init__(
        self,
        optimizer: Any,
        num_worker: int,
        custom_getter: AGNCustomGetter,
        communication_period: int = 10,
        use_locking: bool = True,
        name: str = "AGNOptimizer",
    ) -> None:
        super().__init__(optimizer, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._global_map, self._grad_map = custom_getter._global_map, custom_getter._grad_map

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Operation:
        """An operation that makes a step, and meets when it is time; global_step counts meetings."""
        present = [(g, v) for g, v in grads_and_vars if g is not None]
        sums, centers = [self._grad_map[v] for _, v in present], [self._global_map[v] for _, v in present]
        step = self._local_train_op(present, name)
        summed = [total.assign_add(convert_to_tensor(g)) for (g, _), total in zip(present, sums)]

        def meet() -> Operation:
            means = [total.read_value() / self._period for total in sums]
            with control_dependencies([self._opt.apply_gradients(list(zip(means, centers)))]):
                taken = [v.assign(_center_value(c)) for (_, v), c in zip(present, centers)]
                cleared = [total.assign(array_ops.zeros_like(mean)) for total, mean in zip(sums, means)]
                return control_flow_ops.group(*taken, *cleared, *_counted(global_step))

        return self._meet([step, *map(_op, summed)], meet)

    def get_init_op(self, task_index: int) -> Operation:
        """An operation that makes local variables equal to central ones, and sums of gradients 0."""
        del task_index  # all workers begin alike
        found = _variables_of(self._global_map)
        begin = [v.assign(_center_value(self._global_map[v])) for v in found]
        return control_flow_ops.group(*begin, *[self._grad_map[v].assign(array_ops.zeros_like(v)) for v in found])

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """A hook that runs get_init_op when a session begins."""
        del is_chief  # all workers begin alike
        return _BeginAtCenters(lambda: self.get_init_op(task_index))


class ModelAverageOptimizer(_MeetingOptimizer):
    """Model averaging: each interval_steps steps all workers wait for each other, and go on from the mean of their variables."""

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        is_chief: bool,
        ma_custom_getter: ModelAverageCustomGetter,
        interval_steps: int = 100,
        use_locking: bool = True,
        name: str = "ModelAverageOptimizer",
    ) -> None:
        super().__init__(opt, interval_steps, use_locking, name)
        self._num_worker, self._is_chief = num_worker, is_chief
        self._local_2_global = ma_custom_getter._local_2_global
        self._begun: List[Operation] = []  # what tells accumulators which step it is

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Operation:
        """An operation that makes a step, and meets when it is time; global_step counts meetings, and must be there."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise at_user_line(ValueError("Must supply at least one variable"))
        if global_step is None:
            raise at_user_line(ValueError("Global step is required"))
        variables = [v for g, v in pairs if g is not None]
        means = []  # made here, not where workers meet: the hook needs them before
        with name_scope(None, self._name + "/global"):
            for v in variables:
                center = self._local_2_global[v]
                with device(center.device):
                    means.append(ConditionalAccumulator(v.dtype.base_dtype, v.get_shape(), shared_name=center.name + "/var_accum"))
                    self._begun.append(means[-1].set_global_step(_center_value(global_step), name="SetGlobalStep"))
        return self._meet([self._local_train_op(pairs, name)], lambda: self._average(variables, means, global_step))

    def _average(self, variables: Any, means: Any, global_step: Any) -> Operation:
        with colocate_with(global_step.op):
            waiting = queues.FIFOQueue(-1, [dtypes.bool], [[]], shared_name="sync_queue")
        given = [mean.apply_grad(v.read_value(), local_step=_center_value(global_step)) for v, mean in zip(variables, means)]
        with control_dependencies(given):
            if self._is_chief:
                changes = [self._local_2_global[v].assign(mean.take_grad(self._num_worker)) for v, mean in zip(variables, means)]
                with control_dependencies([_op(change) for change in changes + _counted(global_step)]), device(global_step.device):
                    met = waiting.enqueue_many(array_ops.fill([self._num_worker - 1], False))
            else:
                with device(global_step.device):
                    met = waiting.dequeue().op
        with control_dependencies([met]):
            return self._taken(variables)

    def _taken(self, variables: Any) -> Operation:
        if not variables:
            raise at_user_line(ValueError("The list of local_variables should not be empty"))
        taken = []
        for v in variables:
            with device(v.device):
                taken.append(v.assign(_center_value(self._local_2_global[v])))
        return control_flow_ops.group(*taken)

    def get_init_op(self) -> Operation:
        """An operation that makes local variables equal to central ones."""
        return self._taken(trainable_variables())

    def make_session_run_hook(self) -> SessionRunHook:
        """A hook that runs get_init_op when a session begins; the chief's tells the accumulators which step it is."""
        return _BeginAtCenters(lambda: [self.get_init_op(), *(self._begun if self._is_chief else [])])


def _center_value(center: Any) -> Any:
    """What a central variable is now; elsewhere it might be what it was when the step began, which then travels."""
    with colocate_with(center.op):
        return center.read_value()


def _op(change: Any) -> Any:
    return getattr(change, "op", change)
