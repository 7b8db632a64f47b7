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


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("layered", [False, True])
def test_grids(tied, layered):
    """Time first, by the projected input and its own last output; then depth, by what time has given."""
    x, m0, m1 = (np.random.RandomState(i).randn(4, n) for i, n in enumerate((3, 2, 2)))
    cell = contrib.grid_rnn.Grid2BasicRNNCell(2, tied, tf.nn.relu if layered else None)
    assert cell.state_size == ((2,) if layered else (2, 2)) and cell.output_size == (2,)
    with tf.Graph().as_default(), tf.Session() as session:
        state = tuple(tf.constant(m) for m in ([m1] if layered else [m0, m1]))
        (output,), new = cell(tf.constant(x), state, "grid")
        session.run(tf.global_variables_initializer())
        weights = {v.op.name: session.run(v) for v in tf.global_variables()}
        output, new = session.run([output, new])
    time, depth = ("recurrent" + "/cell_1" * (not tied), ("non_" * layered + "recurrent") + "/cell_0" * (not tied))
    names = ("weights", "biases") if layered else ("kernel", "bias")
    inner = "/fully_connected/" if layered else "/basic_rnn_cell/"
    seen = x @ weights["grid/project_m_0"]
    first = np.tanh(np.concatenate([seen, m1], 1) @ weights["grid/%s/basic_rnn_cell/kernel" % time] + weights["grid/%s/basic_rnn_cell/bias" % time])
    second = np.concatenate([seen, first], 1) @ weights["grid/" + depth + inner + names[0]] + weights["grid/" + depth + inner + names[1]]
    second = np.maximum(second, 0) if layered else np.tanh(second)
    np.testing.assert_allclose(output, second)
    for got, wanted in zip(new, [first] if layered else [second, first]):
        np.testing.assert_allclose(got, wanted)
    assert len(weights) == 1 + 2 * (1 if tied and not layered else 2)


def test_grids_with_states_side_by_side():
    x = tf.constant(np.ones((2, 3)))
    cells = [contrib.grid_rnn.Grid2LSTMCell(2, use_peepholes=True, state_is_tuple=t, output_is_tuple=t) for t in (True, False)]
    assert cells[1].state_size == 8 and cells[1].output_size == 2
    flat = np.random.RandomState(0).randn(2, 8)
    parts = tf.split(tf.constant(flat), 4, 1)
    outputs = []
    for reuse, (cell, state) in enumerate(zip(cells, (((parts[0], parts[1]), (parts[2], parts[3])), tf.constant(flat)))):
        with tf.variable_scope("sides", reuse=bool(reuse)):
            outputs.append(cell(x, state))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        (tuples, states), (joined, all_states) = session.run(outputs)
    np.testing.assert_array_equal(tuples[0], joined)
    np.testing.assert_array_equal(np.concatenate([part for state in states for part in state], 1), all_states)
    with pytest.raises(ValueError, match="Invalid dims"):
        contrib.grid_rnn.GridRNNCell(2, 2, input_dims=2)
    with pytest.raises(TypeError, match="takes num_units"):
        contrib.grid_rnn.Grid2GRUCell(2, forget_bias=1.0)


@pytest.mark.parametrize(
    "cell, options, output, squares, variables",
    [  # what TensorFlow 1.15 gives
        (
            "GridLSTMCell",
            dict(num_frequency_blocks=[3], use_peepholes=True, cell_clip=0.6),
            [-0.02413, -0.09789, -0.05169, -0.0475, 0.25056, 0.01359, 0.05475, 0.05014, 0.44391, 0.35055, 0.44391, 0.44055],
            2.8961,
            16,
        ),
        (
            "GridLSTMCell",
            dict(num_frequency_blocks=[3], use_peepholes=True, share_time_frequency_weights=True, couple_input_forget_gates=True),
            [-0.0285, -0.09317, -0.05159, -0.04761, 0.18517, 0.05339, 0.08443, 0.07433, 0.54472, 0.4453, 0.50852, 0.48831],
            2.6257,
            6,
        ),
        (
            "GridLSTMCell",
            dict(num_frequency_blocks=[1, 2], start_freqindex_list=[0, 1], end_freqindex_list=[2, 4], num_unit_shards=2),
            [-0.02429, -0.10726, -0.05249, -0.05249, 0.24466, 0.02601, 0.11815, 0.11815, 0.62317, 0.34321, 0.53193, 0.53193],
            3.5295,
            12,
        ),
        (
            "BidirectionalGridLSTMCell",
            dict(num_frequency_blocks=[3], backward_slice_offset=-1),
            [-0.02429, -0.10726, -0.05249, -0.05249, 0.23155, 0.01528, 0.05011, 0.05011, 0.61266, 0.33095, 0.4734, 0.4734]
            + [0.42557, 0.06936, 0.16611, 0.16611, 0.30332, -0.06469, 0.11229, 0.11229, 0.57135, 0.14136, 0.34245, 0.34245],
            9.7212,
            8,
        ),
    ],
)
def test_lstms_along_time_and_frequencies(cell, options, output, squares, variables):
    with tf.variable_scope("grids", initializer=tf.constant_initializer(0.3)):
        made = getattr(contrib.rnn, cell)(2, feature_size=2, frequency_skip=1, **options)
        state = made.state_tuple_type(*(tf.constant([[0.1 * (i + 1), -0.2], [0.3, 0.05 * i]]) for i in range(len(made.state_size))))
        outputs, new = made(tf.constant([[1.0, -2.0, 3.0, 0.5], [0.25, 1.0, -1.0, 2.0]]), state)
    assert len(tf.trainable_variables()) == variables and outputs.shape.as_list() == [2, made.output_size]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        got, states = session.run([outputs, new])
    np.testing.assert_allclose(got[0], output, atol=2e-5)
    np.testing.assert_allclose(np.sum(np.square(states)), squares, rtol=1e-4)


def test_grids_of_windows_that_do_not_fit():
    with pytest.raises(ValueError, match="requires 2 but gets 3"):
        cell = contrib.rnn.GridLSTMCell(2, feature_size=2, frequency_skip=1, num_frequency_blocks=[2], state_is_tuple=False)
        cell(tf.zeros([1, 4]), tf.zeros([1, cell.state_size]))
    with pytest.raises(ValueError, match="Must specify num_frequency_blocks"):
        contrib.rnn.GridLSTMCell(2)


@pytest.mark.parametrize("name, options", [
    ("CoupledInputForgetGateLSTMCell", {}), ("TimeFreqLSTMCell", {"feature_size": 2, "frequency_skip": 1}), ("IndyGRUCell", {}), ("IndyLSTMCell", {}),
    ("GridLSTMCell", {"feature_size": 2, "frequency_skip": 1, "num_frequency_blocks": [1]}),
])  # fmt: skip
@pytest.mark.parametrize("given", ["ones", {"class_name": "Ones", "config": {}}, tf.ones_initializer])
def test_initializers_of_cells_have_names(name, options, given):
    kinds = ("kernel_initializer", "bias_initializer") if name.startswith("Indy") else ("initializer",)
    make = getattr(tf.contrib.rnn, name)
    with tf.Graph().as_default(), tf.Session() as session:
        cell = make(4, **options, **{kind: given for kind in kinds})
        cell(tf.ones([2, 2]), cell.zero_state(2, tf.float32))
        session.run(tf.global_variables_initializer())
        started = [v for v in tf.global_variables() if "kernel_u" not in v.name and ("Indy" in name or "/B" not in v.name)]
        assert started and all((session.run(v) == 1).all() for v in started)
        if len(kinds) == 2:
            assert cell.get_config()["kernel_initializer"]["class_name"] == "Ones"
    for kind in kinds:
        with pytest.raises(ValueError, match="Unknown initializer: *another"):
            make(4, **options, **{kind: "another"})
