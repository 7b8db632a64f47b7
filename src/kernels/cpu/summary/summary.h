// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel_registry.h"
#include "wire/event.h"

namespace millrace {

void RegisterMessageKernels(KernelRegistry& registry);  // Assert, Print, PrintV2, Timestamp
void RegisterImageSummaryKernels(KernelRegistry& registry);
void RegisterTensorSummaryKernels(KernelRegistry& registry);  // AudioSummary*, TensorSummary*
void RegisterSummaryWriterKernels(KernelRegistry& registry);

// The encoded summary as output 0.
Status EmitSummary(KernelContext& ctx, const wire::Summary& summary);

// What is put under one tag, with ImageSummary's and AudioSummary's endings where there may be several values.
StatusOr<wire::Summary> HistogramSummaryOf(KernelContext& ctx, absl::string_view tag, const Tensor& values);
struct ImageSummaryOptions {
  int64_t max_images = 3;
  Tensor bad_color;  // of pixels that are not finite
};
Status CheckBadColor(const Tensor& color);
StatusOr<wire::Summary> ImageSummaryOf(const KernelContext& ctx, absl::string_view tag, const Tensor& images,
                                       const ImageSummaryOptions& options);
StatusOr<wire::Summary> AudioSummaryOf(absl::string_view tag, const Tensor& sounds, float sample_rate,
                                       int64_t max_outputs);
// `metadata` is an encoded SummaryMetadata.
StatusOr<wire::Summary> TensorSummaryOf(absl::string_view tag, const Tensor& tensor, absl::string_view metadata);

}  // namespace millrace
