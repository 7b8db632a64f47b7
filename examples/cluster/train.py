# SPDX-License-Identifier: Apache-2.0
"""A line is fitted by a cluster: parameter servers hold it, workers train it asynchronously. Who this process is says its environment.

millrace launch -n 3 --ps 2 examples/cluster/train.py --steps 500 --logdir /tmp/line
"""

import argparse
import os
import sys

import numpy as np

import millrace as tf
from millrace.launch import done, who_am_i

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=500, help="of all workers together")
parser.add_argument("--logdir", help="checkpoints; a program that is started again goes on from the newest")
given = parser.parse_args()

me = who_am_i()
server = None if me.is_alone else tf.train.Server(me.jobs(), job_name=me.job, task_index=me.task)
if server is not None and me.job == "ps":
    done.serve_until_done(server, me)
    sys.exit(0)

setter = None if server is None else tf.train.replica_device_setter(cluster=me.jobs(), worker_device="/job:worker/task:%d" % me.task)
with tf.device(setter):
    step = tf.train.get_or_create_global_step()
    weights, offset = tf.get_variable("weights", [2, 1]), tf.get_variable("offset", [])
    x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) + offset - y))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)

random = np.random.RandomState(me.task or 0)
is_chief = not me.task
config = tf.ConfigProto() if server is None else tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % me.task])
with tf.train.MonitoredTrainingSession(
    server.target if server else "", is_chief, given.logdir, config=config, save_checkpoint_secs=60, hooks=[tf.train.StopAtStepHook(last_step=given.steps)]
) as session:
    at = 0
    while not session.should_stop():
        batch = random.randn(32, 2)
        value, at, _ = session.run([loss, step, train], {x: batch, y: batch @ [[2.0], [-1.0]] + 0.5})
    who = "alone" if me.is_alone else "task %d of %s" % (me.task, me.job)
    print("%s, process %d: loss %.2g at step %d" % (who, os.getpid(), value, at), flush=True)
if server is not None:
    done.tell_done(server, me)
