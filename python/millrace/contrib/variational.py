# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.bayesflow's variational inference of 1.0 to 1.3: lower bounds of the evidence, and variables that are distributions."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional

from millrace.contrib.stochastic_tensors import StochasticTensor, _upstream_stochastic_nodes
from millrace.distributions.distribution import Distribution, kl_divergence
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import add_to_collection, get_collection, name_scope
from millrace.ops import math_ops

VI_PRIORS = "__vi_priors__"


def register_prior(variational: Any, prior: Any) -> None:
    """The prior of what a stochastic tensor is the posterior of."""
    if not isinstance(variational, StochasticTensor):
        raise at_user_line(TypeError("variational must be a StochasticTensor, not %r." % (variational,)))
    if not isinstance(prior, Distribution):
        raise at_user_line(TypeError("prior must be a Distribution, not %r." % (prior,)))
    add_to_collection(VI_PRIORS, (variational, prior))


class ELBOForms:
    """How elbo computes: by divergences that are known, by known entropies, by samples, or (default) by the first of these that there is."""

    default, analytic_kl, analytic_entropy, sample = "default", "analytic_kl", "analytic_entropy", "sample"

    @staticmethod
    def check_form(form: Any) -> None:
        """TypeError for what is none of them."""
        if form not in ("default", "analytic_kl", "analytic_entropy", "sample"):
            raise at_user_line(TypeError("form must be an ELBOForms constant, not %r." % (form,)))


def elbo(log_likelihood: Any, variational_with_prior: Any = None, keep_batch_dim: bool = True, form: Any = None, name: str = "ELBO") -> Any:
    """The lower bound of the evidence: the likelihood less the divergences of posteriors, {stochastic tensor: prior}, from their priors. Without these:
    all that the likelihood stands on, with the priors that were registered."""
    with name_scope(name):
        model = convert_to_tensor(log_likelihood)
        return _elbo(form, log_likelihood, None, _find_variational_and_priors(model, variational_with_prior), keep_batch_dim)


def elbo_with_log_joint(log_joint: Any, variational: Any = None, keep_batch_dim: bool = True, form: Any = None, name: str = "ELBO") -> Any:
    """The lower bound of the evidence by the joint probability: it and the entropies of posteriors."""
    if form == ELBOForms.analytic_kl:
        raise at_user_line(ValueError("ELBOForms.analytic_kl is not available when using elbo_with_log_joint. Use elbo or a different form."))
    with name_scope(name):
        given = None if variational is None else dict.fromkeys(variational)
        found = _find_variational_and_priors(convert_to_tensor(log_joint), given, require_prior=False)
        return _elbo(form, None, log_joint, found, keep_batch_dim)


def _first(form: str, wanted: str, compute: Callable[[], Any]) -> Any:
    """What is computed, unless that is not known and the form leaves a choice."""
    if form not in (ELBOForms.default, wanted):
        return None
    try:
        return compute()
    except NotImplementedError:
        if form == wanted:
            raise
        return None


def _elbo(form: Any, log_likelihood: Any, log_joint: Any, variational_with_prior: Dict[Any, Any], keep_batch_dim: bool) -> Any:
    form = form or ELBOForms.default
    ELBOForms.check_form(form)

    def reduced(value: Any) -> Any:
        return value if keep_batch_dim else math_ops.reduce_sum(value)

    terms = []
    for node, prior in variational_with_prior.items():
        q, z = node.distribution, node.value()
        divergence = _first(form, ELBOForms.analytic_kl, functools.partial(kl_divergence, q, prior)) if log_joint is None else None
        if divergence is not None:
            terms.append(-1.0 * reduced(divergence))
            continue
        entropy = _first(form, ELBOForms.analytic_entropy, q.entropy)
        if entropy is None:
            entropy = -q.log_prob(z)
        terms.append(reduced(entropy))
        if log_likelihood is not None:
            terms.append(reduced(prior.log_prob(z)))
    return sum(terms, log_likelihood if log_joint is None else log_joint)


def _find_variational_and_priors(model: Any, variational_with_prior: Any, require_prior: bool = True) -> Dict[Any, Any]:
    if variational_with_prior is None:
        nodes = _upstream_stochastic_nodes([model])[model]
        if not nodes:
            raise at_user_line(ValueError("No upstream stochastic nodes found for tensor: %s" % model))
        priors = dict(get_collection(VI_PRIORS))
        for node in nodes:
            if require_prior and priors.get(node) is None:
                raise at_user_line(ValueError("No prior specified for StochasticTensor: %s" % node))
        variational_with_prior = {node: priors.get(node) for node in nodes}
    for node, prior in variational_with_prior.items():
        if not isinstance(node, StochasticTensor):
            raise at_user_line(TypeError("variationals must be StochasticTensors, not %r." % (node,)))
        if prior is not None and not isinstance(prior, Distribution):
            raise at_user_line(TypeError("priors must be Distribution objects, not %r." % (prior,)))
    return variational_with_prior


def get_stochastic_variable(
    getter: Any, name: str, shape: Any = None, dist_cls: Any = None, dist_kwargs: Any = None, param_initializers: Any = None, prior: Any = None, **kwargs: Any
) -> StochasticTensor:
    """A custom getter: a stochastic tensor of a distribution whose parameters are variables, named after the variable and the parameter. prior may be
    a function of (shape, dtype)."""
    given, shapes = param_initializers or {}, {} if shape is None else dist_cls.param_static_shapes(shape)
    otherwise, parameters = kwargs.pop("initializer", None), dict(dist_kwargs or {})
    for parameter in sorted({*shapes, *given}):
        initializer = given.get(parameter)
        initializer = otherwise if initializer is None else initializer
        of_shape = shapes.get(parameter) if initializer is None or callable(initializer) else None
        parameters[parameter] = getter("%s_%s" % (name, parameter), shape=of_shape, initializer=initializer, **kwargs)
    made = StochasticTensor(dist_cls(**parameters))
    if prior is not None:
        if callable(prior):
            value = made.value()
            value.get_shape().assert_is_fully_defined()
            prior = prior(value.get_shape(), value.dtype)
        register_prior(made, prior)
    return made


def make_stochastic_variable_getter(dist_cls: Any, dist_kwargs: Any = None, param_initializers: Any = None, prior: Optional[Any] = None) -> Callable[..., Any]:
    """The custom_getter of a variable scope whose variables are distributions."""
    return functools.partial(get_stochastic_variable, dist_cls=dist_cls, dist_kwargs=dist_kwargs, param_initializers=param_initializers, prior=prior)
