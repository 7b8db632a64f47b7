# SPDX-License-Identifier: Apache-2.0
"""What distributions say of themselves, and a policy of normal numbers trained through log_prob, as actor-critic programs do."""
import numpy as np
import tensorflow as tf

ds = tf.distributions
KINDS = [
    ("normal", ds.Normal([0.5, -1.0], [[1.0], [2.0]]), 0.3),
    ("uniform", ds.Uniform(-1.0, [2.0, 3.0]), 0.5),
    ("bernoulli", ds.Bernoulli(logits=[0.5, -2.0]), 1),
    ("bernoulli of p", ds.Bernoulli(probs=[[0.25, 0.75]]), [[0], [1]]),
    ("categorical", ds.Categorical(logits=[[1.0, 2.0, 0.5], [0.1, 0.1, 3.0]]), [2, 0]),
    ("categorical of p", ds.Categorical(probs=[0.1, 0.2, 0.7]), [0, 1, 2]),
    ("multinomial", ds.Multinomial(4.0, logits=[0.1, 0.2, 0.3]), [1.0, 3.0, 0.0]),
    ("exponential", ds.Exponential([1.0, 2.5]), 0.7),
    ("gamma", ds.Gamma([2.0, 3.0], [1.5]), 0.8),
    ("beta", ds.Beta(2.0, [3.0, 5.0]), 0.4),
    ("laplace", ds.Laplace([0.0, 1.0], 2.0), 0.1),
    ("student", ds.StudentT([3.0, 5.0], 0.5, 2.0), 0.2),
    ("dirichlet", ds.Dirichlet([[2.0, 3.0, 4.0]]), [0.2, 0.3, 0.5]),
]
STATISTICS = ["mean", "variance", "stddev", "mode", "entropy"]
with tf.Session() as sess:
    for name, kind, value in KINDS:
        row = [sess.run(kind.log_prob(value)), sess.run(kind.prob(value))]
        for statistic in STATISTICS:
            try:
                row.append(sess.run(getattr(kind, statistic)()))
            except NotImplementedError:
                pass
        sample = kind.sample([2, 5])
        print(name, kind.dtype.name, kind.batch_shape, kind.event_shape, sample.get_shape(), sess.run(sample).shape, sample.dtype.name)
        print("  ", " ".join(str(np.round(np.asarray(r, np.float64), 4).tolist()) for r in row))
    pairs = [(ds.Normal(0.0, 1.0), ds.Normal([1.0, -1.0], 2.0)), (ds.Bernoulli(0.3), ds.Bernoulli(-1.0)),
             (ds.Categorical([0.1, 2.0]), ds.Categorical([1.0, 1.0])), (ds.Beta(2.0, 3.0), ds.Beta(1.0, 4.0)),
             (ds.Gamma(2.0, 3.0), ds.Gamma(1.0, 4.0)), (ds.Dirichlet([1.0, 2.0]), ds.Dirichlet([3.0, 1.0]))]
    for a, b in pairs:
        print("%.4f" % np.sum(sess.run(ds.kl_divergence(a, b))), "%.4f" % np.sum(sess.run(a.cross_entropy(b))), a.name)
    print(np.round(sess.run([ds.Normal(0.0, 1.0).cdf([-1.0, 0.5]), ds.Uniform().cdf([0.25, 2.0]), ds.Laplace(0.0, 1.0).cdf([-1.0, 0.5])]), 4))
    try:
        ds.kl_divergence(ds.Normal(0.0, 1.0), ds.Uniform())
    except NotImplementedError:
        print("no divergence")

states = tf.placeholder(tf.float32, [None, 3])
actions = tf.placeholder(tf.float32, [None, 1])
advantages = tf.placeholder(tf.float32, [None, 1])
with tf.variable_scope("policy"):
    w = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.1))
    mu, sigma = tf.matmul(states, w), tf.nn.softplus(tf.get_variable("s", [], initializer=tf.zeros_initializer()))
policy = ds.Normal(mu, sigma)
drawn = tf.clip_by_value(tf.squeeze(policy.sample(1), axis=0), -2.0, 2.0)
loss = -tf.reduce_mean(policy.log_prob(actions) * advantages + 0.01 * policy.entropy())
train = tf.train.AdamOptimizer(0.05).minimize(loss)
rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(drawn.get_shape(), sess.run(drawn, {states: rng.randn(4, 3)}).shape)
    for step in range(60):
        s = rng.randn(32, 3)
        feed = {states: s, actions: s.dot([[0.5], [-0.5], [1.0]]), advantages: np.ones([32, 1])}
        value, _ = sess.run([loss, train], feed)
        if step % 20 == 19:
            print("step %d loss %.3f sigma %.3f" % (step + 1, value, sess.run(sigma)))
