# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.kfac: optimization by approximate Fisher informations, which are Kronecker products for each layer."""

from millrace.contrib.kfac import curvature_products, estimator, fisher_blocks, fisher_factors, layer_collection, loss_functions, op_queue, optimizer, utils

curvature_matrix_vector_products = curvature_products
