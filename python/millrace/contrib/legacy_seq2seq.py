# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.legacy_seq2seq: sequence models over lists of tensors."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Callable, Dict, List, Optional

from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops, rnn, rnn_cell
from millrace.ops.rnn_parts import _linear
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope


def _extract_argmax_and_embed(embedding: Any, output_projection: Any = None, update_embedding: bool = True) -> Callable[..., Any]:
    def loop_function(prev: Any, _: Any) -> Any:
        if output_projection is not None:
            prev = nn_ops.xw_plus_b(prev, output_projection[0], output_projection[1])
        found = nn_ops.embedding_lookup(embedding, math_ops.argmax(prev, 1))
        return found if update_embedding else gen_ops.stop_gradient(found)

    return loop_function


def rnn_decoder(decoder_inputs: Any, initial_state: Any, cell: Any, loop_function: Any = None, scope: Any = None) -> Any:
    """(outputs, last state); with a loop_function each output decides the next input."""
    with variable_scope(scope or "rnn_decoder"):
        state, outputs, previous = initial_state, [], None
        for i, value in enumerate(decoder_inputs):
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    value = loop_function(previous, i)
            if i > 0:
                get_variable_scope().reuse_variables()
            output, state = cell(value, state)
            outputs.append(output)
            if loop_function is not None:
                previous = output
    return outputs, state


def basic_rnn_seq2seq(encoder_inputs: Any, decoder_inputs: Any, cell: Any, dtype: Any = dtypes.float32, scope: Any = None) -> Any:
    """An encoder and a decoder with the same cell."""
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = rnn.static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(encoder_inputs: Any, decoder_inputs: Any, cell: Any, loop_function: Any = None, dtype: Any = dtypes.float32, scope: Any = None) -> Any:
    """An encoder and a decoder that share the cell's variables."""
    with variable_scope("combined_tied_rnn_seq2seq"):
        name = scope or "tied_rnn_seq2seq"
        _, state = rnn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=name)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, name)


def embedding_rnn_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> Any:
    """rnn_decoder of rows of a table."""
    with variable_scope(scope or "embedding_rnn_decoder"):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = _extract_argmax_and_embed(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        return rnn_decoder([nn_ops.embedding_lookup(embedding, i) for i in decoder_inputs], initial_state, cell, loop)


def embedding_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Any:
    """An encoder and a decoder of rows of tables."""
    with variable_scope(scope or "embedding_rnn_seq2seq"):
        encoder = rnn_cell.EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = rnn.static_rnn(encoder, encoder_inputs, dtype=dtype or dtypes.float32)
        if output_projection is None:
            cell = rnn_cell.OutputProjectionWrapper(cell, num_decoder_symbols)
        return _feed_previous(
            feed_previous,
            lambda previous: embedding_rnn_decoder(decoder_inputs, state, cell, num_decoder_symbols, embedding_size, output_projection, previous),
            state,
        )


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: Optional[int] = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Any:
    """An encoder and a decoder that share the cell's variables and the rows of one table."""
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as captured:
        if output_projection is not None:
            convert_to_tensor(output_projection[0], captured.dtype).get_shape().assert_is_compatible_with([None, num_symbols])
            convert_to_tensor(output_projection[1], captured.dtype).get_shape().assert_is_compatible_with([num_symbols])
        embedding = get_variable("embedding", [num_symbols, embedding_size], captured.dtype)
        encoded, decoded = ([nn_ops.embedding_lookup(embedding, i) for i in inputs] for inputs in (encoder_inputs, decoder_inputs))
        if output_projection is None:
            cell = rnn_cell.OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols)

        def decoder(previous: bool) -> Any:
            loop = _extract_argmax_and_embed(embedding, output_projection) if previous else None
            return tied_rnn_seq2seq(encoded, decoded, cell, loop, captured.dtype)

        return _feed_previous(feed_previous, decoder, cell.zero_state(1, captured.dtype))


def one2many_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs_dict: Dict[str, Any],
    enc_cell: Any,
    dec_cells_dict: Dict[str, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Dict[str, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Any:
    """An encoder, and decoders by names, each of rows of its own table: (dict of outputs, dict of states)."""
    for cell in (enc_cell, *dec_cells_dict.values()):
        if not isinstance(cell, rnn_cell.RNNCell):
            raise at_user_line(TypeError("enc_cell and dec_cells have to be RNNCells, got %s" % type(cell)))
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise at_user_line(ValueError("dec_cells_dict and decoder_inputs_dict have different keys: %s, %s" % (list(dec_cells_dict), list(decoder_inputs_dict))))
    outputs, states = {}, {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as captured:
        encoder = rnn_cell.EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = rnn.static_rnn(encoder, encoder_inputs, dtype=captured.dtype)
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with variable_scope("one2many_decoder_" + str(name)):
                cell = rnn_cell.OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decoder(previous: bool, inputs: Any = inputs, cell: Any = cell, symbols: int = symbols) -> Any:
                    return embedding_rnn_decoder(inputs, state, cell, symbols, embedding_size, feed_previous=previous)

                outputs[name], states[name] = _feed_previous(feed_previous, decoder, state)
    return outputs, states


def _feed_previous(feed_previous: Any, decoder: Callable[[bool], Any], state: Any) -> Any:
    if isinstance(feed_previous, bool):
        return decoder(feed_previous)

    def branch(previous: bool, reuse: Any) -> Callable[[], List[Any]]:
        def build() -> List[Any]:
            with variable_scope(get_variable_scope(), reuse=reuse):
                outputs, last = decoder(previous)
                return list(outputs) + nest.flatten(last)

        return build

    values = control_flow_ops.cond(feed_previous, branch(True, None), branch(False, True))
    count = len(values) - len(nest.flatten(state))
    return values[:count], nest.pack_sequence_as(state, values[count:])


def attention_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: Optional[int] = None,
    num_heads: int = 1,
    loop_function: Any = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Any:
    """rnn_decoder that looks at attention_states [batch, length, size] in every step (Vinyals et al. 2014)."""
    if not decoder_inputs:
        raise at_user_line(ValueError("Must provide at least 1 input to attention decoder."))
    if num_heads < 1:
        raise at_user_line(ValueError("With less than 1 heads, use a non-attention decoder."))
    output_size = cell.output_size if output_size is None else output_size
    with variable_scope(scope or "attention_decoder", dtype=dtype) as captured:
        dtype = captured.dtype
        batch = array_ops.shape(decoder_inputs[0])[0]
        length, size = attention_states.get_shape()[1].value, attention_states.get_shape()[2].value
        if length is None:
            length = array_ops.shape(attention_states)[1]
        hidden = array_ops.reshape(attention_states, [-1, length, 1, size])
        features, vectors = [], []
        for head in range(num_heads):
            kernel = get_variable("AttnW_%d" % head, [1, 1, size, size], dtype)
            features.append(nn_ops.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
            vectors.append(get_variable("AttnV_%d" % head, [size], dtype))
        state = initial_state

        def attention(query: Any) -> List[Tensor]:
            reads = []
            flat = nest.flatten(query)
            joined = flat[0] if len(flat) == 1 else array_ops.concat(flat, 1)
            for head in range(num_heads):
                with variable_scope("Attention_%d" % head):
                    y = array_ops.reshape(_linear(joined, size, True), [-1, 1, 1, size])
                    scores = math_ops.reduce_sum(vectors[head] * math_ops.tanh(features[head] + y), [2, 3])
                    weights = nn_ops.softmax(scores)
                    read = math_ops.reduce_sum(array_ops.reshape(weights, [-1, length, 1, 1]) * hidden, [1, 2])
                    reads.append(array_ops.reshape(read, [-1, size]))
            return reads

        outputs, previous = [], None
        attns = [array_ops.zeros(array_ops.stack([batch, size]), dtype) for _ in range(num_heads)]
        for a in attns:
            a.set_shape([None, size])
        if initial_state_attention:
            attns = attention(initial_state)
        for i, value in enumerate(decoder_inputs):
            if i > 0:
                get_variable_scope().reuse_variables()
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    value = loop_function(previous, i)
            width = value.get_shape()[1].value
            if width is None:
                raise at_user_line(ValueError("Could not infer input size from input: %s" % value.name))
            x = _linear([value] + attns, width, True)
            output, state = cell(x, state)
            if i == 0 and initial_state_attention:
                with variable_scope(get_variable_scope(), reuse=True):
                    attns = attention(state)
            else:
                attns = attention(state)
            with variable_scope("AttnOutputProjection"):
                output = _linear([output] + attns, output_size, True)
            if loop_function is not None:
                previous = output
            outputs.append(output)
    return outputs, state


def embedding_attention_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: Optional[int] = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Any:
    """attention_decoder of rows of a table."""
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = _extract_argmax_and_embed(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        return attention_decoder(
            [nn_ops.embedding_lookup(embedding, i) for i in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            cell.output_size if output_size is None else output_size,
            num_heads,
            loop,
            initial_state_attention=initial_state_attention,
        )


def embedding_attention_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Any:
    """An encoder, and a decoder that looks at its outputs."""
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype):
        encoder = rnn_cell.EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = rnn.static_rnn(encoder, encoder_inputs, dtype=dtype or dtypes.float32)
        attention_states = array_ops.concat([array_ops.reshape(o, [-1, 1, cell.output_size]) for o in outputs], 1)
        size = None
        if output_projection is None:
            cell = rnn_cell.OutputProjectionWrapper(cell, num_decoder_symbols)
            size = num_decoder_symbols
        return _feed_previous(
            feed_previous,
            lambda previous: embedding_attention_decoder(
                decoder_inputs,
                state,
                attention_states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads,
                size,
                output_projection,
                previous,
                initial_state_attention=initial_state_attention,
            ),
            state,
        )


def loss_of(function: Callable[..., Any], target: Any, logit: Any) -> Any:
    """Calls a loss function of the user's: function(labels=, logits=) since 1.1, (targets, logits) in 1.0, (logits, targets) before. Its
    own names of arguments say which."""
    try:
        names = [n for n, p in inspect.signature(function).parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    except (TypeError, ValueError):
        names = []
    if "labels" in names and "logits" in names:
        return function(labels=target, logits=logit)
    if names and names[0].lstrip("_").lower().startswith(("input", "logit", "pred", "output")):
        return function(logit, target)
    return function(target, logit)


def sequence_loss_by_example(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    softmax_loss_function: Any = None,
    name: Optional[str] = None,
    *unused: Any,
    **unused_keywords: Any,
) -> Tensor:
    """The weighted cross entropy of each sequence; lists over the steps."""
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise at_user_line(ValueError("Lengths of logits, weights, and targets must be the same %d, %d, %d." % (len(logits), len(weights), len(targets))))
    if not isinstance(average_across_timesteps, bool) or softmax_loss_function is not None and not callable(softmax_loss_function):
        average_across_timesteps, softmax_loss_function = True, None  # 0.x had the number of symbols here
    with name_scope(name, "sequence_loss_by_example", list(logits)):
        if softmax_loss_function is None:
            return gen_ops.sequence_loss_by_example(list(logits), list(targets), list(weights), average_across_timesteps)
        total = gen_ops.add_n([loss_of(softmax_loss_function, target, logit) * weight for logit, target, weight in zip(logits, targets, weights)])
        if average_across_timesteps:
            total = total / (gen_ops.add_n([convert_to_tensor(w) for w in weights]) + 1e-12)
        return total


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Any = None,
    name: Optional[str] = None,
    *unused: Any,
) -> Tensor:
    """The weighted cross entropy of a batch of sequences; lists over the steps."""
    with name_scope(name, "sequence_loss", list(logits)):
        cost = math_ops.reduce_sum(sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function))
        if not average_across_batch:
            return cost
        return cost / gen_ops.cast(array_ops.shape(convert_to_tensor(targets[0]))[0], cost.dtype)


def model_with_buckets(
    encoder_inputs: Any,
    decoder_inputs: Any,
    targets: Any,
    weights: Any,
    buckets: Any,
    seq2seq: Any,
    softmax_loss_function: Any = None,
    per_example_loss: bool = False,
    name: Optional[str] = None,
    *unused: Any,
) -> Any:
    """(outputs, losses) of a sequence model for each pair of lengths; all share the variables."""
    if not callable(seq2seq):  # 0.x: the number of symbols came before
        seq2seq, softmax_loss_function = softmax_loss_function, None
    outputs, losses = [], []
    with name_scope(name, "model_with_buckets"):
        for i, (source, target) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if i > 0 else None):
                made, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
                outputs.append(made)
                loss = sequence_loss_by_example if per_example_loss else sequence_loss
                losses.append(loss(made, targets[:target], weights[:target], softmax_loss_function=softmax_loss_function))
    return outputs, losses
