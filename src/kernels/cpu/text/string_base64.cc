// SPDX-License-Identifier: Apache-2.0
// CPU kernels: web-safe base64.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "kernels/cpu/text/strings.h"

namespace millrace {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Both characters of twelve bits.
struct CharacterPair {
  char high, low;
};
constexpr std::array<CharacterPair, 4096> kPairs = [] {
  std::array<CharacterPair, 4096> pairs{};
  for (size_t k = 0; k < pairs.size(); ++k) pairs[k] = {kAlphabet[k / 64], kAlphabet[k % 64]};
  return pairs;
}();

// The digit of each character, or kNoDigit, which has a bit that no digit has.
constexpr uint32_t kNoDigit = 64;
constexpr std::array<uint8_t, 256> kDigits = [] {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (uint8_t k = 0; k < 64; ++k) digits[static_cast<unsigned char>(kAlphabet[k])] = k;
  return digits;
}();

uint32_t DigitOf(char c) { return kDigits[static_cast<unsigned char>(c)]; }
uint32_t ByteOf(char c) { return static_cast<unsigned char>(c); }

// Work by bytes: about nanoseconds a string.
double CostOf(const TString* texts, int64_t n) {
  size_t bytes = 0;
  for (int64_t i = 0; i < n; ++i) bytes += texts[i].size();
  return 30 + static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(n, 1));
}

void Encode(absl::string_view s, bool pad, std::string* text) {
  text->resize((s.size() + 2) / 3 * 4);
  char* to = text->data();
  size_t i = 0;
  for (; i + 3 <= s.size(); i += 3, to += 4) {
    const uint32_t bits = ByteOf(s[i]) << 16 | ByteOf(s[i + 1]) << 8 | ByteOf(s[i + 2]);
    std::memcpy(to, &kPairs[bits >> 12], 2);
    std::memcpy(to + 2, &kPairs[bits & 4095], 2);
  }
  const size_t rest = s.size() - i;
  if (rest == 0) return;
  const uint32_t bits = ByteOf(s[i]) << 16 | (rest == 2 ? ByteOf(s[i + 1]) << 8 : 0u);
  for (size_t k = 0; k < 4; ++k) to[k] = k <= rest ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
  if (!pad) text->resize(text->size() - (3 - rest));
}

class EncodeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(pad_, init.Attr<bool>("pad"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    const TString* from = in.data<TString>();
    TString* to = out->mutable_data<TString>();
    ctx.ParallelFor(in.num_elements(), CostOf(from, in.num_elements()), [&](int64_t begin, int64_t end) {
      std::string text;
      for (int64_t i = begin; i < end; ++i) {
        Encode(from[i], pad_, &text);
        to[i] = text;
      }
    });
    return absl::OkStatus();
  }

 private:
  bool pad_ = false;
};

// Without its padding, which only a text of whole groups may have.
absl::string_view Unpadded(absl::string_view s) {
  for (int k = 0; k < 2 && s.size() % 4 == (k == 0 ? 0 : 3) && !s.empty() && s.back() == '='; ++k) s.remove_suffix(1);
  return s;
}

// False where the text is none: WhyNot says why.
bool Decode(absl::string_view s, std::string* bytes) {
  s = Unpadded(s);
  if (s.size() % 4 == 1) return false;
  bytes->resize(s.size() / 4 * 3 + (s.size() % 4 == 0 ? 0 : s.size() % 4 - 1));
  char* to = bytes->data();
  uint32_t seen = 0;
  size_t i = 0;
  for (; i + 4 <= s.size(); i += 4, to += 3) {
    const uint32_t a = DigitOf(s[i]), b = DigitOf(s[i + 1]), c = DigitOf(s[i + 2]), d = DigitOf(s[i + 3]);
    seen |= a | b | c | d;
    const uint32_t bits = a << 18 | b << 12 | c << 6 | d;
    to[0] = static_cast<char>(bits >> 16);
    to[1] = static_cast<char>(bits >> 8);
    to[2] = static_cast<char>(bits);
  }
  uint32_t bits = 0;
  const size_t rest = s.size() - i;
  for (size_t k = 0; k < rest; ++k) {
    const uint32_t digit = DigitOf(s[i + k]);
    seen |= digit;
    bits |= digit << (18 - 6 * k);
  }
  for (size_t k = 0; k + 1 < rest; ++k) to[k] = static_cast<char>(bits >> (16 - 8 * k));
  return (seen & kNoDigit) == 0;
}

Status WhyNot(absl::string_view s) {
  s = Unpadded(s);
  if (s.size() % 4 == 1) {
    return InvalidArgument("base64 text of ", s.size(), " characters: no text has 1 modulo 4 of them");
  }
  const auto bad = std::find_if(s.begin(), s.end(), [](char c) { return DigitOf(c) == kNoDigit; });
  return InvalidArgument("'", s.substr(static_cast<size_t>(bad - s.begin()), 1), "' is no digit of web-safe base64");
}

Status DecodeBase64(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  const TString* from = in.data<TString>();
  TString* to = out->mutable_data<TString>();
  const int64_t n = in.num_elements();
  std::atomic<int64_t> bad = n;  // the first that is none
  ctx.ParallelFor(n, CostOf(from, n), [&](int64_t begin, int64_t end) {
    std::string bytes;
    for (int64_t i = begin; i < end; ++i) {
      if (!Decode(from[i], &bytes)) {
        for (int64_t first = bad; i < first && !bad.compare_exchange_weak(first, i);) {
        }
        return;
      }
      to[i] = bytes;
    }
  });
  return bad == n ? absl::OkStatus() : WhyNot(from[bad]);
}

}  // namespace

void RegisterBase64Kernels(KernelRegistry& registry) {
  registry.Add<EncodeKernel>({.op = "EncodeBase64"});
  registry.AddFn({.op = "DecodeBase64"}, DecodeBase64);
}

}  // namespace millrace
