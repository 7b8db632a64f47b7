# SPDX-License-Identifier: Apache-2.0
"""Learns the letters of a text, one after the other, and writes some.

  python text.py [FILE] [--steps 300]

A recurrent net (LSTM) reads pieces of the text and tells at each letter which comes next; without a file it learns the
Zen of Python.
"""

import argparse
import codecs

import numpy as np

import millrace as tf

ROWS, LENGTH, UNITS = 16, 32, 64


def the_zen():
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return codecs.decode(this.s, "rot13")


def pieces(codes, random):
    """ROWS pieces of LENGTH letters, and the letters that follow each."""
    starts = random.randint(0, len(codes) - LENGTH - 1, ROWS)
    rows = np.stack([codes[s : s + LENGTH + 1] for s in starts])
    return rows[:, :-1], rows[:, 1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--steps", type=int, default=300)
    given = parser.parse_args()
    if given.file:
        with open(given.file, encoding="utf-8") as file:
            text = file.read()
    else:
        text = the_zen()
    letters = sorted(set(text))
    codes = np.array([letters.index(c) for c in text], np.int64)

    tf.set_random_seed(1)
    now = tf.placeholder(tf.int64, [None, None])  # [rows, letters]
    following = tf.placeholder(tf.int64, [None, None])
    cell = tf.nn.rnn_cell.BasicLSTMCell(UNITS)
    state = cell.zero_state(tf.shape(now)[0], tf.float32)
    outputs, last = tf.nn.dynamic_rnn(cell, tf.one_hot(now, len(letters)), initial_state=state)
    logits = tf.layers.dense(outputs, len(letters))
    loss = tf.losses.sparse_softmax_cross_entropy(following, logits)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    probabilities = tf.nn.softmax(tf.cast(logits[0, -1], tf.float64))

    random = np.random.RandomState(1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(given.steps):
            x, y = pieces(codes, random)
            _, value = session.run([train, loss], {now: x, following: y})
            if step % 100 == 0 or step == given.steps - 1:
                print("step %d, loss %.3f" % (step, value))
        # Each letter that it writes is the next that it reads; the state goes from step to step.
        written, kept = [codes[0]], session.run(state, {now: [[0]]})
        for _ in range(60):
            chances, kept = session.run([probabilities, last], {now: [[written[-1]]], state: kept})
            written.append(random.choice(len(letters), p=chances / chances.sum()))
        print("".join(letters[c] for c in written))


if __name__ == "__main__":
    main()
