# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.graph_actions and configurations; parts of tf.contrib.linear_optimizer."""

import json

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import learn
from millrace.contrib.learn import graph_actions
from millrace.contrib.linear_optimizer import ShardedMutableDenseHashTable, SparseFeatureColumn


def _counting():
    """A graph whose loss is 10 less the step."""
    step = tf.train.get_or_create_global_step()
    loss = tf.subtract(10.0, tf.cast(step, tf.float32), name="loss")
    with tf.control_dependencies([loss]):
        return tf.assign_add(step, 1), loss


def test_graphs_are_trained_and_go_on_where_they_were(tmp_path):
    for options, losses, count in (({"steps": 3}, 8.0, 3), ({"steps": 2}, 6.0, 2), ({"max_steps": 6}, 5.0, 1)):
        with tf.Graph().as_default() as graph:
            train_op, loss = _counting()
            seen = []

            class Sees(learn.monitors.EveryN):
                def every_n_step_end(self, step, outputs, seen=seen):
                    seen.append(step)
                    return False

            assert graph_actions.train(graph, str(tmp_path), train_op, loss, monitors=[Sees(1)], **options) == losses
            assert len(seen) == count
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-6")
    with tf.Graph().as_default() as graph, pytest.raises(ValueError, match="global_step"):
        graph_actions.train(graph, str(tmp_path), tf.no_op(), tf.constant(1.0))


def test_a_loss_that_is_no_number_ends_a_training(tmp_path):
    with tf.Graph().as_default() as graph:
        train_op, loss = _counting()
        with pytest.raises(learn.NanLossDuringTrainingError):
            graph_actions.train(graph, str(tmp_path), train_op, tf.log(-loss), steps=2)


def test_graphs_are_evaluated_and_run(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.train.get_or_create_global_step()
        x = tf.Variable(2.0, name="x")
        total = tf.Variable(0.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        feeds = iter([{x: 3.0}, {x: 4.0}])
        update = tf.assign_add(total, x)
        results = graph_actions.evaluate(graph, str(tmp_path), None, {"total": total.read_value()}, update, feed_fn=lambda: next(feeds), max_steps=5)
        assert results == ({"total": 7.0}, 0)
        assert graph_actions.infer(None, {"y": x * 5}) == {"y": 10.0} and graph_actions.run_n({"y": x}, {x: 1.0}, n=2) == [{"y": 1.0}] * 2


def test_configurations_tell_themselves_apart(monkeypatch, tmp_path):
    folder = str(tmp_path)
    config = learn.RunConfig(model_dir=folder, tf_random_seed=1, save_checkpoints_steps=3, save_checkpoints_secs=4)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (3, 4)
    other = learn.RunConfig(model_dir=folder, tf_random_seed=2)
    assert config.uid() == other.uid() and config.uid([]) != other.uid([]) and config.uid() != other.replace(model_dir="/b").uid()
    from millrace.contrib.learn import run_config

    assert config.uid([*run_config._DEFAULT_UID_WHITE_LIST]) == config.uid()  # which programs take for one of their own
    assert "tf_random_seed" in run_config._DEFAULT_UID_WHITE_LIST and len(run_config._DEFAULT_UID_WHITE_LIST) == 8

    def experiment_fn(run_config, hparams):
        return learn.Experiment(learn.LinearClassifier([], config=learn.RunConfig(model_dir=folder + "/b")), None, None)

    with pytest.raises(RuntimeError, match="is expected to be used by the `Estimator`"):
        learn.learn_runner.run(experiment_fn, run_config=config)
    cluster = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}
    for task, message in (({"type": "worker", "index": 2}, "2 is not a valid task_id"), ({"type": "other"}, "other is not a valid task_type")):
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
        with pytest.raises(ValueError, match=message):
            learn.RunConfig()
    assert tf.train.ClusterSpec(cluster) == {"ps": {0: "a:1"}, "worker": {0: "b:1", 1: "c:1"}}


def test_tables_in_parts_answer_as_one():
    with tf.Graph().as_default(), tf.Session() as session:
        table = ShardedMutableDenseHashTable(tf.int64, tf.float32, [-1.0], [-1, -1], num_shards=3)
        keys = tf.constant([[1, 0], [2, 0], [5, 7]], tf.int64)
        session.run(table.insert(keys, tf.constant([[1.0], [2.0], [3.0]])))
        asked = table.lookup(tf.constant([[5, 7], [1, 0], [5, 8]], tf.int64))
        assert asked.get_shape() == [3, 1] and session.run(asked).tolist() == [[3], [1], [-1]] and session.run(table.size()) == 3
        kept = [{tuple(row) for row in part} - {(-1, -1)} for part in session.run(table.export_sharded()[0])]
        assert kept == [set(), {(1, 0)}, {(2, 0), (5, 7)}]
        with pytest.raises(ValueError, match="must be fully defined"):
            table.lookup(tf.placeholder(tf.int64, [None, 2]))
        column = SparseFeatureColumn([0, 1], np.array([3, 4]), None)
        assert column.feature_values is None and session.run(column.feature_indices).tolist() == [3, 4]


def test_inputs_with_queue_runners_are_predicted_to_their_end(tmp_path):
    def input_fn(epochs=None):
        queue = tf.FIFOQueue(4, tf.int32)
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(0)]))
        return {"x": tf.train.limit_epochs(tf.constant([[1.0], [2.0]]), epochs)}, tf.constant([[1.0], [2.0]])

    model = learn.LinearRegressor([tf.contrib.layers.real_valued_column("x")], model_dir=str(tmp_path))
    model.fit(input_fn=input_fn, steps=1)
    assert len(list(model.predict(input_fn=lambda: input_fn(3)))) == 6


def test_a_column_whose_feature_is_not_there_is_a_key_error():
    with tf.Graph().as_default(), pytest.raises(KeyError, match="Feature x is not in features"):
        tf.contrib.layers.input_from_feature_columns({"y": tf.constant([[1.0]])}, [tf.contrib.layers.real_valued_column("x")])


def test_variables_of_estimators_are_placed_on_their_tasks(monkeypatch):
    from millrace.contrib.learn.estimators import _get_replica_device_setter

    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}))
    with tf.Graph().as_default(), tf.device(_get_replica_device_setter(learn.RunConfig())):
        assert tf.Variable(1.0).device == "/job:ps/task:0" and tf.constant(1.0).device == "/job:worker/task:0"


def test_batches_of_records_with_their_keys(tmp_path):
    for name, words in (("a", ["p", "q", "r"]), ("b", ["s"])):
        (tmp_path / name).write_text("\n".join(words) + "\n")
    learn, pattern = tf.contrib.learn, str(tmp_path / "*")
    with tf.Graph().as_default(), tf.Session() as session:
        keys, records = learn.read_keyed_batch_examples(
            pattern, 3, tf.TextLineReader, False, 1, 10, parse_fn=lambda word: {"w": word, "two": word + word}, name="all"
        )
        assert keys.name == "all:0" and sorted(records) == ["two", "w"] and keys.shape.as_list() == [None]
        shared, _ = learn.read_keyed_batch_examples_shared_queue(pattern, 2, tf.TextLineReader, False, 2, 10)
        shuffled = learn.read_batch_examples(pattern, 2, tf.TextLineReader, num_epochs=1, queue_capacity=50, name="mixed")
        assert shuffled.op.inputs[0].op.get_attr("min_after_dequeue") == 44
        session.run([tf.local_variables_initializer(), tf.global_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        got, made = session.run([keys, records])
        assert [key.decode().rpartition("/")[2] for key in got] == ["a:1", "a:2", "a:3"]
        assert made["two"].tolist() == [b"pp", b"qq", b"rr"] and session.run(records["w"]).tolist() == [b"s"]
        taken = [key.decode().rpartition("/")[2] for _ in range(4) for key in session.run(shared)]
        assert sorted(taken) == sorted(["a:1", "a:2", "a:3", "b:1"] * 2)
        assert sorted(word.decode() for _ in range(2) for word in session.run(shuffled)) == ["p", "q", "r", "s"]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(shared)
        coordinator.request_stop()
        coordinator.join(threads)
        for wrong, match in (
            (dict(batch_size=10), "Invalid batch_size 10"),
            (dict(read_batch_size=0), "Invalid read_batch_size 0"),
            (dict(num_epochs=0), "Invalid num_epochs"),
        ):
            with pytest.raises(ValueError, match=match):
                learn.read_batch_examples(pattern, **{"batch_size": 2, "reader": tf.TextLineReader, "queue_capacity": 10, **wrong})
