# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn: data sets and vocabularies; estimators are not provided."""
from millrace.contrib.learn import datasets, preprocessing  # noqa: F401
from millrace.framework import missing as _missing


class ModeKeys:
    """What a model is built for."""

    TRAIN, EVAL, INFER = "train", "eval", "infer"


_missing.fill(globals(), "contrib.learn.", {n: "a training loop with tf.Session" for n in (
    "Estimator", "DNNClassifier", "DNNRegressor", "LinearClassifier", "LinearRegressor", "Experiment", "RunConfig", "run_n", "SKCompat",
    "infer_real_valued_columns_from_input", "ModelFnOps", "learn_runner")})
