// SPDX-License-Identifier: Apache-2.0
// Kernel of DecodeLibsvm: lines "label place:value place:value ...".
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/stop_scope.h"
#include "kernels/cpu/parsing/csv_field.h"
#include "kernels/cpu/parsing/parsing.h"

namespace millrace {
namespace {

// Takes the next word off the front of `line`; empty at the end.
absl::string_view NextWord(absl::string_view& line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  size_t end = 0;
  while (end < line.size() && !absl::ascii_isspace(static_cast<unsigned char>(line[end]))) ++end;
  const absl::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

struct Feature {
  int64_t line, place;
  absl::string_view pair, value;
};

// The features of line `i`.
Status AddFeatures(int64_t i, absl::string_view line, std::vector<Feature>& features) {
  for (absl::string_view pair = NextWord(line); !pair.empty(); pair = NextWord(line)) {
    const size_t colon = pair.find(':');
    if (colon == absl::string_view::npos) return InvalidArgument("Invalid feature \"", pair, "\"");
    int64_t place;
    if (!absl::SimpleAtoi(pair.substr(0, colon), &place)) return InvalidArgument("Feature format incorrect: ", pair);
    if (place < 0) return InvalidArgument("Feature index should be >= 0, got ", place);
    features.push_back({i, place, pair, pair.substr(colon + 1)});
  }
  return absl::OkStatus();
}

class DecodeLibsvmKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(num_features_, init.Attr<int64_t>("num_features"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    MR_ASSIGN_OR_RETURN(Tensor * labels, ctx.AllocateOutput(0, input.shape()));
    std::vector<Feature> features;
    StopNowAndThen pause;
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      pause();
      absl::string_view line = input.data<TString>()[i].view();
      const absl::string_view label = NextWord(line);
      if (label.empty()) {
        return InvalidArgument("No label found for input[", i, "]: \"", input.data<TString>()[i].view(), "\"");
      }
      if (!StoreCsvField(label, *labels, i)) return InvalidArgument("Label format incorrect: ", label);
      MR_RETURN_IF_ERROR(AddFeatures(i, line, features));
    }
    const auto count = static_cast<int64_t>(features.size());
    const int rank = input.rank() + 1;
    MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({count, rank}));
    MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(1, matrix));
    MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(2, Shape::Vector(count)));
    MR_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(3, Shape::Vector(rank)));
    int64_t* at = indices->mutable_data<int64_t>();
    for (int64_t k = 0; k < count; ++k, at += rank) {
      const Feature& feature = features[static_cast<size_t>(k)];
      if (!StoreCsvField(feature.value, *values, k)) return InvalidArgument("Feature format incorrect: ", feature.pair);
      int64_t line = feature.line;
      for (int d = input.rank() - 1; d >= 0; --d) {
        at[d] = line % input.dim(d);
        line /= input.dim(d);
      }
      at[rank - 1] = feature.place;
    }
    std::copy(input.shape().dims().begin(), input.shape().dims().end(), shape->mutable_data<int64_t>());
    shape->mutable_data<int64_t>()[rank - 1] = num_features_;
    return absl::OkStatus();
  }

 private:
  int64_t num_features_ = 1;
};

}  // namespace

void RegisterLibsvmKernels(KernelRegistry& registry) { registry.Add<DecodeLibsvmKernel>({.op = "DecodeLibsvm"}); }

}  // namespace millrace
