# SPDX-License-Identifier: Apache-2.0
"""tf.GradientTape in graphs: gradients through the operations that were made while it recorded."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List, Optional, Tuple

from millrace.framework import nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, get_default_graph, outermost_graph
from millrace.framework.replication import UnconnectedGradients
from millrace.ops import array_ops, gradients, parallel_for, variables
from millrace.ops.variables import Variable

_OF_VARIABLES = ("Variable", "VariableV2", "VarHandleOp", "ReadVariableOp")


def _zeros(target: Any, source: Any, shared: int) -> Any:
    """Derivatives of what does not depend on source: target's dimensions and then source's, without the first `shared` of these."""
    target, source = convert_to_tensor(target), convert_to_tensor(source)
    return array_ops.zeros(array_ops.concat([array_ops.shape(target), array_ops.shape(source)[shared:]], 0), target.dtype.base_dtype)


class GradientTape:
    """Differentiates what is made within `with tf.GradientTape() as tape:` by tensors that `watch` names, and by trainable variables."""

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent, self._accessed = persistent, watch_accessed_variables
        self._watched: List[Any] = []
        self._read: List[Any] = []  # trainable variables that were read while it recorded
        self._spans: List[Tuple[Any, int, Optional[int]]] = []  # (graph, its last operation before, the last one within)
        self._used = False

    def __enter__(self) -> "GradientTape":
        self._start()
        return self

    def __exit__(self, *unused: Any) -> None:
        self._stop()

    def _start(self) -> None:
        if self._recording():
            raise at_user_line(ValueError("Tape is already recording."))
        graph = get_default_graph()
        self._spans.append((graph, graph.version, None))
        variables.tapes.append(self)

    def _stop(self) -> None:
        if not self._recording():
            raise at_user_line(ValueError("Tape is not recording."))
        variables.tapes.remove(self)
        graph, first, _ = self._spans.pop()
        self._spans.append((graph, first, graph.version))

    def _recording(self) -> bool:
        return bool(self._spans) and self._spans[-1][2] is None

    def watch(self, tensor: Any) -> None:
        """Makes what is computed of a tensor (or of all in a structure) differentiable by it."""
        for one in nest.flatten(tensor):
            if not isinstance(one, (Tensor, Variable)):
                raise at_user_line(ValueError("Passed in object of type %s, not tf.Tensor" % type(one)))
            self._watched.append(one)

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A scope whose operations are not recorded."""
        self._stop()
        try:
            yield
        finally:
            self._start()

    def reset(self) -> None:
        """Forgets what was recorded and watched."""
        if self._recording():
            variables.tapes.remove(self)
        self._watched, self._read, self._spans = [], [], []
        self._start()

    def note(self, variable: Any) -> None:
        """Takes note of a variable that is read."""
        if self._accessed and variable.trainable and not any(v is variable for v in self._read):
            self._read.append(variable)

    def _is_recorded(self, op: Any) -> bool:
        return any(op.graph is graph and first < op._id and (last is None or op._id <= last) for graph, first, last in self._spans)

    def _outside(self, targets: List[Any], sources: List[Any]) -> List[Tensor]:
        """Tensors that targets are computed of, and that were not made while it recorded."""
        own = {id(s) for s in sources}
        waiting, seen, found = [convert_to_tensor(t) for t in targets], set(), []
        while waiting:
            tensor = waiting.pop()
            if tensor in seen or id(tensor) in own:
                continue
            seen.add(tensor)
            op = tensor.op
            if op.type in _OF_VARIABLES or op.type == "Identity" and op.inputs[0].op.type in _OF_VARIABLES:
                continue
            if self._is_recorded(op):
                waiting.extend(op.inputs)
            else:
                found.append(tensor)
        return found

    def _is_watched(self, source: Any) -> bool:
        """Whether it is watched, or was computed of what is while it recorded."""
        own = {id(w) for w in (*self._watched, *self._read)}
        if isinstance(source, Variable):
            return id(source) in own or self._accessed and source.trainable
        known = [v for v in outermost_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES) if self._accessed or id(v) in own]
        own.update(id(v) for v in known)
        if id(source) in own:
            return True
        handles = {v.op.name for v in known}
        waiting, seen = [source], set()
        while waiting:
            tensor = waiting.pop()
            if tensor in seen:
                continue
            seen.add(tensor)
            if id(tensor) in own or tensor.op.name in handles:
                return True
            if self._is_recorded(tensor.op) or tensor.op.type in ("ReadVariableOp", "Identity"):
                waiting.extend(tensor.op.inputs)
        return False

    def watched_variables(self) -> Tuple[Any, ...]:
        """The variables that are watched: those of `watch`, and the trainable ones that were read while it recorded; in the order in which they were made."""
        found = {id(v): v for v in (*self._watched, *self._read) if isinstance(v, Variable)}
        return tuple(sorted(found.values(), key=lambda v: v.op._id))

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE) -> Any:
        """The gradients of the sum of target, in the structure of sources: None (or zeros) for what it does not depend on, or is not watched."""
        if self._used and not self._persistent:
            raise at_user_line(RuntimeError("GradientTape.gradient can only be called once on non-persistent tapes."))
        self._used = True
        flat, targets = nest.flatten(sources), nest.flatten(target)
        watched = [s for s in flat if self._is_watched(s)]
        made = iter(())  # type: Iterator[Any]
        if watched:
            given = None if output_gradients is None else nest.flatten(output_gradients)
            made = iter(
                gradients.gradients(targets, watched, given, stop_gradients=self._outside(targets, watched), unconnected_gradients=unconnected_gradients)
            )
        zero = unconnected_gradients == UnconnectedGradients.ZERO
        none = [array_ops.zeros_like(convert_to_tensor(s)) if zero and not self._is_watched(s) else None for s in flat]
        return nest.pack_sequence_as(sources, [next(made) if self._is_watched(s) else n for s, n in zip(flat, none)])

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE,
        parallel_iterations: Optional[int] = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivatives of each element of target, in the structure of sources."""
        self._used = True
        made = parallel_for.jacobian(target, sources, experimental_use_pfor, parallel_iterations)
        if unconnected_gradients != UnconnectedGradients.ZERO:
            return made
        flat = nest.flatten(sources)
        return nest.pack_sequence_as(sources, [_zeros(target, s, 0) if m is None else m for m, s in zip(nest.flatten(made), flat)])

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE,
        parallel_iterations: Optional[int] = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivatives of target[b] by source[b] for each b."""
        self._used = True
        made = parallel_for.batch_jacobian(target, source, experimental_use_pfor, parallel_iterations)
        return _zeros(target, source, 1) if made is None and unconnected_gradients == UnconnectedGradients.ZERO else made


def implicit_grad(f: Callable[..., Any]) -> Callable[..., List[Tuple[Any, Any]]]:
    """A function of what f takes: pairs of the gradient of what f gives by a trainable variable that f reads, and that variable. ValueError if it reads none."""

    def differentiated(*args: Any, **kwargs: Any) -> List[Tuple[Any, Any]]:
        with GradientTape() as tape:
            target = f(*args, **kwargs)
        read = tape.watched_variables()
        if not read:
            raise at_user_line(ValueError("No trainable variables were accessed while the function was being computed."))
        return list(zip(tape.gradient(target, list(read)), read))

    return differentiated
