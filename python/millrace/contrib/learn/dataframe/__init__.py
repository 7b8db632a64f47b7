# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn's data frames of early 1.x: columns of files and of tables in memory, functions of them, and what feeds estimators with them."""

from millrace.contrib.learn.dataframe.frame import DataFrame, TensorFlowDataFrame
from millrace.contrib.learn.dataframe.series import PredefinedSeries, Series, TensorFlowTransform, Transform, TransformedSeries, parameter
from millrace.contrib.learn.dataframe.sources import NumpySource, PandasSource, ReaderSource
from millrace.contrib.learn.dataframe.transforms import BooleanMask, Difference, HashFast, Sum
