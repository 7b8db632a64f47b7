// SPDX-License-Identifier: Apache-2.0
// Unique*, UniqueWithCounts*, ListDiff.
//
// Every element becomes a 64-bit key such that keys are equal exactly when elements are: integers widen, floats become
// doubles with one zero (and every NaN a key of its own, since NaN equals nothing), strings get the number of their
// first occurrence. Slices along an axis are rows of keys. Keys that lie close together index a table; others, where
// they are many, are dealt out by their hash first, so that the maps of all parts are small and are made side by side.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_deal.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/key_map.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

class KeyMaker {
 public:
  // Appends the keys of t to *keys; Unimplemented for other dtypes. Strings must outlive the maker.
  Status Append(KernelContext& ctx, const Tensor& t, std::vector<uint64_t>* keys) {
    if (t.dtype() == DType::kString) {
      keys->reserve(keys->size() + static_cast<size_t>(t.num_elements()));
      for (const TString& s : t.flat<TString>()) {
        pause_();
        const int64_t number = strings_.Insert(s.view(), static_cast<int64_t>(strings_.size())).first;
        keys->push_back(static_cast<uint64_t>(number));
      }
      return absl::OkStatus();
    }
    const int64_t n = t.num_elements(), before = static_cast<int64_t>(keys->size());
    keys->resize(static_cast<size_t>(before + n));
    uint64_t* const to = keys->data() + before;
    const auto convert = [&](auto key_of) {
      ctx.ParallelFor(n, 1.0, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = key_of(i);
      });
    };
    const bool is_float = VisitTypes<float, double, Half, BFloat16>(t.dtype(), [&]<typename T>() {
      const T* const p = t.data<T>();
      convert([=](int64_t i) { return FloatKey(static_cast<double>(static_cast<Accumulator<T>>(p[i])), before + i); });
    });
    if (is_float) return absl::OkStatus();
    const bool known = VisitTypes<int32_t, int64_t, int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t, bool>(
        t.dtype(), [&]<typename T>() {
          const T* const p = t.data<T>();
          convert([=](int64_t i) { return static_cast<uint64_t>(p[i]); });
        });
    return known ? absl::OkStatus() : Unimplemented("values of type ", DTypeName(t.dtype()), " cannot be compared");
  }

 private:
  static uint64_t FloatKey(double v, int64_t place) {
    if (std::isnan(v)) return 0x7ff8000000000001u + static_cast<uint64_t>(place);
    return std::bit_cast<uint64_t>(v == 0 ? 0.0 : v);
  }
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

// For each key the place of the first one that is equal.
StatusOr<std::vector<int64_t>> FirstPlaces(KernelContext& ctx, const std::vector<uint64_t>& keys) {
  constexpr int64_t kMany = 1 << 15, kKeysOfPart = 4096, kMostParts = 256;
  const int64_t n = static_cast<int64_t>(keys.size());
  std::vector<int64_t> places(keys.size());
  if (n < kMany || n > int64_t{std::numeric_limits<uint32_t>::max()}) {
    KeyMap<uint64_t> seen;
    StopNowAndThen pause;
    for (int64_t i = 0; i < n; ++i) {
      pause();
      places[static_cast<size_t>(i)] = seen.Insert(keys[static_cast<size_t>(i)], i).first;
    }
    return places;
  }
  struct Entry {
    uint64_t key;
    uint32_t place, hash;
  };
  const int64_t parts = std::min(n / kKeysOfPart, kMostParts);
  MR_ASSIGN_OR_RETURN(Tensor hash_memory, ctx.AllocateTemp(DType::kUInt32, Shape::Vector(n)));
  uint32_t* const hashes = hash_memory.mutable_data<uint32_t>();
  std::vector<uint8_t> part(keys.size());
  ctx.ParallelFor(n, 3.0, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t hash = absl::HashOf(keys[static_cast<size_t>(i)]);
      hashes[i] = static_cast<uint32_t>(hash);
      part[static_cast<size_t>(i)] = static_cast<uint8_t>(((hash >> 32) * static_cast<uint64_t>(parts)) >> 32);
    }
  });
  Deal deal(ctx, n, parts, 1.0, [&part](int64_t i) { return part[static_cast<size_t>(i)]; });
  std::vector<int64_t> bounds = {0};
  for (int64_t p = 0; p < parts; ++p) bounds.push_back(bounds.back() + deal.size(p));
  MR_ASSIGN_OR_RETURN(Tensor memory, ctx.AllocateTemp(DType::kUInt64, Shape::Vector(2 * n)));
  static_assert(sizeof(Entry) == 2 * sizeof(uint64_t));
  Entry* const entries = reinterpret_cast<Entry*>(memory.mutable_raw());
  deal.Run(ctx, 4.0, [&](int64_t i, int64_t p, int64_t place) {
    entries[bounds[static_cast<size_t>(p)] + place] = {
        keys[static_cast<size_t>(i)], static_cast<uint32_t>(i), hashes[i]};
  });
  ctx.ParallelFor(parts, 10.0 * static_cast<double>(n / parts), [&](int64_t begin, int64_t end) {
    std::vector<uint32_t> slots;  // which entry of a part, plus one; at least half of them are free
    for (int64_t p = begin; p < end; ++p) {
      const Entry* const some = entries + bounds[static_cast<size_t>(p)];
      const auto count = static_cast<uint32_t>(bounds[static_cast<size_t>(p) + 1] - bounds[static_cast<size_t>(p)]);
      slots.assign(std::bit_ceil(size_t{2} * count + 1), 0);
      const size_t mask = slots.size() - 1;
      StopNowAndThen pause;
      for (uint32_t i = 0; i < count; ++i) {
        pause();
        const Entry& e = some[i];
        size_t at = e.hash & mask;
        while (slots[at] != 0 && some[slots[at] - 1].key != e.key) at = (at + 1) & mask;
        if (slots[at] == 0) slots[at] = i + 1;
        places[e.place] = some[slots[at] - 1].place;
      }
    }
  });
  return places;
}

// Numbers that lie close together have their groups in a table. Nothing where they do not.
std::optional<Groups> GroupClose(const std::vector<uint64_t>& keys) {
  constexpr size_t kBlock = 1024;
  const size_t n = keys.size(), room = 4 * n + 256;
  if (n == 0 || n > size_t{std::numeric_limits<int32_t>::max()}) return std::nullopt;
  auto low = static_cast<int64_t>(keys[0]), high = low;
  for (size_t i = 0; i < n; i += kBlock) {
    for (size_t k = i; k < std::min(n, i + kBlock); ++k) {
      low = std::min(low, static_cast<int64_t>(keys[k]));
      high = std::max(high, static_cast<int64_t>(keys[k]));
    }
    if (static_cast<uint64_t>(high) - static_cast<uint64_t>(low) >= room) return std::nullopt;
  }
  std::vector<int32_t> table(static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1, -1);
  Groups g;
  g.group.resize(n);
  StopNowAndThen pause;
  for (size_t i = 0; i < n; ++i) {
    pause();
    int32_t& group = table[keys[i] - static_cast<uint64_t>(low)];
    if (group < 0) {
      group = static_cast<int32_t>(g.first.size());
      g.first.push_back(static_cast<int64_t>(i));
    }
    g.group[i] = group;
  }
  return g;
}

StatusOr<Groups> GroupScalars(KernelContext& ctx, const std::vector<uint64_t>& keys) {
  if (std::optional<Groups> close = GroupClose(keys)) return *std::move(close);
  Groups g;
  MR_ASSIGN_OR_RETURN(g.group, FirstPlaces(ctx, keys));
  // A first key gives its group its number, which all that come later find there.
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t first = static_cast<size_t>(g.group[i]);
    if (first == i) g.first.push_back(static_cast<int64_t>(i));
    g.group[i] = first == i ? static_cast<int64_t>(g.first.size()) - 1 : g.group[first];
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
  const int64_t n = static_cast<int64_t>(values.size());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, Shape::Vector(n)));
  VisitTypes<int32_t, int64_t>(out->dtype(), [&]<typename T>() {
    T* const to = out->mutable_data<T>();
    ctx.ParallelFor(n, 0.5, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(values[static_cast<size_t>(i)]);
    });
  });
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
  MR_RETURN_IF_ERROR(maker.Append(ctx, x, &keys));
  Groups g;
  if (outer == 1 && inner == 1) {
    if (x.dtype() == DType::kString) {
      g = GroupNumbered(keys);
    } else {
      MR_ASSIGN_OR_RETURN(g, GroupScalars(ctx, keys));
    }
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
    ctx.ParallelFor(outer * count, copier.cost(), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin, o = begin / count, i = begin % count; r < end; ++r) {
        copier.CopyOne(y->mutable_raw(), r * inner, x.raw(), (o * n + g.first[static_cast<size_t>(i)]) * inner);
        if (++i == count) i = 0, ++o;
      }
    });
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
  std::vector<uint64_t> keys;  // of y, then of x: what is first there is not in y
  MR_RETURN_IF_ERROR(maker.Append(ctx, y, &keys));
  MR_RETURN_IF_ERROR(maker.Append(ctx, x, &keys));
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> places, FirstPlaces(ctx, keys));
  const int64_t excluded = y.num_elements();
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (places[static_cast<size_t>(excluded + i)] >= excluded) kept.push_back(i);
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(static_cast<int64_t>(kept.size()))));
  const RunCopier copier(x.dtype(), 1);
  for (size_t i = 0; i < kept.size(); ++i) {
    copier.CopyOne(out->mutable_raw(), static_cast<int64_t>(i), x.raw(), kept[i]);
  }
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
