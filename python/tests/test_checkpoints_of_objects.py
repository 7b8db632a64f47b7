# SPDX-License-Identifier: Apache-2.0
"""tf.train.Checkpoint and CheckpointManager. MILLRACE_TF_PYTHON names a Python that has TensorFlow, which then reads our files and writes others."""

import os
import subprocess
import types

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.train import tracking

PYTHON = os.environ.get("MILLRACE_TF_PYTHON")


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def trained(first, steps, tf=tf):
    """A session in which Adam has run, the Checkpoint of its variables, and what to compare; `first` changes names and order."""
    names = ["w", "b"] if first else ["other_b", "other_w"]
    made = {n[-1]: tf.Variable(np.float32([1, 2]) if n[-1] == "w" else np.float32(3), name=n) for n in names}
    optimizer = tf.train.AdamOptimizer(0.1)
    step = optimizer.minimize(tf.reduce_sum(made["w"] * made["b"]), var_list=[made["w"], made["b"]])
    checkpoint = tf.train.Checkpoint(inner=tf.train.Checkpoint(w=made["w"]), b=made["b"], optimizer=optimizer, **{"a/list.": [made["w"]]})
    session = tf.Session()
    if first:
        session.run(tf.global_variables_initializer())
    for _ in range(steps):
        session.run(step)
    return session, checkpoint, [made["w"], made["b"]], step


def test_values_go_by_objects_and_not_by_names(tmp_path):
    session, checkpoint, values, step = trained(True, 2)
    path = checkpoint.save(tmp_path / "at", session)
    assert path == str(tmp_path / "at-1") and tf.train.latest_checkpoint(tmp_path) == path
    session.run(step)
    wanted = session.run(values)
    keys = set(tf.train.load_checkpoint(path).get_variable_to_shape_map())
    assert {
        "b/.ATTRIBUTES/VARIABLE_VALUE",
        "b/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE",
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "optimizer/beta1_power/.ATTRIBUTES/VARIABLE_VALUE",
        "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
    } <= keys
    with tf.Graph().as_default():
        session, checkpoint, values, step = trained(False, 0)
        status = checkpoint.restore(path)
        status.assert_consumed().initialize_or_restore(session)
        session.run(step)
        for got, want in zip(session.run(values), wanted):
            np.testing.assert_array_equal(got, want)
        assert checkpoint.save(tmp_path / "at", session) == str(tmp_path / "at-2")


def test_variables_that_come_later_take_part(tmp_path):
    with tf.Session() as session:
        first = tf.train.Checkpoint(v=tf.Variable(7.0), u=tf.Variable(1.0))
        session.run(tf.global_variables_initializer())
        path = first.write(tmp_path / "a" / "x")
        second = tf.train.Checkpoint()
        status = second.restore(path)
        second.v, second.new = tf.Variable(0.0), tf.Variable(5.0)
        status.initialize_or_restore()
        assert session.run([second.v, second.new]) == [7.0, 5.0]
        status.assert_nontrivial_match().expect_partial()
        with pytest.raises(AssertionError, match="Unresolved object in checkpoint .*: u/.ATTRIBUTES"):
            status.assert_consumed()
        with pytest.raises(AssertionError, match="Object not assigned a value .*: new/.ATTRIBUTES"):
            status.assert_existing_objects_matched()
        with pytest.raises(AssertionError, match="Nothing except the root"):
            tf.train.Checkpoint(q=tf.Variable(0.0)).restore(path).assert_nontrivial_match()


def test_checkpoints_of_savers_and_none_at_all(tmp_path):
    with tf.Session() as session:
        v, w = tf.Variable(7.0, name="v"), tf.Variable(1.0, name="w")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver([v]).save(session, str(tmp_path / "s"))
        session.run(v.assign(0.0))
        checkpoint = tf.train.Checkpoint(some=v, other=w)
        checkpoint.restore(path).run_restore_ops()
        assert session.run(v) == 7.0
        session.run([v.assign(0.0), w.assign(0.0)])
        checkpoint.restore(None).initialize_or_restore()
        assert session.run([v, w]) == [7.0, 1.0]
        with pytest.raises(AssertionError, match="No checkpoint specified"):
            checkpoint.restore(None).assert_consumed()


def test_layers_and_models(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,)), tf.keras.layers.Activation("relu"), tf.keras.layers.Dense(1)])
    dense = tf.layers.Dense(2)
    dense(tf.ones([1, 2]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Checkpoint(model=model, dense=dense).save(tmp_path / "m")
        assert set(tf.train.load_checkpoint(path).get_variable_to_shape_map()) == {"_CHECKPOINTABLE_OBJECT_GRAPH"} | {
            n + "/.ATTRIBUTES/VARIABLE_VALUE"
            for n in (
                "model/layer_with_weights-0/kernel",
                "model/layer_with_weights-0/bias",
                "save_counter",
                "model/layer_with_weights-1/kernel",
                "model/layer_with_weights-1/bias",
                "dense/kernel",
                "dense/bias",
            )
        }


def test_mistakes(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    with pytest.raises(ValueError, match="expecting a trackable object"):
        tf.train.Checkpoint(x=3)
    with pytest.raises(tf.errors.NotFoundError, match="there is no such checkpoint"):
        checkpoint.restore(tmp_path / "x")
    with pytest.raises(ValueError, match="max_to_keep"):
        tf.train.CheckpointManager(checkpoint, tmp_path, 0)
    broken = tf.constant(b"\x0a\x04\x0a\x02\x08\x09")  # one object that has number 9 inside
    with tf.Session() as session:
        session.run(tf.raw_ops.SaveV2(prefix=str(tmp_path / "b"), tensor_names=["_CHECKPOINTABLE_OBJECT_GRAPH"], shape_and_slices=[""], tensors=[broken]))
    with pytest.raises(ValueError, match="the graph of objects is broken: it has 1 objects, and names 9"):
        checkpoint.restore(tmp_path / "b")


def test_manager_keeps_the_last_ones(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 2, keep_checkpoint_every_n_hours=1)
    with tf.Session() as session:
        assert manager.restore_or_initialize() is None
        for i in range(4):
            now[0] += 2000.0
            assert manager.save() == str(tmp_path / ("ckpt-%d" % (i + 1)))
        there = [n for n in range(1, 5) if tf.train.checkpoint_exists(str(tmp_path / ("ckpt-%d" % n)))]
        assert there == [2, 3, 4] and manager.checkpoints == [str(tmp_path / "ckpt-3"), str(tmp_path / "ckpt-4")]  # 2 is over an hour after the first
        again = tf.train.CheckpointManager(checkpoint, tmp_path, 2)
        assert again.checkpoints == manager.checkpoints and again.latest_checkpoint == tf.train.latest_checkpoint(tmp_path)
        session.run(checkpoint.v.assign(9.0))
        assert again.restore_or_initialize() == again.latest_checkpoint and session.run(checkpoint.v) == 1.0
        assert manager.save(checkpoint_number=77).endswith("ckpt-77")


def test_manager_leaves_what_others_wrote(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        others = [checkpoint.save(tmp_path / "other") for _ in range(2)]
        manager = tf.train.CheckpointManager(checkpoint, tmp_path, 1)
        assert manager.checkpoints == [] and manager.latest_checkpoint == others[1]
        own = [manager.save() for _ in range(2)]
        assert manager.checkpoints == own[1:] and manager.latest_checkpoint == own[1]
        assert [tf.train.checkpoint_exists(p) for p in [*others, *own]] == [True, True, False, True]


def test_savers_read_checkpoints_of_objects(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.train.Checkpoint(a=tf.get_variable("first", initializer=[1.0, 2.0]), b=tf.get_variable("second", initializer=3.0))
        session.run(tf.global_variables_initializer())
        path = made.save(tmp_path / "c")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        v = [tf.get_variable("second", []), tf.get_variable("first", [2])]
        saver = tf.train.Saver()
        size = len(graph.get_operations())
        saver.restore(session, path)
        assert [x.tolist() for x in session.run(v)] == [3, [1, 2]] and len(graph.get_operations()) == size
        tf.train.warm_start(path)
        session.run(tf.global_variables_initializer())
        assert [x.tolist() for x in session.run(v)] == [3, [1, 2]]
        more = tf.train.Saver([*v, tf.get_variable("third", [])])
        with pytest.raises(tf.errors.NotFoundError, match="(?s)Could not find some variables.*third"):
            more.restore(session, path)


def test_private_attributes_are_kept(tmp_path):
    class Scaled(tf.keras.layers.Layer):
        def build(self, input_shape):
            self._scale, self._parts = self.add_weight("scale", [2]), [self.add_weight("part", [1])]
            self._inner = tf.keras.layers.Dense(2, use_bias=False)
            super().build(input_shape)

        def call(self, x):
            return self._inner(x * self._scale + self._parts[0])

    layer = Scaled()
    layer(tf.ones([1, 2]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Checkpoint(layer=layer).save(tmp_path / "c")
        keys = {key.partition("/.ATTRIBUTES")[0] for key in tf.train.load_checkpoint(path).get_variable_to_shape_map()}
    assert {"layer/scale", "layer/part", "layer/_inner/kernel"} <= keys and len(keys) == 5


def test_objects_that_say_what_they_are_saved_as(tmp_path):
    class Twice:
        def __init__(self):
            self.made = tf.Variable(1.0)

        def _gather_saveables_for_checkpoint(self):
            return {"VARIABLE_VALUE": self.made}

    assert tf.train.experimental.PythonState is tracking.PythonState

    class Counted(tracking.PythonState):
        text = "none"

        def serialize(self):
            return self.text

        def deserialize(self, string_value):
            self.text = string_value.decode()

    def objects():
        module = tf.Module()
        module.v = tf.Variable([1, 2])
        return tf.train.Checkpoint(twice=Twice(), counted=Counted(), module=module, table=tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1))

    with tf.Graph().as_default(), tf.Session() as session:
        made = objects()
        session.run(tf.global_variables_initializer())
        session.run([made.twice.made.assign(5.0), made.module.v.assign([3, 4]), made.table.insert(["a"], [7])])
        made.counted.text = "nine"
        path = made.save(tmp_path / "c")
        assert tf.train.Saver([made.twice]).save(session, str(tmp_path / "s")) and tf.train.Saver({"x": made.twice}).save(session, str(tmp_path / "t"))
    assert tf.train.load_variable(str(tmp_path / "t"), "x") == 5
    with tf.Graph().as_default(), tf.Session() as session:
        made = objects()
        status = made.restore(path)
        assert made.counted.text == "nine"  # at once
        status.assert_consumed().run_restore_ops()
        assert session.run([made.twice.made, made.table.lookup(tf.constant(["a", "b"]))])[1].tolist() == [7, -1]
        assert session.run([made.twice.made, made.module.v])[1].tolist() == [3, 4] and session.run(made.twice.made) == 5
        made.extra = Twice()
        with pytest.raises(AssertionError, match="extra/.ATTRIBUTES"):
            status.assert_existing_objects_matched()


def test_first_values_do_not_replace_what_is_restored_later(tmp_path):
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        paths = [tf.train.Checkpoint(v=v).save(tmp_path / "v"), tf.train.Checkpoint(w=w).save(tmp_path / "w")]
        session.run([v.assign(7.0), w.assign(7.0)])
        both = tf.train.Checkpoint(v=v, w=w).restore(paths[0])
        tf.train.Checkpoint(w=w).restore(paths[1]).run_restore_ops()
        session.run(w.assign(42.0))
        both.initialize_or_restore()
        assert session.run([v, w]) == [1, 42]
        tf.train.Checkpoint(w=w).restore(None).initialize_or_restore()  # later than the others
        assert session.run(w) == 2


def test_first_values_from_a_checkpoint_are_those_that_others_take(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "v"))
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        tf.train.init_from_checkpoint(path, {"v": v})
        twice = tf.get_variable("twice", initializer=v.initialized_value() * 2)
        session.run(tf.global_variables_initializer())
        assert session.run(twice).tolist() == [2, 4]
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", [2], use_resource=True)
        before = len(graph.get_operations())
        tf.train.init_from_checkpoint(path, {"v": v})
        assert not any(op.type == "ReadVariableOp" for op in graph.get_operations()[before:])


def test_the_clock_of_managers_can_be_replaced(tmp_path, monkeypatch):
    management = names.find("python.training.checkpoint_management")
    monkeypatch.setattr(management, "time", types.SimpleNamespace(time=lambda: 10000.0))
    management.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), tmp_path, 2).save()
    assert list(tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_timestamps) == [10000]


OTHER = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
w, b = tf.Variable(np.float32([1, 2]), name="u"), tf.Variable(np.float32(3), name="v")
optimizer = tf.train.AdamOptimizer(0.1)
step = optimizer.minimize(tf.reduce_sum(w * b))
checkpoint = tf.train.Checkpoint(inner=tf.train.Checkpoint(w=w), b=b, optimizer=optimizer, **{"a/list.": [w]})
session = tf.Session()
with session.as_default():
    status = checkpoint.restore(sys.argv[1])
    status.assert_consumed()
    status.initialize_or_restore(session)
    session.run(step)
    print(checkpoint.save(sys.argv[2]), *session.run(w), session.run(b))
"""


@pytest.mark.skipif(not PYTHON, reason="MILLRACE_TF_PYTHON names no Python with TensorFlow")
def test_tensorflow_goes_on_from_ours_and_we_from_its(tmp_path):
    session, checkpoint, values, step = trained(True, 2)
    path = checkpoint.save(tmp_path / "ours", session)
    done = subprocess.run([PYTHON, "-c", OTHER, path, str(tmp_path / "theirs")], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-3000:]
    theirs, *numbers = done.stdout.split()
    session.run(step)
    np.testing.assert_allclose([float(n) for n in numbers], np.hstack(session.run(values)), rtol=1e-6)
    with tf.Graph().as_default():
        session, checkpoint, values, _ = trained(False, 0)
        checkpoint.restore(theirs).assert_consumed().run_restore_ops(session)
        np.testing.assert_allclose([float(n) for n in numbers], np.hstack(session.run(values)), rtol=1e-6)
        assert session.run(checkpoint.save_counter) == 2


@pytest.mark.parametrize("name, slots", [("Adam", 2), ("RMSprop", 1), ("SGD", 1), ("Adadelta", 2)])
def test_optimizers_of_keras_go_on_where_they_were(name, slots, tmp_path):
    x, y = np.random.RandomState(0).rand(16, 3).astype(np.float32), np.ones([16, 1], np.float32)

    def trained(restore):
        with tf.Graph().as_default(), tf.Session().as_default() as session:
            tf.keras.backend.set_session(session)
            model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))])
            optimizer = getattr(tf.keras.optimizers, name)(lr=0.05, **({"momentum": 0.9} if name == "SGD" else {}))
            model.compile(optimizer, "mse")
            model.train_on_batch(x, y)
            checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
            if restore:
                status = checkpoint.restore(str(tmp_path / "c-1"))
                status.assert_consumed().run_restore_ops(session)
            else:
                for _ in range(4):
                    model.train_on_batch(x, y)
                checkpoint.save(str(tmp_path / "c"), session)
                keys = [key for key, _ in tf.train.list_variables(str(tmp_path / "c-1"))]
                assert "optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE" in keys and sum(".OPTIMIZER_SLOT" in key for key in keys) == 2 * slots
            assert session.run(optimizer.iterations) == 5
            return [model.train_on_batch(x, y) for _ in range(3)], model.get_weights()

    (first, before), (second, after) = trained(False), trained(True)
    np.testing.assert_allclose(first, second, rtol=1e-5)
    for a, b in zip(before, after):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_what_is_not_to_be_kept():
    class Mine(tf.Module):
        pass

    for kind in (tf.Module, Mine, tracking.AutoTrackable):
        made, parameters = kind(), {"a": tf.Variable(1.0)}
        made.parameters = made._no_dependency(parameters)
        assert made.parameters is parameters and made._lookup_dependency("parameters") is None
    assert tracking.Trackable()._no_dependency(parameters) is parameters


def test_classes_of_ones_own(tmp_path):
    class Model(tracking.AutoTrackable):
        def __init__(self, start):
            self.weights = [tf.Variable(start), tf.Variable(start + 1)]
            self.other = tracking.NoDependency(tf.Variable(start + 2))
            self.inner = tracking.Trackable()
            tracking.add_variable(self.inner, "bias", [2], initializer=lambda shape, dtype: tf.fill(shape, start))

    with tf.Graph().as_default(), tf.Session() as session:
        model = Model(5.0)
        names = [name for name, _ in model._checkpoint_dependencies]
        assert sorted(names) == ["inner", "weights"]
        assert tracking.list_objects(model)[0] is model and len(tracking.gather_initializers(model)) == 3
        with pytest.raises(ValueError, match="already declared"):
            model.inner._track_trackable(tf.Variable(1.0), "bias")
        session.run(tf.global_variables_initializer())
        session.run(tracking.gather_initializers(model))
        path = tf.train.Checkpoint(model=model).save(str(tmp_path / "c"), session=session)
    with tf.Graph().as_default(), tf.Session() as session:
        model = Model(0.0)
        tf.train.Checkpoint(model=model).restore(path).assert_consumed().run_restore_ops(session)
        assert session.run(model.weights) == [5.0, 6.0]
        np.testing.assert_array_equal(session.run(model.inner._lookup_dependency("bias")), [5, 5])


def test_names_with_numbers_and_pictures(tmp_path):
    C = tf.contrib.checkpoint
    with tf.Graph().as_default(), tf.Session() as session:
        tracker = C.UniqueNameTracker()
        made = [
            tracker.track(tf.get_variable(name, [], initializer=tf.constant_initializer(i)), base)
            for i, (name, base) in enumerate((("ax", "x"), ("bx", "x"), ("cx", "x_1")))
        ]
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer.minimize(made[0] * 1.0, var_list=made[:1])
        root = tf.train.Checkpoint(kept=tracker, optimizer=optimizer)
        session.run(tf.global_variables_initializer())
        path = root.save(str(tmp_path / "c"), session=session)
        nodes = C.object_metadata(path).nodes
        names = {child.local_name for node in nodes for child in node.children}
        assert {"x", "x_1", "x_1_1", "kept", "optimizer", "save_counter"} == names
        picture = C.dot_graph_from_checkpoint(path)
        assert picture.count("orange") == 1 and picture.count("color=red") == 1 and picture.count("color=blue") == 4
        assert 'tooltip="Variable ax shape=[] float32"' in picture and "style=dotted label" not in picture
        saver = tf.train.Saver().save(session, str(tmp_path / "s"))
        with pytest.raises(ValueError, match="does not appear to be object-based"):
            C.object_metadata(saver)
    with pytest.raises(ValueError, match="trackable"):
        tracker.track(object(), "x")


def test_without_a_session_it_is_that_of_keras(tmp_path):
    v = tf.Variable(1.0)
    session, checkpoint = tf.keras.backend.get_session(), tf.train.Checkpoint(v=v)
    session.run(v.assign(5.0))
    path = checkpoint.save(tmp_path / "k")
    session.run(v.assign(7.0))
    checkpoint.restore(path).assert_consumed().run_restore_ops()
    assert session.run(v) == 5


def saved(tmp_path, session, *values):
    """Checkpoints of dep.var with values."""
    root = tf.train.Checkpoint(dep=tracking.AutoTrackable())
    root.dep.var = tracking.add_variable(root.dep, "var", initializer=0.0)
    paths = []
    for value in values:
        session.run(root.dep.var.assign(value))
        paths.append(root.save(tmp_path / "c", session))
    return paths


@pytest.mark.parametrize("newest", [0, 1])
def test_the_newest_restore_wins(tmp_path, newest):
    """Of two that wait for one object: in whatever order they are run."""
    with tf.Session() as session:
        paths = saved(tmp_path, session, 12.0, 13.0)
        roots = [tf.train.Checkpoint(), tf.train.Checkpoint()]
        status = {i: roots[i].restore(paths[i]) for i in (1 - newest, newest)}
        shared = tracking.AutoTrackable()
        shared.var = tracking.add_variable(shared, "var", shape=[])
        roots[0].dep = shared
        status[0].assert_consumed().run_restore_ops()
        assert session.run(shared.var) == 12
        roots[1].dep = shared
        status[1].assert_consumed().run_restore_ops()
        assert session.run(shared.var) == 12 + newest


def test_restores_that_have_met_a_variable_can_be_run_again(tmp_path):
    with tf.Session() as session:
        paths = saved(tmp_path, session, 12.0, 13.0)
        root = tf.train.Checkpoint(dep=tf.train.Checkpoint(var=tf.Variable(0.0)))
        first, second = (root.restore(path) for path in paths)
        for status, value in ((first, 12), (second, 13), (first, 12)):
            status.run_restore_ops()
            assert session.run(root.dep.var) == value


def test_objects_joined_and_split(tmp_path):
    def named(root, **variables):
        for name, (owner, value) in variables.items():
            tracking.add_variable(getattr(root, owner), name, initializer=value)

    with tf.Session() as session:
        root = tf.train.Checkpoint(one=tracking.AutoTrackable(), two=tracking.AutoTrackable())
        named(root, a=("one", 32.0), b=("two", 64.0))
        root.one.same = root.two.same = tracking.AutoTrackable()
        session.run(tracking.gather_initializers(root))
        path = root.save(tmp_path / "c", session)
        joined = tf.train.Checkpoint(one=tracking.AutoTrackable())
        joined.two, joined.one.same = joined.one, tracking.AutoTrackable()
        named(joined, a=("one", 0.0), b=("two", 0.0))
        joined.restore(path).assert_consumed().run_restore_ops()
        assert session.run([joined.one._lookup_dependency("a"), joined.one._lookup_dependency("b")]) == [32, 64]
        split = tf.train.Checkpoint(one=tracking.AutoTrackable(), two=tracking.AutoTrackable())
        named(split, a=("one", 0.0), b=("two", 0.0))
        split.one.same, split.two.same = tracking.AutoTrackable(), tracking.AutoTrackable()
        with pytest.raises(AssertionError, match="two/same"):
            split.restore(path).assert_existing_objects_matched()


def test_cells_keep_their_variables(tmp_path):
    cells = tf.nn.rnn_cell
    made = dict(
        basic=cells.BasicRNNCell(2),
        lstm=cells.LSTMCell(2, use_peepholes=True, num_proj=3),
        dropped=cells.DropoutWrapper(cells.GRUCell(2), 0.5),
        several=cells.MultiRNNCell([cells.ResidualWrapper(cells.BasicRNNCell(1)), cells.BasicLSTMCell(2)]),
    )
    for name, cell in made.items():
        with tf.variable_scope(name):
            cell(tf.ones([1, 1]), cell.zero_state(1, tf.float32))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        bias = made["basic"]._bias
        session.run(bias.assign([40.0, 41.0]))
        checkpoint = tf.train.Checkpoint(**made)
        path = checkpoint.save(str(tmp_path / "c"), session)
        session.run(bias.initializer)
        checkpoint.restore(path).assert_consumed().run_restore_ops(session)
        assert session.run(bias).tolist() == [40, 41]
    keys = {k.split("/.ATTR")[0] for k, _ in tf.train.list_variables(path) if not k.startswith(("_CHECKPOINTABLE", "save_counter"))}
    assert keys == {
        *("basic/kernel", "basic/bias", "lstm/kernel", "lstm/bias", "lstm/w_f_diag", "lstm/w_i_diag", "lstm/w_o_diag", "lstm/projection.Skernel"),
        *("dropped/cell/%s" % k for k in ("gates.Skernel", "gates.Sbias", "candidate.Skernel", "candidate.Sbias")),
        *("several/cell-0/cell/kernel", "several/cell-0/cell/bias", "several/cell-1/kernel", "several/cell-1/bias"),
    }
    with pytest.raises(AttributeError, match="has no variable 'kernel'"):
        cells.BasicRNNCell(2)._kernel


def test_templates_are_kept_with_those_that_they_call(tmp_path):
    def inner():
        return tf.get_variable("v", [1], initializer=tf.zeros_initializer())

    def outer():
        first, second = tf.make_template("i1", inner), tf.make_template("i2", inner)
        own = tf.get_variable("own", [2])
        return (first, second), (first(), second(), second()), own

    with tf.Graph().as_default(), tf.Session() as session, tf.variable_scope("ignored"):
        template = tf.make_template("s1", outer)
        root = tf.train.Checkpoint(template=template)
        (first, second), _, own = template()
        assert [d.name for d in template._checkpoint_dependencies] == ["own", "i1", "i2"] and template._lookup_dependency("own") is own
        session.run([first.variables[0].assign([20.0]), second.variables[0].assign([25.0]), own.assign([1.0, 2.0])])
        path = root.save(str(tmp_path / "c"), session)
    assert sorted(n for n, _ in tf.train.list_variables(path) if n.startswith("template")) == [
        "template/i1/v/.ATTRIBUTES/VARIABLE_VALUE",
        "template/i2/v/.ATTRIBUTES/VARIABLE_VALUE",
        "template/own/.ATTRIBUTES/VARIABLE_VALUE",
    ]
    with tf.Graph().as_default(), tf.Session() as session:
        template = tf.make_template("s2", outer)
        status = tf.train.Checkpoint(template=template).restore(path)
        _, parts, own = template()  # the variables are made after the restore
        status.assert_consumed().run_restore_ops(session)
        assert [v.tolist() for v in session.run([*parts, own])] == [[20], [25], [25], [1, 2]]


def test_templates_keep_what_their_calls_make(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        template = tf.make_template("s", lambda: tf.get_variable("v", [1], initializer=tf.zeros_initializer()))
        v = template()
        optimizer = tf.train.AdamOptimizer()
        optimizer.minimize(v * v)  # whose slots lie in the template's scope
        assert template() is v and [d.name for d in template._checkpoint_dependencies] == ["v"] and len(template.variables) == 3
        session.run(tf.global_variables_initializer())
        path = tf.train.Checkpoint(template=template, optimizer=optimizer).save(str(tmp_path / "c"), session)
    assert {n.rpartition("/.ATT")[0] for n, _ in tf.train.list_variables(path) if n.startswith("template")} == {
        "template/v",
        "template/v/.OPTIMIZER_SLOT/optimizer/m",
        "template/v/.OPTIMIZER_SLOT/optimizer/v",
    }


def test_templates_of_functions_of_the_graph():
    from millrace.ops import template

    def scoped(scope):
        with tf.variable_scope(scope):
            return tf.get_variable("w", [], initializer=tf.ones_initializer()) + 1.0

    with tf.Graph().as_default() as graph, tf.Session() as session:
        made = template.make_template_internal("s1", scoped, create_graph_function_=True, scope="test")
        both = made() + made()
        assert [v.name for v in made.variables] == ["s1/test/w:0"] and len(graph.get_collection("variables")) == 1
        session.run(tf.global_variables_initializer())
        assert session.run(both) == 4


def test_arrays_of_numpy(tmp_path):
    State = tf.contrib.checkpoint.NumpyState
    with tf.Graph().as_default() as graph, tf.Session():
        arrays = State()
        checkpoint = tf.train.Checkpoint(arrays=arrays)
        arrays.x, arrays.n = np.zeros([2, 3]), np.int64(3)
        path = checkpoint.save(str(tmp_path / "c"))
        checkpoint.restore(path)
        graph.finalize()
        arrays.x[1, 1] = 4.0
        arrays.n = np.int64(5)
        later = checkpoint.save(str(tmp_path / "c"))
        checkpoint.restore(path)
        assert arrays.x.tolist() == [[0, 0, 0]] * 2 and arrays.n == 3
        with pytest.raises(NotImplementedError, match="not a NumPy array"):
            arrays.v = 1.0
        with pytest.raises(AttributeError, match="no array 'y'"):
            arrays.y
    with tf.Graph().as_default():
        other = tf.train.Checkpoint(arrays=State())
        other.restore(later).assert_consumed()  # makes the arrays
        assert other.arrays.x.tolist() == [[0, 0, 0], [0, 4, 0]] and other.arrays.n == 5 and other.arrays.x.dtype == np.float64
