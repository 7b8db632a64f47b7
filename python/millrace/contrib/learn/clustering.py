# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.KMeansClustering: clusters by fit and predict. tf.contrib.factorization has an estimator of them by train."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional

import numpy as np

from millrace import summary
from millrace.contrib.factorization import KMeans
from millrace.contrib.factorization_hooks import InitializeClustersHook, LossRelativeChangeHook, one_tensor
from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.framework.graph import control_dependencies
from millrace.ops import array_ops, math_ops, variables
from millrace.ops.control_flow_ops import no_op
from millrace.train.checkpoint_utils import load_variable
from millrace.train.global_step import get_global_step


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
            made = KMeans(
                one_tensor(features),
                num_clusters,
                initial_clusters,
                distance_metric,
                use_mini_batch,
                mini_batch_steps_per_iteration,
                random_seed,
                kmeans_plus_plus_num_retries,
            ).training_graph()
            distances, nearest, scores, ready, init_op, train = made
            loss = math_ops.reduce_sum(scores[0], name=self.LOSS_OP_NAME)
            summary.scalar("loss/raw", loss)
            with control_dependencies([train, variables.assign_add(get_global_step(), 1)]):
                train_op = array_ops.identity(loss)
            hooks: List[Any] = [InitializeClustersHook(init_op, ready, config.is_chief)]
            if relative_tolerance is not None:
                hooks.append(LossRelativeChangeHook(loss, relative_tolerance))
            return ModelFnOps(
                mode=mode,
                predictions={self.ALL_SCORES: distances[0], self.CLUSTER_IDX: nearest[0]},
                eval_metric_ops={self.SCORES: (loss, no_op())},
                loss=loss,
                train_op=train_op,
                training_hooks=hooks,
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
