// SPDX-License-Identifier: Apache-2.0
// BroadcastTo, BroadcastArgs, BroadcastGradientArgs.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/any_device.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/elementwise_broadcast.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/engine/strided_fill_simd.h"

namespace millrace {
namespace {

StatusOr<std::vector<int64_t>> ShapeVector(const KernelContext& ctx, int i) {
  if (ctx.input(i).rank() != 1) {
    return InvalidArgument(
        "input ", i, " of ", ctx.node().op->name, " must be a vector, got shape ", ctx.input(i).shape().ToString());
  }
  return ctx.input(i).IntValues();
}

Status SetInts(KernelContext& ctx, int o, const std::vector<int64_t>& values) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape::Vector(static_cast<int64_t>(values.size()))));
  if (out->dtype() == DType::kInt32) {
    std::transform(
        values.begin(), values.end(), out->mutable_data<int32_t>(), [](int64_t v) { return static_cast<int32_t>(v); });
  } else {
    std::copy(values.begin(), values.end(), out->mutable_data<int64_t>());
  }
  return absl::OkStatus();
}

Status Incompatible(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  auto text = [](const std::vector<int64_t>& v) {
    std::string s = "[";
    for (size_t i = 0; i < v.size() && i < 16; ++i) absl::StrAppend(&s, i ? "," : "", v[i]);
    return s + "]";
  };
  return InvalidArgument("Incompatible shapes: ", text(a), " vs. ", text(b));
}

// Dimension i counted from the end; 1 before the beginning.
int64_t FromEnd(const std::vector<int64_t>& v, size_t i) { return i < v.size() ? v[v.size() - 1 - i] : 1; }

Status BroadcastArgs(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const auto a, ShapeVector(ctx, 0));
  MR_ASSIGN_OR_RETURN(const auto b, ShapeVector(ctx, 1));
  std::vector<int64_t> out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = FromEnd(a, i);
    const int64_t y = FromEnd(b, i);
    if (x != y && x != 1 && y != 1) return Incompatible(a, b);
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return SetInts(ctx, 0, out);
}

// The axes over which the gradient of each side is summed. Equal shapes: none; a dimension that is 1 on both sides
// counts for both.
Status BroadcastGradientArgs(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const auto a, ShapeVector(ctx, 0));
  MR_ASSIGN_OR_RETURN(const auto b, ShapeVector(ctx, 1));
  std::vector<int64_t> ra, rb;
  const size_t rank = std::max(a.size(), b.size());
  if (a != b) {
    for (size_t i = rank; i-- > 0;) {
      const int64_t x = FromEnd(a, i);
      const int64_t y = FromEnd(b, i);
      if (x != y && x != 1 && y != 1) return Incompatible(a, b);
      const int64_t axis = static_cast<int64_t>(rank - 1 - i);
      if (x == 1) ra.push_back(axis);
      if (y == 1) rb.push_back(axis);
    }
  }
  MR_RETURN_IF_ERROR(SetInts(ctx, 0, ra));
  return SetInts(ctx, 1, rb);
}

// Rows of no more than kPart elements, those of a block in one loop.
void CopyShortRows(KernelContext& ctx, const BroadcastPlan& plan, DType dtype, const void* in, void* out) {
  const RunFns runs = RunFunctions(dtype);
  const RunFn run = plan.Moves(0) ? runs.copy : runs.fill;
  const int64_t inner = plan.inner(), block = plan.block(), stride = plan.BlockStride(0);
  const int64_t bytes = static_cast<int64_t>(DTypeSize(dtype));
  const bool fills = !plan.Moves(0) && IsPlain(dtype) && bytes <= 8 && inner * bytes <= kFilledRow;
  ctx.ParallelFor(plan.rows(), static_cast<double>(inner) * 0.5 + 3, [&](int64_t begin, int64_t end) {
    auto at = BroadcastPlan::Cursor::OverBlocks(plan, begin / block);
    for (int64_t row = begin % block; begin < end; row = 0, at.Next()) {
      const int64_t last = std::min(block, row + end - begin);
      if (fills) {
        const void* const from = ElementAt(in, dtype, at.offset(0) + row * stride);
        FillRows(bytes, static_cast<const char*>(from), stride * bytes, last - row, inner,
                 static_cast<char*>(ElementAt(out, dtype, begin * inner)));
        begin += last - row;
        continue;
      }
      for (; row < last; ++row, ++begin) {
        run(ElementAt(out, dtype, begin * inner), ElementAt(in, dtype, at.offset(0) + row * stride), inner);
      }
    }
  });
}

constexpr int64_t kPart = 1 << 16;

void CopyLongRows(KernelContext& ctx, const BroadcastPlan& plan, DType dtype, const void* in, void* out) {
  const RunFns runs = RunFunctions(dtype);
  const int64_t inner = plan.inner();
  const bool moves = plan.Moves(0);
  const int64_t parts = (inner + kPart - 1) / kPart;
  ctx.ParallelFor(
      plan.rows() * parts, static_cast<double>(std::min(inner, kPart)) * 0.5 + 3, [&](int64_t begin, int64_t end) {
        BroadcastPlan::Cursor row(plan, begin / parts);
        int64_t number = begin / parts;
        int64_t part = begin % parts;
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t first = part * kPart;
          const int64_t from = row.offset(0) + (moves ? first : 0);
          (moves ? runs.copy : runs.fill)(ElementAt(out, dtype, number * inner + first), ElementAt(in, dtype, from),
                                          std::min(kPart, inner - first));
          if (++part == parts) {
            part = 0;
            ++number;
            row.Next();
          }
        }
      });
}

Status BroadcastTo(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(const auto dims, ShapeVector(ctx, 1));
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(absl::MakeConstSpan(dims)));
  if (in.shape() == shape) {
    ctx.set_output(0, in);
    return absl::OkStatus();
  }
  bool fits = in.rank() <= shape.rank();
  for (int i = 0; fits && i < in.rank(); ++i) {
    fits = in.dim(i) == 1 || in.dim(i) == shape.dim(i + shape.rank() - in.rank());
  }
  if (!fits) {
    return InvalidArgument("Incompatible shapes: ", in.shape().ToString(), " does not broadcast to ", shape.ToString());
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const BroadcastPlan plan({&in.shape()}, shape);
  const auto copy = plan.inner() <= kPart ? CopyShortRows : CopyLongRows;
  copy(ctx, plan, in.dtype(), in.raw(), out->mutable_raw());
  return absl::OkStatus();
}

}  // namespace

// Shapes are in host memory on every device.
void AddShapeArithmeticKernels(AnyDeviceKernels& r) {
  r.AddFn("BroadcastArgs", {"s0", "s1", "r0"}, &BroadcastArgs);
  r.AddFn("BroadcastGradientArgs", {"s0", "s1", "r0", "r1"}, &BroadcastGradientArgs);
}

void RegisterBroadcastKernels(KernelRegistry& r) {
  r.AddFn({.op = "BroadcastTo", .types = {{"Tidx", Types("IDX")}}}, &BroadcastTo);
}

}  // namespace millrace
