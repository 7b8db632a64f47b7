# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.gan.losses: losses of a GANModel; `wargs` has them with tensors as arguments."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Optional

from millrace.contrib.gan import losses_wargs as wargs
from millrace.contrib.gan.namedtuples import CycleGANModel
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor


def _args_to_gan_model(function: Callable[..., Any]) -> Callable[..., Any]:
    """The loss of a model: the arguments that are called like its fields come from there, others are given by name."""
    parameters = inspect.signature(function).parameters

    def of_model(gan_model: Any, **kwargs: Any) -> Any:
        twice = sorted(set(gan_model._fields) & set(kwargs))
        if twice:
            raise at_user_line(ValueError("The following args are present in both the tuple and keyword args for %s: %s" % (function.__name__, twice)))
        given = {name: getattr(gan_model, name) for name in parameters if name in gan_model._fields}
        given = {name: value for name, value in given.items() if value is not None or parameters[name].default is inspect.Parameter.empty}
        for name, parameter in parameters.items():
            if parameter.default is inspect.Parameter.empty and name not in given and name not in kwargs:
                raise at_user_line(ValueError("`%s` must be supplied to %s loss function." % (name, function.__name__)))
        return function(**given, **kwargs)

    of_model.__name__, of_model.__doc__ = function.__name__, function.__doc__
    of_model.__docstring__ = "The gan_model version of %s." % function.__name__  # type: ignore[attr-defined]  # where TensorFlow has it
    return of_model


acgan_discriminator_loss = _args_to_gan_model(wargs.acgan_discriminator_loss)
acgan_generator_loss = _args_to_gan_model(wargs.acgan_generator_loss)
least_squares_discriminator_loss = _args_to_gan_model(wargs.least_squares_discriminator_loss)
least_squares_generator_loss = _args_to_gan_model(wargs.least_squares_generator_loss)
minimax_discriminator_loss = _args_to_gan_model(wargs.minimax_discriminator_loss)
minimax_generator_loss = _args_to_gan_model(wargs.minimax_generator_loss)
modified_discriminator_loss = _args_to_gan_model(wargs.modified_discriminator_loss)
modified_generator_loss = _args_to_gan_model(wargs.modified_generator_loss)
mutual_information_penalty = _args_to_gan_model(wargs.mutual_information_penalty)
wasserstein_discriminator_loss = _args_to_gan_model(wargs.wasserstein_discriminator_loss)
wasserstein_generator_loss = _args_to_gan_model(wargs.wasserstein_generator_loss)
wasserstein_gradient_penalty = _args_to_gan_model(wargs.wasserstein_gradient_penalty)


def combine_adversarial_loss(
    gan_loss: Any,
    gan_model: Any,
    non_adversarial_loss: Any,
    weight_factor: Any = None,
    gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
) -> Any:
    """A GANLoss whose generator loss has another loss beside it."""
    total = wargs.combine_adversarial_loss(
        non_adversarial_loss,
        gan_loss.generator_loss,
        weight_factor,
        gradient_ratio,
        gradient_ratio_epsilon,
        gan_model.generator_variables,
        scalar_summaries,
        gradient_summaries,
    )
    return gan_loss._replace(generator_loss=total)


def cycle_consistency_loss(cyclegan_model: Any, scope: Optional[str] = None, add_summaries: bool = False) -> Tensor:
    """Half of the absolute differences from both ways around (Zhu 2017)."""
    if not isinstance(cyclegan_model, CycleGANModel):
        raise at_user_line(ValueError("`cyclegan_model` must be a `CycleGANModel`. Instead, was %s." % type(cyclegan_model)))
    x, y = cyclegan_model.model_x2y.generator_inputs, cyclegan_model.model_y2x.generator_inputs
    return wargs.cycle_consistency_loss(x, cyclegan_model.reconstructed_x, y, cyclegan_model.reconstructed_y, scope, add_summaries)


# ---- of StarGANs ----


def _of_stargan(function: Callable[..., Any], *fields: str) -> Callable[..., Any]:
    def of_model(stargan_model: Any, **kwargs: Any) -> Any:
        return function(*(getattr(stargan_model, field) for field in fields), **kwargs)

    of_model.__name__, of_model.__doc__ = function.__name__, function.__doc__
    return of_model


def stargan_generator_loss_wrapper(loss_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A loss of what the discriminator says of generated data, as one of a StarGANModel."""
    return _of_stargan(loss_fn, "discriminator_generated_data_source_predication")


def stargan_discriminator_loss_wrapper(loss_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A loss of what the discriminator says of real and of generated data, as one of a StarGANModel."""
    return _of_stargan(loss_fn, "discriminator_input_data_source_predication", "discriminator_generated_data_source_predication")


def stargan_gradient_penalty_wrapper(loss_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A penalty of a discriminator between real and generated data, as one of a StarGANModel; it is told how many domains there are."""

    def of_model(stargan_model: Any, **kwargs: Any) -> Any:
        return loss_fn(
            real_data=stargan_model.input_data,
            generated_data=stargan_model.generated_data,
            generator_inputs=stargan_model.input_data_domain_label.get_shape().as_list()[-1],
            discriminator_fn=stargan_model.discriminator_fn,
            discriminator_scope=stargan_model.discriminator_scope,
            **kwargs,
        )

    of_model.__name__, of_model.__doc__ = loss_fn.__name__, loss_fn.__doc__
    return of_model
