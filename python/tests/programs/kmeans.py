# SPDX-License-Identifier: Apache-2.0
"""K-means in one while_loop, then step by step with assign; distances by expand_dims, means by segments."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(6)
centres = np.array([[0, 0], [5, 5], [0, 5]], np.float32)
points_np = np.concatenate([c + rng.randn(40, 2) * 0.5 for c in centres]).astype(np.float32)
points = tf.constant(points_np)


def assign(points, centroids):
    distance = tf.reduce_sum(tf.square(tf.expand_dims(points, 0) - tf.expand_dims(centroids, 1)), 2)
    return tf.argmin(distance, 0), distance


def new_centroids(points, assignment, k):
    total = tf.unsorted_segment_sum(points, assignment, k)
    count = tf.unsorted_segment_sum(tf.ones_like(points), assignment, k)
    return total / tf.maximum(count, 1)


start = tf.slice(points, [0, 0], [1, -1])
start = tf.concat([start, tf.gather(points, [50, 100])], 0)


def body(i, centroids, moved):
    fresh = new_centroids(points, assign(points, centroids)[0], 3)
    return i + 1, fresh, tf.reduce_max(tf.abs(fresh - centroids))


i, final, moved = tf.while_loop(lambda i, c, m: tf.logical_and(i < 20, m > 1e-4), body,
                                [tf.constant(0), start, tf.constant(1.0)])
centroids = tf.Variable(start)
assignments = tf.Variable(tf.zeros([120], dtype=tf.int64))
found, distance = assign(points, centroids)
changed = tf.reduce_any(tf.not_equal(found, assignments))
with tf.control_dependencies([changed]):
    do_updates = tf.group(centroids.assign(new_centroids(points, found, 3)), assignments.assign(found))
with tf.Session() as sess:
    count, c = sess.run([i, final])
    print(count < 20, np.round(c, 2).tolist())
    sess.run(tf.global_variables_initializer())
    go, iterations = True, 0
    while go and iterations < 50:
        iterations += 1
        go, _ = sess.run([changed, do_updates])
    c2, a = sess.run([centroids, assignments])
    print(np.allclose(c, c2, atol=1e-4), np.bincount(a).tolist())
    print(np.round(sess.run(tf.reduce_mean(tf.reduce_min(distance, 0))), 2))
    values, indices = sess.run(tf.nn.top_k(-tf.transpose(distance), 2))
    print(indices[:3].tolist(), values.shape)
