# SPDX-License-Identifier: Apache-2.0
"""Estimators of tf.contrib.learn that dual coordinate ascent alone trains."""

from __future__ import annotations

from typing import Any, Optional

from millrace.contrib.learn.canned import _Canned, _Classifier, _Regressor
from millrace.contrib.learn.head import Head, regression_head
from millrace.contrib.learn.head_classes import binary_svm_head, multi_class_head
from millrace.contrib.learn.sdca_model import sdca_model_fn
from millrace.contrib.linear_optimizer import SDCAOptimizer
from millrace.framework.errors import at_user_line


class _Sdca(_Canned):
    """A linear model below a head."""

    def __init__(
        self,
        head: Head,
        example_id_column: Any,
        feature_columns: Any,
        model_dir: Any,
        config: Any,
        feature_engineering_fn: Any,
        l1: float,
        l2: float,
        parts: Optional[int],
        partitioner: Any = None,
    ) -> None:
        parts = parts or max(1, getattr(config, "num_worker_replicas", 1))
        optimizer = SDCAOptimizer(example_id_column, parts, None, l1, l2, partitioner=partitioner)
        super().__init__(sdca_model_fn, head, model_dir, config, feature_engineering_fn, feature_columns=list(feature_columns or []), optimizer=optimizer)


class SVM(_Sdca, _Classifier):
    """A linear model with a margin between two classes."""

    def __init__(
        self,
        example_id_column: Any,
        feature_columns: Any,
        weight_column_name: Optional[str] = None,
        model_dir: Optional[str] = None,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        num_loss_partitions: int = 1,
        kernels: Any = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        if kernels is not None:
            raise at_user_line(ValueError("Kernel SVMs are not currently supported."))
        head = binary_svm_head(weight_column_name=weight_column_name)
        given = example_id_column, feature_columns, model_dir, config, feature_engineering_fn
        super().__init__(head, *given, l1_regularization, l2_regularization, num_loss_partitions)


class SDCALogisticClassifier(_Sdca, _Classifier):
    """A linear model that tells how probable one of two classes is."""

    def __init__(
        self,
        example_id_column: Any,
        feature_columns: Any,
        weight_column_name: Optional[str] = None,
        model_dir: Optional[str] = None,
        l1_regularization: float = 0.0,
        l2_regularization: float = 1.0,
        num_loss_partitions: Optional[int] = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        partitioner: Any = None,
    ) -> None:
        head = multi_class_head(2, weight_column_name=weight_column_name)
        given = example_id_column, feature_columns, model_dir, config, feature_engineering_fn
        super().__init__(head, *given, l1_regularization, l2_regularization, num_loss_partitions, partitioner)


class SDCALinearRegressor(_Sdca, _Regressor):
    """A linear model that tells a number."""

    def __init__(
        self,
        example_id_column: Any,
        feature_columns: Any,
        weight_column_name: Optional[str] = None,
        model_dir: Optional[str] = None,
        l1_regularization: float = 0.0,
        l2_regularization: float = 1.0,
        num_loss_partitions: Optional[int] = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        partitioner: Any = None,
    ) -> None:
        head = regression_head(weight_column_name=weight_column_name)
        given = example_id_column, feature_columns, model_dir, config, feature_engineering_fn
        super().__init__(head, *given, l1_regularization, l2_regularization, num_loss_partitions, partitioner)
