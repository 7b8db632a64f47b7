# SPDX-License-Identifier: Apache-2.0
"""Supervisor: services beside the loop, a restart that goes on from the checkpoint, errors that come through, a Coordinator."""
import os
import tempfile
import threading
import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()


def build():
    w = tf.Variable(tf.constant([5.0, -5.0]), name="w")
    global_step = tf.Variable(0, name="global_step", trainable=False)
    loss = tf.reduce_sum(tf.square(w))
    rate = tf.train.exponential_decay(0.1, global_step, 10, 0.5, staircase=True)
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=global_step)
    tf.summary.scalar("loss", loss)
    return w, global_step, loss, train


for attempt in range(2):
    with tf.Graph().as_default():
        w, global_step, loss, train = build()
        merged = tf.summary.merge_all()
        sv = tf.train.Supervisor(logdir=folder, summary_op=None, global_step=global_step, save_model_secs=0, saver=tf.train.Saver(max_to_keep=3))
        with sv.managed_session() as sess:
            step = sess.run(global_step)
            print("starts at", step)
            while not sv.should_stop() and step < 10 * (attempt + 1):
                _, step = sess.run([train, global_step])
                step = sess.run(global_step)
                if step % 5 == 0:
                    sv.summary_computed(sess, sess.run(merged), step)
            print(attempt, step, "%.4f" % sess.run(loss))
            sv.saver.save(sess, sv.save_path, global_step=global_step)
        print(sv.should_stop(), os.path.basename(tf.train.latest_checkpoint(folder)))

with tf.Graph().as_default():
    doubled = tf.placeholder(tf.float32) * 2
    sv = tf.train.Supervisor(logdir=None, init_fn=lambda sess: print("init_fn"))
    try:
        with sv.managed_session() as sess:
            sess.run(doubled)
    except tf.errors.InvalidArgumentError:
        print("the error comes through")

coord = tf.train.Coordinator()
counts = []


def work(number):
    with coord.stop_on_exception():
        for i in range(100):
            if coord.should_stop():
                return
            if number == 1 and i == 3:
                raise ValueError("worker 1")
            coord.wait_for_stop(0.01)
        counts.append(number)


threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for t in threads:
    t.start()
try:
    coord.join(threads)
except ValueError as e:
    print("joined:", e, len(counts))
