// SPDX-License-Identifier: Apache-2.0
// CPU kernels: regular expressions over strings.
#include <optional>

#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/text/regex.h"
#include "kernels/cpu/text/string_texts.h"

namespace millrace {
namespace {

constexpr double kNanosPerString = 500;

class RegexKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    if (!init.HasAttr("pattern")) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const std::string pattern, init.Attr<std::string>("pattern"));
    MR_ASSIGN_OR_RETURN(fixed_, Regex::Compile(pattern));
    return absl::OkStatus();
  }

 protected:
  // That of the attribute, or of input 1.
  StatusOr<Regex> Pattern(const KernelContext& ctx) const {
    if (fixed_) return *fixed_;
    MR_RETURN_IF_ERROR(RequireScalar("pattern", ctx.input(1)));
    return Regex::Compile(ctx.input(1).data<TString>()->view());
  }
  bool is_static() const { return fixed_.has_value(); }

 private:
  std::optional<Regex> fixed_;
};

class FullMatchKernel final : public RegexKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Regex regex, Pattern(ctx));
    const Tensor& in = ctx.input(0);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    ctx.ParallelFor(in.num_elements(), kNanosPerString, [&](int64_t begin, int64_t end) {
      RegexMatcher matcher(regex);
      for (int64_t i = begin; i < end; ++i) out->mutable_data<bool>()[i] = matcher.FullMatch(in.data<TString>()[i]);
    });
    return absl::OkStatus();
  }
};

class ReplaceKernel final : public RegexKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(global_, init.Attr<bool>("replace_global"));
    if (init.HasAttr("rewrite")) {
      MR_ASSIGN_OR_RETURN(rewrite_, init.Attr<std::string>("rewrite"));
    }
    return RegexKernel::Init(init);
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Regex regex, Pattern(ctx));
    std::string rewrite = rewrite_;
    if (!is_static()) {
      MR_RETURN_IF_ERROR(RequireScalar("rewrite", ctx.input(2)));
      rewrite = ctx.input(2).data<TString>()->str();
    }
    const Tensor& in = ctx.input(0);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    ctx.ParallelFor(in.num_elements(), kNanosPerString, [&](int64_t begin, int64_t end) {
      RegexMatcher matcher(regex);
      for (int64_t i = begin; i < end; ++i) {
        out->mutable_data<TString>()[i] = matcher.Replace(in.data<TString>()[i], rewrite, global_);
      }
    });
    return absl::OkStatus();
  }

 private:
  bool global_ = true;
  std::string rewrite_;
};

}  // namespace

void RegisterRegexKernels(KernelRegistry& r) {
  r.Add<FullMatchKernel>({.op = "RegexFullMatch"});
  r.Add<FullMatchKernel>({.op = "StaticRegexFullMatch"});
  r.Add<ReplaceKernel>({.op = "RegexReplace"});
  r.Add<ReplaceKernel>({.op = "StaticRegexReplace"});
}

}  // namespace millrace
