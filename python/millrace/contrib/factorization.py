# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.factorization: clusters, by their centres or as a mixture of normal distributions; factors of matrices."""

from __future__ import annotations

from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

import millrace as tf
from millrace.contrib.factorization_gmm import GMM, GmmAlgorithm, gmm  # noqa: F401
from millrace.contrib.factorization_hooks import InitializeClustersHook, LossRelativeChangeHook, one_tensor
from millrace.contrib.factorization_wals import WALSModel  # noqa: F401
from millrace.contrib.factorization_wals_estimator import WALSMatrixFactorization  # noqa: F401
from millrace.estimator.export_output import PredictOutput
from millrace.framework.errors import at_user_line
from millrace.ops import gen_ops

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
KMC2_INIT = "kmc2"


class StepOfEstimator(NamedTuple):
    """Distances to all clusters, the nearest ones, the sum of the distances to these, an operation that moves centres, and hooks for it."""

    distances: Any
    nearest: Any
    loss: Any
    train_op: Any
    hooks: List[Any]


class KMeans:
    """Finds clusters: each step moves the centres to the means of what is nearest to them."""

    SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE = SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE
    RANDOM_INIT, KMEANS_PLUS_PLUS_INIT = RANDOM_INIT, KMEANS_PLUS_PLUS_INIT

    def __init__(
        self,
        inputs: Any,
        num_clusters: int,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        if use_mini_batch and mini_batch_steps_per_iteration != 1:
            raise at_user_line(NotImplementedError("KMeans moves its centres at every step: leave mini_batch_steps_per_iteration at 1."))
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise at_user_line(ValueError("Unsupported distance metric passed to Kmeans %s" % distance_metric))
        if isinstance(initial_clusters, str) and initial_clusters not in (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT):
            raise at_user_line(ValueError("Unsupported initialization algorithm passed to Kmeans %s" % initial_clusters))
        self._inputs = [tf.convert_to_tensor(x) for x in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        self._count, self._start, self._metric = num_clusters, initial_clusters, distance_metric
        self._mini_batch, self._seed = use_mini_batch, random_seed
        self._retries, self._chain_length = kmeans_plus_plus_num_retries, kmc2_chain_length

    def training_graph(self) -> Tuple[Any, ...]:
        """(all distances, nearest clusters, distances to them, whether there are centres, what makes them, what moves them).

        The first three are lists, an element for each of the inputs."""
        cosine = self._metric == COSINE_DISTANCE
        inputs = [tf.nn.l2_normalize(x, 1) if cosine else x for x in self._inputs]
        width = inputs[0].get_shape()[1].value
        centres = tf.Variable(tf.zeros([self._count, width], inputs[0].dtype), trainable=False, name="clusters")
        ready = tf.Variable(False, trainable=False, name="initialized")
        counts = tf.Variable(tf.ones([self._count], inputs[0].dtype), trainable=False, name="counts")
        everything = inputs[0] if len(inputs) == 1 else tf.concat(inputs, 0)
        first = self._first(everything)
        first = tf.nn.l2_normalize(first, 1) if cosine else first
        with tf.control_dependencies([centres.assign(first), counts.assign(tf.ones_like(counts))]):
            init_op = ready.assign(True).op
        now = tf.nn.l2_normalize(centres, 1) if cosine else centres
        distances = [self._distances(x, now, cosine) for x in inputs]
        nearest = [tf.argmin(d, 1) for d in distances]
        scores = [tf.reduce_min(d, 1) for d in distances]
        train_op = self._train(everything, nearest[0] if len(nearest) == 1 else tf.concat(nearest, 0), centres, counts)
        return distances, nearest, scores, ready, init_op, train_op

    def step_of_estimator(self, is_chief: bool, relative_tolerance: Optional[float], loss_name: Optional[str] = None) -> StepOfEstimator:
        """What an estimator of these clusters trains and tells of its first input; `relative_tolerance`: it ends when the loss changes less."""
        distances, nearest, scores, ready, init_op, train = self.training_graph()
        loss = tf.reduce_sum(scores[0], name=loss_name)
        tf.summary.scalar("loss/raw", loss)
        with tf.control_dependencies([train, tf.assign_add(tf.train.get_global_step(), 1)]):
            train_op = tf.identity(loss)
        hooks: List[Any] = [InitializeClustersHook(init_op, ready, is_chief)]
        if relative_tolerance is not None:
            hooks.append(LossRelativeChangeHook(loss, relative_tolerance))
        return StepOfEstimator(distances[0], nearest[0], loss, train_op, hooks)

    @staticmethod
    def _distances(x: Any, centres: Any, cosine: bool) -> Any:
        product = tf.matmul(x, centres, transpose_b=True)
        if cosine:
            return 1 - product
        squares = tf.reduce_sum(tf.square(x), 1, keepdims=True) - 2 * product + tf.reduce_sum(tf.square(centres), 1)
        return tf.maximum(squares, tf.zeros_like(squares))

    def _first(self, data: Any) -> Any:
        if callable(self._start):
            return self._start(self._inputs, self._count)
        if not isinstance(self._start, str):
            return self._start
        rows, known = tf.shape(data)[0], data.get_shape()[0].value
        if known is not None and known < self._count:
            raise at_user_line(ValueError("%d clusters need as many rows; the first batch has %d" % (self._count, known)))
        with tf.control_dependencies([tf.Assert(rows >= self._count, ["%d clusters need as many rows; the first batch has" % self._count, rows])]):
            if self._start == RANDOM_INIT:
                return tf.gather(data, tf.random_shuffle(tf.range(rows), seed=self._seed)[: self._count])
            points = tf.cast(data, tf.float32)
        if self._start == KMEANS_PLUS_PLUS_INIT:
            first = gen_ops.kmeans_plus_plus_initialization(points, self._count, self._seed or 0, self._retries)
        else:
            first = self._by_chains(points)
        return tf.cast(first, data.dtype)

    def _by_chains(self, points: Any) -> Any:
        """Centres of which each is the end of a Markov chain along points that are drawn, by their distances from those before it."""
        rows, seed = tf.shape(points)[0], self._seed or 0

        def drawn(count: int, i: int) -> Any:
            return tf.gather(points, tf.random_uniform([count], 0, rows, tf.int32, seed=seed + i))

        chosen = drawn(1, 0)
        for i in range(1, self._count):
            candidates = drawn(self._chain_length, i)
            _indices, distances = gen_ops.nearest_neighbors(candidates, chosen, 1)
            end = gen_ops.kmc2_chain_initialization(distances[:, 0], seed + i)
            chosen = tf.concat([chosen, candidates[end : end + 1]], 0)
        return chosen

    def _train(self, data: Any, nearest: Any, centres: Any, counts: Any) -> Any:
        members = tf.unsorted_segment_sum(tf.ones_like(nearest, dtype=data.dtype), nearest, self._count)
        sums = tf.unsorted_segment_sum(data, nearest, self._count)
        if not self._mini_batch:
            moved = sums / tf.expand_dims(members + 1e-6, 1)
            return centres.assign(tf.nn.l2_normalize(moved, 1) if self._metric == COSINE_DISTANCE else moved).op
        total = counts + members
        moved = centres + tf.expand_dims(1 / total, 1) * (sums - tf.expand_dims(members, 1) * centres)
        with tf.control_dependencies([moved, total]):
            return tf.group(centres.assign(moved), counts.assign(total))


class KMeansClustering(tf.estimator.Estimator):
    """An estimator of clusters: train moves their centres, predict_cluster_index tells the nearest, transform the distances to all."""

    SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE = SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE
    RANDOM_INIT, KMEANS_PLUS_PLUS_INIT = RANDOM_INIT, KMEANS_PLUS_PLUS_INIT
    SCORE, CLUSTER_INDEX, ALL_DISTANCES, CLUSTER_CENTERS_VAR_NAME = "score", "cluster_index", "all_distances", "clusters"

    def __init__(
        self,
        num_clusters: int,
        model_dir: Optional[str] = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        random_seed: int = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: Optional[float] = None,
        config: Any = None,
        feature_columns: Any = None,
    ) -> None:
        if isinstance(initial_clusters, str) and initial_clusters not in (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT):
            raise at_user_line(ValueError("Unsupported initialization algorithm '%s'" % initial_clusters))
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise at_user_line(ValueError("Unsupported distance metric '%s'" % distance_metric))

        def model_fn(features: Any, mode: str, config: Any) -> tf.estimator.EstimatorSpec:
            how = (use_mini_batch, mini_batch_steps_per_iteration, random_seed, kmeans_plus_plus_num_retries)
            clusters = KMeans(one_tensor(features, feature_columns), num_clusters, initial_clusters, distance_metric, *how)
            made = clusters.step_of_estimator(config.is_chief, relative_tolerance)
            predictions = {self.ALL_DISTANCES: made.distances, self.CLUSTER_INDEX: made.nearest}
            exports = {key: PredictOutput(value) for key, value in predictions.items()}
            exports[tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY] = PredictOutput(made.nearest)
            scores = {self.SCORE: tf.metrics.mean(made.loss)}
            return tf.estimator.EstimatorSpec(mode, predictions, made.loss, made.train_op, scores, exports, training_hooks=made.hooks)

        super().__init__(model_fn, model_dir, config)

    def _each(self, input_fn: Any, key: str) -> Iterator[Any]:
        for made in self.predict(input_fn, predict_keys=[key]):
            yield made[key]

    def predict_cluster_index(self, input_fn: Any) -> Iterator[Any]:
        """The nearest cluster of each row."""
        return self._each(input_fn, self.CLUSTER_INDEX)

    def score(self, input_fn: Any) -> Any:
        """The sum of the distances of a batch to the nearest clusters."""
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def transform(self, input_fn: Any) -> Iterator[Any]:
        """The distances of each row to all clusters."""
        return self._each(input_fn, self.ALL_DISTANCES)

    def cluster_centers(self) -> Any:
        """The centres, from the newest checkpoint."""
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)


class SeededKMeans(KMeansClustering):
    """KMeansClustering as tf.estimator.experimental.KMeans has it: its random numbers are by `seed`."""

    def __init__(
        self,
        num_clusters: int,
        model_dir: Optional[str] = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        seed: Optional[int] = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: Optional[float] = None,
        config: Any = None,
        feature_columns: Any = None,
    ) -> None:
        how = use_mini_batch, mini_batch_steps_per_iteration, kmeans_plus_plus_num_retries, relative_tolerance, config, feature_columns
        super().__init__(num_clusters, model_dir, initial_clusters, distance_metric, seed or 0, *how)
