# SPDX-License-Identifier: Apache-2.0
"""Which strategy holds where a program is, whether it is in one replica or across all of them, and the classes that strategies derive from. Contexts are
the graph's, the bodies of functions included: a graph that is entered within a strategy's scope begins with the strategy of programs that choose none."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from millrace import names
from millrace.framework import nest
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.cross_device_ops import InputContext, InputReplicationMode, ReduceOp
from millrace.framework.device_names import current
from millrace.framework.errors import at_user_line
from millrace.framework.graph import _graphs_around, control_dependencies, device, get_default_graph
from millrace.framework.strategy_of_towers import Mapped, OfTowers
from millrace.framework.replication import VariableAggregation, VariableSynchronization
from millrace.ops import control_flow_ops, math_ops
from millrace.ops.variable_scope import get_variable_scope, variable_scope
from millrace.ops.variables import Variable, variable_creator_scope

_Function = Callable[..., Any]


class _Mode(NamedTuple):
    """A strategy, and it again across replicas or else the context of one replica."""

    strategy: Any
    cross_replica: Any
    replica: Any


def _mode() -> _Mode:
    for graph in _graphs_around():
        modes: Any = graph.__dict__.get("_strategy_modes")
        if modes:
            return modes[-1]  # type: ignore[no-any-return]
    return _default_mode


@contextlib.contextmanager
def _entered(mode: _Mode) -> Iterator[None]:
    modes: List[_Mode] = get_default_graph().__dict__.setdefault("_strategy_modes", [])
    modes.append(mode)
    try:
        yield
    finally:
        modes.pop()


def get_strategy() -> "Strategy":
    """The one whose scope this is in, or the one of programs that choose none."""
    return _mode().strategy  # type: ignore[no-any-return]


def has_strategy() -> bool:
    """Whether a program has chosen one."""
    return get_strategy() is not _default


def get_replica_context() -> Optional["ReplicaContext"]:
    """The replica that this is in; None in a strategy's scope and within merge_call, which are across replicas."""
    return _mode().replica  # type: ignore[no-any-return]


def get_cross_replica_context() -> Optional["Strategy"]:
    """The strategy in its scope and within merge_call; None in a replica."""
    return _mode().cross_replica  # type: ignore[no-any-return]


def in_cross_replica_context() -> bool:
    """Whether this is across replicas."""
    return get_cross_replica_context() is not None


def _get_default_strategy() -> "Strategy":
    """The one of programs that choose none."""
    return _default


def _get_default_replica_context() -> "ReplicaContext":
    """The replica of programs that choose no strategy."""
    return _default_replica


def experimental_set_strategy(strategy: Optional["Strategy"]) -> None:
    """Enters the scope of a strategy for the rest of the graph, or until the next call; None leaves it. RuntimeError within a scope."""
    held = get_default_graph().__dict__
    chosen = held.pop("_strategy_scope", None)
    if chosen is not None:
        chosen.__exit__(None, None, None)
    if has_strategy():
        raise at_user_line(RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope."))
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        held["_strategy_scope"] = scope


def _wrong(wanted: Any, found: Any) -> RuntimeError:
    if found is _default:
        return at_user_line(RuntimeError('Need to be inside "with strategy.scope()" for %s' % (wanted,)))
    return at_user_line(RuntimeError("Mixing different tf.distribute.Strategy objects: %s is not %s" % (found, wanted)))


def _require_scope(strategy: "Strategy") -> None:
    """RuntimeError where another strategy holds."""
    if get_strategy() is not strategy:
        raise _wrong(strategy, get_strategy())


def _require_across(extended: Any) -> None:
    """RuntimeError in a replica of the strategy, and in whatever context of another."""
    mode, strategy = _mode(), extended._container_strategy()
    if mode.cross_replica is strategy or mode is _default_mode:
        return
    if mode.strategy is not strategy:
        raise _wrong(strategy, mode.strategy)
    raise at_user_line(RuntimeError("Method requires being in cross-replica context, use get_replica_context().merge_call()"))


def require_replica_context(replica_ctx: "ReplicaContext") -> None:
    """RuntimeError unless this is in the replica of a context."""
    mode = _mode()
    if mode.replica is replica_ctx:
        return
    if mode.replica is None:
        raise at_user_line(RuntimeError("Need to be inside `call_for_each_replica()`"))
    if mode.strategy is replica_ctx._strategy:
        raise at_user_line(RuntimeError("Mismatching ReplicaContext."))
    raise at_user_line(RuntimeError("Mismatching strategy objects: %s is not %s." % (mode.strategy, replica_ctx._strategy)))


# ---- scopes ----

_NESTED = "%s nesting error: move call to tf.distribute.set_strategy() out of `with` scope."


class _Scope:
    """The context of a strategy: across its replicas, variables are made by it and operations go to its device where nothing else is said. It may be
    entered again within itself."""

    def __init__(self, strategy: Any, default_device: Optional[str]) -> None:
        self._strategy, self._device, self._again = strategy, default_device, 0

    def _make_variable(self, next_creator: _Function, **kwargs: Any) -> Any:
        _require_scope(self._strategy)
        kwargs["use_resource"] = True
        kwargs["synchronization"] = kwargs.get("synchronization") or VariableSynchronization.AUTO
        kwargs["aggregation"] = kwargs.get("aggregation") or VariableAggregation.NONE
        made = self._strategy.extended._create_variable(next_creator, **kwargs)
        if isinstance(made, Variable):
            setattr(made, "_distribute_strategy", self._strategy)
        return made

    def _found(self) -> Tuple[Any, ...]:
        return self._graph._device_stack, self._graph._variable_creator_stack, get_variable_scope()

    def __enter__(self) -> Any:
        if has_strategy():
            _require_across(self._strategy.extended)
            self._again += 1
            return self._strategy
        self._graph = get_default_graph()
        with contextlib.ExitStack() as stack:
            stack.enter_context(_entered(_Mode(self._strategy, self._strategy, None)))
            stack.enter_context(variable_scope(get_variable_scope(), custom_getter=_whole))
            stack.enter_context(variable_creator_scope(self._make_variable))
            if self._device:
                stack.enter_context(self._graph.device(self._device))
            self._stack = stack.pop_all()
        self._mine = self._found()
        return self._strategy

    def __exit__(self, *details: Any) -> None:
        if self._again:
            self._again -= 1
            return
        for mine, found, what in zip(self._mine, self._found(), ("Device scope", "Variable creator scope", "Variable scope")):
            if found is not mine:
                raise at_user_line(RuntimeError(_NESTED % what))
        self._stack.__exit__(*details)


def _whole(getter: _Function, *args: Any, **kwargs: Any) -> Any:
    """Makes variables in one piece."""
    kwargs.pop("partitioner", None)
    return getter(*args, **kwargs)


class _DefaultScope:
    """The scope of the strategy of programs that choose none, which refuses variables of others."""

    def __init__(self) -> None:
        self._stacks: List[Any] = []

    def __enter__(self) -> Any:
        def make(next_creator: _Function, **kwargs: Any) -> Any:
            _require_scope(_default)
            return next_creator(**kwargs)

        scope = variable_creator_scope(make)
        scope.__enter__()
        self._stacks.append(scope)
        return _default

    def __exit__(self, *details: Any) -> None:
        self._stacks.pop().__exit__(*details)


# ---- what strategies read ----


class InputIterator:
    """The elements of a data set, for the replica."""

    def __init__(self, dataset: Any) -> None:
        self._iterator = dataset.make_initializable_iterator()

    def initialize(self) -> List[Any]:
        """The operations that begin it."""
        return [self._iterator.initializer]

    initializer = property(initialize, doc="The operations that begin it.")

    def get_next(self) -> Any:
        """The next element."""
        return self._iterator.get_next()


class _CalledIterator:
    """What a function gives, each time that it is called."""

    def __init__(self, fn: _Function) -> None:
        self.get_next = fn

    def initialize(self) -> List[Any]:
        """Nothing: it begins by itself."""
        return []


def _is_function(made: Any) -> bool:
    """Whether what an input function gives is no data set, but gives the elements itself. ValueError for what is neither."""
    if hasattr(made, "make_initializable_iterator"):
        return False
    if not callable(made):
        raise at_user_line(ValueError("input_fn must return a tf.data.Dataset or a callable, got: %r" % (made,)))
    return True


def iterator_of(made: Any) -> Any:
    """What reads the data set, or calls the function, that an input function gives."""
    return _CalledIterator(made) if _is_function(made) else InputIterator(made)


class MultiStepContext:
    """What the function of several steps says of its results: those of the last one."""

    def __init__(self) -> None:
        self.run_op: Any = None
        self._outputs: Dict[str, Any] = {}
        self._non_tensors: Dict[str, Any] = {}
        self._reduce_ops: Dict[str, Any] = {}

    last_step_outputs = property(lambda self: self._outputs, doc="Tensors of the last step, by name.")
    non_tensor_outputs = property(lambda self: self._non_tensors, doc="What is no tensor, by name.")

    def set_last_step_output(self, name: str, output: Any, reduce_op: Any = None) -> None:
        """Keeps a tensor of the last step; those of replicas are reduced, if it is said how."""
        if reduce_op is not None and in_cross_replica_context():
            output = get_strategy().reduce(reduce_op, output)
        elif reduce_op is not None:
            output = _replica_or_raise().merge_call(lambda strategy, value: strategy.reduce(reduce_op, value), (output,))
        self._outputs[name], self._reduce_ops[name] = output, reduce_op

    def set_non_tensor_output(self, name: str, output: Any) -> None:
        """Keeps what is no tensor."""
        if not in_cross_replica_context():
            output = _replica_or_raise().merge_call(lambda strategy, value: strategy.experimental_local_results(value), (output,))
        self._non_tensors[name] = output


def _replica_or_raise() -> "ReplicaContext":
    replica = get_replica_context()
    if replica is None:
        raise at_user_line(RuntimeError("Need to be inside `call_for_each_replica()`"))
    return replica


# ---- what strategies do ----


class StrategyExtended:
    """What libraries ask of a strategy. Those that derive from it say how by the methods that begin with an underscore; these are the ways of one replica."""

    def __init__(self, container_strategy: "Strategy") -> None:
        self._strategy = container_strategy
        self._default_device: Optional[str] = None

    def _container_strategy(self) -> "Strategy":
        return self._strategy

    def _scope(self, strategy: "Strategy") -> Any:
        return _Scope(strategy, self._default_device)

    def _across(self) -> Any:
        """The strategy's scope. RuntimeError in a replica, and in that of another strategy."""
        _require_across(self)
        return self._container_strategy().scope()

    def call_for_each_replica(self, fn: _Function, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function in each replica, and puts together what it returns."""
        with self._across():
            return self._call_for_each_replica(fn, args, kwargs or {})

    def _call_for_each_replica(self, fn: _Function, args: Any, kwargs: Dict[str, Any]) -> Any:
        with device(self._default_device) if self._default_device else contextlib.nullcontext(), self._replica():
            return fn(*args, **kwargs)

    def _replica(self) -> "ReplicaContext":
        return ReplicaContext(self._container_strategy(), constant(0))

    def _create_variable(self, next_creator: _Function, *args: Any, **kwargs: Any) -> Any:
        return next_creator(*args, **kwargs)

    def update(self, var: Any, fn: _Function, args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        """What a function makes of a variable: across replicas, where the variable is."""
        with self._across():
            return self._update(var, fn, args, kwargs or {}, group)

    def _update(self, var: Any, fn: _Function, args: Any, kwargs: Dict[str, Any], group: bool) -> Any:
        return self._update_non_slot(var, fn, (var, *args), kwargs, group)

    def update_non_slot(self, colocate_with: Any, fn: _Function, args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        """What a function makes, beside a variable."""
        with self._across():
            return self._update_non_slot(colocate_with, fn, args, kwargs or {}, group)

    def _update_non_slot(self, colocate_with: Any, fn: _Function, args: Any, kwargs: Dict[str, Any], group: bool) -> Any:
        del colocate_with  # placement is the program's
        result = fn(*args, **kwargs)
        return result if group else nest.map_structure(self._local_results, result)

    def _reduction(self, reduce_op: Any) -> ReduceOp:
        _require_across(self)
        return ReduceOp.of(reduce_op)

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        """The sum or mean of the values of replicas, where it is wanted."""
        return self._reduce_to(self._reduction(reduce_op), value, destinations)

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        del reduce_op, destinations  # there is one value
        return value

    def _reduce(self, reduce_op: Any, value: Any) -> Any:
        return self._reduce_to(reduce_op, value, current() or "/device:CPU:0")

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Iterable[Tuple[Any, Any]]) -> List[Any]:
        """The sums or means of several values."""
        reduce_op = self._reduction(reduce_op)
        return [self._reduce_to(reduce_op, value, where) for value, where in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """A tensor, in all replicas."""
        _require_across(self)
        return self._broadcast_to(tensor, destinations)

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        del destinations  # placement is the program's
        return tensor

    def _local_results(self, value: Any) -> Tuple[Any, ...]:
        return (value,)

    def _unwrap(self, value: Any) -> Tuple[Any, ...]:
        return self._local_results(value)

    def _group(self, value: Any, name: Optional[str] = None) -> Any:
        return control_flow_ops.group(value, name=name)

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A context in which variables are made on the device of another."""
        return device(colocate_with_variable.device)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in the strategy's scope; of the strategy of programs that choose none: outside of all."""
        return bool(v._distribute_strategy is (None if self._strategy is _default else self._strategy))

    def value_container(self, value: Any) -> Any:
        """The variable itself."""
        return value

    def read_var(self, v: Any) -> Any:
        """The value of a variable, across replicas."""
        return v

    def non_slot_devices(self, var_list: Any) -> Any:
        """Where what optimizers keep beside slots goes: with the first variable by name."""
        return min(var_list, key=lambda x: x.name)

    @property
    def worker_devices(self) -> Tuple[str, ...]:
        """The devices of the replicas."""
        raise at_user_line(RuntimeError("worker_devices() method unsupported by default tf.distribute.Strategy."))

    @property
    def parameter_devices(self) -> Tuple[str, ...]:
        """The devices of variables."""
        raise at_user_line(RuntimeError("parameter_devices() method unsupported by default tf.distribute.Strategy."))

    _num_replicas_in_sync = 1
    _global_batch_size = True  # of what make_dataset_iterator takes
    experimental_require_static_shapes = False
    experimental_between_graph = False
    experimental_should_init = should_checkpoint = should_save_summary = True

    def experimental_run_steps_on_iterator(self, fn: _Function, iterator: Any, iterations: Any = 1, initial_loop_values: Any = None) -> Any:
        """Calls a function with a context and what an iterator gives, in a loop of so many iterations; the context says what came of the last one."""
        with self._across():
            return self._experimental_run_steps_on_iterator(fn, iterator, iterations, initial_loop_values)

    def _experimental_run_steps_on_iterator(self, fn: _Function, iterator: Any, iterations: Any, initial_loop_values: Any = None) -> "MultiStepContext":
        context = MultiStepContext()

        def body(i: Any, *values: Any) -> List[Any]:
            del values  # of the step before
            step = fn(context, iterator.get_next())
            with control_dependencies([step] if step is not None else []):
                return [i + 1, *nest.flatten(context.last_step_outputs)]

        first = nest.flatten(initial_loop_values or {})
        done = control_flow_ops.while_loop(lambda i, *values: i < iterations, body, [constant(0), *first], parallel_iterations=1, return_same_structure=True)
        context.run_op = control_flow_ops.group(done)
        context._outputs = nest.pack_sequence_as(context.last_step_outputs, done[1:])
        return context

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """A data set of the rows of arrays."""
        _require_across(self)
        return self._experimental_make_numpy_dataset(numpy_input, session)

    def _make_input_fn_iterator(self, input_fn: _Function, replication_mode: Any = InputReplicationMode.PER_WORKER) -> Any:
        if replication_mode is not InputReplicationMode.PER_WORKER:
            raise at_user_line(ValueError("Input replication mode not supported: %s" % (replication_mode,)))
        made = input_fn(InputContext())
        return _CalledIterator(made) if _is_function(made) else self._make_dataset_iterator(made)

    def _make_dataset_iterator(self, dataset: Any) -> Any:
        return InputIterator(dataset)

    def _experimental_make_numpy_dataset(self, numpy_input: Any, session: Any) -> Any:
        del session  # the arrays are the graph's: there is nothing to run first
        return names.find("data").Dataset.from_tensor_slices(numpy_input)

    def _experimental_distribute_dataset(self, dataset: Any) -> Any:
        return dataset

    def _experimental_distribute_datasets_from_function(self, dataset_fn: _Function) -> Any:
        return dataset_fn(InputContext())

    def _configure(self, session_config: Any = None, cluster_spec: Any = None, task_type: Optional[str] = None, task_id: Optional[int] = None) -> None:
        del session_config, cluster_spec, task_type, task_id  # of a strategy within one process

    def _update_config_proto(self, config_proto: Any) -> Any:
        return config_proto


class Strategy(OfTowers):
    """How a program is spread over devices: what derives from it is given an object that says how."""

    def __init__(self, extended: StrategyExtended) -> None:
        self.extended = extended

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas train in step."""
        return self.extended._num_replicas_in_sync

    def scope(self) -> Any:
        """A context across the replicas of this strategy, which makes the variables there."""
        return self.extended._scope(self)

    def experimental_run_v2(self, fn: _Function, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function in each replica, and puts together what it returns."""
        with self.scope():
            return self.extended.call_for_each_replica(fn, args, kwargs)

    def experimental_run(self, fn: _Function, input_iterator: Any = None) -> Any:
        """Calls a function in each replica, with what an iterator gives if there is one."""
        with self.scope():
            return self.experimental_run_v2(fn, () if input_iterator is None else (input_iterator.get_next(),))

    def reduce(self, reduce_op: Any, value: Any, axis: Optional[int] = None, destinations: Any = None) -> Any:
        """The sum or mean of the values of replicas, and along an axis where that is given; of what `map` made, that of all values."""
        kind = self.extended._reduction(reduce_op)
        if isinstance(value, Mapped):
            value = math_ops.add_n(value) / len(value) if kind is ReduceOp.MEAN else math_ops.add_n(value)
        if destinations is not None:
            return self.extended._reduce_to(kind, value, destinations)
        if axis is not None:
            along = math_ops.reduce_mean if kind is ReduceOp.MEAN else math_ops.reduce_sum
            value = self.experimental_run_v2(lambda v: along(v, axis), (value,))
        return self.extended._reduce(kind, value)

    def experimental_local_results(self, value: Any) -> Tuple[Any, ...]:
        """The values of the replicas."""
        return self.extended._local_results(value)

    unwrap = experimental_local_results

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """A data set dealt out to the replicas."""
        return self.extended._experimental_distribute_dataset(dataset)

    def experimental_distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any]) -> Any:
        """The data sets that a function makes for each pipeline."""
        return self.extended._experimental_distribute_datasets_from_function(dataset_fn)

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """A data set of the rows of arrays."""
        return self.extended.experimental_make_numpy_dataset(numpy_input, session)

    def make_dataset_iterator(self, dataset: Any) -> Any:
        """The elements of a data set, from when `initialize` has run."""
        return self.extended._make_dataset_iterator(dataset)

    def make_input_fn_iterator(self, input_fn: Callable[[InputContext], Any], replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER) -> Any:
        """The elements of the data set that a function makes for each pipeline, from when `initialize` has run."""
        with self.scope():
            return self.extended._make_input_fn_iterator(input_fn, replication_mode)

    def configure(self, session_config: Any = None, cluster_spec: Any = None, task_type: Optional[str] = None, task_id: Optional[int] = None) -> None:
        """Tells the strategy of a session's settings and of the cluster."""
        self.extended._configure(session_config, cluster_spec, task_type, task_id)

    def update_config_proto(self, config_proto: Any) -> Any:
        """The settings as the strategy wants them."""
        return self.extended._update_config_proto(config_proto)

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A context in which variables are made on the device of another."""
        return self.extended.colocate_vars_with(colocate_with_variable)

    def group(self, value: Any, name: Optional[str] = None) -> Any:
        """An operation that runs what makes a value in all replicas."""
        return self.extended._group(value, name)

    def __copy__(self) -> Any:
        raise at_user_line(RuntimeError("Must only deepcopy DistributionStrategy."))


class ReplicaContext:
    """What a replica knows of itself: a context in which this is in that replica."""

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: Any) -> None:
        self._strategy, self._id = strategy, replica_id_in_sync_group
        self._mode = _Mode(strategy, None, self)
        self._entered: List[Any] = []

    def __enter__(self) -> "ReplicaContext":
        entered = _entered(self._mode)
        entered.__enter__()
        self._entered.append(entered)
        return self

    def __exit__(self, *details: Any) -> None:
        self._entered.pop().__exit__(*details)

    strategy = property(lambda self: self._strategy, doc="The strategy.")
    num_replicas_in_sync = property(lambda self: self._strategy.num_replicas_in_sync, doc="How many replicas train in step.")
    distribution_strategy, num_towers = strategy, num_replicas_in_sync
    is_single_tower = property(lambda self: self.num_towers == 1, doc="Whether there is one replica.")

    @property
    def tower_id(self) -> int:
        """Which of the replicas this is, from 0, as a number: there is one."""
        require_replica_context(self)
        return 0

    @property
    def device(self) -> str:
        """The device of the replica."""
        return self.devices[0]

    @property
    def replica_id_in_sync_group(self) -> Any:
        """Which of the replicas this is, from 0."""
        require_replica_context(self)
        return self._id

    @property
    def devices(self) -> Tuple[str, ...]:
        """The devices of the replica."""
        require_replica_context(self)
        return (current(),)

    def merge_call(self, merge_fn: _Function, args: Any = (), kwargs: Any = None) -> Any:
        """What a function makes of the strategy and the values of all replicas: across them."""
        require_replica_context(self)
        with _entered(_Mode(self._strategy, self._strategy, None)):
            return merge_fn(self._strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sums or means of the values of all replicas, of each tensor in a structure."""
        values = [v if hasattr(v, "op") else convert_to_tensor(v) for v in nest.flatten(value)]

        def merged(strategy: Strategy, *given: Any) -> Any:
            return strategy.extended.batch_reduce_to(reduce_op, [(v, v) for v in given])

        return nest.pack_sequence_as(value, self.merge_call(merged, values))


class _DefaultExtended(StrategyExtended):
    def _scope(self, strategy: Strategy) -> Any:
        return _DefaultScope()

    def _replica(self) -> ReplicaContext:
        return ReplicaContext(self._strategy, 0)


class _DefaultDistributionStrategy(Strategy):
    """The strategy of programs that choose none."""

    def __init__(self) -> None:
        super().__init__(_DefaultExtended(self))


_default = _DefaultDistributionStrategy()
_default_replica = ReplicaContext(_default, 0)
_default_mode = _Mode(_default, None, _default_replica)
