# SPDX-License-Identifier: Apache-2.0
"""train_and_evaluate in one process, and what TF_CONFIG makes of a RunConfig."""

import json
import os

import numpy as np
import pytest

import millrace as tf
from millrace.estimator import run_config

E = tf.estimator


def counting(tmp_path, **config):
    """An estimator whose variable is the sum of what it has read, and what it evaluated."""

    def model_fn(features, labels, mode):
        total = tf.get_variable("total", [], tf.int64, initializer=tf.zeros_initializer())
        if mode == E.ModeKeys.EVAL:
            return E.EstimatorSpec(mode, loss=tf.to_float(features), eval_metric_ops={"total": tf.metrics.mean(total)})
        with tf.control_dependencies([total.assign_add(features)]):
            step = tf.train.get_global_step().assign_add(1)
        return E.EstimatorSpec(mode, loss=tf.to_float(features), train_op=step)

    return E.Estimator(model_fn, str(tmp_path), E.RunConfig(**config))


class Seen(E.Exporter):
    name = "seen"

    def __init__(self):
        self.steps = []

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        self.steps.append((eval_result["global_step"], eval_result["total"], is_the_final_export))
        return len(self.steps)


def test_data_goes_on_while_checkpoints_are_evaluated(tmp_path):
    """Input is made once, not anew after each evaluation; each checkpoint but the first is evaluated, the last in any case."""
    made, begun, seen = counting(tmp_path, save_checkpoints_steps=2), [], Seen()

    def train():
        begun.append(1)
        return tf.data.Dataset.range(1, 100)

    spec = E.EvalSpec(lambda: tf.data.Dataset.range(1), steps=1, throttle_secs=0, exporters=seen)
    results, exported = E.train_and_evaluate(made, E.TrainSpec(train, max_steps=7), spec)
    assert len(begun) == 1 and results["global_step"] == 7 and results["total"] == 28 and exported == [4]
    assert seen.steps == [(2, 3, False), (4, 10, False), (6, 21, False), (7, 28, True)]


def test_evaluations_are_throttled_but_for_the_last(tmp_path):
    made, seen = counting(tmp_path, save_checkpoints_steps=2), Seen()
    spec = E.EvalSpec(lambda: tf.data.Dataset.range(1), steps=1, throttle_secs=1000, exporters=seen)
    E.train_and_evaluate(made, E.TrainSpec(lambda: tf.data.Dataset.range(1, 8)), spec)
    assert [step for step, _, _ in seen.steps] == [2, 7]


def test_nothing_left_to_train(tmp_path):
    made = counting(tmp_path)
    spec = E.EvalSpec(lambda: tf.data.Dataset.range(1), steps=1)
    E.train_and_evaluate(made, E.TrainSpec(lambda: tf.data.Dataset.range(5), max_steps=2), spec)
    assert E.train_and_evaluate(made, E.TrainSpec(lambda: tf.data.Dataset.range(5), max_steps=2), spec) == (None, None)


def configured(monkeypatch, told, **config):
    monkeypatch.setitem(os.environ, "TF_CONFIG", json.dumps(told))
    return E.RunConfig(**config)


CLUSTER = {"chief": ["a:1"], "ps": ["b:1", "b:2"], "worker": ["c:1", "c:2", "c:3"]}


def test_tasks_of_clusters(monkeypatch):
    made = configured(monkeypatch, {"cluster": CLUSTER, "task": {"type": "worker", "index": 1}})
    assert made.master == "grpc://c:2" and made.global_id_in_cluster == 2 and made.num_worker_replicas == 4
    assert list(made.session_config.device_filters) == ["/job:ps", "/job:worker/task:1"] and made.session_config.allow_soft_placement
    rewriter = made.session_config.graph_options.rewrite_options
    assert rewriter.meta_optimizer_iterations == 1 == run_config.get_default_session_config().graph_options.rewrite_options.meta_optimizer_iterations
    made = configured(monkeypatch, {"cluster": CLUSTER, "task": {"type": "ps", "index": 1}})
    assert made.global_id_in_cluster == 5 and "/job:chief" in made.session_config.device_filters
    own = tf.ConfigProto(log_device_placement=True)
    assert configured(monkeypatch, {"cluster": CLUSTER, "task": {"type": "chief", "index": 0}}, session_config=own).session_config is own
    with pytest.raises(ValueError, match="3 is not a valid task_id for task_type worker"):
        configured(monkeypatch, {"cluster": CLUSTER, "task": {"type": "worker", "index": 3}})


def test_a_cluster_of_one_needs_no_server(monkeypatch, tmp_path):
    monkeypatch.setitem(os.environ, "TF_CONFIG", json.dumps({"cluster": {"chief": ["localhost:1"]}, "task": {"type": "chief", "index": 0}}))
    made = counting(tmp_path)
    assert made.config.master == "" and made.config.cluster_spec
    E.train_and_evaluate(made, E.TrainSpec(lambda: tf.data.Dataset.range(1, 4)), E.EvalSpec(lambda: tf.data.Dataset.range(1)))
    assert np.equal(made.get_variable_value("total"), 6)


def test_what_else_the_environment_says(monkeypatch, tmp_path):
    made = configured(monkeypatch, {"session_master": "grpc://x:1", "eval_session_master": "grpc://y:1", "model_dir": str(tmp_path)})
    assert (made.master, made.evaluation_master, made.model_dir) == ("grpc://x:1", "grpc://y:1", str(tmp_path))
    with pytest.raises(ValueError, match="must have the same value as the model_dir in TF_CONFIG"):
        configured(monkeypatch, {"model_dir": "a"}, model_dir="b")
    with pytest.raises(ValueError, match="exactly one argument"):
        configured(monkeypatch, {}, device_fn=lambda a, b: "")
    assert configured(monkeypatch, {}, protocol="grpc").protocol == "grpc"


def test_a_worker_stops_at_a_checkpoint_of_any_name(tmp_path, monkeypatch):
    """The step is read from the checkpoint: its name need not say it."""
    monkeypatch.setitem(os.environ, "TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 0}}))
    worker = counting(tmp_path)
    hook = E.experimental.make_stop_at_checkpoint_step_hook(worker, 3, wait_after_file_check_secs=0)
    with tf.Graph().as_default():
        step = tf.train.create_global_step()
        saver, more = tf.train.Saver(), step.assign_add(1)
        with tf.train.SingularMonitoredSession([hook]) as session:
            made = 0
            while not session.should_stop():
                session.run(more)
                saver.save(session.raw_session(), str(tmp_path / "model"))
                made += 1
            assert made == 4  # the step after the checkpoint of step 3
    with pytest.raises(TypeError, match="must have type `tf.estimator.Estimator`"):
        E.experimental.make_early_stopping_hook(object(), lambda: True)
