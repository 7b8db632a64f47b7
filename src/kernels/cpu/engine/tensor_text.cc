// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/tensor_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/stop_scope.h"

namespace millrace {
namespace {

// With 6 digits (15 of a double) where these are enough to read the number back, else with all that it may need.
template <typename T>
void AppendNumber(T v, std::string* out) {
  if (std::isnan(v)) return absl::StrAppend(out, "nan");
  char text[40];
  for (const int digits : {std::numeric_limits<T>::digits10, std::numeric_limits<T>::max_digits10}) {
    const char* end = std::to_chars(text, std::end(text), v, std::chars_format::general, digits).ptr;
    T read = 0;
    std::from_chars(text, end, read);
    if (digits == std::numeric_limits<T>::max_digits10 || read == v) {
      return absl::StrAppend(out, absl::string_view(text, static_cast<size_t>(end - text)));
    }
  }
}

template <typename T>
void AppendAs(const Tensor& t, int64_t i, std::string* out) {
  if constexpr (std::is_floating_point_v<T>) {
    AppendNumber(t.data<T>()[i], out);
  } else {
    absl::StrAppend(out, t.data<T>()[i]);
  }
}

void AppendElement(const Tensor& t, int64_t i, std::string* out) {
  switch (t.dtype()) {
    case DType::kFloat: return AppendAs<float>(t, i, out);
    case DType::kDouble: return AppendAs<double>(t, i, out);
    case DType::kInt32:
    case DType::kQInt32: return AppendAs<int32_t>(t, i, out);
    case DType::kInt64: return AppendAs<int64_t>(t, i, out);
    case DType::kUInt32: return AppendAs<uint32_t>(t, i, out);
    case DType::kUInt64: return AppendAs<uint64_t>(t, i, out);
    case DType::kInt16:
    case DType::kQInt16: return AppendAs<int16_t>(t, i, out);
    case DType::kUInt16:
    case DType::kQUInt16: return AppendAs<uint16_t>(t, i, out);
    case DType::kInt8:
    case DType::kQInt8: return absl::StrAppend(out, int{t.data<int8_t>()[i]});
    case DType::kUInt8:
    case DType::kQUInt8: return absl::StrAppend(out, int{t.data<uint8_t>()[i]});
    case DType::kBool: return absl::StrAppend(out, t.data<bool>()[i] ? 1 : 0);
    case DType::kHalf: return AppendNumber(static_cast<float>(t.data<Half>()[i]), out);
    case DType::kBFloat16: return AppendNumber(static_cast<float>(t.data<BFloat16>()[i]), out);
    case DType::kString: return absl::StrAppend(out, absl::CEscape(t.data<TString>()[i].view()));
    case DType::kComplex64: {
      const complex64 v = t.data<complex64>()[i];
      return absl::StrAppend(out, "(", v.real(), ",", v.imag(), ")");
    }
    case DType::kComplex128: {
      const complex128 v = t.data<complex128>()[i];
      return absl::StrAppend(out, "(", v.real(), ",", v.imag(), ")");
    }
    default: return absl::StrAppend(out, "?");
  }
}

// Every dimension but the last has brackets around each of its parts, as far as the limit shows them.
void AppendDimension(const Tensor& t, int d, int64_t limit, int64_t* next, std::string* out) {
  if (*next >= limit) return;
  if (d + 1 >= t.rank()) {
    const int64_t n = t.rank() == 0 ? 1 : t.dim(d);
    for (int64_t i = 0; i < n; ++i) {
      if (*next >= limit) {
        if (d > 0) *out += "...";
        return;
      }
      if (i > 0) *out += ' ';
      AppendElement(t, (*next)++, out);
    }
    return;
  }
  for (int64_t i = 0; i < t.dim(d) && *next < limit; ++i) {
    *out += '[';
    AppendDimension(t, d + 1, limit, next, out);
    *out += ']';
  }
}

// Between two parts of dimension d.
void AppendSpacing(int d, int rank, std::string* out) {
  if (d == rank - 1) {
    *out += ' ';
    return;
  }
  out->append(static_cast<size_t>(rank - 1 - d), '\n');
  out->append(static_cast<size_t>(d + 1), ' ');
}

struct Format {
  const Tensor& t;
  int64_t ends;
  std::string* out;
  StopNowAndThen pause;

  // Dimension d of the part that begins with element `first` and has `size` elements.
  void Append(int d, int64_t first, int64_t size) {
    if (d == t.rank()) {
      pause();
      if (t.dtype() != DType::kString) return AppendElement(t, first, out);
      return absl::StrAppend(out, "\"", absl::Utf8SafeCEscape(t.data<TString>()[first].view()), "\"");
    }
    const int64_t n = t.dim(d), step = n == 0 ? 0 : size / n;
    *out += '[';
    for (int64_t i = 0; i < std::min(n, ends); ++i) {
      if (i > 0) AppendSpacing(d, t.rank(), out);
      Append(d + 1, first + i * step, step);
    }
    if (n > ends && n - ends > ends) {
      AppendSpacing(d, t.rank(), out);
      *out += "...";
    }
    for (int64_t i = std::max(ends, n - ends); i < n; ++i) {
      AppendSpacing(d, t.rank(), out);
      Append(d + 1, first + i * step, step);
    }
    *out += ']';
  }
};

}  // namespace

std::string SummarizeTensor(const Tensor& t, int64_t limit) {
  if (t.num_elements() == 0) return "";
  if (limit < 0) limit = t.num_elements();
  std::string out;
  int64_t next = 0;
  AppendDimension(t, 0, limit, &next, &out);
  if (t.num_elements() > limit) out += "...";
  return out;
}

std::string FormatTensor(const Tensor& t, int64_t ends) {
  std::string out;
  const int64_t n = t.num_elements();
  if (ends < 0 || ends > n) ends = n;
  if (t.rank() == 0 && ends == 0) return "...";
  Format{t, ends, &out, {}}.Append(0, 0, n);
  return out;
}

}  // namespace millrace
