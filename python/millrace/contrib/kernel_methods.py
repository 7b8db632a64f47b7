# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kernel_methods: random Fourier features (Rahimi and Recht, 2007), a hinge loss of many classes, and linear classifiers of mapped features."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from millrace import losses, tf_logging
from millrace.contrib import feature_columns as columns
from millrace.contrib.learn.canned import LinearClassifier
from millrace.contrib.learn.estimators import Estimator
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, matrix_ops, nn_ops


class InvalidShapeError(Exception):
    """A tensor to be mapped has another shape than it must."""


class DenseKernelMapper:
    """Maps dense rows to rows whose products approximate a kernel."""

    def map(self, input_tensor: Any) -> Tensor:
        """The mapped rows [n, output_dim]."""
        raise NotImplementedError("map is not implemented for %s." % self)

    @property
    def name(self) -> str:
        """The mapper's name."""
        raise NotImplementedError("name is not implemented for %s." % self)

    @property
    def output_dim(self) -> int:
        """The width of mapped rows."""
        raise NotImplementedError("output_dim is not implemented for %s." % self)


class RandomFourierFeatureMapper(DenseKernelMapper):
    """sqrt(2 / output_dim) cos(x W + b): products of mapped rows approximate exp(-|x - y|^2 / (2 stddev^2)), the Gaussian kernel."""

    def __init__(self, input_dim: int, output_dim: int, stddev: float = 1.0, seed: int = 1, name: Optional[str] = None) -> None:
        self._input_dim, self._output_dim, self._stddev, self._seed, self._name = input_dim, output_dim, stddev, seed, name

    name = property(lambda self: self._name or str(id(self)), doc="The mapper's name.")
    input_dim = property(lambda self: self._input_dim, doc="The width of rows.")
    output_dim = property(lambda self: self._output_dim, doc="The width of mapped rows.")

    def map(self, input_tensor: Any) -> Tensor:
        """The mapped rows [n, output_dim]."""
        shape = input_tensor.get_shape()
        if shape.ndims != 2:
            raise at_user_line(InvalidShapeError("The shape of the tensor should be 2. Got %s instead." % shape.ndims))
        if shape[1].value != self._input_dim:
            raise at_user_line(InvalidShapeError("Invalid dimension: expected %s input features, got %s instead." % (self._input_dim, shape[1].value)))
        random = np.random.RandomState(self._seed)
        directions = random.normal(scale=1.0 / self._stddev, size=[self._input_dim, self._output_dim])
        phases = random.uniform(0.0, 2 * np.pi, [self._output_dim])
        turned = matrix_ops.matmul(input_tensor, convert_to_tensor(directions, dtypes.float32)) + convert_to_tensor(phases, dtypes.float32)
        return math.sqrt(2.0 / self._output_dim) * gen_ops.cos(turned)


def sparse_multiclass_hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """max(0, 1 + the highest logit of another class - that of the labelled one) (Crammer and Singer, 2001). Labels are numbers of classes."""
    with name_scope(scope, "sparse_multiclass_hinge_loss", [logits, labels]) as scope:
        if logits.get_shape().ndims != 2:
            raise at_user_line(ValueError("logits should have rank 2 ([batch_size, num_classes]). Given rank is %s" % logits.get_shape().ndims))
        if labels.dtype not in (dtypes.int32, dtypes.int64):
            raise at_user_line(ValueError("Invalid dtype for labels: %s. Acceptable dtypes: int32 and int64" % labels.dtype))
        if labels.get_shape().ndims not in (1, 2):
            raise at_user_line(ValueError("labels should have rank 1 ([batch_size]) or 2 ([batch_size, 1]). Given rank is %s" % labels.get_shape().ndims))
        logits, classes = math_ops.cast(logits, dtypes.float32), array_ops.shape(logits)[1]
        with control_dependencies([check_ops.assert_less(labels, math_ops.cast(classes, labels.dtype))]):
            labels = array_ops.reshape(labels, [-1])
        weights = convert_to_tensor(weights)
        if weights.get_shape().ndims not in (0, 1, 2):
            raise at_user_line(ValueError("non-scalar weights should have rank 1 ([batch_size]) or 2 ([batch_size, 1])."))
        if weights.get_shape().ndims:
            weights = array_ops.reshape(weights, [-1])
            weights.get_shape().assert_is_compatible_with(labels.get_shape())
        mine = array_ops.one_hot(labels, classes)
        labelled = math_ops.reduce_sum(mine * logits, 1, keepdims=True)
        each = math_ops.reduce_max(nn_ops.relu(logits - labelled + 1.0 - mine), 1)
        return losses.compute_weighted_loss(each, weights, scope, loss_collection, reduction=reduction)


class KernelLinearClassifier(LinearClassifier):
    """A linear classifier of feature columns and of what mappers make of real-valued ones: kernel_mappers has a list for each of these."""

    def __init__(
        self,
        feature_columns: Any = None,
        model_dir: Optional[str] = None,
        n_classes: int = 2,
        weight_column_name: Optional[str] = None,
        optimizer: Any = None,
        kernel_mappers: Optional[Dict[Any, Sequence[DenseKernelMapper]]] = None,
        config: Any = None,
    ) -> None:
        if not feature_columns and not kernel_mappers:
            raise at_user_line(ValueError("You should set at least one of feature_columns, kernel_mappers."))
        self._kernel_mappers = dict(kernel_mappers or {})
        if not all(isinstance(mapper, DenseKernelMapper) for mappers in self._kernel_mappers.values() for mapper in mappers):
            raise at_user_line(ValueError("Invalid kernel mappers."))
        for column in list(self._kernel_mappers):
            if not isinstance(column, columns._RealValuedColumn):
                tf_logging.warning("Only RealValuedColumns are mapped: %s is left as it is.", column.name)
                del self._kernel_mappers[column]
        super().__init__(
            [*(feature_columns or []), *self._mapped_columns()],
            model_dir,
            n_classes=n_classes,
            weight_column_name=weight_column_name,
            optimizer=optimizer,
            config=config,
        )

    def _mapped_columns(self) -> List[Any]:
        return [
            columns.real_valued_column(column.name + "_MAPPED", sum(mapper.output_dim for mapper in mappers))
            for column, mappers in self._kernel_mappers.items()
        ]

    def model(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """The linear model of the features and the mapped ones."""
        mapped = {
            column.name + "_MAPPED": array_ops.concat([mapper.map(features[column.name]) for mapper in mappers], 1)
            for column, mappers in self._kernel_mappers.items()
        }
        return super().model({**features, **mapped}, labels, mode, params, config)

    predict = Estimator.predict  # dicts, where LinearClassifier tells classes
