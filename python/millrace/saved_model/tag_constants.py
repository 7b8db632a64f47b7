# SPDX-License-Identifier: Apache-2.0
"""Tags of the graphs in a SavedModel."""

SERVING = "serve"
TRAINING = "train"
EVAL = "eval"
GPU = "gpu"
TPU = "tpu"
