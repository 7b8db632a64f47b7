# SPDX-License-Identifier: Apache-2.0
"""What tf.test is made of: test cases, comparisons of graphs, numeric gradients, benchmarks."""
