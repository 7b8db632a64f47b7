# SPDX-License-Identifier: Apache-2.0
"""L-BFGS whose vectors stay where the variables are: only scalars travel to the client, which decides what is done with them."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from millrace import _core
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, get_default_graph, name_scope
from millrace.framework.default_session import get_default_session
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops
from millrace.ops.gradients import gradients
from millrace.ops.variables import Variable, trainable_variables

__all__ = ["LBFGSOptimizer", "LBFGSResult"]


class LBFGSResult(NamedTuple):
    """What came of a minimisation: the variables hold the best point."""

    loss: float
    iterations: int
    evaluations: int
    converged: bool
    message: str


class ShardedVectors:
    """The vectors of L-BFGS over some variables, each part on the device of its variable: the point, the direction, the gradient where the
    step leads (`there`), and the basis of 2m+1 rows. Every operation is one run; what it gives are scalars and dot products."""

    def __init__(self, variables: Sequence[Any], history: int, name: str) -> None:
        self.variables, self.there = list(variables), []  # type: List[Any], List[Any]
        graph, m = get_default_graph(), history
        with name_scope(None, name):
            self.step = array_ops.placeholder(dtypes.float64, [], name="step")
            self.slot = array_ops.placeholder(dtypes.int32, [], name="slot")
            self.coefficients = array_ops.placeholder(dtypes.float64, [2 * m + 1], name="coefficients")
            begin: List[Any] = []
            move: List[Any] = []
            turn: List[Any] = []
            back: List[Any] = []
            slopes: List[Any] = []
            squares: List[Any] = []
            largest: List[Any] = []
            products: List[Any] = []
            for v in self.variables:
                dtype, n = v.dtype.base_dtype, v.get_shape().num_elements()
                if n is None:
                    raise at_user_line(ValueError("L-BFGS needs variables of known shape, got %s" % v.name))
                with graph.device(v.device):
                    flat = array_ops.reshape(v, [n])
                    shape = v.get_shape()
                    origin, direction, there = (self._vector(array_ops.zeros([n], dtype), part) for part in ("origin", "direction", "there"))
                    basis = self._vector(array_ops.zeros([2 * m + 1, n], dtype), "basis")
                    self.there.append(there)
                    step, gradient = math_ops.cast(self.step, dtype), there.read_value()
                    with graph.control_dependencies([gradient]):
                        cleared = basis.assign(array_ops.concat([array_ops.zeros([2 * m, n], dtype), [gradient]], 0))
                    begin += [origin.assign(flat), cleared]
                    move.append(v.assign(array_ops.reshape(origin.read_value() + step * direction.read_value(), shape)))
                    rows = matrix_ops.matmul([math_ops.cast(self.coefficients, dtype)], basis.read_value())
                    turn.append(direction.assign(array_ops.reshape(rows, [n])))
                    back.append(v.assign(array_ops.reshape(origin.read_value(), shape)))
                    wide = math_ops.cast(gradient, dtypes.float64)
                    slopes.append(math_ops.reduce_sum(wide * math_ops.cast(direction.read_value(), dtypes.float64)))
                    squares.append(math_ops.reduce_sum(wide * wide))
                    largest.append(math_ops.cast(gen_ops.max(gen_ops.abs(gradient), [0]) if n else 0.0, dtypes.float64))
                    products.append(self._accept(origin, direction, there, basis, flat, step, m))
            self.begin, self.move, self.turn, self.back = (control_flow_ops.group(*ops) for ops in (begin, move, turn, back))
            self.slope, self.square = math_ops.add_n(slopes), math_ops.add_n(squares)
            self.largest = math_ops.reduce_max(array_ops.stack(largest))
            self.products = math_ops.add_n(products)

    @staticmethod
    def _vector(initial: Any, name: str) -> Variable:
        return Variable(initial, trainable=False, collections=[], name=name)

    def _accept(self, origin: Any, direction: Any, there: Any, basis: Any, flat: Any, step: Tensor, m: int) -> Tensor:
        """Makes the point that was tried the point; gives the products of the three new rows with all rows."""
        gradient = there.read_value()
        change = gradient - basis.read_value()[2 * m]
        places = array_ops.stack([self.slot, m + self.slot, 2 * m])
        stored = gen_ops.scatter_update(basis.op.outputs[0], places, array_ops.stack([step * direction.read_value(), change, gradient]))
        with get_default_graph().control_dependencies([stored, origin.assign(flat)]):
            all_rows = basis.read_value()
            new = gen_ops.gather(all_rows, places)
            return math_ops.cast(matrix_ops.matmul(new, all_rows, transpose_b=True), dtypes.float64)

    def store(self, gradients_there: Sequence[Any]) -> List[Operation]:
        """Operations that make these (None: zeros) the gradient where the step leads."""
        stores = []
        for v, there, g in zip(self.variables, self.there, gradients_there):
            with get_default_graph().device(v.device):
                n = there.get_shape()
                value = array_ops.zeros(n, there.dtype.base_dtype) if g is None else array_ops.reshape(convert_to_tensor(g), n)
                stores.append(there.assign(value).op)
        return stores

    def minimize(self, run: Callable[..., Any], evaluate: Callable[[], float], solver: Any, callback: Optional[Callable[[int, float], None]]) -> LBFGSResult:
        """Runs the solver's moves. `run(fetches, feed)` is a step; `evaluate()` gives the loss at the variables' values and leaves the
        gradient there in `there`."""
        loss, evaluations = evaluate(), 1
        largest, square = run([self.largest, self.square])
        run([self.begin])
        what = solver.tell([loss, largest, square])
        while what != "done":
            if what == "accept":
                largest, products = run([self.largest, self.products], {self.slot: solver.slot, self.step: solver.step})
                what = solver.tell([largest, *products.ravel()])
                if callback is not None:
                    callback(solver.iterations, solver.loss)
                continue
            if what == "turn":
                run([self.turn], {self.coefficients: solver.coefficients})
            run([self.move], {self.step: solver.step})
            loss, evaluations = evaluate(), evaluations + 1
            what = solver.tell([loss, run([self.slope])[0]])
        run([self.back])
        return LBFGSResult(solver.loss, solver.iterations, evaluations, solver.converged, solver.reason)


class LBFGSOptimizer:
    """Minimises a loss that is the same function in every step (a whole data set, or a batch that stays) by L-BFGS with a line search for
    the strong Wolfe conditions. It is done when no element of the gradient is larger than `gradient_tolerance`, when an iteration gains no
    more than `loss_tolerance` relative to max(|loss|, 1), or after `max_iterations`.

    Steps, gradient differences and the direction lie beside their variables, also on parameter servers."""

    def __init__(
        self,
        loss: Any,
        var_list: Any = None,
        history: int = 10,
        max_iterations: int = 100,
        gradient_tolerance: float = 1e-5,
        loss_tolerance: float = 2.2e-9,
        max_tries: int = 20,
        name: str = "LBFGS",
    ) -> None:
        self._options = dict(
            history=history, max_iterations=max_iterations, max_tries=max_tries, gradient_tolerance=gradient_tolerance, loss_tolerance=loss_tolerance
        )
        _core.Lbfgs(**self._options)  # says at once when they make no sense
        variables = list(var_list if var_list is not None else trainable_variables())
        if not variables:
            raise at_user_line(ValueError("there are no variables to optimize"))
        found = gradients(loss, variables)
        if all(g is None for g in found):
            raise at_user_line(ValueError("the loss depends on none of the variables: %s" % [v.name for v in variables]))
        self._vectors = ShardedVectors(variables, history, name)
        loss = convert_to_tensor(loss)
        with get_default_graph().control_dependencies(self._vectors.store(found)):
            self._loss = math_ops.cast(array_ops.identity(loss), dtypes.float64)

    def minimize(self, session: Any = None, feed_dict: Any = None, callback: Optional[Callable[[int, float], None]] = None) -> LBFGSResult:
        """Minimises from the variables' values on; `callback` gets the number of each iteration, and its loss."""
        session = session or get_default_session()
        if session is None:
            raise at_user_line(ValueError("minimize() needs a session: pass session= or use `with sess:`"))
        return self._vectors.minimize(
            lambda fetches, feed=None: session.run(fetches, feed), lambda: session.run(self._loss, feed_dict), _core.Lbfgs(**self._options), callback
        )
