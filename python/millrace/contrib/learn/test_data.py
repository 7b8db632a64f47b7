# SPDX-License-Identifier: Apache-2.0
"""Small problems of irises, to try estimators on."""

from __future__ import annotations

from typing import Any, List

import numpy as np

from millrace.contrib.learn.base import Dataset, load_iris
from millrace.framework import dtypes
from millrace.framework.convert import constant


def get_quantile_based_buckets(feature_values: Any, num_buckets: int) -> List[float]:
    """Boundaries that have as many values between them."""
    return list(np.percentile(np.asarray(feature_values), 100.0 * np.arange(1, num_buckets + 1) / (num_buckets + 1.0)))


def prepare_iris_data_for_logistic_regression() -> Dataset:
    """The irises of the first two kinds."""
    iris = load_iris()
    return Dataset(iris.data[iris.target < 2], iris.target[iris.target < 2])


def _input(iris: Dataset) -> Any:
    return {"feature": constant(iris.data, dtypes.float32)}, constant(iris.target.reshape(-1, 1), dtypes.int32)


def iris_input_multiclass_fn() -> Any:
    """(features, labels [150, 1]) of all irises."""
    return _input(load_iris())


def iris_input_logistic_fn() -> Any:
    """(features, labels [100, 1]) of the first two kinds."""
    return _input(prepare_iris_data_for_logistic_regression())
