# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.training's loops: sessions that read from queues, train, save, and are evaluated."""

import glob

import pytest

import millrace as tf
from millrace.train.global_step import _increment_global_step

training = tf.contrib.training


def model(epochs=None):
    number = tf.train.range_input_producer(32, num_epochs=epochs, shuffle=epochs is None, seed=1).dequeue()
    x = tf.train.batch([tf.cast(number, tf.float32) / 32.0], 8)
    factor = tf.get_variable("factor", [], initializer=tf.zeros_initializer())
    return factor, tf.reduce_mean(tf.square(factor * x - 3.0 * x))


def test_training_and_evaluations(tmp_path):
    folder = str(tmp_path)
    _, loss = model()
    tf.train.create_global_step()
    train_op = training.create_train_op(loss, tf.train.GradientDescentOptimizer(0.5), transform_grads_fn=training.clip_gradient_norms_fn(10.0))
    last = training.train(train_op, folder, hooks=[tf.train.StopAtStepHook(200)])
    assert last < 1e-3
    tf.reset_default_graph()
    factor, loss = model(epochs=2)
    tf.train.create_global_step()
    mean, update = tf.metrics.mean(loss)
    tf.summary.scalar("factor", factor)
    hooks = [training.StopAfterNEvalsHook(3), training.SummaryAtEndHook(folder + "/eval")]
    value = training.evaluate_once(tf.train.latest_checkpoint(folder), eval_ops=update, final_ops={"mean": mean, "factor": factor}, hooks=hooks)
    assert value["mean"] < 1e-3 and abs(value["factor"] - 3) < 0.05
    tf.reset_default_graph()
    factor, loss = model(epochs=1)
    tf.train.create_global_step()
    count = tf.get_local_variable("count", [], initializer=tf.zeros_initializer())
    found = training.evaluate_repeatedly(folder, eval_ops=[loss, count.assign_add(1.0)], final_ops=factor, max_number_of_evaluations=1)
    assert abs(found - 3) < 0.05
    with pytest.raises(ValueError, match="positive"):
        training.evaluate_repeatedly(folder, max_number_of_evaluations=0)
    with pytest.raises(ValueError, match="logdir"):
        training.train(None, None)


def test_summaries_of_gradients():
    x = tf.get_variable("x", [3])
    pairs = tf.train.GradientDescentOptimizer(1.0).compute_gradients(tf.reduce_sum(x * x))
    made = training.add_gradients_summaries(pairs)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tags = [tf.Summary.FromString(s).value[0].tag for s in session.run(made)]
    assert tags == ["x_gradient", "x_gradient_norm"]


def test_a_listener_may_stop_a_training(tmp_path):
    class Enough(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            return global_step_value >= 6

    train = tf.assign_add(tf.train.create_global_step(), 1)
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=3, listeners=[Enough()])
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        runs = 0
        while not session.should_stop():
            session.run(train)
            runs += 1
    assert runs == 6  # saves come before the first step and after steps 3 and 6


def test_checkpoints_of_runs_that_train_several_steps(tmp_path):
    train = tf.assign_add(tf.train.create_global_step(), 5)
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=6, steps_per_run=5)
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        saved = []
        for _ in range(4):
            session.run(train)
            saved.append(tf.train.load_variable(str(tmp_path), "global_step"))
    assert saved == [0, 10, 10, 20]


def test_tensors_are_not_trained():
    with tf.Graph().as_default():
        held, optimizer = tf.constant([1.0, 2.0]), tf.train.GradientDescentOptimizer(3.0)
        with pytest.raises(NotImplementedError, match="Trying to update a Tensor"):
            optimizer.apply_gradients(optimizer.compute_gradients(tf.reduce_sum(held * held), [held]))


def test_a_training_begins_with_a_checkpoint(tmp_path):
    train = tf.assign_add(tf.train.create_global_step(), 1)
    with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), save_checkpoint_steps=2) as session:
        assert tf.train.load_variable(str(tmp_path), "global_step") == 0
        for expected in (0, 2, 2, 4):
            session.run(train)
            assert tf.train.load_variable(str(tmp_path), "global_step") == expected


def test_summaries_without_checkpoints(tmp_path):
    with tf.Graph().as_default():
        train = tf.assign_add(tf.train.create_global_step(), 1)
        tf.summary.scalar("step", train)
        with tf.train.MonitoredTrainingSession(summary_dir=str(tmp_path), save_summaries_steps=2, log_step_count_steps=2) as session:
            for _ in range(5):
                session.run(train)
    assert not list(tmp_path.glob("*ckpt*"))
    events = [e for p in tmp_path.glob("events*") for e in tf.train.summary_iterator(str(p))]
    assert [e.step for e in events if [v.tag for v in e.summary.value] == ["step"]] == [1, 3, 5]
    assert any(v.tag == "global_step/sec" for e in events for v in e.summary.value)


def test_times_of_steps_but_the_first(tmp_path):
    train = tf.assign_add(tf.train.create_global_step(), 1)
    with tf.train.SingularMonitoredSession(hooks=[tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))]) as session:
        for _ in range(5):
            session.run(train)
    assert sorted(p.name for p in tmp_path.glob("timeline-*")) == ["timeline-2.json", "timeline-4.json"]
    tf.summary.FileWriterCache.get(str(tmp_path)).flush()
    events = [e.tagged_run_metadata.tag for p in tmp_path.glob("events*") for e in tf.train.summary_iterator(str(p))]
    assert [tag for tag in events if tag] == ["step_2", "step_4"]


def test_a_global_step_that_stands_is_told(caplog):
    step = tf.train.create_global_step()
    with tf.train.SingularMonitoredSession(hooks=[tf.train.StepCounterHook()]) as session:
        for _ in range(20):
            session.run(step)
        assert "has not been increased" not in caplog.text
        session.run(step)
    assert "The global step (tf.train.get_global_step) is 0 and has not been increased for 20 runs" in caplog.text


def test_last_operations_that_need_more_input_are_told(tmp_path, caplog):
    value = tf.data.Dataset.range(1).make_one_shot_iterator().get_next()
    hook = tf.train.FinalOpsHook(value)
    with tf.Session() as session, pytest.raises(tf.errors.OutOfRangeError):
        session.run(value)
        hook.end(session)
    assert "have a dependency back to some input source" in caplog.text


def test_hooks_find_the_last_checkpoint_at_the_end(tmp_path):
    class Last(tf.train.SessionRunHook):
        found = None

        def end(self, session):
            self.found = tf.train.latest_checkpoint(str(tmp_path))

    last = Last()
    with tf.Graph().as_default():
        step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), save_checkpoint_steps=100, hooks=[last]) as session:
            for _ in range(3):
                session.run(step)
    assert last.found == str(tmp_path / "model.ckpt-3")


def test_slim_trains_until_its_input_ends_and_writes_traces(tmp_path):
    from millrace.contrib import slim

    x = tf.train.limit_epochs(tf.constant([[1.0, 2.0]]), 5)
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    train = slim.learning.create_train_op(tf.reduce_sum(tf.square(tf.matmul(x, w) - 1.0)), tf.train.GradientDescentOptimizer(0.05))
    saver = tf.train.Saver()
    loss = slim.learning.train(train, str(tmp_path), trace_every_n_steps=2)
    assert loss < 1 and tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-5")
    assert {path.name for path in tmp_path.glob("tf_trace-*.json")} == {"tf_trace-1.json", "tf_trace-3.json", "tf_trace-5.json"}
    with pytest.raises(ValueError, match="trace_every_n_steps because logdir=None"):
        slim.learning.train(train, None, trace_every_n_steps=2)
    with pytest.raises(ValueError, match="saver because logdir=None"):
        slim.learning.train(train, None, saver=saver)


def test_slim_multiplies_gradients_that_are_there():
    from millrace.contrib import slim

    w = tf.get_variable("w", [2])
    for pairs, factors, message in (((), {w: 2.0}, "must be a list"), ([], {}, "is empty"), ([], 3, "must be a dict"), ([(None, w)], {w: 2.0}, "None")):
        with pytest.raises(ValueError, match=message):
            slim.learning.multiply_gradients(pairs, factors)


def test_slim_evaluates_with_hooks_until_the_input_ends(tmp_path):
    from millrace.contrib import slim

    x = tf.train.limit_epochs(tf.constant([1.0, 3.0]), 3)
    mean, update = tf.metrics.mean(x)
    step = tf.train.get_or_create_global_step()
    with tf.Session() as session:
        session.run(step.initializer)
        tf.train.Saver([step]).save(session, str(tmp_path / "model"))
    runs = []

    class Counting(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            runs.append(1)

    value = slim.evaluation.evaluation_loop(
        "", str(tmp_path), None, num_evals=100, eval_op=update, final_op=mean, eval_interval_secs=0, max_number_of_evaluations=1, hooks=[Counting()]
    )
    assert value == 2.0 and len(runs) == 3


def test_one_step_is_one_run_where_nothing_advances_the_step():
    step = tf.train.create_global_step()
    tf.train.Saver()
    with tf.train.SingularMonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=1)]) as session:
        session.run(step)
        assert session.should_stop()
    turn = tf.placeholder(tf.int32, ())
    train = tf.cond(tf.equal(turn, 2), lambda: tf.assign(step, step + 1), lambda: tf.identity(step))
    with tf.train.SingularMonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=1)]) as session:
        runs = 0
        while not session.should_stop():
            session.run(train, {turn: runs})
            runs += 1
    assert runs == 3


def test_summaries_are_of_the_step_that_made_them(tmp_path):
    """The steps that SummarySaverHook counts are those before the increment, which waits for them: 1, 9, 17, 25 of 30, as in 1.15."""
    tf.train.create_global_step()
    tf.summary.scalar("x", tf.constant(1.0))
    train = _increment_global_step(1)
    hook = tf.train.SummarySaverHook(save_steps=8, output_dir=str(tmp_path), summary_op=tf.summary.merge_all())
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        for _ in range(30):
            session.run(train)
    events = tf.train.summary_iterator(glob.glob(str(tmp_path / "events*"))[0])
    assert [e.step for e in events if e.summary.value] == [1, 9, 17, 25]
