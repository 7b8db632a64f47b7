# SPDX-License-Identifier: Apache-2.0
"""A head of tf.contrib.learn whose logits are the parameters of a distribution of the labels."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from millrace.contrib.learn import head_measures as measures
from millrace.contrib.learn.head import Head, RegressionHead
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, math_ops


class DistributionRegressionHead(RegressionHead):
    """Trains the distribution that a function makes of logits to give the labels a high probability; scores are means."""

    def __init__(self, make_distribution_fn: Callable[[Any], Any], logits_dimension: int, **names: Any) -> None:
        super().__init__(logits_dimension, lambda logits: self.distribution(logits).mean(), False, **names)
        if not callable(make_distribution_fn):
            raise at_user_line(TypeError("`make_distribution_fn` must be a callable function."))
        self._make_distribution = make_distribution_fn
        self._made: Dict[Tensor, Any] = {}

    distributions = property(lambda self: self._made, doc="The distributions, by logits.")

    def distribution(self, logits: Any, name: Optional[str] = None) -> Any:
        """The distribution of logits, which is made once."""
        logits = convert_to_tensor(logits, name=name or "logits")
        if logits not in self._made:
            self._made[logits] = self._make_distribution(logits)
        return self._made[logits]

    def losses(self, labels: Any, logits: Any, weights: Any) -> Tuple[Any, Any]:
        """Negative logarithms of the labels' probabilities."""
        distribution = self.distribution(logits)
        shape = array_ops.concat([array_ops.shape(labels)[:-1], distribution.event_shape_tensor()], 0)
        return measures.weighted_loss(-distribution.log_prob(array_ops.reshape(math_ops.cast(labels, distribution.dtype), shape)), weights)


def estimator_head_distribution_regression(
    make_distribution_fn: Callable[[Any], Any],
    label_dimension: int = 1,
    logits_dimension: Optional[int] = None,
    label_name: Any = None,
    weight_column_name: Any = None,
    enable_centered_bias: bool = False,
    head_name: Any = None,
) -> Head:
    """A head of labels of the distribution that make_distribution_fn makes of logits, of which there are label_dimension unless given."""
    names = {"label_name": label_name, "weight_column_name": weight_column_name, "head_name": head_name, "centered": enable_centered_bias}
    return DistributionRegressionHead(make_distribution_fn, label_dimension if logits_dimension is None else logits_dimension, **names)
