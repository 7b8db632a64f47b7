# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.saved_model: graphs with their variables in a folder, and what they are called from outside."""

from typing import Any as _Any
from typing import Dict as _Dict

from millrace.framework import not_provided as _not_provided
from millrace.saved_model.constants import *  # noqa: F403
from millrace.saved_model.signature_constants import *  # noqa: F403
from millrace.saved_model.tag_constants import *  # noqa: F403
from millrace.saved_model import builder, constants, loader, main_op, signature_constants, signature_def_utils, tag_constants, utils
from millrace.saved_model.builder import SavedModelBuilder as Builder
from millrace.saved_model.loader import load
from millrace.saved_model.reading import maybe_saved_model_directory
from millrace.saved_model.reading import maybe_saved_model_directory as contains_saved_model
from millrace.saved_model.main_op import main_op_with_restore
from millrace.saved_model.signature_def_utils import (
    build_signature_def,
    classification_signature_def,
    is_valid_signature,
    predict_signature_def,
    regression_signature_def,
)
from millrace.saved_model.utils import build_tensor_info, get_tensor_from_tensor_info


def simple_save(session: _Any, export_dir: _Any, inputs: _Dict[str, _Any], outputs: _Dict[str, _Any], legacy_init_op: _Any = None) -> None:
    """Writes a session's graph for serving, with one signature from inputs to outputs."""
    made = builder.SavedModelBuilder(export_dir)
    made.add_meta_graph_and_variables(
        session,
        [tag_constants.SERVING],
        legacy_init_op=legacy_init_op,
        clear_devices=True,
        signature_def_map={signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)},
    )
    made.save()


__getattr__ = _not_provided.getter("saved_model")
