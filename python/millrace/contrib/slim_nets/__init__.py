# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.slim.nets: networks for images, with the names of variables that published checkpoints have."""

from millrace.contrib.slim_nets import alexnet, inception, inception_v1, inception_v2, inception_v3, overfeat, resnet_utils, resnet_v1, resnet_v2, vgg
