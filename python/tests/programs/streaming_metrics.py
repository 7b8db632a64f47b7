# SPDX-License-Identifier: Apache-2.0
"""tf.metrics and tf.losses with weights, confusion matrices, and local variables that are reset."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(10)
labels = tf.placeholder(tf.int64, [None])
predictions = tf.placeholder(tf.int64, [None])
scores = tf.placeholder(tf.float32, [None])
metrics = {
    "accuracy": tf.metrics.accuracy(labels, predictions), "precision": tf.metrics.precision(labels, predictions),
    "recall": tf.metrics.recall(labels, predictions), "mean": tf.metrics.mean(scores), "auc": tf.metrics.auc(labels, scores),
    "mse": tf.metrics.mean_squared_error(tf.cast(labels, tf.float32), scores),
    "mae": tf.metrics.mean_absolute_error(tf.cast(labels, tf.float32), scores),
    "rmse": tf.metrics.root_mean_squared_error(tf.cast(labels, tf.float32), scores),
    "miou": tf.metrics.mean_iou(labels, predictions, 2), "true_positives": tf.metrics.true_positives(labels, predictions)}
update = [m[1] for m in metrics.values()]
confusion = tf.confusion_matrix(labels, predictions, num_classes=2)
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for _ in range(3):
        truth = rng.randint(0, 2, 20)
        p = np.clip(truth * 0.4 + rng.rand(20) * 0.6, 0, 1)
        feed = {labels: truth, predictions: (p > 0.5).astype(int), scores: p}
        sess.run(update, feed)
    for name in sorted(metrics):
        print(name, "%.3f" % sess.run(metrics[name][0]))
    print(sess.run(confusion, feed).tolist(), len(tf.local_variables()))
    reset = tf.variables_initializer(tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES, scope="accuracy"))
    sess.run(reset)
    print([v.name for v in tf.local_variables()][:3], sess.run(metrics["accuracy"][0]))

    onehot = tf.one_hot([0, 2, 1], 3)
    logits = tf.constant([[2.0, 1.0, 0.1], [0.3, 0.2, 3.0], [1.0, 1.0, 1.0]])
    losses = [
        tf.losses.softmax_cross_entropy(onehot, logits), tf.losses.softmax_cross_entropy(onehot, logits, label_smoothing=0.1),
        tf.losses.sparse_softmax_cross_entropy([0, 2, 1], logits, weights=[1.0, 0.0, 2.0]), tf.losses.sigmoid_cross_entropy(onehot, logits),
        tf.losses.mean_squared_error(onehot, logits), tf.losses.absolute_difference(onehot, logits, weights=0.5),
        tf.losses.hinge_loss(onehot, logits), tf.losses.huber_loss(onehot, logits), tf.losses.log_loss(onehot, tf.nn.softmax(logits)),
        tf.losses.cosine_distance(tf.nn.l2_normalize(onehot, 1), tf.nn.l2_normalize(logits, 1), axis=1)]
    print(["%.4f" % v for v in sess.run(losses)])
    print(len(tf.losses.get_losses()), "%.4f" % sess.run(tf.losses.get_total_loss()))
