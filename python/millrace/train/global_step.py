# SPDX-License-Identifier: Apache-2.0
"""The variable that counts steps."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, Tensor, get_default_graph
from millrace.ops.init_ops import zeros_initializer
from millrace.ops.variable_scope import get_variable
from millrace.ops.variables import Variable

GLOBAL_STEP_READ_KEY = "global_step_read_op_cache"


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """Its value in a session."""
    return int(sess.run(global_step_tensor))


def get_global_step(graph: Optional[Graph] = None) -> Any:
    """The variable that counts steps, or None."""
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) == 1:
        step = found[0]
    else:
        operation = graph._find("global_step") if not found else None
        if operation is None:
            return None
        step = next((v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if v.op is operation), operation.outputs[0])
    assert_global_step(step)
    return step


def create_global_step(graph: Optional[Graph] = None) -> Variable:
    """Makes the variable. ValueError when there is one."""
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise at_user_line(ValueError('"global_step" already exists.'))
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            "global_step",
            shape=[],
            dtype=dtypes.int64,
            initializer=zeros_initializer(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Optional[Graph] = None) -> Any:
    """The variable that counts steps, made if there is none."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def assert_global_step(global_step_tensor: Any) -> None:
    """TypeError unless it is a scalar integer."""
    if not isinstance(global_step_tensor, (Variable, Tensor)):
        raise at_user_line(TypeError('Existing "global_step" must be a Variable or Tensor: %s.' % (global_step_tensor,)))
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise at_user_line(TypeError('Existing "global_step" does not have integer type: %s' % global_step_tensor.dtype))
    if global_step_tensor.get_shape().ndims not in (0, None):
        raise at_user_line(TypeError('Existing "global_step" is not scalar: %s' % global_step_tensor.get_shape()))


def _get_or_create_global_step_read(graph: Optional[Graph] = None) -> Any:
    """A tensor of the steps before this one is counted, or None where none are. It waits for no increment: increments wait for it."""
    graph = graph or get_default_graph()
    cached = graph.get_collection_ref(GLOBAL_STEP_READ_KEY)
    step = get_global_step(graph)
    if not cached and step is not None:
        with graph.as_default(), graph.name_scope(None), graph.name_scope(step.op.name + "/"):
            cached.append((step.initialized_value() if isinstance(step, Variable) else step) + 0)
    return cached[0] if cached else None


def _increment_global_step(increment: Any, graph: Optional[Graph] = None) -> Any:
    """Adds to the variable that counts steps."""
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise at_user_line(ValueError("Global step tensor should be created by tf.train.get_or_create_global_step before calling increment."))
    assert_global_step(step)
    before = _get_or_create_global_step_read(graph)
    with graph.as_default(), graph.name_scope(None), graph.name_scope(step.op.name + "/"), graph.control_dependencies([before]):
        return step.assign_add(increment)
