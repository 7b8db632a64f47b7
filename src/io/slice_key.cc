// SPDX-License-Identifier: Apache-2.0
// Keys whose order as bytes is the order of what they encode: first 0, then the name, the rank, and per dimension start
// and length (0 and -1 for all of it).
#include "io/tensor_slice.h"

namespace millrace {
namespace {

// A byte count, then that many bytes, the most significant first.
void AppendNumber(uint64_t v, std::string* out) {
  std::string digits;
  for (; v > 0; v >>= 8) digits.insert(digits.begin(), static_cast<char>(v & 0xff));
  out->push_back(static_cast<char>(digits.size()));
  *out += digits;
}

void AppendString(absl::string_view s, std::string* out) {
  for (char c : s) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->append("\0\1", 2);
}

// n bytes hold 7n - 1 bits and the sign; the first bits, as many as bytes, say n (ones, inverted for negative numbers).
void AppendSigned(int64_t v, std::string* out) {
  const uint64_t magnitude = static_cast<uint64_t>(v < 0 ? ~v : v);
  int n = 1;
  while (n < 10 && (7 * n - 1 < 64) && (magnitude >> (7 * n - 1)) != 0) ++n;
  unsigned char bytes[10];
  for (int i = 0; i < n; ++i) {  // big-endian, sign-extended
    const int shift = 8 * (n - 1 - i);
    bytes[i] = static_cast<unsigned char>((shift >= 64 ? v >> 63 : v >> shift) & 0xff);
  }
  // The header is n ones followed by a zero, from the top bit on; it is xored in.
  for (int bit = 0; bit < n; ++bit) {
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (0x80 >> (bit % 8)));
  }
  out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
}

}  // namespace

std::string SliceKey(absl::string_view name, const TensorSlice& slice) {
  std::string key;
  AppendNumber(0, &key);
  AppendString(name, &key);
  AppendNumber(static_cast<uint64_t>(slice.rank()), &key);
  for (int d = 0; d < slice.rank(); ++d) {
    AppendSigned(slice.extent(d).length == TensorSlice::kAll ? 0 : slice.extent(d).start, &key);
    AppendSigned(slice.extent(d).length, &key);
  }
  return key;
}

}  // namespace millrace
