# SPDX-License-Identifier: Apache-2.0
"""What programs import of tensorflow.models, which came with TensorFlow 0.x: readers of text."""
