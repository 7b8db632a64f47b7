# SPDX-License-Identifier: Apache-2.0
"""Variables: tensors that keep their value from step to step."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Optional

import numpy as np

from millrace.framework import convert, dtypes, replication, session, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.library_names import prepend_name_scope, register_dense_tensor_like_type, strip_name_scope
from millrace.framework.graph import GraphKeys, Operation, Tensor, add_to_collections, get_collection, get_default_graph, init_scope, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, operators
from millrace.ops.variable_scatter import ScatteredRows

if TYPE_CHECKING:
    from millrace.framework.object_identity import Reference

_resources_by_default = False
tapes: List[Any] = []  # the GradientTapes that record now


def accessed(variable: Any) -> None:
    """Tells the tapes that record that a variable is read."""
    for tape in tapes:
        tape.note(variable)


def enable_resource_variables() -> None:
    """Variables are resource variables from now on, unless use_resource=False."""
    global _resources_by_default
    _resources_by_default = True


def disable_resource_variables() -> None:
    """Variables are references from now on, unless use_resource=True."""
    global _resources_by_default
    _resources_by_default = False


def resource_variables_enabled() -> bool:
    """Whether variables are resource variables where nothing is said."""
    return _resources_by_default


class _ByCreators(type):
    """Lets the functions of variable_creator_scope make variables."""

    @property
    def __signature__(cls) -> inspect.Signature:  # what help shows
        made = inspect.signature(cls.__init__)  # type: ignore[misc]
        return made.replace(parameters=list(made.parameters.values())[1:])

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        creators = get_default_graph()._variable_creator_stack
        make: Any = super().__call__
        if not creators or kwargs.get("variable_def") is not None or not cls._by_creators:  # type: ignore[attr-defined]
            return make(*args, **kwargs)
        given = inspect.signature(cls.__init__).bind(None, *args, **kwargs)  # type: ignore[misc]
        given.apply_defaults()
        for creator in creators:  # the innermost scope is asked first, and calls the others
            make = functools.partial(creator, make)
        return make(**dict(list(given.arguments.items())[1:]))


@contextlib.contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """A context in which variable_creator(next_creator, **kwargs) makes the variables: it calls next_creator with arguments of tf.Variable, or
    returns something else."""
    graph: Any = get_default_graph()
    outer, mine = graph._variable_creator_stack, [*graph._variable_creator_stack, variable_creator]
    graph._variable_creator_stack = mine
    try:
        yield
    finally:
        if graph._variable_creator_stack is not mine:
            raise at_user_line(RuntimeError("Exiting variable_creator_scope without proper nesting of the scopes that were entered in it."))
        graph._variable_creator_stack = outer


def _of_handles(attribute: str, doc: str) -> property:
    """What only resource variables have. AttributeError of another one: programs ask hasattr which kind it is."""

    def get(self: Any) -> Any:
        if not self._is_resource:
            raise AttributeError("the variable %s has a reference, and no handle: what resource variables have is not there" % self.name)
        return getattr(self, attribute)

    return property(get, doc=doc)


class Variable(ScatteredRows, metaclass=_ByCreators):
    """A variable. Its value is `initial_value` after its `initializer` has run."""

    _snapshot: Any
    _initial_value: Any
    _distribute_strategy: Any = None  # in whose scope it was made
    _by_creators = True  # the functions of variable_creator_scope are asked

    class SaveSliceInfo:
        """Which part of a partitioned variable this one is."""

        def __init__(
            self,
            full_name: Optional[str] = None,
            full_shape: Any = None,
            var_offset: Any = None,
            var_shape: Any = None,
            save_slice_info_def: Any = None,
            import_scope: Optional[str] = None,
        ) -> None:
            if save_slice_info_def is not None:
                full_name = prepend_name_scope(save_slice_info_def.full_name, import_scope or None)
                full_shape, var_offset, var_shape = (
                    list(dims) for dims in (save_slice_info_def.full_shape, save_slice_info_def.var_offset, save_slice_info_def.var_shape)
                )
            self.full_name, self.full_shape, self.var_offset, self.var_shape = full_name, full_shape, var_offset, var_shape

        @property
        def spec(self) -> str:
            """The part as checkpoints write it."""
            return "%s %s" % (" ".join("%d" % d for d in self.full_shape), ":".join("%d,%d" % (o, s) for o, s in zip(self.var_offset, self.var_shape)))

        def to_proto(self, export_scope: Optional[str] = None) -> Any:
            """The SaveSliceInfoDef; None when the whole lies outside of the scope."""
            if export_scope and not self.full_name.startswith(export_scope):  # type: ignore[union-attr]
                return None
            from millrace.protos import definitions

            return definitions.SaveSliceInfoDef(
                full_name=strip_name_scope(self.full_name, export_scope),  # type: ignore[arg-type]
                full_shape=list(self.full_shape),
                var_offset=list(self.var_offset),
                var_shape=list(self.var_shape),
            )

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Any = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: Optional[str] = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: Optional[str] = None,
        constraint: Any = None,
        use_resource: Optional[bool] = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        trainable = replication.trainable(trainable, synchronization, aggregation)
        self._synchronization = synchronization or replication.VariableSynchronization.AUTO
        self._aggregation = aggregation or replication.VariableAggregation.NONE
        trainable = True if trainable is None else trainable
        if constraint is not None and not callable(constraint):
            raise at_user_line(ValueError("The `constraint` argument must be a callable."))
        self._constraint = constraint
        self._save_slice_info: Any = None
        self._trainable = bool(trainable)
        self._initialized_value: Any = None
        if variable_def is not None:
            if initial_value is not None:
                raise at_user_line(ValueError("variable_def and initial_value are mutually exclusive."))
            self._from_def(variable_def, import_scope)
            return
        if initial_value is None:
            raise at_user_line(ValueError("initial_value must be specified."))
        if collections is None:
            collections = [GraphKeys.GLOBAL_VARIABLES]
        if not isinstance(collections, (list, tuple, set)):
            raise at_user_line(
                ValueError("collections argument to Variable constructor must be a list, tuple, or set. Got %s of type %s" % (collections, type(collections)))
            )
        collections = list(collections)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
            collections.append(GraphKeys.TRAINABLE_VARIABLES)
        if isinstance(initial_value, Tensor) and initial_value.op._get_control_flow_context() is not None:
            raise at_user_line(
                ValueError(
                    "Initializer for variable %s is from inside a control-flow construct, such as a loop or conditional. "
                    "When creating a variable inside a loop or conditional, use a lambda as the initializer." % (name or "Variable")
                )
            )
        with init_scope():
            self._build(initial_value, validate_shape, name, dtype, expected_shape, use_resource, shape, caching_device)
        add_to_collections(collections, self)

    _is_resource = False
    _synchronization, _aggregation = replication.VariableSynchronization.AUTO, replication.VariableAggregation.NONE
    _cached: Any = None  # its value on another device
    _first_value: Any = None  # the initial value, also where the variables that it reads have none

    def _build(
        self,
        initial_value: Any,
        validate_shape: bool,
        name: Optional[str],
        dtype: Any,
        expected_shape: Any,
        use_resource: Optional[bool],
        shape: Any,
        caching_device: Any,
    ) -> None:
        graph = get_default_graph()
        made_by_function = callable(initial_value) and not isinstance(initial_value, Variable)
        with name_scope(name, "Variable", [] if made_by_function else [initial_value]) as scope:
            op_name = scope[:-1]
            self._is_resource = resource_variables_enabled() if use_resource is None else bool(use_resource)
            if made_by_function:
                with graph._attr_scope({"_class": _beside(op_name)}), graph.name_scope("Initializer"), graph.device(None):
                    self._initial_value = convert_to_tensor(initial_value(), dtype, "initial_value")
            else:
                self._initial_value = convert_to_tensor(initial_value, dtype, "initial_value")
            static = self._initial_value.get_shape() if validate_shape or self._is_resource else tensor_shape.unknown_shape()
            if validate_shape and not self._is_resource and not static.is_fully_defined():
                raise at_user_line(ValueError("initial_value must have a shape specified: %s" % self._initial_value))
            if shape is not None:  # that of all values that it may take
                static = tensor_shape.as_shape(shape)
                if not static.is_compatible_with(self._initial_value.get_shape()):
                    raise at_user_line(
                        ValueError(
                            "The initial value's shape (%s) is not compatible with the explicitly supplied `shape` argument (%s)."
                            % (self._initial_value.get_shape(), static)
                        )
                    )
            base = self._initial_value.dtype.base_dtype
            first = self._first_value = _of_first_values(self._initial_value)
            if self._is_resource:
                self._variable = gen_ops.var_handle_op(dtype=base, shape=static, shared_name=op_name, name=scope)
                self._dtype, self._static_shape = base, static
                with graph.colocate_with(self._variable.op):
                    self._initializer_op = gen_ops.assign_variable_op(self._variable, first, name="Assign")
                    self._snapshot = gen_ops.read_variable_op(self._variable, base, name="Read/ReadVariableOp")
                    self._is_initialized_op = gen_ops.var_is_initialized_op(self._variable, name="IsInitialized/VarIsInitializedOp")
                if caching_device is not None:
                    with graph.device(caching_device):
                        self._cached = gen_ops.identity(self._snapshot, name="Read/Identity")
            else:
                self._variable = gen_ops.variable_v2(static, base, name=scope)
                with graph.colocate_with(self._variable.op):
                    self._initializer_op = gen_ops.assign(self._variable, first, validate_shape=validate_shape, name="Assign").op
                with graph.colocate_with(self._variable.op) if caching_device is None else graph.device(caching_device):
                    self._snapshot = gen_ops.identity(self._variable, name="read")

    @classmethod
    def _of_op(cls, operation: Operation) -> "Variable":
        """The variable of a node that the library, or an import, has made."""
        made = cls.__new__(cls)
        graph, name = operation.graph, operation.name
        made._constraint = made._save_slice_info = made._initialized_value = None
        made._trainable = False
        made._variable = operation.outputs[0]
        made._is_resource = operation.type == "VarHandleOp"
        made._initializer_op = graph._find(name + "/Assign")
        read = graph._find(name + "/read") or graph._find(name + "/Read/ReadVariableOp")
        made._snapshot = read.outputs[0] if read is not None else gen_ops.identity(made._variable, name=name + "/read/")
        made._initial_value = made._initializer_op.inputs[1] if made._initializer_op is not None else None
        if made._is_resource:
            made._dtype = operation.get_attr("dtype")
            made._static_shape = tensor_shape.TensorShape(operation.get_attr("shape"))
        return made

    def _from_def(self, variable_def: Any, import_scope: Optional[str]) -> None:
        graph = get_default_graph()
        prefix = import_scope + "/" if import_scope else ""
        self._variable = graph.as_graph_element(prefix + variable_def.variable_name)
        self._initializer_op = graph.as_graph_element(prefix + variable_def.initializer_name)
        self._snapshot = graph.as_graph_element(prefix + variable_def.snapshot_name)
        self._initial_value = graph.as_graph_element(prefix + variable_def.initial_value_name) if variable_def.initial_value_name else None
        self._is_resource = bool(variable_def.is_resource)
        self._trainable = bool(variable_def.trainable)
        self._synchronization = replication.VariableSynchronization(variable_def.synchronization)
        self._aggregation = replication.VariableAggregation(variable_def.aggregation)
        if variable_def.HasField("save_slice_info_def"):
            self._save_slice_info = Variable.SaveSliceInfo(save_slice_info_def=variable_def.save_slice_info_def, import_scope=import_scope)
        if self._is_resource:
            self._dtype = self._variable.op.get_attr("dtype")
            self._static_shape = tensor_shape.TensorShape(self._variable.op.get_attr("shape"))

    # ---- what it is ----

    name = property(lambda self: self._variable.name, doc="Its name, with :0.")
    op = property(lambda self: self._variable.op, doc="Its operation.")
    graph = property(lambda self: self._variable.graph, doc="Its graph.")
    device = property(lambda self: self._variable.device, doc="The device asked for.")
    trainable = property(lambda self: self._trainable, doc="Whether optimizers change it unless told otherwise.")
    constraint = property(lambda self: self._constraint, doc="What its value goes through after each update, or None.")
    initializer = property(lambda self: self._initializer_op, doc="The operation that gives it its first value.")
    create = _of_handles("_initializer_op", "The operation that gives it its first value: the name that resources have for it.")
    initial_value = property(lambda self: self._initial_value, doc="The tensor of its first value.")
    handle = _of_handles("_variable", "The handle of a resource variable; others have none.")
    _handle = handle
    _graph_element = _of_handles("_snapshot", "Its value as it was read where the variable was made.")
    _cached_value = _of_handles("_cached", "Its value on the caching device, or None.")
    shape = property(lambda self: self.get_shape(), doc="What is known of its shape.")

    @property
    def dtype(self) -> dtypes.DType:
        """The type of its elements; a reference type unless it is a resource variable."""
        return self._dtype if self._is_resource else self._variable.dtype

    @property
    def _shared_name(self) -> str:
        return str(self.op.name)

    def get_shape(self) -> tensor_shape.TensorShape:
        """What is known of its shape."""
        return self._static_shape if self._is_resource else self._variable.get_shape()

    def set_shape(self, shape: Any) -> None:
        """Adds to what is known of its shape."""
        self._snapshot.set_shape(shape)
        if not self._is_resource:
            self._variable.set_shape(shape)

    # ---- its value ----

    def value(self) -> Tensor:
        """The tensor of its value; of a resource variable a new one, read where it is used: in a loop in each iteration."""
        accessed(self)
        if self._cached is not None:
            return self._cached
        return self._read() if self._is_resource else self._snapshot

    def read_value(self) -> Tensor:
        """A new tensor of its value at the time when that is run."""
        accessed(self)
        if self._is_resource:
            with name_scope("Read"):
                value = self._read()
            return array_ops.identity(value)
        return array_ops.identity(self._variable, "read")

    def _read(self) -> Tensor:
        with self.graph.colocate_with(None, True), self.graph.device(self._variable.device):
            return self._shaped(gen_ops.read_variable_op(self._variable, self._dtype), self.get_shape())

    def _shaped(self, value: Tensor, shape: Any) -> Tensor:
        """A value, in a function with its shape: what stands there for the handle does not say it."""
        if value.graph is not self._variable.graph:
            value.set_shape(shape)
        return value

    def _ref(self) -> Tensor:
        return self._variable

    def _as_graph_element(self) -> Tensor:
        return self._snapshot

    def _AsTensor(self) -> Tensor:
        return self.value()

    def experimental_ref(self) -> "Reference":
        """What stands for it in sets and dictionaries."""
        from millrace.framework.object_identity import Reference

        return Reference(self)

    def eval(self, session: Any = None) -> Any:
        """Its value, by the default session or the one given."""
        return self._snapshot.eval(session=session)

    def initialized_value(self) -> Tensor:
        """Its value, or its first value where it has none yet."""
        with init_scope():
            return control_flow_ops.cond(
                is_variable_initialized(self), self.read_value, lambda: self.initial_value if self._first_value is None else self._first_value
            )

    def is_initialized(self, name: Optional[str] = None) -> Tensor:
        """Whether it has a value."""
        return is_variable_initialized(self, name)

    def load(self, value: Any, session: Any = None) -> None:
        """Sets its value in a session."""
        from millrace.framework.default_session import get_default_session

        active = session or get_default_session()
        if active is None:
            raise at_user_line(ValueError("Either session argument should be provided or default session should be established"))
        active.run(self._initializer_op, {self._initializer_op.inputs[1]: value})

    def assign(self, value: Any, use_locking: bool = False, name: Optional[str] = None, read_value: bool = True) -> Any:
        """An operation that sets it; its output is the new value."""
        if self._is_resource:
            return self._updated(gen_ops.assign_variable_op, value, name, read_value)
        result = gen_ops.assign(self._variable, value, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def _assign_slice(self, begin: Any, end: Any, strides: Any, value: Any, masks: Any, name: Optional[str]) -> Any:
        """An operation that sets a part of it; its output is the new value of the whole."""
        if self._is_resource:
            value = convert_to_tensor(value, self._dtype)
            return self._after(gen_ops.resource_strided_slice_assign(self._variable, begin, end, strides, value, **masks, name=name), True)
        return gen_ops.strided_slice_assign(self._variable, begin, end, strides, value, **masks, name=name)

    def assign_add(self, delta: Any, use_locking: bool = False, name: Optional[str] = None, read_value: bool = True) -> Any:
        """An operation that adds to it."""
        if self._is_resource:
            return self._updated(gen_ops.assign_add_variable_op, delta, name, read_value)
        result = gen_ops.assign_add(self._variable, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign_sub(self, delta: Any, use_locking: bool = False, name: Optional[str] = None, read_value: bool = True) -> Any:
        """An operation that subtracts from it."""
        if self._is_resource:
            return self._updated(gen_ops.assign_sub_variable_op, delta, name, read_value)
        result = gen_ops.assign_sub(self._variable, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def _updated(self, update: Callable[..., Operation], value: Any, name: Optional[str], read: bool) -> Any:
        """The update by a value, in the variable's graph, or in the function that is being built."""
        with contextlib.nullcontext() if get_default_graph().building_function else self.graph.as_default():
            return self._after(update(self._variable, convert_to_tensor(value, self._dtype), name=name), read)

    def _after(self, operation: Operation, read: bool) -> Any:
        if not read:
            return operation
        with operation.graph.control_dependencies([operation]):
            return self._shaped(gen_ops.read_variable_op(self._variable, self._dtype), self.get_shape())

    synchronization = property(lambda self: self._synchronization, doc="How copies of it are kept alike: there is one.")
    aggregation = property(lambda self: self._aggregation, doc="How values of copies of it become one: there is one.")

    def count_up_to(self, limit: int) -> Tensor:
        """An operation that counts it up; OutOfRangeError at the limit."""
        return count_up_to(self, limit)

    def sparse_read(self, indices: Any, name: Optional[str] = None) -> Tensor:
        """The rows at some indices."""
        accessed(self)
        if self._is_resource:
            rows = gen_ops.resource_gather(self._variable, indices, self._dtype, name=name or "Gather")
            return self._shaped(gen_ops.identity(rows), rows.op.inputs[1].get_shape().concatenate(self.get_shape()[1:]))
        return gen_ops.gather_v2(self._snapshot, indices, 0, name=name)

    def to_proto(self, export_scope: Optional[str] = None) -> Any:
        """A VariableDef; None when it lies outside of the scope."""
        if export_scope and not self.name.startswith(export_scope):
            return None
        from millrace.protos import definitions

        made = definitions.VariableDef(
            variable_name=strip_name_scope(self._variable.name, export_scope),
            initializer_name=strip_name_scope(self._initializer_op.name, export_scope),
            snapshot_name=strip_name_scope(self._snapshot.name, export_scope),
            is_resource=self._is_resource,
            trainable=self._trainable,
            synchronization=self._synchronization.value,
            aggregation=self._aggregation.value,
        )
        if self._initial_value is not None:
            made.initial_value_name = strip_name_scope(self._initial_value.name, export_scope)
        if self._save_slice_info is not None:
            made.save_slice_info_def.CopyFrom(self._save_slice_info.to_proto(export_scope))
        return made

    @staticmethod
    def from_proto(variable_def: Any, import_scope: Optional[str] = None) -> "Variable":
        """The variable that a VariableDef names."""
        return Variable(variable_def=variable_def, import_scope=import_scope)

    def _set_save_slice_info(self, info: Any) -> None:
        self._save_slice_info = info

    def _get_save_slice_info(self) -> Any:
        return self._save_slice_info

    def __iter__(self) -> Any:
        raise at_user_line(TypeError("'Variable' object is not iterable."))

    __array_priority__ = 100
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return "<tf.Variable '%s' shape=%s dtype=%s>" % (self.name, self.get_shape(), self.dtype.name)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        import html

        return "<code>%s</code> %s %s <small>%s%s</small>" % (
            html.escape(self.name),
            self.dtype.base_dtype.name,
            self.get_shape(),
            "trainable variable " if self.trainable else "variable ",
            html.escape(self.op._location),
        )


register_dense_tensor_like_type(Variable)


_VARIABLE_OPS, _ASKS = ("Variable", "VariableV2", "VarHandleOp"), ("IsVariableInitialized", "VarIsInitializedOp")
_FLOW_OPS = ("Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "LoopCond")
_MOST_BEFORE = 1000


def _before(value: Tensor) -> Optional[List[Operation]]:
    """The operations that a value comes from, each behind its inputs. None where control flow is among them, no variable, or very many."""
    order: List[Operation] = []
    seen, found, waiting = {value.op}, False, [(value.op, False)]
    while waiting:
        op, is_done = waiting.pop()
        if is_done:
            order.append(op)
            continue
        if op.type in _FLOW_OPS or len(seen) > _MOST_BEFORE:
            return None
        found |= op.type in _VARIABLE_OPS
        waiting.append((op, True))
        for t in op.inputs if op.type not in _ASKS else ():
            if t.op not in seen:
                seen.add(t.op)
                waiting.append((t.op, False))
    return order if found else None


def _beside(name: str) -> Any:
    """The attribute of what is placed together with an operation that will be called so."""
    from millrace.protos.definitions import AttrValue

    return AttrValue(list=AttrValue.ListValue(s=[b"loc:@" + name.encode()]))


def _of_first_values(value: Tensor) -> Tensor:
    """A value that may be taken before the variables which it reads have theirs: it takes their first values then."""
    order = _before(value)
    if order is None:
        return value
    known = {v.op: v for v in [*global_variables(), *local_variables()]}
    made: dict[Tensor, Tensor] = {}
    for op in order:
        read = op.inputs[0].op if op.type == "ReadVariableOp" else op
        if read.type in _VARIABLE_OPS:
            if read in known and (op.type != "VarHandleOp"):
                made[op.outputs[0]] = known[read].initialized_value()
            continue
        if op.type in _ASKS or not any(t in made for t in op.inputs):
            continue
        copy = op.graph.create_op(op.type, [made.get(t, t) for t in op.inputs], name="first_" + op.name.rsplit("/", 1)[-1], attrs=dict(op.node_def.attr))
        made.update(zip(op.outputs, copy.outputs))
    return made.get(value, value)


RefVariable = Variable
operators.forward_to_tensor(Variable)


def _slice_var(variable: Variable, spec: Any) -> Tensor:
    return array_ops.slice_helper(variable.value(), spec, variable)


setattr(Variable, "__getitem__", _slice_var)


class PartitionedVariable:
    """Several variables that are one, split along an axis."""

    def __init__(self, name: str, shape: Any, dtype: Any, variable_list: List[Variable], partitions: Any) -> None:
        if not isinstance(variable_list, (list, tuple)):
            raise at_user_line(TypeError("variable_list is not a list or tuple: %s" % (variable_list,)))
        if not isinstance(partitions, (list, tuple)):
            raise at_user_line(TypeError("partitions is not a list or tuple: %s" % (partitions,)))
        if not all(p >= 1 for p in partitions):
            raise at_user_line(ValueError("partition values must be positive: %s" % (partitions,)))
        if not variable_list:
            raise at_user_line(ValueError("variable_list may not be empty"))
        if any(v._get_save_slice_info() is None for v in variable_list):
            raise at_user_line(ValueError("All variables must have a save_slice_info available: %s" % [v.name for v in variable_list]))
        whole = tensor_shape.as_shape(shape)
        if not all(whole.is_compatible_with(v._get_save_slice_info().full_shape) for v in variable_list):
            raise at_user_line(
                ValueError(
                    "All variables' full shapes must match shape: %s; but full shapes were: %s"
                    % (whole, [v._get_save_slice_info().full_shape for v in variable_list])
                )
            )
        self._name, self._shape, self._dtype, self._partitions = name, whole, dtypes.as_dtype(dtype), list(partitions)
        self._list = sorted(variable_list, key=lambda v: list(v._get_save_slice_info().var_offset))

    def __repr__(self) -> str:
        return "<tf.PartitionedVariable '%s' shape=%s dtype=%s, in %d parts>" % (self._name, self._shape, self._dtype.name, len(self._list))

    name = property(lambda self: self._name, doc="The name of the whole.")
    dtype = property(lambda self: self._dtype, doc="The type of its elements.")
    shape = property(lambda self: self._shape, doc="The shape of the whole.")
    graph = property(lambda self: self._list[0].graph, doc="The graph of its parts.")

    def get_shape(self) -> Any:
        """The shape of the whole."""
        return self._shape

    @property
    def _axis(self) -> int:
        return next((i for i, p in enumerate(self._partitions) if p > 1), 0)

    def _concat(self) -> Tensor:
        """The parts joined, as a tensor that has the name of the whole."""
        if len(self._list) == 1:
            with name_scope(None):
                return array_ops.identity(self._list[0], self._name)
        with name_scope(self._name + "/ConcatPartitions/"):
            whole = array_ops.concat([v.value() for v in self._list], self._axis)
        with name_scope(None):
            return array_ops.identity(whole, self._name)

    def as_tensor(self) -> Tensor:
        """The parts joined; as a variable's value, whatever else has to be done before."""
        with self.graph.control_dependencies(None):
            return self._concat()

    def __iter__(self) -> Any:
        return iter(self._list)

    def __len__(self) -> int:
        return len(self._list)

    def to_proto(self, export_scope: Optional[str] = None) -> Any:
        """There is none: its parts have VariableDefs."""
        raise at_user_line(
            NotImplementedError("to_proto() is not supported for PartitionedVariable; write its parts" + (" (scope %s)" % export_scope if export_scope else ""))
        )

    def _partition_axes(self) -> List[int]:
        return [i for i, p in enumerate(self._partitions) if p > 1] or [0]

    def _get_partitions(self) -> List[int]:
        return self._partitions

    def _get_variable_list(self) -> List[Variable]:
        return self._list

    def assign(self, value: Any, use_locking: bool = False, name: Optional[str] = None, read_value: bool = True) -> Any:
        """Sets all parts from a value of the shape of the whole; the parts' operations."""
        return self._each("assign", value, use_locking, name, read_value)

    def assign_add(self, value: Any, use_locking: bool = False, name: Optional[str] = None, read_value: bool = True) -> Any:
        """Adds to all parts; the parts' operations."""
        return self._each("assign_add", value, use_locking, name, read_value)

    def assign_sub(self, value: Any, use_locking: bool = False, name: Optional[str] = None, read_value: bool = True) -> Any:
        """Subtracts from all parts; the parts' operations."""
        return self._each("assign_sub", value, use_locking, name, read_value)

    def _each(self, method: str, value: Any, use_locking: bool, name: Optional[str], read_value: bool) -> Any:
        if isinstance(value, PartitionedVariable):
            parts: Any = [v.value() for v in value]
        elif self._is_of_parts(value):
            parts = value
        else:
            parts = array_ops.split(value, [int(v.get_shape().as_list()[self._axis]) for v in self._list], axis=self._axis)  # type: ignore[arg-type]
        with name_scope(name, "Partitioned" + method.title().replace("_", "")):
            return [getattr(v, method)(part, use_locking, None, read_value) for v, part in zip(self._list, parts)]

    def _is_of_parts(self, value: Any) -> bool:
        """Whether it is a list with a value for each part, as updates return."""
        if not isinstance(value, (list, tuple)) or len(value) != len(self._list):
            return False
        parts = [convert_to_tensor(part, self._dtype.base_dtype) for part in value]
        return all(part.get_shape().is_compatible_with(v.get_shape()) for part, v in zip(parts, self._list))

    def _as_graph_element(self) -> Tensor:
        return self.as_tensor()


def _convert(value: Variable, dtype: Any = None, name: Optional[str] = None, as_ref: bool = False) -> Any:
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype.base_dtype):
        raise at_user_line(
            ValueError("Incompatible type conversion requested to type '%s' for variable of type '%s'" % (dtypes.as_dtype(dtype).name, value.dtype.name))
        )
    return value._ref() if as_ref or value._is_resource and dtype == dtypes.resource else value.value()


convert.register_tensor_conversion_function(Variable, _convert)


# ---- collections of variables ----


def global_variables(scope: Optional[str] = None) -> List[Variable]:
    """The variables that are shared by all steps."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: Optional[str] = None) -> List[Variable]:
    """The variables of this process alone."""
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: Optional[str] = None) -> List[Variable]:
    """The variables that make up the model."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: Optional[str] = None) -> List[Variable]:
    """The variables that optimizers change."""
    return get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: Optional[str] = None) -> List[Variable]:
    """The variables of which there are moving averages."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


all_variables = global_variables


def variables_initializer(var_list: Any, name: str = "init") -> Operation:
    """An operation that gives variables their first values."""
    if var_list:
        return control_flow_ops.group(*[v.initializer for v in var_list], name=name)
    return control_flow_ops.no_op(name=name)


def global_variables_initializer() -> Operation:
    """variables_initializer of all global variables."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """variables_initializer of all local variables."""
    return variables_initializer(local_variables(), "init")


def initialize_all_variables() -> Operation:
    """variables_initializer of all variables, as programs of 0.x call it: what counts epochs was an ordinary variable then."""
    return variables_initializer(list(dict.fromkeys([*global_variables(), *local_variables()])))


initialize_variables = variables_initializer
initialize_local_variables = local_variables_initializer


def is_variable_initialized(variable: Any, name: Optional[str] = None) -> Tensor:
    """Whether a variable has a value."""
    if getattr(variable, "_is_resource", False):
        return gen_ops.var_is_initialized_op(variable.handle, name=name)
    return gen_ops.is_variable_initialized(variable._ref() if isinstance(variable, Variable) else variable, name=name)


def report_uninitialized_variables(var_list: Any = None, name: str = "report_uninitialized_variables") -> Tensor:
    """The names of the variables that have no value."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    with name_scope(name):
        if not var_list:
            return convert_to_tensor(np.array([], dtype=object), dtypes.string)
        missing = gen_ops.logical_not(array_ops.stack([is_variable_initialized(v) for v in var_list]))
        return array_ops.boolean_mask(convert_to_tensor([v.op.name for v in var_list]), missing)


def assert_variables_initialized(var_list: Any = None) -> Any:
    """The ranks of variables, a tensor that fails when one of them has no value; None where there are no variables."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        return None
    ranks = [gen_ops.rank(v.read_value() if isinstance(v, Variable) else v) for v in var_list]
    return ranks[0] if len(ranks) == 1 else array_ops.stack(ranks)


# ---- functions of TensorFlow's state_ops ----


def assign(ref: Any, value: Any = None, validate_shape: Optional[bool] = None, use_locking: Optional[bool] = None, name: Optional[str] = None) -> Any:
    """Sets a variable, or a part of one (v[1:3]), to a value; the variable after that."""
    if value is None:
        raise at_user_line(TypeError("assign() needs the variable and the value"))
    if isinstance(ref, Variable) and ref._is_resource:
        return ref.assign(value, name=name)
    if isinstance(ref, Tensor) and "assign" in vars(ref):  # a part of a variable
        return ref.assign(value, name)
    given = {"validate_shape": validate_shape, "use_locking": use_locking}
    return gen_ops.assign(ref, value, name=name, **{k: v for k, v in given.items() if v is not None})


def _changed(method: str, op: Callable[..., Any], ref: Any, value: Any, use_locking: Optional[bool], name: Optional[str]) -> Any:
    if isinstance(ref, Variable) and ref._is_resource:
        return getattr(ref, method)(value, name=name)
    if isinstance(ref, Tensor) and not ref.dtype._is_ref_dtype:
        raise at_user_line(AttributeError("%s is no variable: 'Tensor' object has no attribute '%s'" % (ref, method)))
    return op(ref, value, name=name, **({} if use_locking is None else {"use_locking": use_locking}))


def assign_add(ref: Any, value: Any, use_locking: Optional[bool] = None, name: Optional[str] = None) -> Any:
    """Adds a value to a variable; the variable after that."""
    return _changed("assign_add", gen_ops.assign_add, ref, value, use_locking, name)


def assign_sub(ref: Any, value: Any, use_locking: Optional[bool] = None, name: Optional[str] = None) -> Any:
    """Takes a value from a variable; the variable after that."""
    return _changed("assign_sub", gen_ops.assign_sub, ref, value, use_locking, name)


def _scatter(name: str) -> Any:
    def function(ref: Any, indices: Any, updates: Any, use_locking: Optional[bool] = None, name: Optional[str] = None) -> Any:
        if isinstance(ref, Variable) and ref._is_resource:
            return ref._after(getattr(gen_ops, "resource_" + op_name)(ref.handle, indices, convert_to_tensor(updates, ref.dtype), name=name), True)
        return getattr(gen_ops, op_name)(ref, indices, updates, use_locking=use_locking, name=name)

    op_name = name
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Changes rows of a variable; its output is the variable."
    return function


scatter_update, scatter_add, scatter_sub, scatter_mul = (_scatter("scatter_" + n) for n in ("update", "add", "sub", "mul"))
scatter_div, scatter_min, scatter_max = (_scatter("scatter_" + n) for n in ("div", "min", "max"))
scatter_nd_update, scatter_nd_add, scatter_nd_sub = (_scatter("scatter_nd_" + n) for n in ("update", "add", "sub"))


def count_up_to(ref: Any, limit: int, name: Optional[str] = None) -> Tensor:
    """Counts a variable up; OutOfRangeError at the limit."""
    if getattr(ref, "_is_resource", False):
        return gen_ops.resource_count_up_to(ref.handle, limit, T=ref.dtype, name=name)
    return gen_ops.count_up_to(ref, limit, name=name)


session.register_session_run_conversion_functions(PartitionedVariable, lambda v: ([v.as_tensor()], lambda x: x[0]))
