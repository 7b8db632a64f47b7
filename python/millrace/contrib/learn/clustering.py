# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.KMeansClustering: clusters by fit and predict. tf.contrib.factorization has an estimator of them by train."""

from __future__ import annotations

from typing import Any, Iterator, Optional

import numpy as np

from millrace.contrib.factorization import KMeans
from millrace.contrib.factorization_hooks import one_tensor
from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.ops.control_flow_ops import no_op
from millrace.train.checkpoint_utils import load_variable


class KMeansClustering(Estimator):
    """fit moves centres to the means of what is nearest to them, predict_cluster_idx tells the nearest, transform the distances to all."""

    SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE = KMeans.SQUARED_EUCLIDEAN_DISTANCE, KMeans.COSINE_DISTANCE
    RANDOM_INIT, KMEANS_PLUS_PLUS_INIT = KMeans.RANDOM_INIT, KMeans.KMEANS_PLUS_PLUS_INIT
    SCORES, CLUSTER_IDX, CLUSTERS, ALL_SCORES, LOSS_OP_NAME = "scores", "cluster_idx", "clusters", "all_scores", "kmeans_loss"

    def __init__(
        self,
        num_clusters: int,
        model_dir: Optional[str] = None,
        initial_clusters: Any = KMeans.RANDOM_INIT,
        distance_metric: str = KMeans.SQUARED_EUCLIDEAN_DISTANCE,
        random_seed: int = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: Optional[float] = None,
        config: Any = None,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
            del labels  # clusters have none
            how = (use_mini_batch, mini_batch_steps_per_iteration, random_seed, kmeans_plus_plus_num_retries)
            clusters = KMeans(one_tensor(features), num_clusters, initial_clusters, distance_metric, *how)
            made = clusters.step_of_estimator(config.is_chief, relative_tolerance, self.LOSS_OP_NAME)
            return ModelFnOps(
                mode=mode,
                predictions={self.ALL_SCORES: made.distances, self.CLUSTER_IDX: made.nearest},
                eval_metric_ops={self.SCORES: (made.loss, no_op())},
                loss=made.loss,
                train_op=made.train_op,
                training_hooks=made.hooks,
            )

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)

    def predict_cluster_idx(self, input_fn: Any = None) -> Iterator[Any]:
        """The nearest cluster of each row."""
        return (made[self.CLUSTER_IDX] for made in self.predict(input_fn=input_fn, outputs=[self.CLUSTER_IDX]))

    def score(self, input_fn: Any = None, steps: Optional[int] = None) -> Any:
        """The sum of the distances of a batch to the nearest clusters."""
        return np.sum(self.evaluate(input_fn=input_fn, steps=steps)[self.SCORES])

    def transform(self, input_fn: Any = None, as_iterable: bool = False) -> Any:
        """The distances of each row to all clusters, as an array or one by one."""
        made = (row[self.ALL_SCORES] for row in self.predict(input_fn=input_fn, outputs=[self.ALL_SCORES]))
        return made if as_iterable else np.array(list(made))

    def clusters(self) -> Any:
        """The centres, from the newest checkpoint."""
        return load_variable(self.model_dir, self.CLUSTERS)
