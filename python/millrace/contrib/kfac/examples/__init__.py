# SPDX-License-Identifier: Apache-2.0
"""Programs that train networks on MNIST by tf.contrib.kfac."""
