// SPDX-License-Identifier: Apache-2.0
#include "io/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace millrace {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78u;  // reflected

// tables[k][b]: what byte b, followed by k zero bytes, adds to the register.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t r = b;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1) != 0 ? kPolynomial : 0);
    tables[0][b] = r;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t b = 0; b < 256; ++b) {
      const uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t ByTable(uint32_t r, const unsigned char* p, size_t n) {
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= r;
    r = 0;
    for (size_t k = 0; k < 8; ++k) r ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; n > 0; ++p, --n) r = (r >> 8) ^ kTables[0][(r ^ *p) & 0xff];
  return r;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ByInstruction(uint32_t r, const unsigned char* p, size_t n) {
  uint64_t wide = r;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  r = static_cast<uint32_t>(wide);
  for (; n > 0; ++p, --n) r = __builtin_ia32_crc32qi(r, *p);
  return r;
}

bool HasInstruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
  const auto* p = reinterpret_cast<const unsigned char*>(data.data());
#if defined(__x86_64__)
  if (HasInstruction()) return ~ByInstruction(~crc, p, data.size());
#endif
  return ~ByTable(~crc, p, data.size());
}

}  // namespace millrace
