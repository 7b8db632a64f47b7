# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.backend: the session of models, the learning phase, and functions of tensors."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import get_default_graph, name_scope, reset_default_graph  # noqa: F401
from millrace.framework.session import Session, get_default_session
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops, nn_ops, random_ops
from millrace.ops.gradients import gradients as _gradients
from millrace.ops.variables import Variable, global_variables, variables_initializer

_state: Dict[str, Any] = {"session": None, "epsilon": 1e-7, "floatx": "float32", "format": "channels_last"}


# ---- graph and session ----

def _of_graph() -> Dict[str, Any]:
    return get_default_graph().__dict__.setdefault("_keras", {"phase": None, "names": {}})  # type: ignore[no-any-return]


def get_session() -> Any:
    """The default session, or one of the backend's own on the default graph; its variables have their first values."""
    session = get_default_session()
    if session is None:
        own = _state["session"]
        if own is None or own.graph is not get_default_graph():
            own = _state["session"] = Session()
        session = own
    initialize(session)
    return session


def set_session(session: Any) -> None:
    """Sets the session that models run in."""
    _state["session"] = session


def initialize(session: Any) -> None:
    """Gives new variables their first values."""
    known = session.graph.__dict__.setdefault("_keras_known", set())
    new = [v for v in session.graph.get_collection("variables") if (session, v) not in known] if session.graph is not None else []
    if not new:
        return
    from millrace.ops.variables import is_variable_initialized
    with session.graph.as_default():
        there = session.run([is_variable_initialized(v) for v in new])
        session.run(variables_initializer([v for v, done in zip(new, there) if not done]))
    known.update((session, v) for v in new)


def clear_session() -> None:
    """A new default graph, and no session on the old one."""
    reset_default_graph()
    _state["session"] = None


def unique_name(stem: str) -> str:
    """stem, stem_1 and so on, in the default graph."""
    names = _of_graph()["names"]
    count = names.get(stem, 0)
    names[stem] = count + 1
    return stem if count == 0 else "%s_%d" % (stem, count)


def get_uid(prefix: str = "") -> int:
    """How many names of a prefix there are now."""
    unique_name(prefix)
    return int(_of_graph()["names"][prefix])


def learning_phase() -> Any:
    """Whether models train: a placeholder that is False unless it is fed, or what set_learning_phase has set."""
    state = _of_graph()
    if state["phase"] is None:
        with get_default_graph().name_scope(""):
            state["phase"] = array_ops.placeholder_with_default(False, [], name="keras_learning_phase")
    return state["phase"]


def set_learning_phase(value: Any) -> None:
    """Sets it for good."""
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    _of_graph()["phase"] = bool(value)


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x while training, else alt."""
    phase = learning_phase() if training is None else training
    return control_flow_ops.smart_cond(bool(phase) if isinstance(phase, (int, bool)) else phase, x if callable(x) else lambda: convert_to_tensor(x),
                                       alt if callable(alt) else lambda: convert_to_tensor(alt))


class _Function:
    def __init__(self, inputs: Any, outputs: Any, updates: Any = None) -> None:
        self._inputs, self._outputs = list(inputs), list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        self._updates = [u if not isinstance(u, tuple) else u[0].assign(u[1]) for u in updates or []]

    def __call__(self, values: Any) -> List[Any]:
        feeds = {t: v for t, v in zip(self._inputs, values) if not isinstance(t, (bool, int))}
        return get_session().run([self._outputs, self._updates], feeds)[0]  # type: ignore[no-any-return]


def function(inputs: Any, outputs: Any, updates: Any = None, **unused: Any) -> _Function:
    """A function of lists of arrays."""
    return _Function(inputs, outputs, updates)


def get_value(x: Any) -> Any:
    """The value of a variable or tensor."""
    return get_session().run(x)


eval = get_value  # noqa: A001 - TensorFlow's name


def batch_get_value(tensors: Any) -> List[Any]:
    """The values of several."""
    return get_session().run(list(tensors)) if tensors else []


def set_value(x: Any, value: Any) -> None:
    """Sets a variable."""
    x.load(np.asarray(value, x.dtype.base_dtype.as_numpy_dtype), get_session())


def batch_set_value(pairs: Any) -> None:
    """Sets several variables."""
    for x, value in pairs:
        set_value(x, value)


# ---- settings ----

def epsilon() -> float:
    """A small number."""
    return float(_state["epsilon"])


def set_epsilon(value: float) -> None:
    """Sets it."""
    _state["epsilon"] = value


def floatx() -> str:
    """The type of weights."""
    return str(_state["floatx"])


def set_floatx(value: str) -> None:
    """Sets it."""
    _state["floatx"] = value


def image_data_format() -> str:
    """Where the channels are."""
    return str(_state["format"])


def set_image_data_format(value: str) -> None:
    """Sets it."""
    if value not in ("channels_last", "channels_first"):
        raise ValueError("Unknown data_format: %s" % value)
    _state["format"] = value


# ---- tensors ----

def placeholder(shape: Any = None, ndim: Optional[int] = None, dtype: Any = None, sparse: bool = False, name: Optional[str] = None) -> Any:
    """A placeholder."""
    return array_ops.placeholder(dtype or floatx(), shape if shape is not None or ndim is None else [None] * ndim, name)


def variable(value: Any, dtype: Any = None, name: Optional[str] = None, constraint: Any = None) -> Any:
    """A variable."""
    return Variable(convert_to_tensor(np.asarray(value), dtypes.as_dtype(dtype or floatx())), name=name, constraint=constraint)


def int_shape(x: Any) -> Any:
    """The shape as a tuple, with None for what is not known."""
    shape = x.get_shape()
    return None if shape.ndims is None else tuple(shape.as_list())


def ndim(x: Any) -> Any:
    """The rank."""
    return x.get_shape().ndims


def dtype(x: Any) -> str:
    """The name of the type."""
    return x.dtype.base_dtype.name  # type: ignore[no-any-return]


def dot(x: Any, y: Any) -> Any:
    """x times y, over the last axis of x."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    return matrix_ops.matmul(x, y) if ndim(x) == 2 and ndim(y) == 2 else matrix_ops.tensordot(x, y, [[ndim(x) - 1], [0 if ndim(y) < 2 else ndim(y) - 2]])


def _reduction(op: Any, doc: str) -> Any:
    def reduce(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = convert_to_tensor(x)
        return op(math_ops.cast(x, dtypes.float32) if x.dtype.base_dtype == dtypes.bool_ else x, axis, keepdims)
    reduce.__doc__ = doc
    return reduce


mean, sum, max, min, prod = (_reduction(op, "Over axes.") for op in (  # noqa: A001 - TensorFlow's names
    math_ops.reduce_mean, math_ops.reduce_sum, math_ops.reduce_max, math_ops.reduce_min, math_ops.reduce_prod))
square, sqrt, exp, log, abs, sign, sin, cos, round = (gen_ops.square, gen_ops.sqrt, gen_ops.exp, gen_ops.log, math_ops.abs, gen_ops.sign,  # noqa: A001
                                                      gen_ops.sin, gen_ops.cos, math_ops.round)
relu, softmax, softplus, sigmoid, tanh, elu = nn_ops.relu, nn_ops.softmax, gen_ops.softplus, math_ops.sigmoid, math_ops.tanh, gen_ops.elu
pow, maximum, minimum, equal, not_equal, greater, less = (math_ops.pow, math_ops.maximum, math_ops.minimum, math_ops.equal,  # noqa: A001
                                                          gen_ops.not_equal, gen_ops.greater, gen_ops.less)
reshape, shape, expand_dims, transpose, stop_gradient, tile, gather, stack = (array_ops.reshape, array_ops.shape, array_ops.expand_dims, array_ops.transpose,
                                                                              gen_ops.stop_gradient, array_ops.tile, array_ops.gather, array_ops.stack)
cast, argmax, argmin, identity, l2_normalize = math_ops.cast, math_ops.argmax, math_ops.argmin, array_ops.identity, nn_ops.l2_normalize
one_hot, zeros_like, ones_like, constant = array_ops.one_hot, array_ops.zeros_like, array_ops.ones_like, convert_to_tensor
random_normal, random_uniform = random_ops.random_normal, random_ops.random_uniform


def clip(x: Any, min_value: Any, max_value: Any) -> Any:
    """Within bounds."""
    return math_ops.clip_by_value(x, min_value, max_value)  # type: ignore[attr-defined]


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
    return _gradients(loss, variables)


def hard_sigmoid(x: Any) -> Any:
    """0.2 x + 0.5 within 0 and 1."""
    return clip(0.2 * x + 0.5, 0.0, 1.0)


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """Of probabilities, or of logits."""
    if from_logits:
        return nn_ops.softmax_cross_entropy_with_logits(labels=target, logits=output)
    output = output / math_ops.reduce_sum(output, axis, True)
    return -math_ops.reduce_sum(target * gen_ops.log(clip(output, epsilon(), 1 - epsilon())), axis)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """Of numbers of classes."""
    logits = output if from_logits else gen_ops.log(clip(output, epsilon(), 1 - epsilon()))
    width = ndim(logits)
    target = math_ops.cast(target, dtypes.int64)
    if ndim(target) == width:
        target = array_ops.squeeze(target, [-1])
    return nn_ops.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """Of each number."""
    if not from_logits:
        output = clip(output, epsilon(), 1 - epsilon())
        output = gen_ops.log(output / (1 - output))
    return nn_ops.sigmoid_cross_entropy_with_logits(labels=target, logits=output)


def count_params(x: Any) -> int:
    """How many numbers a variable has."""
    return int(x.get_shape().num_elements())


def is_keras_tensor(x: Any) -> bool:
    """Whether it came out of a layer or Input."""
    return hasattr(x, "_keras_history")


all_variables = global_variables
