# SPDX-License-Identifier: Apache-2.0
"""Cells of tf.contrib.rnn: what TensorFlow 1.15's gave for the same weights."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import rnn

X = (np.arange(12.0).reshape(2, 2, 3) / 10 - 0.5).astype(np.float32)
CELLS = [
    ("SRUCell", {}, "bias kernel", [-0.0666, 0.0491, 0.0194, -0.1281, -0.0972, 0.0469]),
    ("IndRNNCell", {}, "bias kernel_u kernel_w", [0.2357, 0.4324, -0.3448, -0.3541, 0.7255, -0.0751]),
    (
        "IndyGRUCell",
        {},
        "candidate/bias candidate/kernel candidate/kernel_u gates/bias gates/kernel_u gates/kernel_w",
        [0.2629, 0.4418, -0.2852, -0.2157, 0.613, 0.52],
    ),
    ("IndyLSTMCell", {}, "bias kernel_u kernel_w", [0.152, 0.2558, -0.0664, -0.0942, 0.3243, 0.3438]),
    ("MinimalRNNCell", {}, "bias kernel", [0.2193, -0.0385, -0.2957, 0.1852, 0.4823, -0.0877]),
    ("CFNCell", {}, "bias kernel recurrent_kernel", [-0.1115, -0.0236, 0.1716, -0.0044, -0.2333, -0.1416]),
    (
        "LayerNormLSTMCell",
        {"cell_clip": 0.5, "layer_norm": True, "num_proj": 3, "use_peepholes": True},
        "bias forget/beta forget/gamma input/beta input/gamma kernel output/beta output/gamma projection/kernel state/beta state/gamma transform/beta transform/gamma w_f_diag w_i_diag w_o_diag",
        [-0.1406, -0.2056, 0.1936, -0.1841, 0.0167, 0.1798],
    ),
    ("LayerNormLSTMCell", {}, "bias kernel", [0.1051, 0.2458, -0.0646, -0.0937, 0.1692, 0.3198]),
    (
        "WeightNormLSTMCell",
        {"num_proj": 3, "proj_clip": 0.1, "use_peepholes": True},
        "wn_lstm_cell/bias wn_lstm_cell/kernel wn_lstm_cell/norm_0 wn_lstm_cell/norm_1 wn_lstm_cell/projection/kernel wn_lstm_cell/projection/norm_0 wn_lstm_cell/w_f_diag wn_lstm_cell/w_i_diag wn_lstm_cell/w_o_diag",
        [0.1, -0.0891, 0.1, 0.1, -0.1, 0.1],
    ),
    ("WeightNormLSTMCell", {"norm": False}, "wn_lstm_cell/bias wn_lstm_cell/kernel", [0.1051, 0.2458, -0.0646, -0.0937, 0.1692, 0.3198]),
]


@pytest.mark.parametrize("name, arguments, variables, output", CELLS, ids=lambda v: v if isinstance(v, str) and "Cell" in v else None)
def test_outputs_of_known_weights(name, arguments, variables, output):
    with tf.Graph().as_default(), tf.Session() as session:
        outputs, _ = tf.nn.dynamic_rnn(getattr(rnn, name)(4, **arguments), tf.constant(X), dtype=tf.float32)
        made = sorted(tf.trainable_variables(), key=lambda v: v.name)
        assert " ".join(v.op.name.split("/", 2)[2] for v in made) == variables
        session.run(tf.global_variables_initializer())
        for i, v in enumerate(made):
            size = int(np.prod(v.shape.as_list()))
            v.load(np.sin(np.arange(size) * 1.7 + i).reshape(v.shape.as_list()), session)
        np.testing.assert_allclose(session.run(outputs)[1].ravel()[:6], output, atol=6e-5)


def test_cells_are_built_before_they_are_called():
    with tf.Graph().as_default():
        cell = rnn.IndRNNCell(7, dtype=tf.float64)
        cell.build(tf.TensorShape([5, 3]))
        output, _ = cell(tf.zeros([5, 3], tf.float64), cell.get_initial_state(batch_size=5, dtype=tf.float64))
        assert output.shape.as_list() == [5, 7] and len(tf.trainable_variables()) == 3 and output.dtype == tf.float64
