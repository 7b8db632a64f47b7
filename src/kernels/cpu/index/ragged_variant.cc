// SPDX-License-Identifier: Apache-2.0
// RaggedTensorToVariant and RaggedTensorFromVariant: ragged tensors as variants, each of which holds a vector of
// variants: the splits of the tensor, and its values.
#include <algorithm>
#include <limits>
#include <vector>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/dataflow/queue_elements.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/engine/tensor_variant.h"
#include "kernels/cpu/index/index_kernels.h"
#include "kernels/cpu/index/ragged_splits.h"

namespace millrace {
namespace {

// A row costs memory even where it is empty: as a variant about a kilobyte.
constexpr int64_t kMostEmptyRows = int64_t{1} << 20;

// The parts of a ragged tensor, or of a row of one: splits, of which there may be none, and values.
struct Parts {
  std::vector<Tensor> splits;
  Tensor values;
};

StatusOr<Variant> Packed(Parts parts) {
  const auto n = static_cast<int64_t>(parts.splits.size());
  MR_ASSIGN_OR_RETURN(Tensor list, Tensor::Make(DType::kVariant, Shape::Vector(n + 1)));
  Variant* out = list.mutable_data<Variant>();
  for (Tensor& s : parts.splits) *out++ = Variant(MakeRef<TensorValue>(std::move(s)));
  *out = Variant(MakeRef<TensorValue>(std::move(parts.values)));
  return Variant(MakeRef<TensorValue>(std::move(list)));
}

StatusOr<int64_t> RowsOf(const Tensor& values) {
  if (values.rank() == 0) return InvalidArgument("the values of a ragged tensor cannot be a scalar");
  return values.dim(0);
}

// Each of the right length, from 0 to all of what is below.
Status CheckParts(const Parts& parts) {
  if (parts.splits.empty()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(int64_t below, RowsOf(parts.values));
  for (size_t k = parts.splits.size(); k-- > 0;) {
    const Tensor& s = parts.splits[k];
    if (s.rank() != 1) return InvalidArgument("ragged splits must be a vector, got shape ", s.shape().ToString());
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, s.IntValues());
    MR_RETURN_IF_ERROR(CheckSplits("rt_nested_splits", numbers.data(), static_cast<int64_t>(numbers.size()), below));
    below = static_cast<int64_t>(numbers.size()) - 1;
  }
  return absl::OkStatus();
}

StatusOr<Tensor> SplitsTensor(DType dtype, const std::vector<int64_t>& splits) {
  MR_ASSIGN_OR_RETURN(Tensor out, Tensor::Make(dtype, Shape::Vector(static_cast<int64_t>(splits.size()))));
  if (dtype == DType::kInt64) {
    std::copy(splits.begin(), splits.end(), out.mutable_data<int64_t>());
    return out;
  }
  if (splits.back() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("splits of int32 cannot say ", splits.back(), ", use int64");
  }
  std::transform(
      splits.begin(), splits.end(), out.mutable_data<int32_t>(), [](int64_t s) { return static_cast<int32_t>(s); });
  return out;
}

class ToVariantKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(batched_, init.Attr<bool>("batched_input"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    Parts whole;
    for (int i = 0; i + 1 < ctx.num_inputs(); ++i) whole.splits.push_back(ctx.input(i));
    whole.values = ctx.input(ctx.num_inputs() - 1);
    MR_RETURN_IF_ERROR(CheckParts(whole));
    if (batched_) return Rows(ctx, whole);
    for (Tensor& s : whole.splits) MR_RETURN_IF_ERROR(KeepBeyondStep(&s));
    MR_RETURN_IF_ERROR(KeepBeyondStep(&whole.values));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    MR_ASSIGN_OR_RETURN(*out->mutable_data<Variant>(), Packed(std::move(whole)));
    return absl::OkStatus();
  }

 private:
  static Status Rows(KernelContext& ctx, const Parts& whole) {
    std::vector<std::vector<int64_t>> splits;
    for (const Tensor& s : whole.splits) {
      MR_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, s.IntValues());
      splits.push_back(std::move(numbers));
    }
    const bool dense = splits.empty();
    if (dense && whole.values.rank() == 0) return InvalidArgument("batched_input needs values of rank 1 or more");
    const int64_t rows = dense ? whole.values.dim(0) : static_cast<int64_t>(splits[0].size()) - 1;
    if (rows > kMostEmptyRows + whole.values.num_elements()) {
      return ResourceExhausted("a ragged tensor of ", rows, " rows is too long for variants");
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(rows)));
    StopNowAndThen pause;
    for (int64_t r = 0; r < rows; ++r) {
      pause(32);
      int64_t begin = r, end = r + 1;
      if (!dense) begin = splits[0][static_cast<size_t>(r)], end = splits[0][static_cast<size_t>(r) + 1];
      Parts row;
      for (size_t k = 1; k < splits.size(); ++k) {
        std::vector<int64_t> part(splits[k].begin() + begin, splits[k].begin() + end + 1);
        const int64_t from = part.front();
        begin = from;
        end = part.back();
        for (int64_t& s : part) s -= from;
        MR_ASSIGN_OR_RETURN(Tensor tensor, SplitsTensor(whole.splits[k].dtype(), part));
        row.splits.push_back(std::move(tensor));
      }
      MR_ASSIGN_OR_RETURN(const Tensor values, whole.values.Rows(begin, end));
      MR_ASSIGN_OR_RETURN(row.values, values.Clone());
      if (dense) {
        MR_ASSIGN_OR_RETURN(row.values, row.values.Reshaped(row.values.shape().WithoutDim(0)));
      }
      MR_ASSIGN_OR_RETURN(out->mutable_data<Variant>()[r], Packed(std::move(row)));
    }
    return absl::OkStatus();
  }
  bool batched_ = false;
};

class FromVariantKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(input_rank_, init.Attr<int64_t>("input_ragged_rank"));
    MR_ASSIGN_OR_RETURN(output_rank_, init.Attr<int64_t>("output_ragged_rank"));
    MR_ASSIGN_OR_RETURN(values_, init.Attr<DType>("Tvalues"));
    MR_ASSIGN_OR_RETURN(splits_, init.Attr<DType>("Tsplits"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& encoded = ctx.input(0);
    const int64_t inner = input_rank_ >= 0 ? input_rank_ : output_rank_ - encoded.rank();
    if (inner < 0 || output_rank_ != inner + encoded.rank()) {
      return InvalidArgument(
          "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); got "
          "output_ragged_rank: ",
          output_rank_, ", input_ragged_rank: ", input_rank_, ", encoded_ragged.dims(): ", encoded.rank(), ".");
    }
    std::vector<Parts> all;
    StopNowAndThen pause;
    for (int64_t i = 0; i < encoded.num_elements(); ++i) {
      MR_ASSIGN_OR_RETURN(Parts parts, Unpacked(encoded.data<Variant>()[i], inner));
      for (const Tensor& s : parts.splits) pause(s.num_elements());
      pause(8);
      all.push_back(std::move(parts));
    }
    if (encoded.rank() == 0) {
      for (size_t k = 0; k < all[0].splits.size(); ++k) ctx.set_output(static_cast<int>(k), all[0].splits[k]);
      ctx.set_output(ctx.num_outputs() - 1, all[0].values);
      return absl::OkStatus();
    }
    return Stack(ctx, all, inner);
  }

 private:
  StatusOr<Parts> Unpacked(const Variant& variant, int64_t rank) const {
    const auto* holder = variant.As<TensorValue>();
    if (holder == nullptr || holder->tensor.dtype() != DType::kVariant || holder->tensor.rank() != 1) {
      return InvalidArgument("the variant holds no ragged tensor");
    }
    const Tensor& list = holder->tensor;
    if (list.num_elements() != rank + 1) {
      return InvalidArgument("Encoded input RaggedTensorVariant has ragged_rank=", list.num_elements() - 1,
                             ". Expected ragged_rank=", rank, ".");
    }
    std::vector<Tensor> parts;
    for (int64_t i = 0; i <= rank; ++i) {
      const auto* part = list.data<Variant>()[i].As<TensorValue>();
      const DType wanted = i < rank ? splits_ : values_;
      if (part == nullptr || part->tensor.dtype() != wanted) {
        return InvalidArgument("Expected ", i < rank ? "row_splits" : "values", " Tensor dtype: ", DTypeName(wanted),
                               ", found: ", part == nullptr ? "no tensor" : DTypeName(part->tensor.dtype()));
      }
      parts.push_back(part->tensor);
    }
    Parts made;
    made.values = std::move(parts.back());
    parts.pop_back();
    made.splits = std::move(parts);
    MR_RETURN_IF_ERROR(CheckParts(made));
    return made;
  }

  // The dimensions of the input but for the last are splits of even rows; then come how many rows each element has, and
  // the splits of all of them.
  Status Stack(KernelContext& ctx, const std::vector<Parts>& all, int64_t inner) const {
    const Tensor& encoded = ctx.input(0);
    int output = 0;
    int64_t count = 1;
    for (int d = 0; d + 1 < encoded.rank(); ++d) {
      if (__builtin_mul_overflow(count, encoded.dim(d), &count) || count > kMostEmptyRows + encoded.num_elements()) {
        return ResourceExhausted("encoded_ragged has too many empty rows: ", encoded.shape().ToString());
      }
      std::vector<int64_t> even(static_cast<size_t>(count) + 1);
      for (size_t i = 0; i < even.size(); ++i) even[i] = static_cast<int64_t>(i) * encoded.dim(d + 1);
      MR_RETURN_IF_ERROR(SetSplits(ctx, output++, even));
    }
    int64_t total = 0;  // all splits are below it
    for (const Parts& p : all) {
      MR_ASSIGN_OR_RETURN(const int64_t own, RowsOf(p.values));
      if (!CheckedAdd(total, own, &total)) return InvalidArgument("ragged tensors have too many rows together");
    }
    std::vector<int64_t> rows = {0};
    for (const Parts& p : all) {
      int64_t more = 0;
      if (p.splits.empty()) {
        MR_ASSIGN_OR_RETURN(more, RowsOf(p.values));
      } else {
        more = p.splits[0].dim(0) - 1;
      }
      rows.push_back(rows.back() + more);
    }
    MR_RETURN_IF_ERROR(SetSplits(ctx, output++, rows));
    for (size_t k = 0; k < static_cast<size_t>(inner); ++k) {
      MR_RETURN_IF_ERROR(
          splits_ == DType::kInt32 ? Join<int32_t>(ctx, output++, all, k) : Join<int64_t>(ctx, output++, all, k));
    }
    return StackValues(ctx, all, output);
  }

  // The k-th splits of all. They may be many more than there is memory for: parts may be one tensor, again and again.
  template <typename T>
  static Status Join(KernelContext& ctx, int output, const std::vector<Parts>& all, size_t k) {
    int64_t size = 1;
    for (const Parts& p : all) {
      if (!CheckedAdd(size, p.splits[k].dim(0) - 1, &size)) return InvalidArgument("ragged tensors have too many rows");
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({size}));
    MR_ASSIGN_OR_RETURN(Tensor * joined, ctx.AllocateOutput(output, shape));
    T* to = joined->mutable_data<T>();
    *to++ = 0;
    int64_t before = 0;
    StopNowAndThen pause;
    for (const Parts& p : all) {
      const Tensor& splits = p.splits[k];
      const T* from = splits.data<T>();
      const int64_t n = splits.dim(0), last = before + from[n - 1];
      pause(n);
      if (last > std::numeric_limits<T>::max()) {
        return InvalidArgument("splits of ", DTypeName(splits.dtype()), " cannot say ", last, ", use int64");
      }
      to = std::transform(from + 1, from + n, to, [before](T s) { return static_cast<T>(before + s); });
      before = last;
    }
    return absl::OkStatus();
  }

  Status SetSplits(KernelContext& ctx, int output, const std::vector<int64_t>& splits) const {
    MR_ASSIGN_OR_RETURN(Tensor tensor, SplitsTensor(splits_, splits));
    ctx.set_output(output, std::move(tensor));
    return absl::OkStatus();
  }

  static Status StackValues(KernelContext& ctx, const std::vector<Parts>& all, int output) {
    Shape shape = Shape::Vector(0);
    if (!all.empty()) {
      int64_t rows = 0;
      const Tensor& first = all[0].values;
      for (const Parts& p : all) {
        if (p.values.shape().WithoutDim(0) != first.shape().WithoutDim(0)) {
          return InvalidArgument(
              "All flat_values must have compatible shapes. Shape at index 0: ", first.shape().ToString(),
              ", another one: ", p.values.shape().ToString());
        }
        rows += p.values.dim(0);
      }
      MR_ASSIGN_OR_RETURN(shape, first.shape().WithoutDim(0).WithInserted(0, rows));
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, shape));
    int64_t at = 0;
    StopNowAndThen pause;
    for (const Parts& p : all) {
      pause();
      const int64_t n = p.values.num_elements();
      CopyElements(&ctx, out->dtype(), ElementAt(out->mutable_raw(), out->dtype(), at), p.values.raw(), n);
      at += n;
    }
    return absl::OkStatus();
  }

  int64_t input_rank_ = 0, output_rank_ = 0;
  DType values_ = DType::kInvalid, splits_ = DType::kInvalid;
};

}  // namespace

void RegisterRaggedVariantKernels(KernelRegistry& r) {
  r.Add<ToVariantKernel>({.op = "RaggedTensorToVariant"});
  r.Add<FromVariantKernel>({.op = "RaggedTensorFromVariant"});
}

}  // namespace millrace
