# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.ndlstm: LSTMs along sequences [length, batch, depth] and over images [batch, height, width, depth]."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace import nn
from millrace.contrib.framework import model_variable
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, init_ops, math_ops
from millrace.ops.rnn import dynamic_rnn, static_rnn
from millrace.ops.rnn_cell import BasicLSTMCell
from millrace.ops.variable_scope import variable_scope


def _shape(tensor: Any) -> List[int]:
    sizes: List[int] = tensor.get_shape().as_list()
    return sizes


# ---- along sequences ----


def ndlstm_base_unrolled(inputs: Any, noutput: int, scope: Any = None, reverse: Any = False) -> Tensor:
    """The outputs [length, batch, noutput] of an LSTM along inputs [length, batch, depth], unrolled."""
    with variable_scope(scope, "SeqLstmUnrolled", [inputs]) as varscope:
        steps = array_ops.unstack(convert_to_tensor(inputs))
        outputs, _ = static_rnn(BasicLSTMCell(noutput, state_is_tuple=False), steps[::-1] if reverse else steps, dtype=steps[0].dtype, scope=varscope)
        return array_ops.stack(outputs[::-1] if reverse else outputs)


def ndlstm_base_dynamic(inputs: Any, noutput: int, scope: Any = None, reverse: Any = False) -> Tensor:
    """The outputs [length, batch, noutput] of an LSTM along inputs [length, batch, depth], in a loop."""
    with variable_scope(scope, "SeqLstm", [inputs]):
        given = convert_to_tensor(inputs)
        steps = array_ops.reverse(given, [0]) if reverse else given
        outputs, _ = dynamic_rnn(BasicLSTMCell(noutput, state_is_tuple=False), steps, dtype=given.dtype, time_major=True)
        return array_ops.reverse(outputs, [0]) if reverse else outputs


def ndlstm_base(inputs: Any, noutput: int, scope: Any = None, reverse: Any = False, dynamic: bool = True) -> Tensor:
    """The outputs [length, batch, noutput] of an LSTM along inputs [length, batch, depth], from the last to the first with reverse."""
    return (ndlstm_base_dynamic if dynamic else ndlstm_base_unrolled)(inputs, noutput, scope, reverse)


def sequence_to_final(inputs: Any, noutput: int, scope: Any = None, name: Optional[str] = None, reverse: Any = False) -> Tensor:
    """The last output [batch, noutput] of an LSTM along inputs [length, batch, depth]."""
    with variable_scope(scope, "SequenceToFinal", [inputs]) as varscope:
        steps = array_ops.unstack(convert_to_tensor(inputs))
        outputs, _ = static_rnn(BasicLSTMCell(noutput, state_is_tuple=False), steps[::-1] if reverse else steps, dtype=steps[0].dtype, scope=varscope)
        return array_ops.reshape(outputs[-1], [_shape(inputs)[1], noutput], name=name)


def sequence_softmax(inputs: Any, noutput: int, scope: Any = None, name: Optional[str] = None, linear_name: Optional[str] = None) -> Tensor:
    """Probabilities [length, batch, noutput] of inputs [length, batch, depth], by one layer for all steps."""
    with variable_scope(scope, "SequenceSoftmax", [inputs]):
        given = convert_to_tensor(inputs)
        depth = _shape(given)[2]
        weights = model_variable("weights", shape=[depth, noutput], initializer=init_ops.truncated_normal_initializer(stddev=0.1))
        biases = model_variable("biases", shape=[noutput], initializer=init_ops.constant_initializer(0.1))
        outputs = []
        for step in array_ops.unstack(given):
            with variable_scope(scope, "SequenceSoftmaxStep", [step]):
                outputs.append(nn.softmax(nn.xw_plus_b(step, weights, biases, name=linear_name)))
        return array_ops.stack(outputs, name=name or "stack")


# ---- over images ----


def images_to_sequence(tensor: Any) -> Tensor:
    """Images [batch, height, width, depth] as a sequence [width, batch * height, depth]."""
    batch, height, width, depth = _shape(tensor)
    return array_ops.reshape(array_ops.transpose(tensor, [2, 0, 1, 3]), [width, batch * height, depth])


def sequence_to_images(tensor: Any, num_image_batches: int) -> Tensor:
    """What images_to_sequence made as images [num_image_batches, height, width, depth] again."""
    width, rows, depth = _shape(tensor)
    return array_ops.transpose(array_ops.reshape(tensor, [width, num_image_batches, rows // num_image_batches, depth]), [1, 2, 0, 3])


def horizontal_lstm(images: Any, num_filters_out: int, scope: Any = None) -> Tensor:
    """Images [batch, height, width, num_filters_out] of LSTMs along the rows, half of the filters from each side."""
    with variable_scope(scope, "HorizontalLstm", [images]):
        sequence = images_to_sequence(images)
        with variable_scope("lr"):
            from_left = ndlstm_base(sequence, num_filters_out // 2)
        with variable_scope("rl"):
            from_right = ndlstm_base(sequence, num_filters_out - num_filters_out // 2, reverse=True)
        return sequence_to_images(array_ops.concat([from_left, from_right], 2), _shape(images)[0])


def separable_lstm(images: Any, num_filters_out: int, nhidden: Optional[int] = None, scope: Any = None) -> Tensor:
    """Images [batch, height, width, num_filters_out] of LSTMs along rows, with nhidden filters, and then along columns."""
    with variable_scope(scope, "SeparableLstm", [images]):
        hidden = horizontal_lstm(images, num_filters_out if nhidden is None else nhidden)
        with variable_scope("vertical"):
            columns = horizontal_lstm(array_ops.transpose(hidden, [0, 2, 1, 3]), num_filters_out)
        return array_ops.transpose(columns, [0, 2, 1, 3])


def _down(images: Any, num_filters_out: int) -> Tensor:
    """What an LSTM down each column ends with, [batch, width, num_filters_out]."""
    batch, height, width, depth = _shape(images)
    columns = array_ops.reshape(array_ops.transpose(images, [1, 0, 2, 3]), [height, batch * width, depth])
    return array_ops.reshape(sequence_to_final(columns, num_filters_out), [batch, width, num_filters_out])


def reduce_to_sequence(images: Any, num_filters_out: int, scope: Any = None) -> Tensor:
    """What an LSTM down each column of images [batch, height, width, depth] ends with, [batch, width, num_filters_out]."""
    with variable_scope(scope, "ReduceToSequence", [images]):
        return _down(images, num_filters_out)


def reduce_to_final(images: Any, num_filters_out: int, nhidden: Optional[int] = None, scope: Any = None) -> Tensor:
    """What an LSTM ends with, [batch, num_filters_out], along what one with nhidden filters ends with down each column."""
    with variable_scope(scope, "ReduceToFinal", [images]):
        with variable_scope("reduce1"):
            row = _down(images, nhidden or num_filters_out)
        with variable_scope("reduce2"):
            return sequence_to_final(array_ops.transpose(row, [1, 0, 2]), num_filters_out)


# ---- without LSTMs ----


def pixels_as_vector(images: Any, scope: Optional[str] = None) -> Tensor:
    """All pixels of each image, [batch, height * width * depth]."""
    with name_scope(scope, "PixelsAsVector", [images]):
        batch, height, width, depth = _shape(images)
        return array_ops.reshape(images, [batch, height * width * depth])


def pool_as_vector(images: Any, scope: Optional[str] = None) -> Tensor:
    """The mean of the pixels of each image, [batch, depth]."""
    with name_scope(scope, "PoolAsVector", [images]):
        return math_ops.reduce_mean(images, [1, 2])


def one_hot_planes(labels: Any, num_classes: int, scope: Optional[str] = None) -> Tensor:
    """Labels [batch] as [batch, 1, 1, num_classes] with 1 at the label."""
    with name_scope(scope, "OneHotPlanes", [labels]):
        return array_ops.reshape(array_ops.one_hot(labels, num_classes), [_shape(labels)[0], 1, 1, num_classes])


def one_hot_mask(labels: Any, num_classes: int, scope: Optional[str] = None) -> Tensor:
    """An image [height, width, 1] of labels as [height, width, num_classes] with 1 at each label."""
    with name_scope(scope, "OneHotMask", [labels]):
        height, width, _ = _shape(labels)
        return array_ops.reshape(array_ops.one_hot(array_ops.squeeze(labels, [2]), num_classes), [height, width, num_classes])
