// SPDX-License-Identifier: Apache-2.0
// DynamicPartition, DynamicStitch, InvertPermutation, ReverseSequence.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "kernels/cpu/engine/index_deal.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/strided_block.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

// True when the dimensions of `head` begin those of `whole`.
bool Leads(const Shape& head, const Shape& whole) {
  if (head.rank() > whole.rank()) return false;
  for (int i = 0; i < head.rank(); ++i) {
    if (head.dim(i) != whole.dim(i)) return false;
  }
  return true;
}

StatusOr<Shape> SlicesShape(int64_t count, const Shape& whole, int from) {
  std::vector<int64_t> dims = {count};
  for (int i = from; i < whole.rank(); ++i) dims.push_back(whole.dim(i));
  return Shape::Make(dims);
}

// Calls fn(T()) where slices are single elements of the size of T; false for others.
template <typename Fn>
bool ForOneElement(DType dtype, int64_t width, Fn fn) {
  if (!IsPlain(dtype) || width != 1) return false;
  switch (DTypeSize(dtype)) {
    case 1: fn(uint8_t()); return true;
    case 2: fn(uint16_t()); return true;
    case 4: fn(uint32_t()); return true;
    case 8: fn(uint64_t()); return true;
    default: return false;
  }
}

Status DynamicPartition(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& parts = ctx.input(1);
  const int count = ctx.num_outputs();
  if (!Leads(parts.shape(), data.shape())) {
    return InvalidArgument("the shape of data, ", data.shape().ToString(),
                           ", must begin with the shape of partitions, ", parts.shape().ToString());
  }
  MR_RETURN_IF_ERROR(CheckIndices("partitions", parts, count));
  const int64_t n = parts.num_elements();
  const int32_t* const ids = parts.data<int32_t>();
  Deal deal(ctx, n, count, 1.0, [ids](int64_t i) { return ids[i]; });
  std::vector<void*> outputs(static_cast<size_t>(count));
  for (int k = 0; k < count; ++k) {
    MR_ASSIGN_OR_RETURN(Shape shape, SlicesShape(deal.size(k), data.shape(), parts.rank()));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(k, shape));
    outputs[static_cast<size_t>(k)] = out->mutable_raw();
  }
  const int64_t width = DimProduct(data.shape(), parts.rank(), data.rank());
  if (data.num_elements() == 0) return absl::OkStatus();
  const RunCopier copier(data.dtype(), width);
  const bool done = ForOneElement(data.dtype(), width, [&](auto zero) {
    using T = decltype(zero);
    const T* const from = static_cast<const T*>(data.raw());
    deal.Run(ctx, copier.cost(), [&](int64_t i, int64_t part, int64_t place) {
      static_cast<T*>(outputs[static_cast<size_t>(part)])[place] = from[i];
    });
  });
  if (done) return absl::OkStatus();
  deal.Run(ctx, copier.cost(), [&](int64_t i, int64_t part, int64_t place) {
    copier.CopyOne(outputs[static_cast<size_t>(part)], place * width, data.raw(), i * width);
  });
  return absl::OkStatus();
}

// The slice that each row of the output is: the last one that has its number. Then rows are copied side by side.
Status StitchSlices(KernelContext& ctx, int n, int64_t rows, int64_t width, Tensor* out) {
  const DType dtype = out->dtype();
  const int64_t slice = width * static_cast<int64_t>(DTypeSize(dtype));
  std::vector<const char*> sources(static_cast<size_t>(rows));
  for (int i = 0; i < n; ++i) {
    const char* from = ctx.input(n + i).data<char>();
    for (const int32_t v : ctx.input(i).flat<int32_t>())
      sources[static_cast<size_t>(v)] = std::exchange(from, from + slice);
  }
  const RunCopier copier(dtype, width);
  char* const dst = static_cast<char*>(out->mutable_raw());
  ctx.ParallelFor(rows, copier.cost(), [&](int64_t begin, int64_t end) {
    const auto run = [&](auto copy) {
      constexpr int64_t kAhead = 8;
      for (int64_t r = begin; r < end; ++r) {
        if (r + kAhead < end) __builtin_prefetch(sources[static_cast<size_t>(r + kAhead)]);
        if (const char* const from = sources[static_cast<size_t>(r)]; from != nullptr) {
          copy(dst + r * slice, from);
        } else {
          ZeroElements(dtype, dst, r * width, width);
        }
      }
    };
    if (IsPlain(dtype)) return strided::WithCopyOfRuns(slice, run);
    run([&copier](char* to, const char* from) { copier.CopyOne(to, 0, from, 0); });
  });
  return absl::OkStatus();
}

Status DynamicStitch(KernelContext& ctx) {
  const int n = ctx.num_inputs() / 2;
  int64_t rows = 0, total = 0;
  for (int i = 0; i < n; ++i) {
    const Tensor& ids = ctx.input(i);
    const Tensor& data = ctx.input(n + i);
    if (!Leads(ids.shape(), data.shape())) {
      return InvalidArgument("the shape of data[", i, "], ", data.shape().ToString(),
                             ", must begin with the shape of indices[", i, "], ", ids.shape().ToString());
    }
    const Tensor& first = ctx.input(n);
    const int slice_rank = data.rank() - ids.rank();
    bool alike = slice_rank == first.rank() - ctx.input(0).rank();
    for (int d = 0; alike && d < slice_rank; ++d) {
      alike = data.dim(ids.rank() + d) == first.dim(ctx.input(0).rank() + d);
    }
    if (!alike) {
      return InvalidArgument("slices of data[", i, "], of shape ", data.shape().ToString(),
                             ", differ from those of data[0], ", first.shape().ToString());
    }
    MR_RETURN_IF_ERROR(CheckIndices(absl::StrCat("indices[", i, "]"), ids, int64_t{1} << 31));
    for (int32_t v : ids.flat<int32_t>()) rows = std::max(rows, int64_t{v} + 1);
    total += ids.num_elements();
  }
  // Rows that nobody wrote are zeros; a lone huge index must not ask for gigabytes of them.
  constexpr int64_t kManyRows = int64_t{1} << 26;
  constexpr int64_t kSparsest = 1024;
  if (rows > kManyRows && rows / kSparsest > total) {
    return ResourceExhausted(
        "DynamicStitch of ", total, " slices would have ", rows, " rows, nearly all of them zeros");
  }
  const Tensor& first = ctx.input(n);
  const int lead = ctx.input(0).rank();
  MR_ASSIGN_OR_RETURN(Shape shape, SlicesShape(rows, first.shape(), lead));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t width = shape.num_elements() / rows;
  const DType dtype = out->dtype();
  std::vector<uint8_t> written;
  for (int i = 0; i < n; ++i) {
    const Tensor& data = ctx.input(n + i);
    const bool done = ForOneElement(dtype, width, [&](auto zero) {
      using T = decltype(zero);
      written.resize(static_cast<size_t>(rows));
      T* const to = static_cast<T*>(out->mutable_raw());
      const T* from = static_cast<const T*>(data.raw());
      for (int32_t v : ctx.input(i).flat<int32_t>()) {
        to[v] = *from++;
        written[static_cast<size_t>(v)] = 1;
      }
    });
    if (!done) return StitchSlices(ctx, n, rows, width, out);
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (written[static_cast<size_t>(r)] == 0) ZeroElements(dtype, out->mutable_raw(), r, 1);
  }
  return absl::OkStatus();
}

template <typename T>
Status InvertTyped(KernelContext& ctx) {
  const T* const x = ctx.input(0).data<T>();
  const int64_t n = ctx.input(0).num_elements();
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
  T* const y = out->mutable_data<T>();
  std::memset(y, 0xff, out->TotalBytes());
  const bool far = out->TotalBytes() > (1 << 20);                       // beyond a core's own caches
  ctx.ParallelFor(n, 1.5, [x, y, n, far](int64_t begin, int64_t end) {  // a repeated place may be written by several
    constexpr int64_t kAhead = 24;  // stores that miss wait for each other, prefetches do not
    for (int64_t i = begin; i < end; ++i) {
      if (far && i + kAhead < end && InRange(x[i + kAhead], n)) __builtin_prefetch(y + x[i + kAhead], 1);
      const int64_t place = x[i];
      if (InRange(place, n)) {
        std::atomic_ref<T>(y[place]).store(static_cast<T>(i), std::memory_order_relaxed);
      }
    }
  });
  std::atomic<bool> complete = true;
  ctx.ParallelFor(n, 0.1, [y, &complete](int64_t begin, int64_t end) {
    T all[16] = {};
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
      for (int64_t j = 0; j < 16; ++j) all[j] |= y[i + j];
    }
    for (; i < end; ++i) all[0] |= y[i];
    for (const T some : all) {
      if (some < 0) complete = false;
    }
  });
  if (complete) return absl::OkStatus();  // so no place is repeated, and none is outside
  MR_RETURN_IF_ERROR(CheckIndices("x", ctx.input(0), n));
  std::vector<int64_t> first(static_cast<size_t>(n), -1);
  for (int64_t i = 0; i < n; ++i) {
    int64_t& place = first[static_cast<size_t>(x[i])];
    if (place >= 0) return InvalidArgument("x[", i, "] = ", x[i], " repeats x[", place, "]");
    place = i;
  }
  return Internal("x changed while it was read");
}

Status InvertPermutation(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  MR_RETURN_IF_ERROR(RequireVector("x", x));
  return x.dtype() == DType::kInt32 ? InvertTyped<int32_t>(ctx) : InvertTyped<int64_t>(ctx);
}

class ReverseSequenceKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(seq_, init.Attr<int64_t>("seq_dim"));
    MR_ASSIGN_OR_RETURN(batch_, init.Attr<int64_t>("batch_dim"));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const Tensor& lengths = ctx.input(1);
    const int rank = in.rank();
    if (seq_ == batch_) return InvalidArgument("batch_dim == seq_dim == ", seq_);
    if (!InRange(seq_, rank)) return InvalidArgument("seq_dim ", seq_, " is not in [0, ", rank, ")");
    if (!InRange(batch_, rank)) return InvalidArgument("batch_dim ", batch_, " is not in [0, ", rank, ")");
    MR_RETURN_IF_ERROR(RequireVector("seq_lengths", lengths));
    const int seq = static_cast<int>(seq_), batch = static_cast<int>(batch_);
    if (lengths.num_elements() != in.dim(batch)) {
      return InvalidArgument(
          "there are ", lengths.num_elements(), " sequence lengths for ", in.dim(batch), " batch entries");
    }
    MR_RETURN_IF_ERROR(CheckIndices("seq_lengths", lengths, in.dim(seq) + 1));
    MR_ASSIGN_OR_RETURN(std::vector<int64_t> lens, lengths.IntValues());
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    if (in.num_elements() == 0) return absl::OkStatus();
    const int lo = std::min(seq, batch), hi = std::max(seq, batch);
    // [outer, A, mid, B, inner], where A and B are the batch and sequence dimensions in either order.
    const int64_t outer = DimProduct(in.shape(), 0, lo), a = in.dim(lo), mid = DimProduct(in.shape(), lo + 1, hi);
    const int64_t b = in.dim(hi), inner = DimProduct(in.shape(), hi + 1, rank);
    const RunCopier copier(in.dtype(), inner);
    const bool batch_first = batch < seq;
    ctx.ParallelFor(outer * a * mid, copier.cost() * static_cast<double>(b), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t i = r / mid % a, row = r * b * inner;
        if (batch_first) {
          const int64_t len = lens[static_cast<size_t>(i)];
          copier.Copy(out->mutable_raw(), row, inner, in.raw(), row + (len - 1) * inner, -inner, len);
          copier.Copy(out->mutable_raw(), row + len * inner, inner, in.raw(), row + len * inner, inner, b - len);
          continue;
        }
        for (int64_t k = 0; k < b; ++k) {
          const int64_t len = lens[static_cast<size_t>(k)];
          const int64_t step = i < len ? len - 1 - 2 * i : 0;  // to the mirrored place in the sequence
          copier.CopyOne(out->mutable_raw(), row + k * inner, in.raw(), row + (step * mid * b + k) * inner);
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  int64_t seq_ = 0, batch_ = 0;
};

}  // namespace

void RegisterPartitionKernels(KernelRegistry& r) {
  r.AddFn({.op = "DynamicPartition"}, DynamicPartition);
  r.AddFn({.op = "DynamicStitch"}, DynamicStitch);
  r.AddFn({.op = "ParallelDynamicStitch"}, DynamicStitch);
  r.AddFn({.op = "InvertPermutation"}, InvertPermutation);
  r.Add<ReverseSequenceKernel>({.op = "ReverseSequence"});
}

}  // namespace millrace
