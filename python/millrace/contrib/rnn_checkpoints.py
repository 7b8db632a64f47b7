# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.rnn.python.tools.checkpoint_convert: checkpoints from before 1.2, whose cells had weights and biases for kernel and bias."""

from __future__ import annotations

import collections
from typing import Any, Dict, Tuple

from millrace import tf_logging
from millrace.framework.graph import Graph
from millrace.framework.session import Session
from millrace.ops.variables import Variable, global_variables_initializer
from millrace.train.saver import V1, V2, CheckpointReader, Saver

_RENAMED_ALIKE = """
basic_rnn_cell gru_cell gru_cell/gates gru_cell/candidate basic_lstm_cell lstm_cell lstm_cell/projection output_projection_wrapper
input_projection_wrapper lstm_block_wrapper layer_norm_basic_lstm_cell ugrnn_cell intersection_rnn_cell intersection_rnn_cell/in_projection
phased_lstm_cell/mask_gates phased_lstm_cell/new_input phased_lstm_cell/output_gate attention_cell_wrapper
attention_cell_wrapper/attn_output_projection attention_cell_wrapper/attention attention_decoder attention_decoder/Attention_0
attention_decoder/AttnOutputProjection
"""
# The old name within a variable's name, and the new one; the first that is found is replaced.
RNN_NAME_REPLACEMENTS: Dict[str, str] = collections.OrderedDict()
for _scope in _RENAMED_ALIKE.split():
    RNN_NAME_REPLACEMENTS.update({_scope + "/weights": _scope + "/kernel", _scope + "/biases": _scope + "/bias"})
RNN_NAME_REPLACEMENTS.update({"nas_rnn/weights": "nas_rnn/kernel", "nas_rnn/recurrent_weights": "nas_rnn/recurrent_kernel"})
for _scope in ("attention_decoder/Attention_0", "attention_decoder/AttnOutputProjection", "attention_decoder"):
    RNN_NAME_REPLACEMENTS.update({_scope + "/Linear/Bias": _scope + "/bias", _scope + "/Linear/Matrix": _scope + "/kernel"})
RNN_NAME_REPLACEMENTS.update(
    {"attention_decoder/LSTMCell/B": "attention_decoder/lstm_cell/bias", "attention_decoder/LSTMCell/W_0": "attention_decoder/lstm_cell/kernel"}
)


def _renamed(name: str) -> str:
    for old, new in RNN_NAME_REPLACEMENTS.items():
        if old in name:
            tf_logging.info("Converted: %s --> %s", name, name.replace(old, new))
            return name.replace(old, new)
    return name


def convert_names(checkpoint_from_path: str, checkpoint_to_path: str, write_v1_checkpoint: bool = False) -> Tuple[Dict[str, Any], Dict[str, str]]:
    """Writes a checkpoint again with the new names: ({new name: variable}, {old name: new name} of those that changed)."""
    reader = CheckpointReader(checkpoint_from_path)
    with Graph().as_default():
        changed = {name: _renamed(name) for name in reader.get_variable_to_shape_map()}
        variables = {new: Variable(reader.get_tensor(old), name=old) for old, new in changed.items()}
        saver = Saver(variables, write_version=V1 if write_v1_checkpoint else V2)
        with Session() as session:
            session.run(global_variables_initializer())
            saver.save(session, checkpoint_to_path)
    return variables, {old: new for old, new in changed.items() if old != new}
