# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.factorization: mixtures of normal distributions, by expectation and maximization."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from millrace.contrib.factorization_hooks import InitializeClustersHook, one_tensor
from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, control_dependencies
from millrace.ops import array_ops, gen_ops, math_ops, random_ops, variables
from millrace.ops.control_flow_ops import cond, group, no_op
from millrace.ops.matrix_ops import eye, matmul
from millrace.ops.variables import Variable
from millrace.train.checkpoint_utils import load_variable
from millrace.train.global_step import get_global_step

FULL_COVARIANCE, DIAG_COVARIANCE = "full", "diag"
_LEAST_VARIANCE = 1e-3  # is added to every variance
_TINY = np.finfo(float).eps


def _covariance(x: Any, diag: bool) -> Tensor:
    """The covariance of rows [width, width], or their variances [1, width]."""
    away = x - math_ops.reduce_mean(x, 0, keepdims=True)
    total = math_ops.reduce_sum(gen_ops.square(away), 0, keepdims=True) if diag else matmul(away, away, transpose_a=True)
    return total / (math_ops.cast(array_ops.shape(x)[0], dtypes.float32) - 1)


class GmmAlgorithm:
    """A mixture of num_classes normal distributions over the rows of data, which is a list of batches. `params` names what a step changes: weights
    (w), means (m), covariances (c)."""

    CLUSTERS_WEIGHT, CLUSTERS_VARIABLE, CLUSTERS_COVS_VARIABLE = "alphas", "clusters", "clusters_covs"

    def __init__(
        self, data: List[Any], num_classes: int, initial_means: Any = None, params: str = "wmc", covariance_type: str = FULL_COVARIANCE, random_seed: int = 0
    ) -> None:
        if covariance_type not in (FULL_COVARIANCE, DIAG_COVARIANCE):
            raise at_user_line(ValueError("Invalid covariance type: %s" % covariance_type))
        data = [convert_to_tensor(batch, dtypes.float32) for batch in data]
        self._full, self._classes = covariance_type == FULL_COVARIANCE, num_classes
        nothing = array_ops.zeros([0])
        self._means = Variable(nothing, name=self.CLUSTERS_VARIABLE, validate_shape=False)
        self._covs: Any = Variable(nothing, name=self.CLUSTERS_COVS_VARIABLE, validate_shape=False)
        self._alpha = Variable(array_ops.fill([num_classes], 1.0 / num_classes), name=self.CLUSTERS_WEIGHT)
        self._ready = Variable(False, dtype=dtypes.bool, name="initialized")
        self._init_op = self._start(data, initial_means, random_seed)
        of_classes = [self._log_chances(batch) for batch in data]
        self._log_densities = [math_ops.reduce_logsumexp(logs, axis=1, keepdims=True) for logs in of_classes]
        self._shares = [gen_ops.exp(logs - whole) for logs, whole in zip(of_classes, self._log_densities)]
        self._train_op = self._step(data, params)

    # ---- the start ----

    def _start(self, data: List[Any], initial_means: Any, seed: int) -> Operation:
        whole = data[0] if len(data) == 1 else array_ops.concat(data, 0)
        if initial_means is None:
            rows = random_ops.random_uniform([self._classes], 0, math_ops.cast(array_ops.shape(whole)[0], dtypes.int64), dtypes.int64, seed=seed)
            initial_means = array_ops.gather(whole, rows)
        if self._full:
            covs = array_ops.tile(array_ops.expand_dims(_covariance(data[0], False) + self._least(data[0]), 0), [self._classes, 1, 1])
        else:
            covs = array_ops.tile(_covariance(data[0], True) + _LEAST_VARIANCE, [self._classes, 1])
        means = array_ops.expand_dims(initial_means, 1)

        def begin() -> Operation:
            made = [variables.assign(self._means, means, validate_shape=False), variables.assign(self._covs, covs, validate_shape=False)]
            with control_dependencies(made):
                return group(variables.assign(self._ready, True))

        return group(cond(array_ops.identity(self._ready), no_op, begin))

    @staticmethod
    def _least(rows: Tensor) -> Tensor:
        return _LEAST_VARIANCE * eye(array_ops.shape(rows)[1])

    # ---- expectation ----

    def _log_chances(self, rows: Tensor) -> Tensor:
        """The log of each class' weight times its density [n, classes]."""
        width = math_ops.cast(array_ops.shape(rows)[1], dtypes.float32)
        away = array_ops.expand_dims(rows, 0) - self._means  # [classes, n, width]
        if self._full:
            root = gen_ops.cholesky(self._covs + self._least(rows))
            log_det = 2.0 * math_ops.reduce_sum(gen_ops.log(gen_ops.matrix_diag_part(root)), 1)
            scaled = gen_ops.matrix_triangular_solve(root, array_ops.transpose(away, [0, 2, 1]))
            squares = math_ops.reduce_sum(gen_ops.square(scaled), 1)
        else:
            spread = self._covs + _LEAST_VARIANCE
            log_det = math_ops.reduce_sum(gen_ops.log(spread), 1)
            squares = math_ops.reduce_sum(gen_ops.square(away) / array_ops.expand_dims(spread, 1), 2)
        return -0.5 * (array_ops.transpose(squares) + width * np.log(2 * np.pi) + log_det) + gen_ops.log(self._alpha)

    # ---- maximization ----

    def _step(self, data: List[Tensor], params: str) -> Operation:
        counts = math_ops.add_n([math_ops.reduce_sum(share, 0) for share in self._shares])
        sums = math_ops.add_n([matmul(share, rows, transpose_a=True) for share, rows in zip(self._shares, data)])
        each = array_ops.reshape(counts, [-1, 1]) + _TINY
        means = array_ops.expand_dims(sums / each, 1) if "m" in params else array_ops.identity(self._means)
        if self._full:
            weighted = [array_ops.expand_dims(array_ops.transpose(share), 2) * rows for share, rows in zip(self._shares, data)]
            squares = math_ops.add_n([matmul(w, array_ops.zeros_like(w) + rows, transpose_a=True) for w, rows in zip(weighted, data)])
            covs = squares / array_ops.expand_dims(each, 2) - matmul(means, means, transpose_a=True) + self._least(data[0])
        else:
            squares = math_ops.add_n([matmul(share, gen_ops.square(rows), transpose_a=True) for share, rows in zip(self._shares, data)])
            covs = squares / each - gen_ops.square(array_ops.squeeze(means, [1])) + _LEAST_VARIANCE
        alpha = counts / (math_ops.reduce_sum(counts) + _TINY)
        changes = {"w": (self._alpha, alpha), "m": (self._means, means), "c": (self._covs, covs)}
        with control_dependencies([alpha, means, covs]):  # all of one expectation
            return group(*[variables.assign(variable, value, validate_shape=False) for key, (variable, value) in changes.items() if key in params])

    # ---- what there is ----

    def init_ops(self) -> Operation:
        """What chooses the first means and covariances, once."""
        return self._init_op

    def training_ops(self) -> Operation:
        """A step."""
        return self._train_op

    def is_initialized(self) -> Variable:
        """Whether init_ops has run."""
        return self._ready

    def alphas(self) -> Variable:
        """The weights of the classes."""
        return self._alpha

    def clusters(self) -> Variable:
        """The means [classes, 1, width]."""
        return self._means

    def covariances(self) -> Variable:
        """The covariances [classes, width, width], or the variances [classes, width]."""
        return self._covs

    def assignments(self) -> List[Tensor]:
        """The most probable class of each row, for each batch."""
        return [math_ops.argmax(share, 1) for share in self._shares]

    def scores(self) -> Tensor:
        """The log of the density of each row [n, 1]."""
        return array_ops.concat(self._log_densities, 0)

    def log_likelihood_op(self) -> Tensor:
        """The log of the sum of the densities of all rows."""
        return math_ops.reduce_logsumexp(self.scores())


def gmm(inp: Any, initial_clusters: Any, num_clusters: int, random_seed: int, covariance_type: str = FULL_COVARIANCE, params: str = "wmc") -> Tuple[Any, ...]:
    """(the log of the sum of densities, the logs of densities, [the classes of each batch], what trains, what starts, whether it has started)."""
    means = None if isinstance(initial_clusters, str) else convert_to_tensor(initial_clusters, dtypes.float32)
    tool = GmmAlgorithm(inp if isinstance(inp, list) else [inp], num_clusters, means, params, covariance_type, random_seed)
    return tool.log_likelihood_op(), tool.scores(), [tool.assignments()], tool.training_ops(), tool.init_ops(), tool.is_initialized()


class GMM(Estimator):
    """An estimator of a mixture of normal distributions: fit trains it, predict_assignments tells classes, score how likely the rows are."""

    SCORES, LOG_LIKELIHOOD, ASSIGNMENTS = "scores", "loss", "assignments"

    def __init__(
        self,
        num_clusters: int,
        model_dir: Optional[str] = None,
        random_seed: int = 0,
        params: str = "wmc",
        initial_clusters: Any = "random",
        covariance_type: str = FULL_COVARIANCE,
        config: Any = None,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
            if labels is not None:
                raise at_user_line(ValueError("GMM takes no labels, got %s" % (labels,)))
            loss, scores, assigned, train, start, ready = gmm(one_tensor(features), initial_clusters, num_clusters, random_seed, covariance_type, params)
            total = Variable(0.0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
            with control_dependencies([train, variables.assign_add(get_global_step(), 1)]):
                train_op = array_ops.identity(loss)
            return ModelFnOps(
                mode=mode,
                predictions={GMM.ASSIGNMENTS: assigned[0][0]},
                eval_metric_ops={GMM.SCORES: (scores, no_op()), GMM.LOG_LIKELIHOOD: (total, total.assign_add(loss))},
                loss=loss,
                train_op=train_op,
                training_hooks=[InitializeClustersHook(start, ready, config.is_chief)],
            )

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)

    def predict_assignments(self, input_fn: Any = None, batch_size: Optional[int] = None, outputs: Any = None) -> Iterator[Any]:
        """The most probable class of each row."""
        for made in self.predict(input_fn=input_fn, batch_size=batch_size, outputs=outputs):
            yield made[GMM.ASSIGNMENTS]

    def score(self, input_fn: Any = None, batch_size: Optional[int] = None, steps: Optional[int] = None) -> Any:
        """The log of the sum of the densities of all rows."""
        made = self.evaluate(input_fn=input_fn, batch_size=batch_size, steps=steps)
        return np.log(np.sum(np.exp(made[GMM.SCORES])))

    def weights(self) -> Any:
        """The weights of the classes, from the newest checkpoint."""
        return load_variable(self.model_dir, GmmAlgorithm.CLUSTERS_WEIGHT)

    def clusters(self) -> Any:
        """The means, from the newest checkpoint."""
        return np.squeeze(load_variable(self.model_dir, GmmAlgorithm.CLUSTERS_VARIABLE), 1)

    def covariances(self) -> Any:
        """The covariances, from the newest checkpoint."""
        return load_variable(self.model_dir, GmmAlgorithm.CLUSTERS_COVS_VARIABLE)
