# SPDX-License-Identifier: Apache-2.0
"""Ways through binary trees of soft decisions. Node i has the children 2 i + 1, on the left, and 2 i + 2; an example x goes to the left of it with the
probability sigmoid(w_i . x - b_i).

input_data: [batch, features]. tree_parameters: the w, [nodes, features]. tree_biases: the b, [nodes]. All are f32, and have gradients."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops, random_ops
from millrace.ops.gather_ops import gather


def _f32(value: Any, name: str) -> Tensor:
    return convert_to_tensor(value, dtype=dtypes.float32, name=name)


def _left(input_data: Any, tree_parameters: Any, tree_biases: Any) -> Tensor:
    """How probably each example goes to the left of each node, [batch, nodes]."""
    weights = _f32(tree_parameters, "tree_parameters")
    return math_ops.sigmoid(matrix_ops.matmul(_f32(input_data, "input_data"), weights, transpose_b=True) - _f32(tree_biases, "tree_biases"))


def _reached(left: Tensor, max_nodes: int) -> Tensor:
    """How probably each example reaches each node, [batch, max_nodes], level by level."""
    level = array_ops.ones_like(left[:, :1])
    levels, first, wide = [level], 0, 1
    while first + wide < max_nodes:  # wide nodes from the first on are the level
        goes = left[:, first : first + wide]
        first, wide = first + wide, 2 * wide
        level = array_ops.reshape(array_ops.stack([level * goes, level * (1.0 - goes)], 2), [-1, wide])
        levels.append(level)
    made = array_ops.concat(levels, 1)[:, :max_nodes]
    made.set_shape([left.get_shape()[0], max_nodes])
    return made


def routing_function(input_data: Any, tree_parameters: Any, tree_biases: Any, max_nodes: int, name: Optional[str] = None) -> Tensor:
    """How probably each example reaches each of max_nodes nodes, [batch, max_nodes]."""
    with name_scope(name, "RoutingFunction", [input_data, tree_parameters, tree_biases]):
        return _reached(_left(input_data, tree_parameters, tree_biases), max_nodes)


def _features_of_nodes(nodes: int, features: int, count: int, layer_num: int, seed: int) -> np.ndarray:
    """The numbers of the features that each node looks at, in order, [nodes, count]: the same for the same layer and seed."""
    return np.stack([np.sort(np.random.RandomState([seed, layer_num, node]).permutation(features)[:count]) for node in range(nodes)])


def k_feature_routing_function(
    input_data: Any,
    tree_parameters: Any,
    tree_biases: Any,
    layer_num: int,
    max_nodes: int,
    num_features_per_node: int,
    random_seed: int,
    name: Optional[str] = None,
) -> Tensor:
    """routing_function of nodes that look at num_features_per_node features each, which the seed draws; tree_parameters are [nodes, of a node]."""
    with name_scope(name, "KFeatureRoutingFunction", [input_data, tree_parameters, tree_biases]):
        data, count = _f32(input_data, "input_data"), int(num_features_per_node)
        features = data.get_shape().with_rank(2)[1].value
        if features is None or count > features:
            raise ValueError("nodes look at %d features of input_data, whose shape is %s" % (count, data.get_shape()))
        chosen = gather(data, _features_of_nodes(max_nodes, features, count, layer_num, random_seed), axis=1)
        sums = math_ops.reduce_sum(chosen * _f32(tree_parameters, "tree_parameters"), [2])
        return _reached(math_ops.sigmoid(sums - _f32(tree_biases, "tree_biases")), max_nodes)


def _walk(left: Tensor, tree_depth: int, decide: Any) -> Tuple[Tensor, Tensor]:
    """(how probable the way is up to each node of it, its nodes), [batch, tree_depth] each. decide: of probabilities of the left, whether to go there."""
    node = array_ops.zeros_like(left[:, 0], dtype=dtypes.int32)
    chance = array_ops.ones_like(left[:, 0])
    nodes, chances = [node], [chance]
    for _ in range(tree_depth - 1):
        goes = math_ops.reduce_sum(left * array_ops.one_hot(node, array_ops.shape(left)[1]), [1])
        to_left = decide(goes)
        node = 2 * node + array_ops.where(to_left, array_ops.ones_like(node), 2 * array_ops.ones_like(node))
        chance = chance * array_ops.where(to_left, goes, 1.0 - goes)
        nodes.append(node)
        chances.append(chance)
    return array_ops.stack(chances, 1), array_ops.stack(nodes, 1)


def hard_routing_function(
    input_data: Any, tree_parameters: Any, tree_biases: Any, max_nodes: int, tree_depth: int, name: Optional[str] = None
) -> Tuple[Tensor, Tensor]:
    """(path_probability, path) of each example, [batch, tree_depth] each, f32 and i32: it goes to the left where that has a half or more."""
    del max_nodes  # the parameters have as many rows
    with name_scope(name, "HardRoutingFunction", [input_data, tree_parameters, tree_biases]):
        return _walk(_left(input_data, tree_parameters, tree_biases), tree_depth, lambda goes: gen_ops.greater_equal(goes, 0.5))


def stochastic_hard_routing_function(
    input_data: Any, tree_parameters: Any, tree_biases: Any, tree_depth: int, random_seed: int, name: Optional[str] = None
) -> Tuple[Tensor, Tensor]:
    """(path_probability, path) of each example, [batch, tree_depth] each, f32 and i32, of paths that are drawn by the probabilities."""
    with name_scope(name, "StochasticHardRoutingFunction", [input_data, tree_parameters, tree_biases]):

        def drawn(goes: Tensor) -> Tensor:
            return gen_ops.less(random_ops.random_uniform(array_ops.shape(goes), seed=random_seed), goes)

        return _walk(_left(input_data, tree_parameters, tree_biases), tree_depth, drawn)


def unpack_path(path: Any, path_values: Any, name: Optional[str] = None) -> Tensor:
    """[batch, 2^depth - 1] with path_values [batch, depth] at the nodes that path [batch, depth], i32, has, and zeros."""
    with name_scope(name, "UnpackPath", [path, path_values]):
        nodes = convert_to_tensor(path, dtype=dtypes.int32, name="path")
        depth = nodes.get_shape().with_rank(2)[1].value
        if depth is None:
            raise ValueError("the length of path must be known, its shape is %s" % nodes.get_shape())
        return math_ops.reduce_sum(array_ops.one_hot(nodes, 2**depth - 1) * array_ops.expand_dims(_f32(path_values, "path_values"), 2), [1])


def Load() -> None:
    """Nothing to load: the functions above are there."""
