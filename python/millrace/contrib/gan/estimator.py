# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
# ruff: noqa: F401
"""tf.contrib.gan.estimator: GANs as estimators."""

from millrace.contrib.gan.gan_estimator import GANEstimator, GANHead, SummaryType, gan_head
from millrace.contrib.gan.stargan_estimator import StarGANEstimator, stargan_prediction_input_fn_wrapper
