# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.integrate: ordinary differential equations, by steps that adapt (Dormand and Prince) or that are given."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.tensor_array_ops import TensorArray

# Dormand and Prince's pair of orders 5 and 4, with the middle of a step: Shampine, Some Practical Runge-Kutta Formulas (1986), section 4.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_FOURTH = (1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60)
_ERROR = tuple(a - b for a, b in zip(_FOURTH, (*_STAGES[-1], 0)))
_MIDDLE = tuple(
    c / 2
    for c in (
        6025192743 / 30085553152,
        0,
        51252292925 / 65400821598,
        -2691868925 / 45128329728,
        187940372067 / 1594534317056,
        -1776094331 / 19743644256,
        11237099 / 235043384,
    )
)


class _State(NamedTuple):
    """The value and slope at t1, the next step, and the polynomial from t0 to t1."""

    y: Any
    slope: Any
    t0: Any
    t1: Any
    dt: Any
    polynomial: List[Any]


def _along(dt: Any, weights: Sequence[float], slopes: Sequence[Any]) -> Tensor:
    return math_ops.add_n([(dt * w) * k for w, k in zip(weights, slopes) if w != 0])


def _step(func: Callable[[Any, Any], Any], y: Any, slope: Any, t: Any, dt: Any) -> Any:
    """(the value after a step, its error, the slopes of the stages, of which the last is that of the value)."""
    wide, slopes = math_ops.cast(dt, y.dtype), [slope]
    for time, weights in zip(_TIMES, _STAGES):
        after = y + _along(wide, weights, slopes)
        slopes.append(func(after, t + time * dt))
    return after, _along(wide, _ERROR, slopes), slopes


def _fitted(y: Any, after: Any, slopes: Sequence[Any], dt: Any) -> List[Any]:
    """The polynomial of a step, by the stages' weights for its middle."""
    h = math_ops.cast(dt, y.dtype)
    return _interp_fit(y, after, y + _along(h, _MIDDLE, slopes), slopes[0], slopes[-1], h)


def _interp_fit(y0: Any, y1: Any, y_mid: Any, f0: Any, f1: Any, dt: Any) -> List[Any]:
    """The polynomial of degree 4 through values and slopes at both ends and the value in the middle, highest power first."""
    first, last = dt * f0, dt * f1
    return [
        2 * (last - first) - 8 * (y1 + y0) + 16 * y_mid,
        5 * first - 3 * last + 18 * y0 + 14 * y1 - 32 * y_mid,
        last - 4 * first - 11 * y0 - 5 * y1 + 16 * y_mid,
        first,
        y0,
    ]


def _interp_evaluate(coefficients: Sequence[Any], t0: Any, t1: Any, t: Any) -> Tensor:
    """The polynomial from t0 to t1 at a time between."""
    with name_scope("interp_evaluate"):
        t0, t1, t = (convert_to_tensor(time) for time in (t0, t1, t))
        within = gen_ops.logical_and(gen_ops.less_equal(t0, t), gen_ops.less_equal(t, t1))
        with control_dependencies([control_flow_ops.Assert(within, ["invalid interpolation, fails `t0 <= t <= t1`:", t0, t, t1])]):
            value = convert_to_tensor(coefficients[0])
            x = math_ops.cast((t - t0) / (t1 - t0), value.dtype)
        for coefficient in coefficients[1:]:
            value = value * x + coefficient
        return value


def _optimal_step_size(
    last_step: Any, error_ratio: Any, safety: Any = 0.9, ifactor: Any = 10.0, dfactor: Any = 0.2, order: int = 5, name: Optional[str] = None
) -> Tensor:
    """The step after one of an error: 1 is as large as allowed."""
    with name_scope(name, "optimal_step_size", [last_step, error_ratio]) as scope:
        factor = gen_ops.pow(math_ops.cast(error_ratio, last_step.dtype), 1 / order) / safety
        return gen_ops.div(last_step, gen_ops.maximum(1.0 / ifactor, gen_ops.minimum(factor, 1.0 / dfactor)), name=scope)


def _absolute_square(x: Any) -> Tensor:
    return gen_ops.square(math_ops.abs(x))


def _append(array: Any, value: Any) -> Any:
    return array.write(array.size(), value)


def _increasing(t: Any) -> Any:
    return control_flow_ops.Assert(math_ops.reduce_all(gen_ops.greater(t[1:], t[:-1])), ["`t` must be monotonic increasing"])


def _check_types(y0: Any, *times: Any) -> None:
    if not (y0.dtype.is_floating or y0.dtype.is_complex):
        raise at_user_line(TypeError("`y0` must have a floating point or complex floating point dtype"))
    for name, value in zip(("t", "dt"), times):
        if not value.dtype.is_floating:
            raise at_user_line(TypeError("`%s` must have a floating point dtype" % name))


def _adaptive(
    func: Callable[[Any, Any], Any],
    y0: Any,
    t: Any,
    rtol: Any,
    atol: Any,
    scope: str,
    full_output: bool,
    first_step: Any = None,
    safety: Any = 0.9,
    ifactor: Any = 10.0,
    dfactor: Any = 0.2,
    max_num_steps: Any = 1000,
) -> Any:
    """odeint with the options of its method dopri5: the first step, how careful steps are, how much they may grow and shrink, how many there may
    be between two times."""
    limits = [convert_to_tensor(value, t.dtype) for value in (1.0 if first_step is None else first_step, safety, ifactor, dfactor)]
    first_step, safety, ifactor, dfactor = limits
    most = convert_to_tensor(max_num_steps, dtypes.int32)

    def take_step(state: _State, points: Any, ratios: Any, count: Any) -> Any:
        checks = [
            control_flow_ops.Assert(gen_ops.greater(state.t1 + state.dt, state.t1), ["underflow in dt", state.dt]),
            control_flow_ops.Assert(gen_ops.less(count, most), ["max_num_steps exceeded"]),
            control_flow_ops.Assert(math_ops.reduce_all(gen_ops.is_finite(math_ops.abs(state.y))), ["non-finite values in state `y`", state.y]),
        ]
        with control_dependencies(checks):
            y, dt = array_ops.identity(state.y), array_ops.identity(state.dt)
        after, error, slopes = _step(func, y, state.slope, state.t1, dt)
        allowed = atol + rtol * gen_ops.maximum(math_ops.abs(y), math_ops.abs(after))
        ratio = gen_ops.sqrt(math_ops.reduce_mean(_absolute_square(error) / _absolute_square(allowed)))
        good = gen_ops.less_equal(ratio, 1.0)

        def choose(new: Any, old: Any) -> Any:
            return control_flow_ops.cond(good, lambda: new, lambda: old)

        fit = [choose(new, old) for new, old in zip(_fitted(y, after, slopes, dt), state.polynomial)]
        following = _optimal_step_size(dt, ratio, safety, ifactor, dfactor)
        kept = _State(choose(after, y), choose(slopes[-1], state.slope), state.t1, choose(state.t1 + dt, state.t1), following, fit)
        return kept, _append(points, state.t1 + dt), _append(ratios, ratio), count + 1

    def reach(solution: Any, points: Any, ratios: Any, state: _State, i: Any) -> Any:
        state, points, ratios, _ = control_flow_ops.while_loop(
            lambda state, *_: gen_ops.greater(t[i], state.t1), take_step, (state, points, ratios, convert_to_tensor(0)), name="integrate_loop"
        )
        return solution.write(i, _interp_evaluate(state.polynomial, state.t0, state.t1, t[i])), points, ratios, state, i + 1

    with control_dependencies([_increasing(t)]):
        number = array_ops.size(t)
    solution = TensorArray(y0.dtype, size=number).write(0, y0)
    points, ratios = (TensorArray(dtype, size=0, dynamic_size=True) for dtype in (t.dtype, rtol.dtype))
    state = _State(y0, func(y0, t[0]), t[0], t[0], first_step, [y0] * 5)
    solution, points, ratios, _, _ = control_flow_ops.while_loop(
        lambda *loop: gen_ops.less(loop[-1], number), reach, (solution, points, ratios, state, convert_to_tensor(1)), name="interpolate_loop"
    )
    y = solution.stack(name=scope)
    y.set_shape(t.get_shape().concatenate(y0.get_shape()))
    if not full_output:
        return y
    tried = points.stack()
    return y, {"num_func_evals": 6 * array_ops.size(tried) + 1, "integrate_points": tried, "error_ratio": ratios.stack()}


def odeint(
    func: Callable[[Any, Any], Any],
    y0: Any,
    t: Any,
    rtol: Any = 1e-6,
    atol: Any = 1e-12,
    method: Optional[str] = None,
    options: Any = None,
    full_output: bool = False,
    name: Optional[str] = None,
) -> Any:
    """y at the times t, which grow, of dy/dt = func(y, t) from y0 at t[0]: [len(t), ...]; errors of steps stay below atol + rtol |y|.
    full_output: (y, a dictionary of num_func_evals, integrate_points and error_ratio of the steps that were tried). options are those of the method
    dopri5: first_step, safety, ifactor, dfactor, max_num_steps."""
    if method not in (None, "dopri5"):
        raise at_user_line(ValueError("invalid method: %r" % method))
    if options is not None and method is None:
        raise at_user_line(ValueError("cannot supply `options` without specifying `method`"))
    with name_scope(name, "odeint", [y0, t, rtol, atol]) as scope:
        y0, t = convert_to_tensor(y0, name="y0"), convert_to_tensor(t, preferred_dtype=dtypes.float64, name="t")
        _check_types(y0, t)
        real = y0.dtype.real_dtype
        rtol, atol = convert_to_tensor(rtol, real, name="rtol"), convert_to_tensor(atol, real, name="atol")
        return _adaptive(func, y0, t, rtol, atol, scope, full_output, **(options or {}))


def _midpoint(func: Callable[[Any, Any], Any], y: Any, t: Any, dt: Any) -> Tensor:
    h = math_ops.cast(dt, y.dtype)
    return h * func(y + func(y, t) * h / 2, t + dt / 2)


def _rk4(func: Callable[[Any, Any], Any], y: Any, t: Any, dt: Any) -> Tensor:
    h = math_ops.cast(dt, y.dtype)
    k1 = func(y, t)
    k2 = func(y + h * k1 / 2, t + dt / 2)
    k3 = func(y + h * k2 / 2, t + dt / 2)
    k4 = func(y + h * k3, t + dt)
    return (k1 + 2 * k2 + 2 * k3 + k4) * (h / 6)


def odeint_fixed(func: Callable[[Any, Any], Any], y0: Any, t: Any, dt: Any = None, method: str = "rk4", name: Optional[str] = None) -> Tensor:
    """As odeint, by steps of at most dt (a number, or one for each interval of t; else the intervals): method 'rk4' or 'midpoint'."""
    step = {"rk4": _rk4, "midpoint": _midpoint}.get(method)
    if step is None:
        raise at_user_line(ValueError("method not supported: %s" % method))
    with name_scope(name, "odeint_fixed", [y0, t, dt]):
        t, y0 = convert_to_tensor(t, preferred_dtype=dtypes.float64, name="t"), convert_to_tensor(y0, name="y0")
        intervals = t[1:] - t[:-1]
        dt = intervals if dt is None else convert_to_tensor(dt, preferred_dtype=dtypes.float64, name="dt")
        _check_types(y0, t, dt)
        if t.get_shape().ndims != 1 or dt.get_shape().ndims not in (0, 1):
            raise at_user_line(ValueError("t must be a 1D tensor"))
        if dt.get_shape().ndims == 1 and not dt.get_shape().is_compatible_with(intervals.get_shape()):
            raise at_user_line(ValueError("t and dt have incompatible lengths, must be N and N-1"))
        counts = gen_ops.ceil(intervals / dt)
        sizes, counts = intervals / counts, math_ops.cast(counts, dtypes.int32)
        with control_dependencies([_increasing(t)]):
            number = array_ops.size(t)

        def reach(solution: Any, y: Any, time: Any, i: Any) -> Any:
            h = sizes[i - 1]
            y, time, _ = control_flow_ops.while_loop(
                lambda y, time, j: gen_ops.less(j, counts[i - 1]),
                lambda y, time, j: (y + math_ops.cast(step(func, y, time, h), y.dtype), time + h, j + 1),
                (y, time, convert_to_tensor(0)),
            )
            return solution.write(i, y), y, time, i + 1

        solution = TensorArray(y0.dtype, size=number).write(0, y0)
        solution, _, _, _ = control_flow_ops.while_loop(lambda *loop: gen_ops.less(loop[-1], number), reach, (solution, y0, t[0], convert_to_tensor(1)))
        made = solution.stack()
        made.set_shape(t.get_shape().concatenate(y0.get_shape()))
        return made
