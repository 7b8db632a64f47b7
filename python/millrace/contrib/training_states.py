# SPDX-License-Identifier: Apache-2.0
"""Long sequences in segments, with states that go from each segment to the next: SequenceQueueingStateSaver.

A barrier holds the segments, each under a key that names it: "00001_of_00003:KEY". A segment is ready once its state is there too: the
first one has its state from the start, the others when save_state() of the segment before has run. So a batch has segments of several
sequences, and no two of one sequence. A queue of tokens, one for each sequence under way, bounds how many there are at a time.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, colocate_with, control_dependencies, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops, string_ops
from millrace.ops.barriers import Barrier
from millrace.ops.queues import FIFOQueue

_FIXED = ["length", "total_length", "next_key", "sequence", "sequence_count"]  # what each segment has beside its parts


# ---- checks in the step ----


def multiple_of(value: Tensor, number: Any, what: str, tensors: List[Tensor]) -> List[Tensor]:
    """The tensors, where `value`, which is `what`, is a multiple of a number and not 0."""
    text = [what + " should be a multiple of: ", string_ops.as_string(number), ", but saw value: ", string_ops.as_string(value)]
    fits = gen_ops.logical_and(math_ops.equal(math_ops.mod(value, number), 0), math_ops.not_equal(value, 0))
    with control_dependencies([control_flow_ops.Assert(fits, [string_ops.string_join(text + [". Consider setting pad=True."])])]):
        return [array_ops.identity(t, name="multiple_of_checked") for t in tensors]


def _of_rank(value: Tensor, rank: Any) -> Tensor:
    told = ["Rank of tensor %s should be: %d, shape received:" % (value.name, rank), array_ops.shape(value)]
    try:
        shape = value.get_shape().with_rank(rank)
    except ValueError as error:
        raise at_user_line(ValueError("Rank check failed for %s: %s" % (value.name, error))) from None
    with control_dependencies([control_flow_ops.Assert(math_ops.equal(array_ops.rank(value), rank), told)]):
        checked = array_ops.identity(value, name="rank_checked")
    checked.set_shape(shape)
    return checked


def _of_shape_of(value: Tensor, other: Tensor) -> Tensor:
    checked = _of_rank(value, other.get_shape().ndims)
    if not checked.get_shape().is_compatible_with(other.get_shape()):
        raise at_user_line(ValueError("Shape check failed for %s: %s is not %s" % (value.name, value.get_shape(), other.get_shape())))
    wanted, found = array_ops.shape(other), array_ops.shape(checked)
    told = ["Shape of tensor %s should be: " % value.name, wanted, ", shape received: ", found]
    with control_dependencies([control_flow_ops.Assert(math_ops.reduce_all(math_ops.equal(wanted, found)), told)]):
        return array_ops.identity(checked, name="shape_checked")


def _of_length(value: Tensor, length: Tensor, label: str) -> Tensor:
    found = array_ops.shape(value)[0]
    text = ["Dimension 0 of tensor labeled %s should be: " % label, string_ops.as_string(length), ", shape received: ", string_ops.as_string(found)]
    with control_dependencies([control_flow_ops.Assert(math_ops.equal(length, found), [string_ops.string_join(text)])]):
        return array_ops.identity(value, name="dims_checked_%s" % label)


# ---- what programs give ----


def _named_tensors(given: Any, what: str) -> Dict[str, Tensor]:
    """A dict of tensors, in the order of their names."""
    if not isinstance(given, dict):
        raise at_user_line(TypeError("%s must be a dict, got %r" % (what, given)))
    for name in given:
        if not isinstance(name, str):
            raise at_user_line(TypeError("%s: a name must be a string: %s" % (what, name)))
        if ":" in name:
            raise at_user_line(ValueError("%s: a name may not have a colon: '%s'" % (what, name)))
    return {name: convert_to_tensor(given[name], name="%s_%s" % (what, name)) for name in sorted(given)}


def _known(tensors: Dict[str, Tensor], what: str, first: int = 0) -> None:
    for name, tensor in tensors.items():
        if not tensor.get_shape()[first:].is_fully_defined():
            but = "(ignoring first dimension)" if first else ""
            raise at_user_line(ValueError("Shape for %s %s is not fully defined %s: %s" % (what, name, but, tensor.get_shape())))


class NextQueuedSequenceBatch:
    """A batch of segments, and where their states go."""

    def __init__(self, state_saver: "SequenceQueueingStateSaver") -> None:
        saver = self._state_saver = state_saver
        self._indices, self._keys, values = saver.barrier.take_many(saver.batch_size, saver._allow_small_batch, name="BarrierTakeMany")
        self._received = dict(zip(saver._parts, values))
        self.context: Dict[str, Any] = self._kind("context")  # the values of whole sequences, by their names
        self.sequences: Dict[str, Any] = self._kind("sequence")  # the segments, by the names of the sequences: [batch, num_unroll, ...]
        done = self.sequence + 1 >= self.sequence_count
        self._going_on = array_ops.reshape(array_ops.where(gen_ops.logical_not(done)), [-1])
        tokens = saver._capacity_queue.dequeue_many(math_ops.reduce_sum(math_ops.cast(done, dtypes.int32)))
        with control_dependencies([tokens]):
            self._states = {name: array_ops.identity(value) for name, value in self._kind("state").items()}

    def _kind(self, kind: str) -> Dict[str, Any]:
        return {part[1]: value for part, value in self._received.items() if part[0] == kind}

    def _fixed(name: str, doc: str) -> Any:  # type: ignore[misc]
        return property(lambda self: self._received["", name], doc=doc)

    total_length = _fixed("total_length", "The lengths of the whole sequences.")
    length = _fixed("length", "The lengths of the segments.")
    next_key = _fixed("next_key", "The keys of the segments that follow, or STOP:KEY.")
    sequence = _fixed("sequence", "The numbers of the segments in their sequences.")
    sequence_count = _fixed("sequence_count", "How many segments their sequences have.")
    del _fixed
    key = property(lambda self: self._keys, doc="The keys of the segments.")
    insertion_index = property(lambda self: self._indices, doc="Numbers that grow with the time at which the segments came.")
    batch_size = property(lambda self: array_ops.squeeze(array_ops.shape(self.length)), doc="How many segments there are.")

    def state(self, state_name: str) -> Tensor:
        """The states that belong to the segments."""
        return self._states[state_name]

    def save_state(self, state_name: str, value: Any, name: Optional[str] = None) -> Operation:
        """An operation that gives the segments that follow their states."""
        if state_name not in self._states:
            raise at_user_line(KeyError("state was not declared: %s" % state_name))
        saver = self._state_saver
        with name_scope(name, "InputQueueingStateSaver_SaveState", [value]), colocate_with(saver._capacity_queue.queue_ref):
            made = _of_shape_of(array_ops.identity(value, name="convert_%s" % state_name), self._states[state_name])
            keys, kept = (array_ops.gather(t, self._going_on) for t in (self.next_key, made))
            return saver._insert("state", state_name, keys, kept, "BarrierInsertState_%s" % state_name)


class SequenceQueueingStateSaver:
    """Cuts sequences into segments of num_unroll steps, and gives batches of segments with the states that earlier ones left.

    input_sequences: tensors [steps, ...], where steps is a multiple of num_unroll; input_context: tensors of whole sequences;
    initial_states: tensors. All shapes have to be known, but for steps. A step that runs prefetch_op (queue runners do) takes in a sequence.
    """

    def __init__(
        self,
        batch_size: Any,
        num_unroll: int,
        input_length: Any,
        input_key: Any,
        input_sequences: Any,
        input_context: Any,
        initial_states: Any,
        capacity: Optional[int] = None,
        allow_small_batch: bool = False,
        name: Optional[str] = None,
    ) -> None:
        checks = []
        if capacity is not None and isinstance(batch_size, Tensor):
            checks = [check_ops.assert_less_equal(math_ops.cast(batch_size, dtypes.int64), int(capacity), message="capacity needs to be >= batch_size.")]
        elif capacity is not None and capacity < batch_size:
            raise at_user_line(ValueError("capacity %d needs to be >= batch_size %d" % (capacity, batch_size)))
        if not isinstance(initial_states, dict):
            raise at_user_line(TypeError("initial_states must be a dictionary"))
        if not initial_states:
            raise at_user_line(ValueError("initial_states may not be empty: segments go into batches once they have a state"))
        self._batch_size, self._num_unroll, self._allow_small_batch = batch_size, num_unroll, allow_small_batch
        self._prefetch_op: Optional[Operation] = None
        self._next_batch: Optional[NextQueuedSequenceBatch] = None
        self._capacity_queue = FIFOQueue(-1 if capacity is None else capacity, [dtypes.int32], shapes=[[]])
        with colocate_with(self._capacity_queue.queue_ref), name_scope(name, "InputQueueingStateSaver") as self._scope:
            with control_dependencies(checks):
                self._key = _of_rank(convert_to_tensor(input_key, name="key"), 0)
            self._take(convert_to_tensor(input_length, name="length"), input_sequences, input_context, initial_states)

    def _take(self, length: Tensor, input_sequences: Any, input_context: Any, initial_states: Any) -> None:
        sequences, context, states = (
            _named_tensors(given, what) for given, what in ((input_sequences, "sequence"), (input_context, "context"), (initial_states, "state"))
        )
        if not sequences:
            raise at_user_line(ValueError("must have at least one sequence tensor"))
        _known(states, "state")
        _known(context, "context")
        _known(sequences, "sequence", 1)
        for tensor, what, wanted in ((length, "length", dtypes.int32), (self._key, "key", dtypes.string)):
            if tensor.dtype.base_dtype != wanted:
                raise at_user_line(TypeError("%s dtype must be %s, but received: %s" % (what, wanted.name, tensor.dtype)))
        steps = array_ops.identity(array_ops.shape(next(iter(sequences.values())))[0], name="padded_length")
        (self._steps,) = multiple_of(steps, self._num_unroll, "Tensor %s" % steps.name, [steps])
        self._sequences = {name: _of_length(tensor, self._steps, "sorted_sequences_%s" % name) for name, tensor in sequences.items()}
        self._context, self._states = context, states
        length = _of_rank(length, 0)
        told = ["Input length should be <= than length from sequences:", length, " vs. ", self._steps]
        with control_dependencies([control_flow_ops.Assert(gen_ops.less_equal(length, self._steps), told)]):
            self._length = array_ops.identity(length)
        self._parts = [("", name) for name in _FIXED]
        self._parts += [("sequence", name) for name in sequences] + [("context", name) for name in context] + [("state", name) for name in states]
        tensors = [*sequences.values(), *context.values(), *states.values()]
        shapes: List[Any] = [[self._num_unroll, *tensor.get_shape()[1:].as_list()] for tensor in sequences.values()]
        shapes += [tensor.get_shape().as_list() for tensor in tensors[len(sequences) :]]
        types = [dtypes.string if name == "next_key" else dtypes.int32 for name in _FIXED]
        self._barrier = Barrier(types + [tensor.dtype.base_dtype for tensor in tensors], [[] for _ in _FIXED] + shapes)

    name = property(lambda self: self._scope, doc="The scope of its operations.")
    barrier = property(lambda self: self._barrier, doc="The barrier that holds segments.")
    batch_size = property(lambda self: self._batch_size, doc="How many segments a batch has.")
    num_unroll = property(lambda self: self._num_unroll, doc="How many steps a segment has.")

    @property
    def prefetch_op(self) -> Operation:
        """The operation that takes in a sequence."""
        if self._prefetch_op is None:
            with name_scope(None), name_scope(self._scope):
                self._prefetch_op = self._inserts()
        return self._prefetch_op

    @property
    def next_batch(self) -> NextQueuedSequenceBatch:
        """The next batch: each step that uses some of it takes out another one."""
        if self._next_batch is None:
            _ = self.prefetch_op
            with name_scope(None), name_scope(self._scope):
                self._next_batch = NextQueuedSequenceBatch(self)
        return self._next_batch

    def close(self, cancel_pending_enqueues: bool = False, name: Optional[str] = None) -> Operation:
        """An operation after which no sequence is taken in."""
        with name_scope(name, "SQSSClose") as scope:
            closed = (self._barrier.close(cancel_pending_enqueues, "BarrierClose"), self._capacity_queue.close(cancel_pending_enqueues, "FIFOClose"))
            return control_flow_ops.group(*closed, name=scope)

    def _insert(self, kind: str, part: str, keys: Any, values: Any, name: str) -> Operation:
        return self._barrier.insert_many(self._parts.index((kind, part)), keys, values, name=name)

    def _inserts(self) -> Operation:
        steps = constant_value(self._steps)
        count = math_ops.floordiv(self._steps, self._num_unroll) if steps is None else convert_to_tensor(int(steps) // self._num_unroll)
        numbers = math_ops.range(count)
        texts = [string_ops.as_string(numbers, width=5, fill="0"), "_of_", string_ops.as_string(count, width=5, fill="0"), ":", self._key]
        keys = string_ops.string_join(texts, name="StringJoinCurrentKeys")
        stop = array_ops.expand_dims(string_ops.string_join(["STOP:", self._key], name="StringJoinStop"), 0)
        each = {
            "length": math_ops.minimum(self._num_unroll, math_ops.maximum(0, self._length - self._num_unroll * numbers)),
            "total_length": array_ops.fill([count], self._length),
            "next_key": array_ops.concat([keys[1:], stop], 0, name="concat_next_keys"),
            "sequence": numbers,
            "sequence_count": array_ops.fill([count], count),
        }
        inserted = [self._insert("", part, keys, each[part], "BarrierInsert_%s" % part) for part in _FIXED]
        for part, tensor in self._sequences.items():
            segments = array_ops.reshape(tensor, array_ops.stack([count, self._num_unroll, *tensor.get_shape()[1:].as_list()]))
            inserted.append(self._insert("sequence", part, keys, segments, "BarrierInsertSequences_%s" % part))
        for part, tensor in self._context.items():
            repeated = array_ops.tile(array_ops.expand_dims(tensor, 0), array_ops.stack([count] + [1] * (tensor.get_shape().ndims or 0)))
            inserted.append(self._insert("context", part, keys, repeated, "BarrierInsertContext_%s" % part))
        inserted.append(self._capacity_queue.enqueue((0,)))
        with control_dependencies(inserted):  # the state of the first segment makes it ready
            for part, tensor in self._states.items():
                inserted.append(self._insert("state", part, keys[:1], array_ops.expand_dims(tensor, 0), "BarrierInitialInsertState_%s" % part))
        return control_flow_ops.group(*inserted, name="StateSaverPrefetchGroup")
