# SPDX-License-Identifier: Apache-2.0
"""Q-learning on a corridor, with a target network that is copied, a replay memory and an epsilon schedule."""
import collections
import random
import numpy as np
import tensorflow as tf

random.seed(4)
rng = np.random.RandomState(4)
STATES, ACTIONS, GAMMA = 6, 2, 0.9


class DQN:
    def __init__(self):
        self.memory = collections.deque(maxlen=500)
        self.learn_step = 0
        self.s = tf.placeholder(tf.float32, [None, STATES], name="s")
        self.s_ = tf.placeholder(tf.float32, [None, STATES], name="s_")
        self.a = tf.placeholder(tf.int32, [None])
        self.q_target = tf.placeholder(tf.float32, [None], name="Q_target")
        with tf.variable_scope("eval_net"):
            self.q_eval = self._net(self.s, ["eval_net_params", tf.GraphKeys.GLOBAL_VARIABLES])
        with tf.variable_scope("target_net"):
            self.q_next = self._net(self.s_, ["target_net_params", tf.GraphKeys.GLOBAL_VARIABLES])
        with tf.variable_scope("loss"):
            chosen = tf.reduce_sum(tf.multiply(self.q_eval, tf.one_hot(self.a, ACTIONS, 1.0, 0.0)), reduction_indices=1)
            self.loss = tf.reduce_mean(tf.squared_difference(self.q_target, chosen, name="TD_error"))
        with tf.variable_scope("train"):
            self.train_op = tf.train.RMSPropOptimizer(0.01).minimize(self.loss, var_list=tf.get_collection("eval_net_params"))
        self.replace = [tf.assign(t, e) for t, e in zip(tf.get_collection("target_net_params"), tf.get_collection("eval_net_params"))]
        self.sess = tf.Session()
        self.sess.run(tf.global_variables_initializer())

    def _net(self, s, c_names):
        with tf.variable_scope("l1"):
            w1 = tf.get_variable("w1", [STATES, 10], initializer=tf.constant_initializer(rng.randn(STATES, 10) * 0.3), collections=c_names)
            b1 = tf.get_variable("b1", [1, 10], initializer=tf.constant_initializer(0.1), collections=c_names)
            l1 = tf.nn.relu(tf.matmul(s, w1) + b1)
        with tf.variable_scope("l2"):
            w2 = tf.get_variable("w2", [10, ACTIONS], initializer=tf.constant_initializer(rng.randn(10, ACTIONS) * 0.3), collections=c_names)
            b2 = tf.get_variable("b2", [1, ACTIONS], initializer=tf.constant_initializer(0.1), collections=c_names)
            return tf.matmul(l1, w2) + b2

    def act(self, s, epsilon):
        if rng.uniform() < epsilon:
            return rng.randint(0, ACTIONS)
        return int(np.argmax(self.sess.run(self.q_eval, feed_dict={self.s: s[np.newaxis, :]})))

    def learn(self):
        if self.learn_step % 20 == 0:
            self.sess.run(self.replace)
        s, a, r, s_, done = zip(*random.sample(self.memory, 16))
        q_next = self.q_next.eval({self.s_: np.array(s_)}, session=self.sess)
        target = np.array(r) + GAMMA * np.max(q_next, 1) * (1 - np.array(done))
        _, cost = self.sess.run([self.train_op, self.loss], {self.s: s, self.a: a, self.q_target: target})
        self.learn_step += 1
        return cost


def one_hot(i):
    return np.eye(STATES, dtype=np.float32)[i]


agent = DQN()
steps_taken = []
for episode in range(60):
    position, steps = 0, 0
    while position < STATES - 1 and steps < 50:
        action = agent.act(one_hot(position), max(0.1, 1 - episode / 30.0))
        after = max(0, position + (1 if action == 1 else -1))
        done = after == STATES - 1
        agent.memory.append((one_hot(position), action, 1.0 if done else 0.0, one_hot(after), float(done)))
        position, steps = after, steps + 1
        if len(agent.memory) > 64:
            cost = agent.learn()
    steps_taken.append(steps)
print([v.name for v in tf.get_collection("target_net_params")])
print(len(tf.trainable_variables()), "learnt", np.mean(steps_taken[-10:]) < 9, "small", cost < 0.2)
print([int(np.argmax(agent.sess.run(agent.q_eval, {agent.s: [one_hot(i)]}))) for i in range(STATES - 1)])
