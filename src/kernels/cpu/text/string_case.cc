// SPDX-License-Identifier: Apache-2.0
// CPU kernels: StringLower, StringUpper, StringStrip, UnicodeScript.
#include "absl/strings/ascii.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/utf8.h"
#include "kernels/cpu/text/string_texts.h"
#include "kernels/cpu/text/unicode_tables.h"

namespace millrace {
namespace {

constexpr double kNanosPerString = 100;
constexpr uint32_t kReplacement = 0xFFFD;

bool IsAscii(absl::string_view text) {
  unsigned bits = 0;
  for (const char c : text) bits |= static_cast<unsigned char>(c);
  return bits < 0x80;
}

std::vector<uint32_t> CharactersOf(absl::string_view text) {
  std::vector<uint32_t> out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = FirstUtf8Char(text.substr(at));
    out.push_back(c.valid ? c.code : kReplacement);
    at += c.size;
  }
  return out;
}

std::string Lower(absl::string_view text) {
  if (IsAscii(text)) return absl::AsciiStrToLower(text);
  constexpr uint32_t kSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2, kDottedI = 0x130;
  const std::vector<uint32_t> from = CharactersOf(text);
  std::string out;
  out.reserve(text.size());
  bool cased_before = false;  // whether the last character that is not looked past has case
  size_t next = 0;            // the first character after this one that is not looked past
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == kSigma) {  // final after a character with case and not before one (Unicode, table 3-17)
      if (next <= i) {
        for (next = i + 1; next < from.size() && IsCaseIgnorable(from[next]);) ++next;
      }
      const bool cased_after = next < from.size() && IsCased(from[next]);
      AppendUtf8(cased_before && !cased_after ? kFinalSigma : kSmallSigma, &out);
    } else if (from[i] == kDottedI) {
      absl::StrAppend(&out, "i\xcc\x87");
    } else {
      AppendUtf8(LowerCase(from[i]), &out);
    }
    if (!IsCaseIgnorable(from[i])) cased_before = IsCased(from[i]);
  }
  return out;
}

std::string Upper(absl::string_view text) {
  if (IsAscii(text)) return absl::AsciiStrToUpper(text);
  std::string out;
  out.reserve(text.size());
  for (const uint32_t c : CharactersOf(text)) {
    const UpperCaseText up = UpperCase(c);
    for (size_t i = 0; i < up.size; ++i) AppendUtf8(up.code[i], &out);
  }
  return out;
}

// out[i] = fn(in[i]) over the threads.
template <typename Fn>
Status MapStrings(KernelContext& ctx, const Fn& fn) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  ctx.ParallelFor(in.num_elements(), kNanosPerString, [&](int64_t begin, int64_t end) {
    StopNowAndThen pause;
    for (int64_t i = begin; i < end; ++i) {
      pause();
      out->mutable_data<TString>()[i] = fn(in.data<TString>()[i].view());
    }
  });
  return absl::OkStatus();
}

template <bool kUpper>
class CaseKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string encoding, init.Attr<std::string>("encoding"));
    if (!encoding.empty() && encoding != "utf-8") {
      return InvalidArgument("only utf-8 or '' (no encoding) is supported, received ", encoding);
    }
    unicode_ = !encoding.empty();
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (unicode_) return MapStrings(ctx, kUpper ? Upper : Lower);
    return MapStrings(
        ctx, [](absl::string_view s) { return kUpper ? absl::AsciiStrToUpper(s) : absl::AsciiStrToLower(s); });
  }

 private:
  bool unicode_ = false;
};

Status Strip(KernelContext& ctx) {
  return MapStrings(ctx, [](absl::string_view s) { return absl::StripAsciiWhitespace(s); });
}

Status UnicodeScript(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  ctx.ParallelFor(in.num_elements(), 20, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out->mutable_data<int32_t>()[i] = ScriptOf(in.data<int32_t>()[i]);
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterCaseKernels(KernelRegistry& r) {
  r.Add<CaseKernel<false>>({.op = "StringLower"});
  r.Add<CaseKernel<true>>({.op = "StringUpper"});
  r.AddFn({.op = "StringStrip"}, Strip);
  r.AddFn({.op = "UnicodeScript"}, UnicodeScript);
}

}  // namespace millrace
