# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.framework: argument scopes, selections of variables, the global step."""

from __future__ import annotations

import contextlib
import functools
import re
from typing import Any, Callable, Dict, Iterator, List, Optional

from millrace.framework import dtypes
from millrace.framework import not_provided as _not_provided
from millrace import tf_logging
from millrace import audio as audio_ops  # noqa: F401
from millrace.framework.errors import at_user_line
from millrace.framework.composite_tensors import convert_to_tensor_or_sparse_tensor  # noqa: F401
from millrace.framework.device import DeviceSpec
from millrace.framework.library_names import _get_graph_from_inputs as get_graph_from_inputs  # noqa: F401
from millrace.framework.library_names import prepend_name_scope, strip_name_scope  # noqa: F401
from millrace.framework.type_spec import BoundedTensorSpec, TensorSpec  # noqa: F401
from millrace.ops.check_ops import assert_scalar, is_non_decreasing, is_numeric_tensor, is_strictly_increasing  # noqa: F401
from millrace.ops.derived_ops import assert_same_float_dtype  # noqa: F401
from millrace.ops.control_flow_ops import smart_case, smart_cond, smart_constant_value  # noqa: F401
from millrace.ops.record_input import RecordInput  # noqa: F401
from millrace.ops.sort_ops import argsort, sort  # noqa: F401
from millrace.framework.graph import GraphKeys, add_to_collection, get_collection, get_default_graph
from millrace.contrib.critical_section import CriticalSection  # noqa: F401
from millrace.contrib.framework_checkpoints import init_from_checkpoint, list_variables, load_checkpoint, load_variable  # noqa: F401
from millrace.contrib.framework_checkpoints import load_linear_multiclass_bias_initializer, load_variable_slot_initializer  # noqa: F401
from millrace.contrib.framework_functions import py_func  # noqa: F401
from millrace.contrib.framework_fusion import fuse_op  # noqa: F401
from millrace.contrib.framework_printing import print_op  # noqa: F401
from millrace.contrib.framework_steps import assert_or_get_global_step, zero_initializer  # noqa: F401
from millrace.contrib.framework_shapes import assert_scalar_int, reduce_sum_n, remove_squeezable_dimensions, with_same_shape, with_shape  # noqa: F401
from millrace.ops.orthogonal_kernels import convolutional_delta_orthogonal, convolutional_orthogonal_1d  # noqa: F401
from millrace.ops.orthogonal_kernels import convolutional_orthogonal_2d, convolutional_orthogonal_3d  # noqa: F401
from millrace.ops.variable_scope import get_variable
from millrace.train.global_step import assert_global_step, create_global_step, get_global_step, get_or_create_global_step  # noqa: F401
from millrace.train.checkpoint_ops import _load_and_remap_matrix_initializer as load_and_remap_matrix_initializer  # noqa: F401
from millrace.train.checkpoint_ops import _load_embedding_initializer as load_embedding_initializer  # noqa: F401
from millrace.compat.deprecation import deprecated, deprecated_arg_values, deprecated_args, experimental  # noqa: F401

_stack: List[Dict[str, Dict[str, Any]]] = [{}]


def arg_scope_func_key(op: Any) -> str:
    """What scopes call a function."""
    return getattr(op, "_key_op", "%s.%s" % (op.__module__, op.__name__))


def add_arg_scope(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: arg_scope can set the function's defaults."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        defaults = _stack[-1].get(call._key_op)  # type: ignore[attr-defined]
        return func(*args, **dict(defaults, **kwargs) if defaults else kwargs)

    call._key_op = "%s.%s" % (func.__module__, func.__name__)  # type: ignore[attr-defined]
    return call


@contextlib.contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Dict[str, Dict[str, Any]]]:
    """A context in which functions have other defaults; or one that was captured (`as scope`)."""
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise at_user_line(ValueError("When attempting to re-use a scope by supplying a dictionary, kwargs must be empty."))
        made = dict(list_ops_or_scope)
    else:
        made = {key: dict(value) for key, value in _stack[-1].items()}
        for function in list_ops_or_scope:
            if not hasattr(function, "_key_op"):
                raise at_user_line(ValueError("%s is not decorated with @add_arg_scope" % getattr(function, "__name__", function)))
            made.setdefault(arg_scope_func_key(function), {}).update(kwargs)
    _stack.append(made)
    try:
        yield made
    finally:
        _stack.pop()


def current_arg_scope() -> Dict[str, Dict[str, Any]]:
    """The defaults that scopes give at the moment, by functions."""
    return _stack[-1]


def has_arg_scope(func: Any) -> bool:
    """Whether arg_scope can set a function's defaults."""
    return hasattr(func, "_key_op")


def arg_scoped_arguments(func: Any) -> Any:
    """The names of a function's arguments that have defaults."""
    code, defaults = func.__wrapped__.__code__, func.__wrapped__.__defaults__ or ()
    return code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]


def arg_scope_of(function: Any) -> Dict[str, Any]:
    """The defaults that arg_scope gives a function at the moment."""
    return _stack[-1].get(arg_scope_func_key(function), {})


@add_arg_scope
def variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """get_variable that also takes a device."""
    from millrace.framework.graph import device as device_scope

    if collections is not None:
        collections = list(dict.fromkeys(collections))
    with device_scope(device or ""):
        return get_variable(
            name,
            shape,
            dtype,
            initializer,
            regularizer,
            trainable,
            collections,
            caching_device,
            partitioner,
            True,
            use_resource,
            custom_getter,
            synchronization=synchronization,
            aggregation=aggregation,
        )


@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A variable that is part of the model, with the arguments of `variable`. What a scope says of `variable` is not for it."""
    collections = list(collections or []) + [GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable.__wrapped__(name, shape, dtype, initializer, regularizer, trainable, collections, *args, **kwargs)  # type: ignore[attr-defined]


def add_model_variable(var: Any) -> None:
    """Puts a variable into the collection of the model's."""
    if var not in get_collection(GraphKeys.MODEL_VARIABLES):
        add_to_collection(GraphKeys.MODEL_VARIABLES, var)


def local_variable(initial_value: Any, validate_shape: bool = True, name: Optional[str] = None, use_resource: Optional[bool] = None) -> Any:
    """A variable of this process, which checkpoints leave out."""
    from millrace.ops.variables import Variable

    return Variable(
        initial_value, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], validate_shape=validate_shape, name=name, use_resource=use_resource
    )


def global_variable(initial_value: Any, validate_shape: bool = True, name: Optional[str] = None, use_resource: Optional[bool] = None) -> Any:
    """A variable that checkpoints keep, and that is not trained."""
    from millrace.ops.variables import Variable

    return Variable(
        initial_value, trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES], validate_shape=validate_shape, name=name, use_resource=use_resource
    )


def get_variables(scope: Any = None, suffix: Optional[str] = None, collection: str = GraphKeys.GLOBAL_VARIABLES) -> List[Any]:
    """The variables of a scope whose names end with a suffix."""
    name = scope.name if hasattr(scope, "name") else scope
    if suffix is not None:
        name = (name or "") + ".*" + (suffix if ":" in suffix else suffix + ":")
    return get_collection(collection, name)


def get_model_variables(scope: Any = None, suffix: Optional[str] = None) -> List[Any]:
    """The variables of the model."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: Optional[str] = None) -> List[Any]:
    """The trainable variables."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_local_variables(scope: Any = None, suffix: Optional[str] = None) -> List[Any]:
    """The variables of this process."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_variables_by_name(given_name: str, scope: Any = None) -> List[Any]:
    """The variables of a name, in whatever scopes."""
    return get_variables(scope, "/%s:" % given_name if scope else "/%s:|^%s:" % (given_name, given_name))


def get_variables_by_suffix(suffix: str, scope: Any = None) -> List[Any]:
    """The variables whose names end with a suffix."""
    return get_variables(scope, suffix)


def get_unique_variable(var_op_name: str) -> Any:
    """The variable of a name; ValueError when there is none."""
    found = get_variables(var_op_name)
    if not found:
        raise at_user_line(ValueError("Couldn't find variable %s" % var_op_name))
    for v in found:
        if v.op.name == var_op_name:
            return v
    raise at_user_line(ValueError("Variable %s does not uniquely identify a variable" % var_op_name))


def get_variable_full_name(var: Any) -> str:
    """The name in checkpoints: of a part that of the whole."""
    info = var._get_save_slice_info()
    return str(info.full_name if info else var.op.name)


def get_name_scope() -> str:
    """The name scope that operations are made in."""
    return get_default_graph().get_name_scope()


def get_placeholders(graph: Any) -> List[Any]:
    """The placeholders of a graph."""
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


class VariableDeviceChooser:
    """A device for each variable in turn, of num_tasks tasks of a job."""

    def __init__(self, num_tasks: int = 0, job_name: str = "ps", device_type: str = "CPU", device_index: int = 0, replica: Optional[int] = None) -> None:
        self._own = {"replica": replica, "device_type": device_type, "device_index": device_index}
        self._num_tasks, self._job_name, self._next = num_tasks, job_name, 0

    def __call__(self, op: Any) -> str:
        del op  # all are alike
        where: Dict[str, Any] = dict(self._own)
        if self._num_tasks > 0:
            where.update(job=self._job_name, task=self._next)
            self._next = (self._next + 1) % self._num_tasks
        return DeviceSpec(**where).to_string()


def filter_variables(var_list: Any, include_patterns: Any = None, exclude_patterns: Any = None, reg_search: bool = True) -> List[Any]:
    """The variables whose names fit some patterns and not others."""
    match = re.search if reg_search else re.match
    kept = [v for v in var_list if include_patterns is None or any(match(p, v.name) for p in include_patterns)]
    return [v for v in kept if exclude_patterns is None or not any(match(p, v.name) for p in exclude_patterns)]


def get_variables_to_restore(include: Any = None, exclude: Any = None) -> List[Any]:
    """The variables whose names start with some scopes and not with others."""
    for what, scopes in (("include", include), ("exclude", exclude)):
        if scopes is not None and not isinstance(scopes, (list, tuple)):
            raise at_user_line(TypeError("%s is provided but is not a list or a tuple." % what))
    chosen = get_variables() if include is None else [v for scope in include for v in get_variables(scope)]
    excluded = {v for scope in exclude or [] for v in get_variables(scope)}
    return [v for v in chosen if v not in excluded]


def assign_from_checkpoint_fn(model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False) -> Any:
    """A function of a session that gives variables the values of a checkpoint; None when all that may be missing are."""
    from millrace.train.saver import CheckpointReader, Saver

    if not var_list:
        raise at_user_line(ValueError("var_list cannot be empty"))
    if ignore_missing_vars:
        reader = CheckpointReader(model_path)
        wanted = var_list if isinstance(var_list, dict) else {v.op.name: v for v in var_list}
        var_list = {n: v for n, v in wanted.items() if reader.has_tensor(n)}
        for name in set(wanted) - set(var_list):
            tf_logging.warning("Variable %s missing in checkpoint %s", name, model_path)
        if not var_list:
            tf_logging.warning("No Variables to restore")
            return None
    saver = Saver(var_list, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


def assign_from_checkpoint(model_path: str, var_list: Any, ignore_missing_vars: bool = False) -> Any:
    """(an operation, what to feed it): gives variables the values of a checkpoint, and parts of one their parts. With a dictionary, a name
    may have a list of variables."""
    from millrace.train.saver import CheckpointReader

    reader = CheckpointReader(model_path)
    named = var_list.items() if isinstance(var_list, dict) else [(get_variable_full_name(v), v) for v in var_list]
    values = []
    for name, variables in named:
        if not reader.has_tensor(name):
            what = "Checkpoint is missing variable [%s]" % name
            if not ignore_missing_vars:
                raise at_user_line(ValueError(what))
            tf_logging.warning(what)
            continue
        whole = reader.get_tensor(name)
        for var in variables if isinstance(variables, (list, tuple)) else [variables]:
            part = var._get_save_slice_info()
            value = whole[tuple(slice(at, at + size) for at, size in zip(part.var_offset, part.var_shape))] if part else whole
            if not var.get_shape().is_compatible_with(value.shape):
                raise at_user_line(ValueError("Variable %s of shape %s cannot have %s of shape %s" % (var.op.name, var.get_shape(), name, value.shape)))
            values.append((var, value))
    return _assigned(values)


def _assigned(values: Any) -> Any:
    from millrace.ops import array_ops, control_flow_ops

    assigns, feeds = [], {}
    for var, value in values:
        place = array_ops.placeholder(var.dtype.base_dtype, var.get_shape(), name="placeholder/" + var.op.name)
        assigns.append(var.assign(place))
        feeds[place] = value
    return control_flow_ops.group(*assigns), feeds


def assign_from_values(var_names_to_values: Any) -> Any:
    """(an operation, what to feed it): gives variables values, by their names."""
    known = {v.op.name: v for v in get_variables()}
    for name in var_names_to_values:
        if name not in known:
            raise at_user_line(ValueError("Variable %s could not be found" % name))
    return _assigned([(known[name], value) for name, value in var_names_to_values.items()])


def assign_from_values_fn(var_names_to_values: Any) -> Any:
    """A function of a session that gives variables values, by their names."""
    operation, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(operation, feeds)


def is_tensor(x: Any) -> bool:
    """Whether a value is a tensor or a variable."""
    from millrace.framework.graph import Tensor
    from millrace.ops.variables import Variable

    return isinstance(x, (Tensor, Variable))


def nest_module() -> Any:
    """Functions of nested structures."""
    from millrace.framework import nest as module

    return module


def _later(name: str) -> Any:
    if name == "nest":
        return nest_module()
    raise AttributeError("tf.contrib.framework.%s is not provided by Millrace" % name)


__getattr__ = _not_provided.getter("contrib.framework", _later)
