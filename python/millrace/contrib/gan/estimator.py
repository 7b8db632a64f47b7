# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.gan.estimator: a GAN as an estimator."""

from __future__ import annotations

import enum
import functools
import inspect
from typing import Any, Callable, Optional

from millrace.contrib.gan import eval as gan_eval
from millrace.contrib.gan import model_losses, models
from millrace.contrib.gan import train as gan_train
from millrace.estimator.estimator import Estimator
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops.variable_scope import variable_scope


class SummaryType(enum.IntEnum):
    """What a GANEstimator writes summaries of."""

    NONE, VARIABLES, IMAGES, IMAGE_COMPARISON = 0, 1, 2, 3


_SUMMARIES = {
    SummaryType.VARIABLES: gan_eval.add_gan_model_summaries,
    SummaryType.IMAGES: gan_eval.add_gan_model_image_summaries,
    SummaryType.IMAGE_COMPARISON: gan_eval.add_image_comparison_summaries,
}


def _told_of(network: Callable[..., Any], mode: str) -> Callable[..., Any]:
    """A network that is told the mode, where it takes one."""
    return functools.partial(network, mode=mode) if "mode" in inspect.signature(network).parameters else network


class GANEstimator(Estimator):
    """Features are the generator's inputs, labels the real data; it predicts what the generator makes."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        generator_fn: Any = None,
        discriminator_fn: Any = None,
        generator_loss_fn: Any = None,
        discriminator_loss_fn: Any = None,
        generator_optimizer: Any = None,
        discriminator_optimizer: Any = None,
        get_hooks_fn: Any = None,
        get_eval_metric_ops_fn: Optional[Callable[[Any], Any]] = None,
        add_summaries: Any = None,
        use_loss_summaries: bool = True,
        config: Any = None,
    ) -> None:
        if not callable(generator_fn) or not callable(discriminator_fn):
            raise at_user_line(ValueError("generator_fn and discriminator_fn must be callable."))
        hooks_of = get_hooks_fn or gan_train.get_sequential_train_hooks()

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            generate, judge = _told_of(generator_fn, mode), _told_of(discriminator_fn, mode)

            if mode == ModeKeys.PREDICT:
                if labels is not None:
                    raise at_user_line(ValueError("`labels` must be `None` when mode is `predict`. Instead, found %s" % (labels,)))
                with variable_scope("Generator"):
                    return EstimatorSpec(mode, predictions=generate(features))
            model = models.gan_model(generate, judge, convert_to_tensor(labels), features, check_shapes=False)
            for kind in add_summaries if isinstance(add_summaries, (list, tuple)) else [add_summaries]:
                if kind:
                    _SUMMARIES[SummaryType(kind)](model)
            return self._spec(
                model,
                mode,
                generator_loss_fn,
                discriminator_loss_fn,
                generator_optimizer,
                discriminator_optimizer,
                hooks_of,
                get_eval_metric_ops_fn,
                use_loss_summaries,
            )

        super().__init__(model_fn, model_dir, config)

    @staticmethod
    def _spec(
        model: Any,
        mode: str,
        generator_loss_fn: Any,
        discriminator_loss_fn: Any,
        generator_optimizer: Any,
        discriminator_optimizer: Any,
        hooks_of: Any,
        measures: Any,
        use_loss_summaries: bool,
    ) -> EstimatorSpec:
        from millrace import metrics

        given = {"generator_loss_fn": generator_loss_fn, "discriminator_loss_fn": discriminator_loss_fn}
        loss = model_losses.gan_loss(model, add_summaries=use_loss_summaries, **{k: v for k, v in given.items() if v is not None})
        total = loss.generator_loss + loss.discriminator_loss
        if mode == ModeKeys.EVAL:
            found = {"generator_loss": metrics.mean(loss.generator_loss), "discriminator_loss": metrics.mean(loss.discriminator_loss)}
            return EstimatorSpec(mode, predictions=model.generated_data, loss=total, eval_metric_ops={**found, **(measures(model) if measures else {})})
        optimizers = [o() if callable(o) else o for o in (generator_optimizer, discriminator_optimizer)]
        ops = gan_train.gan_train_ops(model, loss, *optimizers)
        return EstimatorSpec(mode, loss=total, train_op=ops.global_step_inc_op, training_hooks=hooks_of(ops))
