# SPDX-License-Identifier: Apache-2.0
"""The decoders of tf.contrib.seq2seq up to TensorFlow 1.1: a function that says step by step what a cell reads and emits.

decoder_fn(time, cell_state, cell_input, cell_output, context_state) gives (done, next state, next input, what is emitted, next context). In the
first call state and output are None; while training `done` is None, the lengths of the sequences say it.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

from millrace.contrib.layers import linear
from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops, nn_ops, rnn
from millrace.ops.rnn_cells import LSTMStateTuple
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variable_scope import get_variable, variable_scope

_Decoder = Callable[..., Any]


def dynamic_rnn_decoder(
    cell: Any,
    decoder_fn: _Decoder,
    inputs: Any = None,
    sequence_length: Any = None,
    parallel_iterations: Optional[int] = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
    name: Optional[str] = None,
) -> Tuple[Tensor, Any, Any]:
    """(outputs, last state, last context) of a cell along inputs [batch, time, depth], or without inputs as far as decoder_fn wants to go."""
    with name_scope(name, "dynamic_rnn_decoder", [inputs, sequence_length]):
        if inputs is not None:
            inputs = convert_to_tensor(inputs)
            if sequence_length is None:
                raise at_user_line(ValueError("dynamic_rnn_decoder with inputs needs their sequence_length"))
            if inputs.get_shape().ndims != 3 or inputs.get_shape()[2].value is None:
                raise at_user_line(ValueError("Inputs must have three dimensions, the last one of known size, got shape %s" % inputs.get_shape()))
            along = inputs if time_major else array_ops.transpose(inputs, [1, 0, 2])
            steps, batch, depth = (known.value for known in along.get_shape())
            sizes = array_ops.shape(along)
            steps, batch = steps if steps is not None else sizes[0], batch if batch is not None else sizes[1]
            kept = TensorArray(along.dtype.base_dtype, size=steps).unstack(along)

        def next_input(time: Any, first: bool) -> Any:
            if inputs is None:
                return None
            if first:
                made = kept.read(0)
            else:
                made = control_flow_ops.cond(
                    gen_ops.equal(time, steps), lambda: array_ops.zeros(array_ops.stack([batch, depth]), along.dtype.base_dtype), lambda: kept.read(time)
                )
            made.set_shape(along.get_shape()[1:])
            return made

        def loop_fn(time: Any, cell_output: Any, cell_state: Any, loop_state: Any) -> Any:
            context = loop_state[1] if isinstance(loop_state, tuple) else None
            done, state, following, emitted, context = decoder_fn(time, cell_state, next_input(time, cell_state is None), cell_output, context)
            if done is None:
                done = gen_ops.greater_equal(time, math_ops.cast(sequence_length, dtypes.int32))
            return done, following, state, emitted, done if context is None else (done, context)

        outputs, state, loop_state = rnn.raw_rnn(cell, loop_fn, parallel_iterations, swap_memory, scope)
        stacked = outputs.stack()
        return stacked if time_major else array_ops.transpose(stacked, [1, 0, 2]), state, loop_state[1] if isinstance(loop_state, tuple) else None


def simple_decoder_fn_train(encoder_state: Any, name: Optional[str] = None) -> _Decoder:
    """Reads the inputs, from a state on."""
    del name  # of no single operation

    def decoder_fn(time: Any, cell_state: Any, cell_input: Any, cell_output: Any, context_state: Any) -> Any:
        del time  # every step is alike
        return None, encoder_state if cell_state is None else cell_state, cell_input, cell_output, context_state

    return decoder_fn


def _greedy(
    output_fn: Any, encoder_state: Any, embeddings: Any, start: Any, end: Any, maximum_length: Any, symbols: Any, dtype: Any, attend: Optional[_Decoder]
) -> _Decoder:
    """Reads the embedding of the likeliest symbol before, until that is the end; `attend` makes what is added to the input, and put out."""
    start, end, symbols = (convert_to_tensor(v, dtype) for v in (start, end, symbols))
    longest = convert_to_tensor(maximum_length, dtypes.int32)
    leading = nest.flatten(encoder_state)[0]
    batch = leading.get_shape()[0].value if leading.get_shape()[0].value is not None else array_ops.shape(leading)[0]
    outputs = output_fn or (lambda x: x)

    def decoder_fn(time: Any, cell_state: Any, cell_input: Any, cell_output: Any, context_state: Any) -> Any:
        if cell_input is not None:
            raise at_user_line(ValueError("Expected cell_input to be None, but saw: %s" % cell_input))
        attention = None
        if cell_output is None:
            cell_state = encoder_state
            ids = array_ops.ones([batch], dtype) * start
            done: Any = array_ops.zeros([batch], dtypes.bool_)
            emitted = array_ops.zeros(array_ops.reshape(symbols, [1]), dtypes.float32)
            if attend is not None:
                attention = _no_attention(encoder_state)
        else:
            if attend is not None:
                attention = cell_output = attend(cell_output)
            emitted = outputs(cell_output)
            ids = math_ops.cast(math_ops.argmax(emitted, 1), dtype)
            done = gen_ops.equal(ids, end)
        following = array_ops.gather(embeddings, ids)
        if attention is not None:
            following = array_ops.concat([following, attention], 1)
        ended = gen_ops.logical_or(done, gen_ops.greater(time, longest))
        return ended, cell_state, following, emitted, context_state

    return decoder_fn


def simple_decoder_fn_inference(
    output_fn: Any,
    encoder_state: Any,
    embeddings: Any,
    start_of_sequence_id: Any,
    end_of_sequence_id: Any,
    maximum_length: Any,
    num_decoder_symbols: Any,
    dtype: Any = dtypes.int32,
    name: Optional[str] = None,
) -> _Decoder:
    """Reads the embedding of the likeliest symbol of output_fn(output), until that is the end, or beyond maximum_length steps."""
    with name_scope(name, "simple_decoder_fn_inference", [embeddings]):
        return _greedy(output_fn, encoder_state, embeddings, start_of_sequence_id, end_of_sequence_id, maximum_length, num_decoder_symbols, dtype, None)


def _no_attention(encoder_state: Any) -> Tensor:
    """Zeros like the output of the topmost cell."""
    top = encoder_state[-1] if isinstance(encoder_state, tuple) else encoder_state
    return array_ops.zeros_like(top.h if isinstance(top, LSTMStateTuple) else top)


def attention_decoder_fn_train(
    encoder_state: Any, attention_keys: Any, attention_values: Any, attention_score_fn: Any, attention_construct_fn: Any, name: Optional[str] = None
) -> _Decoder:
    """Reads the inputs beside the attention that attention_construct_fn makes of each output, which is put out."""
    del attention_score_fn  # attention_construct_fn calls it
    del name  # of no single operation

    def decoder_fn(time: Any, cell_state: Any, cell_input: Any, cell_output: Any, context_state: Any) -> Any:
        del time  # every step is alike
        if cell_state is None:
            cell_state, attention = encoder_state, _no_attention(encoder_state)
        else:
            cell_output = attention = attention_construct_fn(cell_output, attention_keys, attention_values)
        return None, cell_state, array_ops.concat([cell_input, attention], 1), cell_output, context_state

    return decoder_fn


def attention_decoder_fn_inference(
    output_fn: Any,
    encoder_state: Any,
    attention_keys: Any,
    attention_values: Any,
    attention_score_fn: Any,
    attention_construct_fn: Any,
    embeddings: Any,
    start_of_sequence_id: Any,
    end_of_sequence_id: Any,
    maximum_length: Any,
    num_decoder_symbols: Any,
    dtype: Any = dtypes.int32,
    name: Optional[str] = None,
) -> _Decoder:
    """simple_decoder_fn_inference with attention: inputs have it beside them, and output_fn reads it."""
    del attention_score_fn  # attention_construct_fn calls it
    with name_scope(name, "attention_decoder_fn_inference", [embeddings]):
        return _greedy(
            output_fn,
            encoder_state,
            embeddings,
            start_of_sequence_id,
            end_of_sequence_id,
            maximum_length,
            num_decoder_symbols,
            dtype,
            lambda output: attention_construct_fn(output, attention_keys, attention_values),
        )


def prepare_attention(attention_states: Any, attention_option: str, num_units: int, reuse: Optional[bool] = False) -> Tuple[Any, Any, Any, Any]:
    """(keys, values, a function of the scores, one of the attention) of states [batch, time, depth]; the option is "luong" or "bahdanau"."""
    if attention_option not in ("bahdanau", "luong"):
        raise at_user_line(ValueError("Unknown attention option %s!" % attention_option))
    with variable_scope("attention_keys", reuse=reuse) as scope:
        keys = linear(attention_states, num_units, biases_initializer=None, scope=scope)
    with variable_scope("attention_score", reuse=reuse):
        if attention_option == "bahdanau":
            query_w, score_v = get_variable("attnW", [num_units, num_units]), get_variable("attnV", [num_units])

    def score(query: Any, keys: Any, values: Any) -> Any:
        if attention_option == "bahdanau":
            asked = array_ops.reshape(matrix_ops.matmul(query, query_w), [-1, 1, num_units])
            scores = math_ops.reduce_sum(score_v * math_ops.tanh(keys + asked), [2])
        else:
            scores = math_ops.reduce_sum(keys * array_ops.reshape(query, [-1, 1, num_units]), [2])
        return math_ops.reduce_sum(array_ops.expand_dims(nn_ops.softmax(scores), 2) * values, [1])

    with variable_scope("attention_construct", reuse=reuse) as construct_scope:
        pass
    made = False  # whether its weights are there, so that a later call takes them

    def construct(query: Any, keys: Any, values: Any) -> Any:
        nonlocal made
        again, made = True if made else None, True
        joined = array_ops.concat([query, score(query, keys, values)], 1)
        return linear(joined, num_units, biases_initializer=None, reuse=again, scope=construct_scope)

    return keys, attention_states, score, construct
