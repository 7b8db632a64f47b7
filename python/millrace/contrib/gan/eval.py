# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
# ruff: noqa: F401
"""tf.contrib.gan.eval: how good generated images are, and summaries of them."""

from millrace.contrib.gan.classifier_metrics import (
    INCEPTION_DEFAULT_IMAGE_SIZE,
    INCEPTION_FINAL_POOL,
    INCEPTION_INPUT,
    INCEPTION_OUTPUT,
    classifier_score,
    classifier_score_from_logits,
    diagonal_only_frechet_classifier_distance_from_activations,
    frechet_classifier_distance,
    frechet_classifier_distance_from_activations,
    frechet_inception_distance,
    get_graph_def_from_disk,
    get_graph_def_from_resource,
    get_graph_def_from_url_tarball,
    inception_score,
    mean_only_frechet_classifier_distance_from_activations,
    preprocess_image,
    run_image_classifier,
    run_inception,
)
from millrace.contrib.gan.sliced_wasserstein import sliced_wasserstein_distance
from millrace.contrib.gan.summaries import (
    add_cyclegan_image_summaries,
    add_gan_model_image_summaries,
    add_gan_model_summaries,
    add_image_comparison_summaries,
    add_regularization_loss_summaries,
    add_stargan_image_summaries,
    image_grid,
    image_reshaper,
)
