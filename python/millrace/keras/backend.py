# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.backend: the session of models, the learning phase, and functions of tensors."""

from __future__ import annotations

import builtins
import contextlib
from typing import Any, Dict, Iterator, List, Optional

import numpy as np

from millrace.framework import dtypes, nest, numpy_cast
from millrace.framework import dtypes as dtypes_module  # noqa: F401
from millrace.framework.composite_tensors import SparseTensor, SparseTensorValue
from millrace.framework.convert import constant as _constant
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph, init_scope, name_scope, outermost_graph, reset_default_graph  # noqa: F401
from millrace.framework.default_session import get_default_session
from millrace.framework.session import Session
from millrace.framework.tensor_util import is_tensor
from millrace.keras.backend_windows import (  # noqa: F401
    bias_add,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    depthwise_conv2d,
    local_conv,
    local_conv1d,
    local_conv2d,
    pool1d,
    pool2d,
    pool3d,
    repeat_elements,
    resize_images,
    resize_volumes,
    rnn,
    separable_conv2d,
    spatial_2d_padding,
    spatial_3d_padding,
    temporal_padding,
)
from millrace.keras.backend_tensors import (  # noqa: F401
    expand_dims,
    gather,
    one_hot,
    ones_like,
    pow,
    reshape,
    reverse,
    shape,
    softmax,
    softplus,
    softsign,
    stack,
    tile,
    transpose,
    zeros_like,
)
from millrace.ops import array_ops, control_flow_ops, functional_ops, gen_ops, math_ops, matrix_ops, nn_ops, random_ops
from millrace.ops import nn_ops as nn  # noqa: F401
from millrace.ops import variables as variables_module  # noqa: F401
from millrace.keras.backend_settings import epsilon, floatx, image_data_format, is_tpu_strategy, set_epsilon, set_floatx  # noqa: F401
from millrace.keras.backend_settings import set_image_data_format  # noqa: F401
from millrace.keras.backend_ctc import ctc_batch_cost, ctc_decode, ctc_label_dense_to_sparse  # noqa: F401
from millrace.framework.unique_names import unique_name
from millrace.ops.gradients import gradients as _gradients
from millrace.ops.variables import Variable, global_variables, variables_initializer

_state: Dict[str, Any] = {"session": None}


# ---- graph and session ----


def _of_graph() -> Dict[str, Any]:
    """What is kept for a graph; for the body of a function what the graph around it has."""
    return outermost_graph().__dict__.setdefault("_keras", {"phase": None, "names": {}})


def get_session(op_input_list: Any = ()) -> Any:
    """The default session, or one of the backend's own on the graph of op_input_list, without it the default one; its variables have their first values."""
    session = get_default_session()
    if session is None:
        own, graph = _state["session"], next((x.graph for x in op_input_list if hasattr(x, "graph")), get_default_graph())
        if own is None or own.graph is not graph:
            own = _state["session"] = Session(graph=graph)
        session = own
    if not _state.get("manual"):
        initialize(session)
    return session


def track_tf_optimizer(tf_optimizer: Any) -> None:
    """Has sessions give an optimizer of tf.train first values: they do so for all variables of their graph, and there is nothing to be done."""


def set_session(session: Any) -> None:
    """Sets the session that models run in."""
    _state["session"] = session


def own_session() -> Any:
    """The session that models run in where no other one is the default; None until there is one."""
    return _state["session"]


def has_values(session: Any) -> bool:
    """Whether a session has been looked through for first values of what the default graph holds."""
    return session in [held for held, _ in get_default_graph().__dict__.get("_keras_known", ())]


def initialize(session: Any) -> None:
    """Gives new variables their first values, and fills new tables."""
    graph = session.graph
    known = graph.__dict__.setdefault("_keras_known", set())
    tables = [op for op in graph.get_collection("table_initializer") if (session, op) not in known]
    there = [*graph.get_collection("variables"), *graph.__dict__.get("_keras_metric_variables", [])]
    new = [v for v in there if (session, v) not in known]
    if not new and not tables:
        return
    from millrace.ops.variables import is_variable_initialized

    with graph.as_default():
        done = session.run([is_variable_initialized(v) for v in new])
        session.run([variables_initializer([v for v, ready in zip(new, done) if not ready]), *tables])
    known.update((session, made) for made in [*new, *tables])


_initialize_variables = initialize  # the name that programs of 1.13 to 1.15 say


def clear_session() -> None:
    """A new default graph, and no session on the old one."""
    reset_default_graph()
    _state["session"] = None


def get_uid(prefix: str = "") -> int:
    """How many names of a prefix there are now."""
    unique_name(prefix)
    return int(_of_graph()["names"][prefix])


def reset_uids() -> None:
    """Starts all names anew."""
    _of_graph()["names"].clear()


def phase_requests() -> int:
    """How often the learning phase, where it is not fixed, has been asked for in the default graph."""
    return int(_of_graph().get("requests", 0))


def manual_variable_initialization(value: bool) -> None:
    """Whether variables get no first values by themselves."""
    _state["manual"] = bool(value)


def learning_phase() -> Any:
    """Whether models train: a placeholder that is False unless it is fed, or what set_learning_phase has set."""
    state = _of_graph()
    if state["phase"] is None:
        with init_scope(), outermost_graph().name_scope(""):
            state["phase"] = array_ops.placeholder_with_default(False, [], name="keras_learning_phase")
    if not isinstance(state["phase"], (bool, int)):
        state["requests"] = state.get("requests", 0) + 1
    return state["phase"]


symbolic_learning_phase, get_graph = learning_phase, get_default_graph


@contextlib.contextmanager
def learning_phase_scope(value: int) -> Iterator[int]:
    """A context in which models train (1) or do not (0)."""
    if value not in (0, 1):
        raise at_user_line(ValueError("Expected learning phase to be 0 or 1."))
    state = _of_graph()
    before = state["phase"]
    set_learning_phase(value)
    try:
        yield value
    finally:
        state["phase"] = before


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "int32") -> Tensor:
    """The numbers from start (0 where only one bound is given) up to stop; none where stop is not above."""
    if stop is None:
        start, stop = 0, start
    if isinstance(start, int) and isinstance(stop, int) and step > 0 and stop < start:
        stop = start
    return math_ops.cast(gen_ops.range(start, stop, step), dtype)


def set_learning_phase(value: Any) -> None:
    """Sets it for good."""
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    _of_graph()["phase"] = int(value)


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x while training, else alt."""
    phase = learning_phase() if training is None else training
    if isinstance(phase, (bool, int)):
        chosen = x if phase else alt
        return chosen() if callable(chosen) else chosen
    made = control_flow_ops.smart_cond(
        phase,
        lambda: array_ops.identity(convert_to_tensor(x() if callable(x) else x)),
        lambda: array_ops.identity(convert_to_tensor(alt() if callable(alt) else alt)),
    )
    if training is None or phase is _of_graph()["phase"]:
        made._uses_learning_phase = True
    return made


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x unless models train, else alt."""
    return in_train_phase(alt, x, training)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two tensors, by a condition: a scalar, or one for each entry."""
    condition = math_ops.cast(condition, dtypes.bool_)
    if ndim(condition) == 0:
        return control_flow_ops.cond(condition, *[e if callable(e) else (lambda e=e: array_ops.identity(e)) for e in (then_expression, else_expression)])  # type: ignore[arg-type]
    x, y = (convert_to_tensor(e() if callable(e) else e) for e in (then_expression, else_expression))
    if (ndim(condition) or 0) > (ndim(x) or 0):
        raise at_user_line(
            ValueError(
                "Rank of `condition` should be less than or equal to rank of `then_expression` and `else_expression`. "
                "ndim(condition)=%s, ndim(then_expression)=%s" % (ndim(condition), ndim(x))
            )
        )
    if (ndim(condition) or 0) < (ndim(x) or 0):
        wide = array_ops.reshape(condition, array_ops.concat([shape(condition), [1] * (ndim(x) - ndim(condition))], 0))
        condition = gen_ops.logical_or(wide, zeros_like(x, dtypes.bool_))
    return array_ops.where(condition, x, y)


class _Function:
    """What K.function makes: `fetches` are run too, and those among fetch_callbacks are told what they gave."""

    def __init__(
        self, inputs: Any, outputs: Any, updates: Any = None, feed_dict: Any = None, fetches: Any = None, options: Any = None, run_metadata: Any = None
    ) -> None:
        self._structure, self._inputs = inputs, nest.flatten(inputs)
        self._outputs = list(outputs) if isinstance(outputs, tuple) else outputs
        self.inputs, self.outputs = self._inputs, nest.flatten(outputs)
        self._updates = [u if not isinstance(u, tuple) else u[0].assign(u[1]) for u in updates or []]
        self._feeds, self.fetches, self._options = feed_dict, list(fetches or []), {"options": options, "run_metadata": run_metadata}
        self.fetch_callbacks: Dict[Any, Any] = {}

    def __call__(self, values: Any) -> Any:
        if isinstance(self._structure, (list, tuple)) != isinstance(values, (list, tuple)):
            raise TypeError("`inputs` should be a list or tuple." if isinstance(self._structure, (list, tuple)) else "`inputs` should be a single value.")
        feeds: Dict[Any, Any] = dict(self._feeds or {})
        structure = self._structure[: len(values)] if isinstance(self._structure, (list, tuple)) else self._structure  # the last ones may have values
        for t, v in zip(self._inputs, nest.flatten_up_to(structure, values) if nest.is_sequence(structure) else [values]):
            if isinstance(t, SparseTensor):
                coo = v.tocoo()
                v = SparseTensorValue(np.stack([coo.row, coo.col], 1).astype(np.int64), coo.data, coo.shape)
            if not isinstance(t, (bool, int)) and v is not None:  # None stands for what the placeholder has
                if isinstance(v, (Tensor, Variable)):
                    v = get_session().run(math_ops.cast(v, t.dtype.base_dtype))
                feeds[t] = v
        outputs, _, fetched = get_session().run([self._outputs, self._updates, self.fetches], feeds, **self._options)
        for fetch, value in zip(self.fetches, fetched):
            if fetch in self.fetch_callbacks:
                self.fetch_callbacks[fetch](value)
        return outputs


Function = _Function


def function(inputs: Any, outputs: Any, updates: Any = None, **kwargs: Any) -> _Function:
    """A function of what is fed: it takes and gives arrays in the structure of inputs and outputs. updates are run after the outputs; further
    arguments: fetches, which are run too, feed_dict, options and run_metadata of the run."""
    unknown = sorted(set(kwargs) - {"feed_dict", "fetches", "options", "run_metadata"})
    if unknown:
        raise ValueError("Invalid argument %r passed to K.function" % unknown[0])
    return _Function(inputs, outputs, updates, **kwargs)


def get_value(x: Any) -> Any:
    """The value of a variable or tensor; what is neither is its own."""
    return x.eval(session=get_session()) if is_tensor(x) else x


def eval(x: Any) -> Any:
    """The value of a variable or tensor; of a sparse one, dense."""
    return get_session().run(to_dense(x))


def batch_get_value(tensors: Any) -> List[Any]:
    """The values of several."""
    return get_session().run(list(tensors)) if tensors else []


def set_value(x: Any, value: Any) -> None:
    """Sets a variable."""
    x.load(numpy_cast.cast(value, x.dtype.base_dtype), get_session())


def batch_set_value(tuples: Any) -> None:
    """Sets several variables: pairs of a variable and its value."""
    for x, value in tuples:
        set_value(x, value)


# ---- settings ----


def backend() -> str:
    """The name of what computes."""
    return "tensorflow"


def cast_to_floatx(x: Any) -> Any:
    """An array of the type of weights."""
    return np.asarray(x, dtype=floatx())


# ---- tensors ----


def placeholder(
    shape: Any = None, ndim: Optional[int] = None, dtype: Any = None, sparse: bool = False, name: Optional[str] = None, ragged: bool = False
) -> Any:
    """A placeholder; with sparse of a sparse tensor, with ragged of a ragged one, whose ragged dimensions are those of no size after the first."""
    sizes = shape if shape is not None or ndim is None else [None] * ndim
    sizes = None if sizes is None else list(sizes)
    if ragged:
        if sparse:
            raise at_user_line(ValueError("Cannot set both sparse and ragged to True when creating a placeholder."))
        if sizes is None:
            raise at_user_line(ValueError("A ragged placeholder needs a shape or ndim."))
        from millrace.ops.ragged.functions import placeholder as ragged_placeholder

        if sizes[1:2] != [None]:
            return placeholder(sizes, dtype=dtype, name=name)
        count = next((i for i, size in enumerate(sizes[1:]) if size is not None), len(sizes) - 1)
        return ragged_placeholder(dtypes.as_dtype(dtype or floatx()), count, sizes[count + 1 :], name)
    if not sparse:
        made: Any = array_ops.placeholder(dtype or floatx(), sizes, name)
    else:
        from millrace.ops.array_ops import sparse_placeholder

        made = sparse_placeholder(dtype or floatx(), sizes, name)
    made._uses_learning_phase = False
    return made


def is_placeholder(x: Any) -> bool:
    """Whether it is fed."""
    return isinstance(x, SparseTensor) or getattr(getattr(x, "op", None), "type", "") in ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")


def is_sparse(tensor: Any) -> bool:
    """Whether it is a sparse tensor."""
    return isinstance(tensor, SparseTensor)


def to_dense(tensor: Any) -> Any:
    """A sparse tensor as a dense one, which others are."""
    if not is_sparse(tensor):
        return tensor
    from millrace.ops.sparse_ops import sparse_tensor_to_dense

    return sparse_tensor_to_dense(tensor)


def variable(value: Any, dtype: Any = None, name: Optional[str] = None, constraint: Any = None) -> Any:
    """A variable; of a sparse matrix of SciPy a sparse tensor."""
    if hasattr(value, "tocoo"):
        coo = value.tocoo()
        made: Any = SparseTensor(np.stack([coo.row, coo.col], 1).astype(np.int64), convert_to_tensor(coo.data, dtypes.as_dtype(dtype or floatx())), coo.shape)
        made._uses_learning_phase = False
        return made
    kind = dtypes.as_dtype(dtype or floatx())
    first = value if hasattr(value, "graph") else convert_to_tensor(np.asarray(value), kind)
    return Variable(first, dtype=kind, name=name, constraint=constraint, use_resource=True)


def int_shape(x: Any) -> Any:
    """The shape as a tuple, with None for what is not known; of an array, too."""
    if isinstance(x, np.ndarray):
        return x.shape
    shape = x.get_shape()
    return None if shape.ndims is None else tuple(shape.as_list())


def ndim(x: Any) -> Any:
    """The rank."""
    return x.get_shape().ndims


def dtype(x: Any) -> str:
    """The name of the type."""
    return x.dtype.base_dtype.name


def dot(x: Any, y: Any) -> Any:
    """x times y, over the last axis of x."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    return matrix_ops.matmul(x, y) if ndim(x) == 2 and ndim(y) == 2 else matrix_ops.tensordot(x, y, [[ndim(x) - 1], [0 if ndim(y) < 2 else ndim(y) - 2]])


def _reduction(op: Any, doc: str) -> Any:
    def reduce(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = convert_to_tensor(x)
        return op(math_ops.cast(x, dtypes.float32) if x.dtype.base_dtype == dtypes.bool_ else x, axis, keepdims)

    reduce.__name__ = reduce.__qualname__ = op.__name__.removeprefix("reduce_")
    reduce.__doc__ = doc
    return reduce


mean, sum, max, min, prod = (
    _reduction(op, "Over axes.") for op in (math_ops.reduce_mean, math_ops.reduce_sum, math_ops.reduce_max, math_ops.reduce_min, math_ops.reduce_prod)
)
square, sqrt, exp, log, abs, sign, sin, cos, round = (
    gen_ops.square,
    gen_ops.sqrt,
    gen_ops.exp,
    gen_ops.log,
    math_ops.abs,
    gen_ops.sign,
    gen_ops.sin,
    gen_ops.cos,
    math_ops.round,
)
sigmoid, tanh = math_ops.sigmoid, math_ops.tanh
greater_equal, less_equal, in_top_k = gen_ops.greater_equal, gen_ops.less_equal, nn_ops.in_top_k
logsumexp, cumsum, cumprod = math_ops.reduce_logsumexp, math_ops.cumsum, math_ops.cumprod


def relu(x: Any, alpha: Any = 0.0, max_value: Any = None, threshold: float = 0) -> Any:
    """max(x, 0), with a slope alpha below and a largest value."""
    x, plain = convert_to_tensor(x), isinstance(alpha, (int, float))
    if plain and threshold == 0 and alpha and max_value is None:
        return nn_ops.leaky_relu(x, alpha)
    if plain and threshold == 0 and not alpha and max_value == 6:
        return nn_ops.relu6(x)
    if threshold:
        low = array_ops.zeros_like(x) if plain and alpha == 0 else alpha * (x - threshold)
        made = array_ops.where(gen_ops.greater(x, math_ops.cast(threshold, x.dtype.base_dtype)), x, low)
    elif not plain or alpha != 0:
        made = nn_ops.relu(x) - alpha * nn_ops.relu(-x)
    else:
        made = nn_ops.relu(x)
    return made if max_value is None else clip(made, 0.0 if plain and alpha == 0 else -np.inf, max_value)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x, or alpha (exp(x) - 1) below zero."""
    made = gen_ops.elu(x)
    return made if alpha == 1.0 else array_ops.where(gen_ops.greater(x, 0.0), made, alpha * made)


maximum, minimum, equal, not_equal, greater, less = (math_ops.maximum, math_ops.minimum, math_ops.equal, gen_ops.not_equal, gen_ops.greater, gen_ops.less)
cast, identity, l2_normalize = math_ops.cast, array_ops.identity, nn_ops.l2_normalize


def argmax(x: Any, axis: int = -1) -> Any:
    """Where the largest value is."""
    return math_ops.argmax(x, axis)


def argmin(x: Any, axis: int = -1) -> Any:
    """Where the smallest value is."""
    return math_ops.argmin(x, axis)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: Optional[str] = None) -> Any:
    """A constant."""
    return _constant(value, dtype or floatx(), shape, name or "Const")


def random_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Optional[int] = None) -> Any:
    """Normally distributed numbers."""
    return random_ops.random_normal(shape, mean, stddev, dtype or floatx(), np.random.randint(10**7) if seed is None else seed)


def random_uniform(shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Optional[int] = None) -> Any:
    """Evenly distributed numbers."""
    return random_ops.random_uniform(shape, minval, maxval, dtype or floatx(), np.random.randint(10**7) if seed is None else seed)


def truncated_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Optional[int] = None) -> Any:
    """Normally distributed numbers within two standard deviations."""
    return random_ops.truncated_normal(shape, mean, stddev, dtype or floatx(), np.random.randint(10**7) if seed is None else seed)


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: Optional[int] = None) -> Any:
    """Ones with a probability, else zeros."""
    drawn = random_uniform(shape, 0.0, 1.0, dtype, seed)
    return array_ops.where(gen_ops.less_equal(drawn, p), array_ops.ones_like(drawn), array_ops.zeros_like(drawn))


def random_uniform_variable(shape: Any, low: float, high: float, dtype: Any = None, name: Optional[str] = None, seed: Optional[int] = None) -> Any:
    """A variable of evenly distributed numbers."""
    return Variable(random_uniform(shape, low, high, dtype, np.random.randint(10**9) if seed is None else seed), name=name, use_resource=True)


def random_normal_variable(shape: Any, mean: float, scale: float, dtype: Any = None, name: Optional[str] = None, seed: Optional[int] = None) -> Any:
    """A variable of normally distributed numbers."""
    return Variable(random_normal(shape, mean, scale, dtype, np.random.randint(10**9) if seed is None else seed), name=name, use_resource=True)


def eye(size: int, dtype: Any = None, name: Optional[str] = None) -> Any:
    """A variable that holds the identity matrix."""
    return variable(np.eye(size), dtype, name)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The variance over axes."""
    x = convert_to_tensor(x)
    x = math_ops.cast(x, floatx()) if x.dtype.base_dtype == dtypes.bool_ else x
    return math_ops.reduce_mean(gen_ops.square(x - math_ops.reduce_mean(x, axis, True)), axis, keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The standard deviation over axes."""
    return gen_ops.sqrt(var(x, axis, keepdims))


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether one is not 0."""
    return math_ops.reduce_any(math_ops.cast(x, dtypes.bool_), axis, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether none is 0."""
    return math_ops.reduce_all(math_ops.cast(x, dtypes.bool_), axis, keepdims)


def stop_gradient(variables: Any) -> Any:
    """Tensors that nothing flows back through."""
    return [gen_ops.stop_gradient(v) for v in variables] if isinstance(variables, (list, tuple)) else gen_ops.stop_gradient(variables)


def repeat(x: Any, n: int) -> Any:
    """Each vector n times, along a new axis after the batch."""
    return array_ops.tile(array_ops.expand_dims(convert_to_tensor(x), 1), [1, n, 1])


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """For each example the product of x and y over an axis of each."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    a, b = (axes, axes) if isinstance(axes, int) else axes if axes is not None else (ndim(x) - 1, ndim(y) - 2)
    more = builtins.abs(ndim(x) - ndim(y))
    if ndim(x) > ndim(y):
        y = array_ops.reshape(y, array_ops.concat([array_ops.shape(y), [1] * more], 0))
    elif ndim(y) > ndim(x):
        x = array_ops.reshape(x, array_ops.concat([array_ops.shape(x), [1] * more], 0))
    if ndim(x) == 2 and ndim(y) == 2:
        made = math_ops.reduce_sum(x * y, a) if a == b else math_ops.reduce_sum(array_ops.transpose(x, [1, 0]) * y, b)
    else:
        made = matrix_ops.matmul(x, y, adjoint_a=a != ndim(x) - 1, adjoint_b=b == ndim(y) - 1)
    if more:
        start = ndim(x) + ndim(y) - 3 - 1 if ndim(x) > ndim(y) else ndim(x) - 1
        start = ndim(made) - more if ndim(x) == ndim(y) else start
        made = array_ops.squeeze(made, list(range(start, start + more)))
    return array_ops.expand_dims(made, 1) if ndim(made) == 1 else made


def update(x: Any, new_x: Any) -> Any:
    """An operation that sets a variable."""
    return x.assign(new_x)


def update_add(x: Any, increment: Any) -> Any:
    """An operation that adds to a variable."""
    return x.assign_add(increment)


def update_sub(x: Any, decrement: Any) -> Any:
    """An operation that subtracts from a variable."""
    return x.assign_sub(decrement)


def moving_average_update(x: Any, value: Any, momentum: Any) -> Any:
    """An operation that moves an average towards a value: that of the values alone, whatever it began with."""
    from millrace.train import moving_averages  # millrace.train needs layers, which need this module

    return moving_averages.assign_moving_average(x, value, momentum, zero_debias=True)


def normalize_batch_in_training(x: Any, gamma: Any, beta: Any, reduction_axes: Any, epsilon: float = 1e-3) -> Any:
    """(normalised, mean, variance) by the statistics over axes."""
    x = convert_to_tensor(x)
    axes = sorted(reduction_axes)
    if axes == [0, 1, 2] and ndim(x) == 4 and gamma is not None and beta is not None and x.dtype.base_dtype == dtypes.float32:
        return nn_ops.fused_batch_norm(x, gamma, beta, epsilon=epsilon)
    mean_, variance = nn_ops.moments(x, axes)
    size = [1 if i in axes else -1 for i in range(ndim(x))]
    wide = [
        None
        if v is None
        else v
        if axes == list(range(ndim(x)))[:-1]
        else array_ops.reshape(v, [s if s == 1 else x.get_shape().as_list()[i] for i, s in enumerate(size)])
        for v in (mean_, variance, beta, gamma)
    ]
    return nn_ops.batch_normalization(x, *wide, epsilon), mean_, variance  # type: ignore[arg-type, call-arg]


def batch_normalization(x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3) -> Any:
    """Normalised by a mean and a variance: numbers for each place along an axis, or tensors that broadcast."""
    rank = ndim(x)
    if rank is not None and axis not in (-1, rank - 1):
        size = [-1 if i == axis % rank else 1 for i in range(rank)]
        mean, var, beta, gamma = (v if v is None or ndim(convert_to_tensor(v)) != 1 else array_ops.reshape(v, size) for v in (mean, var, beta, gamma))
    return nn_ops.batch_normalization(x, mean, var, beta, gamma, epsilon)


def dropout(x: Any, level: float, noise_shape: Any = None, seed: Optional[int] = None) -> Any:
    """Elements set to zero with a probability, others scaled up."""
    return nn_ops.dropout(x * 1.0, 1.0 - level, noise_shape, np.random.randint(10**7) if seed is None else seed)


def map_fn(fn: Any, elems: Any, name: Optional[str] = None, dtype: Any = None) -> Any:
    """A function of each element."""
    return functional_ops.map_fn(fn, elems, dtype=dtype, name=name)


def foldl(fn: Any, elems: Any, initializer: Any = None, name: Optional[str] = None) -> Any:
    """A function of what came before and of each element."""
    return functional_ops.foldl(fn, elems, initializer=initializer, name=name)


def foldr(fn: Any, elems: Any, initializer: Any = None, name: Optional[str] = None) -> Any:
    """The same from the last element on."""
    return functional_ops.foldr(fn, elems, initializer=initializer, name=name)


def print_tensor(x: Any, message: str = "") -> Any:
    """x, which is printed when it is run."""
    return control_flow_ops.Print(x, [x], message)


def clip(x: Any, min_value: Any, max_value: Any) -> Any:
    """Within bounds."""
    return math_ops.clip_by_value(x, min_value, max_value)


def squeeze(x: Any, axis: int) -> Any:
    """Without an axis."""
    return array_ops.squeeze(x, [axis])


def permute_dimensions(x: Any, pattern: Any) -> Any:
    """Axes in another order."""
    return array_ops.transpose(x, list(pattern))


def concatenate(tensors: Any, axis: int = -1) -> Any:
    """Joined along an axis."""
    return array_ops.concat(list(tensors), axis % ndim(tensors[0]) if axis < 0 else axis)


def flatten(x: Any) -> Any:
    """As a vector."""
    return array_ops.reshape(x, [-1])


def batch_flatten(x: Any) -> Any:
    """As [batch, elements]."""
    size = x.get_shape()[1:].num_elements()
    return array_ops.reshape(x, [-1, size if size is not None else math_ops.reduce_prod(array_ops.shape(x)[1:])])


def zeros(shape: Any, dtype: Any = None, name: Optional[str] = None) -> Any:
    """A variable of zeros."""
    return variable(np.zeros(shape), dtype, name)


def ones(shape: Any, dtype: Any = None, name: Optional[str] = None) -> Any:
    """A variable of ones."""
    return variable(np.ones(shape), dtype, name)


def gradients(loss: Any, variables: Any) -> Any:
    """The gradients of a loss."""
    return _gradients(loss, variables, colocate_gradients_with_ops=True)


def hard_sigmoid(x: Any) -> Any:
    """0.2 x + 0.5 within 0 and 1."""
    return clip(0.2 * x + 0.5, 0.0, 1.0)


def _logits_of(output: Any, op_type: str) -> Any:
    """What probabilities were computed from by an op of that type, which is more exact than they are; None where they were not."""
    return output.op.inputs[0] if isinstance(output, Tensor) and output.op.type == op_type else None


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """Of probabilities, or of logits."""
    logits = output if from_logits else _logits_of(output, "Softmax")
    if logits is not None:
        return nn_ops.softmax_cross_entropy_with_logits(labels=target, logits=logits, axis=axis)
    output = output / math_ops.reduce_sum(output, axis, True)
    return -math_ops.reduce_sum(target * gen_ops.log(clip(output, epsilon(), 1 - epsilon())), axis)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """Of numbers of classes, [...] or [..., 1], and outputs [..., classes], or with the classes along another axis."""
    logits = output if from_logits else _logits_of(output, "Softmax")
    if logits is None:
        logits = gen_ops.log(clip(output, epsilon(), 1 - epsilon()))
    rank, target = ndim(logits), math_ops.cast(target, dtypes.int64)
    if rank is None and axis != -1:
        raise at_user_line(ValueError("Cannot compute sparse categorical crossentropy with `axis=%d` on an output tensor with unknown rank" % axis))
    if rank is not None and axis not in (-1, rank - 1):
        if not -rank <= axis < rank:
            raise at_user_line(ValueError("axis = %d is none of an output of rank %d" % (axis, rank)))
        logits = array_ops.transpose(logits, [i for i in range(rank) if i != axis % rank] + [axis % rank])
    if rank is None or ndim(target) == rank - 1:
        return nn_ops.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
    sizes = array_ops.shape(logits)
    each = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=flatten(target), logits=array_ops.reshape(logits, [-1, sizes[-1]]))
    return each if rank < 3 else array_ops.reshape(each, sizes[:-1])


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """Of each number."""
    logits = output if from_logits else _logits_of(output, "Sigmoid")
    if logits is not None:
        return nn_ops.sigmoid_cross_entropy_with_logits(labels=target, logits=logits)
    output = clip(output, epsilon(), 1 - epsilon())
    return -(target * gen_ops.log(output + epsilon()) + (1 - target) * gen_ops.log(1 - output + epsilon()))


def count_params(x: Any) -> int:
    """How many numbers a variable has."""
    return int(x.get_shape().num_elements())


def is_keras_tensor(x: Any) -> bool:
    """Whether it came out of a layer or Input; ValueError for what is no tensor."""
    if not isinstance(x, (Tensor, Variable, SparseTensor)):
        raise ValueError("Unexpectedly found an instance of type `%s`. Expected a symbolic tensor instance." % type(x))
    return hasattr(x, "_keras_history")


all_variables = global_variables
