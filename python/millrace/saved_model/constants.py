# SPDX-License-Identifier: Apache-2.0
"""Names of files and collections of a SavedModel."""

ASSETS_DIRECTORY = "assets"
ASSETS_KEY = "saved_model_assets"
INIT_OP_SIGNATURE_KEY = "__saved_model_init_op"
LEGACY_INIT_OP_KEY = "legacy_init_op"
MAIN_OP_KEY = "saved_model_main_op"
SAVED_MODEL_FILENAME_PB = "saved_model.pb"
SAVED_MODEL_FILENAME_PBTXT = "saved_model.pbtxt"
SAVED_MODEL_SCHEMA_VERSION = 1
TRAIN_OP_KEY = "saved_model_train_op"
TRAIN_OP_SIGNATURE_KEY = "__saved_model_train_op"
VARIABLES_DIRECTORY = "variables"
VARIABLES_FILENAME = "variables"
