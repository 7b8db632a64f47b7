// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/training/sdca_batch.h"

#include <algorithm>
#include <limits>

#include "base/hash_map.h"
#include "base/stop_scope.h"

namespace millrace {
namespace {

// Output o, which changes weights, as zeros of their shape.
StatusOr<float*> Zeros(KernelContext& ctx, int o, const Tensor& weights) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, weights.shape()));
  std::fill_n(out->mutable_data<float>(), out->num_elements(), 0.0f);
  return out->mutable_data<float>();
}

Status CheckCount(const Tensor& t, int64_t want, const char* what) {
  if (t.num_elements() == want) return absl::OkStatus();
  return InvalidArgument("Expected ", want, " ", what, " but got ", t.num_elements());
}

}  // namespace

StatusOr<SdcaPenalty> ReadSdcaPenalty(const KernelInit& init) {
  MR_ASSIGN_OR_RETURN(const float l1, init.Attr<float>("l1"));
  MR_ASSIGN_OR_RETURN(const float l2, init.Attr<float>("l2"));
  if (!(l1 >= 0) || !(l2 > 0)) return InvalidArgument("l1 must not be negative, and l2 positive, got ", l1, ", ", l2);
  return SdcaPenalty{.shrinkage = l1 / l2, .l2 = l2};
}

StatusOr<SdcaBatch> SdcaBatch::Make(KernelContext& ctx, const SdcaLoss& loss) {
  const Tensor& weights = ctx.input(ctx.input_arg("example_weights").begin);
  const Tensor& labels = ctx.input(ctx.input_arg("example_labels").begin);
  const ArgRange sparse = ctx.input_arg("sparse_weights"), dense = ctx.input_arg("dense_weights");
  if (sparse.begin == sparse.end && dense.begin == dense.end) {
    return InvalidArgument("Requires at least one feature to train.");
  }
  if (weights.num_elements() >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Too many examples in a mini-batch: ", weights.num_elements());
  }
  MR_RETURN_IF_ERROR(CheckCount(labels, weights.num_elements(), "example labels"));
  SdcaBatch batch;
  batch.weights_ = weights.data<float>();
  batch.labels_.assign(labels.data<float>(), labels.data<float>() + labels.num_elements());
  for (float& label : batch.labels_) {
    if (!loss.admit(&label)) return InvalidArgument(loss.labels, " Found example with label: ", label);
  }
  batch.squared_norms_.resize(batch.labels_.size());
  for (int i = 0; i < sparse.end - sparse.begin; ++i) MR_RETURN_IF_ERROR(batch.AddSparse(ctx, i));
  for (int i = 0; i < dense.end - dense.begin; ++i) MR_RETURN_IF_ERROR(batch.AddDense(ctx, i));
  return batch;
}

Status SdcaBatch::AddSparse(KernelContext& ctx, int group) {
  const auto input = [&](const char* name) -> const Tensor& { return ctx.input(ctx.input_arg(name).begin + group); };
  const Tensor &examples = input("sparse_example_indices"), &features = input("sparse_feature_indices");
  const Tensor &known = input("sparse_indices"), &weights = input("sparse_weights");
  const int64_t n = features.num_elements();
  MR_RETURN_IF_ERROR(CheckCount(examples, n, "examples of sparse features"));
  MR_RETURN_IF_ERROR(CheckCount(weights, known.num_elements(), "sparse weights"));
  SparseGroup g;
  const ArgRange with_values = ctx.input_arg("sparse_feature_values");
  if (group < with_values.end - with_values.begin) {
    const Tensor& values = ctx.input(with_values.begin + group);
    MR_RETURN_IF_ERROR(CheckCount(values, n, "values of sparse features"));
    g.values = values.data<float>();
  }
  g.weights = weights.data<float>();
  MR_ASSIGN_OR_RETURN(g.changes, Zeros(ctx, 1 + group, weights));

  StopNowAndThen pause;
  HashMap<int64_t, int64_t> place_of;
  for (int64_t i = 0; i < known.num_elements(); ++i) {
    pause();
    place_of[known.data<int64_t>()[i]] = i;
  }
  std::vector<int64_t> last_example(static_cast<size_t>(known.num_elements()), -1);  // that had the feature
  g.places.reserve(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    pause();
    const int64_t example = examples.data<int64_t>()[k], feature = features.data<int64_t>()[k];
    if (example < 0 || example >= size() || example + 1 < static_cast<int64_t>(g.begin.size())) {
      return InvalidArgument(
          "sparse_example_indices must be sorted numbers of ", size(), " examples, got ", example, " at ", k);
    }
    g.begin.resize(static_cast<size_t>(example) + 1, k);
    const auto found = place_of.find(feature);
    if (found == place_of.end()) {
      return InvalidArgument("Found sparse feature indices out of valid range: ", feature);
    }
    int64_t& last = last_example[static_cast<size_t>(found->second)];
    if (last == example) return InvalidArgument("Duplicate index in sparse vector.");
    last = example;
    g.places.push_back(found->second);
    squared_norms_[static_cast<size_t>(example)] += g.value(k) * g.value(k);
  }
  g.begin.resize(labels_.size() + 1, n);
  sparse_.push_back(std::move(g));
  return absl::OkStatus();
}

Status SdcaBatch::AddDense(KernelContext& ctx, int group) {
  const Tensor& values = ctx.input(ctx.input_arg("dense_features").begin + group);
  const Tensor& weights = ctx.input(ctx.input_arg("dense_weights").begin + group);
  if (values.rank() != 2 || values.dim(0) != size()) {
    return InvalidArgument("dense_features must be a matrix with a row for each of ", size(), " examples, got ",
                           values.shape().ToString());
  }
  if (values.dim(1) > weights.num_elements()) {
    return InvalidArgument("More dense features than we have parameters for: ", values.dim(1));
  }
  MR_RETURN_IF_ERROR(CheckCount(weights, values.dim(1), "dense weights"));
  DenseGroup g{.values = values.data<float>(), .width = values.dim(1), .weights = weights.data<float>()};
  MR_ASSIGN_OR_RETURN(g.changes, Zeros(ctx, 1 + static_cast<int>(sparse_.size()) + group, weights));
  StopNowAndThen pause;
  for (int64_t e = 0; e < size(); ++e) {
    pause(1 + g.width);
    double sum = 0;
    for (int64_t k = 0; k < g.width; ++k) sum += double{g.values[e * g.width + k]} * g.values[e * g.width + k];
    squared_norms_[static_cast<size_t>(e)] += sum;
  }
  dense_.push_back(g);
  return absl::OkStatus();
}

int64_t SdcaBatch::num_features(int64_t example) const {
  const auto e = static_cast<size_t>(example);
  int64_t count = 0;
  for (const SparseGroup& g : sparse_) count += g.begin[e + 1] - g.begin[e];
  for (const DenseGroup& g : dense_) count += g.width;
  return count;
}

// Weights change, and in dense groups shrink, in float.
SdcaBatch::Predictions SdcaBatch::Predict(int64_t example, const SdcaPenalty& penalty, int64_t parts) const {
  Predictions p;
  const auto times = static_cast<float>(parts), shrinkage = static_cast<float>(penalty.shrinkage);
  const auto e = static_cast<size_t>(example);
  for (const SparseGroup& g : sparse_) {
    for (int64_t k = g.begin[e]; k < g.begin[e + 1]; ++k) {
      const int64_t at = g.places[static_cast<size_t>(k)];
      p.before += g.value(k) * ShrinkWeight<double>(g.weights[at], penalty.shrinkage);
      p.now += g.value(k) * ShrinkWeight<double>(g.weights[at] + g.changes[at] * times, penalty.shrinkage);
    }
  }
  for (const DenseGroup& g : dense_) {
    const float* x = g.values + example * g.width;
    for (int64_t k = 0; k < g.width; ++k) {
      p.before += x[k] * ShrinkWeight(g.weights[k], shrinkage);
      p.now += x[k] * ShrinkWeight(g.weights[k] + g.changes[k] * times, shrinkage);
    }
  }
  return p;
}

void SdcaBatch::AddToWeights(int64_t example, double by) {
  const auto e = static_cast<size_t>(example);
  for (SparseGroup& g : sparse_) {
    for (int64_t k = g.begin[e]; k < g.begin[e + 1]; ++k) {
      float& change = g.changes[g.places[static_cast<size_t>(k)]];
      change = static_cast<float>(change + g.value(k) * by);
    }
  }
  const auto by_float = static_cast<float>(by);
  for (DenseGroup& g : dense_) {
    const float* x = g.values + example * g.width;
    for (int64_t k = 0; k < g.width; ++k) g.changes[k] += x[k] * by_float;
  }
}

}  // namespace millrace
