# SPDX-License-Identifier: Apache-2.0
"""contrib.slim: arg_scope, repeat, stack, batch norm with update ops, end points, losses, a training loop of slim.learning's pieces."""
import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim

rng = np.random.RandomState(17)
images_np = rng.rand(16, 8, 8, 3).astype(np.float32)
labels_np = (images_np[..., 0].mean((1, 2)) > images_np[..., 2].mean((1, 2))).astype(np.int64)


def network(inputs, num_classes=2, is_training=True, scope="net", reuse=None):
    with tf.variable_scope(scope, "net", [inputs], reuse=reuse) as sc:
        collection = sc.original_name_scope + "_end_points"
        with slim.arg_scope([slim.conv2d, slim.fully_connected, slim.max_pool2d], outputs_collections=collection):
            net = slim.repeat(inputs, 2, slim.conv2d, 4, [3, 3], scope="conv1")
            net = slim.max_pool2d(net, [2, 2], scope="pool1")
            net = slim.conv2d(net, 6, [1, 1], activation_fn=None, normalizer_fn=slim.batch_norm,
                              normalizer_params={"is_training": is_training, "decay": 0.9}, scope="conv2")
            net = slim.flatten(tf.nn.relu(net))
            net = slim.dropout(net, 1.0, is_training=is_training, scope="dropout")
            net = slim.stack(net, slim.fully_connected, [10, 5], scope="fc")
            net = slim.fully_connected(net, num_classes, activation_fn=None, normalizer_fn=None, scope="logits")
        return net, slim.utils.convert_collection_to_dict(collection)


def arg_scope(weight_decay=0.001):
    with slim.arg_scope([slim.conv2d, slim.fully_connected], activation_fn=tf.nn.relu, weights_regularizer=slim.l2_regularizer(weight_decay),
                        weights_initializer=tf.truncated_normal_initializer(stddev=0.3, seed=1), biases_initializer=tf.zeros_initializer()):
        with slim.arg_scope([slim.conv2d], padding="SAME") as scope:
            return scope


x, y = tf.placeholder(tf.float32, [16, 8, 8, 3]), tf.placeholder(tf.int64, [16])
with slim.arg_scope(arg_scope()):
    logits, end_points = network(x)
    evaluation, _ = network(x, is_training=False, reuse=True)
print(sorted(end_points))
print([v.op.name for v in slim.get_model_variables()][:4], len(slim.get_variables_to_restore(exclude=["net/logits"])))
slim.losses.softmax_cross_entropy(logits, slim.one_hot_encoding(y, 2))
total = slim.losses.get_total_loss()
print(len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)), len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)))
optimizer = tf.train.AdamOptimizer(0.02)
train_op = slim.learning.create_train_op(total, optimizer)
accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(evaluation, 1), y)))
init_assign, init_feed = slim.assign_from_values({"net/logits/biases": np.array([0.5, -0.5], np.float32)})
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(init_assign, init_feed)
    print(sess.run("net/logits/biases:0").tolist())
    losses = [sess.run(train_op, {x: images_np, y: labels_np}) for _ in range(60)]
    print(losses[-1] < 0.5 * losses[0], sess.run(accuracy, {x: images_np, y: labels_np}) > 0.6, sess.run(slim.get_or_create_global_step()))
