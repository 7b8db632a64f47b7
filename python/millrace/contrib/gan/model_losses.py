# SPDX-License-Identifier: Apache-2.0
"""The losses of models of GANs: what each side is to make small, with penalties and what regularizers add."""

from __future__ import annotations

from typing import Any, Callable

from millrace import losses, summary
from millrace.contrib.gan import losses as gan_losses
from millrace.contrib.gan import losses_wargs
from millrace.contrib.gan.namedtuples import ACGANModel, CycleGANLoss, CycleGANModel, GANLoss, GANModel, InfoGANModel
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, math_ops
from millrace.ops.variable_scope import variable_scope


def _weight(value: Any, name: str) -> Any:
    """A weight, which is not negative; None where there is none."""
    if isinstance(value, Tensor):
        value.get_shape().assert_is_compatible_with([])
        with control_dependencies([check_ops.assert_greater_equal(value, 0.0)]):
            return array_ops.identity(value)
    if value is not None and value < 0:
        raise at_user_line(ValueError("`%s` must be greater than 0. Instead, was %s" % (name, value)))
    return value or None


def _tensor_pool_adjusted_model(model: Any, tensor_pool_fn: Any) -> Any:
    """The model, with what the discriminator says of data out of a pool."""
    if tensor_pool_fn is None:
        return model
    if not isinstance(model, (GANModel, ACGANModel, InfoGANModel)):
        raise at_user_line(ValueError("Tensor pool does not support `model`: %s." % type(model)))
    info = isinstance(model, InfoGANModel)
    names = ("generator_inputs", "generated_data", "structured_generator_inputs")[: 3 if info else 2]
    model = model._replace(**dict(zip(names, tensor_pool_fn(tuple(getattr(model, name) for name in names)))))
    with variable_scope(model.discriminator_scope, reuse=True):
        judged = (model.discriminator_and_aux_fn if info else model.discriminator_fn)(model.generated_data, model.generator_inputs)
    if info:
        return model._replace(discriminator_gen_outputs=judged[0], predicted_distributions=judged[1])
    if isinstance(model, ACGANModel):
        return model._replace(discriminator_gen_outputs=judged[0], discriminator_gen_classification_logits=judged[1])
    return model._replace(discriminator_gen_outputs=judged)


def gan_loss(
    model: Any,
    generator_loss_fn: Any = gan_losses.wasserstein_generator_loss,
    discriminator_loss_fn: Any = gan_losses.wasserstein_discriminator_loss,
    gradient_penalty_weight: Any = None,
    gradient_penalty_epsilon: float = 1e-10,
    gradient_penalty_target: float = 1.0,
    gradient_penalty_one_sided: bool = False,
    mutual_information_penalty_weight: Any = None,
    aux_cond_generator_weight: Any = None,
    aux_cond_discriminator_weight: Any = None,
    tensor_pool_fn: Any = None,
    add_summaries: bool = True,
) -> Any:
    """The GANLoss of a model: its losses, the penalties that have weights, and what regularizers add."""
    penalty, information = _weight(gradient_penalty_weight, "gradient_penalty_weight"), _weight(mutual_information_penalty_weight, "infogan_weight")
    of_generator = _weight(aux_cond_generator_weight, "aux_cond_generator_weight")
    of_discriminator = _weight(aux_cond_discriminator_weight, "aux_cond_discriminator_weight")
    if information is not None and not isinstance(model, InfoGANModel):
        raise at_user_line(
            ValueError("When `mutual_information_penalty_weight` is provided, `model` must be an `InfoGANModel`. Instead, was %s." % type(model))
        )
    if (of_generator is not None or of_discriminator is not None) and not isinstance(model, ACGANModel):
        raise at_user_line(
            ValueError(
                "When `aux_cond_generator_weight` or `aux_cond_discriminator_weight` is provided, `model` must be an `ACGANModel`. "
                "Instead, was %s." % type(model)
            )
        )
    pooled = _tensor_pool_adjusted_model(model, tensor_pool_fn)
    generator = generator_loss_fn(model, add_summaries=add_summaries)
    discriminator = discriminator_loss_fn(pooled, add_summaries=add_summaries)
    if penalty is not None:
        shape = dict(epsilon=gradient_penalty_epsilon, target=gradient_penalty_target, one_sided=gradient_penalty_one_sided)
        discriminator += penalty * gan_losses.wasserstein_gradient_penalty(pooled, **shape, add_summaries=add_summaries)
    if information is not None:
        shared = gan_losses.mutual_information_penalty(model, add_summaries=add_summaries)
        of_pool = shared if pooled is model else gan_losses.mutual_information_penalty(pooled, add_summaries=add_summaries)
        generator, discriminator = generator + information * shared, discriminator + information * of_pool
    if of_generator is not None:
        generator += of_generator * gan_losses.acgan_generator_loss(model, add_summaries=add_summaries)
    if of_discriminator is not None:
        discriminator += of_discriminator * gan_losses.acgan_discriminator_loss(pooled, add_summaries=add_summaries)
    return GANLoss(generator + _regularization(model.generator_scope), discriminator + _regularization(model.discriminator_scope))


def _regularization(scope: Any) -> Any:
    return losses.get_regularization_loss(scope.name) if scope else 0


def cyclegan_loss(
    model: Any,
    generator_loss_fn: Any = gan_losses.least_squares_generator_loss,
    discriminator_loss_fn: Any = gan_losses.least_squares_discriminator_loss,
    cycle_consistency_loss_fn: Any = gan_losses.cycle_consistency_loss,
    cycle_consistency_loss_weight: Any = 10.0,
    **kwargs: Any,
) -> Any:
    """The CycleGANLoss of a CycleGANModel: both generators are to bring the data back, too. Other arguments are those of gan_loss."""
    if not isinstance(model, CycleGANModel):
        raise at_user_line(ValueError("`model` must be a `CycleGANModel`. Instead, was %s." % type(model)))
    weight = _weight(cycle_consistency_loss_weight, "cycle_consistency_loss_weight")
    both = cycle_consistency_loss_fn(model, add_summaries=kwargs.get("add_summaries", True)) * (0.0 if weight is None else weight)

    def one_way(name: str, part: Any) -> Any:
        with name_scope(name):
            made = gan_loss(part, generator_loss_fn, discriminator_loss_fn, **kwargs)
            return made._replace(generator_loss=made.generator_loss + both)

    return CycleGANLoss(one_way("cyclegan_loss_x2y", model.model_x2y), one_way("cyclegan_loss_y2x", model.model_y2x))


def stargan_loss(
    model: Any,
    generator_loss_fn: Any = gan_losses.stargan_generator_loss_wrapper(losses_wargs.wasserstein_generator_loss),
    discriminator_loss_fn: Any = gan_losses.stargan_discriminator_loss_wrapper(losses_wargs.wasserstein_discriminator_loss),
    gradient_penalty_weight: Any = 10.0,
    gradient_penalty_epsilon: float = 1e-10,
    gradient_penalty_target: float = 1.0,
    gradient_penalty_one_sided: bool = False,
    reconstruction_loss_fn: Callable[..., Any] = losses.absolute_difference,
    reconstruction_loss_weight: Any = 10.0,
    classification_loss_fn: Callable[..., Any] = losses.softmax_cross_entropy,
    classification_loss_weight: Any = 1.0,
    classification_one_hot: bool = True,
    add_summaries: bool = True,
) -> Any:
    """The GANLoss of a StarGANModel: the generator brings data back, too, and both sides get the domains right. Losses that are not of one-hot
    classes are added up along the domains."""
    model.input_data_domain_label.get_shape().assert_has_rank(2)
    model.input_data_domain_label.get_shape()[1:].assert_is_fully_defined()

    def of_domains(name: str, labels: Any, logits: Any) -> Any:
        with name_scope(name, values=(labels, logits)):
            loss = classification_loss_fn(onehot_labels=labels, logits=logits)
            loss = math_ops.reduce_mean(loss if classification_one_hot else math_ops.reduce_sum(loss, axis=1))
            if add_summaries:
                summary.scalar(name, loss)
            return loss * classification_loss_weight

    generator, discriminator = generator_loss_fn(model, add_summaries=add_summaries), discriminator_loss_fn(model, add_summaries=add_summaries)
    penalty = _weight(gradient_penalty_weight, "gradient_penalty_weight")
    if penalty is not None:
        penalty_fn = gan_losses.stargan_gradient_penalty_wrapper(losses_wargs.wasserstein_gradient_penalty)
        shape = dict(epsilon=gradient_penalty_epsilon, target=gradient_penalty_target, one_sided=gradient_penalty_one_sided)
        discriminator += penalty * penalty_fn(model, **shape, add_summaries=add_summaries)
    back = reconstruction_loss_fn(model.input_data, model.reconstructed_data)
    if add_summaries:
        summary.scalar("reconstruction_loss", back)
    generator += reconstruction_loss_weight * back
    generator += of_domains("generator_classification_loss", model.generated_data_domain_target, model.discriminator_generated_data_domain_predication)
    discriminator += of_domains("discriminator_classification_loss", model.input_data_domain_label, model.discriminator_input_data_domain_predication)
    return GANLoss(generator, discriminator)
