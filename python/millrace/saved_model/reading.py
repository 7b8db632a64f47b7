# SPDX-License-Identifier: Apache-2.0
"""Reading SavedModels as messages."""

from __future__ import annotations

import os
from typing import Any

from millrace import gfile
from millrace.framework.errors import at_user_line
from millrace.protos import definitions, text_format
from millrace.protos.message import DecodeError
from millrace.saved_model import constants


def maybe_saved_model_directory(export_dir: Any) -> bool:
    """Whether a folder holds a SavedModel."""
    names = (constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT)
    return any(gfile.Exists(os.path.join(gfile.as_path(export_dir), name)) for name in names)


def parse_saved_model(export_dir: Any) -> Any:
    """The SavedModel message of a folder, in binary or text form."""
    folder = gfile.as_path(export_dir)
    binary, text = (os.path.join(folder, name) for name in (constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT))
    for path, read in ((binary, definitions.SavedModel.FromString), (text, lambda data: text_format.Parse(data.decode(), definitions.SavedModel()))):
        if gfile.Exists(path):
            with gfile.Open(path, "rb") as file:
                data = file.read()
            try:
                return read(data)
            except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
                raise at_user_line(OSError("Cannot parse file %s: %s." % (path, error))) from None
    raise at_user_line(
        OSError("SavedModel file does not exist at: %s/{%s|%s}" % (folder, constants.SAVED_MODEL_FILENAME_PBTXT, constants.SAVED_MODEL_FILENAME_PB))
    )
