// SPDX-License-Identifier: Apache-2.0
// CPU kernels: numbers spelt in strings, and numbers whose bytes strings hold.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/text/strings.h"

namespace millrace {
namespace {

class DecodeRawKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const bool little, init.Attr<bool>("little_endian"));
    swap_ = !little;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const DType type = ctx.output_dtype(0);
    const size_t unit = DTypeSize(type), bytes = input.num_elements() == 0 ? 0 : input.data<TString>()[0].size();
    if (bytes % unit != 0) {
      return InvalidArgument("Input to DecodeRaw has length ", bytes, " that is not a multiple of ", unit,
                             ", the size of ", DTypeName(type));
    }
    // One long string among many empty ones asks for more memory than all of them have.
    for (const TString& s : bytes > kShort ? input.flat<TString>() : absl::Span<const TString>()) {
      if (s.size() != bytes) return OtherSize(input, s, bytes);
    }
    MR_ASSIGN_OR_RETURN(
        const Shape shape, input.shape().WithInserted(input.rank(), static_cast<int64_t>(bytes / unit)));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    char* to = static_cast<char*>(out->mutable_raw());
    for (const TString& s : input.flat<TString>()) {
      const absl::string_view from = s.view();
      if (from.size() != bytes) return OtherSize(input, s, bytes);
      std::memcpy(to, from.data(), bytes);
      if (swap_) Swap(to, bytes, IsComplex(type) ? unit / 2 : unit);
      to += bytes;
    }
    if (type == DType::kBool) {
      for (int64_t i = 0; i < out->num_elements(); ++i) {
        char* b = static_cast<char*>(out->mutable_raw()) + i;
        *b = *b != 0 ? 1 : 0;
      }
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kShort = 64;
  static Status OtherSize(const Tensor& input, const TString& s, size_t bytes) {
    return InvalidArgument("DecodeRaw requires input strings to all be the same size, but element ",
                           &s - input.data<TString>(), " has size ", bytes, " != ", s.size());
  }
  static void Swap(char* at, size_t bytes, size_t unit) {
    for (size_t i = 0; i < bytes; i += unit) std::reverse(at + i, at + i + unit);
  }
  bool swap_ = false;
};

// The whole of a string, but spaces around it, as a number; floats may be hexadecimal.
template <typename T>
bool Parse(absl::string_view text, T* out) {
  const std::from_chars_result plain = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (plain.ec == std::errc() && plain.ptr == text.data() + text.size()) return true;
  text = absl::StripAsciiWhitespace(text);
  const absl::string_view digits = text.substr(!text.empty() && text[0] == '+' ? 1 : 0);
  const char* const stop = digits.data() + digits.size();
  const std::from_chars_result read = std::from_chars(digits.data(), stop, *out);
  if (read.ec == std::errc() && read.ptr == stop && (digits.size() == text.size() || digits[0] != '-')) return true;
  if constexpr (std::is_integral_v<T>) return false;
  const std::string s(text);  // hexadecimal, or beyond the type's range
  char* end = nullptr;
  *out = std::is_same_v<T, float> ? static_cast<T>(std::strtof(s.c_str(), &end))
                                  : static_cast<T>(std::strtod(s.c_str(), &end));
  return !s.empty() && end == s.c_str() + s.size();
}

Status StringToNumber(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
  const TString* texts = ctx.input(0).data<TString>();
  std::atomic<int64_t> bad = out->num_elements();  // the first that is no number
  VisitTypes<float, double, int32_t, int64_t>(out->dtype(), [&]<typename T>() {
    T* numbers = out->mutable_data<T>();
    ctx.ParallelFor(out->num_elements(), 60, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (Parse(texts[i].view(), numbers + i)) continue;
        int64_t first = bad.load();
        while (i < first && !bad.compare_exchange_weak(first, i)) {
        }
        return;
      }
    });
  });
  if (bad == out->num_elements()) return absl::OkStatus();
  return InvalidArgument("StringToNumberOp could not correctly convert string: ", texts[bad].view().substr(0, 80),
                         " is no ", DTypeName(out->dtype()));
}

class AsStringKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const int64_t precision, init.Attr<int64_t>("precision"));
    MR_ASSIGN_OR_RETURN(const int64_t width, init.Attr<int64_t>("width"));
    MR_ASSIGN_OR_RETURN(const bool scientific, init.Attr<bool>("scientific"));
    MR_ASSIGN_OR_RETURN(const bool shortest, init.Attr<bool>("shortest"));
    MR_ASSIGN_OR_RETURN(fill_, init.Attr<std::string>("fill"));
    if (scientific && shortest) return InvalidArgument("Cannot select both scientific and shortest notation");
    if (fill_.size() > 1) return InvalidArgument("Fill string must be one or fewer characters, got \"", fill_, "\"");
    if ((!fill_.empty() && absl::string_view("0+- ").find(fill_[0]) == absl::string_view::npos)) {
      return InvalidArgument("fill is \"", fill_, "\", want one of 0, +, - and space, or nothing");
    }
    const DType type = init.input_type(0);
    is_float_ = IsFloating(type) || IsComplex(type);
    if (!is_float_ && (scientific || shortest)) {
      return InvalidArgument("scientific and shortest format are for floating-point numbers, not ", DTypeName(type));
    }
    if (!is_float_ && precision > -1) return InvalidArgument("precision not supported for ", DTypeName(type));
    if (std::max(precision, width) > 1000) return InvalidArgument("precision and width must be at most 1000");
    precision_ = static_cast<int>(std::max<int64_t>(precision, -1));
    width_ = static_cast<int>(std::max<int64_t>(width, 0));
    format_ = scientific ? std::chars_format::scientific
              : shortest ? std::chars_format::general
                         : std::chars_format::fixed;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.dtype() == DType::kString && width_ == 0) {
      ctx.Forward(0, 0);
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    TString* to = out->mutable_data<TString>();
    if (in.dtype() == DType::kString) {
      for (int64_t i = 0; i < in.num_elements(); ++i) {
        std::string text;
        Fill("", in.data<TString>()[i].view(), /*zeros=*/false, /*is_signed=*/false, &text);
        to[i] = text;
      }
      return absl::OkStatus();
    }
    VisitTypes<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool, complex64,
               complex128>(in.dtype(), [&]<typename T>() {
      const T* from = in.data<T>();
      ctx.ParallelFor(in.num_elements(), 100, [&](int64_t begin, int64_t end) {
        std::string text;
        for (int64_t i = begin; i < end; ++i) {
          text.clear();
          Append(from[i], &text);
          to[i] = text;
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Append(T v, std::string* text) const {
    if constexpr (std::is_same_v<T, bool>) {
      text->append(v ? "true" : "false");
    } else if constexpr (kIsComplexType<T>) {
      text->push_back('(');
      AppendFloat(static_cast<double>(v.real()), text);
      text->push_back(',');
      AppendFloat(static_cast<double>(v.imag()), text);
      text->push_back(')');
    } else if constexpr (std::is_floating_point_v<T>) {
      AppendFloat(static_cast<double>(v), text);
    } else {
      char digits[24];
      const bool negative = v < T(0);
      const char* const end = std::to_chars(digits, digits + sizeof(digits), v).ptr;
      const char* const begin = digits + (negative ? 1 : 0);
      Fill(negative ? "-" : "", {begin, static_cast<size_t>(end - begin)}, true, std::is_signed_v<T>, text);
    }
  }
  void AppendFloat(double v, std::string* text) const {
    char digits[1400];  // of the largest number, with a precision of 1000
    const bool negative = std::signbit(v);
    const char* const end =
        std::to_chars(digits, digits + sizeof(digits), negative ? -v : v, format_, precision_ < 0 ? 6 : precision_).ptr;
    Fill(negative ? "-" : "", {digits, static_cast<size_t>(end - digits)}, std::isfinite(v), true, text);
  }
  void Fill(absl::string_view sign, absl::string_view digits, bool zeros, bool is_signed, std::string* text) const {
    if (is_signed && sign.empty() && (fill_ == "+" || fill_ == " ")) sign = fill_;
    const size_t have = sign.size() + digits.size(), width = static_cast<size_t>(width_);
    const size_t more = width > have ? width - have : 0;
    const bool zeros_between = fill_ == "0" && zeros;
    if (fill_ != "-" && !zeros_between) text->append(more, ' ');
    absl::StrAppend(text, sign);
    if (zeros_between) text->append(more, '0');
    absl::StrAppend(text, digits);
    if (fill_ == "-") text->append(more, ' ');
  }

  int precision_ = -1, width_ = 0;
  std::chars_format format_ = std::chars_format::fixed;
  bool is_float_ = false;
  std::string fill_;
};

}  // namespace

void RegisterStringNumberKernels(KernelRegistry& registry) {
  registry.Add<DecodeRawKernel>({.op = "DecodeRaw"});
  registry.Add<AsStringKernel>({.op = "AsString"});
  registry.AddFn({.op = "StringToNumber"}, StringToNumber);
}

}  // namespace millrace
