# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks whose inputs a function decides, against plain loops."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

KERNEL = np.sin(np.arange(10.0)).reshape(5, 2)
INPUTS = np.cos(np.arange(36.0)).reshape(4, 3, 3)  # [time, batch, width]
LENGTHS = np.array([1, 4, 2])


@pytest.fixture
def sess():
    with tf.Session() as session:
        yield session


class Cell:
    """output = state + 1, state = tanh([input, state] KERNEL)."""

    state_size = output_size = 2

    def zero_state(self, batch_size, dtype):
        return tf.zeros([batch_size, 2], dtype)

    def __call__(self, inputs, state, scope=None):
        new = tf.tanh(tf.matmul(tf.concat([inputs, state], 1), tf.constant(KERNEL)))
        return new + 1, new


def expected(steps=4):
    """(outputs, last state) of the cell along INPUTS, stopped at LENGTHS."""
    state, outputs = np.zeros([3, 2]), []
    for t in range(steps):
        new = np.tanh(np.concatenate([INPUTS[t], state], 1) @ KERNEL)
        running = (t < LENGTHS)[:, None]
        outputs.append(np.where(running, new + 1, 0))
        state = np.where(running, new, state)
    return np.array(outputs), state


def along(inputs, emit=lambda time, output: output, first_emit=None, first_loop=None, next_loop=lambda s: s):
    """A loop_fn that feeds the inputs."""

    def loop_fn(time, output, state, loop_state):
        now = tf.gather(inputs, tf.minimum(time, 3))
        now.set_shape([None, 3])
        finished = time >= tf.constant(LENGTHS, tf.int32)
        if output is None:
            assert state is None and loop_state is None
            return finished, now, tf.zeros([tf.shape(inputs)[1], 2], tf.float64), first_emit, first_loop
        return finished, now, state, emit(time, output), next_loop(loop_state)

    return loop_fn


def test_raw_rnn_stops_at_the_lengths_and_has_gradients():
    inputs = tf.constant(INPUTS)
    emitted, state, loop_state = tf.nn.raw_rnn(Cell(), along(inputs))
    assert loop_state is None
    outputs = emitted.stack()
    assert outputs.get_shape().as_list() == [None, 3, 2]
    gradient = tf.convert_to_tensor(tf.gradients(tf.reduce_sum(outputs * outputs) + tf.reduce_sum(state), inputs)[0])
    whole, last = tf.nn.dynamic_rnn(Cell(), inputs, LENGTHS, dtype=tf.float64, time_major=True)
    (same,) = tf.gradients(tf.reduce_sum(whole * whole) + tf.reduce_sum(last), inputs)
    with tf.Session() as session:
        got = session.run([outputs, state, gradient, same])
    for value, want in zip(got, expected()):
        np.testing.assert_allclose(value, want, rtol=1e-12)
    np.testing.assert_allclose(got[2], got[3], rtol=1e-10, atol=1e-14)


def test_raw_rnn_with_a_batch_that_is_known_when_it_runs():
    inputs = tf.placeholder(tf.float64, [None, None, 3])
    emitted, state, _ = tf.nn.raw_rnn(Cell(), along(inputs))
    with tf.Session() as session:
        got = session.run([emitted.stack(), state], {inputs: INPUTS})
    for value, want in zip(got, expected()):
        np.testing.assert_allclose(value, want, rtol=1e-12)


def test_raw_rnn_emits_what_its_first_call_says():
    rows = tf.placeholder_with_default(np.int32(2), [])

    def emit(time, output):
        return {"time": tf.fill([3, 1, 2], time), "tiled": tf.tile(tf.expand_dims(output, 1), tf.stack([1, rows, 1]))}

    first = {"time": tf.zeros([1, 2], tf.int32), "tiled": tf.zeros(tf.stack([rows, 2]), tf.float64)}
    emitted, _, count = tf.nn.raw_rnn(Cell(), along(tf.constant(INPUTS), emit, first, tf.constant(10), lambda s: s + 1))
    with tf.Session() as session:
        time, tiled, count = session.run([emitted["time"].stack(), emitted["tiled"].stack(), count])
    assert time.dtype == np.int32 and time.shape == (4, 3, 1, 2) and count == 14
    np.testing.assert_array_equal(time[:, :, 0, 0], [[1, 1, 1], [0, 2, 2], [0, 3, 0], [0, 4, 0]])
    np.testing.assert_allclose(tiled, np.repeat(expected()[0][:, :, None], 2, 2), rtol=1e-12)


def test_raw_rnn_loop_state_may_be_an_array_and_may_stay():
    array = tf.TensorArray(tf.int32, 0, dynamic_size=True)
    _, _, written = tf.nn.raw_rnn(Cell(), along(tf.constant(INPUTS), first_loop=array, next_loop=lambda a: a.write(a.size(), 5)))
    _, _, kept = tf.nn.raw_rnn(Cell(), along(tf.constant(INPUTS), first_loop=tf.constant(7), next_loop=lambda s: None))
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(written.stack()), [5, 5, 5, 5])
        assert session.run(kept) == 7


def test_raw_rnn_of_finished_examples_emits_nothing():
    def loop_fn(time, output, state, loop_state):
        return tf.constant([True] * 3), tf.constant(INPUTS[0]), tf.ones([3, 2], tf.float64) if state is None else state, output, None

    emitted, state, _ = tf.nn.raw_rnn(Cell(), loop_fn)
    with tf.Session() as session:
        size, state = session.run([emitted.size(), state])
    assert size == 0 and (state == 1).all()


@pytest.mark.parametrize("part", ["state", "emit", "input"])
def test_raw_rnn_says_that_a_structure_changed(part):
    def loop_fn(time, output, state, loop_state):
        now, held, emit = tf.constant(INPUTS[0]), tf.zeros([3, 2], tf.float64), output
        if output is not None:
            now, held, emit = ((v, v) if part == name else v for name, v in [("input", now), ("state", state), ("emit", output)])
        return time >= tf.constant(LENGTHS, tf.int32), now, held, emit, None

    with pytest.raises(ValueError):
        tf.nn.raw_rnn(Cell(), loop_fn)


def test_raw_rnn_says_what_it_needs():
    with pytest.raises(TypeError, match="not an RNNCell"):
        tf.nn.raw_rnn(3, lambda *a: None)
    with pytest.raises(TypeError, match="callable"):
        tf.nn.raw_rnn(Cell(), 3)


def test_training_with_dropout_resumes_with_the_same_bits(tmp_path):
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(4), input_keep_prob=0.7, state_keep_prob=0.8, output_keep_prob=0.6)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.constant(INPUTS.astype(np.float32)), dtype=tf.float32)
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_mean(tf.square(outputs - tf.random_normal([4, 3, 4]))))
    variables, saver, path = tf.global_variables(), tf.train.Saver(), str(tmp_path / "model")

    def steps(session):
        for _ in range(3):
            session.run(train)
        return b"".join(v.tobytes() for v in session.run(variables))

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        steps(session)
        saver.save(session, path)
        state = session.random_state
        whole = steps(session)
    with tf.Session() as session:
        saver.restore(session, path)
        session.random_state = state
        assert session.random_state == state
        assert steps(session) == whole
    with tf.Session() as session:
        saver.restore(session, path)
        assert steps(session) != whole
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.random_state = b"no state"


@pytest.mark.parametrize("swap", [False, True])
def test_metadata_tell_the_memory_of_a_long_loop(swap):
    x = tf.placeholder(tf.float32, [64, 64])
    _, y = tf.while_loop(lambda i, v: i < 1000, lambda i, v: (i + 1, tf.sin(v)), [0, x], swap_memory=swap)
    gradient = tf.gradients(y, x)
    options, peaks = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), []
    with tf.Session() as session:
        for fetch in (y, gradient):
            metadata = tf.RunMetadata()
            session.run(fetch, {x: np.ones([64, 64])}, options=options, run_metadata=metadata)
            (step,) = [n for n in metadata.step_stats.dev_stats[0].node_stats if n.node_name == "_SOURCE"]
            peaks.append(step.memory[0].peak_bytes)
    kept = 1000 * 64 * 64 * 4
    # Each thread settles its count of bytes now and then only (tensor/caching_allocator.h).
    assert peaks[0] < kept / 20 and kept * 0.98 <= peaks[1] < kept * 1.25
    pushes = [o for o in tf.get_default_graph().get_operations() if o.type == "StackPushV2"]
    assert pushes and all(o.get_attr("swap_memory") == swap for o in pushes)


def dropped(cell_state, **options):
    """(inputs, new state) of a cell that shows what it is given, for a state of ones."""
    seen = []

    class Shows(tf.nn.rnn_cell.RNNCell):
        state_size, output_size = cell_state, 40

        def __call__(self, inputs, state, scope=None):
            seen.append(inputs)
            return tf.ones([30, 40]), state

    cell = tf.nn.rnn_cell.DropoutWrapper(Shows(), **options)
    ones = tf.ones([30, 40])
    state = tf.nn.rnn_cell.LSTMStateTuple(ones, ones)
    state = (state, (ones, state)) if isinstance(cell_state[0], tuple) else state
    outputs, new = cell(ones, state)
    again, _ = cell(ones, state)
    with tf.Session() as session:
        return session.run([seen[0], outputs, new, seen[1], again])


def test_dropout_spares_the_memories_of_stacks():
    sizes = tf.nn.rnn_cell.LSTMStateTuple(40, 40)
    inputs, outputs, state, _, _ = dropped((sizes, (40, sizes)), input_keep_prob=0.25, state_keep_prob=0.5, output_keep_prob=0.25, seed=3)
    assert (state[0].c == 1).all() and (state[1][1].c == 1).all()
    masks = [inputs / 4, outputs / 4, state[0].h / 2, state[1][0] / 2, state[1][1].h / 2]
    for mask, keep in zip(masks, [0.25, 0.25, 0.5, 0.5, 0.5]):
        assert set(np.unique(mask)) == {0, 1} and mask.mean() == pytest.approx(keep, abs=0.06)
    for i in range(5):
        for k in range(i):
            assert (masks[i] != masks[k]).any(), "each place has numbers of its own"


def test_variational_dropout_drops_the_same_in_every_step_and_example():
    inputs, outputs, state, later_inputs, later_outputs = dropped(
        tf.nn.rnn_cell.LSTMStateTuple(40, 40),
        input_keep_prob=0.5,
        state_keep_prob=0.5,
        output_keep_prob=0.5,
        variational_recurrent=True,
        input_size=40,
        dtype=tf.float32,
        seed=3,
    )
    for value in (inputs, outputs, state.h):
        assert set(np.unique(value)) == {0, 2} and (value == value[0]).all() and 0.2 < (value[0] > 0).mean() < 0.8
    assert (inputs == later_inputs).all() and (outputs == later_outputs).all() and (state.c == 1).all()
    with pytest.raises(ValueError, match="dtype"):
        tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(3), variational_recurrent=True)
    with pytest.raises(ValueError, match="input_size"):
        tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(3), 0.5, variational_recurrent=True, dtype=tf.float32)
    with pytest.raises(ValueError, match="between 0 and 1"):
        tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(3), 1.5)


def test_only_what_the_filter_says_is_dropped():
    _, _, state, _, _ = dropped(
        tf.nn.rnn_cell.LSTMStateTuple(40, 40),
        state_keep_prob=0.5,
        dropout_state_filter_visitor=lambda s: tf.nn.rnn_cell.LSTMStateTuple(True, False) if isinstance(s, tuple) else True,
    )
    assert (state.h == 1).all() and set(np.unique(state.c)) == {0, 2}


@pytest.mark.parametrize(
    "cell,inside,states",
    [
        (
            "BasicLSTMCell",
            "Const concat/axis concat MatMul/Enter MatMul BiasAdd/Enter BiasAdd Const_1 split Const_2 Add Sigmoid Mul Sigmoid_1 Tanh Mul_1 Add_1 "
            "Tanh_1 Sigmoid_2 Mul_2",
            2,
        ),
        (
            "LSTMCell",
            "concat/axis concat MatMul/Enter MatMul BiasAdd/Enter BiasAdd Const split/split_dim split add/y add Sigmoid mul Sigmoid_1 Tanh mul_1 add_1 "
            "Sigmoid_2 Tanh_1 mul_2",
            2,
        ),
        (
            "GRUCell",
            "concat/axis concat MatMul/Enter MatMul BiasAdd/Enter BiasAdd Sigmoid Const split/split_dim split mul concat_1/axis concat_1 MatMul_1/Enter "
            "MatMul_1 BiasAdd_1/Enter BiasAdd_1 Tanh mul_1 sub/x sub mul_2 add",
            1,
        ),
        ("BasicRNNCell", "concat/axis concat MatMul/Enter MatMul BiasAdd/Enter BiasAdd Tanh", 1),
    ],
)
def test_names_are_those_of_tensorflow(cell, inside, states):
    x = tf.placeholder(tf.float32, [None, 5, 3], name="x")
    outputs, state = tf.nn.dynamic_rnn(getattr(tf.nn.rnn_cell, cell)(6), x, dtype=tf.float32)
    assert outputs.name == "rnn/transpose_1:0"
    assert [s.name for s in tf.contrib.framework.nest.flatten(state)] == ["rnn/while/Exit_%d:0" % (3 + i) for i in range(states)]
    names = [o.name for o in tf.get_default_graph().get_operations()]
    below = "rnn/while/%s/" % {"BasicLSTMCell": "basic_lstm_cell", "LSTMCell": "lstm_cell", "GRUCell": "gru_cell", "BasicRNNCell": "basic_rnn_cell"}[cell]
    assert sorted(n[len(below) :] for n in names if n.startswith(below)) == sorted(inside.split())
    for name in (
        "rnn/time",
        "rnn/TensorArray",
        "rnn/TensorArray_1",
        "rnn/TensorArrayUnstack/TensorArrayScatter/TensorArrayScatterV3",
        "rnn/Maximum",
        "rnn/Minimum",
        "rnn/while/iteration_counter",
        "rnn/while/Less_1",
        "rnn/while/LogicalAnd",
        "rnn/while/TensorArrayReadV3",
        "rnn/while/TensorArrayWrite/TensorArrayWriteV3",
        "rnn/while/add_1/y",
        "rnn/TensorArrayStack/range",
        "rnn/transpose",
        "rnn/TensorArrayStack/TensorArrayGatherV3",
        "rnn/%sZeroState/zeros" % cell,
    ):
        assert name in names, name


def test_weights_in_parts_compute_the_same():
    x = np.random.RandomState(0).randn(2, 3, 5)

    def outputs(**shards):
        with tf.Graph().as_default(), tf.Session() as session:
            cell = tf.nn.rnn_cell.LSTMCell(4, num_proj=3, initializer=tf.constant_initializer(0.1), **shards)
            made = tf.nn.dynamic_rnn(cell, tf.constant(x), dtype=tf.float64)[0]
            session.run(tf.global_variables_initializer())
            return session.run(made), [v.op.name for v in tf.trainable_variables()]

    whole, _ = outputs()
    parts, names = outputs(num_unit_shards=2, num_proj_shards=3)
    np.testing.assert_allclose(parts, whole, rtol=1e-12)
    assert names == ["rnn/lstm_cell/kernel/part_0", "rnn/lstm_cell/kernel/part_1", "rnn/lstm_cell/bias"] + [
        "rnn/lstm_cell/projection/kernel/part_%d" % i for i in range(3)
    ]


def test_cells_that_are_told_of_tuples_take_no_tensor():
    cells = [tf.nn.rnn_cell.GRUCell(2) for _ in range(2)]
    with pytest.raises(ValueError, match="Expected state to be a tuple"):
        tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=True)(tf.zeros([1, 2]), tf.zeros([1, 4]))


def test_lists_of_tensors_know_their_shapes(sess):
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True).split([[1.0, -1.0], [2.0, -2.0]], [1, 1])
    assert array.read(0).shape == [1, 2]
    with pytest.raises(ValueError, match="Inconsistent shapes"):
        array.write(2, [1.0])
    with pytest.raises(ValueError, match="Inconsistent shapes"):
        tf.TensorArray(tf.float32, 2).unstack([[1.0, 2.0]]).write(1, 3.0)
    tf.TensorArray(tf.float32, 2, infer_shape=False).unstack([[1.0, 2.0]]).write(1, 3.0)


def test_gradients_of_a_list_that_grew_after_it_was_split(sess):
    x = tf.constant([1.0, 2.0, 3.0])
    joined = tf.TensorArray(tf.float32, 3, dynamic_size=True).split(x, [1, 1, 1]).write(3, [4.0]).concat()
    assert sess.run(joined).tolist() == [1, 2, 3, 4] and sess.run(tf.gradients(joined * [1.0, 2.0, 3.0, 4.0], x)[0]).tolist() == [1, 2, 3]


def test_a_list_lies_with_what_is_first_written_to_it():
    def devices(**how):
        with tf.Graph().as_default():
            with tf.device("/job:worker/task:0/cpu:0"):
                array = tf.TensorArray(tf.float32, 2, **how)
            with tf.device("/job:worker/task:1/cpu:0"):
                array = array.write(0, 1.0)
            return [array.handle.device, array.flow.device]

    assert devices() == ["", "/job:worker/task:1/device:CPU:0"]
    assert devices(colocate_with_first_write_call=False) == ["/job:worker/task:0/device:CPU:0"] * 2


def test_shapes_of_states_are_put_together():
    rnn_cell_impl = names.find("python.ops.rnn_cell_impl")
    size = tf.placeholder(tf.int32, [])
    assert rnn_cell_impl._concat(2, [3, None], static=True) == [2, 3, None] and rnn_cell_impl._concat(size, 3, static=True) == [None, 3]
    assert rnn_cell_impl._concat(tf.placeholder(tf.int32), 3, static=True) is None
    states = rnn_cell_impl._zero_state_tensors((2, tf.TensorShape([3, 4])), size, tf.float64)
    assert [s.shape.as_list() for s in states] == [[None, 2], [None, 3, 4]]
    with tf.Session() as session:
        assert [s.shape for s in session.run(states, {size: 5})] == [(5, 2), (5, 3, 4)]
        assert session.run(rnn_cell_impl._concat(size, tf.constant([2, 1])), {size: 5}).tolist() == [5, 2, 1]
    with pytest.raises(ValueError, match="prefix or suffix of None"):
        rnn_cell_impl._concat(2, [3, None])


def test_stacked_cells_of_keras_in_dynamic_rnn():
    tenth = tf.constant_initializer(0.1)
    cells = [
        tf.keras.layers.LSTMCell(
            n, kernel_initializer=tenth, recurrent_initializer=tenth, bias_initializer=tenth, recurrent_activation="sigmoid", unit_forget_bias=False
        )
        for n in (2, 1)
    ]
    inputs = tf.constant(np.arange(12).reshape(2, 3, 2) / 10, tf.float32)
    outputs, state = tf.nn.dynamic_rnn(tf.keras.layers.StackedRNNCells(cells), inputs, dtype=tf.float32)
    assert outputs.shape.as_list() == [2, 3, 1] and isinstance(state, tuple) and [len(s) for s in state] == [2, 2]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        made, last = session.run([outputs, state])
    np.testing.assert_allclose(made[:, :, 0], [[0.02926798, 0.04750596, 0.05978758], [0.03165165, 0.05311732, 0.06866366]], rtol=1e-5)
    np.testing.assert_allclose(last[0][1], [[0.17292255, 0.17292255], [0.32267717, 0.32267717]], rtol=1e-5)


@pytest.mark.parametrize(
    "cells, outputs, names_of",
    [
        (
            lambda rnn_cell: rnn_cell.GRUCell(2),
            [[0.03435] * 2, [0.0994] * 2],
            ["gru_cell/%s/%s" % (g, w) for g in ("gates", "candidate") for w in ("kernel", "bias")],
        ),
        (lambda rnn_cell: rnn_cell.BasicRNNCell(2), [[0.10005] * 2, [0.24368] * 2], ["basic_rnn_cell/kernel", "basic_rnn_cell/bias"]),
        (
            lambda rnn_cell: rnn_cell.MultiRNNCell([rnn_cell.GRUCell(2), rnn_cell.BasicRNNCell(1)]),
            [[0.00718], [0.02124]],
            ["cell_0/gru_cell/%s/%s" % (g, w) for g in ("gates", "candidate") for w in ("kernel", "bias")]
            + ["cell_1/basic_rnn_cell/kernel", "cell_1/basic_rnn_cell/bias"],
        ),
        (
            lambda rnn_cell: [rnn_cell.GRUCell(2), rnn_cell.BasicRNNCell(1)],
            [[0.00718], [0.02124]],
            ["gru_cell/%s/%s" % (g, w) for g in ("gates", "candidate") for w in ("kernel", "bias")] + ["basic_rnn_cell/kernel", "basic_rnn_cell/bias"],
        ),
    ],
)
def test_cells_of_tf_nn_in_layers_of_keras(cells, outputs, names_of):
    inputs = tf.constant(np.arange(12).reshape(2, 3, 2) / 10, tf.float32)
    with tf.variable_scope("v", initializer=tf.constant_initializer(0.1)):
        layer = tf.keras.layers.RNN(cells(tf.nn.rnn_cell))
        made = layer(inputs)
    assert [v.name for v in layer.trainable_weights] == ["v/%s:0" % n for n in names_of]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(made), outputs, atol=1e-5)


def test_names_of_variables_of_cells_of_keras():
    inputs = tf.ones([2, 3, 4])
    tf.nn.dynamic_rnn(tf.keras.layers.SimpleRNNCell(5), inputs, dtype=tf.float32, scope="dynamic")
    tf.nn.static_rnn(tf.keras.layers.GRUCell(5), tf.unstack(inputs, axis=1), dtype=tf.float32, scope="static")
    weights = ("kernel", "recurrent_kernel", "bias")
    wanted = ["%s/%s" % (cell, w) for cell in ("dynamic/while/simple_rnn_cell", "static/gru_cell") for w in weights]
    assert [v.op.name for v in tf.global_variables()] == wanted


def test_outputs_of_several_parts_while_states_are_saved():
    class Both(tf.nn.rnn_cell.RNNCell):
        state_size, output_size = 2, (2, 2)

        def call(self, inputs, state):
            return (inputs, state), inputs + state

    class Saver:
        saved = []

        def state(self, name):
            return tf.constant([[1.0, 2.0]])

        def save_state(self, name, value):
            return tf.py_func(lambda x: (self.saved.append(x.tolist()), x)[1], [value], tf.float32)

    inputs = [tf.constant([[10.0, 20.0]]), tf.constant([[30.0, 40.0]])]
    outputs, last = tf.nn.static_state_saving_rnn(Both(), inputs, Saver(), "s")
    assert [[part.shape.as_list() for part in output] for output in outputs] == [[[1, 2], [1, 2]]] * 2
    with tf.Session() as session:
        made, state = session.run([outputs[-1], last])
        assert [part.tolist() for part in made] == [[[30, 40]], [[11, 22]]] and state.tolist() == [[41, 62]]
        session.run(last)  # saves too, as 1.15 has it
        session.run(outputs[0])
    assert Saver.saved == [[[41, 62]]] * 2


def test_inputs_of_several_parts_in_both_directions():
    class Both(tf.nn.rnn_cell.RNNCell):
        state_size, output_size = 2, (2, 2)

        def call(self, inputs, state):
            return (inputs[0] + state, inputs[1]), inputs[0] + state + inputs[1]

    steps = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    inputs = [(tf.constant(x), tf.constant(10 * x)) for x in steps]
    outputs, _, _ = tf.nn.static_bidirectional_rnn(Both(), Both(), inputs, dtype=tf.float32, sequence_length=[2, 3])
    with tf.Session() as session:
        made = np.array(session.run(outputs))
    assert made[:, 0].tolist() == [[[0, 1, 44, 56], [2, 3, 178, 201]], [[4, 16, 4, 5], [28, 40, 116, 128]], [[0, 0, 0, 0], [98, 121, 10, 11]]]
    assert made[:, 1, :, 2:].tolist() == [[[0, 10], [20, 30]], [[40, 50], [60, 70]], [[0, 0], [100, 110]]]
