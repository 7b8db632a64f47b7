# SPDX-License-Identifier: Apache-2.0
"""Reads SavedModels and session bundles alike: the signatures of a bundle become those of a SavedModel."""

from __future__ import annotations

import os
from typing import Any, Optional, Tuple

from millrace import tf_logging
from millrace.contrib.session_bundle import constants
from millrace.contrib.session_bundle.session_bundle import load_session_bundle_from_path, maybe_session_bundle_dir
from millrace.framework.errors import at_user_line
from millrace.framework.session import Session
from millrace.protos import definitions, manifest
from millrace.saved_model import loader
from millrace.saved_model import signature_constants as names
from millrace.saved_model.reading import maybe_saved_model_directory
from millrace.train import meta_graph


def _add_input_to_signature_def(tensor_name: str, map_key: str, signature_def: Any) -> None:
    signature_def.inputs[map_key].CopyFrom(definitions.TensorInfo(name=tensor_name))


def _add_output_to_signature_def(tensor_name: str, map_key: str, signature_def: Any) -> None:
    signature_def.outputs[map_key].CopyFrom(definitions.TensorInfo(name=tensor_name))


def _convert_default_signature_to_signature_def(signatures: Any) -> Any:
    """The default signature; None for a generic one, which says nothing of what is in and out."""
    given, made = signatures.default_signature, definitions.SignatureDef()
    kind = given.WhichOneof("type")
    if kind == constants.REGRESSION_SIGNATURE:
        made.method_name = names.REGRESS_METHOD_NAME
        _add_input_to_signature_def(given.regression_signature.input.tensor_name, names.REGRESS_INPUTS, made)
        _add_output_to_signature_def(given.regression_signature.output.tensor_name, names.REGRESS_OUTPUTS, made)
        return made
    if kind == constants.CLASSIFICATION_SIGNATURE:
        made.method_name = names.CLASSIFY_METHOD_NAME
        _add_input_to_signature_def(given.classification_signature.input.tensor_name, names.CLASSIFY_INPUTS, made)
        _add_output_to_signature_def(given.classification_signature.classes.tensor_name, names.CLASSIFY_OUTPUT_CLASSES, made)
        _add_output_to_signature_def(given.classification_signature.scores.tensor_name, names.CLASSIFY_OUTPUT_SCORES, made)
        return made
    tf_logging.error("Only classification and regression default signatures are supported for up-conversion. %s is not supported" % kind)
    return None


def _convert_named_signatures_to_signature_def(signatures: Any) -> Any:
    """The signatures named "inputs" and "outputs" as one."""
    inputs, outputs = signatures.named_signatures[names.PREDICT_INPUTS], signatures.named_signatures[names.PREDICT_OUTPUTS]
    kinds = inputs.WhichOneof("type"), outputs.WhichOneof("type")
    if kinds != (constants.GENERIC_SIGNATURE, constants.GENERIC_SIGNATURE):
        raise at_user_line(
            RuntimeError(
                "Named input and output signatures can only be up-converted if they are generic signature. "
                "Input signature type is %s, output signature type is %s" % kinds
            )
        )
    made = definitions.SignatureDef(method_name=names.PREDICT_METHOD_NAME)
    for key, binding in inputs.generic_signature.map.items():
        _add_input_to_signature_def(binding.tensor_name, key, made)
    for key, binding in outputs.generic_signature.map.items():
        _add_output_to_signature_def(binding.tensor_name, key, made)
    return made


def _convert_signatures_to_signature_defs(metagraph_def: Any) -> Tuple[Any, Any]:
    """(the default signature, the named ones) of a bundle as SignatureDefs; None for one that it has not."""
    signatures = manifest.Signatures()
    metagraph_def.collection_def[constants.SIGNATURES_KEY].any_list.value[0].Unpack(signatures)
    default = _convert_default_signature_to_signature_def(signatures) if signatures.HasField("default_signature") else None
    named = _convert_named_signatures_to_signature_def(signatures) if len(signatures.named_signatures) > 1 else None
    return default, named


def _load_saved_model_from_session_bundle_path(export_dir: str, target: str, config: Any) -> Tuple[Session, Any]:
    meta = meta_graph.read_meta_graph_file(os.path.join(export_dir, constants.META_GRAPH_DEF_FILENAME))
    if meta.signature_def:
        raise at_user_line(RuntimeError("Legacy graph contains signature def, unable to up-convert."))
    default, named = _convert_signatures_to_signature_defs(meta)
    key = names.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if default:
        meta.signature_def[key].CopyFrom(default)
        key += "_from_named"
    if named:
        meta.signature_def[key].CopyFrom(named)
    return load_session_bundle_from_path(export_dir, target, config, meta_graph_def=meta)


def load_session_bundle_or_saved_model_bundle_from_path(
    export_dir: str, tags: Optional[Any] = None, target: str = "", config: Any = None
) -> Tuple[Session, Any]:
    """(a session with the model, its MetaGraphDef) of a SavedModel's graph with these tags, or of a session bundle."""
    if maybe_saved_model_directory(export_dir):
        session = Session(target, graph=None, config=config)
        return session, loader.load(session, tags, export_dir)
    if maybe_session_bundle_dir(export_dir):
        return _load_saved_model_from_session_bundle_path(export_dir, target, config)
    raise at_user_line(RuntimeError("SessionBundle or SavedModelBundle not found at specified export location: %s" % export_dir))
