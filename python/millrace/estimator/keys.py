# SPDX-License-Identifier: Apache-2.0
"""Names of what models predict and of how good they are."""

from millrace.estimator import spec


class PredictionKeys:
    """Names of predictions."""

    CLASSES, CLASS_IDS, LOGISTIC, LOGITS, PREDICTIONS, PROBABILITIES = "classes", "class_ids", "logistic", "logits", "predictions", "probabilities"
    ALL_CLASSES, ALL_CLASS_IDS = "all_classes", "all_class_ids"


class MetricKeys:
    """Names of metrics."""

    LOSS, LOSS_MEAN, LOSS_REGULARIZATION = spec.LOSS_METRIC_KEY, spec.AVERAGE_LOSS_METRIC_KEY, "regularization_loss"
    ACCURACY, ACCURACY_BASELINE, AUC, AUC_PR = "accuracy", "accuracy_baseline", "auc", "auc_precision_recall"
    PRECISION, RECALL = "precision", "recall"
    LABEL_MEAN, PREDICTION_MEAN = "label/mean", "prediction/mean"
    ACCURACY_AT_THRESHOLD = "accuracy/positive_threshold_%g"
    PRECISION_AT_THRESHOLD, RECALL_AT_THRESHOLD = "precision/positive_threshold_%g", "recall/positive_threshold_%g"
    PROBABILITY_MEAN_AT_CLASS, AUC_AT_CLASS, AUC_PR_AT_CLASS = "probability_mean/class%d", "auc/class%d", "auc_precision_recall/class%d"
    PROBABILITY_MEAN_AT_NAME, AUC_AT_NAME, AUC_PR_AT_NAME = "probability_mean/%s", "auc/%s", "auc_precision_recall/%s"
