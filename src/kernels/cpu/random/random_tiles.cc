// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/random/random_tiles.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/random/random_tiles.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
// Word k of block i at [k][i].
struct Batch {
  alignas(64) uint32_t words[4][kRandomBatch];
};

#if HWY_TARGET == HWY_SCALAR

void Generate(const Philox& start, uint64_t apart, int64_t n, Batch& batch) {
  Philox p = start;
  for (int64_t i = 0; i < n; ++i, p.Skip(apart)) {
    const Philox::Block block = Philox(p)();
    for (size_t k = 0; k < 4; ++k) batch.words[k][i] = block[k];
  }
}

template <typename T>
void Interleave(const T (&parts)[4][kRandomBatch], int64_t n, T* out) {
  for (int64_t i = 0; i < 4 * n; ++i) out[i] = parts[i % 4][i / 4];
}

#else

using Words = hn::ScalableTag<uint32_t>;
using Word = hn::Vec<Words>;

// The halves of the 64-bit products.
HWY_INLINE void Multiply(Word a, Word by, Word& high, Word& low) {
  const Words d;
  const hn::Repartition<uint64_t, Words> wide;
  const auto even = hn::MulEven(a, by);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), by);
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

// Whole vectors of blocks, n of which are asked for.
void Generate(const Philox& start, uint64_t apart, int64_t n, Batch& batch) {
  const Philox::Block& c = start.counter();
  const uint64_t first = uint64_t{c[1]} << 32 | c[0];
  const uint64_t last = first + apart * static_cast<uint64_t>(kRandomBatch - 1);
  if (last >= first) {
    for (uint64_t i = 0; i < kRandomBatch; ++i) {
      const uint64_t at = first + apart * i;
      batch.words[0][i] = static_cast<uint32_t>(at);
      batch.words[1][i] = static_cast<uint32_t>(at >> 32);
      batch.words[2][i] = c[2];
      batch.words[3][i] = c[3];
    }
  } else {  // the count goes beyond 64 bits
    Philox p = start;
    for (size_t i = 0; i < kRandomBatch; ++i, p.Skip(apart)) {
      for (size_t k = 0; k < 4; ++k) batch.words[k][i] = p.counter()[k];
    }
  }
  const Words d;
  const size_t lanes = hn::Lanes(d);
  const Word by0 = hn::Set(d, 0xD2511F53u), by1 = hn::Set(d, 0xCD9E8D57u);
  for (size_t i = 0; i < static_cast<size_t>(n); i += lanes) {
    Word b0 = hn::Load(d, batch.words[0] + i), b1 = hn::Load(d, batch.words[1] + i);
    Word b2 = hn::Load(d, batch.words[2] + i), b3 = hn::Load(d, batch.words[3] + i);
    uint32_t k0 = start.key()[0], k1 = start.key()[1];
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      Word high0, low0, high1, low1;
      Multiply(b0, by0, high0, low0);
      Multiply(b2, by1, high1, low1);
      b0 = hn::Xor(hn::Xor(high1, b1), hn::Set(d, k0));
      b2 = hn::Xor(hn::Xor(high0, b3), hn::Set(d, k1));
      b1 = low1;
      b3 = low0;
    }
    hn::Store(b0, d, batch.words[0] + i);
    hn::Store(b1, d, batch.words[1] + i);
    hn::Store(b2, d, batch.words[2] + i);
    hn::Store(b3, d, batch.words[3] + i);
  }
}

// out[4 i + k] = parts[k][i].
template <typename T>
void Interleave(const T (&parts)[4][kRandomBatch], int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreInterleaved4(hn::Load(d, parts[0] + i), hn::Load(d, parts[1] + i), hn::Load(d, parts[2] + i),
                          hn::Load(d, parts[3] + i), d, out + 4 * i);
  }
  for (; i < n; ++i) {
    for (int k = 0; k < 4; ++k) out[4 * i + k] = parts[k][i];
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

void WordsOf(const Philox& start, uint64_t apart, int64_t n, uint32_t* out) {
  Batch batch;
  Generate(start, apart, n, batch);
  Interleave(batch.words, n, out);
}

void FractionsOf(const Philox& start, int64_t n, int bits, float* out) {
  uint32_t words[4 * kRandomBatch];
  WordsOf(start, 1, n, words);
  const uint32_t mask = (1u << bits) - 1u;
  const int shift = 23 - bits;
#pragma GCC ivdep
  for (int64_t i = 0; i < 4 * n; ++i) {
    out[i] = std::bit_cast<float>(0x3f800000u | (words[i] & mask) << shift) - 1.0f;
  }
}

// Pairs of words to pairs of normal numbers.
void Pairs(const uint32_t* x0, const uint32_t* x1, int64_t n, float* a, float* b) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float unit = std::bit_cast<float>(0x3f800000u | (x0[i] & 0x7fffffu)) - 1.0f;
    const float turn = std::bit_cast<float>(0x3f800000u | (x1[i] & 0x7fffffu)) - 1.0f;
    const float u = unit < 1.0e-7f ? 1.0e-7f : unit;
    const float angle = 2.0f * 3.14159265358979323846f * turn;
    const float log = static_cast<float>(LogNormal<double, kFloatLogTerms>(static_cast<double>(u)));
    const float radius = std::sqrt(-2.0f * log);
    a[i] = static_cast<float>(SinReduced<13>(static_cast<double>(angle))) * radius;
    b[i] = static_cast<float>(CosReduced<13>(static_cast<double>(angle))) * radius;
  }
}

void NormalsOf(const Philox& start, uint64_t apart, int64_t n, float* out) {
  Batch batch;
  alignas(64) float normal[4][kRandomBatch];
  Generate(start, apart, n, batch);
  Pairs(batch.words[0], batch.words[1], n, normal[0], normal[1]);
  Pairs(batch.words[2], batch.words[3], n, normal[2], normal[3]);
  Interleave(normal, n, out);
}

void CumulateExpsOf(double* v, int64_t n) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr int64_t kLanes = 16;
  double lanes[kLanes];
  for (double& lane : lanes) lane = -kInfinity;
  const auto finite = [](double x) { return std::abs(x) < kInfinity; };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = finite(v[i + l]) & (v[i + l] > lanes[l]) ? v[i + l] : lanes[l];
  }
  for (; i < n; ++i) lanes[0] = finite(v[i]) & (v[i] > lanes[0]) ? v[i] : lanes[0];
  double top = lanes[0];
  for (double lane : lanes) top = lane > top ? lane : top;
#pragma GCC ivdep
  for (i = 0; i < n; ++i) {
    const bool counts = finite(v[i]);
    v[i] = counts ? Exp(counts ? v[i] - top : 0.0) : 0.0;
  }
  for (i = 1; i < n; ++i) v[i] += v[i - 1];
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {
HWY_EXPORT(WordsOf);
HWY_EXPORT(FractionsOf);
HWY_EXPORT(NormalsOf);
HWY_EXPORT(CumulateExpsOf);
}  // namespace

void RandomWords(const Philox& start, uint64_t apart, int64_t n, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(WordsOf)(start, apart, n, out);
}
void RandomFractions(const Philox& start, int64_t n, int bits, float* out) {
  HWY_DYNAMIC_DISPATCH(FractionsOf)(start, n, bits, out);
}
void RandomNormals(const Philox& start, uint64_t apart, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(NormalsOf)(start, apart, n, out);
}
void CumulateExps(double* v, int64_t n) { HWY_DYNAMIC_DISPATCH(CumulateExpsOf)(v, n); }

}  // namespace millrace
#endif  // HWY_ONCE
