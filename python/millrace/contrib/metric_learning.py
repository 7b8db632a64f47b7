# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.losses.metric_learning: losses of embeddings by which of them are of one class."""

from __future__ import annotations

from typing import Any

import numpy as np

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops, nn_ops, sparse_ops


def pairwise_distance(feature: Any, squared: bool = False) -> Tensor:
    """The distances between rows [n, d] of each other: [n, n], 0 along the diagonal."""
    feature = convert_to_tensor(feature)
    square = math_ops.reduce_sum(gen_ops.square(feature), 1, True)
    between = gen_ops.maximum(square + array_ops.transpose(square) - 2.0 * matrix_ops.matmul(feature, feature, transpose_b=True), 0.0)
    if not squared:
        none = math_ops.cast(gen_ops.less_equal(between, 0.0), dtypes.float32)  # the root has no gradient at 0
        between = gen_ops.sqrt(between + none * 1e-16) * (1.0 - none)
    apart = 1.0 - gen_ops.matrix_diag(array_ops.ones_like(feature[:, 0]))
    return between * apart


def contrastive_loss(labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0) -> Tensor:
    """Distances of pairs that belong together (labels [n] of 1), and what pairs that do not lack of the margin (Hadsell et al. 2006)."""
    distance = gen_ops.sqrt(math_ops.reduce_sum(gen_ops.squared_difference(embeddings_anchor, embeddings_positive), 1))
    labels = math_ops.cast(labels, dtypes.float32)
    return math_ops.reduce_mean(
        labels * gen_ops.square(distance) + (1.0 - labels) * gen_ops.square(gen_ops.maximum(margin - distance, 0.0)), name="contrastive_loss"
    )


def npairs_loss(labels: Any, embeddings_anchor: Any, embeddings_positive: Any, reg_lambda: float = 0.002, print_losses: bool = False) -> Tensor:
    """Softmax of similarities of anchors and positives [n, d] against labels [n], with the mean square of the embeddings (Sohn 2016)."""
    column = array_ops.reshape(convert_to_tensor(labels), [-1, 1])
    same = math_ops.cast(gen_ops.equal(column, array_ops.transpose(column)), dtypes.float32)
    return _npairs(same, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def npairs_loss_multilabel(
    sparse_labels: Any, embeddings_anchor: Any, embeddings_positive: Any, reg_lambda: float = 0.002, print_losses: bool = False
) -> Tensor:
    """npairs_loss of pairs that have several labels each, a sparse vector of booleans: likeness is by how many labels two have in common."""
    if not all(isinstance(labels, SparseTensor) for labels in sparse_labels):
        raise at_user_line(TypeError("sparse_labels must be a list of SparseTensors, but got %s" % (sparse_labels,)))
    rows = [sparse_ops.sparse_tensor_to_dense(labels, validate_indices=False) for labels in sparse_labels]
    table = math_ops.cast(array_ops.stack(rows), dtypes.float32)
    return _npairs(matrix_ops.matmul(table, table, transpose_b=True), embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def _npairs(likeness: Tensor, anchor: Any, positive: Any, reg_lambda: float, print_losses: bool) -> Tensor:
    anchor, positive = convert_to_tensor(anchor), convert_to_tensor(positive)
    squares = sum(math_ops.reduce_mean(math_ops.reduce_sum(gen_ops.square(e), 1)) for e in (anchor, positive))
    similarity = matrix_ops.matmul(anchor, positive, transpose_b=True)
    wanted = likeness / math_ops.reduce_sum(likeness, 1, True)
    loss = math_ops.reduce_mean(nn_ops.softmax_cross_entropy_with_logits(logits=similarity, labels=wanted))
    penalty = 0.25 * reg_lambda * squares
    if print_losses:
        loss = control_flow_ops.Print(loss, ["regularization loss:", penalty, "xent loss:", loss])
    return loss + penalty


def lifted_struct_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """For each pair of one class in [n, d], its distance and a soft maximum of how far rows of other classes reach within a margin of either;
    the mean of half the squares (Song et al. 2015). labels: [n] integers."""
    column = array_ops.reshape(convert_to_tensor(labels), [-1, 1])
    distances = pairwise_distance(embeddings)
    same = gen_ops.equal(column, array_ops.transpose(column))
    other = math_ops.cast(gen_ops.logical_not(same), dtypes.float32)
    reach = margin - distances
    least = math_ops.reduce_min(reach, 1, True)
    most = math_ops.reduce_max((reach - least) * other, 1, True) + least
    top = gen_ops.maximum(most, array_ops.transpose(most))
    # [i, j, k]: how far k, of another class than j, reaches within the margin of j
    sums = math_ops.reduce_sum(gen_ops.exp(array_ops.expand_dims(reach, 0) - array_ops.expand_dims(top, 2)) * array_ops.expand_dims(other, 0), 2)
    both = top + gen_ops.log(sums + array_ops.transpose(sums)) + distances
    pairs = math_ops.cast(same, dtypes.float32) - gen_ops.matrix_diag(array_ops.ones_like(distances[:, 0]))
    squares = gen_ops.square(gen_ops.maximum(both * pairs, 0.0))
    return math_ops.truediv(0.25 * math_ops.reduce_sum(squares), math_ops.reduce_sum(pairs) / 2.0, name="liftedstruct_loss")


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """For each pair of one class in [n, d], the nearest of another class that is farther off than the positive (else the farthest), within a
    margin of squared distances (Schroff et al. 2015). labels: [n] integers."""
    embeddings = convert_to_tensor(embeddings)
    column = array_ops.reshape(convert_to_tensor(labels), [-1, 1])
    distances = pairwise_distance(embeddings, squared=True)
    same = gen_ops.equal(column, array_ops.transpose(column))
    other = math_ops.cast(gen_ops.logical_not(same), dtypes.float32)
    # [anchor, positive, negative]
    to_negative, to_positive = array_ops.expand_dims(distances, 1), array_ops.expand_dims(distances, 2)
    farther = math_ops.cast(gen_ops.greater(to_negative, to_positive), dtypes.float32) * array_ops.expand_dims(other, 1)
    most = np.float32(np.finfo(np.float32).max)
    nearest_outside = math_ops.reduce_min(farther * to_negative + (1.0 - farther) * most, 2)
    farthest = math_ops.reduce_max(distances * other, 1, True)
    negative = array_ops.where(gen_ops.greater(math_ops.reduce_sum(farther, 2), 0.0), nearest_outside, farthest + array_ops.zeros_like(distances))
    pairs = math_ops.cast(same, dtypes.float32) - gen_ops.matrix_diag(array_ops.ones_like(embeddings[:, 0]))
    return math_ops.reduce_sum(gen_ops.maximum((distances - negative + margin) * pairs, 0.0), name="triplet_semihard_loss") / math_ops.reduce_sum(pairs)
