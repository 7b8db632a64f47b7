# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.seq2seq's decoders that are layers: they are given their inputs when they are called, which decodes all of them."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.contrib.seq2seq_samplers import Sampler
from millrace.framework.errors import at_user_line
from millrace.layers.base import Layer
from millrace.ops.beam_search import BeamSearchDecoder
from millrace.ops.decoders import BasicDecoder, Decoder, Helper, dynamic_decode

__all__ = ["BaseDecoder", "BasicDecoderV2", "BeamSearchDecoderV2"]


class BaseDecoder(Layer, Decoder):  # type: ignore[misc]  # a layer that is a decoder
    """Base of decoders that are layers. What derives from it has batch_size, output_size, output_dtype, initialize(inputs, initial_state=..., ...) ->
    (finished, first inputs, state), step and, where it has one, finalize. The arguments are those of dynamic_decode."""

    def __init__(
        self,
        output_time_major: bool = False,
        impute_finished: bool = False,
        maximum_iterations: Any = None,
        parallel_iterations: int = 32,
        swap_memory: bool = False,
        **kwargs: Any,
    ) -> None:
        self.output_time_major, self.impute_finished, self.maximum_iterations = output_time_major, impute_finished, maximum_iterations
        self.parallel_iterations, self.swap_memory = parallel_iterations, swap_memory
        super().__init__(**kwargs)

    def call(self, inputs: Any, initial_state: Any = None, **kwargs: Any) -> Any:
        """(outputs, last state, lengths): what decoding the inputs gives. Other arguments are those of initialize."""
        return dynamic_decode(
            self,
            output_time_major=self.output_time_major,
            impute_finished=self.impute_finished,
            maximum_iterations=self.maximum_iterations,
            parallel_iterations=self.parallel_iterations,
            swap_memory=self.swap_memory,
            decoder_init_input=inputs,
            decoder_init_kwargs={**kwargs, "initial_state": initial_state},
        )


class _ByDecoder(BaseDecoder):
    """One that decodes as another decoder does, which it makes when it begins."""

    _decoder: Any = None

    def _begun(self) -> Any:
        if self._decoder is None:
            raise at_user_line(ValueError("%s has no inputs yet: initialize has not been called" % type(self).__name__))
        return self._decoder

    batch_size = property(lambda self: self._begun().batch_size, doc="The number of examples, known after initialize.")
    output_size = property(lambda self: self._begun().output_size, doc="The shapes of an example's output, known after initialize.")
    output_dtype = property(lambda self: self._begun().output_dtype, doc="The types of the output, known after initialize.")

    def step(self, time: Any, inputs: Any, state: Any) -> Any:
        """(outputs, next state, next inputs, finished)."""
        return self._begun().step(time, inputs, state)

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """What is made of all outputs."""
        return self._begun().finalize(outputs, final_state, sequence_lengths)


class _Begun(Helper):
    """The helper of a decoder whose sampler has been given its inputs."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    batch_size = property(lambda self: self._sampler.batch_size, doc="The number of examples.")
    sample_ids_shape = property(lambda self: self._sampler.sample_ids_shape, doc="The shape of an example's sample.")
    sample_ids_dtype = property(lambda self: self._sampler.sample_ids_dtype, doc="The type of samples.")

    def sample(self, time: Any, outputs: Any, state: Any, name: Optional[str] = None) -> Any:
        """The samples of outputs."""
        return self._sampler.sample(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: Optional[str] = None) -> Any:
        """(finished, inputs, state) of the next step."""
        return self._sampler.next_inputs(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class BasicDecoderV2(_ByDecoder):
    """A cell, a sampler, and a layer on the outputs. ValueError for a sampler that is none."""

    def __init__(self, cell: Any, sampler: Any, output_layer: Any = None, **kwargs: Any) -> None:
        if not isinstance(sampler, Sampler):
            raise at_user_line(ValueError("sampler must be a Sampler, received: %s" % (sampler,)))
        super().__init__(**kwargs)
        self.cell, self.sampler, self.output_layer = cell, sampler, output_layer

    def initialize(self, inputs: Any, initial_state: Any = None, **kwargs: Any) -> Any:
        """(finished, the first inputs, the initial state). Other arguments are those of the sampler's initialize."""
        begun = self.sampler.initialize(inputs, **kwargs)
        self._decoder = BasicDecoder(self.cell, _Begun(self.sampler), initial_state, self.output_layer)
        return (*begun, initial_state)


class BeamSearchDecoderV2(_ByDecoder):
    """Keeps the beam_width most likely beginnings of each example, as BeamSearchDecoder does."""

    def __init__(
        self,
        cell: Any,
        beam_width: int,
        embedding_fn: Optional[Callable[[Any], Any]] = None,
        output_layer: Any = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
        **kwargs: Any,
    ) -> None:
        if embedding_fn is not None and not callable(embedding_fn):
            raise at_user_line(ValueError("embedding_fn is expected to be a callable, got %s" % type(embedding_fn)))
        super().__init__(**kwargs)
        self._cell, self._width, self._embedding_fn, self._output_layer = cell, beam_width, embedding_fn, output_layer
        self._settings = (length_penalty_weight, coverage_penalty_weight, reorder_tensor_arrays)

    tracks_own_finished = property(lambda self: True, doc="Hypotheses change places.")

    def initialize(self, embedding: Any, start_tokens: Any, end_token: Any, initial_state: Any) -> Any:
        """(finished, the first inputs, the initial state). `embedding` is the table, where no function embeds; the state of the cell is that for
        batch * beam_width examples (tile_batch)."""
        if embedding is None and self._embedding_fn is None:
            raise at_user_line(ValueError("an embedding is needed: embedding_fn, or the table when decoding begins"))
        self._decoder = BeamSearchDecoder(
            self._cell, self._embedding_fn or embedding, start_tokens, end_token, initial_state, self._width, self._output_layer, *self._settings
        )
        return self._decoder.initialize()
