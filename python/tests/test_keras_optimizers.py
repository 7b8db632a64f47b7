# SPDX-License-Identifier: Apache-2.0
"""What optimizers of tf.keras say of themselves, what they keep and under which names, and how rows step: as TensorFlow 1.15 has it."""

import numpy as np
import pytest

import millrace as tf

keras = tf.keras
K, L, O = keras.backend, keras.layers, keras.optimizers
X, Y = np.ones((4, 2), "float32"), np.zeros((4, 1), "float32")


@pytest.fixture(autouse=True)
def session():
    K.clear_session()
    yield
    K.clear_session()


def trained(optimizer, steps=1, **given):
    model = keras.Sequential([L.Dense(1, input_shape=(2,), kernel_initializer="ones", **given)])
    model.compile(optimizer, "mse")
    for _ in range(steps):
        model.train_on_batch(X, Y)
    return model


BASE = {"learning_rate": 0.001, "decay": 0.0}
MOMENTS = {**BASE, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}
CONFIGS = {
    "SGD": {**BASE, "learning_rate": 0.01, "momentum": 0.0, "nesterov": False},
    "RMSprop": {**BASE, "rho": 0.9, "momentum": 0.0, "epsilon": 1e-7, "centered": False},
    "Adagrad": {**BASE, "initial_accumulator_value": 0.1, "epsilon": 1e-7},
    "Adadelta": {**BASE, "rho": 0.95, "epsilon": 1e-7},
    "Adam": {**MOMENTS, "amsgrad": False},
    "Adamax": MOMENTS,
    "Nadam": {**MOMENTS, "decay": 0.004},
    "Ftrl": {
        **BASE,
        "learning_rate_power": -0.5,
        "initial_accumulator_value": 0.1,
        "l1_regularization_strength": 0.0,
        "l2_regularization_strength": 0.0,
        "l2_shrinkage_regularization_strength": 0.0,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configs_and_defaults(name):
    kind = getattr(O, name)
    assert kind().get_config() == {"name": name, **CONFIGS[name]}
    changed = kind(lr=0.5, clipnorm=1.0, clipvalue=2.0, name="mine")
    config = O.serialize(changed)
    assert config == {"class_name": name, "config": {"name": "mine", "clipnorm": 1.0, "clipvalue": 2.0, **CONFIGS[name], "learning_rate": 0.5}}
    assert O.serialize(O.deserialize(config)) == {"class_name": name, "config": changed.get_config()}
    for wrong, error in (({"momentun": 1}, TypeError), ({"clipnorm": -1.0}, ValueError), ({"lr": -1.0}, ValueError)):
        with pytest.raises(error):
            kind(**wrong)


KEPT = {
    lambda: O.Adam(amsgrad=True): ["iter", "m", "v", "vhat"],
    lambda: O.SGD(momentum=0.5): ["iter", "momentum"],
    lambda: O.SGD(): ["iter"],
    lambda: O.RMSprop(momentum=0.5, centered=True): ["iter", "rms", "momentum", "mg"],
    lambda: O.Nadam(): ["iter", "momentum_cache", "m", "v"],
}


@pytest.mark.parametrize("make", KEPT)
def test_what_is_kept_has_its_names_and_order(make):
    optimizer = make()
    model = trained(optimizer, 2)
    slots, scope = KEPT[make], "training/%s/" % type(optimizer).__name__
    alone = [scope + name + ":0" for name in slots if name in ("iter", "momentum_cache")]
    of_weights = [scope + "dense/%s/%s:0" % (w, name) for name in slots if name not in ("iter", "momentum_cache") for w in ("kernel", "bias")]
    assert [v.name for v in optimizer.weights] == alone + of_weights
    assert optimizer.get_weights()[0] == 2 and K.dtype(optimizer.iterations) == "int64" and optimizer.lr.name == scope + "learning_rate:0"
    values = [np.full_like(value, 3) for value in optimizer.get_weights()]
    optimizer.set_weights(values)
    assert all((value == 3).all() for value in optimizer.get_weights()) and K.get_value(optimizer.iterations) == 3
    if len(of_weights):
        assert optimizer.get_slot(model.weights[0], slots[-1]) is optimizer.weights[-2]
    with pytest.raises(ValueError, match="weight list of length"):
        optimizer.set_weights(values[:-1] * 3)


def test_settings_change_while_training():
    optimizer = O.SGD(0.5, decay=0.5)
    optimizer.lr = 0.25
    model = trained(optimizer, 0)
    for rate in (0.25, 0.25 / 1.5, 0.125 / 2.0):
        if rate == 0.125 / 2.0:
            optimizer.learning_rate = 0.125
        before = model.get_weights()[1]
        made = model.predict(X)[0, 0]
        model.train_on_batch(X, Y)
        np.testing.assert_allclose(model.get_weights()[1], before - 2 * rate * made, rtol=1e-5)
    assert optimizer.get_config()["learning_rate"] == 0.125 == K.get_value(optimizer.lr)
    K.set_value(optimizer.momentum, 0.5)
    assert optimizer.get_config()["momentum"] == 0.5


def test_configs_of_before():
    assert K.get_value(O.deserialize({"class_name": "Adam", "config": {"lr": 0.5, "decay": 0.0}}).lr) == 0.5
    assert O.Adagrad.from_config({"lr": 0.5}).get_config()["initial_accumulator_value"] == 0.0
    adam = trained(O.Adam(), 1).optimizer
    adam.set_weights([*adam.get_weights(), np.zeros((1, 1)), np.zeros(1)])  # with the part that only amsgrad has
    rms = trained(O.RMSprop(), 1).optimizer
    rms.set_weights(rms.get_weights()[1:])  # without the count of steps
    assert K.get_value(rms.iterations) == 0


ROWS = {  # what becomes of rows of ones after two steps with the gradient 1 for the first, twice 1 for the second, and the third in the second step only
    lambda: O.SGD(0.5, momentum=0.5): [1 - 0.5 - 0.75, 1 - 1 - 1.5, 1 - 0.5],
    lambda: O.SGD(0.5, momentum=0.5, nesterov=True): [1 - 0.75 - 0.875, 1 - 1.5 - 1.75, 1 - 0.75],
    lambda: O.Adamax(0.5, epsilon=1e-9): [0.0, 0.0, 1 - 0.5 * 0.1 / 0.19],
}


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("make", ROWS)
def test_rows_without_a_gradient_keep_what_is_theirs(make, resource):
    table, rows = tf.Variable(np.ones((3, 1), "float32"), use_resource=resource), tf.placeholder(tf.int32, [None])
    optimizer = make()
    step = optimizer.minimize(lambda: tf.reduce_sum(tf.gather(table, rows)), [table])
    session = K.get_session()
    session.run(tf.global_variables_initializer())
    for given in ([0, 1, 1], [0, 1, 1, 2]):
        session.run(step, {rows: given})
    np.testing.assert_allclose(session.run(table)[:, 0], ROWS[make], rtol=1e-4, atol=1e-4)


def test_a_subclass_as_programs_write_it():
    class Damped(O.Optimizer):
        def __init__(self, learning_rate=0.5, name="Damped", **kwargs):
            super().__init__(name, **kwargs)
            self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
            self._set_hyper("decay", self._initial_decay)

        def _create_slots(self, var_list):
            for v in var_list:
                self.add_slot(v, "sum", "ones")

        def _resource_apply_dense(self, grad, var):
            total = self.get_slot(var, "sum").assign_add(tf.square(grad))
            return var.assign_sub(self._decayed_lr(var.dtype.base_dtype) * grad / total)

        def get_config(self):
            return {**super().get_config(), "learning_rate": self._serialize_hyperparameter("learning_rate")}

    model = trained(Damped(lr=0.25, decay=1.0), 2)
    bias, total = 0.0, 1.0
    kernel = 1.0
    for step in range(2):
        grad = 2 * (2 * kernel + bias)
        total += grad**2
        kernel, bias = (value - 0.25 / (1 + step) * grad / total for value in (kernel, bias))
    np.testing.assert_allclose(model.get_weights()[1], [bias], rtol=1e-5)
    assert model.optimizer.get_config() == {"name": "Damped", "learning_rate": 0.25}
    assert [v.name for v in model.optimizer.weights][1] == "training/Damped/dense/kernel/sum:0"


def test_weights_without_a_gradient_are_refused():
    class Idle(L.Dense):
        def call(self, inputs):
            return tf.matmul(inputs, self.kernel)

    model = keras.Sequential([Idle(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="has `None` for gradient"):
        model.fit(X, Y, verbose=0)


def test_a_model_in_a_file_goes_on_with_what_its_optimizer_keeps(tmp_path):
    pytest.importorskip("h5py")
    model = trained(O.Nadam(0.1), 2)
    model.save(str(tmp_path / "m.h5"))
    model.train_on_batch(X, Y)
    again = keras.models.load_model(str(tmp_path / "m.h5"))
    assert again.optimizer.get_weights()[0] == 2
    again.train_on_batch(X, Y)
    for one, other in zip(model.get_weights(), again.get_weights()):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_constraints_by_their_old_names():
    model = trained(O.SGD(1.0), 1, kernel_constraint="nonneg")
    assert (model.get_weights()[0] >= 0).all()


def test_slots_lie_where_their_variable_lies():
    with tf.device("/cpu:0"):
        here = tf.get_variable("here", initializer=[1.0, 2.0], use_resource=True)
    optimizer = O.Adam(0.1)
    optimizer.apply_gradients([(tf.constant([0.1, 0.1]), here)])
    for name in ("m", "v"):
        slot = optimizer.get_slot(here, name)
        assert (slot.device, slot.op.colocation_groups()) == ("/device:CPU:0", [b"loc:@here"])
    assert optimizer.iterations.device == ""


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adagrad", "Adadelta"])
def test_variables_of_a_kind_share_what_a_step_reads(name):
    variables = [tf.get_variable("v%d" % i, initializer=[1.0, 2.0], use_resource=True) for i in range(3)]
    getattr(O, name)(0.1).apply_gradients([(tf.ones([2]), v) for v in variables])
    constants = [op.name for op in tf.get_default_graph().get_operations() if op.type == "Const" and op.name.startswith(name + "/Const")]
    assert constants == [name + "/Const"]


OF_OLD = {  # three steps of TensorFlow 1.15.5: kernel, bias
    "SGD": (dict(lr=0.1, momentum=0.9, nesterov=True, decay=0.5), [-0.5295634, -0.1023882, -0.3444713]),
    "RMSprop": (dict(decay=0.1), [0.9937430, 0.9937437, -0.0062540]),
    "Adagrad": ({}, [0.9772611, 0.9772713, -0.0226950]),
    "Adadelta": (dict(decay=0.1), [0.9964126, 0.9964130, -0.0035861]),
    "Adam": (dict(decay=0.1), [0.9974884, 0.9974885, -0.0025115]),
    "Adamax": (dict(decay=0.1), [0.9949777, 0.9949782, -0.0050199]),
    "Nadam": ({}, [0.9948599, 0.9948604, -0.0051382]),
}


def stepped(optimizer):
    x, y = np.array([[1, 2], [3, -1], [0, 0.5], [2, 2]], "float32"), np.array([[1], [0], [2], [-1]], "float32")
    model = keras.Sequential([L.Dense(1, input_shape=(2,), kernel_initializer="ones")])
    model.compile(optimizer, "mse")
    for _ in range(3):
        model.train_on_batch(x, y)
    return model, np.concatenate([w.ravel() for w in model.get_weights()])


@pytest.mark.parametrize("name", OF_OLD)
def test_optimizers_of_the_private_module_are_those_of_old(name):
    kind, (given, expected) = getattr(tf.python.keras.optimizers, name), OF_OLD[name]
    optimizer = kind(**given)
    model, weights = stepped(optimizer)
    np.testing.assert_allclose(weights, expected, atol=2e-6)
    assert K.get_value(model.optimizer.iterations) == 3 and optimizer.get_config()["lr"] == pytest.approx(K.get_value(optimizer.lr))
    optimizer.set_weights(optimizer.get_weights())
    again = kind.from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    today = O.deserialize(O.serialize(optimizer))
    assert type(today) is getattr(O, name) and today.get_config()["learning_rate"] == pytest.approx(optimizer.get_config().get("lr"))


def test_configs_variables_and_updates_of_old():
    old = tf.python.keras.optimizers
    adam = old.Adam(amsgrad=True, clipnorm=0.5)
    _, weights = stepped(adam)
    np.testing.assert_allclose(weights, [0.9970001, 0.9970001, -0.0029998], atol=1e-6)
    assert [v.op.name for v in tf.global_variables()][:5] == ["Adam/iterations", "Adam/lr", "Adam/beta_1", "Adam/beta_2", "Adam/decay"]
    assert (len(adam.weights), len(adam.updates)) == (7, 8) and adam.get_config()["clipnorm"] == 0.5
    assert list(old.RMSprop().get_config()) == ["lr", "rho", "decay", "epsilon"]
    for wrong in ({"learning_rate": 0.5}, {"name": "mine"}):
        with pytest.raises(TypeError, match="Unexpected keyword"):
            old.SGD(**wrong)
    with pytest.raises(ValueError, match="does not match the number of weights"):
        old.RMSprop().set_weights([1])
    with pytest.raises(NotImplementedError, match="get_updates"):
        adam.apply_gradients([])
    with pytest.raises(NotImplementedError, match="update a Tensor"):
        O.SGD().apply_gradients([(tf.constant(1.0), tf.constant(2.0))])
    with pytest.raises(NotImplementedError):
        old.Optimizer().get_updates(None, None)


def test_files_leave_out_the_state_of_old_optimizers(tmp_path, monkeypatch):
    warned = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *args: warned.append(text % args))
    model, _ = stepped(tf.python.keras.optimizers.SGD(momentum=0.9))
    model.save_weights(str(tmp_path / "weights"), save_format="tf")
    assert "Keras optimizer" in warned[0]


def test_files_of_old_optimizers_make_those_of_today(tmp_path):
    pytest.importorskip("h5py")
    model, _ = stepped(tf.python.keras.optimizers.SGD(momentum=0.9))
    model.save(str(tmp_path / "model.h5"))
    loaded = keras.models.load_model(str(tmp_path / "model.h5"))
    assert type(loaded.optimizer) is O.SGD and K.get_value(loaded.optimizer.iterations) == 3


def test_an_optimizer_of_tf_train_has_first_values_in_sessions():
    made = tf.python.keras.optimizers.TFOptimizer(tf.train.AdamOptimizer(0.01))
    K.track_tf_optimizer(made)
    model, _ = stepped(made)
    assert K.get_value(model.optimizer.iterations) == 3


def test_settings_are_variables_once_a_step_is_made():
    optimizer, v = tf.keras.optimizers.Adam(0.1), tf.Variable([1.0, 2.0], use_resource=True)
    assert optimizer._hyper == {"learning_rate": 0.1, "decay": 0.0, "beta_1": 0.9, "beta_2": 0.999}
    optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])
    assert all(isinstance(x, tf.Variable) for x in optimizer._hyper.values()) and sorted(optimizer._hyper) == ["beta_1", "beta_2", "decay", "learning_rate"]
