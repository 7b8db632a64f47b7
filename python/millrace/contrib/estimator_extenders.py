# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator: estimators that hand features on, optimizers that clip."""

from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.contrib.wrapping_optimizers import _Wrapping
from millrace.estimator.estimator import Estimator
from millrace.estimator.export_output import PredictOutput
from millrace.estimator.spec import EstimatorSpec
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import sparse_ops
from millrace.ops.math_ops import clip_by_global_norm
from millrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY


class _ClippingOptimizer(_Wrapping):
    def __init__(self, opt: Any, clip_norm: Any) -> None:
        super().__init__(opt, False, "ClipByNorm" + opt.get_name())
        self._clip_norm = clip_norm

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """Clips the gradients, all together, and leaves them to the optimizer."""
        gradients, variables = zip(*grads_and_vars)
        clipped, _ = clip_by_global_norm(list(gradients), self._clip_norm)
        return self._opt.apply_gradients(list(zip(clipped, variables)), global_step, name)


def clip_gradients_by_norm(optimizer: Any, clip_norm: Any) -> _Wrapping:
    """An optimizer that applies gradients whose norm, that of all together, is at most clip_norm."""
    return _ClippingOptimizer(optimizer, clip_norm)


def forward_features(estimator: Estimator, keys: Any = None, sparse_default_values: Optional[Dict[str, Any]] = None) -> Estimator:
    """An estimator that predicts these features, too, or all; sparse ones become dense with the values given for them."""
    if keys is not None:
        keys = [keys] if isinstance(keys, str) else keys
        if not isinstance(keys, (list, tuple)):
            raise at_user_line(TypeError("keys should be either a string or a list of strings. Given: %s" % type(keys)))
        for key in keys:
            if not isinstance(key, str):
                raise at_user_line(TypeError("All items in the given keys list should be a string. There exist an item with type: %s" % type(key)))

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None:
            return spec
        if not isinstance(spec.predictions, dict):
            raise at_user_line(ValueError("Predictions should be a dict to be able to forward features. Given: %s" % type(spec.predictions)))
        forwarded = {key: _dense(features, key, sparse_default_values or {}) for key in (features if keys is None else keys)}
        for key in forwarded:
            if key in spec.predictions:
                raise at_user_line(
                    ValueError(
                        "Cannot forward feature key (%s). Since it does exist in predictions. Existing prediction keys: %s." % (key, sorted(spec.predictions))
                    )
                )
        exports = dict(spec.export_outputs or {})
        for name in (DEFAULT_SERVING_SIGNATURE_DEF_KEY, "predict"):
            if isinstance(exports.get(name), PredictOutput):
                exports[name] = PredictOutput({**exports[name].outputs, **forwarded})
        return spec._replace(predictions={**spec.predictions, **forwarded}, export_outputs=exports or spec.export_outputs)

    return Estimator(model_fn, estimator.model_dir, estimator.config)


def _dense(features: Any, key: str, defaults: Dict[str, Any]) -> Any:
    if key not in features:
        raise at_user_line(ValueError('keys should be exist in features. Key "%s" is not in features dict, which has %s.' % (key, sorted(features))))
    feature = convert_to_tensor_or_sparse_tensor(features[key])
    if key in defaults:
        if not isinstance(feature, SparseTensor):
            raise at_user_line(ValueError("Feature (%s) is expected to be a `SparseTensor`." % key))
        feature = sparse_ops.sparse_tensor_to_dense(feature, default_value=defaults[key])
    if not isinstance(feature, Tensor):
        raise at_user_line(
            ValueError(
                "Feature (%s) should be a Tensor. Please use `keys` argument of forward_features to filter unwanted features, or add key to "
                "argument `sparse_default_values`. Type of features[%s] is %s." % (key, key, type(feature))
            )
        )
    return feature
