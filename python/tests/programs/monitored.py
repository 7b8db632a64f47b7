# SPDX-License-Identifier: Apache-2.0
"""MonitoredTrainingSession with hooks of TensorFlow and of the program, Scaffold, and a restart from the checkpoint."""
import os
import shutil
import tempfile
import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
folder = tempfile.mkdtemp()


class Recorder(tf.train.SessionRunHook):
    def __init__(self, loss):
        self._loss, self.values, self.log = loss, [], []

    def begin(self):
        self.log.append("begin")

    def after_create_session(self, session, coord):
        self.log.append("created")

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._loss, feed_dict={"shift:0": 1.0})

    def after_run(self, run_context, run_values):
        self.values.append(run_values.results)
        if run_values.results < 1e-3:
            run_context.request_stop()

    def end(self, session):
        self.log.append("end")


def build():
    shift = tf.placeholder_with_default(0.0, [], name="shift")
    w = tf.get_variable("w", initializer=tf.constant([3.0, -2.0]))
    loss = tf.reduce_sum(tf.square(w - shift), name="loss")
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    tf.summary.scalar("loss", loss)
    return w, loss, step, train


for attempt, last in enumerate((10, 100)):
    with tf.Graph().as_default():
        w, loss, step, train = build()
        recorder = Recorder(loss)
        hooks = [recorder, tf.train.StopAtStepHook(last_step=last), tf.train.NanTensorHook(loss),
                 tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=5)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks, save_checkpoint_secs=600, save_summaries_steps=2) as sess:
            print("starts at", sess.run(step, feed_dict={}))
            while not sess.should_stop():
                sess.run(train)
        print(attempt, recorder.log, len(recorder.values), "%.4f" % recorder.values[-1], bool(np.all(np.diff(recorder.values[1:]) <= 0)))
print(os.path.basename(tf.train.latest_checkpoint(folder)), any("events" in f for f in os.listdir(folder)))

with tf.Graph().as_default():
    w, loss, step, train = build()
    ready = []
    scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: ready.append(True), saver=tf.train.Saver([w]))
    with tf.train.MonitoredSession(session_creator=tf.train.ChiefSessionCreator(scaffold=scaffold)) as sess:
        print(sess.run([w, step])[0].tolist(), ready)
    with tf.train.SingularMonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=3)]) as sess:
        count = 0
        while not sess.should_stop():
            sess.run(train)
            count += 1
        print(count)

with tf.Graph().as_default():
    x = tf.Variable(1.0)
    y = tf.log(x - 1.0) * 0.0
    tf.train.create_global_step()
    try:
        with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(y)]) as sess:
            sess.run(x)
    except tf.train.NanLossDuringTrainingError:
        print("NaN was seen")
shutil.rmtree(folder)
