# SPDX-License-Identifier: Apache-2.0
"""tensorflow.contrib.seq2seq.python.ops.sampler: helpers of decoders that are given their inputs when decoding begins."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.distributions import Bernoulli, Categorical
from millrace.framework import dtypes, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops
from millrace.ops.decoders import (
    CustomHelper,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
    TrainingHelper,
)

__all__ = [
    "CustomSampler",
    "GreedyEmbeddingSampler",
    "InferenceSampler",
    "SampleEmbeddingSampler",
    "Sampler",
    "ScheduledEmbeddingTrainingSampler",
    "ScheduledOutputTrainingSampler",
    "TrainingSampler",
    "bernoulli_sample",
    "categorical_sample",
]


class Sampler:
    """Where the inputs of a decoder come from: initialize(inputs, ...) -> (finished, inputs), sample(time, outputs, state) -> sample_ids,
    next_inputs(time, outputs, state, sample_ids) -> (finished, next inputs, next state); batch_size, sample_ids_shape, sample_ids_dtype."""

    def initialize(self, inputs: Any, **kwargs: Any) -> Any:
        """(finished, the first inputs)."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any) -> Any:
        """The samples of outputs."""
        raise NotImplementedError

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any) -> Any:
        """(finished, inputs, state) of the next step."""
        raise NotImplementedError

    @property
    def batch_size(self) -> Any:
        """The number of examples."""
        raise NotImplementedError

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of an example's sample."""
        raise NotImplementedError

    @property
    def sample_ids_dtype(self) -> Any:
        """The type of samples."""
        raise NotImplementedError


class _ByHelper(Sampler):
    """One that does what a helper does, which it makes of the inputs."""

    _helper: Optional[Helper] = None
    _shape, _dtype = tensor_shape.TensorShape([]), dtypes.int32

    sample_ids_shape = property(lambda self: self._shape, doc="The shape of an example's sample.")  # type: ignore[assignment]
    sample_ids_dtype = property(lambda self: self._dtype, doc="The type of samples.")  # type: ignore[assignment]

    def _made(self) -> Any:
        if self._helper is None:
            raise at_user_line(ValueError("batch_size accessed before initialize was called"))
        return self._helper

    batch_size = property(lambda self: self._made().batch_size, doc="The number of examples, known after initialize.")  # type: ignore[assignment]

    def _begin(self, helper: Helper) -> Any:
        self._helper = helper
        return helper.initialize()

    def sample(self, time: Any, outputs: Any, state: Any) -> Any:
        """The samples of outputs."""
        return self._made().sample(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any) -> Any:
        """(finished, inputs, state) of the next step."""
        return self._made().next_inputs(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class CustomSampler(_ByHelper):
    """A sampler of three functions: the first is given the inputs."""

    def __init__(self, initialize_fn: Any, sample_fn: Any, next_inputs_fn: Any, sample_ids_shape: Any = None, sample_ids_dtype: Any = None) -> None:
        self._begins = initialize_fn
        self._parts = (sample_fn, next_inputs_fn, sample_ids_shape, sample_ids_dtype)
        made = CustomHelper(None, *self._parts)
        self._shape, self._dtype = made.sample_ids_shape, made.sample_ids_dtype

    def initialize(self, inputs: Any, **kwargs: Any) -> Any:
        """(finished, the first inputs)."""
        return self._begin(CustomHelper(lambda: self._begins(inputs, **kwargs), *self._parts))


def _lengths(inputs: Any, sequence_length: Any, time_major: bool) -> Any:
    """The lengths that are given, or all steps of all examples."""
    if sequence_length is not None:
        return sequence_length
    first = nest.flatten(inputs)[0]
    sizes = array_ops.shape(first)
    steps, examples = (sizes[0], sizes[1]) if time_major else (sizes[1], sizes[0])
    made = array_ops.fill(array_ops.stack([examples]), steps)
    made.set_shape([first.get_shape()[1 if time_major else 0]])
    return made


def _tensors(inputs: Any) -> Any:
    return nest.map_structure(convert_to_tensor, inputs)


class TrainingSampler(_ByHelper):
    """Feeds the inputs [batch, time, ...] that are given, as many of each example as its length says, or all."""

    def __init__(self, time_major: bool = False) -> None:
        self.time_major = time_major

    def initialize(self, inputs: Any, sequence_length: Any = None) -> Any:  # type: ignore[override]
        """(finished, the first inputs)."""
        inputs = _tensors(inputs)
        return self._begin(TrainingHelper(inputs, _lengths(inputs, sequence_length, self.time_major), self.time_major))


class ScheduledEmbeddingTrainingSampler(TrainingSampler):
    """Feeds, each with a probability, the embedding of what is drawn by the outputs instead of the inputs given (Bengio et al. 2015)."""

    def __init__(
        self,
        sampling_probability: Any,
        embedding_fn: Optional[Callable[[Any], Any]] = None,
        time_major: bool = False,
        seed: Optional[int] = None,
        scheduling_seed: Optional[int] = None,
    ) -> None:
        if embedding_fn is not None and not callable(embedding_fn):
            raise at_user_line(ValueError("embedding_fn is expected to be callable, got %s" % type(embedding_fn)))
        super().__init__(time_major)
        self.sampling_probability, self.embedding_fn, self._seeds = sampling_probability, embedding_fn, (seed, scheduling_seed)

    def initialize(self, inputs: Any, sequence_length: Any = None, embedding: Any = None) -> Any:  # type: ignore[override]
        """(finished, the first inputs); `embedding` is the table, where no function embeds."""
        if embedding is None and self.embedding_fn is None:
            raise at_user_line(ValueError("embedding is required as a keyword argument for ScheduledEmbeddingTrainingSampler"))
        inputs = _tensors(inputs)
        lengths = _lengths(inputs, sequence_length, self.time_major)
        embed = self.embedding_fn or embedding
        return self._begin(ScheduledEmbeddingTrainingHelper(inputs, lengths, embed, self.sampling_probability, self.time_major, *self._seeds))


class ScheduledOutputTrainingSampler(TrainingSampler):
    """Feeds, each with a probability, the outputs (or what next_inputs_fn makes of them) instead of the inputs given, with auxiliary inputs behind either."""

    def __init__(self, sampling_probability: Any, time_major: bool = False, seed: Optional[int] = None, next_inputs_fn: Any = None) -> None:
        super().__init__(time_major)
        self.sampling_probability, self.seed, self.next_inputs_fn = sampling_probability, seed, next_inputs_fn

    def initialize(self, inputs: Any, sequence_length: Any = None, auxiliary_inputs: Any = None) -> Any:  # type: ignore[override]
        """(finished, the first inputs)."""
        inputs = _tensors(inputs)
        lengths = _lengths(inputs, sequence_length, self.time_major)
        return self._begin(
            ScheduledOutputTrainingHelper(inputs, lengths, self.sampling_probability, self.time_major, self.seed, self.next_inputs_fn, auxiliary_inputs)
        )


class GreedyEmbeddingSampler(_ByHelper):
    """Feeds back the embedding of what the outputs find most likely, from start tokens to the end token."""

    def __init__(self, embedding_fn: Optional[Callable[[Any], Any]] = None) -> None:
        if embedding_fn is not None and not callable(embedding_fn):
            raise at_user_line(ValueError("embedding_fn is expected to be a callable, got %s" % type(embedding_fn)))
        self.embedding_fn = embedding_fn

    def initialize(self, embedding: Any, start_tokens: Any = None, end_token: Any = None) -> Any:  # type: ignore[override]
        """(finished, the first inputs); `embedding` is the table, where no function embeds."""
        if embedding is None and self.embedding_fn is None:
            raise at_user_line(ValueError("an embedding is needed: embedding_fn, or the table when decoding begins"))
        return self._begin(self._of(self.embedding_fn or embedding, start_tokens, end_token))

    def _of(self, embedding: Any, start_tokens: Any, end_token: Any) -> Helper:
        return GreedyEmbeddingHelper(embedding, start_tokens, end_token)


class SampleEmbeddingSampler(GreedyEmbeddingSampler):
    """Feeds back the embedding of what is drawn by the outputs."""

    def __init__(self, embedding_fn: Any = None, softmax_temperature: Any = None, seed: Optional[int] = None) -> None:
        super().__init__(embedding_fn)
        self.softmax_temperature, self.seed = softmax_temperature, seed

    def _of(self, embedding: Any, start_tokens: Any, end_token: Any) -> Helper:
        return SampleEmbeddingHelper(embedding, start_tokens, end_token, self.softmax_temperature, self.seed)


class InferenceSampler(_ByHelper):
    """Feeds back what sample_fn makes of the outputs, until end_fn says so."""

    def __init__(self, sample_fn: Any, sample_shape: Any, sample_dtype: Any, end_fn: Any, next_inputs_fn: Any = None) -> None:
        self._parts = (sample_fn, sample_shape, sample_dtype)
        self._rest = (end_fn, next_inputs_fn)
        self._shape, self._dtype = tensor_shape.TensorShape(sample_shape), sample_dtype

    def initialize(self, start_inputs: Any) -> Any:  # type: ignore[override]
        """(finished, the first inputs)."""
        return self._begin(InferenceHelper(*self._parts, start_inputs, *self._rest))


def bernoulli_sample(probs: Any = None, logits: Any = None, dtype: Any = dtypes.int32, sample_shape: Any = (), seed: Optional[int] = None) -> Any:
    """Ones with the probabilities that are given, or those of logits, and else zeros: sample_shape of each."""
    return Bernoulli(logits=logits if probs is None else None, probs=probs, dtype=dtype).sample(sample_shape, seed)


def categorical_sample(logits: Any, dtype: Any = dtypes.int32, sample_shape: Any = (), seed: Optional[int] = None) -> Any:
    """Numbers of classes, drawn by the logits of the last axis: sample_shape of each."""
    return Categorical(logits=logits, dtype=dtype).sample(sample_shape, seed)
