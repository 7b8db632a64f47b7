# SPDX-License-Identifier: Apache-2.0
"""Variables, optimizers, savers, summaries, layers."""

import os
import time

import numpy as np
import pytest

import millrace as tf
from millrace.ops import resource_variables


def test_optimizers_take_the_steps_of_their_rules():
    rules = {
        "sgd": tf.train.GradientDescentOptimizer(0.1),
        "momentum": tf.train.MomentumOptimizer(0.1, 0.9),
        "nesterov": tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "adagrad": tf.train.AdagradOptimizer(0.1),
        "adam": tf.train.AdamOptimizer(0.1),
        "rmsprop": tf.train.RMSPropOptimizer(0.1),
        "centered": tf.train.RMSPropOptimizer(0.1, centered=True),
        "adadelta": tf.train.AdadeltaOptimizer(1.0),
        "ftrl": tf.train.FtrlOptimizer(0.1),
    }
    for name, optimizer in rules.items():
        with tf.Graph().as_default(), tf.Session() as session:
            w = tf.Variable([2.0, -3.0])
            loss = tf.reduce_sum(tf.square(w))
            step = tf.Variable(0, trainable=False)
            train = optimizer.minimize(loss, global_step=step)
            session.run(tf.global_variables_initializer())
            before = session.run(loss)
            for _ in range(20):
                session.run(train)
            assert session.run(loss) < before, name
            assert session.run(step) == 20


def test_adam_is_exact_and_its_slots_have_tensorflows_names():
    w = tf.Variable([1.0, 2.0], name="w")
    optimizer = tf.train.AdamOptimizer(0.01)
    train = optimizer.minimize(tf.reduce_sum(w * w))
    assert train.name == "Adam"
    assert sorted(v.op.name for v in tf.global_variables()) == ["beta1_power", "beta2_power", "w", "w/Adam", "w/Adam_1"]
    assert optimizer.get_slot(w, "m").op.name == "w/Adam" and optimizer.get_slot_names() == ["m", "v"]
    x, m, v = np.array([1.0, 2.0]), 0.0, 0.0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for t in range(1, 6):
            session.run(train)
            g = 2 * x
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            x = x - 0.01 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
        np.testing.assert_allclose(session.run(w), x, rtol=1e-5)


@pytest.mark.parametrize(
    "optimizer, slots",
    [(tf.train.AdamOptimizer, ["beta1_power", "beta2_power", "b/Adam", "b/Adam_1", "a/Adam", "a/Adam_1"]), (tf.train.RMSPropOptimizer, None)],
)
def test_slots_are_listed_in_tensorflows_order(optimizer, slots):
    b, a = tf.Variable(1.0, name="b"), tf.Variable(2.0, name="a")
    optimizer(0.1).minimize(a * b)
    assert [v.op.name for v in tf.global_variables()][2:] == (slots or ["b/RMSProp", "b/RMSProp_1", "a/RMSProp", "a/RMSProp_1"])


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize(
    "optimizer, after",  # of 1.15.5
    [
        (tf.train.GradientDescentOptimizer(0.1), [0.8, 1.6]),
        (tf.train.AdagradOptimizer(0.1), [0.90122706, 1.900311]),
        (tf.train.AdamOptimizer(0.1), [0.90000004, 1.9]),
        (tf.train.RMSPropOptimizer(0.1), [0.8245884, 1.7470179]),
    ],
)
def test_slots_of_variables_whose_shape_the_first_value_says(use_resource, optimizer, after):
    first = tf.placeholder(tf.float32)
    v = tf.Variable(first, validate_shape=False, use_resource=use_resource)
    step = optimizer.minimize(v * v)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer(), {first: [1.0, 2.0]})
        session.run(step)
        np.testing.assert_allclose(session.run(v), after, rtol=1e-6)


def adam_at(x, steps, rate=0.1):
    m = v = 0.0
    for t in range(1, steps + 1):
        m, v = 0.9 * m + 0.1 * 2 * x, 0.999 * v + 0.001 * 4 * x * x
        x = x - rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
    return x


def groups(op):
    return [group for group in op.colocation_groups() if group != b"loc:@" + op.name.encode()]


def test_powers_are_of_the_kind_of_the_first_variable_and_lie_with_it():
    b = tf.get_variable("b", initializer=2.0, use_resource=True)
    a = tf.get_variable("a", initializer=3.0, use_resource=False)
    optimizer = tf.train.AdamOptimizer(0.1)
    step = optimizer.minimize(b * b + a * a)
    assert all(v.op.type == "VariableV2" and groups(v.op) == [b"loc:@a"] for v in optimizer._get_beta_accumulators())
    other = tf.train.AdamOptimizer(0.1, name="Other")
    other_step = other.minimize(b * b)
    assert all(v.op.type == "VarHandleOp" and groups(v.op) == [b"loc:@b"] for v in other._get_beta_accumulators())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        np.testing.assert_allclose(session.run([b, a]), [adam_at(2.0, 3), adam_at(3.0, 3)], rtol=1e-5)
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(other_step)
        np.testing.assert_allclose(session.run([b, *other._get_beta_accumulators()]), [adam_at(2.0, 3), 0.9**4, 0.999**4], rtol=1e-5)


@pytest.mark.parametrize("use_resource", [False, True])
def test_slots_go_through_the_creators_of_variables(use_resource):
    made = []

    def note(next_creator, **kwargs):
        made.append(kwargs["name"].rstrip("/"))
        return next_creator(**kwargs)

    v = tf.get_variable("v", initializer=2.0, use_resource=use_resource)
    optimizer = tf.train.AdamOptimizer(0.1)
    with tf.variable_creator_scope(note):
        step = optimizer.minimize(v * v)
        tf.train.MomentumOptimizer(0.1, 0.9).minimize(v * v)
    assert made == ["beta1_power", "beta2_power", "v/Adam", "v/Adam_1", "v/Momentum"]
    again = optimizer.minimize(v * v)  # outside of the scope, with the slots that it has
    assert len(tf.global_variables()) == 6
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for op in (step, again, step):
            session.run(op)
        np.testing.assert_allclose(session.run(v), adam_at(2.0, 3), rtol=1e-5)


def test_gradients_can_be_clipped_and_are_sparse_for_lookups():
    table = tf.Variable(tf.ones([5, 2]))
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 1, 3]))
    (gradient,) = tf.gradients(loss, table)
    assert isinstance(gradient, tf.IndexedSlices)
    handle = tf.get_variable("handle", initializer=tf.ones([5, 2]), use_resource=True)
    (rows,) = tf.gradients(tf.gather_nd(handle, [[1], [3]]), handle)
    (elements,) = tf.gradients(tf.gather_nd(handle, [[1, 0], [3, 1]]), handle)
    assert isinstance(rows, tf.IndexedSlices) and isinstance(elements, tf.Tensor)
    for optimizer in (tf.train.GradientDescentOptimizer(1.0), tf.train.AdagradOptimizer(1.0), tf.train.AdamOptimizer(0.1)):
        pairs = optimizer.compute_gradients(loss)
        clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 1e9)
        train = optimizer.apply_gradients(zip(clipped, [v for _, v in pairs]))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(train)
            value = session.run(table)
            assert (value[[0, 2, 4]] == 1).all() and (value[[1, 3]] < 1).all()


def test_a_program_written_optimizer():
    class Half(tf.train.Optimizer):
        def __init__(self):
            super().__init__(False, "Half")

        def _apply_dense(self, grad, var):
            return var.assign_sub(0.5 * grad)

    w = tf.Variable(4.0)
    train = Half().minimize(w * w / 2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(w) == 2.0


def test_update_ops_run_before_training():
    count = tf.Variable(0)
    bump = tf.assign_add(count, 1)
    w = tf.Variable(1.0)
    with tf.control_dependencies([bump]):
        train = tf.train.GradientDescentOptimizer(0.1).minimize(w * w)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(count) == 1


def test_save_and_restore(tmp_path):
    v = tf.Variable([1.0, 2.0], name="v")
    u = tf.Variable(7, name="u")
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        paths = [saver.save(session, str(tmp_path / "m"), global_step=i) for i in range(3)]
        session.run(v.assign([9.0, 9.0]))
        saver.restore(session, paths[-1])
        np.testing.assert_array_equal(session.run(v), [1, 2])
    assert tf.train.latest_checkpoint(str(tmp_path)) == paths[-1]
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == paths[-1] and list(state.all_model_checkpoint_paths) == paths[1:]
    assert not tf.train.checkpoint_exists(paths[0]) and not os.path.exists(paths[0] + ".meta")
    reader = tf.train.NewCheckpointReader(paths[-1])
    assert reader.get_variable_to_shape_map() == {"u": [], "v": [2]} and reader.get_tensor("u") == 7
    assert u.op.name == "u"
    tf.reset_default_graph()
    saver = tf.train.import_meta_graph(paths[-1] + ".meta")
    assert [x.name for x in tf.trainable_variables()] == ["v:0", "u:0"]
    with tf.Session() as session:
        saver.restore(session, paths[-1])
        np.testing.assert_array_equal(session.run("v:0"), [1, 2])


def test_a_folder_is_a_prefix_of_checkpoints(tmp_path):
    v = tf.Variable(3.0)
    folder = str(tmp_path) + "/"
    with tf.Session() as session:
        session.run(v.initializer)
        saver = tf.train.Saver()
        assert saver.save(session, folder) == folder == tf.train.latest_checkpoint(folder)
        assert sorted(os.listdir(folder)) == [".data-00000-of-00001", ".index", ".meta", "checkpoint"]
        session.run(v.assign(5.0))
        saver.restore(session, folder)
        assert session.run(v) == 3
        assert saver.save(session, folder, global_step=7) == folder + "-7" == tf.train.latest_checkpoint(folder)


def test_one_checkpoint_every_few_hours_stays(tmp_path):
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=2, keep_checkpoint_every_n_hours=1)
    assert saver.saver_def.keep_checkpoint_every_n_hours == 1
    made = time.time()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        written = []
        for i in range(5):
            written.append((saver.save(session, str(tmp_path / "m"), global_step=i), made + (i + 1) * 39 * 60))
            saver.set_last_checkpoints_with_time([])
        saver.set_last_checkpoints_with_time(written)
        saver.save(session, str(tmp_path / "m"), global_step=5)
    assert [os.path.basename(p) for p in saver.last_checkpoints] == ["m-4", "m-5"]
    assert [i for i in range(6) if tf.train.checkpoint_exists(str(tmp_path / ("m-%d" % i)))] == [1, 3, 4, 5]
    assert [i for i in range(6) if os.path.exists(str(tmp_path / ("m-%d.meta" % i)))] == [1, 3, 4, 5]


def test_summaries(tmp_path):
    tf.summary.scalar("loss", tf.constant(2.5))
    tf.summary.histogram("weights", tf.constant([1.0, 2.0]))
    merged = tf.summary.merge_all()
    with tf.Session() as session, tf.summary.FileWriter(str(tmp_path), session.graph) as writer:
        writer.add_summary(session.run(merged), 3)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="mine", simple_value=1.5)]), 4)
    events = list(tf.train.summary_iterator(str(tmp_path / os.listdir(tmp_path)[0])))
    values = {v.tag: v for e in events for v in e.summary.value}
    assert values["loss"].simple_value == 2.5 and values["mine"].simple_value == 1.5 and values["weights"].histo.num == 2
    assert any(e.WhichOneof("what") == "graph_def" for e in events)


def test_layers_reuse_and_batch_normalization():
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    y = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu, name="c")
    z = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu, name="c", reuse=True)
    assert [v.name for v in tf.global_variables()] == ["c/kernel:0", "c/bias:0"]
    h = tf.layers.max_pooling2d(y, 2, 2)
    n = tf.layers.batch_normalization(h, training=True)
    out = tf.layers.dense(tf.layers.flatten(n), 2)
    assert out.get_shape().as_list() == [None, 2] and len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value = np.random.RandomState(0).randn(4, 8, 8, 3)
        a, b, c = session.run([y, z, n], {x: value})
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(c.mean((0, 1, 2)), 0, atol=1e-5)
        before = session.run("batch_normalization/moving_mean:0")
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS), {x: value})
        assert (session.run("batch_normalization/moving_mean:0") != before).any()


def test_moving_averages():
    v = tf.Variable(10.0, name="v")
    average = tf.train.ExponentialMovingAverage(0.5)
    update = average.apply([v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(20.0))
        session.run(update)
        assert session.run(average.average(v)) == 15
    assert average.average_name(v) == "v/ExponentialMovingAverage"
    assert "v/ExponentialMovingAverage" in average.variables_to_restore()


def test_averages_and_slots_where_a_scope_reuses():
    """As up to 0.11: towers of one model keep averages of their losses, and programs minimize behind reuse_variables()."""
    with tf.variable_scope("net"):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    with tf.variable_scope("net", reuse=True):
        loss = tf.identity(2.0 * tf.reduce_sum(tf.get_variable("w", [2])), name="loss")
        average = tf.train.ExponentialMovingAverage(0.5)
        update = average.apply([loss, w])
        step = tf.contrib.opt.MovingAverageOptimizer(tf.train.MomentumOptimizer(0.5, 0.5)).minimize(loss)
        with pytest.raises(ValueError, match="does not exist"):
            tf.get_variable("v", [2])
    assert average.average(loss).op.name == "net/net_1/loss/ExponentialMovingAverage"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run(average.average(loss)) == 2 and list(session.run(average.average(w))) == [1, 1]
        session.run(step)
        assert list(session.run(w)) == [0, 0]


def test_errors_are_classes_and_name_the_line():
    x = tf.placeholder(tf.float32, [None], name="x")
    bad = tf.check_numerics(x, "look here", name="checked")
    v = tf.Variable(1.0)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(bad, {x: [np.inf]})
        text = str(caught.value)
        assert "test_training.py" in text and "look here" in text and len(text.splitlines()) <= 12
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(v)
    with pytest.raises(ValueError) as caught:
        tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))
    assert "[2,3]" in str(caught.value) and "test_training.py" in str(caught.value)
    with pytest.raises((TypeError, ValueError), match="int32"):
        tf.matmul(tf.zeros([2, 3]), tf.constant([[1]]))


def test_slim_clips_gradients():
    from millrace.contrib.slim_learning import clip_gradient_norms

    table, v = tf.Variable(tf.ones([3, 2])), tf.Variable([3.0, 4.0])
    loss = tf.reduce_sum(tf.gather(table, [0, 2]) * 3) + tf.reduce_sum(tf.square(v)) / 2
    pairs = clip_gradient_norms([(g, x) for g, x in zip(tf.gradients(loss, [table, v]), [table, v])] + [(None, v)], 2.5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(np.linalg.norm(session.run(pairs[0][0].values)), 2.5, rtol=1e-6)
        np.testing.assert_allclose(session.run(pairs[1][0]), [1.5, 2.0], rtol=1e-6)
    assert pairs[2] == (None, v)


def test_checkpoints_of_the_first_format(tmp_path):
    from millrace.ops import gen_ops

    path = str(tmp_path / "old.ckpt")
    whole = np.arange(6, dtype=np.float32).reshape(2, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(gen_ops.save(path, ["whole"], [whole]))
        assert tf.train.NewCheckpointReader(path).get_tensor("whole").tolist() == whole.tolist()
        assert session.run(gen_ops.restore(path, "whole", tf.float32)).tolist() == whole.tolist()
        assert session.run(gen_ops.restore_slice(path, "whole", "2 3 -:1,2", tf.float32)).tolist() == whole[:, 1:].tolist()
        session.run(gen_ops.save_slices(path + "2", ["w"], ["2 3 0,1:-"], [whole[:1]]))
        assert session.run(gen_ops.restore_slice(path + "2", "w", "2 3 0,1:0,2", tf.float32)).tolist() == [[0, 1]]
        assert session.run(gen_ops.sharded_filespec("base", 4)) == b"base-?????-of-00004"
        with pytest.raises((ValueError, tf.OpError)):
            session.run(gen_ops.restore(path, "none", tf.float32))


@pytest.mark.parametrize("use_resource", [False, True])
def test_averages_are_of_the_values_behind_a_step(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=1.0, use_resource=use_resource)
        averages = tf.train.ExponentialMovingAverage(0.5)
        with tf.control_dependencies([tf.train.GradientDescentOptimizer(1.0).minimize(v)]):
            both = averages.apply([v])
        session.run(tf.global_variables_initializer())
        found = []
        for _ in range(3):
            session.run(both)
            found.append(session.run(averages.average(v)))
    assert found == [0.5, -0.25, -1.125]


def test_a_loss_may_be_a_function():
    with tf.Graph().as_default(), tf.Session() as session:
        v, other = tf.Variable(3.0), tf.Variable(1.0)
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        pairs = optimizer.compute_gradients(lambda: tf.square(v))
        assert [variable for _, variable in pairs] == [v]
        step = optimizer.minimize(lambda: tf.square(v) + other)
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run([v, other]) == [0.0, 0.5]
        with pytest.raises(ValueError, match="No variables"):
            optimizer.minimize(lambda: tf.constant(5.0))
        assert resource_variables.is_resource_variable(tf.Variable(1.0, use_resource=True)) and not resource_variables.is_resource_variable(v)
