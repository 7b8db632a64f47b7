# SPDX-License-Identifier: Apache-2.0
"""What the steps of making a GAN hand on: the model, its losses, the operations that train it."""

from __future__ import annotations

import collections
from typing import Any, Sequence

_MODEL = (
    "generator_inputs",
    "generated_data",
    "generator_variables",
    "generator_scope",
    "generator_fn",
    "real_data",
    "discriminator_real_outputs",
    "discriminator_gen_outputs",
    "discriminator_variables",
    "discriminator_scope",
    "discriminator_fn",
)
_tuple: Any = collections.namedtuple


def _made(name: str, fields: Sequence[str], doc: str, **more: Any) -> Any:
    made = _tuple(name, fields, module=__name__, **more)
    made.__doc__ = doc
    return made


GANModel = _made("GANModel", _MODEL, "A generator, a discriminator, and what they give.")
InfoGANModel = _made(
    "InfoGANModel",
    (*_MODEL, "structured_generator_inputs", "predicted_distributions", "discriminator_and_aux_fn"),
    "A GANModel whose discriminator finds the structured inputs again.",
)
ACGANModel = _made(
    "ACGANModel",
    (*_MODEL, "one_hot_labels", "discriminator_real_classification_logits", "discriminator_gen_classification_logits"),
    "A GANModel whose discriminator tells classes too.",
)
CycleGANModel = _made(
    "CycleGANModel", ("model_x2y", "model_y2x", "reconstructed_x", "reconstructed_y"), "Two GANModels, from one kind of data to another and back."
)
StarGANModel = _made(
    "StarGANModel",
    (
        "input_data",
        "input_data_domain_label",
        "generated_data",
        "generated_data_domain_target",
        "reconstructed_data",
        "discriminator_input_data_source_predication",
        "discriminator_generated_data_source_predication",
        "discriminator_input_data_domain_predication",
        "discriminator_generated_data_domain_predication",
        "generator_variables",
        "generator_scope",
        "generator_fn",
        "discriminator_variables",
        "discriminator_scope",
        "discriminator_fn",
    ),
    "A generator that brings data to other domains and back, a discriminator that tells domains too, and what they give.",
)
GANLoss = _made("GANLoss", ("generator_loss", "discriminator_loss"), "What each side is to make small.")
CycleGANLoss = _made("CycleGANLoss", ("loss_x2y", "loss_y2x"), "The GANLoss of both directions.")
GANTrainOps = _made(
    "GANTrainOps",
    ("generator_train_op", "discriminator_train_op", "global_step_inc_op", "train_hooks"),
    "The operations of a step, and hooks that they need.",
    defaults=((),),
)
GANTrainSteps = _made("GANTrainSteps", ("generator_train_steps", "discriminator_train_steps"), "How many steps each side makes in turn.")
