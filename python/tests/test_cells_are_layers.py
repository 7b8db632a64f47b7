# SPDX-License-Identifier: Apache-2.0
"""Recurrent cells are layers of tf.layers: variables, weights, losses, settings, and build of subclasses."""

import numpy as np
import pytest

import millrace as tf

CELLS = tf.nn.rnn_cell
R = np.random.RandomState(5)


@pytest.mark.parametrize(
    "make,names",
    [
        (lambda: CELLS.BasicRNNCell(3), ["kernel", "bias"]),
        (lambda: CELLS.GRUCell(3), ["gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias"]),
        (lambda: CELLS.BasicLSTMCell(3), ["kernel", "bias"]),
        (lambda: CELLS.LSTMCell(3, use_peepholes=True, num_proj=2), ["kernel", "bias", "w_f_diag", "w_i_diag", "w_o_diag", "projection/kernel"]),
    ],
)
def test_variables(make, names):
    with tf.Graph().as_default():
        cell = make()
        assert isinstance(cell, tf.layers.Layer) and not cell.built and cell.variables == []
        cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
        stem = cell.scope_name
        assert [v.op.name for v in cell.trainable_weights] == ["%s/%s" % (stem, n) for n in names]
        assert cell.variables == cell.weights == cell.trainable_variables == tf.trainable_variables() and cell.non_trainable_variables == []
        assert cell.built and cell.count_params() == sum(v.shape.num_elements() for v in cell.weights)
        assert cell.dtype == tf.float32 and cell.graph is tf.get_default_graph() and cell.losses == [] and cell.updates == []
        with tf.Session().as_default():
            values = [R.rand(*v.shape.as_list()) for v in cell.weights]
            cell.set_weights(values)
            for got, want in zip(cell.get_weights(), values):
                np.testing.assert_allclose(got, want, rtol=1e-6)


def test_build_before_calls():
    with tf.Graph().as_default():
        cell = CELLS.BasicLSTMCell(3)
        cell.build([None, 4])
        assert [v.op.name for v in cell.variables] == ["basic_lstm_cell/kernel", "basic_lstm_cell/bias"] and cell.built
        cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
        assert len(tf.global_variables()) == 2
        with pytest.raises(ValueError, match="to be known"):
            CELLS.GRUCell(3).build([None, None])


def test_cells_that_are_not_trained():
    with tf.Graph().as_default():
        cell = CELLS.GRUCell(3, trainable=False)
        cell(tf.zeros([2, 4]), tf.zeros([2, 3]))
        assert tf.trainable_variables() == [] and cell.trainable_weights == [] and len(cell.non_trainable_weights) == 4


def test_stacks_and_wrappers():
    with tf.Graph().as_default():
        inner = [CELLS.GRUCell(3), CELLS.BasicRNNCell(2)]
        stack = CELLS.MultiRNNCell([CELLS.DropoutWrapper(inner[0], 0.5), CELLS.ResidualWrapper(inner[1], lambda i, o: o)])
        tf.nn.dynamic_rnn(stack, tf.zeros([2, 5, 4]), dtype=tf.float32)
        assert len(stack.trainable_weights) == 6 and set(stack.trainable_weights) == {*inner[0].weights, *inner[1].weights}
        alone = CELLS.DropoutWrapper(CELLS.GRUCell(3), 0.5)
        alone(tf.zeros([2, 4]), tf.zeros([2, 3]))
        assert len(alone.variables) == 4


def test_cells_of_ones_own():
    class Built(CELLS.RNNCell):
        state_size = output_size = 3

        def build(self, inputs_shape):
            self.w = self.add_variable("w", [inputs_shape[-1].value, 3], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss)
            self.still = self.add_weight("still", [3], initializer=tf.zeros_initializer(), trainable=False)
            self.built = True

        def call(self, inputs, state):
            made = tf.matmul(inputs, self.w) + state + self.still
            return made, made

    class InCall(CELLS.RNNCell):  # as many are written: without a constructor of the base
        def __init__(self, units):
            self.units = units

        state_size = output_size = property(lambda self: self.units)

        def call(self, inputs, state):
            w = tf.get_variable("w", [inputs.shape[-1].value, self.units], initializer=tf.ones_initializer())
            return (tf.matmul(inputs, w) + state,) * 2

    class Old(CELLS.RNNCell):
        state_size = output_size = 2

        def __call__(self, inputs, state, scope=None):
            with tf.variable_scope(scope or "old"):
                return inputs * tf.get_variable("s", [], initializer=tf.ones_initializer()) + state, state

    x = R.rand(2, 4, 3).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        built = Built()
        outputs, _ = tf.nn.dynamic_rnn(built, x, dtype=tf.float32)
        assert [v.op.name for v in built.weights] == ["rnn/built/w", "rnn/built/still"] and len(built.losses) == 1
        assert built.trainable_weights == [built.w] and built.non_trainable_weights == [built.still]
        assert tf.losses.get_regularization_losses() == built.losses
        again, _ = built(tf.zeros([2, 3]), tf.zeros([2, 3]))
        assert len(tf.global_variables()) == 2 and again.shape.as_list() == [2, 3]
        inside, _ = tf.nn.dynamic_rnn(InCall(3), x, dtype=tf.float32, scope="second")
        old, _ = tf.nn.static_rnn(Old(), [tf.zeros([2, 2])], dtype=tf.float32)
        session.run(tf.global_variables_initializer())
        want = np.cumsum(np.repeat(x.sum(-1, keepdims=True), 3, -1), 1)
        for made in (outputs, inside):
            np.testing.assert_allclose(session.run(made), want, rtol=1e-5)
        assert session.run(old[0]).tolist() == [[0, 0], [0, 0]]


def test_settings():
    cell = CELLS.LSTMCell(3, use_peepholes=True, activation=tf.nn.relu, name="mine")
    config = cell.get_config()
    assert config["num_units"] == 3 and config["use_peepholes"] and config["activation"] == "relu" and config["name"] == "mine"
    assert CELLS.GRUCell(2).get_config()["activation"] == "tanh"
    twin = CELLS.LSTMCell.from_config(config)
    with tf.Graph().as_default():
        x = tf.constant(R.rand(2, 4).astype("f"))
        with tf.variable_scope("a"):
            one, _ = cell(x, cell.zero_state(2, tf.float32))
        with tf.variable_scope("a", reuse=True):
            two, _ = twin(x, twin.zero_state(2, tf.float32))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            np.testing.assert_array_equal(*session.run([one, two]))
    with pytest.raises(TypeError, match="not understood"):
        CELLS.GRUCell(3, sharing=True)
    with tf.Graph().as_default():
        state = CELLS.GRUCell(3).get_initial_state(inputs=tf.zeros([5, 2]))
        assert state.shape.as_list() == [5, 3] and state.dtype == tf.float32


def test_cells_say_what_inputs_they_take():
    for kind in (tf.nn.rnn_cell.BasicRNNCell, tf.nn.rnn_cell.GRUCell, tf.nn.rnn_cell.BasicLSTMCell, tf.nn.rnn_cell.LSTMCell):
        with tf.Graph().as_default():
            cell = kind(3)
            assert cell.input_spec.ndim == 2
            for x in (tf.zeros([2, 3, 4]), tf.zeros([4])):
                with pytest.raises(ValueError, match="expected ndim=2"):
                    cell(x, cell.zero_state(2, tf.float32))
            cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))


@pytest.mark.parametrize("kind, states", [("SimpleRNNCell", 1), ("GRUCell", 1), ("LSTMCell", 2)])
def test_cells_of_keras_in_loops_of_tf_nn(kind, states):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant(np.random.RandomState(5).rand(2, 3, 4).astype("f"))
        cell = getattr(tf.keras.layers, kind)(5)
        assert cell.output_size == 5
        looped, last = tf.nn.dynamic_rnn(cell, x, [3, 2], dtype=tf.float32)
        unrolled, end = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=[3, 2])
        layer = tf.keras.layers.RNN(cell, return_sequences=True)(x)
        assert isinstance(last, list) == (states == 2) and len(tf.trainable_variables()) == 3
        sess.run(tf.global_variables_initializer())
        made = sess.run([looped, tf.stack(unrolled, 1), layer])
        np.testing.assert_allclose(made[0], made[1], atol=1e-6)
        np.testing.assert_allclose(made[0][0], made[2][0], atol=1e-6)
        assert not made[0][1, 2].any()
        for a, b in zip(sess.run(last if states == 2 else [last]), sess.run(end if states == 2 else [end])):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_two_cells_of_a_class_have_variables_of_their_own():
    with tf.Graph().as_default():
        x = tf.ones([1, 2])
        cells = [tf.nn.rnn_cell.GRUCell(2), tf.nn.rnn_cell.GRUCell(2)]
        for cell in cells * 2:
            cell(x, x)
        assert [v.op.name for c in cells for v in c.trainable_weights] == [
            "%s/%s/%s" % (cell, part, v) for cell in ("gru_cell", "gru_cell_1") for part in ("gates", "candidate") for v in ("kernel", "bias")
        ]
        for reuse in (None, True):  # what a scope names it names again when it is reused
            with tf.variable_scope("again", reuse=reuse):
                tf.nn.rnn_cell.GRUCell(2)(x, x)
                tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), tf.ones([1, 3, 2]), dtype=tf.float32)
        assert len(tf.trainable_variables("again/gru_cell/")) == len(tf.trainable_variables("again/rnn/gru_cell/")) == 4
        assert len(tf.global_variables()) == 16


def test_one_cell_in_several_places_has_one_set_of_variables():
    wrap = [lambda c: c, lambda c: CELLS.DropoutWrapper(c, 1.0)]
    for i, make in enumerate([lambda c: wrap[0](c), lambda c: wrap[1](c)]):
        for width, owners in ((2, ["cell_0"]), (3, ["cell_0", "cell_1"])):  # of another width it cannot be one, and 1.15 refuses it
            scope = "s%d_%d" % (i, width)
            with tf.variable_scope(scope):
                cell = CELLS.GRUCell(2)
                tf.nn.dynamic_rnn(CELLS.MultiRNNCell([make(cell), make(cell)]), tf.ones([1, 3, width]), dtype=tf.float32)
            named = [v.op.name for v in tf.trainable_variables(scope + "/")]
            assert named == [
                "%s/rnn/multi_rnn_cell/%s/gru_cell/%s/%s" % (scope, o, gate, v) for o in owners for gate in ("gates", "candidate") for v in ("kernel", "bias")
            ]


def test_the_regularizer_of_a_scope_counts_what_a_loop_makes():
    with tf.variable_scope("net", regularizer=tf.contrib.layers.l2_regularizer(1.0), initializer=tf.ones_initializer()):
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(1), tf.ones([1, 3, 1]), dtype=tf.float32)
        tf.while_loop(lambda i: i < 2, lambda i: i + tf.cast(tf.get_variable("w", [2])[0], tf.int32), [0])
    loss = tf.losses.get_regularization_loss() + tf.reduce_sum(outputs)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(tf.get_collection("regularization_losses")) == [4.0, 0.0, 1.0]
        assert session.run(tf.gradients(loss, tf.trainable_variables("net/w")))[0].tolist() == [1.0, 1.0]


def test_the_gate_of_a_highway_has_its_variables_beside_the_cell():
    tf.nn.dynamic_rnn(tf.contrib.rnn.HighwayWrapper(CELLS.BasicRNNCell(2)), tf.ones([1, 3, 2]), dtype=tf.float32)
    assert [v.op.name for v in tf.trainable_variables()][2:] == ["rnn/carry_w", "rnn/carry_b"]


def test_settings_of_cells_around_others():
    cell = tf.nn.rnn_cell

    def again(made):
        config = made.get_config()
        assert config["cell"]["class_name"] == "GRUCell"
        with pytest.raises(ValueError, match="overwrite the cell in the config"):
            type(made).from_config(config)
        other = type(made).from_config({**config, "cell": cell.GRUCell.from_config(config["cell"]["config"])})
        assert other.get_config() == config and type(other.cell) is cell.GRUCell and other.cell is not made.cell
        return other

    with tf.Graph().as_default():
        assert again(cell.DeviceWrapper(cell.GRUCell(3), "/cpu:0")).get_config()["device"] == "/cpu:0"
        assert again(cell.ResidualWrapper(cell.GRUCell(3), residual_fn=lambda i, o: i + i + o))._residual_fn(1, 2) == 4
        again(cell.ResidualWrapper(cell.GRUCell(3)))
        dropped = again(cell.DropoutWrapper(cell.GRUCell(3), 0.5, dropout_state_filter_visitor=lambda s: True, name="mine"))
        config = dropped.get_config()
        assert dropped._dropout_state_filter(None) is True and config["name"] == "mine" and config["dropout_fn_type"] == "lambda"
        assert (config["input_keep_prob"], config["output_keep_prob"], config["variational_recurrent"], config["seed"]) == (0.5, 1.0, False, None)
        config["dropout_fn"] = ("another code", None, None)
        with pytest.raises(ValueError, match="is not known to this program"):
            cell.DropoutWrapper.from_config({**config, "cell": cell.GRUCell(3)})


def test_initializers_by_name_and_in_settings():
    cell = CELLS.GRUCell(3, kernel_initializer="ones", bias_initializer="zeros", dtype=tf.float32)
    config = cell.get_config()
    assert config["kernel_initializer"] == {"class_name": "Ones", "config": {"dtype": "float32"}} and config["dtype"] == "float32"
    again = CELLS.GRUCell.from_config(config)
    inputs = tf.ones([1, 2]), tf.zeros([1, 3])
    results = cell(*inputs)[0], again(*inputs)[0]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        one, other = sess.run(results)
    np.testing.assert_allclose(one, other)
    long = CELLS.LSTMCell(3, initializer="zeros", num_unit_shards=2).get_config()
    assert long["initializer"]["class_name"] == "Zeros" and long["num_unit_shards"] == 2
