# SPDX-License-Identifier: Apache-2.0
"""A worker's program that is disturbed, in asynchronous training: pushes gradients to parameter servers, and counts its pushes there.

What it learns is written line by line, with the time: that a session was made, which counts each checkpoint has, that a push was acknowledged and how many the
server has counted then.
"""

import argparse
import os
import time

import numpy as np

import millrace as tf


def build(num_workers, own):
    """The own counter after a push, and the loss."""
    random = np.random.RandomState(5)
    inputs = random.randn(64, 8).astype(np.float32)
    labels = inputs @ random.randn(8, 1).astype(np.float32)
    counters = []
    for k in range(num_workers):
        with tf.device("/job:ps/task:%d" % (k % 2)):
            counters.append(tf.get_variable("pushes%d" % k, [], tf.int64, initializer=tf.zeros_initializer(), trainable=False))
    with tf.device("/job:ps/task:0"):
        global_step = tf.train.get_or_create_global_step()
    with tf.device("/job:ps/task:1"):
        weights = tf.get_variable("weights", [8, 1], initializer=tf.zeros_initializer())
    with tf.device("/job:worker/task:%d" % own):
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(inputs), weights) - tf.constant(labels)))
        train = tf.train.GradientDescentOptimizer(0.02).minimize(loss, global_step=global_step)
    with tf.control_dependencies([train]):
        pushed = tf.assign_add(counters[own], 1)
    return pushed, loss


class _Told(tf.train.SessionRunHook):
    """Of sessions: the push before may have come or not."""

    def __init__(self, tell):
        self._tell = tell

    def after_create_session(self, session, coord):
        self._tell("session")


class _Saved(tf.train.CheckpointSaverListener):
    """Of checkpoints that are durable: the counts in them."""

    def __init__(self, tell, folder, num_workers):
        self._tell, self._folder, self._num_workers = tell, folder, num_workers

    def after_save(self, session, global_step_value):
        reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(self._folder))
        self._tell("saved " + " ".join("%d" % reader.get_tensor("pushes%d" % k) for k in range(self._num_workers)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", required=True)
    parser.add_argument("--task", type=int, required=True)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--checkpoints", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--stop-file", required=True, help="when it is there, this ends")
    given = parser.parse_args()
    pushed, loss = build(given.workers, given.task)
    is_chief = given.task == 0
    with open(given.out, "a", buffering=1) as out:

        def tell(what):
            out.write("%.6f %s\n" % (time.time(), what))

        saver = []
        if is_chief:
            saver.append(tf.train.CheckpointSaverHook(given.checkpoints, save_steps=40, listeners=[_Saved(tell, given.checkpoints, given.workers)]))
        with tf.train.MonitoredTrainingSession(
            master=given.master,
            is_chief=is_chief,
            checkpoint_dir=given.checkpoints,
            save_checkpoint_secs=None,
            save_summaries_steps=None,
            log_step_count_steps=None,
            hooks=[_Told(tell)],
            chief_only_hooks=saver,
        ) as session:
            while not os.path.exists(given.stop_file):
                count, value = session.run([pushed, loss])
                tell("pushed %d %g" % (count, value))
                time.sleep(0.01)
    print("worker %d has ended" % given.task, flush=True)


if __name__ == "__main__":
    main()
