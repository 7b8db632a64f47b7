# SPDX-License-Identifier: Apache-2.0
"""The program that is disturbed: trains over two parameter servers and three workers until a step, and writes the loss of each step.

One step spans all tasks: each worker has the gradient of its part of the batch, which the parameter servers add in a fixed order, and what a step sees is a
function of its number alone. So the loss of step n has the same bits however often the training began again from a checkpoint.
"""

import argparse
import struct

import numpy as np

import millrace as tf

FEATURES, CLASSES, ROWS = 24, 5, 64


def build(num_workers):
    """The loss of a step, its number, and what makes the next one."""
    random = np.random.RandomState(7)
    inputs = random.randn(1024, FEATURES).astype(np.float32)
    labels = (inputs @ random.randn(FEATURES, CLASSES)).argmax(axis=1).astype(np.int64)
    with tf.device("/job:ps/task:0"):
        global_step = tf.train.get_or_create_global_step()
        hidden = tf.get_variable("hidden", initializer=random.randn(FEATURES, 32).astype(np.float32) * 0.1)
    with tf.device("/job:ps/task:1"):
        top = tf.get_variable("top", initializer=random.randn(32, CLASSES).astype(np.float32) * 0.1)
        velocity = tf.get_variable("velocity", initializer=np.zeros([FEATURES, 32], np.float32), trainable=False)
    losses, gradients = [], []
    with tf.device("/job:ps/task:0"):
        number = tf.identity(global_step)
    for worker in range(num_workers):
        with tf.device("/job:worker/task:%d" % worker):
            rows = tf.mod(tf.range(ROWS, dtype=tf.int64) * 13 + (number * num_workers + worker) * 29, 1024)
            x, y = tf.gather(tf.constant(inputs), rows), tf.gather(tf.constant(labels), rows)
            logits = tf.matmul(tf.tanh(tf.matmul(x, hidden)), top)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
            losses.append(loss)
            gradients.append(tf.gradients(loss, [hidden, top]))

    def add(values):
        total = values[0]
        for value in values[1:]:
            total = total + value
        return total

    with tf.device("/job:ps/task:1"):
        of_top, moved = add([g[1] for g in gradients]), velocity * 0.9 + add([g[0] for g in gradients])
    with tf.device("/job:ps/task:0"):
        loss = add(losses)
    with tf.control_dependencies([loss, number]):
        updates = [tf.assign_sub(hidden, 0.05 * moved), tf.assign_sub(top, 0.05 * of_top), tf.assign(velocity, moved)]
    with tf.control_dependencies(updates):
        train = tf.assign_add(global_step, 1).op
    return number, loss, train


def line(number, loss):
    return "%d %s" % (number, struct.pack(">f", loss).hex())


class _Told(tf.train.SessionRunHook):
    """A line for each step that has ended."""

    def __init__(self, number, loss, out):
        self._fetches, self._out = [number, loss], out

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        self._out.write(line(*run_values.results) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", required=True)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--checkpoints", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--out", required=True, help="the file to which a line is added for each step: its number, and the bits of its loss")
    given = parser.parse_args()
    number, loss, train = build(given.workers)
    with open(given.out, "a", buffering=1) as out:
        # What a checkpoint has is told before: a client that dies in between must not owe it.
        hooks = [_Told(number, loss, out), tf.train.CheckpointSaverHook(given.checkpoints, save_steps=10)]
        with tf.train.MonitoredTrainingSession(
            master=given.master, checkpoint_dir=given.checkpoints, save_checkpoint_secs=None, save_summaries_steps=None, log_step_count_steps=None, hooks=hooks
        ) as session:
            while not session.should_stop():
                n, _ = session.run([number, train])
                if n + 1 >= given.steps:
                    break
    print("trained to step %d" % given.steps, flush=True)


if __name__ == "__main__":
    main()
