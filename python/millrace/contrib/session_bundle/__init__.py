# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.session_bundle: exports of the form that came before SavedModels, written, read, and given the signatures of SavedModels."""

from millrace.contrib.session_bundle import bundle_shim, constants, exporter, gc, session_bundle
