// SPDX-License-Identifier: Apache-2.0
// CPU kernel of CTCLoss: forward and backward variables over the labels with blanks between them, in logarithms (Graves
// et al., ICML 2006, section 4.1). Sequences are independent, so threads take whole ones.
#include "kernels/cpu/nn/ctc.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {

StatusOr<CtcInput> CheckCtcInput(const KernelContext& ctx, int lengths, bool is_decoder) {
  const Tensor& inputs = ctx.input(0);
  const auto refused = [is_decoder](const auto&... why) {
    return is_decoder ? FailedPrecondition(why...) : InvalidArgument(why...);
  };
  if (inputs.rank() != 3)
    return InvalidArgument("inputs must be [time, batch, classes], got shape ", inputs.shape().ToString());
  CtcInput in{inputs.dim(0), inputs.dim(1), inputs.dim(2), {}};
  const Shape& given = ctx.input(lengths).shape();
  if (given.rank() != 1) return InvalidArgument("sequence_length must be a vector, got shape ", given.ToString());
  if (in.classes < 1)
    return InvalidArgument("there must be a class for the blank, got inputs ", inputs.shape().ToString());
  if (is_decoder && (in.time < 1 || in.batch < 1))
    return InvalidArgument("there is nothing to decode in inputs of shape ", inputs.shape().ToString());
  if (given.dim(0) != in.batch) {
    return refused("sequence_length must have ", in.batch, " elements, got shape ", given.ToString());
  }
  MR_ASSIGN_OR_RETURN(in.lengths, ctx.input(lengths).IntValues());
  for (size_t b = 0; b < in.lengths.size(); ++b) {
    if (in.lengths[b] > in.time || (in.lengths[b] < 0 && !is_decoder)) {
      return refused("sequence_length[", b, "] is ", in.lengths[b], ", want 0 to ", in.time, ", the number of steps");
    }
  }
  return in;
}

namespace {

struct Rules {
  bool collapse = false, merge = true, ignore_longer = false;
};

// One sequence: its labels with blanks before, between and after them.
class Alignment {
 public:
  Alignment(const std::vector<int64_t>& labels, int64_t blank, int64_t steps, bool merge)
      : blank_(blank), steps_(static_cast<size_t>(steps)), merge_(merge) {
    for (const int64_t label : labels) {
      states_.push_back(blank);
      states_.push_back(label);
    }
    states_.push_back(blank);
  }

  // `log_probability` [steps, classes]. Subtracts the derivative of the log-probability from `gradient` rows that hold
  // the probabilities, and returns the log-probability.
  template <typename T>
  double Run(const std::vector<double>& log_probability, int64_t classes, T* gradient, int64_t gradient_step) {
    const size_t n = states_.size();
    std::vector<double> alpha(n * steps_, kNever), beta(n, kNever), next(n);
    const auto y = [&](size_t t, size_t u) {
      return log_probability[t * static_cast<size_t>(classes) + static_cast<size_t>(states_[u])];
    };
    for (size_t u = 0; u < std::min<size_t>(2, n); ++u) alpha[u] = y(0, u);
    for (size_t t = 1; t < steps_; ++t) {
      const double* before = alpha.data() + (t - 1) * n;
      double* now = alpha.data() + t * n;
      const size_t end = std::min(n, 2 * (t + 1));
      for (size_t u = 0; u < end; ++u) {
        double sum = MayStay(u) ? before[u] : kNever;
        if (u > 0) sum = LogAdd(sum, before[u - 1]);
        if (u > 1 && MaySkipTo(u)) sum = LogAdd(sum, before[u - 2]);
        now[u] = sum == kNever ? kNever : sum + y(t, u);
      }
    }
    const double* last = alpha.data() + (steps_ - 1) * n;
    const double total = n > 1 ? LogAdd(last[n - 1], last[n - 2]) : last[0];
    if (total == kNever) return total;
    beta[n - 1] = 0;
    if (n > 1) beta[n - 2] = 0;
    for (size_t t = steps_; t-- > 0;) {
      T* row = gradient + static_cast<int64_t>(t) * gradient_step;
      for (size_t u = 0; u < n; ++u) {
        const double both = alpha[t * n + u] + beta[u];
        if (both > kNever) row[states_[u]] -= static_cast<T>(std::exp(both - total));
      }
      if (t == 0) break;
      for (size_t u = 0; u < n; ++u) {
        double sum = MayStay(u) ? beta[u] + y(t, u) : kNever;
        if (u + 1 < n) sum = LogAdd(sum, beta[u + 1] + y(t, u + 1));
        if (u + 2 < n && MaySkipTo(u + 2)) sum = LogAdd(sum, beta[u + 2] + y(t, u + 2));
        next[u] = sum;
      }
      beta.swap(next);
    }
    return total;
  }

 private:
  bool MayStay(size_t u) const { return merge_ || states_[u] == blank_; }
  bool MaySkipTo(size_t u) const { return states_[u] != blank_ && !(merge_ && states_[u] == states_[u - 2]); }

  int64_t blank_;
  size_t steps_;
  bool merge_;
  std::vector<int64_t> states_;
};

class LossKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(rules_.collapse, init.Attr<bool>("preprocess_collapse_repeated"));
    MR_ASSIGN_OR_RETURN(rules_.merge, init.Attr<bool>("ctc_merge_repeated"));
    MR_ASSIGN_OR_RETURN(rules_.ignore_longer, init.Attr<bool>("ignore_longer_outputs_than_inputs"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const CtcInput in, CheckCtcInput(ctx, 3, /*is_decoder=*/false));
    if (in.batch == 0) return InvalidArgument("batch_size must not be 0");
    MR_ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> labels, Labels(ctx, in));
    MR_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, Shape::Vector(in.batch)));
    MR_ASSIGN_OR_RETURN(Tensor * gradient, ctx.AllocateOutput(1, ctx.input(0).shape()));
    const double states = labels.empty() ? 1 : 2 * static_cast<double>(labels[0].size()) + 1;
    ctx.ParallelFor(in.batch, static_cast<double>(in.time) * (static_cast<double>(in.classes) * 8 + states * 60),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t b = begin; b < end; ++b) {
                        if (gradient->dtype() == DType::kFloat) {
                          One<float>(ctx.input(0), in, b, labels[static_cast<size_t>(b)], *loss, *gradient);
                        } else {
                          One<double>(ctx.input(0), in, b, labels[static_cast<size_t>(b)], *loss, *gradient);
                        }
                      }
                    });
    return absl::OkStatus();
  }

 private:
  StatusOr<std::vector<std::vector<int64_t>>> Labels(const KernelContext& ctx, const CtcInput& in) const {
    const Tensor &indices = ctx.input(1), &values = ctx.input(2);
    if (indices.rank() != 2 || indices.dim(1) != 2 || values.rank() != 1 || values.dim(0) != indices.dim(0)) {
      return InvalidArgument("labels must be indices [n, 2] and values [n], got shapes ", indices.shape().ToString(),
                             " and ", values.shape().ToString());
    }
    MR_RETURN_IF_ERROR(CheckOrder(indices, "label SparseTensor is not valid: indices"));
    std::vector<std::vector<int64_t>> labels(static_cast<size_t>(in.batch));
    std::vector<bool> has_labels(labels.size());
    for (int64_t i = 0; i < values.dim(0); ++i) {
      const int64_t b = indices.data<int64_t>()[2 * i], label = values.data<int32_t>()[i];
      if (!InRange(b, in.batch))
        return InvalidArgument("labels_indices[", i, ",0] is ", b, ", want 0 to ", in.batch - 1);
      if (label < 0 || label >= in.blank()) {
        return InvalidArgument(
            "label ", label, " of sequence ", b, " is not below ", in.blank(), ", the blank (num_classes - 1)");
      }
      std::vector<int64_t>& mine = labels[static_cast<size_t>(b)];
      if (!rules_.collapse || mine.empty() || mine.back() != label) mine.push_back(label);
      has_labels[static_cast<size_t>(b)] = true;
    }
    for (size_t b = 0; b < labels.size(); ++b) {
      if (!has_labels[b] && in.lengths[b] > 0) return InvalidArgument("sequence ", b, " has no labels");
      if (rules_.ignore_longer || in.lengths[b] == 0) continue;
      const int64_t needed = Needed(labels[b]);
      if (needed > in.lengths[b]) {
        return InvalidArgument("sequence ", b, " has ", in.lengths[b], " steps, but its labels need ", needed,
                               "; ignore_longer_outputs_than_inputs leaves such sequences out");
      }
    }
    return labels;
  }
  // Steps for all labels, with a blank between equal ones.
  int64_t Needed(const std::vector<int64_t>& labels) const {
    int64_t n = static_cast<int64_t>(labels.size());
    for (size_t i = 1; rules_.merge && i < labels.size(); ++i) n += labels[i] == labels[i - 1] ? 1 : 0;
    return n;
  }

  template <typename T>
  void One(const Tensor& inputs, const CtcInput& in, int64_t b, const std::vector<int64_t>& labels, Tensor& loss,
           Tensor& gradient) const {
    const int64_t steps = in.lengths[static_cast<size_t>(b)], c = in.classes;
    // Where only the blanks between equal labels find no room, no path is left: an infinite loss.
    const bool skip = steps == 0 || static_cast<int64_t>(labels.size()) > steps;
    T* out = gradient.mutable_data<T>();
    for (int64_t t = skip ? 0 : steps; t < in.time; ++t) std::fill(out + in.at(t, b), out + in.at(t, b) + c, T(0));
    loss.mutable_data<T>()[b] = 0;
    if (skip) return;
    std::vector<double> log_probability(static_cast<size_t>(steps * c));
    for (int64_t t = 0; t < steps; ++t) {
      const T* x = inputs.data<T>() + in.at(t, b);
      const double top = static_cast<double>(*std::max_element(x, x + c));
      double sum = 0;
      for (int64_t k = 0; k < c; ++k) sum += std::exp(static_cast<double>(x[k]) - top);
      const double log_sum = top + std::log(sum);
      for (int64_t k = 0; k < c; ++k) {
        const double y = static_cast<double>(x[k]) - log_sum;
        log_probability[static_cast<size_t>(t * c + k)] = y;
        out[in.at(t, b) + k] = static_cast<T>(std::exp(y));
      }
    }
    Alignment alignment(labels, in.blank(), steps, rules_.merge);
    loss.mutable_data<T>()[b] = static_cast<T>(-alignment.Run<T>(log_probability, c, out + in.at(0, b), in.batch * c));
  }

  Rules rules_;
};

}  // namespace

void RegisterCtcKernels(KernelRegistry& registry) {
  registry.Add<LossKernel>({.op = "CTCLoss"});
  RegisterCtcDecoders(registry);
}

}  // namespace millrace
