// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/sparse/sparse.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>

#include "absl/strings/str_join.h"
#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_rows.h"

namespace millrace {

StatusOr<SparseArg> SparseArgOf(const KernelContext& ctx, int indices, int values, int shape, absl::string_view name) {
  const Tensor &places = ctx.input(indices), &elements = ctx.input(values), &dims = ctx.input(shape);
  if (places.rank() == 2 && elements.rank() == 1 && dims.rank() == 1 && places.dim(0) == elements.dim(0) &&
      places.dim(1) == dims.dim(0)) {
    return SparseArg{
        .values = &elements, .shape = &dims, .indices = &places, .n = places.dim(0), .rank = places.dim(1)};
  }
  return InvalidArgument(
      name, " needs indices [n, rank], values [n] and a shape [rank], got ", places.shape().ToString(), ", ",
      elements.shape().ToString(), " and ", dims.shape().ToString());
}

Status CheckSameShape(const SparseArg& a, const SparseArg& b) {
  if (a.rank != b.rank) return InvalidArgument("Operands do not have the same ranks: ", a.rank, " and ", b.rank);
  for (int64_t d = 0; d < a.rank; ++d) {
    if (a.dims()[d] != b.dims()[d]) {
      return InvalidArgument("Operands' shapes do not match: dimension ", d, " is ", a.dims()[d], " and ", b.dims()[d]);
    }
  }
  return absl::OkStatus();
}

StatusOr<Shape> DenseShapeOf(const SparseArg& s) {
  return Shape::Make(absl::MakeConstSpan(s.dims(), static_cast<size_t>(s.rank)));
}

Status CheckInside(const SparseArg& s, absl::string_view name) {
  const int64_t* const dims = s.dims();
  const int64_t* const indices = s.at(0);
  // No branch per element: where v is not negative, limit - 1 - v is if v is too large, and does not overflow.
  uint64_t seen = 0;
  const int64_t rank = s.rank;
  const int64_t* p = indices;
  for (int64_t d = 0; d < rank; ++d) seen |= static_cast<uint64_t>(dims[d]);
  for (int64_t i = 0; i < s.n; ++i, p += rank) {
    for (int64_t d = 0; d < rank; ++d) {
      const uint64_t v = static_cast<uint64_t>(p[d]);
      seen |= v | (static_cast<uint64_t>(dims[d]) - 1 - v);
    }
  }
  if (static_cast<int64_t>(seen) >= 0) return absl::OkStatus();
  for (int64_t i = 0; i < s.n * rank; ++i) {
    const int64_t v = indices[i], limit = dims[i % rank];
    if (v < 0 || v >= limit) return IndexOutOfRange(name, s.indices->shape(), i, v, limit);
  }
  return absl::OkStatus();  // a dimension is negative, and there is no index
}

Status CheckOrdered(const SparseArg& s, absl::string_view name) {
  MR_RETURN_IF_ERROR(CheckInside(s, name));
  return CheckOrder(*s.indices, name);
}

Status CheckOrder(const Tensor& indices, absl::string_view name) {
  const int64_t rank = indices.dim(1);
  const int64_t* p = indices.data<int64_t>();
  for (int64_t i = 1; i < indices.dim(0); ++i) {
    p += rank;
    const int order = CompareIndices(p - rank, p, rank);
    if (order < 0) continue;
    return InvalidArgument(name, "[", i, "] = [", absl::StrJoin(absl::MakeConstSpan(p, static_cast<size_t>(rank)), ","),
                           "] is ", order == 0 ? "repeated" : "out of order; tf.sparse.reorder sorts them");
  }
  return absl::OkStatus();
}

int CompareIndices(const int64_t* a, const int64_t* b, int64_t rank) {
  for (int64_t d = 0; d < rank; ++d) {
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  }
  return 0;
}

namespace {

// An element and its index as one number, in the order of indices.
struct Keyed {
  uint64_t key;
  int64_t element;
};

// Keys of the first `columns` of the indices, and how many of their bits count; 0 bits: they do not fit a number.
int KeysOf(const SparseArg& s, int64_t columns, std::vector<Keyed>* keys) {
  std::vector<int64_t> least(static_cast<size_t>(columns), std::numeric_limits<int64_t>::max());
  std::vector<int64_t> most(static_cast<size_t>(columns), std::numeric_limits<int64_t>::min());
  for (int64_t i = 0; i < s.n; ++i) {
    for (size_t d = 0; d < least.size(); ++d) {
      least[d] = std::min(least[d], s.at(i)[d]);
      most[d] = std::max(most[d], s.at(i)[d]);
    }
  }
  int bits = 0;
  std::vector<int> shift(least.size());
  for (size_t d = least.size(); d-- > 0;) {
    shift[d] = bits;
    bits += static_cast<int>(std::bit_width(static_cast<uint64_t>(most[d]) - static_cast<uint64_t>(least[d])));
    if (bits > 63) return 0;
  }
  keys->resize(static_cast<size_t>(s.n));
  for (int64_t i = 0; i < s.n; ++i) {
    uint64_t key = 0;
    for (size_t d = 0; d < least.size(); ++d) {
      key |= (static_cast<uint64_t>(s.at(i)[d]) - static_cast<uint64_t>(least[d])) << shift[d];
    }
    (*keys)[static_cast<size_t>(i)] = {key, i};
  }
  return bits;
}

// By digits of the keys, the lowest first.
void SortByDigits(int bits, std::vector<Keyed>* keys) {
  constexpr int kDigit = 11;
  std::vector<Keyed> other(keys->size());
  for (int at = 0; at < bits; at += kDigit) {
    const auto digit = [at](const Keyed& k) { return (k.key >> at) & ((1u << kDigit) - 1); };
    std::array<size_t, 1 << kDigit> place{};
    for (const Keyed& k : *keys) ++place[digit(k)];
    std::exclusive_scan(place.begin(), place.end(), place.begin(), size_t{0});
    for (const Keyed& k : *keys) other[place[digit(k)]++] = k;
    keys->swap(other);
  }
}

}  // namespace

bool InRowMajorOrder(const SparseArg& s, int64_t columns) {
  for (int64_t i = 1; i < s.n; ++i) {
    if (CompareIndices(s.at(i - 1), s.at(i), columns) > 0) return false;
  }
  return true;
}

std::vector<int64_t> RowMajorOrder(const SparseArg& s, int64_t columns) {
  std::vector<int64_t> order(static_cast<size_t>(s.n));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (InRowMajorOrder(s, columns)) return order;
  const int64_t *const indices = s.at(0), rank = s.rank;
  StopNowAndThen pause;
  const auto before = [&](int64_t a, int64_t b) {
    pause();
    return CompareIndices(indices + a * rank, indices + b * rank, columns) < 0;
  };
  constexpr int64_t kWorthDigits = 1024;
  std::vector<Keyed> keys;
  const int bits = s.n < kWorthDigits ? 0 : KeysOf(s, columns, &keys);
  if (bits == 0) {
    std::stable_sort(order.begin(), order.end(), before);
    return order;
  }
  SortByDigits(bits, &keys);
  std::transform(keys.begin(), keys.end(), order.begin(), [](const Keyed& k) { return k.element; });
  return order;
}

Status GatherValues(KernelContext& ctx, int o, const Tensor& values, const std::vector<int64_t>& from) {
  const int64_t n = static_cast<int64_t>(from.size());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape::Vector(n)));
  RunCopier(values.dtype(), 1).Gather(out->mutable_raw(), values.raw(), from.data(), n);
  return absl::OkStatus();
}

Status SetVector(KernelContext& ctx, int o, const std::vector<int64_t>& v) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape::Vector(static_cast<int64_t>(v.size()))));
  std::copy(v.begin(), v.end(), out->mutable_data<int64_t>());
  return absl::OkStatus();
}

}  // namespace millrace
