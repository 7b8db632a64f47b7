# SPDX-License-Identifier: Apache-2.0
"""What samples tell of the mean of a distribution within known bounds, by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart.

With n samples the empirical distribution function is, except with the probability 2 exp(-2 n eps^2), nowhere further than eps from the true
one. The mean is largest where, within that envelope, the smallest samples' share eps lies at the upper bound instead. Error rates are those
of a whole batch: each of its tests gets an equal part.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops, nn_ops


def _numbers(samples: Any, *parameters: Any) -> Tuple[Tensor, ...]:
    """As tensors, of the dtype of the first."""
    first = convert_to_tensor(samples)
    return (first, *(convert_to_tensor(p, first.dtype.base_dtype) for p in parameters))


def _do_maximum_mean(samples: Any, envelope: Any, high: Any, name: Optional[str] = None) -> Tensor:
    """The largest mean of distributions whose functions lie within the envelope; samples are along the first dimension."""
    with name_scope(name, "do_maximum_mean", [samples, envelope, high]):
        samples, envelope, high = _numbers(samples, envelope, high)
        last = array_ops.transpose(samples, array_ops.concat([math_ops.range(1, array_ops.rank(samples)), [0]], 0))
        count = array_ops.shape(last)[-1]
        ascending = -nn_ops.top_k(-last, k=count)[0]
        step = 1.0 / math_ops.cast(count, samples.dtype.base_dtype)
        below = step * math_ops.cast(math_ops.range(1, count + 1), samples.dtype.base_dtype)
        left = gen_ops.minimum(gen_ops.maximum(below - array_ops.expand_dims(envelope, -1), 0.0), step)  # what stays of each sample's share
        return math_ops.reduce_sum(ascending * left, -1) + envelope * high


def _envelope(n: Any, error_rate: Tensor) -> Tensor:
    return gen_ops.sqrt(-gen_ops.log(error_rate / 2.0) / (2.0 * math_ops.cast(n, error_rate.dtype.base_dtype)))


def _each(rate: Tensor, *shapes: Any) -> Tensor:
    """The rate for one test of a batch of these shapes."""
    whole: Any = [1]
    for shape in shapes:
        whole = array_ops.broadcast_dynamic_shape(shape, whole)
    return rate / math_ops.cast(math_ops.reduce_prod(whole), rate.dtype.base_dtype)


def _not_widened(samples: Tensor, *parameters: Tensor) -> Tensor:
    """The samples, after a check that parameters do not broadcast them: there would be more than were drawn."""
    batch, checks = array_ops.shape(samples)[1:], []
    for p in parameters:
        checks.append(check_ops.assert_greater_equal(array_ops.size(batch), array_ops.rank(p)))
        checks.append(check_ops.assert_equal(batch, array_ops.broadcast_dynamic_shape(batch, array_ops.shape(p))))
    return control_flow_ops.with_dependencies(checks, samples)


def true_mean_confidence_interval_by_dkwm(samples: Any, low: Any, high: Any, error_rate: Any = 1e-6, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(lowest, highest) means that samples, along the first dimension and between low and high, allow."""
    with name_scope(name, "true_mean_confidence_interval_by_dkwm", [samples, low, high, error_rate]):
        samples, low, high, error_rate = _numbers(samples, low, high, error_rate)
        check_ops.assert_scalar(error_rate)
        samples = _not_widened(samples, low, high)
        shape = array_ops.shape(samples)
        envelope = _envelope(shape[0], _each(error_rate, array_ops.shape(low), array_ops.shape(high), shape[1:]))
        least = check_ops.assert_greater_equal(math_ops.reduce_min(samples, 0), low, message="Given sample minimum value falls below expectations")
        with control_dependencies([least]):
            lowest = -_do_maximum_mean(-samples, envelope, -low)
        most = check_ops.assert_less_equal(math_ops.reduce_max(samples, 0), high, message="Given sample maximum value exceeds expectations")
        with control_dependencies([most]):
            return lowest, _do_maximum_mean(array_ops.identity(samples), envelope, high)


def assert_true_mean_in_interval_by_dkwm(
    samples: Any, low: Any, high: Any, expected_low: Any, expected_high: Any, false_fail_rate: Any = 1e-6, name: Optional[str] = None
) -> Any:
    """An operation that fails where the samples say that the mean is outside of an interval."""
    with name_scope(name, "assert_true_mean_in_interval_by_dkwm", [samples, low, high, expected_low, expected_high, false_fail_rate]):
        samples, low, high, expected_low, expected_high = _numbers(samples, low, high, expected_low, expected_high)
        samples = _not_widened(samples, low, high, expected_low, expected_high)
        lowest, highest = true_mean_confidence_interval_by_dkwm(samples, low, high, false_fail_rate)
        apart = "Confidence interval does not intersect: true mean %s than expected"
        with control_dependencies([check_ops.assert_greater_equal(highest, expected_low, message=apart % "smaller")]):
            return check_ops.assert_less_equal(lowest, expected_high, message=apart % "greater")


def assert_true_mean_equal_by_dkwm(samples: Any, low: Any, high: Any, expected: Any, false_fail_rate: Any = 1e-6, name: Optional[str] = None) -> Any:
    """An operation that fails where the samples say that the mean is another."""
    with name_scope(name, "assert_true_mean_equal_by_dkwm", [samples, low, high, expected, false_fail_rate]):
        return assert_true_mean_in_interval_by_dkwm(samples, low, high, expected, expected, false_fail_rate)


def assert_true_mean_equal_by_dkwm_two_sample(
    samples1: Any, low1: Any, high1: Any, samples2: Any, low2: Any, high2: Any, false_fail_rate: Any = 1e-6, name: Optional[str] = None
) -> Any:
    """An operation that fails where the samples of two distributions say that their means differ."""
    with name_scope(name, "assert_true_mean_equal_by_dkwm_two_sample", [samples1, low1, high1, samples2, low2, high2, false_fail_rate]):
        samples1, low1, high1, samples2, low2, high2, rate = _numbers(samples1, low1, high1, samples2, low2, high2, false_fail_rate)
        samples1, samples2 = _not_widened(samples1, low1, high1), _not_widened(samples2, low2, high2)
        with control_dependencies([check_ops.assert_equal(array_ops.shape(samples1)[1:], array_ops.shape(samples2)[1:])]):
            lowest, highest = true_mean_confidence_interval_by_dkwm(samples2, low2, high2, rate / 2.0)
            return assert_true_mean_in_interval_by_dkwm(samples1, low1, high1, lowest, highest, rate / 2.0)


def min_discrepancy_of_true_means_detectable_by_dkwm(
    n: Any, low: Any, high: Any, false_fail_rate: Any, false_pass_rate: Any, name: Optional[str] = None
) -> Tensor:
    """How far from the expected a mean must be for n samples to tell."""
    with name_scope(name, "min_discrepancy_of_true_means_detectable_by_dkwm", [n, low, high, false_fail_rate, false_pass_rate]):
        low, high, false_fail_rate, false_pass_rate = _numbers(low, high, false_fail_rate, false_pass_rate)
        n = convert_to_tensor(n)
        fail = _each(false_fail_rate, *(array_ops.shape(x) for x in (n, low, high)))
        return (high - low) * (_envelope(n, false_pass_rate) + _envelope(n, fail))


def min_discrepancy_of_true_means_detectable_by_dkwm_two_sample(
    n1: Any, low1: Any, high1: Any, n2: Any, low2: Any, high2: Any, false_fail_rate: Any, false_pass_rate: Any, name: Optional[str] = None
) -> Tensor:
    """How far apart the means of two distributions must be for n1 and n2 samples to tell."""
    with name_scope(name, "min_discrepancy_of_true_means_detectable_by_dkwm_two_sample", [n1, low1, high1, n2, low2, high2]):
        low1, high1, low2, high2, fail, passed = _numbers(low1, high1, low2, high2, false_fail_rate, false_pass_rate)
        halves = fail / 2.0, passed / 2.0
        first = min_discrepancy_of_true_means_detectable_by_dkwm(n1, low1, high1, *halves)
        return first + min_discrepancy_of_true_means_detectable_by_dkwm(n2, low2, high2, *halves)


def min_num_samples_for_dkwm_mean_test(
    discrepancy: Any, low: Any, high: Any, false_fail_rate: Any = 1e-6, false_pass_rate: Any = 1e-6, name: Optional[str] = None
) -> Tensor:
    """How many samples suffice to tell that a mean is this far from the expected; no whole number."""
    with name_scope(name, "min_num_samples_for_dkwm_mean_test", [low, high, false_fail_rate, false_pass_rate, discrepancy]):
        discrepancy, low, high, false_fail_rate, false_pass_rate = _numbers(discrepancy, low, high, false_fail_rate, false_pass_rate)
        envelope = discrepancy / (2.0 * (high - low))
        rarest = gen_ops.minimum(_each(false_fail_rate, *(array_ops.shape(x) for x in (low, high, discrepancy))), false_pass_rate)
        return -gen_ops.log(rarest / 2.0) / (2.0 * gen_ops.square(envelope))


def min_num_samples_for_dkwm_mean_two_sample_test(
    discrepancy: Any, low1: Any, high1: Any, low2: Any, high2: Any, false_fail_rate: Any = 1e-6, false_pass_rate: Any = 1e-6, name: Optional[str] = None
) -> Tuple[Tensor, Tensor]:
    """How many samples of two distributions suffice to tell that their means are this far apart; no whole numbers."""
    with name_scope(name, "min_num_samples_for_dkwm_mean_two_sample_test", [discrepancy, low1, high1, low2, high2]):
        discrepancy, low1, high1, low2, high2, fail, passed = _numbers(discrepancy, low1, high1, low2, high2, false_fail_rate, false_pass_rate)
        parts = discrepancy / 2.0, fail / 2.0, passed / 2.0
        first = min_num_samples_for_dkwm_mean_test(parts[0], low1, high1, *parts[1:])
        return first, min_num_samples_for_dkwm_mean_test(parts[0], low2, high2, *parts[1:])
