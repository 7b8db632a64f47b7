// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/string_hash.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace millrace {
namespace {

// Numbers in the text are little-endian.
template <typename T>
T Load(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  if constexpr (std::endian::native == std::endian::big) {
    T swapped = 0;
    for (size_t i = 0; i < sizeof v; ++i) swapped |= static_cast<T>((v >> (8 * i)) & 0xff) << (8 * (sizeof v - 1 - i));
    v = swapped;
  }
  return v;
}
uint64_t Load64(const char* p) { return Load<uint64_t>(p); }
uint64_t Load32(const char* p) { return Load<uint32_t>(p); }
uint64_t Byte(const char* p) { return static_cast<unsigned char>(*p); }

// The last n < 8 bytes as a number.
uint64_t Tail(const char* p, size_t n) {
  uint64_t v = 0;
  for (size_t i = 0; i < n; ++i) v |= Byte(p + i) << (8 * i);
  return v;
}

// ---- FarmHash: one way of mixing for each range of lengths ----

constexpr uint64_t kMul0 = 0xc3a5c85c97cb3127, kMul1 = 0xb492b66fbe98f273, kMul2 = 0x9ae16a3b2f90404f;

uint64_t Right(uint64_t v, int n) { return std::rotr(v, n); }
uint64_t Fold(uint64_t v) { return v ^ (v >> 47); }
uint64_t Join(uint64_t u, uint64_t v, uint64_t mul) { return Fold((v ^ Fold((u ^ v) * mul)) * mul) * mul; }

uint64_t OfShort(const char* s, size_t n) {
  const uint64_t mul = kMul2 + n * 2;
  if (n >= 8) {
    const uint64_t a = Load64(s) + kMul2, b = Load64(s + n - 8);
    return Join(Right(b, 37) * mul + a, (Right(a, 25) + b) * mul, mul);
  }
  if (n >= 4) return Join(n + (Load32(s) << 3), Load32(s + n - 4), mul);
  if (n == 0) return kMul2;
  const uint64_t y = Byte(s) + (Byte(s + n / 2) << 8), z = n + (Byte(s + n - 1) << 2);
  return Fold((y * kMul2) ^ (z * kMul0)) * kMul2;
}

// Two numbers out of the first and the last 16 bytes.
struct Ends {
  uint64_t first, second;
};
Ends MixEnds(const char* s, size_t n, uint64_t mul, uint64_t head) {
  const uint64_t a = Load64(s) * head, b = Load64(s + 8), c = Load64(s + n - 8) * mul, d = Load64(s + n - 16) * kMul2;
  return {Right(a + b, 43) + Right(c, 30) + d, a + Right(b + kMul2, 18) + c};
}

uint64_t OfMiddle(const char* s, size_t n) {
  const uint64_t mul = kMul2 + n * 2;
  if (n <= 32) {
    const Ends e = MixEnds(s, n, mul, kMul1);
    return Join(e.first, e.second, mul);
  }
  const Ends outer = MixEnds(s, n, mul, kMul2);
  const uint64_t y = outer.first, z = Join(y, outer.second, mul), a = Load64(s) * kMul2;
  const uint64_t e = Load64(s + 16) * mul, f = Load64(s + 24);
  const uint64_t g = (y + Load64(s + n - 32)) * mul, h = (z + Load64(s + n - 24)) * mul;
  return Join(Right(e + f, 43) + Right(g, 30) + h, e + Right(f + a, 18) + g, mul);
}

// The state of texts above 64 bytes.
struct Long {
  uint64_t x, y, z;
  Ends v{0, 0}, w{0, 0};

  static Ends Mix32(const char* s, uint64_t a, uint64_t b) {
    a += Load64(s);
    const uint64_t last = Load64(s + 24), start = a;
    b = Right(b + a + last, 21);
    a += Load64(s + 8) + Load64(s + 16);
    return {a + last, b + Right(a, 44) + start};
  }
  // 64 bytes. At the end of the text another multiplier and weight are taken.
  void Block(const char* s, uint64_t mul, uint64_t weight) {
    x = Right(x + y + v.first + Load64(s + 8), 37) * mul;
    y = Right(y + v.second + Load64(s + 48), 42) * mul;
    x ^= w.second * weight;
    y += v.first * weight + Load64(s + 40);
    z = Right(z + w.first, 33) * mul;
    v = Mix32(s, v.second * mul, x + w.first);
    w = Mix32(s + 32, z + w.second, y + Load64(s + 16));
    std::swap(z, x);
  }
};

uint64_t OfLong(const char* s, size_t n) {
  constexpr uint64_t kSeed = 81;
  Long state{kSeed * kMul2 + Load64(s), kSeed * kMul1 + 113, 0};
  state.z = Fold(state.y * kMul2 + 113) * kMul2;
  const size_t blocks = (n - 1) / 64, rest = (n - 1) & 63;
  for (size_t i = 0; i < blocks; ++i) state.Block(s + 64 * i, kMul1, 1);
  const uint64_t mul = kMul1 + ((state.z & 0xff) << 1);
  state.w.first += rest;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.Block(s + n - 64, mul, 9);
  return Join(Join(state.v.first, state.w.first, mul) + Fold(state.y) * kMul0 + state.z,
              Join(state.v.second, state.w.second, mul) + state.x, mul);
}

// ---- The one of 128 bits ----

constexpr uint64_t kMul128 = 0x9ddfea08eb382d69;
uint64_t Join128(uint64_t u, uint64_t v) { return Join(u, v, kMul128); }

using Halves = std::pair<uint64_t, uint64_t>;

// Below 128 bytes.
Halves OfShort128(const char* s, size_t n, Halves seed) {
  auto [a, b] = seed;
  uint64_t c = 0, d = 0;
  if (n <= 16) {
    a = Fold(a * kMul1) * kMul1;
    c = b * kMul1 + OfShort(s, n);
    d = Fold(a + (n >= 8 ? Load64(s) : c));
  } else {
    c = Join128(Load64(s + n - 8) + kMul1, a);
    d = Join128(b + n, c + Load64(s + n - 16));
    a += d;
    for (size_t at = 0; at + 16 < n; at += 16) {
      a = (a ^ (Fold(Load64(s + at) * kMul1) * kMul1)) * kMul1;
      b ^= a;
      c = (c ^ (Fold(Load64(s + at + 8) * kMul1) * kMul1)) * kMul1;
      d ^= c;
    }
  }
  a = Join128(a, c);
  b = Join128(d, b);
  return {a ^ b, Join128(b, a)};
}

Halves OfLong128(const char* s, size_t n, Halves seed) {
  Long state{seed.first, seed.second, n * kMul1};
  state.v.first = Right(state.y ^ kMul1, 49) * kMul1 + Load64(s);
  state.v.second = Right(state.v.first, 42) * kMul1 + Load64(s + 8);
  state.w.first = Right(state.y + state.z, 35) * kMul1 + state.x;
  state.w.second = Right(state.x + Load64(s + 88), 53) * kMul1;
  const char* const end = s + n;
  size_t rest = n;
  for (; rest >= 128; rest -= 128, s += 128) {
    state.Block(s, kMul1, 1);
    state.Block(s + 64, kMul1, 1);
  }
  auto& [x, y, z, v, w] = state;
  x += Right(v.first + z, 49) * kMul0;
  y = y * kMul0 + Right(w.second, 37);
  z = z * kMul0 + Right(w.first, 27);
  w.first *= 9;
  v.first *= kMul0;
  for (size_t done = 0; done < rest;) {  // 32 bytes at a time from the end, and as many of those before as it takes
    done += 32;
    const char* const part = end - done;
    y = Right(x + y, 42) * kMul0 + v.second;
    w.first += Load64(part + 16);
    x = x * kMul0 + w.first;
    z += w.second + Load64(part);
    w.second += v.first;
    v = Long::Mix32(part, v.first + z, v.second);
    v.first *= kMul0;
  }
  x = Join128(x, v.first);
  y = Join128(y + z, w.first);
  return {Join128(x + v.second, w.second) + y, Join128(x + w.second, y + v.second)};
}

}  // namespace

std::pair<uint64_t, uint64_t> Fingerprint128(absl::string_view text) {
  const char* s = text.data();
  const size_t n = text.size();
  if (n < 16) return OfShort128(s, n, {kMul0, kMul1});
  const Halves seed{Load64(s), Load64(s + 8) + kMul0};
  return n - 16 < 128 ? OfShort128(s + 16, n - 16, seed) : OfLong128(s + 16, n - 16, seed);
}

uint64_t Fingerprint64(absl::string_view text) {
  if (text.size() <= 16) return OfShort(text.data(), text.size());
  return text.size() <= 64 ? OfMiddle(text.data(), text.size()) : OfLong(text.data(), text.size());
}

uint64_t MurmurHash64(absl::string_view text) {
  constexpr uint64_t kSeed = 0xDECAFCAFFE, kMul = 0xc6a4a7935bd1e995;
  uint64_t h = kSeed ^ (text.size() * kMul);
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    const uint64_t k = Fold(Load64(text.data() + at) * kMul) * kMul;
    h = (h ^ k) * kMul;
  }
  if (at < text.size()) h = (h ^ Tail(text.data() + at, text.size() - at)) * kMul;
  return Fold(Fold(h) * kMul);
}

uint64_t SipHash64(const std::array<uint64_t, 2>& key, absl::string_view text) {
  uint64_t a = key[0] ^ 0x736f6d6570736575, b = key[1] ^ 0x646f72616e646f6d;
  uint64_t c = key[0] ^ 0x6c7967656e657261, d = key[1] ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      a += b, c += d;
      b = std::rotl(b, 13) ^ a, d = std::rotl(d, 16) ^ c;
      a = std::rotl(a, 32) + d, c += b;
      b = std::rotl(b, 17) ^ c, d = std::rotl(d, 21) ^ a;
      c = std::rotl(c, 32);
    }
  };
  const auto take = [&](uint64_t word) {
    d ^= word;
    rounds(2);
    a ^= word;
  };
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) take(Load64(text.data() + at));
  take(Tail(text.data() + at, text.size() - at) | (static_cast<uint64_t>(text.size()) << 56));
  c ^= 0xff;
  rounds(4);
  return a ^ b ^ c ^ d;
}

}  // namespace millrace
