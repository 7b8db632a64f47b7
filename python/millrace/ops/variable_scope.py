# SPDX-License-Identifier: Apache-2.0
"""Variables by name: variable scopes, reuse, get_variable."""

from __future__ import annotations

import contextlib
import inspect
import enum
import threading
import functools
from typing import Any, Callable, Dict, Iterator, List, Optional

from millrace.framework import dtypes, replication, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, add_to_collection, get_collection, get_default_graph, init_scope, name_scope
from millrace.ops import array_ops, init_ops
from millrace.ops.partitions import PartitionInfo, partitions_of
from millrace.ops.variables import PartitionedVariable, Variable

_PartitionInfo = PartitionInfo
_STORE, _SCOPE = ("__variable_store",), ("__variable_scope",)


class _Reuse(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _Reuse.AUTO_REUSE


class _Store:
    """The variables of a graph by full name."""

    def __init__(self) -> None:
        self.variables: Dict[str, Any] = {}
        self.partitioned: Dict[str, PartitionedVariable] = {}
        self._vars = self.variables

    def get_variable(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = AUTO_REUSE,
        trainable: Any = True,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: Optional[bool] = None,
        custom_getter: Any = None,
        constraint: Any = None,
    ) -> Any:
        """The variable of a full name: found, or made."""
        return VariableScope(reuse, use_resource=use_resource).get_variable(
            self,
            name,
            shape,
            dtype,
            initializer,
            regularizer,
            reuse,
            trainable,
            collections,
            caching_device,
            partitioner,
            validate_shape,
            use_resource,
            custom_getter,
            constraint,
        )


class _Scopes(threading.local):
    """Of a graph and a thread: the current scope, and how often a scope name was opened."""

    def __init__(self) -> None:
        self.current = VariableScope(False)
        self.counts: Dict[str, int] = {}

    def open(self, name: str) -> None:
        """Notes that a scope is opened."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def close_below(self, name: Optional[str]) -> None:
        """Forgets the scopes below one."""
        for key in self.counts:
            if not name or key.startswith(name + "/"):
                self.counts[key] = 0


def _store() -> _Store:
    stores = get_default_graph().get_collection_ref(_STORE)
    if not stores:
        stores.append(_Store())
    return stores[0]


_get_default_variable_store = _store


class VariableScope:
    """The defaults of get_variable in a scope."""

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = dtypes.float32,
        use_resource: Optional[bool] = None,
        constraint: Any = None,
    ) -> None:
        self._name, self._reuse, self._initializer, self._regularizer = name, reuse, initializer, regularizer
        self._caching_device, self._partitioner, self._custom_getter = caching_device, partitioner, custom_getter
        self._name_scope, self._dtype, self._use_resource, self._constraint = name_scope, dtypes.as_dtype(dtype), use_resource, constraint

    def __repr__(self) -> str:
        return "<VariableScope '%s'%s>" % (self._name, ", reuse" if self._reuse else "")

    name = property(lambda self: self._name, doc="The names of its variables start with this.")
    original_name_scope = property(lambda self: self._name_scope, doc="The name scope that was made with it.")
    reuse = property(lambda self: self._reuse, doc="Whether get_variable finds variables instead of making them.")
    initializer = property(lambda self: self._initializer, doc="The default initializer.")
    regularizer = property(lambda self: self._regularizer, doc="The default regularizer.")
    caching_device = property(lambda self: self._caching_device, doc="The default caching device.")
    partitioner = property(lambda self: self._partitioner, doc="The default partitioner.")
    custom_getter = property(lambda self: self._custom_getter, doc="What get_variable goes through.")
    dtype = property(lambda self: self._dtype, doc="The default type.")
    use_resource = property(lambda self: self._use_resource, doc="Whether variables are resource variables.")
    constraint = property(lambda self: self._constraint, doc="The default constraint.")

    def reuse_variables(self) -> None:
        """From here on get_variable finds variables instead of making them."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self._initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self._regularizer = regularizer

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default type."""
        self._dtype = dtypes.as_dtype(dtype)

    def set_use_resource(self, use_resource: Optional[bool]) -> None:
        """Sets whether variables are resource variables."""
        self._use_resource = use_resource

    def set_caching_device(self, caching_device: Any) -> None:
        """Sets the default caching device."""
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Sets what get_variable goes through."""
        self._custom_getter = custom_getter

    def get_collection(self, name: str) -> List[Any]:
        """The entries of a collection whose names are in this scope."""
        return get_collection(name, self._name + "/" if self._name else None)

    def trainable_variables(self) -> List[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def local_variables(self) -> List[Any]:
        """The local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def global_variables(self) -> List[Any]:
        """The global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def get_variable(
        self,
        var_store: _Store,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: Any = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: Optional[bool] = None,
        custom_getter: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
    ) -> Any:
        """The variable of a name below this scope: found or made."""
        trainable = replication.trainable(trainable, synchronization, aggregation)
        trainable = True if trainable is None else trainable
        full_name = self._name + "/" + name if self._name else name
        if initializer is None:
            initializer = self._initializer
        if regularizer is None:
            regularizer = self._regularizer
        if partitioner is None:
            partitioner = self._partitioner
        if use_resource is None:
            use_resource = self._use_resource
        if reuse is None:
            reuse = self._reuse
        if dtype is not None and initializer is not None and not _makes_values(initializer):
            given = convert_to_tensor(initializer).dtype.base_dtype
            if given != dtypes.as_dtype(dtype).base_dtype:
                raise at_user_line(ValueError("Initializer type '%s' and explicit dtype '%s' don't match." % (given, dtypes.as_dtype(dtype))))
        if dtype is None:
            dtype = self._dtype
        if custom_getter is None:
            custom_getter = self._custom_getter
        if custom_getter is not None and not callable(custom_getter):
            raise at_user_line(ValueError("Passed a custom_getter which is not callable: %s" % (custom_getter,)))
        arguments = dict(
            name=full_name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            reuse=reuse,
            trainable=trainable,
            collections=collections,
            caching_device=caching_device or self._caching_device,
            partitioner=partitioner,
            validate_shape=validate_shape,
            use_resource=use_resource,
            constraint=self._constraint if constraint is None else constraint,
        )
        graph = get_default_graph()
        make = functools.partial(_true_getter, store=var_store)
        if graph.building_function:
            make = getattr(graph, "_variable_outside", None) or functools.partial(_lifted, make)
        with name_scope(None):
            return through_getter(custom_getter, make, arguments, synchronization, aggregation)


def through_getter(custom_getter: Any, make: Callable[..., Any], arguments: Dict[str, Any], synchronization: Any = None, aggregation: Any = None) -> Any:
    """What a scope's custom getter gives for the arguments of a variable, whose name is whole, or `make` where the scope has none."""
    if custom_getter is None:
        return make(synchronization=synchronization, aggregation=aggregation, **arguments)
    rest = {**arguments, **_of_replicas(custom_getter, synchronization, aggregation)}
    if _takes_names(custom_getter):
        return custom_getter(getter=make, **rest)
    return custom_getter(make, rest.pop("name"), **rest)


def _lifted(make: Callable[..., Any], **kwargs: Any) -> Any:
    """A variable outside of a graph that a program says to be a function's."""
    with init_scope():
        return make(**kwargs)


def _takes_names(custom_getter: Callable[..., Any]) -> bool:
    """Whether it takes all by name, as TensorFlow calls it: not when its first parameters are called otherwise."""
    try:
        parameters = inspect.signature(custom_getter).parameters
    except (TypeError, ValueError):
        return False
    return "getter" in parameters and ("name" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()))


def _of_replicas(custom_getter: Callable[..., Any], synchronization: Any, aggregation: Any) -> Dict[str, Any]:
    """What is said of copies, by name, as far as a custom getter takes it: those of programs for 1.10 and before do not."""
    given = {"synchronization": synchronization or replication.VariableSynchronization.AUTO, "aggregation": aggregation or replication.VariableAggregation.NONE}
    try:
        parameters = inspect.signature(custom_getter).parameters
    except (TypeError, ValueError):
        return given
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return {name: value for name, value in given.items() if takes_all or name in parameters}


def _true_getter(
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Any = None,
    trainable: Any = True,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Optional[bool] = None,
    constraint: Any = None,
    partition_info: Any = None,
    store: Optional[_Store] = None,
    synchronization: Any = None,
    aggregation: Any = None,
    **unused: Any,
) -> Any:
    """Finds or makes the variable of a full name."""
    store = _store() if store is None else store
    if partitioner is not None and not callable(partitioner):
        raise at_user_line(ValueError("Partitioner must be callable, but received: %s" % (partitioner,)))
    is_scalar = shape is not None and tensor_shape.as_shape(shape).ndims == 0
    if partitioner is not None and not is_scalar or name in store.partitioned:
        return _partitioned(
            name,
            shape,
            dtype,
            initializer,
            regularizer,
            reuse,
            trainable,
            collections,
            caching_device,
            partitioner,
            validate_shape,
            use_resource,
            constraint,
            store,
            {"synchronization": synchronization, "aggregation": aggregation},
        )
    static = tensor_shape.as_shape(shape)
    found = store.variables.get(name)
    if found is not None:
        if reuse is False:  # None, which custom getters may say, is as good as AUTO_REUSE
            where = getattr(found, "op", None)
            where = " Originally defined at %s" % where._location if where is not None and where._location else ""
            raise at_user_line(
                ValueError("Variable %s already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?%s" % (name, where))
            )
        if not static.is_compatible_with(found.get_shape()):
            raise at_user_line(ValueError("Trying to share variable %s, but specified shape %s and found shape %s." % (name, static, found.get_shape())))
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(found.dtype.base_dtype):
            raise at_user_line(
                ValueError("Trying to share variable %s, but specified dtype %s and found dtype %s." % (name, dtypes.as_dtype(dtype).name, found.dtype.name))
            )
        return found
    if reuse is True:
        raise at_user_line(
            ValueError("Variable %s does not exist, or was not created with tf.get_variable(). Did you mean to set reuse=tf.AUTO_REUSE in VarScope?" % name)
        )
    if initializer is None:
        initializer = _default_initializer(name, dtype)
    if isinstance(initializer, type):
        make_initializer: Any = initializer
        initializer = make_initializer(dtype=dtype) if issubclass(initializer, init_ops.Initializer) else make_initializer()
    if _makes_values(initializer) and (shape is None or not (validate_shape or static.is_fully_defined())) and _needs_nothing(initializer):
        initial: Any = initializer
        wanted = None  # a value says itself what it is
    elif _makes_values(initializer):
        if not static.is_fully_defined():
            if validate_shape:
                raise at_user_line(ValueError("Shape of a new variable (%s) must be fully defined, but instead was %s." % (name, static)))
            raise at_user_line(
                ValueError("The initializer passed is not valid: of a shape that is not known (%s) it should be callable with no arguments." % static)
            )
        wanted = dtypes.as_dtype(dtype or dtypes.float32).base_dtype
        make = initializer
        initial = lambda: _call_initializer(make, static, wanted, partition_info)
    else:
        if shape is not None:
            given = convert_to_tensor(initializer).get_shape()
            if not static.is_compatible_with(given):
                raise at_user_line(ValueError("If initializer is a constant, do not specify shape. (variable %s: %s and %s)" % (name, static, given)))
        initial = initializer
        wanted = None
    variable = Variable(
        initial,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        validate_shape=validate_shape,
        name=name,
        dtype=wanted,
        constraint=constraint,
        use_resource=use_resource,
        synchronization=synchronization,
        aggregation=aggregation,
    )
    store.variables[name] = variable
    if regularizer:
        with init_scope(), name_scope(name + "/Regularizer/"):  # also of a variable that a loop or a branch makes
            loss = regularizer(variable)
        if loss is not None:
            add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _makes_values(initializer: Any) -> bool:
    """Whether an initializer is a function of shape and type; else it is a value."""
    return callable(initializer) and not isinstance(initializer, Tensor)


def _needs_nothing(initializer: Callable[..., Any]) -> bool:
    """Whether a function makes a value without a shape. ValueError for one that needs more: nothing says what."""
    if not inspect.isroutine(initializer):
        return False
    empty = inspect.Parameter.empty
    if all(p.default is not empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in inspect.signature(initializer).parameters.values()):
        return True
    raise at_user_line(
        ValueError(
            "The initializer passed is not valid. It should be a callable with no arguments and the shape should not be provided or an instance of "
            "`tf.keras.initializers.*' and `shape` should be fully defined."
        )
    )


def _call_initializer(make: Callable[..., Any], shape: tensor_shape.TensorShape, dtype: dtypes.DType, partition_info: Any = None) -> Any:
    """What an initializer makes, called with as much as it takes: the shape, the dtype, where the part is in a variable that is cut."""
    try:
        parameters = list(inspect.signature(make).parameters.values())
    except (TypeError, ValueError):  # of a function that is not written in Python nothing is known
        return make(shape.as_list(), dtype=dtype)
    every = any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if not parameters:
        return make()
    given = {"dtype": dtype, "partition_info": partition_info}
    taken = {name: value for name, value in given.items() if name in names or every and (name != "partition_info" or value is not None)}
    return make(shape.as_list(), **taken)


def _default_initializer(name: str, dtype: Any) -> Any:
    dtype = dtypes.as_dtype(dtype or dtypes.float32)
    if dtype.is_floating:
        return init_ops.glorot_uniform_initializer()
    if dtype.is_integer or dtype.is_bool or dtype == dtypes.string:
        return init_ops.zeros_initializer()
    raise at_user_line(ValueError("An initializer for variable %s of %s is required" % (name, dtype)))


def _found_partitioned(found: Any, name: str, static: tensor_shape.TensorShape, dtype: Any, partitions: Optional[List[int]]) -> Any:
    what = "Trying to reuse partitioned variable %s, but specified %%s %%s and found %%s %%s." % name
    if not static.is_compatible_with(found.get_shape()):
        raise at_user_line(ValueError(what % ("shape", static, "shape", found.get_shape())))
    if not dtypes.as_dtype(dtype).is_compatible_with(found.dtype):
        raise at_user_line(ValueError(what % ("dtype", dtypes.as_dtype(dtype).name, "dtype", found.dtype.name)))
    if partitions is not None and found._get_partitions() != partitions:
        raise at_user_line(ValueError(what % ("partitions", partitions, "partitions", found._get_partitions())))
    return found


def _partitioned(
    name: str,
    shape: Any,
    dtype: Any,
    initializer: Any,
    regularizer: Any,
    reuse: Any,
    trainable: Any,
    collections: Any,
    caching_device: Any,
    partitioner: Any,
    validate_shape: bool,
    use_resource: Optional[bool],
    constraint: Any,
    store: _Store,
    of_replicas: Dict[str, Any],
) -> Any:
    if name in store.variables:
        raise at_user_line(
            ValueError(
                "A partitioner was provided, but an unpartitioned version of the variable was found: %s.  Perhaps a variable of "
                "the same name was already created without partitioning?" % name
            )
        )
    given = None if _makes_values(initializer) else initializer
    dtype = dtypes.as_dtype(dtype or dtypes.float32)
    static = tensor_shape.as_shape(shape)
    whole: Any = None
    if given is not None:
        whole = convert_to_tensor(given)
        dtype, static = whole.dtype.base_dtype, static.merge_with(whole.get_shape())
    partitions = None
    if partitioner is not None:
        if not static.is_fully_defined():
            raise at_user_line(ValueError("Shape of a new partitioned variable (%s) must be fully defined, but instead was %s." % (name, static)))
        if static.ndims == 0:
            raise at_user_line(ValueError("A partitioned Variable must have rank at least 1, shape: %s" % static))
        partitions = partitions_of(partitioner, static, dtype)
    found = store.partitioned.get(name)
    if found is not None:
        if not reuse:
            raise at_user_line(
                ValueError("Partitioned variable with name %s already exists. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?" % name)
            )
        return _found_partitioned(found, name, static, dtype, partitions)
    if reuse is True or partitions is None:
        raise at_user_line(
            ValueError(
                "PartitionedVariable %s does not exist, or was not created with tf.get_variable(). Did you mean to set "
                "reuse=False or reuse=tf.AUTO_REUSE in VarScope?" % name
            )
        )
    axis = next((i for i, p in enumerate(partitions) if p > 1), 0)
    count, sizes = partitions[axis], [int(d) for d in static.as_list()]  # type: ignore[arg-type]
    if name + "/part_0" in store.variables:
        for i, wanted in ((count - 1, True), (count, False)):
            if ("%s/part_%d" % (name, i) in store.variables) != wanted:
                raise at_user_line(
                    ValueError(
                        "Partitioner returned a different partitioning than what was already found.  Partitioner returned %d shards, "
                        "and shard %s/part_0 was found, but %s/part_%d was %s found." % (count, name, name, i, "not" if wanted else "also")
                    )
                )
    parts, offset = [], 0
    for i in range(count):
        size = sizes[axis] // count + (1 if i < sizes[axis] % count else 0)
        part_shape = sizes[:axis] + [size] + sizes[axis + 1 :]
        offsets = [0] * len(sizes)
        offsets[axis] = offset
        make: Any = initializer
        if whole is not None:
            with name_scope(name + "/PartitionedInitializer/"):
                make = array_ops.slice(whole, offsets, part_shape)
        part = _true_getter(
            "%s/part_%d" % (name, i),
            part_shape if whole is None else None,
            dtype,
            make,
            regularizer,
            reuse,
            trainable,
            collections,
            caching_device,
            None,
            validate_shape,
            use_resource,
            constraint,
            partition_info=PartitionInfo(sizes, offsets) if size else None,
            store=store,
            **of_replicas,
        )
        part._set_save_slice_info(Variable.SaveSliceInfo(name, sizes, offsets, part_shape))
        parts.append(part)
        offset += size
    made = store.partitioned[name] = PartitionedVariable(name, static, dtype, parts, partitions)
    return made


# ---- scopes ----


def get_variable_scope() -> VariableScope:
    """The current variable scope."""
    return _scopes().current


def _scopes() -> _Scopes:
    scopes = get_default_graph().get_collection_ref(_SCOPE)
    if not scopes:
        scopes.append(_Scopes())
    return scopes[0]


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: Any = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Optional[bool] = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """The variable of a name in the current variable scope: found when the scope reuses, made otherwise."""
    trainable = replication.trainable(trainable, synchronization, aggregation)
    return get_variable_scope().get_variable(
        _store(),
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        None,
        True if trainable is None else trainable,
        collections,
        caching_device,
        partitioner,
        validate_shape,
        use_resource,
        custom_getter,
        constraint,
        synchronization,
        aggregation,
    )


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: Any = False,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Optional[bool] = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """get_variable of a local variable, which is not saved, and not trained, whatever `trainable` says: as in TensorFlow."""
    del trainable
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        False,
        list(collections or []) + [GraphKeys.LOCAL_VARIABLES],
        caching_device,
        partitioner,
        validate_shape,
        use_resource,
        custom_getter,
        constraint,
        synchronization,
        aggregation,
    )


@contextlib.contextmanager
def _pushed(scope: VariableScope, again: bool) -> Iterator[VariableScope]:
    """A context in which a scope is the current one. `again`: the numbers of the scopes below go on afterwards as if it had not been opened."""
    scopes = _scopes()
    old, counts = scopes.current, dict(scopes.counts)
    scopes.current = scope
    try:
        yield scope
    finally:
        if again:
            scopes.counts = counts
        else:
            scopes.close_below(scope.name)
        scopes.current = old


class variable_scope:
    """A context in which variables are named below a scope and take its defaults. `name_or_scope` may be a scope to open
    again; None with a default name takes that, made unique."""

    def __init__(
        self,
        name_or_scope: Any,
        default_name: Optional[str] = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: Optional[bool] = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if name_or_scope is None and default_name is None:
            raise at_user_line(TypeError("If default_name is None then name_or_scope is required"))
        if reuse is False:
            reuse = None  # as in TensorFlow: inherits the outer scope's
        if reuse not in (None, True, AUTO_REUSE):
            raise at_user_line(ValueError("The reuse parameter must be True or False or None."))
        self._name_or_scope, self._default_name, self._values = name_or_scope, default_name, values
        self._changes = dict(
            initializer=initializer,
            regularizer=regularizer,
            caching_device=caching_device,
            partitioner=partitioner,
            custom_getter=custom_getter,
            dtype=dtype,
            use_resource=use_resource,
            constraint=constraint,
        )
        if not isinstance(auxiliary_name_scope, bool):
            raise at_user_line(TypeError("The auxiliary_name_scope must be `True` or `False`, got %r" % (auxiliary_name_scope,)))
        self._reuse, self._auxiliary = reuse, auxiliary_name_scope

    def __enter__(self) -> VariableScope:
        self._stack = contextlib.ExitStack()
        try:
            self._made = self._enter(self._stack)
            return self._made
        except BaseException:
            self._stack.close()
            raise

    def _enter(self, stack: contextlib.ExitStack) -> VariableScope:
        for value in self._values or ():
            if isinstance(value, Tensor) and value.graph is not get_default_graph():
                stack.enter_context(value.graph.as_default())
                break
        outer = get_variable_scope()
        given = self._name_or_scope
        if given is None:
            if self._reuse:
                raise at_user_line(ValueError("reuse=True cannot be used without a name_or_scope"))
            unique = _unique_scope(self._default_name or "")
            scope_name, own_name_scope = unique, unique
        elif isinstance(given, VariableScope):
            scope_name, own_name_scope = given.name, given.name.split("/")[-1]
        else:
            scope_name, own_name_scope = str(given), str(given)
        if isinstance(given, VariableScope):
            base, full = given, given.name
        else:
            base, full = outer, outer.name + "/" + scope_name if outer.name else scope_name
        names = "" if self._auxiliary else _with_slash(get_default_graph().get_name_scope())
        if self._auxiliary and own_name_scope:
            names = stack.enter_context(name_scope(own_name_scope))
        made = VariableScope(
            self._reuse or base.reuse,
            full,
            base.initializer,
            base.regularizer,
            base.caching_device,
            base.partitioner,
            base.custom_getter,
            given.original_name_scope if isinstance(given, VariableScope) else names,
            base.dtype,
            base.use_resource,
            base.constraint,
        )
        for key, value in self._changes.items():
            if value is None:
                continue
            if key == "custom_getter" and made._custom_getter is not None:
                value = _nested(value, made._custom_getter)
            setattr(made, "_" + key, dtypes.as_dtype(value) if key == "dtype" else value)
        if not isinstance(given, VariableScope):
            _scopes().open(full)
        return stack.enter_context(_pushed(made, isinstance(given, VariableScope)))

    def __exit__(self, *details: Any) -> Any:
        if get_variable_scope() is not self._made:
            raise at_user_line(RuntimeError("Improper nesting of variable_scope."))
        return self._stack.__exit__(*details)


class _pure_variable_scope(variable_scope):
    """A variable_scope without a scope of names. Programs take it from tensorflow.python.ops.variable_scope."""

    def __init__(
        self,
        name_or_scope: Any,
        reuse: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        old_name_scope: Optional[str] = None,
        dtype: Any = None,
        use_resource: Optional[bool] = None,
        constraint: Any = None,
    ) -> None:
        self._old_name_scope = old_name_scope
        more = (initializer, regularizer, caching_device, partitioner, custom_getter, reuse, dtype, use_resource, constraint)
        super().__init__(name_or_scope, None, None, *more, auxiliary_name_scope=False)

    def _enter(self, stack: contextlib.ExitStack) -> VariableScope:
        made = super()._enter(stack)
        if self._old_name_scope is not None:
            made._name_scope = self._old_name_scope
        return made


def _with_slash(name: str) -> str:
    return name + "/" if name else ""


def _nested(new: Callable[..., Any], old: Callable[..., Any]) -> Callable[..., Any]:
    def both(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return new(lambda *a, **k: old(getter, *a, **k), *args, **kwargs)

    return both


def _unique_scope(prefix: str) -> str:
    outer, counts = get_variable_scope().name, _scopes().counts
    full = outer + "/" + prefix if outer else prefix
    if not counts.get(full):
        return prefix
    number = 1
    while counts.get("%s_%d" % (full, number)):
        number += 1
    return "%s_%d" % (prefix, number)


@contextlib.contextmanager
def variable_op_scope(
    values: Any,
    name_or_scope: Any,
    default_name: Optional[str] = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: Optional[bool] = None,
    constraint: Any = None,
) -> Iterator[VariableScope]:
    """variable_scope with the arguments of TensorFlow 0.x."""
    with variable_scope(
        name_or_scope, default_name, values, initializer, regularizer, caching_device, partitioner, custom_getter, reuse, dtype, use_resource, constraint
    ) as scope:
        yield scope


def no_regularizer(_: Any) -> None:
    """The regularizer of variables that have none, whatever their scope says."""
