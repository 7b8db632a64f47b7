// SPDX-License-Identifier: Apache-2.0
// CPU kernels: stochastic dual coordinate ascent. A pass takes its examples one after another: the second sees what the
// first has changed. TensorFlow draws their order from the system's entropy; here it comes from the state of the
// examples, which each pass changes, so that a step can be repeated.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/string_hash.h"
#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/training/sdca_batch.h"
#include "kernels/shared/philox.h"

namespace millrace {
namespace {

constexpr int64_t kStateWidth = 4;  // the dual variable, the primal loss, the dual loss, the example's weight

class Dice {
 public:
  explicit Dice(uint64_t seed) : words_(Philox(seed, 0)) {}
  // In [0, 1).
  double operator()() {
    const uint32_t high = words_();
    return UnitDouble(high, words_());
  }

 private:
  PhiloxWords words_;
};

std::vector<int64_t> Shuffled(int64_t n, Dice& dice) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  StopNowAndThen pause;
  for (size_t i = order.size(); i > 1; --i) {
    pause();
    std::swap(order[i - 1], order[static_cast<size_t>(dice() * static_cast<double>(i))]);
  }
  return order;
}

// As many examples as there are, drawn by their weight in `chances`, where each further visit of an example is ten
// times less likely. After as many draws in vain, the places left go to those that were never drawn, likely ones first.
std::vector<int64_t> Drawn(const std::vector<double>& chances, Dice& dice) {
  std::vector<double> sums(chances.size());
  std::partial_sum(chances.begin(), chances.end(), sums.begin());
  const auto n = static_cast<int64_t>(chances.size());
  if (n == 0 || !(sums.back() > 0) || !std::isfinite(sums.back())) return Shuffled(n, dice);
  std::vector<int64_t> order;
  order.reserve(chances.size());
  std::vector<double> keep(chances.size(), 1);
  StopNowAndThen pause;
  for (int64_t in_vain = 0; std::ssize(order) < n && in_vain < n;) {
    pause();
    const auto it = std::upper_bound(sums.begin(), sums.end(), dice() * sums.back());
    const auto picked = static_cast<size_t>(std::min(it, sums.end() - 1) - sums.begin());
    if (dice() > keep[picked]) {
      ++in_vain;
      continue;
    }
    keep[picked] *= 0.1;
    order.push_back(static_cast<int64_t>(picked));
  }
  std::vector<int64_t> unseen;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (keep[i] == 1) unseen.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(unseen.begin(), unseen.end(), [&](int64_t a, int64_t b) {
    pause();
    return chances[static_cast<size_t>(a)] > chances[static_cast<size_t>(b)];
  });
  unseen.resize(std::min(unseen.size(), static_cast<size_t>(n) - order.size()));
  order.insert(order.end(), unseen.begin(), unseen.end());
  return order;
}

class SdcaKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string loss, init.Attr<std::string>("loss_type"));
    loss_ = FindSdcaLoss(loss);
    if (loss_ == nullptr) return InvalidArgument("Unsupported loss type: ", loss);
    MR_ASSIGN_OR_RETURN(adaptive_, init.Attr<bool>(init.HasAttr("adaptive") ? "adaptive" : "adaptative"));
    MR_ASSIGN_OR_RETURN(parts_, init.Attr<int64_t>("num_loss_partitions"));
    MR_ASSIGN_OR_RETURN(penalty_, ReadSdcaPenalty(init));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(SdcaBatch batch, SdcaBatch::Make(ctx, *loss_));
    const Tensor& before = ctx.input(ctx.input_arg("example_state_data").begin);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({batch.size(), kStateWidth}));
    if (before.shape() != shape) {
      return InvalidArgument(
          "Expected shape ", shape.ToString(), " for example_state_data, got ", before.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * after, ctx.AllocateOutput(0, shape));
    const absl::string_view bytes(before.data<char>(), static_cast<size_t>(shape.num_elements()) * sizeof(float));
    if (!bytes.empty()) std::memcpy(after->mutable_raw(), bytes.data(), bytes.size());
    auto* states = after->mutable_data<float>();
    Dice dice(Fingerprint64(bytes));
    StopNowAndThen pause;
    for (const int64_t e : adaptive_ ? Drawn(Chances(batch, states), dice) : Shuffled(batch.size(), dice)) {
      pause(1 + batch.num_features(e));
      Visit(e, batch, states + e * kStateWidth);
    }
    return absl::OkStatus();
  }

 private:
  // How far off the dual variables are, which is how often to visit the examples (Csiba, Qu and Richtarik 2015).
  std::vector<double> Chances(const SdcaBatch& batch, const float* states) const {
    std::vector<double> chances;
    chances.reserve(static_cast<size_t>(batch.size()));
    StopNowAndThen pause;
    for (int64_t e = 0; e < batch.size(); ++e) {
      pause(1 + batch.num_features(e));
      const double residue =
          states[e * kStateWidth] + loss_->derivative(batch.Predict(e, penalty_, parts_).now, double{batch.label(e)});
      const double scale = std::sqrt(batch.squared_norm(e) + penalty_.l2 * loss_->smoothness);
      chances.push_back(std::max(0.0, batch.weight(e) * scale * std::abs(residue)));
    }
    return chances;
  }

  void Visit(int64_t e, SdcaBatch& batch, float* state) const {
    const double label = batch.label(e), weight = batch.weight(e), dual = state[0];
    const SdcaBatch::Predictions p = batch.Predict(e, penalty_, parts_);
    const double updated = loss_->updated(
        {.label = label,
         .dual = dual,
         .prediction = p.now,
         .curvature = static_cast<double>(parts_) * batch.squared_norm(e) / penalty_.l2 * weight});
    batch.AddToWeights(e, (updated - dual) * weight / penalty_.l2);
    const double conjugate = loss_->conjugate(dual, label);
    state[0] = static_cast<float>(updated);
    state[1] = static_cast<float>(loss_->primal(p.before, label) * weight);
    state[2] = static_cast<float>(std::isinf(conjugate) ? conjugate : conjugate * weight);
    state[3] = batch.weight(e);
  }

  const SdcaLoss* loss_ = nullptr;
  bool adaptive_ = false;
  int64_t parts_ = 1;
  SdcaPenalty penalty_;
};

class ShrinkL1Kernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const SdcaPenalty penalty, ReadSdcaPenalty(init));
    shrinkage_ = static_cast<float>(penalty.shrinkage);
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      if (!ctx.has_ref_input(i)) return BadHandle(ctx, i, "is not a variable");
      MR_RETURN_IF_ERROR(ctx.ref_input(i).Update([&](Tensor* value) -> Status {
        if (value->dtype() != DType::kFloat) return BadHandle(ctx, i, "is a variable of another dtype");
        float* w = value->mutable_data<float>();
        for (int64_t k = 0; k < value->num_elements(); ++k) w[k] = ShrinkWeight(w[k], shrinkage_);
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }

 private:
  float shrinkage_ = 0;
};

Status Fprint(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() != 1) return InvalidArgument("Input must be a vector, got shape ", in.shape().ToString());
  const int64_t n = in.num_elements();
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, 2}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const TString* from = in.data<TString>();
  int64_t* to = out->mutable_data<int64_t>();
  ctx.ParallelFor(n, 50, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto [low, high] = Fingerprint128(from[i].view());
      to[2 * i] = static_cast<int64_t>(low >= 2 ? low : low - 2);
      to[2 * i + 1] = static_cast<int64_t>(high);
    }
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterSdcaKernels(KernelRegistry& registry) {
  registry.Add<SdcaKernel>({.op = "SdcaOptimizer", .cost = CostlyElementCost});
  registry.Add<SdcaKernel>({.op = "SdcaOptimizerV2", .cost = CostlyElementCost});
  registry.Add<ShrinkL1Kernel>({.op = "SdcaShrinkL1"});
  registry.AddFn({.op = "SdcaFprint"}, Fprint);
}

}  // namespace millrace
