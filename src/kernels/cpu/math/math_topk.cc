// SPDX-License-Identifier: Apache-2.0
// Kernels of TopK and TopKV2.
//
// Each element becomes one unsigned number: its value in an order-preserving form above, the complement of its position
// below. The k largest of these are the answer in its final order, ties included. A row is read once; numbers that beat
// the k-th best so far go into a buffer, which is cut back to k by selection when it is full, or, for few, into their
// place among the best. Of a long row a sample says which elements may be among the k, and threads collect these.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/stop_scope.h"
#include "kernels/cpu/math/math.h"
#include "kernels/cpu/math/math_convert.h"
#include "kernels/cpu/math/math_ranking.h"
#include "kernels/cpu/math/math_ranking_simd.h"

namespace millrace {
namespace {

__extension__ using uint128 = unsigned __int128;

// NaN above everything; both zeros alike.
inline uint32_t Ordered(float v) {
  if (v != v) return std::numeric_limits<uint32_t>::max();
  const uint32_t bits = std::bit_cast<uint32_t>(v + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
inline uint64_t Ordered(double v) {
  if (v != v) return std::numeric_limits<uint64_t>::max();
  const uint64_t bits = std::bit_cast<uint64_t>(v + 0.0);
  return bits >> 63 ? ~bits : bits | (uint64_t{1} << 63);
}
inline uint32_t Ordered(int8_t v) { return static_cast<uint32_t>(int32_t{v}) ^ 0x80000000u; }
inline uint32_t Ordered(int16_t v) { return static_cast<uint32_t>(int32_t{v}) ^ 0x80000000u; }
inline uint32_t Ordered(int32_t v) { return static_cast<uint32_t>(v) ^ 0x80000000u; }
inline uint64_t Ordered(int64_t v) { return static_cast<uint64_t>(v) ^ (uint64_t{1} << 63); }
inline uint32_t Ordered(uint8_t v) { return v; }
inline uint32_t Ordered(uint16_t v) { return v; }
inline uint32_t Ordered(uint32_t v) { return v; }
inline uint64_t Ordered(uint64_t v) { return v; }

// The number for element i, and back to i.
inline uint64_t Ranked(uint32_t key, int64_t i) {
  return uint64_t{key} << 32 | (~static_cast<uint64_t>(i) & 0xffffffffu);
}
inline uint128 Ranked(uint64_t key, int64_t i) { return uint128{key} << 64 | ~static_cast<uint64_t>(i); }
inline int64_t Position(uint64_t r) { return static_cast<int64_t>(~r & 0xffffffffu); }
inline int64_t Position(uint128 r) { return static_cast<int64_t>(~static_cast<uint64_t>(r)); }

template <typename T>
using RankOf = decltype(Ranked(Ordered(T()), 0));

int64_t BufferSize(int64_t n, int64_t k) { return std::min(n, std::max<int64_t>(4 * k, 128)); }

constexpr int64_t kLong = 1 << 18;

// So many are sorted by their digits, with as much memory beside them.
template <typename R>
constexpr int64_t kMany = 256 * sizeof(R);

constexpr int64_t kPart = 1 << 15;  // of a long row, for a thread

// Descending, digit after digit from that at bit `shift`, each pass a stable counting sort of parts; digits that all
// have in common are passed over.
template <typename R>
void SortByDigits(const KernelContext& ctx, R* keys, int64_t n, R* beside, int shift) {
  constexpr int kBits = 8;
  constexpr size_t kDigits = size_t{1} << kBits;
  R differing = 0;
  for (int64_t i = 1; i < n; ++i) differing |= keys[i] ^ keys[0];
  const int64_t parts = (n + kPart - 1) / kPart;
  std::vector<std::array<int64_t, kDigits>> places(static_cast<size_t>(parts));
  R *from = keys, *to = beside;
  for (; shift < static_cast<int>(8 * sizeof(R)); shift += kBits) {
    const auto digit = [shift](R r) { return static_cast<size_t>(r >> shift) & (kDigits - 1); };
    if (digit(differing) == 0) continue;
    StopIfAsked();
    // fn(place of each digit, first element, how many) for every part
    const auto for_parts = [&](double cost, auto fn) {
      ctx.ParallelFor(parts, cost * static_cast<double>(std::min(n, kPart)), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
          fn(places[static_cast<size_t>(p)].data(), from + p * kPart, std::min(kPart, n - p * kPart));
      });
    };
    for_parts(0.5, [digit](int64_t* place, const R* part, int64_t count) {
      std::fill_n(place, kDigits, 0);
      for (int64_t i = 0; i < count; ++i) ++place[digit(part[i])];
    });
    int64_t before = 0;
    for (size_t d = kDigits; d-- > 0;) {
      for (auto& place : places) before += std::exchange(place[d], before);
    }
    for_parts(1.5, [digit, to](int64_t* place, const R* part, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to[place[digit(part[i])]++] = part[i];
    });
    std::swap(from, to);
  }
  if (from != keys) std::copy(from, from + n, keys);
}

// The k best of `count` to the front; where that takes long, with a look now and then whether anybody still wants it.
template <typename R>
void KeepBest(R* buffer, int64_t count, int64_t k) {
  if (count < kLong) return std::nth_element(buffer, buffer + k, buffer + count, std::greater<R>());
  StopNowAndThen pause;
  std::nth_element(buffer, buffer + k, buffer + count, [&pause](const R& a, const R& b) {
    pause();
    return a > b;
  });
}

constexpr int64_t kBlock = 32;

// Whether one of the next kBlock values may beat `least`, which stands before them: NaN may, an equal value does not.
template <typename T>
bool AnyAbove(const T* values, int64_t n, T least) {
  if (n < kBlock) return true;
  int above = 0;
  for (int64_t k = 0; k < kBlock; ++k) above |= !(values[k] <= least);
  return above;
}

constexpr int64_t kFew = 16;

// The k <= kFew best of a row, kept in their order: the bar rises with each that is found.
template <typename T>
void SelectFew(const T* row, int64_t n, int64_t k, RankOf<T>* best) {
  const auto insert = [best](RankOf<T> r, int64_t at) {
    for (; at > 0 && best[at - 1] < r; --at) best[at] = best[at - 1];
    best[at] = r;
  };
  int64_t i = 0;
  for (; i < k; ++i) insert(Ranked(Ordered(row[i]), i), i);
  T least = row[Position(best[k - 1])];
  StopNowAndThen pause;
  while (i < n) {
    pause();
    const int64_t end = std::min(n, i + kBlock);
    if (!AnyAbove(row + i, n - i, least)) {
      i = end;
      continue;
    }
    for (; i < end; ++i) {
      if (row[i] <= least) continue;
      const RankOf<T> r = Ranked(Ordered(row[i]), i);
      if (r < best[k - 1]) continue;  // NaN, after as many others
      insert(r, k - 1);
      least = row[Position(best[k - 1])];
    }
  }
}

// How many ranks a row's selection needs room for.
template <typename R>
int64_t RoomFor(int64_t n, int64_t k) {
  return std::max(BufferSize(n, k), k >= kMany<R> ? 2 * k : 0);
}

// Collects what is above a bar that a sample sets, in parts: k elements or some more, none where the sample misled.
template <typename T>
int64_t CollectBySample(const KernelContext& ctx, const T* row, int64_t n, int64_t k, RankOf<T>* buffer) {
  constexpr int64_t kSample = 1 << 13;
  if (n < kLong || k < kSample / 8 || k > n / 4) return 0;
  std::vector<RankOf<T>> sample(kSample);
  for (int64_t j = 0; j < kSample; ++j) {
    const int64_t i = j * (n / kSample);
    sample[static_cast<size_t>(j)] = Ranked(Ordered(row[i]), i);
  }
  const double share = static_cast<double>(kSample) * static_cast<double>(k) / static_cast<double>(n);
  const auto bar = sample.begin() + static_cast<int64_t>(share + 3 * std::sqrt(share) + 8);
  std::nth_element(sample.begin(), bar, sample.end(), std::greater<RankOf<T>>());
  const T least = row[Position(*bar)];
  if (least != least) return 0;
  std::vector<int64_t> ends(static_cast<size_t>((n + kPart - 1) / kPart));
  const auto for_parts = [&](double cost, auto fn) {
    ctx.ParallelFor(static_cast<int64_t>(ends.size()), cost * kPart, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) fn(ends[static_cast<size_t>(p)], p * kPart, std::min(n, (p + 1) * kPart));
    });
  };
  for_parts(0.1, [row, least](int64_t& count, int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + kBlock <= end; i += kBlock) {
      int here = 0;
      for (int64_t j = 0; j < kBlock; ++j) here += !(row[i + j] <= least);
      count += here;
    }
    for (; i < end; ++i) count += !(row[i] <= least);
  });
  int64_t before = 0;
  for (int64_t& end : ends) before += std::exchange(end, before);
  if (before < k || before > BufferSize(n, k)) return 0;
  for_parts(0.3, [row, least, buffer](int64_t at, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t stop = std::min(end, i + kBlock);
      if (!AnyAbove(row + i, stop - i, least)) continue;
      for (int64_t j = i; j < stop; ++j) {
        if (!(row[j] <= least)) buffer[at++] = Ranked(Ordered(row[j]), j);
      }
    }
  });
  return before;
}

// The k best of a row, best first, at the start of `buffer`.
template <typename T>
void SelectRow(const KernelContext& ctx, const T* row, int64_t n, int64_t k, RankOf<T>* buffer) {
  using R = RankOf<T>;
  if (k <= kFew) return SelectFew(row, n, k, buffer);
  const int64_t capacity = BufferSize(n, k);
  // Positions are in order where all of a row is sorted: their digits, the lower half, need no pass.
  const int in_order = k == n ? static_cast<int>(4 * sizeof(R)) : 0;
  const auto sort = [&] {
    if (k >= kMany<R>) return SortByDigits(ctx, buffer, k, buffer + k, in_order);
    std::sort(buffer, buffer + k, std::greater<R>());
  };
  if (const int64_t found = CollectBySample(ctx, row, n, k, buffer); found > 0) {
    if (found > k) KeepBest(buffer, found, k);
    return sort();
  }
  int64_t count = 0, i = 0;
  for (; i < capacity; ++i) buffer[count++] = Ranked(Ordered(row[i]), i);
  R bar = 0;
  T least{};  // the value of the bar
  while (i < n) {
    if (count == capacity) {
      KeepBest(buffer, count, k);
      count = k;
      bar = *std::min_element(buffer, buffer + k);
      least = row[Position(bar)];
    }
    while (i < n && count < capacity) {
      if (n >= kLong) StopIfAsked();
      for (const int64_t stop = std::min(n, i + kLong); i < stop && count < capacity;) {
        if (!AnyAbove(row + i, stop - i, least)) {
          i += std::min(kBlock, stop - i);
          continue;
        }
        for (const int64_t end = std::min(stop, i + kBlock); i < end && count < capacity; ++i) {
          const R r = Ranked(Ordered(row[i]), i);
          buffer[count] = r;
          count += r > bar;
        }
      }
    }
  }
  if (count > k) KeepBest(buffer, count, k);
  sort();
}

struct TopKArgs {
  int64_t rows = 0, n = 0, k = 0;
  const void* keys = nullptr;    // what is compared: the input, or its values as float
  const void* values = nullptr;  // what is returned
  int64_t value_bytes = 0;
  void* out_values = nullptr;
  void* out_indices = nullptr;
};

template <typename V, typename R>
void StoreValues(const TopKArgs& a, int64_t row, const R* best) {
  const V* const from = static_cast<const V*>(a.values) + row * a.n;
  V* const to = static_cast<V*>(a.out_values) + row * a.k;
  for (int64_t j = 0; j < a.k; ++j) to[j] = from[Position(best[j])];
}
template <typename I, typename R>
void StoreIndices(const TopKArgs& a, int64_t row, const R* best) {
  I* const to = static_cast<I*>(a.out_indices) + row * a.k;
  for (int64_t j = 0; j < a.k; ++j) to[j] = static_cast<I>(Position(best[j]));
}
template <typename R>
void StoreRow(const TopKArgs& a, DType index_type, int64_t row, const R* best) {
  switch (a.value_bytes) {
    case 1: StoreValues<uint8_t>(a, row, best); break;
    case 2: StoreValues<uint16_t>(a, row, best); break;
    case 4: StoreValues<uint32_t>(a, row, best); break;
    default: StoreValues<uint64_t>(a, row, best);
  }
  if (index_type == DType::kInt32) return StoreIndices<int32_t>(a, row, best);
  if (index_type == DType::kInt64) return StoreIndices<int64_t>(a, row, best);
  StoreIndices<int16_t>(a, row, best);
}

template <typename T>
Status Run(const KernelContext& ctx, const TopKArgs& a, DType index_type) {
  using R = RankOf<T>;
  if (a.k == 1) {  // without a buffer
    const ArgFns find = ArgFunctions(DTypeOf<T>::value, true);
    ctx.ParallelFor(a.rows, 5 + 0.3 * static_cast<double>(a.n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* const row = static_cast<const T*>(a.keys) + r * a.n;
        const int64_t at = find.of_ordered(row, a.n);
        const R best = Ranked(Ordered(row[at]), at);
        StoreRow(a, index_type, r, &best);
      }
    });
    return absl::OkStatus();
  }
  const size_t bytes = static_cast<size_t>(RoomFor<R>(a.n, a.k)) * sizeof(R);
  std::atomic<bool> exhausted = false;
  ctx.ParallelFor(a.rows, 20 + 1.5 * static_cast<double>(a.n), [&](int64_t begin, int64_t end) {
    auto memory = AllocateBuffer(HostAllocator(), bytes);
    if (!memory.ok()) {
      exhausted = true;
      return;
    }
    R* buffer = static_cast<R*>((*memory)->data());
    for (int64_t r = begin; r < end; ++r) {
      SelectRow(ctx, static_cast<const T*>(a.keys) + r * a.n, a.n, a.k, buffer);
      StoreRow(a, index_type, r, buffer);
    }
  });
  return exhausted ? ResourceExhausted("no memory for ", bytes, " bytes of candidates") : absl::OkStatus();
}

Status Dispatch(const KernelContext& ctx, DType dtype, const TopKArgs& a, DType index_type) {
  switch (dtype) {
    case DType::kFloat: return Run<float>(ctx, a, index_type);
    case DType::kDouble: return Run<double>(ctx, a, index_type);
    case DType::kInt8: return Run<int8_t>(ctx, a, index_type);
    case DType::kInt16: return Run<int16_t>(ctx, a, index_type);
    case DType::kInt32: return Run<int32_t>(ctx, a, index_type);
    case DType::kInt64: return Run<int64_t>(ctx, a, index_type);
    case DType::kUInt8: return Run<uint8_t>(ctx, a, index_type);
    case DType::kUInt16: return Run<uint16_t>(ctx, a, index_type);
    case DType::kUInt32: return Run<uint32_t>(ctx, a, index_type);
    case DType::kUInt64: return Run<uint64_t>(ctx, a, index_type);
    default: return Unimplemented("no order of ", DTypeName(dtype));
  }
}

int64_t LargestIndex(DType t) {
  if (t == DType::kInt16) return std::numeric_limits<int16_t>::max();
  return t == DType::kInt32 ? int64_t{std::numeric_limits<int32_t>::max()} : int64_t{1} << 40;
}

Status ComputeTopK(KernelContext& ctx, int64_t k) {
  const Tensor& in = ctx.input(0);
  if (k < 0) return InvalidArgument("Need k >= 0, got ", k);
  if (in.rank() < 1) return InvalidArgument("input must be >= 1-D, got shape ", in.shape().ToString());
  TopKArgs a;
  a.n = in.dim(in.rank() - 1);
  a.k = k;
  if (a.n < k) return InvalidArgument("input must have at least k columns. Had ", a.n, ", needed ", k);
  // Positions take 32 bits where values do.
  const DType index_type = ctx.output_dtype(1);
  const bool wide_values = DTypeSize(in.dtype()) == 8;
  if (a.n - 1 > LargestIndex(index_type) || (!wide_values && a.n > int64_t{1} << 32)) {
    return InvalidArgument("rows of ", a.n, " elements have positions that ", DTypeName(index_type), " cannot hold");
  }
  MR_ASSIGN_OR_RETURN(const Shape shape, in.shape().WithDim(in.rank() - 1, k));
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, shape));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(1, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  a.rows = in.num_elements() / a.n;
  a.keys = in.raw();
  a.values = in.raw();
  a.value_bytes = static_cast<int64_t>(DTypeSize(in.dtype()));
  a.out_values = values->mutable_raw();
  a.out_indices = indices->mutable_raw();
  if (in.dtype() != DType::kHalf && in.dtype() != DType::kBFloat16) return Dispatch(ctx, in.dtype(), a, index_type);
  MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, in.shape()));
  ConvertElements(ctx, in.dtype(), DType::kFloat, in.raw(), wide.mutable_raw(), in.num_elements());
  a.keys = wide.raw();
  return Dispatch(ctx, DType::kFloat, a, index_type);
}

class TopKKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(k_, init.Attr<int64_t>("k"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override { return ComputeTopK(ctx, k_); }

 private:
  int64_t k_ = 0;
};

Status TopKV2(KernelContext& ctx) {
  const Tensor& k = ctx.input(1);
  if (k.rank() != 0) return InvalidArgument("k must be scalar, got shape ", k.shape().ToString());
  if (k.dtype() == DType::kInt16) return ComputeTopK(ctx, *k.data<int16_t>());
  MR_ASSIGN_OR_RETURN(const int64_t value, k.IntScalar());
  return ComputeTopK(ctx, value);
}

}  // namespace

void RegisterTopKKernels(KernelRegistry& registry) {
  registry.Add<TopKKernel>({.op = "TopK", .types = {{"T", Types("REAL")}}});
  registry.Add<TopKKernel>({.op = "ApproxTopK", .types = {{"T", Types("FLT")}}});
  registry.AddFn({.op = "TopKV2", .types = {{"T", Types("REAL")}}}, &TopKV2);
}

}  // namespace millrace
