# SPDX-License-Identifier: Apache-2.0
"""Variables that begin with a checkpoint's values, hooks of 1.4, and sessions that are made anew."""

import os

import numpy as np
import pytest

import millrace as tf
from millrace.train import safetensors
from millrace.train.evaluation import _evaluate_once, _StopAfterNEvalsHook
from millrace.train.wrapped_sessions import _HookedSession


def test_variables_begin_with_a_checkpoint(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.variable_scope("a"):
            tf.get_variable("w", initializer=[1.0, 2.0])
        tf.get_variable("b", initializer=3.0)
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.variable_scope("x/y"):
            w = tf.get_variable("w", [2])
        b = tf.get_variable("c", [])
        tf.train.init_from_checkpoint(path, {"a/": "x/y/", "b": b})
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(w), [1.0, 2.0])
        assert sess.run(b) == 3.0
        for wrong, said in (({"none": "c"}, "not found"), ({"a/w": "c"}, "doesn't match"), ({"a/": "x"}, "scope only"), ({"b": "d"}, "not in the graph")):
            with pytest.raises(ValueError, match=said):
                tf.train.init_from_checkpoint(str(tmp_path), wrong)


class _Told(tf.train.CheckpointSaverListener):
    def __init__(self):
        self.told = []

    def after_save(self, session, global_step_value):
        self.told.append(global_step_value)

    def end(self, session, global_step_value):
        self.told.append("end")


def test_a_listener_is_told_of_the_end(tmp_path):
    with tf.Graph().as_default():
        op = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        listener = _Told()
        hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2, listeners=[listener])
        with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
            for _ in range(4):
                sess.run(op)
    assert listener.told == [0, 2, 4, "end"] and os.path.exists(str(tmp_path / "graph.pbtxt"))


class _Preempted(tf.train.SessionRunHook):
    def __init__(self):
        self.sessions, self.runs = 0, 0

    def after_create_session(self, session, coord):
        self.sessions += 1

    def before_run(self, run_context):
        self.runs += 1
        if self.runs == 2:
            raise tf.errors.AbortedError(None, None, "gone")


def test_a_session_is_made_anew_after_a_preemption():
    with tf.Graph().as_default():
        v, hook = tf.Variable(5), _Preempted()
        with tf.train.MonitoredSession(hooks=[hook]) as sess:
            assert [sess.run(v) for _ in range(3)] == [5, 5, 5]
        assert (hook.sessions, hook.runs) == (2, 4)


class _Feeds(tf.train.SessionRunHook):
    def __init__(self, feed):
        self.feed = feed

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(None, feed_dict=self.feed)


def test_a_tensor_is_fed_once():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32)
        assert _HookedSession(sess, [_Feeds({x: 2.0})]).run(x) == 2.0
        with pytest.raises(RuntimeError, match="two hooks"):
            _HookedSession(sess, [_Feeds({x: 2.0}), _Feeds({x: 3.0})]).run(x)
        with pytest.raises(RuntimeError, match="and user"):
            _HookedSession(sess, [_Feeds({x: 2.0})]).run(x, {x: 1.0})


def test_steps_of_an_evaluation_are_counted(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=2.0)
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "model"))
    with tf.Graph().as_default():
        v = tf.get_variable("v", [])
        count = tf.get_variable("count", initializer=0.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        values = _evaluate_once(path, eval_ops=tf.assign_add(count, v), final_ops={"sum": count}, hooks=[_StopAfterNEvalsHook(3)])
        assert values["sum"] == 6.0


def test_variables_are_placed_in_turn():
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:1"], "worker": {0: "c:1", 2: "d:1"}})
    assert cluster.num_tasks("worker") == 2 and cluster.job_tasks("worker") == ["c:1", None, "d:1"]
    assert tf.train.ClusterSpec(cluster.as_cluster_def()) == cluster != tf.train.ClusterSpec({})
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(cluster=cluster)):
        first, second = tf.Variable(1.0), tf.Variable(2.0)
        assert [first.device, second.device, (first + second).device] == ["/job:ps/task:0", "/job:ps/task:1", "/job:worker"]


def test_a_meta_graph_takes_what_it_is_given():
    from millrace.train import meta_graph

    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="c")
        made = meta_graph.create_meta_graph_def(graph_def=graph.as_graph_def(add_shapes=True))
        assert made.graph_def == graph.as_graph_def(add_shapes=True)
        with pytest.raises(TypeError, match="must be of type Graph"):
            meta_graph.create_meta_graph_def(graph=1)


def test_a_supervisor_leaves_the_writer_open(tmp_path):
    with tf.Graph().as_default():
        tf.Variable(1.0)
        supervisor = tf.train.Supervisor(logdir=str(tmp_path))
        with supervisor.managed_session(close_summary_writer=False):
            pass
        supervisor.summary_writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="late", simple_value=2.0)]), 1)
        supervisor.summary_writer.close()
    events = [e for f in sorted(tmp_path.glob("events*")) for e in tf.train.summary_iterator(str(f))]
    assert any(v.tag == "late" for e in events for v in e.summary.value)


def test_relative_paths_of_a_state_are_from_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("run")
    tf.train.update_checkpoint_state("run", "run/m-2", ["run/m-1", "run/m-2"])
    state = tf.train.get_checkpoint_state("run")
    assert state.model_checkpoint_path == os.path.join("run", "m-2")
    assert list(state.all_model_checkpoint_paths) == [os.path.join("run", "m-1"), os.path.join("run", "m-2")]


def test_a_saver_restores_safetensors(tmp_path):
    file = str(tmp_path / "w.safetensors")
    whole = np.arange(12, dtype=np.float32).reshape(6, 2)
    safetensors.save({"cut": whole, "scope/half": np.array([1.5, -2], np.float16), "other": np.zeros(3)}, file)
    with tf.Graph().as_default(), tf.Session() as session:
        cut = tf.get_variable("cut", [6, 2], partitioner=tf.fixed_size_partitioner(3))
        half = tf.get_variable("mine", [2], tf.float16, use_resource=True)
        saver = tf.train.Saver({"cut": cut, "scope/half": half})
        assert not saver.mismatch(file) and saver.mismatch(file).unexpected == ["other"]
        saver.restore(session, file)
        assert (session.run(tf.convert_to_tensor(cut)) == whole).all() and session.run(half).tolist() == [1.5, -2]
        with pytest.raises(tf.errors.NotFoundError, match=r"mine, did you mean|not in the checkpoint \(1\)"):
            tf.train.Saver({"scope/halve": half}).restore(session, file)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"other: wanted \[2\], found \[3\]"):
            tf.train.Saver({"other": half}).restore(session, file)


def test_variables_that_begin_as_a_checkpoint_says_are_not_read(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.Variable([1.0, 2.0], name="a").initializer)
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default() as graph, tf.Session() as session:
        v = tf.get_variable("v", [2], use_resource=True)
        with tf.name_scope("begin"):
            tf.train.init_from_checkpoint(path, {"a": v})
        assert {op.type for op in graph.get_operations() if op.name.startswith("begin/")} == {"Const", "RestoreV2", "AssignVariableOp"}
        session.run(v.initializer)
        assert session.run(v).tolist() == [1, 2]


def test_what_begins_by_a_checkpoint_reads_it_on_the_cpu_of_its_task(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.device("/job:ps"):
        v = tf.get_variable("v", [2])
        tf.train.init_from_checkpoint(str(tmp_path), {"v": "v"})
        assert v.initializer.op.inputs[1].device == "/job:ps/device:CPU:0"
