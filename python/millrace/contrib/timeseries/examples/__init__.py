# SPDX-License-Identifier: Apache-2.0
"""Programs that fit series with tf.contrib.timeseries and say how they go on."""
