# SPDX-License-Identifier: Apache-2.0
"""A variational autoencoder on stripes: reparameterisation, KL term, sharing by a class."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(2)
data = np.array([[1.0 if (i // 4 + k) % 2 else 0.0 for i in range(16)] for k in range(4)], np.float32)


def weights(n, m):
    return tf.Variable((rng.randn(n, m) * np.sqrt(2.0 / (n + m))).astype(np.float32))


class VAE(object):
    def __init__(self, width=16, hidden=12, latent=2, learning_rate=0.01):
        self.x = tf.placeholder(tf.float32, [None, width])
        self.noise = tf.placeholder_with_default(tf.zeros([4, latent]), [None, latent])
        h = tf.nn.elu(tf.matmul(self.x, weights(width, hidden)) + tf.Variable(tf.zeros([hidden])))
        self.z_mean = tf.matmul(h, weights(hidden, latent))
        self.z_log_sigma_sq = tf.matmul(h, weights(hidden, latent))
        self.z = self.z_mean + tf.multiply(tf.sqrt(tf.exp(self.z_log_sigma_sq)), self.noise)
        d = tf.nn.relu(tf.matmul(self.z, weights(latent, hidden)) + 0.1)
        self.reconstruction = tf.nn.sigmoid(tf.matmul(d, weights(hidden, width)))
        clipped = tf.clip_by_value(self.reconstruction, 1e-6, 1 - 1e-6)
        reconstruction_loss = -tf.reduce_sum(self.x * tf.log(clipped) + (1 - self.x) * tf.log(1 - clipped), 1)
        latent_loss = -0.5 * tf.reduce_sum(1 + self.z_log_sigma_sq - tf.square(self.z_mean) - tf.exp(self.z_log_sigma_sq), axis=1)
        self.cost = tf.reduce_mean(reconstruction_loss + latent_loss)
        self.optimizer = tf.train.RMSPropOptimizer(learning_rate).minimize(self.cost)


vae = VAE()
with tf.Session() as sess:
    sess.run(tf.initialize_all_variables())
    for epoch in range(300):
        _, cost = sess.run((vae.optimizer, vae.cost), feed_dict={vae.x: data, vae.noise: rng.randn(4, 2)})
        if epoch % 100 == 0:
            print("epoch %d cost %.2f" % (epoch, cost))
    print("%.1f" % sess.run(vae.cost, {vae.x: data}))
    print(np.round(np.abs(sess.run(vae.reconstruction, {vae.x: data}) - data).max(), 0))
