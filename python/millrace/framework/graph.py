# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Graph, and the state in which graphs are built: scopes, devices, control dependencies."""

from __future__ import annotations

import contextlib
import re
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import millrace._core as _core
from millrace.framework.default_session import leave_interactive
from millrace.framework.device import DeviceSpec, merge_device
from millrace.framework.dtypes import as_dtype, resource
from millrace.framework.errors import at_user_line
from millrace.framework.graph_elements import Operation, Tensor
from millrace.framework.places import Places
from millrace.framework.tensor_shape import TensorShape


class GraphKeys:
    """Names of the collections that the library itself fills and reads."""

    GLOBAL_VARIABLES = "variables"
    VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    CONCATENATED_VARIABLES = "concatenated_variables"
    SAVERS = "savers"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    SAVEABLE_OBJECTS = "saveable_objects"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    TRAIN_OP = "train_op"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    GLOBAL_STEP = "global_step"
    EVAL_STEP = "eval_step"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    _SUMMARY_COLLECTION = "_SUMMARY_V2"
    _VARIABLE_COLLECTIONS = [GLOBAL_VARIABLES, LOCAL_VARIABLES, METRIC_VARIABLES, MODEL_VARIABLES, TRAINABLE_VARIABLES, MOVING_AVERAGE_VARIABLES]


_VALID_SCOPE = re.compile(r"^[A-Za-z0-9_.\-/]*$")
_VALID_OP_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\-/]*$")


DeviceFunction = Callable[[Operation], Any]


class Graph(_core.Graph):
    """A dataflow graph. Ops are added to the graph that is default at that time (see as_default)."""

    _variable_creator_stack: List[Any] = []  # the functions of tf.variable_creator_scope: lists that nobody changes

    def __init__(self) -> None:
        super().__init__()
        self._collections: Dict[Any, List[Any]] = {}
        self._device_stack: List[Union[str, DeviceFunction]] = []
        self._places = {"device": Places(), "colocation": Places()}  # where the program says where operations are to lie
        self._seed: Optional[int] = None
        self._last_seed = 0
        self._lock = threading.RLock()
        self._unfeedable: set[Any] = set()
        self._unfetchable: set[Any] = set()
        self._functions: Dict[str, Any] = {}
        self._py_functions: List[Any] = []  # that its operations call
        self._new_c_ops: List[Operation] = []  # that _create_c_op made
        self._flow_marks: List[Tuple[int, Any]] = []  # (number of operations before, the innermost branch or loop from there on)

    # ---- what is in it ----

    def as_graph_def(self, from_version: Optional[int] = None, add_shapes: bool = False) -> Any:
        """The graph as a GraphDef message; the operations made after a version (Graph.version) alone, if one is given."""
        from millrace.protos import definitions, graph_bytes

        known: Dict[Any, bytes] = {}  # shapes as they are written

        def shape(tensor: Any) -> bytes:
            found = TensorShape(None) if tensor.dtype == resource else tensor.get_shape()  # handles: of some TensorFlow says [2], of some scalar
            key = None if found.ndims is None else tuple(found.as_list())
            if key not in known:
                known[key] = found.as_proto().SerializeToString()
            return known[key]

        def is_later(name: str) -> bool:
            return bool(self._find(name)._id > from_version)

        written = self._graph_def()
        if from_version is not None or add_shapes:
            written = graph_bytes.edited(
                written, None if from_version is None else is_later, (lambda name: tuple(shape(t) for t in self._find(name).outputs)) if add_shapes else None
            )
        return definitions.GraphDef.parsed_later(written)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name. KeyError when there is none."""
        if not isinstance(name, str):
            raise at_user_line(TypeError("Operation names are strings (or similar), not %s." % type(name).__name__))
        return self.as_graph_element(name, allow_tensor=False, allow_operation=True)

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor <operation>:<output number>. KeyError when there is none."""
        if not isinstance(name, str):
            raise at_user_line(TypeError("Tensor names are strings (or similar), not %s." % type(name).__name__))
        return self.as_graph_element(name, allow_tensor=True, allow_operation=False)

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The tensor or operation that a name or an object means."""
        try:
            return self._element(obj, allow_tensor, allow_operation)
        except (TypeError, ValueError, KeyError) as error:
            raise at_user_line(error) from None

    def _element(self, obj: Any, allow_tensor: bool, allow_operation: bool) -> Any:
        what = " or ".join((["Tensor"] if allow_tensor else []) + (["Operation"] if allow_operation else []))
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, bytes):
            obj = obj.decode()
        if isinstance(obj, str):
            return self._named_element(obj, allow_tensor, allow_operation, what)
        if isinstance(obj, Tensor) and allow_tensor or isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError("%s %s is not an element of this graph." % (type(obj).__name__, obj))
            return obj
        raise TypeError("Can not convert a %s into a %s." % (type(obj).__name__, what))

    def _named_element(self, name: str, allow_tensor: bool, allow_operation: bool, what: str) -> Any:
        if ":" in name and allow_tensor:
            operation_name, _, number = name.rpartition(":")
            operation = self._find(operation_name)
            if operation is None:
                raise KeyError("The name %r refers to a Tensor which does not exist. The operation, %r, does not exist in the graph." % (name, operation_name))
            try:
                return operation.outputs[int(number)]
            except (IndexError, ValueError):
                raise KeyError(
                    "The name %r refers to a Tensor which does not exist. The operation, %r, exists but only "
                    "has %d outputs." % (name, operation_name, len(operation.outputs))
                ) from None
        operation = self._find(name)
        if ":" in name and not allow_tensor:
            raise ValueError("Name %r appears to refer to a Tensor, not a %s." % (name, what))
        if not allow_operation:
            if operation is not None:
                raise ValueError('The name %r refers to an Operation, not a %s. Tensor names must be of the form "<op_name>:<output_index>".' % (name, what))
            raise ValueError("The name %r looks like an (invalid) Operation name, not a %s." % (name, what))
        if operation is None:
            raise KeyError("The name %r refers to an Operation not in the graph." % name)
        return operation

    @property
    def version(self) -> int:
        """A number that grows with the graph."""
        return self._last_id

    @property
    def graph_def_versions(self) -> Any:
        """The VersionDef of the graph."""
        from millrace.protos import definitions

        return definitions.VersionDef.FromString(self._versions())

    def finalize(self) -> None:
        """Makes it read-only: adding an op raises RuntimeError."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    @property
    def finalized(self) -> bool:
        """Whether it is read-only."""
        return self._finalized

    def _check_not_finalized(self) -> None:
        if self._finalized:
            raise at_user_line(RuntimeError("Graph is finalized and cannot be modified."))

    @property
    def seed(self) -> Optional[int]:
        """The seed of the graph (set_random_seed)."""
        return self._seed

    @seed.setter
    def seed(self, seed: Optional[int]) -> None:
        self._seed = seed

    @property
    def building_function(self) -> bool:
        """Whether it is the body of a function."""
        return self.__dict__.get("_says_function", False)

    @property
    def _building_function(self) -> bool:  # the name that programs of 1.12 to 1.15 ask
        return self.building_function

    @_building_function.setter
    def _building_function(self, value: bool) -> None:
        self.__dict__["_says_function"] = value

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Makes feeding the tensor an error."""
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor: Tensor) -> bool:
        """Whether the tensor may be fed: not inside of a loop."""
        if tensor in self._unfeedable:
            return False
        context = tensor.op._get_control_flow_context() if self._flow_marks else None
        return context is None or context.GetWhileContext() is None or tensor.op.type in ("Exit", "RefExit")

    def prevent_fetching(self, op: Operation) -> None:
        """Makes fetching the operation an error."""
        self._unfetchable.add(op)

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Whether it may be fetched: not inside of a branch or a loop."""
        op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        if op in self._unfetchable:
            return False
        context = op._get_control_flow_context() if self._flow_marks else None
        return context is None or op.type in ("Exit", "RefExit") and context.outer_context is None

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Any],
        dtypes: Any = None,
        input_types: Any = None,
        name: Optional[str] = None,
        attrs: Optional[Dict[str, Any]] = None,
        op_def: Any = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """Adds a node of any op. Attributes are AttrValue messages. Types, shapes and devices follow from the op."""
        del dtypes, input_types, op_def, compute_shapes, compute_device  # the library finds all of these out by the type
        encoded = {key: value.SerializeToString() for key, value in (attrs or {}).items()}
        encoded.update((key, value) for key, value in self._scoped_choices(op_type).items() if key not in encoded)
        return self._place(_core.make_node(self, op_type, name or op_type, list(inputs), encoded))

    def _scoped_choices(self, op_type: str) -> Dict[str, bytes]:
        """The attributes, encoded, that the scopes around give a new operation of a type: its mates, its kernel, its gradient."""
        from millrace.protos.definitions import AttrValue

        mates = self._take_colocation()
        for mate in mates:
            self._push_colocation(mate)
        made = {}
        if mates:
            made["_class"] = AttrValue(list=AttrValue.ListValue(s=sorted({b"loc:@" + mate.name.encode() for mate in mates})))
        for key, chosen in ("_kernel", self._kernel_labels), ("_gradient_op_type", self._gradient_overrides):
            if dict(chosen).get(op_type):
                made[key] = AttrValue(s=dict(chosen)[op_type].encode())
        return {key: value.SerializeToString() for key, value in made.items()}

    def _create_op_from_tf_operation(self, c_op: Operation, compute_device: bool = True) -> Operation:
        """An operation that _create_c_op made, with the device of the scopes around."""
        self._new_c_ops.remove(c_op)
        if compute_device:
            device = _merged([d for d in self._device_stack if not callable(d)])
            if device:
                c_op._set_device(merge_device(device, c_op.device))
            self._place(c_op)
        return c_op

    def _add_new_tf_operations(self, compute_devices: bool = True) -> List[Operation]:
        """The operations that _create_c_op has made since the last call; they wait for what the scopes around say."""
        made = [self._create_op_from_tf_operation(op, compute_devices) for op in list(self._new_c_ops)]
        for op in made:
            op._add_control_inputs(mate for mate in self._control_inputs() if mate not in op.control_inputs)
        return made

    # ---- collections ----

    @property
    def collections(self) -> List[Any]:
        """The names of the collections."""
        return list(self._collections)

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends a value to a collection."""
        self._check_not_finalized()
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Appends a value to each of several collections."""
        for name in (names,) if isinstance(names, str) else set(names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: Any) -> List[Any]:
        """The collection itself: changing it changes the graph's."""
        return self._collections.setdefault(name, [])

    def get_collection(self, name: Any, scope: Optional[str] = None) -> List[Any]:
        """A copy of a collection; of the values whose name matches the regular expression `scope`, if one is given."""
        values = self._collections.get(name, [])
        if scope is None:
            return list(values)
        pattern = re.compile(scope)
        return [v for v in values if hasattr(v, "name") and pattern.match(v.name)]

    # Names inside TensorFlow that programs read: all operations, by name and by number.
    _nodes_by_name = property(lambda self: {op.name: op for op in self.get_operations()})
    _nodes_by_id = property(lambda self: dict(enumerate(self.get_operations(), 1)))

    def get_all_collection_keys(self) -> List[Any]:
        """The names of the collections that are strings."""
        return [key for key in self._collections if isinstance(key, str)]

    def clear_collection(self, name: Any) -> None:
        """Empties a collection."""
        self._check_not_finalized()
        self._collections.pop(name, None)

    # ---- scopes ----

    def switch_to_thread_local(self) -> None:
        """Changes nothing. A graph has one name scope, one device and one set of control dependencies at a time, whichever thread entered
        them: threads may run it at once, and build it in turns. (Variable scopes and default graphs are each thread's own.)"""

    def as_default(self) -> Any:
        """A context in which this is the default graph."""
        return _DefaultGraph(self)

    @contextlib.contextmanager
    def name_scope(self, name: Optional[str]) -> Iterator[str]:
        """A context in which names of ops start with `name`. A name that ends with "/" is entered as it is."""
        if name:
            if isinstance(name, bytes):
                name = name.decode()
            valid = _VALID_SCOPE if self._name_stack else _VALID_OP_NAME
            if not valid.match(name):
                raise at_user_line(ValueError("'%s' is not a valid scope name" % name))
        old = self._name_stack
        if not name:
            new = ""
        elif name[-1] == "/":
            new = name[:-1]
        else:
            new = self.unique_name(name)
        self._name_stack = new
        try:
            yield new + "/" if name else ""
        finally:
            self._name_stack = old

    def get_name_scope(self) -> str:
        """The current name scope."""
        return self._name_stack

    @contextlib.contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """A context in which ops are placed on a device: a name, a DeviceSpec, a function of the operation, or None."""
        old_device, old_stack, old_flag = self._device, self._device_stack, self._has_device_functions
        given = device_name_or_function
        if isinstance(given, DeviceSpec):
            given = given.to_string()
        if given is None:
            self._device, self._device_stack = "", []
        else:
            self._device_stack = old_stack + [given]
        stack = self._device_stack
        functions = any(callable(d) for d in stack)
        self._has_device_functions = functions
        self._device = "" if functions else _merged(stack)
        places = self._places["device"]
        outer = places.enter(self._last_id, _shown_device(given))
        try:
            yield
        finally:
            if self._device_stack is not stack:
                raise at_user_line(RuntimeError("Exiting device scope without proper scope nesting."))
            places.leave(self._last_id, outer)
            self._device, self._device_stack, self._has_device_functions = old_device, old_stack, old_flag

    def _apply_device_functions(self, op: Operation) -> None:
        """Gives an operation its device, or tells it to something that has `device` and `_set_device` only, as Keras asks which it is."""
        made = isinstance(op, Operation)
        mate = next((root for root in _colocation_roots(self, op) if root is not op and root.device), None) if made else None
        if mate is not None:  # an optimizer's update lies with its variable, whatever functions say
            op._set_device(mate.device)
            return
        device = op.device or ""
        for given in reversed(self._device_stack):
            if callable(given):
                result = given(op)  # it has seen the device so far
                device = device if result is None else result.to_string() if isinstance(result, DeviceSpec) else result
            else:
                device = merge_device(given, device)
            op._set_device(_beside_resources(op, device) if made else device)

    def _place(self, op: Operation) -> Operation:
        """What is left to do for a new operation whose place does not follow from the device's name alone."""
        if self._has_device_functions:
            self._apply_device_functions(op)
        return op

    def control_dependencies(self, control_inputs: Optional[Sequence[Any]]) -> Any:
        """A context in which ops run after `control_inputs`; None: in which they wait for nothing from outside."""
        return _ControlDependencies(self, control_inputs)

    @contextlib.contextmanager
    def _original_op(self, op: Operation) -> Iterator[None]:
        """A context in which operations are made on behalf of another one (Operation._original_op)."""
        before = self._last_id
        try:
            yield
        finally:
            originals = self.__dict__.setdefault("_originals", {})
            for made in self.get_operations()[before:]:
                originals.setdefault(made.name, op)

    def _get_control_flow_context(self) -> Any:
        """The branch or loop that is built at the moment (ops.control_flow_contexts), or None."""
        return self._flow_marks[-1][1] if self._flow_marks else None

    def _set_control_flow_context(self, context: Any, after: Optional[int] = None) -> None:
        """Makes a branch or loop the innermost one, of the operations after a number of them."""
        after = self._last_id if after is None else after
        while self._flow_marks and self._flow_marks[-1][0] >= after:
            self._flow_marks.pop()
        if context is not self._get_control_flow_context():
            self._flow_marks.append((after, context))

    def _operations_by_context(self) -> Dict[Any, List[Operation]]:
        """The operations of each branch and loop."""
        found: Dict[Any, List[Operation]] = {}
        for op in self.get_operations():
            found.setdefault(op._get_control_flow_context(), []).append(op)
        return found

    _auto_cast_variable_read_dtype: Any = None  # what variables of layers that cast are read in

    @contextlib.contextmanager
    def _enable_auto_casting_variables(self, dtype: Any) -> Iterator[None]:
        """A context in which variables of layers that cast are read in another type; in their own for None."""
        outer = self._auto_cast_variable_read_dtype
        self._auto_cast_variable_read_dtype = None if dtype is None else as_dtype(dtype)
        try:
            yield
        finally:
            self._auto_cast_variable_read_dtype = outer

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """A context in which ops are placed where `op` is."""
        element = getattr(op, "op", op)
        if element is not None and not isinstance(element, Operation):
            raise at_user_line(TypeError("colocate_with takes an operation, a tensor or a variable, got %s" % type(op).__name__))
        saved = self._take_colocation() if ignore_existing or element is None else None
        roots = [] if element is None else _colocation_roots(self, element)
        device, stack, functions = self._device, self._device_stack, self._has_device_functions
        for root in roots:
            self._push_colocation(root)
        self._device, self._device_stack, self._has_device_functions = "" if element is None else element.device, [], False
        devices, colocations = self._places["device"], self._places["colocation"]
        outer_devices = devices.put(self._last_id, ())
        outer_colocations = colocations.put(self._last_id, ()) if saved is not None else colocations.now
        if element is not None:
            colocations.enter(self._last_id, element.name)
        try:
            yield
        finally:
            devices.leave(self._last_id, outer_devices)
            colocations.leave(self._last_id, outer_colocations)
            self._device, self._device_stack, self._has_device_functions = device, stack, functions
            for _ in roots:
                self._pop_colocation()
            for old in saved or []:
                self._push_colocation(old)

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map: Dict[str, str]) -> Iterator[None]:
        """A context in which ops of a type get the gradient that is registered under another name."""
        if not isinstance(op_type_map, dict):
            raise at_user_line(TypeError("op_type_map must be a dictionary mapping strings to strings"))
        old = self._gradient_overrides
        self._gradient_overrides = old + list(op_type_map.items())
        try:
            yield
        finally:
            self._gradient_overrides = old

    @contextlib.contextmanager
    def _kernel_label_map(self, op_to_kernel_label_map: Dict[str, str]) -> Iterator[None]:
        """A context in which ops of a type are served by the kernel that is registered with a label."""
        old = self._kernel_labels
        self._kernel_labels = old + list(op_to_kernel_label_map.items())
        try:
            yield
        finally:
            self._kernel_labels = old

    @contextlib.contextmanager
    def _attr_scope(self, attr_map: Dict[str, Any]) -> Iterator[None]:
        """A context in which new nodes get attributes: AttrValue messages by name, or None for one that is not to be set."""
        old = self._scoped_attrs
        found = {**dict(old), **{name: None if value is None else value.SerializeToString() for name, value in attr_map.items()}}
        self._scoped_attrs = [(name, value) for name, value in found.items() if value is not None]
        try:
            yield
        finally:
            self._scoped_attrs = old

    @contextlib.contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """A context in which variables and queues live in a container of that name."""
        old, self._container = self._container, container_name  # type: ignore[has-type]
        try:
            yield container_name
        finally:
            self._container = old

    def __repr__(self) -> str:
        ops = self.get_operations()
        return "<tf.Graph of %d operations%s>" % (len(ops), ", the last '%s'" % ops[-1].name if ops else "")

    def _repr_html_(self) -> str:
        counts: Dict[str, int] = {}
        fed = []
        for op in self.get_operations():
            counts[op.type] = counts.get(op.type, 0) + 1
            if op.type in ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault"):
                fed.append(op.outputs[0]._repr_html_())
        rows = ["<tr><td>%s</td><td>%d</td></tr>" % item for item in sorted(counts.items(), key=lambda i: -i[1])]
        return "<b>Graph</b>: %d operations%s<table>%s</table>%s" % (
            sum(counts.values()),
            "<br>fed: " + "<br>".join(fed[:10]) + _left_out(len(fed) - 10, "placeholders") if fed else "",
            "".join(rows[:20]),
            _left_out(len(rows) - 20, "ops"),
        )

    def __copy__(self) -> "Graph":
        return self

    def __deepcopy__(self, memo: Any) -> "Graph":
        return self


def _left_out(count: int, what: str) -> str:
    return "<br>and %d other %s" % (count, what) if count > 0 else ""


def _colocation_roots(graph: Graph, op: Operation) -> List[Operation]:
    """The operations that an operation is placed with, or itself when it is placed with none."""
    found = [graph._find(group[len(b"loc:@") :].decode()) for group in op.colocation_groups()]
    return [root for root in found if root is not None] or [op]


def _beside_resources(op: Operation, device: str) -> str:
    """Where functions of types put an operation, or the task of the resource that it uses: no other task has that."""
    wanted = DeviceSpec.from_string(device)
    for used in op.inputs:
        if used.dtype == resource and used.device:
            theirs = DeviceSpec.from_string(used.device)
            if any(a is not None and b is not None and a != b for a, b in ((wanted.job, theirs.job), (wanted.task, theirs.task))):
                return str(used.device)
    return device


def _shown_device(given: Any) -> str:
    """What messages call the argument of Graph.device."""
    code = getattr(getattr(given, "__func__", given), "__code__", None)
    if not callable(given):
        return str(given)
    name = getattr(given, "__name__", type(given).__name__)
    return "%s<%s, %d>" % (name, code.co_filename if code else "unknown", code.co_firstlineno if code else -1)


def _merged(stack: Sequence[Any]) -> str:
    device = ""
    for name in stack:
        device = merge_device(device, name)
    return device


class _DefaultGraph:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __enter__(self) -> Graph:
        _core.push_graph(self._graph)
        return self._graph

    def __exit__(self, *unused: Any) -> None:
        leave_graph()


class _ControlDependencies:
    def __init__(self, graph: Graph, control_inputs: Optional[Sequence[Any]]) -> None:
        self._graph, self._clears = graph, control_inputs is None
        self._operations: List[Operation] = []
        for given in control_inputs or ():
            if hasattr(given, "indices") and hasattr(given, "values"):  # IndexedSlices, SparseTensor
                given = given.op
            element = graph.as_graph_element(given)
            operation = element.op if isinstance(element, Tensor) else element
            if operation not in self._operations:
                self._operations.append(operation)
        self._name = ""
        self._flow: Any = None
        self._context: Any = None

    def __enter__(self) -> "_ControlDependencies":
        if self._clears:  # leaves the conditional or the loop, too
            self._flow, self._context = self._graph._suspend_flow(), self._graph._get_control_flow_context()
            self._graph._set_control_flow_context(None)
        self._graph._push_control(self._operations, self._clears)
        return self

    def __exit__(self, *unused: Any) -> None:
        self._graph._pop_control()
        if self._clears:
            self._graph._resume_flow(self._flow)
            self._graph._set_control_flow_context(self._context)


# ---- the default graph ----

_local = threading.local()


def _global_default_graph() -> Graph:
    graph = getattr(_local, "graph", None)
    if graph is None:
        graph = _local.graph = Graph()
    return graph


def get_default_graph() -> Graph:
    """The graph that ops are added to at the moment."""
    return _core.current_graph()


def default_graphs() -> List[Graph]:
    """The graphs that this thread has entered, the innermost last."""
    popped = []
    while _core.stack_depth():
        popped.append(_core.pop_graph())
    for graph in reversed(popped):
        _core.push_graph(graph)
    return popped[::-1]


def leave_graph() -> None:
    """Leaves the innermost default graph; nothing where all have been left, as test cases do that begin."""
    if _core.stack_depth():
        _core.pop_graph()


def has_default_graph() -> bool:
    """Whether this thread is in the context of a graph."""
    return _core.stack_depth() > 0


def get_name_scope() -> str:
    """The scope of names that the default graph is in, without a slash behind it."""
    return get_default_graph().get_name_scope()


def outermost_graph() -> Graph:
    """The graph that ops are added to, or that around the function which is being built: where variables are."""
    return _graphs_around()[-1]


def _graphs_around() -> List[Graph]:
    """The default graph and those around it, to the first that is no function's body."""
    around = [get_default_graph()]
    entered = default_graphs()
    while around[-1].building_function:
        outer = getattr(around[-1], "outer_graph", None)
        while outer is None:
            last = not entered
            outer = _global_default_graph() if last else entered.pop()
            if outer in around:
                if last:
                    raise at_user_line(RuntimeError("The global graph is a function."))
                outer = None
        around.append(outer)
    return around


def reset_default_graph() -> None:
    """A new, empty default graph for this thread."""
    if _core.stack_depth() > 0:
        if not leave_interactive():
            raise AssertionError(
                "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, exit the nesting and create a new graph."
            )
    _local.graph = Graph()


def graph_of_inputs(values: Any, graph: Optional[Graph] = None) -> Graph:
    """The graph that all tensors and operations among values are of, or the default graph. ValueError where they are of several."""
    found, first = graph, None
    for value in values:
        if not isinstance(value, (Tensor, Operation)):
            convert = getattr(value, "_as_graph_element", None)
            sparse = hasattr(value, "indices") and hasattr(value, "values")
            value = getattr(value, "op", None) if sparse else convert() if convert is not None else value  # values of arrays are of no graph
            if not isinstance(value, (Tensor, Operation)):
                continue
        if found is None:
            found, first = value.graph, value
        elif value.graph is not found:
            raise at_user_line(
                ValueError("%s is not from the passed-in graph." % value if first is None else "%s must be from the same graph as %s." % (value, first))
            )
    return found if found is not None else get_default_graph()


class name_scope:
    """A context in which names of ops start with a scope. `values` may hold tensors whose graph is then the default."""

    def __init__(self, name: Optional[str], default_name: Optional[str] = None, values: Any = None) -> None:
        if default_name is not None and not isinstance(default_name, str):
            raise at_user_line(
                TypeError("`default_name` type (%s) is not a string type. You likely meant to pass this into the `values` kwarg." % type(default_name))
            )
        self._name = default_name if name is None else name
        if self._name is None and values is not None:
            raise at_user_line(ValueError("At least one of name (%s) and default_name (%s) must be provided." % (name, default_name)))
        self._values = values

    def __enter__(self) -> str:
        graph = get_default_graph()
        if self._values and not graph.building_function:
            graph = graph_of_inputs(self._values)
        self._pushed = graph is not get_default_graph()
        if self._pushed:
            _core.push_graph(graph)
        self._scope = graph.name_scope(self._name)
        return self._scope.__enter__()

    def __exit__(self, *details: Any) -> Any:
        result = self._scope.__exit__(*details)
        if self._pushed:
            leave_graph()
        return result

    @property
    def name(self) -> Optional[str]:
        """The name given."""
        return self._name


class name_scope_v2:
    """A context in which names of ops start with a scope. It may be entered again, inside of itself too."""

    def __init__(self, name: str) -> None:
        if name is None or not isinstance(name, str):
            raise at_user_line(ValueError("name for name_scope must be a string."))
        self._name = name
        self._entered: List[Any] = []

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    def __enter__(self) -> str:
        self._entered.append(get_default_graph().name_scope(self._name))
        return self._entered[-1].__enter__()

    def __exit__(self, *details: Any) -> Any:
        return self._entered.pop().__exit__(*details)


@contextlib.contextmanager
def op_scope(values: Any, name: Optional[str], default_name: Optional[str] = None) -> Iterator[str]:
    """name_scope with the arguments of TensorFlow 0.x."""
    if isinstance(values, (str, type(None))) and isinstance(default_name, (list, tuple)):
        values, name, default_name = default_name, values, name  # op_scope(name, default_name, values)
    with name_scope(name, default_name, values) as scope:
        yield scope


class _Asked:
    """Stands for an operation that asks for its device."""

    type, name, device = "NoOp", "", ""

    def _set_device(self, device: str) -> None:
        self.device = device


def current_device() -> str:
    """The device that an operation without inputs would get here, by name; "" where nothing is said."""
    asked: Any = _Asked()
    get_default_graph()._apply_device_functions(asked)
    return str(asked.device)


def device(device_name_or_function: Any) -> Any:
    """Graph.device of the default graph."""
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs: Any) -> Any:
    """Graph.control_dependencies of the default graph."""
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op: Any, ignore_existing: bool = False) -> Any:
    """Graph.colocate_with of the default graph."""
    return get_default_graph().colocate_with(op, ignore_existing)


def container(container_name: str) -> Any:
    """Graph.container of the default graph."""
    return get_default_graph().container(container_name)


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """A context outside the functions, the control dependencies and the control flow around it, for variables' first values."""
    scope, graphs = get_default_graph().get_name_scope(), _graphs_around()
    outer, placing = graphs[-1], next((g for g in graphs if g._device_stack), graphs[-1])  # functions keep the devices that are asked for inside
    saved = outer._device, outer._device_stack, outer._has_device_functions
    outer._device, outer._device_stack, outer._has_device_functions = placing._device, placing._device_stack, placing._has_device_functions
    try:
        with outer.as_default(), outer.control_dependencies(None), outer.name_scope(scope + "/" if scope else None):
            yield
    finally:
        outer._device, outer._device_stack, outer._has_device_functions = saved


def add_to_collection(name: Any, value: Any) -> None:
    """Graph.add_to_collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Graph.add_to_collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: Optional[str] = None) -> List[Any]:
    """Graph.get_collection of the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> List[Any]:
    """Graph.get_collection_ref of the default graph."""
    return get_default_graph().get_collection_ref(key)


def get_all_collection_keys() -> List[Any]:
    """Graph.get_all_collection_keys of the default graph."""
    return get_default_graph().get_all_collection_keys()
