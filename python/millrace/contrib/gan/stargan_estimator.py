# SPDX-License-Identifier: Apache-2.0
"""A StarGAN as an estimator."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.contrib.framework import get_trainable_variables
from millrace.contrib.gan import models, summaries
from millrace.contrib.gan.gan_estimator import SummaryType, check_arguments, made_now, spec_of_losses, summarize, told_of
from millrace.contrib.gan.namedtuples import StarGANModel
from millrace.estimator.estimator import Estimator
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.ops.variable_scope import variable_scope

_SUMMARIES: Dict[int, Callable[[Any], None]] = {
    SummaryType.VARIABLES: summaries.add_gan_model_summaries,
    SummaryType.IMAGES: summaries.add_stargan_image_summaries,
}


def _get_gan_model(
    mode: str, generator_fn: Any, discriminator_fn: Any, input_data: Any, input_data_domain_label: Any, add_summaries: Any, generator_scope: str = "Generator"
) -> Any:
    if mode != ModeKeys.PREDICT:
        networks = told_of(generator_fn, mode), told_of(discriminator_fn, mode)
        model = models.stargan_model(*networks, input_data, input_data_domain_label, generator_scope=generator_scope)
        summarize(model, add_summaries, _SUMMARIES)
        return model
    with variable_scope(generator_scope) as scope:
        data, target = models._tensors(input_data), models._tensors(input_data_domain_label)
        made = told_of(generator_fn, mode)(data, target)
    known = dict(input_data=data, generated_data=made, generated_data_domain_target=target)
    known.update(generator_variables=get_trainable_variables(scope), generator_scope=scope, generator_fn=generator_fn)
    return StarGANModel(**{**dict.fromkeys(StarGANModel._fields), **known})


def _get_estimator_spec(
    mode: str, gan_model: Any, loss_fn: Any, get_eval_metric_ops_fn: Any, generator_optimizer: Any, discriminator_optimizer: Any, get_hooks_fn: Any = None
) -> EstimatorSpec:
    return spec_of_losses(mode, gan_model, loss_fn, get_eval_metric_ops_fn, made_now(generator_optimizer, discriminator_optimizer), get_hooks_fn)


class StarGANEstimator(Estimator):
    """Features are data, labels their domains, one-hot; it predicts what the generator makes of features (data, domains to go to). loss_fn gives the
    GANLoss of a StarGANModel."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        generator_fn: Any = None,
        discriminator_fn: Any = None,
        loss_fn: Any = None,
        generator_optimizer: Any = None,
        discriminator_optimizer: Any = None,
        get_hooks_fn: Any = None,
        get_eval_metric_ops_fn: Optional[Callable[[Any], Any]] = None,
        add_summaries: Any = None,
        use_loss_summaries: Optional[bool] = True,
        config: Any = None,
    ) -> None:
        check_arguments(use_loss_summaries, get_hooks_fn, loss_fn=loss_fn)

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            data, domains = features if mode == ModeKeys.PREDICT else (features, labels)
            model = _get_gan_model(mode, generator_fn, discriminator_fn, data, domains, add_summaries)
            return _get_estimator_spec(mode, model, loss_fn, get_eval_metric_ops_fn, generator_optimizer, discriminator_optimizer, get_hooks_fn)

        super().__init__(model_fn, model_dir, config)


def stargan_prediction_input_fn_wrapper(fn: Callable[[], Any]) -> Callable[[], Any]:
    """An input function of predictions, of one that gives (data, domains to go to)."""
    return lambda: (fn(), None)
