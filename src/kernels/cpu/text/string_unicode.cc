// SPDX-License-Identifier: Apache-2.0
// CPU kernels: strings in encodings, and their characters.
#include <atomic>
#include <limits>

#include "absl/strings/ascii.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/utf8.h"
#include "kernels/cpu/text/string_texts.h"

namespace millrace {
namespace {

bool IsCharacter(int64_t code) { return (code >= 0 && code < 0xD800) || (code > 0xDFFF && code <= 0x10FFFF); }

uint32_t ReadUnit(absl::string_view text, size_t at, size_t size, bool little) {
  uint32_t v = 0;
  for (size_t i = 0; i < size; ++i) {
    v = v << 8 | static_cast<unsigned char>(text[at + (little ? size - 1 - i : i)]);
  }
  return v;
}

template <bool kLittle>
Utf8Char FirstUtf16(absl::string_view text) {
  if (text.size() < 2) return {0, 1, false};
  const uint32_t unit = ReadUnit(text, 0, 2, kLittle);
  if (unit < 0xD800 || unit > 0xDFFF) return {unit, 2, true};
  if (unit > 0xDBFF || text.size() < 4) return {0, 2, false};
  const uint32_t low = ReadUnit(text, 2, 2, kLittle);
  if (low < 0xDC00 || low > 0xDFFF) return {0, 2, false};
  return {0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), 4, true};
}

template <bool kLittle>
Utf8Char FirstUtf32(absl::string_view text) {
  if (text.size() < 4) return {0, text.size(), false};
  const uint32_t code = ReadUnit(text, 0, 4, kLittle);
  return {code, 4, IsCharacter(code)};
}

Utf8Char FirstLatin(absl::string_view text) { return {static_cast<unsigned char>(text[0]), 1, true}; }

Utf8Char FirstAscii(absl::string_view text) {
  const auto c = static_cast<unsigned char>(text[0]);
  return {c, 1, c < 128};
}

using FirstFn = Utf8Char (*)(absl::string_view);

struct Encoding {
  const char* name;
  FirstFn first;
  // Where a mark at the beginning may tell the order of bytes: the other order, and the size of the mark.
  FirstFn first_if_little = nullptr;
  size_t mark_size = 0;
};

StatusOr<Encoding> Decoder(const std::string& encoding) {
  static constexpr Encoding kEncodings[] = {
      {"UTF8", FirstUtf8Char},
      {"UTF16", FirstUtf16<false>, FirstUtf16<true>, 2},
      {"UTF16BE", FirstUtf16<false>},
      {"UTF16LE", FirstUtf16<true>},
      {"UTF32", FirstUtf32<false>, FirstUtf32<true>, 4},
      {"UTF32BE", FirstUtf32<false>},
      {"UTF32LE", FirstUtf32<true>},
      {"USASCII", FirstAscii},
      {"ASCII", FirstAscii},
      {"ISO88591", FirstLatin},
      {"LATIN1", FirstLatin}};
  std::string name;  // as people write it
  for (const char c : encoding) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)))
      name.push_back(absl::ascii_toupper(static_cast<unsigned char>(c)));
  }
  for (const Encoding& e : kEncodings) {
    if (name == e.name) return e;
  }
  return InvalidArgument("Could not create converter for input encoding: ", encoding,
                         "; known are UTF-8, UTF-16 and UTF-32 (BE, LE), US-ASCII and ISO-8859-1");
}

void AppendUnits(uint32_t value, size_t bytes, std::string* out) {
  for (size_t i = bytes; i > 0; --i) out->push_back(static_cast<char>(value >> (8 * (i - 1))));
}
void AppendUtf16(uint32_t code, std::string* out) {
  if (code < 0x10000) return AppendUnits(code, 2, out);
  AppendUnits(0xD800 + ((code - 0x10000) >> 10), 2, out);
  AppendUnits(0xDC00 + ((code - 0x10000) & 0x3FF), 2, out);
}
void AppendUtf32(uint32_t code, std::string* out) { AppendUnits(code, 4, out); }

using AppendFn = void (*)(uint32_t, std::string*);

StatusOr<AppendFn> Encoder(const std::string& encoding) {
  if (encoding == "UTF-8") return AppendUtf8;
  if (encoding == "UTF-16-BE") return AppendUtf16;
  if (encoding == "UTF-32-BE") return AppendUtf32;
  return InvalidArgument("unknown output encoding ", encoding);
}

// What the attributes say of what is no character.
struct Faults {
  bool strict = false, ignore = false, control = false;
  bool control_is_fault = false;  // to strict readers
  uint32_t replacement = 0;

  Status Read(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(const std::string errors, init.Attr<std::string>("errors"));
    strict = errors == "strict";
    ignore = errors == "ignore";
    MR_ASSIGN_OR_RETURN(const int64_t code, init.Attr<int64_t>("replacement_char"));
    if (!IsCharacter(code)) return InvalidArgument("replacement_char out of unicode codepoint range: ", code);
    replacement = static_cast<uint32_t>(code);
    if (init.HasAttr("replace_control_characters")) {
      MR_ASSIGN_OR_RETURN(control, init.Attr<bool>("replace_control_characters"));
    }
    return absl::OkStatus();
  }

  // Calls fn(code, byte) for each character that the text counts as. The mark of an order of bytes is of the first one.
  template <typename Fn>
  Status ForEach(absl::string_view text, const Encoding& encoding, Fn&& fn) const {
    constexpr uint32_t kMark = 0xFEFF;
    FirstFn first = encoding.first;
    size_t begin = 0;
    if (encoding.mark_size > 0 && text.size() >= encoding.mark_size) {
      const bool little = ReadUnit(text, 0, encoding.mark_size, true) == kMark;
      if (little) first = encoding.first_if_little;
      if (little || ReadUnit(text, 0, encoding.mark_size, false) == kMark) begin = encoding.mark_size;
      if (begin == text.size()) fn(0xFFFF, 0);  // what ICU has for a mark alone
    }
    for (size_t next = begin; next < text.size();) {
      const Utf8Char c = first(text.substr(next));
      const bool good = c.valid && !(control && c.code < 0x20);
      const size_t at = next == begin ? 0 : next;
      if (good) {
        fn(c.code, at);
      } else if (strict && (!c.valid || control_is_fault)) {
        return InvalidArgument("Invalid formatting on input string: byte ", at, " of ", text.size());
      } else if (!ignore) {
        fn(replacement, at);
      }
      next += c.size;
    }
    return absl::OkStatus();
  }
};

class DecodeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string encoding, init.Attr<std::string>("input_encoding"));
    MR_ASSIGN_OR_RETURN(encoding_, Decoder(encoding));
    return faults_.Read(init);
  }
  Status Compute(KernelContext& ctx) override {
    std::vector<int32_t> codes;
    std::vector<int64_t> starts, splits = {0};
    for (const TString& text : ctx.input(0).flat<TString>()) {
      MR_RETURN_IF_ERROR(faults_.ForEach(text, encoding_, [&](uint32_t code, size_t at) {
        codes.push_back(static_cast<int32_t>(code));
        starts.push_back(static_cast<int64_t>(at));
      }));
      splits.push_back(static_cast<int64_t>(codes.size()));
    }
    MR_RETURN_IF_ERROR(OutputSplits(ctx, splits));
    ctx.set_output(1, Tensor::Vector<int32_t>(absl::MakeConstSpan(codes)));
    if (ctx.num_outputs() > 2) ctx.set_output(2, Tensor::Vector<int64_t>(absl::MakeConstSpan(starts)));
    return absl::OkStatus();
  }

 private:
  static Status OutputSplits(KernelContext& ctx, const std::vector<int64_t>& splits) {
    if (ctx.output_dtype(0) == DType::kInt64) {
      ctx.set_output(0, Tensor::Vector<int64_t>(absl::MakeConstSpan(splits)));
      return absl::OkStatus();
    }
    if (splits.back() > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument(splits.back(), " characters do not fit into int32 row splits");
    }
    const std::vector<int32_t> narrow(splits.begin(), splits.end());
    ctx.set_output(0, Tensor::Vector<int32_t>(absl::MakeConstSpan(narrow)));
    return absl::OkStatus();
  }

  Encoding encoding_{};
  Faults faults_;
};

class TranscodeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string from, init.Attr<std::string>("input_encoding"));
    MR_ASSIGN_OR_RETURN(encoding_, Decoder(from));
    MR_ASSIGN_OR_RETURN(const std::string to, init.Attr<std::string>("output_encoding"));
    MR_ASSIGN_OR_RETURN(append_, Encoder(to));
    faults_.control_is_fault = true;
    return faults_.Read(init);
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    const TString* const from = in.data<TString>();
    TString* const to = out->mutable_data<TString>();
    std::atomic<int64_t> bad = in.num_elements();  // the first that is refused
    constexpr double kNanosPerString = 150;
    ctx.ParallelFor(in.num_elements(), kNanosPerString, [&](int64_t begin, int64_t end) {
      std::string text;
      for (int64_t i = begin; i < end; ++i) {
        text.clear();
        if (!Transcode(from[i], &text).ok()) {
          for (int64_t first = bad; i < first && !bad.compare_exchange_weak(first, i);) {
          }
          return;
        }
        to[i] = text;
      }
    });
    std::string text;
    return bad == in.num_elements() ? absl::OkStatus() : Transcode(from[bad], &text);
  }

 private:
  Status Transcode(absl::string_view from, std::string* to) const {
    return faults_.ForEach(from, encoding_, [&](uint32_t code, size_t) { append_(code, to); });
  }

  Encoding encoding_{};
  AppendFn append_ = nullptr;
  Faults faults_;
};

class EncodeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string to, init.Attr<std::string>("output_encoding"));
    MR_ASSIGN_OR_RETURN(append_, Encoder(to));
    return faults_.Read(init);
  }
  Status Compute(KernelContext& ctx) override {
    const auto codes = ctx.input(0).flat<int32_t>();
    MR_RETURN_IF_ERROR(RequireVector("input_splits", ctx.input(1)));
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> splits, ctx.input(1).IntValues());
    if (splits.empty() || splits.front() != 0) return InvalidArgument("First value in input_splits must be zero.");
    if (splits.back() != static_cast<int64_t>(codes.size())) {
      return InvalidArgument(
          "Last value in input_splits must be the number of values, ", codes.size(), ", got ", splits.back());
    }
    const auto rows = static_cast<int64_t>(splits.size()) - 1;
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(rows)));
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t begin = splits[static_cast<size_t>(row)], end = splits[static_cast<size_t>(row) + 1];
      if (begin > end || end > static_cast<int64_t>(codes.size())) {
        return InvalidArgument("Values in input_splits must be equal or in ascending order, got ", begin, " and ", end);
      }
      std::string text;
      for (int64_t i = begin; i < end; ++i) MR_RETURN_IF_ERROR(Append(codes[static_cast<size_t>(i)], &text));
      out->mutable_data<TString>()[row] = text;
    }
    return absl::OkStatus();
  }

 private:
  Status Append(int32_t code, std::string* text) const {
    if (IsCharacter(code)) {
      append_(static_cast<uint32_t>(code), text);
    } else if (faults_.strict) {
      return InvalidArgument("Code point is out of range for Unicode, or a noncharacter: ", code);
    } else if (!faults_.ignore) {
      append_(faults_.replacement, text);
    }
    return absl::OkStatus();
  }

  AppendFn append_ = nullptr;
  Faults faults_;
};

}  // namespace

void RegisterUnicodeKernels(KernelRegistry& r) {
  r.Add<DecodeKernel>({.op = "UnicodeDecode"});
  r.Add<DecodeKernel>({.op = "UnicodeDecodeWithOffsets"});
  r.Add<TranscodeKernel>({.op = "UnicodeTranscode"});
  r.Add<EncodeKernel>({.op = "UnicodeEncode"});
}

void RegisterTextKernels(KernelRegistry& r) {
  RegisterRegexKernels(r);
  RegisterUnicodeKernels(r);
  RegisterWordKernels(r);
  RegisterCaseKernels(r);
  RegisterStringFormatKernels(r);
}

}  // namespace millrace
