# SPDX-License-Identifier: Apache-2.0
"""Names of tf.compat.v2 that are not provided, where tf.compat.v1 has something else under them: they say so when they are called."""

from __future__ import annotations

from millrace.framework.missing import Missing

_CANNED = "BaselineClassifier BaselineEstimator BaselineRegressor DNNClassifier DNNEstimator DNNRegressor DNNLinearCombinedClassifier".split()
_CANNED += "DNNLinearCombinedEstimator DNNLinearCombinedRegressor LinearClassifier LinearEstimator LinearRegressor".split()

_TABLE = {
    "keras.callbacks.TensorBoard": "tf.compat.v1.keras.callbacks.TensorBoard",
    "keras.estimator.model_to_estimator": "tf.compat.v1.keras.estimator.model_to_estimator, whose checkpoints are those of tf.compat.v1.train.Saver",
    **{"estimator." + name: "tf.compat.v1.estimator.%s, with optimizers of tf.compat.v1.train" % name for name in _CANNED},
}
for _path, _instead in _TABLE.items():
    globals()[_path.rpartition(".")[2]] = Missing("compat.v2." + _path, _instead)
