# SPDX-License-Identifier: Apache-2.0
"""tf.keras.applications.vgg16."""

from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.imagenet_utils import preprocess_input as preprocess_input
from millrace.keras.applications.vgg import VGG16 as VGG16
