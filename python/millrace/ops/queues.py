# SPDX-License-Identifier: Apache-2.0
"""Queues: tensors that one step puts in and another takes out."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from millrace.framework import dtypes as dtypes_module
from millrace.framework import random_seed, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.static_values import constant_value
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, name_scope
from millrace.ops import array_ops, gen_ops

__all__ = ["QueueBase", "FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"]


def _types_of(dtypes: Any) -> List[Any]:
    return [dtypes_module.as_dtype(t) for t in (dtypes if isinstance(dtypes, (list, tuple)) else [dtypes])]


def _is_dimensions(shape: Sequence[Any]) -> bool:
    """Whether a list is one shape, and not a list of shapes."""
    return all(d is None or isinstance(d, (int, tensor_shape.Dimension)) for d in shape)


def _shapes_of(shapes: Any) -> Optional[List[tensor_shape.TensorShape]]:
    """The shapes of the components, all fully known; None when nothing is said of them."""
    if shapes is None:
        return None
    if isinstance(shapes, tensor_shape.TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, (list, tuple)):
        raise at_user_line(TypeError("shapes must be a TensorShape or a list or tuple of TensorShapes, got %s" % type(shapes).__name__))
    if _is_dimensions(shapes):
        shapes = [shapes]
    found = [tensor_shape.as_shape(s) for s in shapes]
    if not all(s.is_fully_defined() for s in found):
        raise at_user_line(ValueError("All shapes must be fully defined: %s" % found))
    return found


def _partial_shapes_of(shapes: Any) -> List[tensor_shape.TensorShape]:
    """The shapes of the components of a queue that pads: a list, each of known rank."""
    if not isinstance(shapes, (list, tuple)) or not shapes or any(s is None or isinstance(s, int) for s in shapes):
        raise at_user_line(ValueError("When providing partial shapes, a list of shapes must be provided."))
    found = [tensor_shape.as_shape(s) for s in shapes]
    if any(s.ndims is None for s in found):
        raise at_user_line(ValueError("All shapes must have a defined rank: %s" % found))
    return found


def _names_of(names: Any, dtypes: List[Any]) -> Optional[List[Any]]:
    if names is None:
        return None
    found = list(names) if isinstance(names, (list, tuple)) else [names]
    if len(found) != len(dtypes):
        raise at_user_line(ValueError("List of names must have the same length as the list of dtypes: %d and %d" % (len(found), len(dtypes))))
    return found


def _common(first: tensor_shape.TensorShape, second: tensor_shape.TensorShape) -> tensor_shape.TensorShape:
    """What two shapes agree on."""
    if first.ndims is None or first.ndims != second.ndims:
        return tensor_shape.unknown_shape()
    return tensor_shape.TensorShape([a if a == b else None for a, b in zip(first.as_list(), second.as_list())])


class QueueBase:
    """A queue. An element is a tuple of tensors, or a dict of them where the queue has names."""

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Tensor) -> None:
        self._dtypes = dtypes
        if shapes is not None and len(shapes) != len(dtypes):
            raise at_user_line(ValueError("Queue shapes must have the same length as dtypes: %d and %d" % (len(shapes), len(dtypes))))
        self._shapes = [tensor_shape.unknown_shape() for _ in dtypes] if shapes is None else [tensor_shape.as_shape(s) for s in shapes]
        self._names = _names_of(names, dtypes)
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.rsplit("/", 1)[-1]

    def __repr__(self) -> str:
        parts = ["%s%s" % (dtype.name, "" if shape.ndims is None else " %s" % shape) for dtype, shape in zip(self._dtypes, self._shapes)]
        return "<tf.%s '%s' of (%s)>" % (type(self).__name__, self.name, ", ".join(parts))

    queue_ref = property(lambda self: self._queue_ref, doc="The handle.")
    name = property(lambda self: self._queue_ref.op.name, doc="The name of the operation.")
    dtypes = property(lambda self: self._dtypes, doc="The types of the components.")
    shapes = property(lambda self: self._shapes, doc="The shapes of the components.")
    names = property(lambda self: self._names, doc="The names of the components, or None.")

    @staticmethod
    def from_list(index: Any, queues: Any) -> "QueueBase":
        """The queue at a position that the step decides."""
        if not isinstance(queues, list) or not queues or not all(isinstance(q, QueueBase) for q in queues):
            raise at_user_line(TypeError("A list of queues expected"))
        first = queues[0]
        if any(q.dtypes != first.dtypes for q in queues):
            raise at_user_line(TypeError("Queues do not have matching component dtypes."))
        if any(q.names != first.names for q in queues):
            raise at_user_line(TypeError("Queues do not have matching component names."))
        shapes = first.shapes
        for queue in queues[1:]:
            shapes = [_common(a, b) for a, b in zip(shapes, queue.shapes)]
        chosen = array_ops.gather(array_ops.stack([q.queue_ref for q in queues]), index)
        return QueueBase(first.dtypes, shapes, first.names, chosen)

    # ---- putting in ----

    def _listed(self, vals: Any) -> List[Any]:
        """The components in the order of the queue."""
        if isinstance(vals, dict):
            if not self._names:
                raise at_user_line(ValueError("Queue must have names to enqueue a dictionary"))
            if sorted(self._names, key=str) != sorted(vals, key=str):
                raise at_user_line(
                    ValueError(
                        "Keys in dictionary to enqueue do not match names of Queue. Dictionary: %s, Queue: %s"
                        % (sorted(vals, key=str), sorted(self._names, key=str))
                    )
                )
            return [vals[n] for n in self._names]
        if self._names:
            raise at_user_line(ValueError("You must enqueue a dictionary in a Queue with names"))
        return list(vals) if isinstance(vals, (list, tuple)) else [vals]

    def _components(self, vals: Any) -> List[Tensor]:
        """The components as tensors; ValueError when there are too few or too many."""
        listed = self._listed(vals)
        if len(listed) != len(self._dtypes):
            raise at_user_line(ValueError("Queue '%s' has elements of %d components, got %d" % (self.name, len(self._dtypes), len(listed))))
        return [convert_to_tensor(v, dtype=t, name="component_%d" % i) for i, (v, t) in enumerate(zip(listed, self._dtypes))]

    def enqueue(self, vals: Any, name: Optional[str] = None) -> Operation:
        """An operation that puts one element in; it waits while the queue is full."""
        with name_scope(name, "%s_enqueue" % self._name, _tensors_in(vals)) as scope:
            components = self._components(vals)
            for component, shape in zip(components, self._shapes):
                component.get_shape().assert_is_compatible_with(shape)
            return gen_ops.queue_enqueue_v2(self._queue_ref, components, name=scope)

    def enqueue_many(self, vals: Any, name: Optional[str] = None) -> Operation:
        """An operation that puts in as many elements as the components have rows."""
        with name_scope(name, "%s_EnqueueMany" % self._name, _tensors_in(vals)) as scope:
            components = self._components(vals)
            rows = tensor_shape.Dimension(None)
            for component, shape in zip(components, self._shapes):
                given = component.get_shape().with_rank_at_least(1)
                rows = rows.merge_with(given[0])
                given[1:].assert_is_compatible_with(shape)
            return gen_ops.queue_enqueue_many_v2(self._queue_ref, components, name=scope)

    # ---- taking out ----

    def _element(self, operation: Any, shapes: Sequence[tensor_shape.TensorShape]) -> Any:
        """What the operation gives: a tensor, a list of them, or a dict."""
        outputs = [operation] if isinstance(operation, Tensor) else list(operation)
        for output, shape in zip(outputs, shapes):
            output.set_shape(shape)
        if self._names:
            return dict(zip(self._names, outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    def dequeue(self, name: Optional[str] = None) -> Any:
        """One element; waits for one while the queue is empty."""
        return self._element(gen_ops.queue_dequeue_v2(self._queue_ref, component_types=self._dtypes, name=name or "%s_Dequeue" % self._name), self._shapes)

    def _rows(self, count: Any) -> List[tensor_shape.TensorShape]:
        return [tensor_shape.TensorShape([count]).concatenate(s) for s in self._shapes]

    def dequeue_many(self, n: Any, name: Optional[str] = None) -> Any:
        """n elements as rows; waits for them."""
        made = gen_ops.queue_dequeue_many_v2(self._queue_ref, n, component_types=self._dtypes, name=name or "%s_DequeueMany" % self._name)
        operation = (made if isinstance(made, Tensor) else made[0]).op
        count = constant_value(operation.inputs[1])
        return self._element(made, self._rows(None if count is None or int(count) < 0 else int(count)))

    def dequeue_up_to(self, n: Any, name: Optional[str] = None) -> Any:
        """n elements as rows; fewer when the queue is closed and has no more."""
        made = gen_ops.queue_dequeue_up_to_v2(self._queue_ref, n, component_types=self._dtypes, name=name or "%s_DequeueUpTo" % self._name)
        return self._element(made, self._rows(None))

    # ---- the queue itself ----

    def close(self, cancel_pending_enqueues: bool = False, name: Optional[str] = None) -> Operation:
        """An operation that says that nothing more will come; those who wait to put in go on waiting, unless they are cancelled."""
        return gen_ops.queue_close_v2(self._queue_ref, cancel_pending_enqueues=cancel_pending_enqueues, name=name or "%s_Close" % self._name)

    def is_closed(self, name: Optional[str] = None) -> Tensor:
        """Whether it is closed."""
        return gen_ops.queue_is_closed_v2(self._queue_ref, name=name or "%s_Is_Closed" % self._name)

    def size(self, name: Optional[str] = None) -> Tensor:
        """How many elements there are."""
        return gen_ops.queue_size_v2(self._queue_ref, name=name or "%s_Size" % self._name)


def _tensors_in(vals: Any) -> List[Any]:
    return list(vals.values()) if isinstance(vals, dict) else list(vals) if isinstance(vals, (list, tuple)) else [vals]


class FIFOQueue(QueueBase):
    """A queue in the order of coming."""

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: Optional[str] = None, name: Optional[str] = "fifo_queue"
    ) -> None:
        types, known = _types_of(dtypes), _shapes_of(shapes)
        handle = gen_ops.fifo_queue_v2(component_types=types, shapes=known or [], capacity=capacity, shared_name=shared_name or "", name=name)
        super().__init__(types, known, names, handle)


class PaddingFIFOQueue(QueueBase):
    """A FIFOQueue whose elements may differ in size: those that are taken out together are padded with zeros."""

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any, names: Any = None, shared_name: Optional[str] = None, name: Optional[str] = "padding_fifo_queue"
    ) -> None:
        types, known = _types_of(dtypes), _partial_shapes_of(shapes)
        if len(types) != len(known):
            raise at_user_line(ValueError("Shapes must be provided for all components, but received %d dtypes and %d shapes." % (len(types), len(known))))
        handle = gen_ops.padding_fifo_queue_v2(component_types=types, shapes=known, capacity=capacity, shared_name=shared_name or "", name=name)
        super().__init__(types, known, names, handle)


class RandomShuffleQueue(QueueBase):
    """A queue that gives its elements in a random order, and keeps min_after_dequeue of them to choose from."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: Optional[int] = None,
        shared_name: Optional[str] = None,
        name: Optional[str] = "random_shuffle_queue",
    ) -> None:
        types, known = _types_of(dtypes), _shapes_of(shapes)
        seed1, seed2 = _queue_seeds(seed, shared_name)
        handle = gen_ops.random_shuffle_queue_v2(
            component_types=types,
            shapes=known or [],
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            seed=seed1,
            seed2=seed2,
            shared_name=shared_name or "",
            name=name,
        )
        super().__init__(types, known, names, handle)


def _queue_seeds(seed: Optional[int], shared_name: Optional[str]) -> Tuple[int, int]:
    """The seeds of a queue. One that is shared has the same ones wherever it is made, so they come from its name."""
    graph_seed, op_seed = random_seed.op_seeds(seed)
    if not graph_seed and not op_seed:
        return 0, 0
    if seed is None and shared_name is not None:
        import hashlib

        digest = hashlib.md5(("%s%s" % (graph_seed, shared_name)).encode("utf-8"), usedforsecurity=False).hexdigest()
        op_seed = int(digest[:8], 16) & 0x7FFFFFFF
    return graph_seed or 0, op_seed or 0


class PriorityQueue(QueueBase):
    """A queue that gives the element with the smallest priority first. The priority, an int64, is the first component."""

    def __init__(
        self, capacity: int, types: Any, shapes: Any = None, names: Any = None, shared_name: Optional[str] = None, name: Optional[str] = "priority_queue"
    ) -> None:
        kinds, known = _types_of(types), _shapes_of(shapes)
        handle = gen_ops.priority_queue_v2(shapes=known or [], component_types=kinds, capacity=capacity, shared_name=shared_name or "", name=name)
        super().__init__([dtypes_module.int64, *kinds], [tensor_shape.scalar(), *known] if known else None, names, handle)
