# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.boosted_trees: the operations that gradient boosted trees are made of: sums of gradients, quantiles of features, splits of nodes, ensembles."""
