# SPDX-License-Identifier: Apache-2.0
"""A GAN as an estimator, or as a head of one."""

from __future__ import annotations

import enum
import functools
import inspect
from typing import Any, Callable, Dict, Optional

from millrace import metrics
from millrace.contrib.framework import get_trainable_variables
from millrace.contrib.gan import models, summaries
from millrace.contrib.gan import train as gan_train
from millrace.contrib.gan.namedtuples import GANLoss, GANModel
from millrace.estimator.estimator import Estimator
from millrace.estimator.export_output import PredictOutput
from millrace.estimator.heads import _Head
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops.variable_scope import variable_scope


class SummaryType(enum.IntEnum):
    """What a GANEstimator writes summaries of."""

    NONE, VARIABLES, IMAGES, IMAGE_COMPARISON = 0, 1, 2, 3


_SUMMARIES: Dict[int, Callable[[Any], None]] = {
    SummaryType.VARIABLES: summaries.add_gan_model_summaries,
    SummaryType.IMAGES: summaries.add_gan_model_image_summaries,
    SummaryType.IMAGE_COMPARISON: summaries.add_image_comparison_summaries,
}


def told_of(network: Callable[..., Any], mode: str) -> Callable[..., Any]:
    """A network that is told the mode, where it takes one."""
    return functools.partial(network, mode=mode) if "mode" in inspect.signature(network).parameters else network


def summarize(model: Any, kinds: Any, known: Dict[int, Callable[[Any], None]]) -> None:
    """Writes summaries of these kinds; a kind alone is one."""
    with name_scope(None):
        for kind in kinds if isinstance(kinds, (list, tuple)) else [kinds]:
            if kind:
                known[SummaryType(kind)](model)


def check_arguments(use_loss_summaries: Any, get_hooks_fn: Any, **losses: Any) -> None:
    """Raises where losses or hooks are no functions."""
    for name, loss in losses.items():
        if not callable(loss):
            raise at_user_line(ValueError("%s must be callable." % name))
    if use_loss_summaries not in (True, False, None):
        raise at_user_line(ValueError("use_loss_summaries must be True, False or None."))
    if get_hooks_fn is not None and not callable(get_hooks_fn):
        raise at_user_line(TypeError("get_hooks_fn must be callable."))


def spec_of_losses(
    mode: str,
    gan_model: Any,
    loss_fn: Callable[[Any], Any],
    get_eval_metric_ops_fn: Any,
    optimizers: Callable[[], Any],
    get_hooks_fn: Any,
    train_op_fn: Callable[..., Any] = gan_train.gan_train_ops,
    name: Optional[str] = None,
) -> EstimatorSpec:
    """What an estimator is told of a model whose GANLoss loss_fn gives; predictions are what is generated."""
    if mode == ModeKeys.PREDICT:
        return EstimatorSpec(mode, gan_model.generated_data)
    loss = loss_fn(gan_model)
    total = loss.generator_loss + loss.discriminator_loss
    if mode == ModeKeys.TRAIN:
        ops = train_op_fn(gan_model, loss, *optimizers())
        return EstimatorSpec(mode, loss=total, train_op=ops.global_step_inc_op, training_hooks=(get_hooks_fn or gan_train.get_sequential_train_hooks())(ops))
    if mode != ModeKeys.EVAL:
        raise at_user_line(ValueError("Mode not recognized: %s" % mode))
    with name_scope(None, "metrics"):
        of_head = "/" + name if name else ""
        found = {field + of_head: metrics.mean(getattr(loss, field)) for field in ("generator_loss", "discriminator_loss")}
        own = get_eval_metric_ops_fn(gan_model) if get_eval_metric_ops_fn is not None else {}
        if not isinstance(own, dict):
            raise at_user_line(TypeError("get_eval_metric_ops_fn must return a dict, received: %s" % (own,)))
    return EstimatorSpec(mode, gan_model.generated_data, total, eval_metric_ops={**found, **own})


def made_now(*optimizers: Any) -> Callable[[], Any]:
    """A function that gives optimizers, those that functions make in the graph of the model."""
    return lambda: [optimizer() if callable(optimizer) else optimizer for optimizer in optimizers]


def _get_gan_model(
    mode: str, generator_fn: Any, discriminator_fn: Any, real_data: Any, generator_inputs: Any, add_summaries: Any, generator_scope: str = "Generator"
) -> Any:
    if mode == ModeKeys.PREDICT:
        if real_data is not None:
            raise at_user_line(ValueError("`labels` must be `None` when mode is `predict`. Instead, found %s" % (real_data,)))
        with variable_scope(generator_scope) as scope:
            inputs = models._tensors(generator_inputs)
            made = told_of(generator_fn, mode)(inputs)
        return GANModel(inputs, made, get_trainable_variables(scope), scope, generator_fn, *[None] * 6)
    networks = told_of(generator_fn, mode), told_of(discriminator_fn, mode)
    model = models.gan_model(*networks, real_data, generator_inputs, generator_scope=generator_scope, check_shapes=False)
    summarize(model, add_summaries, _SUMMARIES)
    return model


def _get_estimator_spec(
    mode: str,
    gan_model: Any,
    generator_loss_fn: Any,
    discriminator_loss_fn: Any,
    get_eval_metric_ops_fn: Any,
    generator_optimizer: Any,
    discriminator_optimizer: Any,
    get_hooks_fn: Any = None,
    use_loss_summaries: Any = True,
) -> EstimatorSpec:
    def loss_fn(model: Any) -> Any:
        return GANLoss(*(fn(model, add_summaries=use_loss_summaries) for fn in (generator_loss_fn, discriminator_loss_fn)))

    return spec_of_losses(mode, gan_model, loss_fn, get_eval_metric_ops_fn, made_now(generator_optimizer, discriminator_optimizer), get_hooks_fn)


class GANEstimator(Estimator):
    """Features are the generator's inputs, labels the real data; it predicts what the generator makes. The losses are those of the two functions alone,
    without what regularizers add."""

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
        use_loss_summaries: Optional[bool] = True,
        config: Any = None,
    ) -> None:
        check_arguments(use_loss_summaries, get_hooks_fn, generator_loss_fn=generator_loss_fn, discriminator_loss_fn=discriminator_loss_fn)

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            model = _get_gan_model(mode, generator_fn, discriminator_fn, labels, features, add_summaries)
            losses, optimizers = (generator_loss_fn, discriminator_loss_fn), (generator_optimizer, discriminator_optimizer)
            return _get_estimator_spec(mode, model, *losses, get_eval_metric_ops_fn, *optimizers, get_hooks_fn, use_loss_summaries)

        super().__init__(model_fn, model_dir, config)


class GANHead(_Head):
    """A head whose logits are a GANModel; it takes no features and no labels."""

    def __init__(
        self,
        generator_loss_fn: Any,
        discriminator_loss_fn: Any,
        generator_optimizer: Any,
        discriminator_optimizer: Any,
        use_loss_summaries: Optional[bool] = True,
        get_hooks_fn: Any = None,
        get_eval_metric_ops_fn: Optional[Callable[[Any], Any]] = None,
        name: Optional[str] = None,
    ) -> None:
        check_arguments(use_loss_summaries, get_hooks_fn, generator_loss_fn=generator_loss_fn, discriminator_loss_fn=discriminator_loss_fn)
        told = {} if use_loss_summaries is None else {"add_summaries": use_loss_summaries}
        self._loss_fns = [functools.partial(fn, **told) for fn in (generator_loss_fn, discriminator_loss_fn)]
        self._optimizers = [generator_optimizer, discriminator_optimizer]
        self._hooks_of, self._measures, self._own_name = get_hooks_fn, get_eval_metric_ops_fn, name

    name = property(lambda self: self._own_name, doc="Its name.")
    logits_dimension = property(lambda self: None, doc="None: logits are a model.")

    @staticmethod
    def _check(logits: Any, labels: Any) -> None:
        if labels is not None:
            raise at_user_line(ValueError("`GANHead`'s `create_estimator_spec` input `labels` must be `None`. Instead, found: %s" % (labels,)))
        if not isinstance(logits, GANModel):
            raise at_user_line(
                ValueError("`GANHead`'s `create_estimator_spec` input `logits` must be an instance of a `GANModel`. Instead, found: %s" % (logits,))
            )

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        """The GANLoss of a GANModel."""
        del features, mode  # the model has been made of them
        self._check(logits, labels)
        return GANLoss(*(loss(logits) for loss in self._loss_fns))

    def create_estimator_spec(  # type: ignore[override]
        self, features: Any, mode: str, logits: Any, labels: Any = None, train_op_fn: Any = gan_train.gan_train_ops
    ) -> EstimatorSpec:
        """The EstimatorSpec of a GANModel; train_op_fn(model, loss, optimizers) gives its GANTrainOps."""
        self._check(logits, labels)
        if features is not None:
            raise at_user_line(ValueError("`features` should be `None`. Instead, found: %s" % (features,)))
        if mode == ModeKeys.TRAIN and train_op_fn is None:
            raise at_user_line(ValueError("train_op_fn can not be None."))
        with name_scope("GANHead"):
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, logits.generated_data, export_outputs={"predict": PredictOutput(logits.generated_data)})
            loss_fn = functools.partial(self.create_loss, None, mode, labels=None)
            return spec_of_losses(mode, logits, loss_fn, self._measures, lambda: self._optimizers, self._hooks_of, train_op_fn, self._own_name)


def gan_head(
    generator_loss_fn: Any,
    discriminator_loss_fn: Any,
    generator_optimizer: Any,
    discriminator_optimizer: Any,
    use_loss_summaries: Optional[bool] = True,
    get_hooks_fn: Any = None,
    get_eval_metric_ops_fn: Optional[Callable[[Any], Any]] = None,
    name: Optional[str] = None,
) -> GANHead:
    """A GANHead."""
    optimizers = generator_optimizer, discriminator_optimizer
    return GANHead(generator_loss_fn, discriminator_loss_fn, *optimizers, use_loss_summaries, get_hooks_fn, get_eval_metric_ops_fn, name)
