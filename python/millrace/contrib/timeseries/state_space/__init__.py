# SPDX-License-Identifier: Apache-2.0
"""State space models of time series."""
