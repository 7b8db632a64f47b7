# SPDX-License-Identifier: Apache-2.0
"""Cells of tf.contrib.rnn: what TensorFlow 1.15's gave for the same weights; tf.contrib.recurrent, and checkpoints of old cells."""

import collections

import numpy as np
import pytest

import millrace as tf
from millrace import contrib
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


Poly, Power = collections.namedtuple("Poly", "sum power"), collections.namedtuple("Power", "x")


@pytest.mark.parametrize("own_gradient", [False, True])
def test_cells_as_functions(own_gradient):
    """Sums of coefficients times powers of x."""
    x, coefficients = tf.constant(2.0), tf.constant([1.0, 2.0, 3.0])

    def cell(theta, state, coefficient):
        return Poly(state.sum + coefficient * state.power, state.power * theta.x), [state.power]

    def gradient(theta, state, coefficient, extras, new):
        assert len(extras) == 1
        return Power(new.power * state.power), Poly(new.sum, new.sum * coefficient + new.power * theta.x), 3.0 * new.sum * state.power

    given = {"cell_grad": gradient} if own_gradient else {}
    states, last = contrib.recurrent.Recurrent(Power(x), Poly(tf.constant(0.0), tf.constant(1.0)), coefficients, cell, **given)
    found = tf.gradients(last.sum, [x, coefficients])
    with tf.Session() as session:
        assert [v.tolist() for v in session.run(list(states))] == [[1, 5, 17], [2, 4, 8]] and session.run(last.sum) == 17
        of_x, of_coefficients = session.run(found)
    np.testing.assert_allclose(of_x, 14)
    np.testing.assert_allclose(of_coefficients, np.array([1, 2, 4]) * (3 if own_gradient else 1))  # the cell's own is three times too large


@pytest.mark.parametrize("at_end, wanted", [(False, [1, 3, 0, 0]), (True, [0, 0, 3, 7])])
def test_cells_run_for_some_steps(at_end, wanted):
    xs, count = tf.constant([1.0, 2.0, 3.0, 4.0]), tf.placeholder(tf.int32, [])
    states, last = contrib.recurrent.Recurrent([], tf.constant(0.0), xs, lambda _, s, x: (s + x, []), max_input_length=count, aligned_end=at_end)
    with tf.Session() as session:
        assert session.run(states, {count: 2}).tolist() == wanted and session.run(last, {count: 2}) == max(wanted)
        assert session.run(states, {count: 0}).tolist() == [0] * 4


def test_functional_cells_are_dynamic_ones():
    kinds = []
    for module, name in ((tf.nn, "bidirectional_dynamic_rnn"), (contrib.recurrent, "bidirectional_functional_rnn")):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(3)
            made = getattr(module, name)(tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.GRUCell(3), X, sequence_length=[1, 2], dtype=tf.float32)
            session.run(tf.global_variables_initializer())
            kinds.append(([v.name for v in tf.global_variables()], session.run(made)))
    assert kinds[0][0] == kinds[1][0]
    np.testing.assert_array_equal(np.concatenate(kinds[0][1][0], -1), np.concatenate(kinds[1][1][0], -1))
    back, state = contrib.recurrent.functional_rnn(tf.nn.rnn_cell.BasicRNNCell(3), X, dtype=tf.float32, reverse=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        outputs, last = session.run([back, state])
    np.testing.assert_array_equal(outputs[:, 0], last)


def test_checkpoints_from_before_kernels(tmp_path):
    from millrace.contrib.rnn_checkpoints import convert_names

    with tf.Graph().as_default(), tf.Session() as session:
        tf.Variable([1.0, 2.0], name="rnn/basic_lstm_cell/weights")
        tf.Variable(3.0, name="other")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "old"))
    for v1 in (False, True):
        variables, changed = convert_names(path, str(tmp_path / "new"), v1)
        assert changed == {"rnn/basic_lstm_cell/weights": "rnn/basic_lstm_cell/kernel"} and set(variables) == {"other", *changed.values()}
        assert tf.train.load_variable(str(tmp_path / "new"), "rnn/basic_lstm_cell/kernel").tolist() == [1, 2]
