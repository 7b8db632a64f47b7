# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.seq2seq: decoders, where their inputs come from, and the loop that runs them."""

from __future__ import annotations

import collections
from typing import Any, Callable, List, Optional, Tuple

from millrace.framework import dtypes, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops, random_ops
from millrace.ops.dialects import either
from millrace.ops.rnn import _copied_through, _time_major
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variable_scope import variable_scope

__all__ = [
    "BasicDecoder",
    "BasicDecoderOutput",
    "CustomHelper",
    "Decoder",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper",
    "ScheduledOutputTrainingHelper",
    "TrainingHelper",
    "dynamic_decode",
]


class Helper:
    """Where the inputs of a decoder come from: initialize() -> (finished, inputs), sample(time, outputs, state) -> sample_ids,
    next_inputs(time, outputs, state, sample_ids) -> (finished, next inputs, next state); batch_size, sample_ids_shape, sample_ids_dtype."""

    def initialize(self, name: Optional[str] = None) -> Any:
        """(finished, inputs)."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: Optional[str] = None) -> Any:
        """The samples of outputs."""
        raise NotImplementedError

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: Optional[str] = None) -> Any:
        """(finished, inputs, state) of the next step."""
        raise NotImplementedError

    sample_ids_shape = property(lambda self: tensor_shape.TensorShape([]), doc="The shape of an example's sample.")
    sample_ids_dtype = property(lambda self: dtypes.int32, doc="The type of samples.")


class CustomHelper(Helper):
    """A helper of three functions."""

    def __init__(self, initialize_fn: Any, sample_fn: Any, next_inputs_fn: Any, sample_ids_shape: Any = None, sample_ids_dtype: Any = None) -> None:
        self._initialize, self._sample, self._next = initialize_fn, sample_fn, next_inputs_fn
        self._shape, self._dtype = tensor_shape.TensorShape(sample_ids_shape or []), sample_ids_dtype or dtypes.int32
        self._batch_size: Any = None

    sample_ids_shape = property(lambda self: self._shape, doc="The shape of an example's sample.")
    sample_ids_dtype = property(lambda self: self._dtype, doc="The type of samples.")

    @property
    def batch_size(self) -> Any:
        """The number of examples, known after initialize."""
        if self._batch_size is None:
            raise at_user_line(ValueError("batch_size accessed before initialize was called"))
        return self._batch_size

    def initialize(self, name: Optional[str] = None) -> Any:
        """(finished, inputs)."""
        finished, inputs = self._initialize()
        if self._batch_size is None:
            self._batch_size = array_ops.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: Optional[str] = None) -> Any:
        """The samples."""
        return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: Optional[str] = None) -> Any:
        """(finished, next inputs, next state)."""
        return self._next(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(Helper):
    """Feeds the inputs [batch, time, ...] that were given, as many of each example as its length says."""

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False, name: Optional[str] = None) -> None:
        with name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            self._given = inputs = nest.map_structure(convert_to_tensor, inputs)
            steps = inputs if time_major else nest.map_structure(_time_major, inputs)
            self._arrays = nest.map_structure(
                lambda x: TensorArray(x.dtype, array_ops.shape(x)[0], element_shape=x.get_shape()[1:], clear_after_read=False).unstack(x), steps
            )
            self._lengths = convert_to_tensor(sequence_length, dtypes.int32) if not isinstance(sequence_length, Tensor) else sequence_length
            if self._lengths.get_shape().ndims not in (None, 1):
                raise at_user_line(ValueError("Expected sequence_length to be a vector, but received shape: %s" % self._lengths.get_shape()))
            self._zeros = nest.map_structure(lambda x: array_ops.zeros_like(x[0, :]), steps)
            self._batch_size = array_ops.size(self._lengths)

    inputs = property(lambda self: self._given, doc="The inputs.")
    sequence_length = property(lambda self: self._lengths, doc="The lengths.")
    batch_size = property(lambda self: self._batch_size, doc="The number of examples.")

    def _at(self, finished: Any, time: Any) -> Any:
        def read() -> List[Any]:
            return [a.read(time) for a in nest.flatten(self._arrays)]

        values = control_flow_ops.cond(math_ops.reduce_all(finished), lambda: list(nest.flatten(self._zeros)), read)
        values = list(values) if isinstance(values, (list, tuple)) else [values]
        for value, zero in zip(values, nest.flatten(self._zeros)):
            value.set_shape(zero.get_shape())
        return nest.pack_sequence_as(self._zeros, values)

    def initialize(self, name: Optional[str] = None) -> Any:
        """(finished, the first inputs)."""
        finished = gen_ops.equal(convert_to_tensor(0, self._lengths.dtype), self._lengths)
        return finished, self._at(finished, 0)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: Optional[str] = None) -> Tensor:
        """What the outputs find most likely."""
        return gen_ops.cast(math_ops.argmax(outputs, -1), dtypes.int32)

    def next_inputs(self, time: Any, outputs: Any, state: Any, name: Optional[str] = None, **unused: Any) -> Any:  # type: ignore[override]
        """(finished, next inputs, state)."""
        after = time + 1
        finished = gen_ops.greater_equal(gen_ops.cast(after, self._lengths.dtype), self._lengths)
        return finished, self._at(finished, after), state


def _chance(probability: Any, most: int) -> Tensor:
    made = convert_to_tensor(probability, name="sampling_probability")
    if made.get_shape().ndims not in range(most + 1):
        raise at_user_line(
            ValueError("sampling_probability must be %s. saw shape: %s" % ("either a scalar or a vector" if most else "a scalar", made.get_shape()))
        )
    return made


def _where_chosen(chosen: Tensor, make: Callable[[Tensor], Tensor], otherwise: Tensor) -> Tensor:
    """make(the numbers of the rows that are chosen) in these rows, what there was in the others."""
    here, there = gen_ops.where(chosen), gen_ops.where(gen_ops.logical_not(chosen))
    shape = array_ops.shape(otherwise, out_type=dtypes.int64)
    made = gen_ops.scatter_nd(here, make(here), shape) + gen_ops.scatter_nd(there, gen_ops.gather_nd(otherwise, there), shape)
    made.set_shape(otherwise.get_shape())
    return made


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Feeds, each with a probability, the embedding of what is drawn by the outputs instead of the inputs given (Bengio et al. 2015)."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: Optional[int] = None,
        scheduling_seed: Optional[int] = None,
        name: Optional[str] = None,
    ) -> None:
        with name_scope(name, "ScheduledEmbeddingSamplingWrapper", [embedding, sampling_probability]):
            self._embed: Callable[[Any], Any] = embedding if callable(embedding) else lambda ids: nn_ops.embedding_lookup(embedding, ids)
            self._probability = _chance(sampling_probability, 1)
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: Optional[str] = None) -> Tensor:
        """A draw for each example that is to be sampled, -1 for the others."""
        draws = random_ops.random_uniform(array_ops.stack([self._batch_size]), dtype=self._probability.dtype, seed=self._scheduling_seed)
        drawn = gen_ops.cast(array_ops.squeeze(random_ops.multinomial(outputs, 1, seed=self._seed), [1]), dtypes.int32)
        return gen_ops.select(gen_ops.less(draws, self._probability), drawn, -array_ops.ones_like(drawn))

    def next_inputs(  # type: ignore[override]
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: Optional[str] = None, **unused: Any
    ) -> Any:
        """(finished, next inputs, state)."""
        finished, given, state = super().next_inputs(time, outputs, state)
        chosen = gen_ops.greater(sample_ids, -1)

        def sampled() -> Any:
            return _where_chosen(chosen, lambda here: self._embed(gen_ops.gather_nd(sample_ids, here)), given)

        return finished, _unless(math_ops.reduce_all(finished), given, sampled), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Feeds, each with a probability, the outputs (or what next_inputs_fn makes of them) instead of the inputs given, with the auxiliary inputs behind
    either. Up to 1.2 next_inputs_fn was a layer, next_input_layer."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: Optional[int] = None,
        next_inputs_fn: Any = None,
        auxiliary_inputs: Any = None,
        name: Optional[str] = None,
        next_input_layer: Any = None,
    ) -> None:
        next_inputs_fn = either("next_inputs_fn", next_inputs_fn, "next_input_layer", next_input_layer)
        with name_scope(name, "ScheduledOutputTrainingHelper", [inputs, auxiliary_inputs, sampling_probability]):
            self._probability, self._seed, self._next = _chance(sampling_probability, 0), seed, next_inputs_fn
            self._auxiliary: Any = None
            if auxiliary_inputs is not None:
                self._auxiliary = TrainingHelper(auxiliary_inputs, sequence_length, time_major)._arrays
                inputs = nest.map_structure(lambda a, b: array_ops.concat([a, b], -1), inputs, auxiliary_inputs)
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: Optional[str] = None) -> Tensor:
        """Which examples are fed the outputs: 1, others 0."""
        draws = random_ops.random_uniform(array_ops.stack([self._batch_size]), dtype=self._probability.dtype, seed=self._seed)
        return gen_ops.cast(gen_ops.less(draws, self._probability), dtypes.int32)

    def next_inputs(  # type: ignore[override]
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: Optional[str] = None, **unused: Any
    ) -> Any:
        """(finished, next inputs, state)."""
        finished, given, state = super().next_inputs(time, outputs, state)
        chosen = gen_ops.not_equal(sample_ids, 0)

        def rows(here: Tensor) -> Tensor:
            made = gen_ops.gather_nd(outputs, here)
            if self._next is not None:
                made = self._next(made)
            if self._auxiliary is None:
                return made
            return array_ops.concat([made, gen_ops.gather_nd(self._auxiliary.read(time + 1), here)], -1)

        stays = gen_ops.logical_or(math_ops.reduce_all(finished), gen_ops.logical_not(math_ops.reduce_any(chosen)))
        return finished, _unless(stays, given, lambda: _where_chosen(chosen, rows, given)), state


def _unless(stays: Tensor, given: Tensor, make: Callable[[], Tensor]) -> Tensor:
    made = control_flow_ops.cond(stays, lambda: array_ops.identity(given), make)
    made.set_shape(given.get_shape())
    return made


class InferenceHelper(Helper):
    """Feeds back what sample_fn makes of the outputs."""

    def __init__(self, sample_fn: Any, sample_shape: Any, sample_dtype: Any, start_inputs: Any, end_fn: Any, next_inputs_fn: Any = None) -> None:
        self._sample, self._end, self._next = sample_fn, end_fn, next_inputs_fn
        self._shape, self._dtype = tensor_shape.TensorShape(sample_shape), sample_dtype
        self._start = convert_to_tensor(start_inputs)
        self._batch_size = array_ops.shape(self._start)[0]

    batch_size = property(lambda self: self._batch_size, doc="The number of examples.")
    sample_ids_shape = property(lambda self: self._shape, doc="The shape of an example's sample.")
    sample_ids_dtype = property(lambda self: self._dtype, doc="The type of samples.")

    def initialize(self, name: Optional[str] = None) -> Any:
        """(finished, the first inputs)."""
        return gen_ops.tile(convert_to_tensor([False]), array_ops.stack([self._batch_size])), self._start

    def sample(self, time: Any, outputs: Any, state: Any, name: Optional[str] = None) -> Any:
        """The samples."""
        return self._sample(outputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: Optional[str] = None) -> Any:
        """(finished, next inputs, state)."""
        return self._end(sample_ids), sample_ids if self._next is None else self._next(sample_ids), state


def start_and_end(embedding: Any, start_tokens: Any, end_token: Any) -> Tuple[Callable[[Any], Any], Tensor, Tensor]:
    """(the function that embeds tokens, start tokens as a vector, the end token as a scalar)."""
    embed: Callable[[Any], Any] = embedding if callable(embedding) else lambda ids: nn_ops.embedding_lookup(embedding, ids)
    tokens, end = convert_to_tensor(start_tokens, dtypes.int32), convert_to_tensor(end_token, dtypes.int32)
    if tokens.get_shape().ndims != 1:
        raise at_user_line(ValueError("start_tokens must be a vector"))
    if end.get_shape().ndims != 0:
        raise at_user_line(ValueError("end_token must be a scalar"))
    return embed, tokens, end


class GreedyEmbeddingHelper(Helper):
    """Feeds back the embedding of what the outputs find most likely, from start tokens to the end token."""

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed, self._tokens, self._end = start_and_end(embedding, start_tokens, end_token)
        self._start = self._embed(self._tokens)
        self._batch_size = array_ops.size(self._tokens)

    batch_size = property(lambda self: self._batch_size, doc="The number of examples.")

    def initialize(self, name: Optional[str] = None) -> Any:
        """(finished, the first inputs)."""
        return gen_ops.tile(convert_to_tensor([False]), array_ops.stack([self._batch_size])), self._start

    def sample(self, time: Any, outputs: Any, state: Any, name: Optional[str] = None) -> Tensor:
        """What the outputs find most likely."""
        if not isinstance(outputs, Tensor):
            raise at_user_line(TypeError("Expected outputs to be a single Tensor, got: %s" % type(outputs)))
        return gen_ops.cast(math_ops.argmax(outputs, -1), dtypes.int32)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: Optional[str] = None) -> Any:
        """(finished, next inputs, state)."""
        finished = gen_ops.equal(sample_ids, self._end)
        inputs = control_flow_ops.cond(math_ops.reduce_all(finished), lambda: self._start, lambda: self._embed(sample_ids))
        inputs.set_shape(self._start.get_shape())
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds back the embedding of what is drawn by the outputs."""

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any, softmax_temperature: Any = None, seed: Optional[int] = None) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: Optional[str] = None) -> Tensor:
        """One draw for each example."""
        if not isinstance(outputs, Tensor):
            raise at_user_line(TypeError("Expected outputs to be a single Tensor, got: %s" % type(outputs)))
        logits = outputs if self._temperature is None else outputs / self._temperature
        return gen_ops.cast(array_ops.squeeze(random_ops.multinomial(logits, 1, seed=self._seed), [1]), dtypes.int32)


class Decoder:
    """Base of decoders: batch_size, output_size, output_dtype, initialize() -> (finished, inputs, state), step(time, inputs, state) ->
    (outputs, next state, next inputs, finished), and, where it has one, finalize(outputs, state, lengths) -> (outputs, state)."""

    initialize: Any
    step: Any
    output_size: Any
    tracks_own_finished = property(lambda self: False, doc="Whether `finished` of a step is about examples that change places.")

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """What is made of all outputs."""
        raise NotImplementedError


BasicDecoderOutput = collections.namedtuple("BasicDecoderOutput", ["rnn_output", "sample_id"])


class BasicDecoder(Decoder):
    """A cell, a helper, and a layer on the outputs."""

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        if not isinstance(helper, Helper):
            raise at_user_line(TypeError("helper must be a Helper, received: %s" % type(helper)))
        self._cell, self._helper, self._initial, self._layer = cell, helper, initial_state, output_layer

    batch_size = property(lambda self: self._helper.batch_size, doc="That of the helper.")

    @property
    def output_size(self) -> Any:
        """The shapes of an example's output and sample."""
        size = self._cell.output_size
        if self._layer is not None:
            size = nest.map_structure(lambda s: tensor_shape.TensorShape([self._layer.units]), size)
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        """The types of output and sample."""
        dtype = nest.flatten(self._initial)[0].dtype
        return BasicDecoderOutput(nest.map_structure(lambda _: dtype, self._cell.output_size), self._helper.sample_ids_dtype)

    def initialize(self, name: Optional[str] = None) -> Any:
        """(finished, the first inputs, the initial state)."""
        return tuple(self._helper.initialize()) + (self._initial,)

    def step(self, time: Any, inputs: Any, state: Any, name: Optional[str] = None) -> Any:
        """(outputs, next state, next inputs, finished)."""
        with name_scope(name, "BasicDecoderStep", [time]):
            outputs, state = self._cell(inputs, state)
            if self._layer is not None:
                outputs = self._layer(outputs)
            samples = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, following, state = self._helper.next_inputs(time=time, outputs=outputs, state=state, sample_ids=samples)
            return BasicDecoderOutput(outputs, samples), state, following, finished


class _DecodeLoop:
    """dynamic_decode: what its body needs from iteration to iteration."""

    def __init__(self, decoder: Any, impute_finished: bool) -> None:
        self.decoder, self.impute = decoder, impute_finished
        self.sizes, self.types = nest.flatten(decoder.output_size), nest.flatten(decoder.output_dtype)

    def arrays(self, batch: Any) -> List[TensorArray]:
        """One for each output."""
        return [TensorArray(t, 0, dynamic_size=True, element_shape=tensor_shape.TensorShape([batch]).concatenate(s)) for s, t in zip(self.sizes, self.types)]

    def body(self, time: Any, written: Any, state: Any, inputs: Any, finished: Any, lengths: Any) -> Any:
        """One step of the decoder."""
        outputs, next_state, next_inputs, done = self.decoder.step(time, inputs, state)
        after = done if self.decoder.tracks_own_finished else gen_ops.logical_or(done, finished)
        nest.assert_same_structure(state, next_state)
        nest.assert_same_structure(inputs, next_inputs)
        lengths = gen_ops.select(finished, lengths, array_ops.fill(array_ops.shape(lengths), time + 1))
        flat = nest.flatten(outputs)
        if self.impute:
            flat = [_copied_through(finished, array_ops.zeros_like(o), o) for o in flat]
            next_state = nest.pack_sequence_as(next_state, [_copied_through(finished, c, n) for c, n in zip(nest.flatten(state), nest.flatten(next_state))])
        for was, now in zip(nest.flatten(state) + nest.flatten(inputs), nest.flatten(next_state) + nest.flatten(next_inputs)):
            if isinstance(now, Tensor):
                now.set_shape(was.get_shape())
        return time + 1, tuple(w.write(time, o) for w, o in zip(written, flat)), next_state, next_inputs, after, lengths


def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
    decoder_init_input: Any = None,
    decoder_init_kwargs: Any = None,
) -> Any:
    """(outputs, last state, lengths) of a decoder that runs until all examples are finished, or that often. Decoders that are layers begin with
    decoder_init_input, and the arguments of decoder_init_kwargs by name."""
    if not isinstance(decoder, Decoder):
        raise at_user_line(TypeError("Expected decoder to be type Decoder, but saw: %s" % type(decoder)))
    with variable_scope(scope, "decoder"):
        if maximum_iterations is not None:
            maximum_iterations = convert_to_tensor(maximum_iterations, dtypes.int32, "maximum_iterations")
            if maximum_iterations.get_shape().ndims != 0:
                raise at_user_line(ValueError("maximum_iterations must be a scalar"))
        begin = () if decoder_init_kwargs is None and decoder_init_input is None else (decoder_init_input,)
        finished, inputs, state = decoder.initialize(*begin, **(decoder_init_kwargs or {}))
        finished, state = convert_to_tensor(finished), nest.map_structure(lambda s: s if isinstance(s, TensorArray) else convert_to_tensor(s), state)
        inputs = nest.map_structure(convert_to_tensor, inputs)
        if maximum_iterations is not None:
            finished = gen_ops.logical_or(finished, gen_ops.less_equal(maximum_iterations, 0))
        loop = _DecodeLoop(decoder, impute_finished)
        arrays = loop.arrays(finished.get_shape()[0].value if finished.get_shape().ndims else None)
        lengths = array_ops.zeros_like(finished, dtypes.int32)
        _, written, last, _, _, lengths = control_flow_ops.while_loop(
            lambda time, w, s, i, done, n: gen_ops.logical_not(math_ops.reduce_all(done)),
            loop.body,
            (convert_to_tensor(0, dtypes.int32), tuple(arrays), state, inputs, finished, lengths),
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
            maximum_iterations=maximum_iterations,
        )
        outputs = nest.pack_sequence_as(decoder.output_size, [w.stack() for w in written])
        try:
            outputs, last = decoder.finalize(outputs, last, lengths)
        except NotImplementedError:
            pass
        if not output_time_major:
            outputs = nest.map_structure(lambda o: _time_major(o) if (o.get_shape().ndims or 0) >= 2 else o, outputs)
        return outputs, last, lengths
