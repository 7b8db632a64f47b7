# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn: data sets and vocabularies; estimators are in tf.estimator."""
from typing import Any as _Any

from millrace.contrib.learn import datasets, graph_actions, preprocessing  # noqa: F401
from millrace.contrib.learn.graph_actions import run_feeds, run_n  # noqa: F401
from millrace.framework import missing as _missing


class ModeKeys:
    """What a model is built for."""

    TRAIN, EVAL, INFER = "train", "eval", "infer"


_missing.fill(globals(), "contrib.learn.", {n: "tf.estimator" for n in (
    "Estimator", "DNNClassifier", "DNNRegressor", "LinearClassifier", "LinearRegressor", "Experiment", "RunConfig", "SKCompat",
    "infer_real_valued_columns_from_input", "ModelFnOps", "learn_runner")})


def __getattr__(name: str) -> _Any:
    if name == "python":  # the folder that TensorFlow's own modules lay in
        from millrace import python
        return python._Path("contrib.learn.python")
    raise AttributeError("tf.contrib.learn.%s is not provided by Millrace" % name)
