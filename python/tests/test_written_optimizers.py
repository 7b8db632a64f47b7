# SPDX-License-Identifier: Apache-2.0
"""Optimizers that are written in Python: subclasses of the library's, and those of tf.contrib.opt."""

import threading

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import opt

START = np.arange(1, 7, dtype=np.float32).reshape(3, 2)


def trained(make, resource=False, sparse=False, steps=3):
    """The variable after some steps, and what the optimizer keeps."""
    with tf.Graph().as_default():
        v = tf.Variable(START, name="v", use_resource=resource)
        optimizer = make()
        rows = tf.gather(v, [0, 2, 2]) if sparse else v
        train = optimizer.minimize(tf.reduce_sum(rows**2))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                session.run(train)
            return session.run(v), sorted(kept.op.name for kept in optimizer.variables())


def test_optimizers_stand_right_below_their_base():
    stems = "Adadelta AdagradDA Adagrad Adam Ftrl GradientDescent Momentum ProximalAdagrad ProximalGradientDescent RMSProp SyncReplicas".split()
    assert {getattr(tf.train, stem + "Optimizer").__base__ for stem in stems} == {tf.train.Optimizer}
    assert isinstance(tf.train.AdamOptimizer(0.1), tf.train.Optimizer)


RULES = {
    "sgd": (tf.train.GradientDescentOptimizer, {"learning_rate": 0.1}),
    "nesterov": (tf.train.MomentumOptimizer, {"learning_rate": 0.1, "momentum": 0.9, "use_nesterov": True}),
    "adagrad": (tf.train.AdagradOptimizer, {"learning_rate": 0.1}),
    "adadelta": (tf.train.AdadeltaOptimizer, {"learning_rate": 0.1}),
    "adam": (tf.train.AdamOptimizer, {"learning_rate": 0.1}),
    "rmsprop": (tf.train.RMSPropOptimizer, {"learning_rate": 0.1, "momentum": 0.5}),
    "centered": (tf.train.RMSPropOptimizer, {"learning_rate": 0.1, "momentum": 0.5, "centered": True}),
    "ftrl": (tf.train.FtrlOptimizer, {"learning_rate": 0.1, "l1_regularization_strength": 0.1}),
    "shrinkage": (tf.train.FtrlOptimizer, {"learning_rate": 0.1, "l2_shrinkage_regularization_strength": 0.1}),
    "proximal": (tf.train.ProximalGradientDescentOptimizer, {"learning_rate": 0.1, "l1_regularization_strength": 0.1}),
    "addsign": (opt.AddSignOptimizer, {"learning_rate": 0.1}),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_subclass_steps_as_the_library(rule, resource, sparse):
    base, arguments = RULES[rule]
    prepared = []

    class Sub(base):
        def _prepare(self):
            super()._prepare()
            prepared.append(True)

    value, names = trained(lambda: base(**arguments), resource, sparse)
    own, own_names = trained(lambda: Sub(**arguments), resource, sparse)
    assert prepared
    np.testing.assert_allclose(own, value, rtol=1e-6)
    assert own_names == names


class AmsGrad(tf.train.Optimizer):
    """As programs write it."""

    def __init__(self, rate):
        super().__init__(False, "AmsGrad")
        self._rate, self.asked = rate, []

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda x: x.name)
        self._create_non_slot_variable(initial_value=0.9, name="beta1_power", colocate_with=first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._get_or_make_slot(v, tf.ones_like(v.initialized_value()), "top", self._name)

    def _prepare(self):
        self._rate_t = tf.convert_to_tensor(self._rate)

    def _resource_apply_sparse(self, grad, handle, indices):
        self.asked.append(indices)
        return self._resource_scatter_add(handle, indices, -self._rate_t * grad)

    def _resource_apply_dense(self, grad, handle):
        m = self.get_slot(handle, "m")
        return handle.assign_sub(self._rate_t * m.assign(0.9 * m + grad))

    def _apply_sparse(self, grad, var):
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _apply_dense(self, grad, var):
        return self._resource_apply_dense(grad, var)

    def _finish(self, update_ops, name_scope):
        power = self._get_non_slot_variable("beta1_power", graph=tf.get_default_graph())
        with tf.control_dependencies(update_ops):
            moved = power.assign(power * 0.9)
        return tf.group(*update_ops, moved, name=name_scope)


@pytest.mark.parametrize("resource", [False, True])
def test_what_programs_write_their_own_with(resource):
    value, names = trained(lambda: AmsGrad(0.1), resource, steps=1)
    np.testing.assert_allclose(value, START - 0.2 * START, rtol=1e-6)
    assert names == ["beta1_power", "v/AmsGrad", "v/AmsGrad_1"]
    rows, _ = trained(lambda: AmsGrad(0.1), resource, sparse=True, steps=1)
    np.testing.assert_allclose(rows, START * np.array([[0.8], [1.0], [0.6]]), rtol=1e-6)  # a row that comes twice has one step by the sum


def test_variables_of_other_graphs_are_not_told():
    optimizer = AmsGrad(0.1)
    tf.train.AdamOptimizer(0.1)
    v = tf.Variable(1.0)
    optimizer.minimize(v * v)
    assert len(optimizer.variables()) == 3
    with tf.Graph().as_default():
        assert optimizer.variables() == []


def test_constraints_hold_after_steps_in_python():
    v = tf.Variable([1.0, 2.0], constraint=lambda x: tf.clip_by_value(x, 0.9, 1.5))
    train = AmsGrad(0.1).minimize(tf.reduce_sum(v))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(v), [0.9, 1.5])


def test_sparse_gradients_may_be_lists():
    v = tf.Variable([[0.0], [1.0], [2.0]])
    grads = tf.IndexedSlices(tf.constant([[1.0], [1.0]]), [0, 2], [3, 1])
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients([(grads, v)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(v).tolist() == [[-1.0], [1.0], [1.0]]


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_kin_of_adam(resource, sparse):
    rows = [0, 2] if sparse else [0, 1, 2]
    scale = np.array([[2.0], [4.0]]) if sparse else 2.0  # a row that is gathered twice has twice the gradient

    def expected(step, top, lazy):
        var, m, v = START.astype(np.float64), np.zeros((3, 2)), np.zeros((3, 2))
        for t in range(1, 4):
            grad = np.zeros((3, 2))
            grad[rows] = scale * var[rows]
            moved = rows if lazy else [0, 1, 2]
            m[moved] = 0.9 * m[moved] + 0.1 * grad[moved]
            v[moved] = top(0.999 * v[moved], grad[moved])
            var[moved] -= 0.1 * step(m[moved], v[moved], grad[moved], t)
        return var

    def adam(m, v, grad, t):
        return np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)

    def square(decayed, grad):
        return decayed + 0.001 * grad**2

    for make, step, top, lazy in (
        (opt.LazyAdamOptimizer, adam, square, True),
        (opt.AdaMaxOptimizer, lambda m, v, g, t: m / (v + 1e-8) / (1 - 0.9**t), lambda v, g: np.maximum(v, np.abs(g)), True),
    ):
        np.testing.assert_allclose(trained(lambda: make(0.1), resource, sparse)[0], expected(step, top, lazy and sparse), rtol=1e-5)
    if not sparse:
        nadam = expected(lambda m, v, g, t: adam(0.9 * m + 0.1 * g, v, g, t), square, False)
        np.testing.assert_allclose(trained(lambda: opt.NadamOptimizer(0.1), resource)[0], nadam, rtol=1e-5)


@pytest.mark.parametrize("resource", [False, True])
def test_adam_keeps_powers_in_float32_whatever_it_trains(resource):
    var = tf.Variable(START.astype(np.float64), use_resource=resource)
    optimizer = tf.train.AdamOptimizer(0.1)
    step = optimizer.minimize(tf.reduce_sum(var))
    powers = optimizer._get_beta_accumulators()
    assert [power.dtype.base_dtype for power in powers] == [tf.float32] * 2
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        beta1, beta2, rate, epsilon = (np.float64(np.float32(x)) for x in (0.9, 0.999, 0.1, 1e-8))
        moved = rate * np.sqrt(1 - beta2) / (1 - beta1) * (1 - beta1) / (np.sqrt(1 - beta2) + epsilon)
        np.testing.assert_allclose(session.run(var), START - moved, rtol=1e-14)


@pytest.mark.parametrize("make", [opt.AdamGSOptimizer, opt.LazyAdamGSOptimizer])
def test_adam_by_the_global_step(make):
    v = tf.Variable([1.0, 2.0])
    step = tf.train.create_global_step()
    optimizer = make(step, 0.1)
    train = optimizer.minimize(tf.reduce_sum(v * v), global_step=step)
    u = tf.Variable([1.0, 2.0])
    plain = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(u * u))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
            session.run(plain)
        np.testing.assert_allclose(*session.run([v, u]), rtol=1e-5)
        assert session.run(step) == 3
    assert not [x for x in optimizer.variables() if "power" in x.name]


@pytest.mark.parametrize("resource", [False, True])
def test_weights_decay_beside_the_step(resource):
    plain, _ = trained(lambda: tf.train.AdamOptimizer(0.1), resource, steps=1)
    np.testing.assert_allclose(trained(lambda: opt.AdamWOptimizer(0.01, 0.1), resource, steps=1)[0], plain - 0.01 * START, rtol=1e-5)
    rows, _ = trained(lambda: tf.train.AdamOptimizer(0.1), resource, True, steps=1)
    decayed, _ = trained(lambda: opt.AdamWOptimizer(lambda: 0.01, 0.1), resource, True, steps=1)
    np.testing.assert_allclose(decayed, rows - 0.01 * START * np.array([[1.0], [0.0], [1.0]]), rtol=1e-5)  # the rows of the gradient alone
    extended = opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)
    a, b = tf.Variable(1.0), tf.Variable(1.0)
    train = extended(0.5, learning_rate=0.0).minimize(a + b, decay_var_list=[a])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([a, b]) == [0.5, 1.0]


def test_lars_scales_by_norms():
    def make():
        return opt.LARSOptimizer(1.0, momentum=0.0, weight_decay=0.1, eeta=0.01, skip_list=["bias"])

    norm = np.linalg.norm(START)
    rate = 0.01 * norm / (2 * norm + 0.1 * norm)
    np.testing.assert_allclose(trained(make, steps=1)[0], START - rate * 2.1 * START, rtol=1e-5)
    bias = tf.Variable([1.0], name="bias")
    train = make().minimize(bias * bias)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(bias) == [-1.0]


def test_adagrad_leaves_slots_to_the_loss():
    v = tf.Variable([1.0])
    optimizer = opt.RegAdagradOptimizer(1.0)
    with optimizer.avoid_updating_slots():
        regularise = optimizer.apply_gradients([(tf.constant([1.0]), v)])
    train = optimizer.apply_gradients([(tf.constant([1.0]), v)])
    slot = optimizer.get_slot(v, "accumulator")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(regularise)
        assert session.run(slot) == np.float32(0.1)
        session.run(train)
        np.testing.assert_allclose(session.run(slot), [1.1])


def test_variables_are_clipped_after_steps():
    v = tf.Variable([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    grads = tf.IndexedSlices(tf.zeros([2, 2]), tf.constant([0, 0]), tf.constant([3, 2]))
    train = opt.VariableClippingOptimizer(tf.train.GradientDescentOptimizer(1.0), {v: [1]}, 1.0).apply_gradients([(grads, v)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(v), [[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]], rtol=1e-6)


def test_gradients_of_masked_tasks_change_nothing():
    mask, v = tf.placeholder(tf.float32), tf.Variable(1.0)
    inner = tf.train.MomentumOptimizer(1.0, 0.9)
    train = opt.MultitaskOptimizerWrapper(inner).minimize(mask * v)
    clipped, norm = opt.clip_gradients_by_global_norm([(tf.constant([3.0, 4.0]), v), (None, v)], 1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {mask: 1.0})
        session.run(train, {mask: 0.0})
        assert session.run([v, inner.get_slot(v, "momentum")]) == [0.0, 1.0]
        assert session.run(norm) == 5.0 and clipped[1][0] is None


def test_stale_gradients_are_dropped():
    step, v = tf.train.create_global_step(), tf.Variable(1.0)
    optimizer = opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.5), staleness=0)
    pairs = optimizer.compute_gradients(1.0 * v)
    late = tf.placeholder(tf.bool)
    with tf.control_dependencies([optimizer._local_step]):
        moved = step.assign_add(tf.cast(late, tf.int64))
    with tf.control_dependencies([moved]):
        pairs = [(tf.identity(g), v) for g, v in pairs]
    dropped = optimizer.apply_gradients(pairs, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(dropped, {late: False}) == 0 and session.run(v) == 0.5
        assert session.run(dropped, {late: True}) == 1 and session.run(v) == 0.5


def test_steps_of_another_worker_make_gradients_stale():
    target = tf.train.Server.create_local_server().target
    step, v = tf.train.create_global_step(), tf.Variable(1.0)
    optimizer = opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.5), staleness=0)
    pairs = optimizer.compute_gradients(1.0 * v)
    begun, may_go_on = (tf.FIFOQueue(1, tf.bool, [()]) for _ in range(2))
    with tf.control_dependencies([g for g, _ in pairs]):
        waits = begun.enqueue(True)
    with tf.control_dependencies([waits]), tf.control_dependencies([may_go_on.dequeue()]):
        pairs = [(tf.identity(g), v) for g, v in pairs]
    dropped = optimizer.apply_gradients(pairs, global_step=step)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        got = []
        late = threading.Thread(target=lambda: got.append(session.run(dropped)))
        late.start()
        session.run(begun.dequeue())
        session.run(step.assign_add(1))
        session.run(may_go_on.enqueue(True))
        late.join()
        assert got == [1] and session.run(v) == 1.0


def test_decays_end_where_they_are_told_to():
    def at(decay):
        with tf.Session() as session:
            return session.run([decay(tf.constant(step)) for step in range(0, 11, 2)])

    np.testing.assert_allclose(at(opt.get_cosine_decay_fn(10, 0.5, 0.4))[-2:], [0, 0], atol=1e-6)
    np.testing.assert_allclose(
        at(opt.get_restart_decay_fn(10, 2, 1.2)), [1, 0.5 * (1 + np.cos(0.4 * np.pi)), 0.5 * (1 + np.cos(0.8 * np.pi)), 0, 0, 0], atol=1e-6
    )
    np.testing.assert_allclose(at(opt.get_restart_decay_fn(10, 2))[-1:], [1], atol=1e-6)


def test_an_external_optimizer_of_a_program():
    class Once(opt.ExternalOptimizerInterface):
        def _minimize(self, initial_val, loss_grad_func, step_callback, optimizer_kwargs, equality_funcs, equality_grad_funcs, **others):
            assert optimizer_kwargs == {"rate": 0.5} and sorted(others) == ["inequality_funcs", "inequality_grad_funcs", "packed_bounds"]
            assert float(equality_funcs[0](initial_val)[0]) == 3.0 and equality_grad_funcs[0](initial_val)[0].tolist() == [1.0, 1.0]
            _, slope = loss_grad_func(initial_val)
            step_callback(initial_val)
            return initial_val - 0.5 * slope

    v = tf.Variable([1.0, 2.0])
    seen, losses = [], []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        loss = tf.reduce_sum(v * v)
        Once(loss, equalities=[tf.reduce_sum(v)], rate=0.5).minimize(session, fetches=[loss], step_callback=seen.append, loss_callback=losses.append)
        assert session.run(v).tolist() == [0.0, 0.0] and losses == [5.0] and len(seen) == 1


def test_a_subclass_may_take_but_its_first_arguments_by_position():
    class Scaled(tf.train.GradientDescentOptimizer):
        def compute_gradients(self, loss, var_list=None, **kwargs):
            return super().compute_gradients(loss * 2, var_list=var_list, **kwargs)

        def apply_gradients(self, pairs, **kwargs):
            return super().apply_gradients(pairs, **kwargs)

    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0)
        step = Scaled(0.1).minimize(3 * v)
        session.run(tf.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run(v), 0.4, rtol=1e-6)


def test_whole_numbers_as_settings_are_cast_to_the_variables_type():
    class Adam(tf.train.AdamOptimizer):
        def _apply_dense(self, grad, var):
            return super()._apply_dense(grad, var)

    v = tf.Variable(3.0)
    step = Adam(1, beta1=0, epsilon=1).minimize(v)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run(v), 3 - 0.031622777 / 1.031622777, rtol=1e-5)  # sqrt(1 - beta2) of a gradient of 1


def test_custom_getters_of_scopes_see_slots():
    """As in 1.15, where a slot is a variable without a name in a scope of its own. Libraries collect their variables so."""
    seen = []

    def getter(make, name, **settings):
        seen.append((name, make(name, **settings)))
        return seen[-1][1]

    w = tf.get_variable("w", [2])
    with tf.variable_scope("q", custom_getter=getter):
        tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.nn.l2_loss(w))
        tf.train.ExponentialMovingAverage(0.9).apply([w])
    adam = tf.make_template("t", lambda: tf.train.AdamOptimizer().minimize(tf.nn.l2_loss(w)), custom_getter_=getter)
    adam()
    assert [name for name, _ in seen] == ["q/w/Momentum/", "q/w/ExponentialMovingAverage/", "t/w/Adam/", "t/w/Adam_1/"]
    assert [v.op.name + "/" for _, v in seen] == [name for name, _ in seen]
    with tf.Session() as sess:
        sess.run(tf.variables_initializer([w, *(v for _, v in seen)]))
        assert sess.run(tf.report_uninitialized_variables([v for _, v in seen])).tolist() == []
