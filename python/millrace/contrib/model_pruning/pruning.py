# SPDX-License-Identifier: Apache-2.0
"""Which weights are set to zero, and when."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple

from millrace import summary, tf_logging
from millrace.contrib.hparams import HParams
from millrace.contrib.model_pruning import weights as pruned
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, init_ops, math_ops, nn_ops, window_ops
from millrace.ops.variable_scope import AUTO_REUSE, get_variable, variable_scope
from millrace.ops.variables import PartitionedVariable, assign
from millrace.train.global_step import get_global_step


def get_weight_sparsity() -> List[Tensor]:
    """The share of zeros in each mask."""
    return [nn_ops.zero_fraction(mask) for mask in pruned.get_masks()]


def get_pruning_hparams() -> HParams:
    """The settings of Pruning. Steps at which it begins and ends (-1: never), how many steps lie between its updates, and how the share of
    zeros grows from initial_sparsity to target_sparsity between two steps: by (1 - progress) to an exponent. weight_sparsity_map has
    "expression:sparsity" and block_dims_map "expression:2x4" for weights by their names; nbins is taken and not used, as in 1.15. do_not_prune, as before
    1.10, has parts of the names of weights that are left as they are."""
    return HParams(
        name="model_pruning",
        begin_pruning_step=0,
        end_pruning_step=-1,
        weight_sparsity_map=[""],
        block_dims_map=[""],
        threshold_decay=0.0,
        do_not_prune=[""],
        pruning_frequency=10,
        nbins=256,
        block_height=1,
        block_width=1,
        block_pooling_function="AVG",
        initial_sparsity=0.0,
        target_sparsity=0.5,
        sparsity_function_begin_step=0,
        sparsity_function_end_step=100,
        sparsity_function_exponent=3.0,
        use_tpu=False,
    )


def _by_expressions(texts: List[str]) -> Dict[str, str]:
    """{expression: what is behind its colon}."""
    return dict(text.split(":") for text in texts if text)


def _matching(table: Dict[str, Any], name: str, what: str, otherwise: Any) -> Any:
    found = [value for expression, value in table.items() if re.search(expression, name)]
    if len(found) > 1:
        raise at_user_line(ValueError("Multiple matches in %s for weight %s" % (what, name)))
    return found[0] if found else otherwise


class Pruning:
    """Updates of the masks of a graph's weights."""

    def __init__(self, spec: Any = None, global_step: Any = None, sparsity: Any = None) -> None:
        self._spec = spec or get_pruning_hparams()
        self._validate_spec()
        self._global_step = math_ops.cast(get_global_step() if global_step is None else global_step, dtypes.int32)
        self._sparsity = self._setup_sparsity() if sparsity is None else sparsity
        self._assign_ops: List[Any] = []
        self._last_update_step = self._setup_last_update_step()
        self._block_dims = [self._spec.block_height, self._spec.block_width]
        self._block_pooling_function = self._spec.block_pooling_function
        self._block_dims_map = {key: [int(n) for n in text.split("x")] for key, text in _by_expressions(self._spec.block_dims_map).items()}
        self._weight_sparsity_map = {key: float(text) for key, text in _by_expressions(self._spec.weight_sparsity_map).items()}
        if any(value >= 1.0 for value in self._weight_sparsity_map.values()):
            raise at_user_line(ValueError("Weight sparsity can not exceed 1.0"))
        for expression, sizes in self._block_dims_map.items():
            if len(sizes) != 2:
                raise at_user_line(ValueError("Expected 2 values for block dim for %s, got %s" % (expression, sizes)))

    def _validate_spec(self) -> None:
        spec = self._spec
        wrong = [
            (spec.begin_pruning_step < 0, "Illegal value for begin_pruning_step"),
            (
                spec.begin_pruning_step >= spec.end_pruning_step != -1,
                "Pruning must begin before it can end. begin_step=%d, end_step=%d. Set end_pruning_step to -1 if pruning is required till training stops"
                % (spec.begin_pruning_step, spec.end_pruning_step),
            ),
            (spec.sparsity_function_begin_step < 0, "Illegal value for sparsity_function_begin_step"),
            (spec.sparsity_function_begin_step >= spec.sparsity_function_end_step, "Sparsity function requires begin_step < end_step"),
            *((not 0.0 <= spec.get(name) < 1.0, name + " must be in range [0,1)") for name in ("threshold_decay", "initial_sparsity", "target_sparsity")),
        ]
        for is_so, message in wrong:
            if is_so:
                raise at_user_line(ValueError(message))

    def _setup_sparsity(self) -> Tensor:
        spec, begin = self._spec, self._spec.sparsity_function_begin_step
        with name_scope(spec.name):
            done = math_ops.cast(self._global_step - begin, dtypes.float32) / float(spec.sparsity_function_end_step - begin)
            left = 1.0 - math_ops.minimum(1.0, math_ops.maximum(0.0, done))
            reached = (spec.initial_sparsity - spec.target_sparsity) * math_ops.pow(left, float(spec.sparsity_function_exponent))
            return math_ops.add(reached, spec.target_sparsity, name="sparsity")

    def _setup_last_update_step(self) -> Any:
        with variable_scope(self._spec.name, use_resource=self._spec.use_tpu, reuse=AUTO_REUSE):
            return get_variable("last_mask_update_step", [], dtypes.int32, init_ops.zeros_initializer(), trainable=False)

    def _get_block_dims(self, weight_name: str) -> List[int]:
        return _matching(self._block_dims_map, weight_name, "block_dims_map", self._block_dims)

    def _get_sparsity(self, weight_name: str) -> Any:
        """The share of zeros of a weight at the moment: its own is reached along with the one of all."""
        target = _matching(self._weight_sparsity_map, weight_name, "weight_sparsity_map", None)
        return self._sparsity if target is None else self._sparsity * (target / self._spec.target_sparsity)

    def _update_mask(self, weights: Any, threshold: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
        """(the new bound, the new mask): the bound leaves out the share of the weights that is to be zero, and moves from the old one."""
        sparsity = self._get_sparsity(name or weights.op.name)
        with name_scope(weights.op.name + "_pruning_ops"):
            sizes = math_ops.abs(weights)
            count = array_ops.size(sizes)
            kept = math_ops.cast(math_ops.round(math_ops.cast(count, dtypes.float32) * (1 - sparsity)), dtypes.int32)
            ordered, _ = nn_ops.top_k(array_ops.reshape(sizes, [-1]), k=count)
            decay = self._spec.threshold_decay
            bound = math_ops.add_n([array_ops.gather(ordered, kept - 1) * (1 - decay), threshold * decay])
            return bound, math_ops.cast(sizes >= bound, dtypes.float32)

    def _maybe_update_block_mask(self, weights: Any, threshold: Any) -> Tuple[Tensor, Tensor]:
        """_update_mask by blocks, where these are asked for and the weights are a matrix but for dimensions of 1."""
        matrix = array_ops.squeeze(weights)
        blocks = self._get_block_dims(weights.op.name)
        if matrix.get_shape().ndims != 2 or blocks == [1, 1]:
            return self._update_mask(weights, threshold)
        if self._block_pooling_function not in ("AVG", "MAX"):
            raise at_user_line(ValueError("Unknown pooling function for block sparsity: %s" % self._block_pooling_function))
        height, width = matrix.get_shape().as_list()
        window: List[Any] = [size if block == -1 else block for block, size in zip(blocks, (height, width))]
        with name_scope(weights.op.name + "_pruning_ops"):
            sizes = array_ops.reshape(math_ops.abs(matrix), [1, height, width, 1])
            pooled = window_ops.pool(sizes, window, self._block_pooling_function, "SAME", strides=window, name=weights.op.name + "_pooled")
            bound, mask = self._update_mask(array_ops.squeeze(pooled, [0, 3]), threshold)
            whole = array_ops.slice(pruned.expand_tensor(mask, window), [0, 0], [height, width])
            return bound, array_ops.reshape(whole, weights.get_shape().as_list())

    def _get_mask_assign_ops(self) -> None:
        masks, weights, thresholds = pruned.get_masks(), pruned.get_weights(), pruned.get_thresholds()
        if len(masks) != len(thresholds):
            raise at_user_line(ValueError("Number of masks %s and number of thresholds %s mismatch" % (len(masks), len(thresholds))))
        left = [part for part in self._spec.get("do_not_prune", [""]) if part]
        for mask, weight, threshold in zip(masks, weights, thresholds):
            if any(part in mask.name for part in left):
                continue
            parted = isinstance(weight, PartitionedVariable)
            bound, new_mask = self._maybe_update_block_mask(weight.as_tensor() if parted else weight, threshold)
            self._assign_ops.append(pruned.variable_assign(threshold, bound))
            self._assign_ops.append((pruned.partitioned_variable_assign if parted else pruned.variable_assign)(mask, new_mask))

    def mask_update_op(self) -> Operation:
        """An operation that sets all masks by the weights of the moment."""
        with name_scope(self._spec.name):
            if not self._assign_ops:
                self._get_mask_assign_ops()
            noted = assign(self._last_update_step, self._global_step, name="last_mask_update_step_assign")
            with control_dependencies([noted, *self._assign_ops]):
                tf_logging.info("Updating masks.")
                return control_flow_ops.no_op("mask_update")

    def conditional_mask_update_op(self) -> Any:
        """An operation that sets all masks in the steps that the settings name."""
        with name_scope(self._spec.name):
            begin, end = self._spec.begin_pruning_step, self._spec.end_pruning_step
            within = gen_ops.logical_and(self._global_step >= begin, True if end < 0 else self._global_step <= end)
            due = self._last_update_step + self._spec.pruning_frequency <= self._global_step
            now = gen_ops.logical_and(within, due)
        return control_flow_ops.cond(now, self.mask_update_op, control_flow_ops.no_op)

    def add_pruning_summaries(self) -> None:
        """Summaries of the shares of zeros, and of the bounds."""
        with name_scope(self._spec.name + "_summaries"):
            summary.scalar("sparsity", self._sparsity)
            summary.scalar("last_mask_update_step", self._last_update_step)
            for mask, threshold in zip(pruned.get_masks(), pruned.get_thresholds()):
                summary.scalar(mask.op.name + "/sparsity", nn_ops.zero_fraction(mask))
                summary.scalar(threshold.op.name + "/threshold", threshold)

    def print_hparams(self) -> None:
        """Logs the settings."""
        tf_logging.info(self._spec.to_json())
