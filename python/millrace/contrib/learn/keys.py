# SPDX-License-Identifier: Apache-2.0
"""The names of modes, predictions and metrics of tf.contrib.learn."""

from __future__ import annotations


class ModeKeys:
    """What a model is built for."""

    TRAIN, EVAL, INFER = "train", "eval", "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        """ValueError for anything else."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError("Invalid mode %s." % key)


class ProblemType:
    """What a model tells."""

    UNSPECIFIED, CLASSIFICATION, LINEAR_REGRESSION, LOGISTIC_REGRESSION = range(4)


class TaskType:
    """What a task of a cluster does."""

    MASTER, PS, WORKER = "master", "ps", "worker"


class PredictionKey:
    """The names of predictions of estimators that are made already."""

    CLASSES, PROBABILITIES, LOGITS, LOGISTIC, SCORES, TOP_K, GENERIC = "classes", "probabilities", "logits", "logistic", "scores", "top_k", "output"


class MetricKey:
    """The names of metrics of such estimators."""

    LOSS = "loss"
    AUC = "auc"
    AUC_PR = "auc_precision_recall"
    CLASS_AUC = "auc/class%d"
    CLASS_AUC_PR = "auc_precision_recall/class%d"
    PREDICTION_MEAN = "labels/prediction_mean"
    CLASS_PREDICTION_MEAN = "labels/prediction_mean/class%d"
    CLASS_LOGITS_MEAN = "labels/logits_mean/class%d"
    CLASS_PROBABILITY_MEAN = "labels/probability_mean/class%d"
    LABEL_MEAN = "labels/actual_label_mean"
    CLASS_LABEL_MEAN = "labels/actual_label_mean/class%d"
    ACCURACY = "accuracy"
    ACCURACY_BASELINE = "accuracy/baseline_label_mean"
    ACCURACY_MEAN = "accuracy/threshold_%f_mean"
    PRECISION_MEAN = "precision/positive_threshold_%f_mean"
    RECALL_MEAN = "recall/positive_threshold_%f_mean"
