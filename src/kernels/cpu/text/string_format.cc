// SPDX-License-Identifier: Apache-2.0
// CPU kernel: StringFormat.
#include "absl/strings/str_split.h"
#include "kernels/cpu/engine/tensor_text.h"
#include "kernels/cpu/text/string_texts.h"

namespace millrace {
namespace {

class FormatKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string text, init.Attr<std::string>("template"));
    MR_ASSIGN_OR_RETURN(const std::string placeholder, init.Attr<std::string>("placeholder"));
    MR_ASSIGN_OR_RETURN(summarize_, init.Attr<int64_t>("summarize"));
    pieces_ = absl::StrSplit(text, placeholder);
    if (static_cast<int>(pieces_.size()) - 1 != init.num_inputs()) {
      return InvalidArgument(
          "num placeholders in template and num inputs must match: ", pieces_.size() - 1, " vs. ", init.num_inputs());
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    std::string text = pieces_[0];
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      absl::StrAppend(&text, FormatTensor(ctx.input(i), summarize_), pieces_[static_cast<size_t>(i) + 1]);
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    *out->mutable_data<TString>() = text;
    return absl::OkStatus();
  }

 private:
  std::vector<std::string> pieces_;
  int64_t summarize_ = 3;
};

}  // namespace

void RegisterStringFormatKernels(KernelRegistry& r) { r.Add<FormatKernel>({.op = "StringFormat"}); }

}  // namespace millrace
