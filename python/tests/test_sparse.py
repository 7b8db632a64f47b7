# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors, classes drawn for losses, connectionist temporal classification."""

import itertools

import numpy as np
import pytest

import millrace as tf


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_sparse_to_dense(sess):
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [3.0, 4.0], [3, 2])
    assert sess.run(tf.sparse_tensor_to_dense(sparse, -1.0)).tolist() == [[-1, 3], [-1, -1], [4, -1]]
    assert sess.run(tf.sparse_to_dense([1, 3], [5], 7)).tolist() == [0, 7, 0, 7, 0]
    assert sess.run(tf.sparse_tensor_to_dense(tf.SparseTensor([[1]], ["x"], [2]))).tolist() == [b"", b"x"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        sess.run(tf.sparse_to_dense([3, 1], [5], 7))


def test_sparse_product_and_its_gradient(sess):
    values, dense = tf.constant([2.0, 3.0]), tf.constant(np.arange(6.0).reshape(3, 2), tf.float32)
    product = tf.sparse_tensor_dense_matmul(tf.SparseTensor([[0, 1], [1, 2]], values, [2, 3]), dense)
    assert sess.run(product).tolist() == [[4, 6], [12, 15]]
    dv, dd = sess.run(tf.gradients(tf.reduce_sum(product), [values, dense]))
    assert dv.tolist() == [5, 9] and dd.tolist() == [[0, 0], [2, 2], [3, 3]]


def test_reordering(sess):
    sparse = tf.SparseTensor([[1, 0], [0, 1], [0, 0]], [1.0, 2.0, 3.0], [2, 2])
    ordered = sess.run(tf.sparse_reorder(sparse))
    assert ordered.indices.tolist() == [[0, 0], [0, 1], [1, 0]] and ordered.values.tolist() == [3, 2, 1]
    turned = sess.run(tf.sparse_transpose(tf.sparse_reorder(sparse)))
    assert turned.indices.tolist() == [[0, 0], [0, 1], [1, 0]] and turned.values.tolist() == [3, 1, 2]
    assert sess.run(tf.sparse_retain(sparse, [True, False, True])).values.tolist() == [1, 3]
    assert sess.run(tf.sparse_to_indicator(tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [2, 0, 1], [2, 2]), 3)).tolist() == [
        [False, False, True],
        [True, True, False],
    ]


def test_edit_distance(sess):
    words = tf.sparse_placeholder(tf.string)
    truth = tf.SparseTensor([[0, 0, i] for i in range(6)], list("kitten"), [1, 1, 6])
    given = tf.SparseTensorValue([[0, 0, i] for i in range(7)], list("sitting"), [1, 1, 7])
    assert sess.run(tf.edit_distance(words, truth), {words: given}).tolist() == [[0.5]]
    assert sess.run(tf.edit_distance(words, truth, normalize=False), {words: given}).tolist() == [[3]]


def test_samplers(sess):
    true = tf.constant([[1], [3]], tf.int64)
    for sampler in (tf.nn.uniform_candidate_sampler, tf.nn.log_uniform_candidate_sampler, tf.nn.learned_unigram_candidate_sampler):
        drawn, true_count, count = sess.run(sampler(true, 1, 5, True, 6, seed=1))
        assert len(set(drawn)) == 5 and max(drawn) < 6 and true_count.shape == (2, 1) and (count > 0).all() and (count <= 1).all()
    drawn, true_count, _ = sess.run(tf.nn.fixed_unigram_candidate_sampler(true, 1, 3000, False, 4, unigrams=[1, 2, 3, 4], seed=1))
    assert np.allclose(np.bincount(drawn) / 3000.0, [0.1, 0.2, 0.3, 0.4], atol=0.03) and np.allclose(true_count, [[600], [1200]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="only 6 classes"):
        sess.run(tf.nn.uniform_candidate_sampler(true, 1, 7, True, 6))


def test_sampled_losses_over_all_classes_are_the_whole_loss(sess):
    rng = np.random.RandomState(0)
    weights, biases, inputs = (tf.constant(rng.randn(*s), tf.float32) for s in ((5, 3), (5,), (4, 3)))
    labels = tf.constant([[0], [2], [4], [2]], tf.int64)
    everything = tf.nn.all_candidate_sampler(labels, 1, 5, True)
    sampled = tf.nn.sampled_softmax_loss(weights, biases, labels, inputs, 5, 5, sampled_values=everything)
    whole = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels[:, 0], logits=tf.matmul(inputs, weights, transpose_b=True) + biases)
    assert np.allclose(*sess.run([sampled, whole]), atol=1e-5)
    older = tf.nn.sampled_softmax_loss(weights, biases, inputs, labels, 5, 5, sampled_values=everything)
    assert np.allclose(*sess.run([older, whole]), atol=1e-5)


def probability(log_y, label, merge):
    """By all paths."""
    steps, classes = log_y.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        seen = [c for i, c in enumerate(path) if c != classes - 1 and (not merge or i == 0 or path[i - 1] != c)]
        if seen == label:
            total += np.exp(sum(log_y[t, c] for t, c in enumerate(path)))
    return total


@pytest.mark.parametrize("merge", [True, False])
def test_ctc(sess, merge):
    logits = np.random.RandomState(1).randn(5, 2, 3).astype(np.float32)
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 1, 0], [2, 2])
    x = tf.constant(logits)
    loss = tf.nn.ctc_loss(labels, x, [5, 4], ctc_merge_repeated=merge)
    log_y = logits - np.log(np.exp(logits).sum(2, keepdims=True))
    want = [-np.log(probability(log_y[:5, 0], [1, 1], merge)), -np.log(probability(log_y[:4, 1], [0], merge))]
    assert np.allclose(sess.run(loss), want, atol=1e-4)
    assert np.allclose(sess.run(tf.nn.ctc_loss(x, labels, [5, 4], ctc_merge_repeated=merge)), want, atol=1e-4)  # 0.x
    grad = sess.run(tf.gradients(loss, x)[0])
    bumped = logits.copy()
    bumped[2, 0, 1] += 1e-2
    slope = (sess.run(tf.nn.ctc_loss(labels, bumped, [5, 4], ctc_merge_repeated=merge))[0] - want[0]) / 1e-2
    assert abs(grad[2, 0, 1] - slope) < 1e-2 and not grad[4, 1].any()


def test_ctc_decoders(sess):
    logits = np.random.RandomState(2).randn(4, 1, 3).astype(np.float32)
    log_y = (logits - np.log(np.exp(logits).sum(2, keepdims=True)))[:, 0]
    every = [list(p) for n in range(5) for p in itertools.product([0, 1], repeat=n)]
    best = sorted(every, key=lambda p: -probability(log_y, p, True))
    found, score = sess.run(tf.nn.ctc_beam_search_decoder(logits, [4], beam_width=60, top_paths=2, merge_repeated=False))
    assert [f.values.tolist() for f in found] == best[:2]
    assert np.allclose(score[0], [np.log(probability(log_y, p, True)) for p in best[:2]], atol=1e-4)
    path = log_y.argmax(1)
    want = [int(c) for i, c in enumerate(path) if c != 2 and (i == 0 or path[i - 1] != c)]
    assert sess.run(tf.nn.ctc_greedy_decoder(logits, [4]))[0][0].values.tolist() == want
    with pytest.raises(tf.errors.FailedPreconditionError, match="want 0 to 4"):
        sess.run(tf.nn.ctc_greedy_decoder(logits, [5])[1])


def test_eval_of_a_sparse_tensor():
    with tf.Session():
        assert tf.SparseTensor([[0, 1]], [5.0], [1, 2]).eval().values.tolist() == [5.0]
    with pytest.raises(ValueError, match="No default session"):
        tf.SparseTensor([[0, 1]], [5.0], [1, 2]).eval()


def test_products_with_dense_values():
    with tf.Graph().as_default(), tf.Session() as sess:
        sparse = tf.SparseTensor([[0, 1], [2, 0]], [2.0, 4.0], [3, 2])
        row, column = np.array([[10.0, 20.0]], np.float32), tf.constant([[1.0], [2.0], [3.0]])
        made = sess.run([sparse * 0.5, sparse / 2, sparse * row, sparse * column, np.float32(3) * sparse, column * sparse])
        assert [m.values.tolist() for m in made] == [[1, 2], [1, 2], [40, 40], [2, 12], [6, 12], [2, 12]]
        assert made[2].indices.tolist() == [[0, 1], [2, 0]] and made[2].dense_shape.tolist() == [3, 2]
        with pytest.raises(TypeError):
            sparse * sparse


def test_slices_but_some(sess):
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.constant([7, 2, 9]), [10, 2])
    rest = tf.sparse_mask(slices, [2, 5])
    assert sess.run(rest.values).tolist() == [[1, 2], [5, 6]] and sess.run(rest.indices).tolist() == [7, 9]
    assert sess.run(tf.sparse_mask(slices, [9, 2, 7]).values).shape == (0, 2)
