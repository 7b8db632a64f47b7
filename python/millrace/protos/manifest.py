# SPDX-License-Identifier: Apache-2.0
"""The messages of session bundles, of the package tensorflow.serving."""

from millrace.protos.definitions import serving as _serving

TensorBinding = _serving.TensorBinding
AssetFile = _serving.AssetFile
Signature = _serving.Signature
Signatures = _serving.Signatures
RegressionSignature = _serving.RegressionSignature
ClassificationSignature = _serving.ClassificationSignature
GenericSignature = _serving.GenericSignature
