// SPDX-License-Identifier: Apache-2.0
// CPU kernels: runs of words, and words joined by segments.
#include <algorithm>

#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/text/string_texts.h"

namespace millrace {
namespace {

// One tensor of row ends, as wide as the node says.
Status OutputSplits(KernelContext& ctx, int o, const std::vector<int64_t>& splits) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape::Vector(static_cast<int64_t>(splits.size()))));
  if (ctx.output_dtype(o) == DType::kInt64) {
    std::copy(splits.begin(), splits.end(), out->mutable_data<int64_t>());
  } else {
    std::transform(
        splits.begin(), splits.end(), out->mutable_data<int32_t>(), [](int64_t v) { return static_cast<int32_t>(v); });
  }
  return absl::OkStatus();
}

class NgramsKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(separator_, init.Attr<std::string>("separator"));
    MR_ASSIGN_OR_RETURN(widths_, init.Attr<std::vector<int64_t>>("ngram_widths"));
    MR_ASSIGN_OR_RETURN(left_pad_, init.Attr<std::string>("left_pad"));
    MR_ASSIGN_OR_RETURN(right_pad_, init.Attr<std::string>("right_pad"));
    MR_ASSIGN_OR_RETURN(pad_width_, init.Attr<int64_t>("pad_width"));
    MR_ASSIGN_OR_RETURN(keep_short_, init.Attr<bool>("preserve_short_sequences"));
    for (const int64_t w : widths_) {
      if (w < 1 || w > kMaxWidth) return InvalidArgument("ngram_widths must be in [1, ", kMaxWidth, "], got ", w);
    }
    if (pad_width_ > kMaxWidth) return InvalidArgument("pad_width must be at most ", kMaxWidth, ", got ", pad_width_);
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(RequireVector("data", ctx.input(0)));
    MR_RETURN_IF_ERROR(RequireVector("data_splits", ctx.input(1)));
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> splits, ctx.input(1).IntValues());
    const absl::Span<const TString> data = ctx.input(0).flat<TString>();
    MR_RETURN_IF_ERROR(CheckSplits(splits, static_cast<int64_t>(data.size())));
    std::vector<TString> found;
    std::vector<int64_t> ends;
    if (!splits.empty()) ends.push_back(0);
    int64_t words = 0;
    if (data.empty()) ends.assign(splits.size(), 0);  // as in TensorFlow, not even padding
    for (size_t row = 0; !data.empty() && row + 1 < splits.size(); ++row) {
      const auto begin = static_cast<size_t>(splits[row]), end = static_cast<size_t>(splits[row + 1]);
      MR_RETURN_IF_ERROR(AddRow(data.subspan(begin, end - begin), &words, &found));
      ends.push_back(static_cast<int64_t>(found.size()));
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(static_cast<int64_t>(found.size()))));
    std::move(found.begin(), found.end(), out->mutable_data<TString>());
    return OutputSplits(ctx, 1, ends);
  }

 private:
  static constexpr int64_t kMaxWidth = 1 << 20;
  static constexpr int64_t kMaxWords = int64_t{1} << 28;  // in all that is made by a step

  static Status CheckSplits(const std::vector<int64_t>& splits, int64_t size) {
    if (splits.empty()) return absl::OkStatus();
    if (splits.front() != 0) return InvalidArgument("First split value must be 0, got ", splits.front());
    for (size_t i = 1; i < splits.size(); ++i) {
      if (splits[i] < splits[i - 1] || splits[i] > size) {
        return InvalidArgument("Invalid split value ", splits[i], ", must be in [", splits[i - 1], ", ", size, "]");
      }
    }
    if (splits.back() == size) return absl::OkStatus();
    return InvalidArgument("Last split value must be data size. Expected ", size, ", got ", splits.back());
  }

  int64_t PadOf(int64_t width) const { return std::min(pad_width_ < 0 ? width - 1 : pad_width_, width - 1); }

  Status AddRow(absl::Span<const TString> row, int64_t* words, std::vector<TString>* out) const {
    const size_t before = out->size();
    const auto length = static_cast<int64_t>(row.size());
    for (const int64_t width : widths_) {
      const int64_t count = std::max<int64_t>(0, length + 2 * PadOf(width) - width + 1);
      MR_RETURN_IF_ERROR(AddAll(row, width, count, words, out));
    }
    if (!keep_short_ || out->size() != before || row.empty()) return absl::OkStatus();
    if (pad_width_ < 0) return InvalidArgument("a row that is too short needs a pad_width of 0 or more to be kept");
    return AddAll(row, length + 2 * pad_width_, 1, words, out);
  }

  Status AddAll(absl::Span<const TString> row, int64_t width, int64_t count, int64_t* words,
                std::vector<TString>* out) const {
    if (count > (kMaxWords - *words) / width) return ResourceExhausted("more than ", kMaxWords, " words in n-grams");
    *words += count * width;
    const int64_t pad = PadOf(width);
    std::string text;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t left = std::max<int64_t>(0, pad - i), right = std::max<int64_t>(0, pad - (count - 1 - i));
      text.clear();
      auto add = [&, first = true](absl::string_view word) mutable {
        if (!first) text += separator_;
        first = false;
        absl::StrAppend(&text, word);
      };
      for (int64_t k = 0; k < left; ++k) add(left_pad_);
      const int64_t begin = std::max<int64_t>(0, i - pad);
      for (int64_t k = begin; k < begin + width - left - right && k < static_cast<int64_t>(row.size()); ++k) {
        add(row[static_cast<size_t>(k)]);
      }
      for (int64_t k = 0; k < right; ++k) add(right_pad_);
      out->emplace_back(text);
    }
    return absl::OkStatus();
  }

  std::string separator_, left_pad_, right_pad_;
  std::vector<int64_t> widths_;
  int64_t pad_width_ = 0;
  bool keep_short_ = false;
};

class SegmentJoinKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(separator_, init.Attr<std::string>("separator"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    MR_RETURN_IF_ERROR(RequireScalar("num_segments", ctx.input(2)));
    MR_ASSIGN_OR_RETURN(const int64_t segments, ctx.input(2).IntScalar());
    if (segments < 0) return InvalidArgument("Number of segments must be >= 0, got ", segments);
    const int rank = ids.rank();
    if (rank == 0) return InvalidArgument("segment_ids cannot have rank 0");
    if (rank > in.rank() ||
        !std::equal(ids.shape().dims().begin(), ids.shape().dims().end(), in.shape().dims().begin())) {
      return InvalidArgument("segment_ids of shape ", ids.shape().ToString(), " must be a prefix of inputs of shape ",
                             in.shape().ToString());
    }
    MR_RETURN_IF_ERROR(CheckIndices("segment_ids", ids, segments));
    std::vector<int64_t> dims = DimsOf(in.shape(), rank, in.rank());
    dims.insert(dims.begin(), segments);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, ids.IntValues());
    Join(in, rows, DimProduct(in.shape(), rank, in.rank()), out);
    return absl::OkStatus();
  }

 private:
  void Join(const Tensor& in, const std::vector<int64_t>& rows, int64_t width, Tensor* out) const {
    std::vector<std::string> texts(static_cast<size_t>(out->num_elements()));
    for (size_t i = 0; i < rows.size(); ++i) {
      for (int64_t k = 0; k < width; ++k) {
        const auto at = static_cast<size_t>(rows[i] * width + k);
        if (!texts[at].empty()) texts[at] += separator_;  // none behind empty strings alone, as in TensorFlow
        absl::StrAppend(&texts[at], in.data<TString>()[static_cast<int64_t>(i) * width + k].view());
      }
    }
    std::copy(texts.begin(), texts.end(), out->mutable_data<TString>());
  }

  std::string separator_;
};

}  // namespace

void RegisterWordKernels(KernelRegistry& r) {
  r.Add<NgramsKernel>({.op = "StringNGrams"});
  r.Add<SegmentJoinKernel>({.op = "UnsortedSegmentJoin"});
}

}  // namespace millrace
