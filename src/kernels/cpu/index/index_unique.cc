// SPDX-License-Identifier: Apache-2.0
// Unique*, UniqueWithCounts*, ListDiff.
//
// Every element becomes a 64-bit key such that keys are equal exactly when elements are: integers widen, floats become
// doubles with one zero (and every NaN a key of its own, since NaN equals nothing), strings get the number of their
// first occurrence. Slices along an axis are rows of keys.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/key_map.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

class KeyMaker {
 public:
  // Appends the keys of t to *keys; Unimplemented for other dtypes. Strings must outlive the maker.
  Status Append(const Tensor& t, std::vector<uint64_t>* keys) {
    keys->reserve(keys->size() + static_cast<size_t>(t.num_elements()));
    if (t.dtype() == DType::kString) {
      for (const TString& s : t.flat<TString>()) {
        pause_();
        const int64_t number = strings_.Insert(s.view(), static_cast<int64_t>(strings_.size())).first;
        keys->push_back(static_cast<uint64_t>(number));
      }
      return absl::OkStatus();
    }
    const int64_t n = t.num_elements();
    const bool is_float = VisitTypes<float, double, Half, BFloat16>(t.dtype(), [&]<typename T>() {
      const T* p = t.data<T>();
      for (int64_t i = 0; i < n; ++i) keys->push_back(FloatKey(static_cast<double>(static_cast<Accumulator<T>>(p[i]))));
    });
    if (is_float) return absl::OkStatus();
    const bool known = VisitTypes<int32_t, int64_t, int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t, bool>(
        t.dtype(), [&]<typename T>() {
          const T* p = t.data<T>();
          for (int64_t i = 0; i < n; ++i) keys->push_back(static_cast<uint64_t>(p[i]));
        });
    return known ? absl::OkStatus() : Unimplemented("values of type ", DTypeName(t.dtype()), " cannot be compared");
  }

 private:
  uint64_t FloatKey(double v) {
    if (std::isnan(v)) return 0x7ff8000000000000u + ++nans_;
    return std::bit_cast<uint64_t>(v == 0 ? 0.0 : v);
  }
  uint64_t nans_ = 0;
  StopNowAndThen pause_;
  KeyMap<absl::string_view> strings_;
};

// The first slice of each distinct value, and for each slice the number of its value.
struct Groups {
  std::vector<int64_t> first;
  std::vector<int64_t> group;
};

// Keys that number the values in the order of their first occurrence are the groups themselves.
Groups GroupNumbered(const std::vector<uint64_t>& keys) {
  Groups g;
  g.group.assign(keys.begin(), keys.end());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == g.first.size()) g.first.push_back(static_cast<int64_t>(i));
  }
  return g;
}

Groups GroupScalars(const std::vector<uint64_t>& keys) {
  Groups g;
  g.group.resize(keys.size());
  KeyMap<uint64_t> seen;
  StopNowAndThen pause;
  for (size_t i = 0; i < keys.size(); ++i) {
    pause();
    const auto [group, fresh] = seen.Insert(keys[i], static_cast<int64_t>(g.first.size()));
    if (fresh) g.first.push_back(static_cast<int64_t>(i));
    g.group[i] = group;
  }
  return g;
}

// Slices i of keys seen as [outer, n, inner].
Groups GroupSlices(const std::vector<uint64_t>& keys, int64_t outer, int64_t n, int64_t inner) {
  std::vector<uint64_t> rows(keys.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(rows.data() + (i * outer + o) * inner, keys.data() + (o * n + i) * inner,
                  static_cast<size_t>(inner) * sizeof(uint64_t));
    }
  }
  Groups g;
  g.group.resize(static_cast<size_t>(n));
  const size_t bytes = static_cast<size_t>(outer * inner) * sizeof(uint64_t);
  KeyMap<absl::string_view> seen;
  StopNowAndThen pause;
  for (int64_t i = 0; i < n; ++i) {
    pause();
    const absl::string_view row(reinterpret_cast<const char*>(rows.data() + i * outer * inner), bytes);
    const auto [group, fresh] = seen.Insert(row, static_cast<int64_t>(g.first.size()));
    if (fresh) g.first.push_back(i);
    g.group[static_cast<size_t>(i)] = group;
  }
  return g;
}

Status WriteInts(KernelContext& ctx, int output, const std::vector<int64_t>& values) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, Shape::Vector(static_cast<int64_t>(values.size()))));
  if (out->dtype() == DType::kInt64) {
    std::copy(values.begin(), values.end(), out->mutable_data<int64_t>());
  } else {
    std::transform(
        values.begin(), values.end(), out->mutable_data<int32_t>(), [](int64_t v) { return static_cast<int32_t>(v); });
  }
  return absl::OkStatus();
}

Status CheckCount(int64_t n, DType idx) {
  if (idx == DType::kInt64 || n <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return InvalidArgument("the input has ", n, " elements, too many for int32 positions");
}

Status UniqueAlong(KernelContext& ctx, const Tensor& x, int axis) {
  const int64_t n = x.dim(axis);
  MR_RETURN_IF_ERROR(CheckCount(n, ctx.output_dtype(1)));
  const int64_t outer = DimProduct(x.shape(), 0, axis), inner = DimProduct(x.shape(), axis + 1, x.rank());
  KeyMaker maker;
  std::vector<uint64_t> keys;
  MR_RETURN_IF_ERROR(maker.Append(x, &keys));
  Groups g;
  if (outer == 1 && inner == 1) {
    g = x.dtype() == DType::kString ? GroupNumbered(keys) : GroupScalars(keys);
  } else if (x.num_elements() > 0) {
    g = GroupSlices(keys, outer, n, inner);
  } else if (n > 0) {  // n slices without elements are all alike
    g.first.push_back(0);
    g.group.resize(static_cast<size_t>(n));
  }
  const int64_t count = static_cast<int64_t>(g.first.size());
  MR_ASSIGN_OR_RETURN(Shape shape, x.shape().WithDim(axis, count));
  MR_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() > 0) {
    const RunCopier copier(x.dtype(), inner);
    StopNowAndThen pause;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < count; ++i) {
        pause();
        copier.CopyOne(
            y->mutable_raw(), (o * count + i) * inner, x.raw(), (o * n + g.first[static_cast<size_t>(i)]) * inner);
      }
    }
  }
  MR_RETURN_IF_ERROR(WriteInts(ctx, 1, g.group));
  if (ctx.num_outputs() < 3) return absl::OkStatus();
  std::vector<int64_t> counts(g.first.size());
  for (int64_t k : g.group) ++counts[static_cast<size_t>(k)];
  return WriteInts(ctx, 2, counts);
}

Status Unique(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(RequireVector("x", ctx.input(0)));
  return UniqueAlong(ctx, ctx.input(0), 0);
}

Status UniqueV2(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  MR_RETURN_IF_ERROR(RequireVector("axis", ctx.input(1)));
  MR_ASSIGN_OR_RETURN(std::vector<int64_t> axes, ctx.input(1).IntValues());
  if (axes.size() > 1) return InvalidArgument("axis must have at most one element, got ", axes.size());
  if (axes.empty()) return Unique(ctx);
  int64_t axis;
  if (!NormalizeIndex(axes[0], x.rank(), &axis)) {
    return InvalidArgument("axis ", axes[0], " is not in [-", x.rank(), ", ", x.rank(), ")");
  }
  return UniqueAlong(ctx, x, static_cast<int>(axis));
}

Status ListDiff(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  MR_RETURN_IF_ERROR(RequireVector("x", x));
  MR_RETURN_IF_ERROR(RequireVector("y", y));
  MR_RETURN_IF_ERROR(CheckCount(x.num_elements(), ctx.output_dtype(1)));
  KeyMaker maker;
  std::vector<uint64_t> y_keys, x_keys;
  MR_RETURN_IF_ERROR(maker.Append(y, &y_keys));
  MR_RETURN_IF_ERROR(maker.Append(x, &x_keys));
  StopNowAndThen pause;
  KeyMap<uint64_t> excluded;
  for (const uint64_t key : y_keys) {
    pause();
    excluded.Insert(key, 0);
  }
  std::vector<int64_t> kept;
  for (size_t i = 0; i < x_keys.size(); ++i) {
    pause();
    if (!excluded.Contains(x_keys[i])) kept.push_back(static_cast<int64_t>(i));
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(static_cast<int64_t>(kept.size()))));
  const RunCopier copier(x.dtype(), 1);
  for (size_t i = 0; i < kept.size(); ++i)
    copier.CopyOne(out->mutable_raw(), static_cast<int64_t>(i), x.raw(), kept[i]);
  return WriteInts(ctx, 1, kept);
}

}  // namespace

void RegisterUniqueKernels(KernelRegistry& r) {
  const std::vector<DType> types = Types("REAL|bool|str");
  r.AddFn({.op = "Unique", .types = {{"T", types}}}, Unique);
  r.AddFn({.op = "UniqueWithCounts", .types = {{"T", types}}}, Unique);
  r.AddFn({.op = "UniqueV2", .types = {{"T", types}}}, UniqueV2);
  r.AddFn({.op = "UniqueWithCountsV2", .types = {{"T", types}}}, UniqueV2);
  r.AddFn({.op = "ListDiff", .types = {{"T", types}}}, ListDiff);
}

}  // namespace millrace
