// SPDX-License-Identifier: Apache-2.0
#include "op/attr_text.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace millrace {
namespace {

StatusOr<int64_t> ParseInt(absl::string_view text) {
  int64_t v;
  if (!absl::SimpleAtoi(text, &v)) return InvalidArgument("'", text, "' is not an integer");
  return v;
}
StatusOr<double> ParseDouble(absl::string_view text) {
  double v;
  if (!absl::SimpleAtod(text, &v)) return InvalidArgument("'", text, "' is not a number");
  return v;
}
StatusOr<float> ParseFloat(absl::string_view text) {
  float v;
  if (!absl::SimpleAtof(text, &v)) return InvalidArgument("'", text, "' is not a number");
  return v;
}
StatusOr<bool> ParseBool(absl::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return InvalidArgument("'", text, "' is not a bool");
}
StatusOr<DType> ParseType(absl::string_view text) {
  if (auto t = DTypeFromName(text); t && !IsRef(*t)) return *t;
  return InvalidArgument("'", text, "' is not a type");
}
StatusOr<FuncAttr> ParseFunc(absl::string_view text) {
  MR_ASSIGN_OR_RETURN(std::string name, ParseString(text));
  return FuncAttr{name, {}};
}
StatusOr<Tensor> ParseTensor(absl::string_view text) {
  absl::ConsumePrefix(&text, "tensor(");
  absl::ConsumeSuffix(&text, ")");
  const size_t open = text.find('['), colon = text.find(':');
  if (open == text.npos || colon == text.npos || open > colon) {
    return InvalidArgument("'", text, "' is not a tensor literal");
  }
  MR_ASSIGN_OR_RETURN(DType dtype, ParseType(text.substr(0, open)));
  MR_ASSIGN_OR_RETURN(PartialShape partial, ParseShapeText(text.substr(open, colon - open)));
  MR_ASSIGN_OR_RETURN(::millrace::Shape shape, partial.ToShape());
  return ParseTensorText(dtype, shape, SplitOutside(text.substr(colon + 1), ','));
}

template <typename T, typename Parse>
StatusOr<AttrValue> One(absl::string_view text, bool is_list, Parse parse) {
  if (!is_list) {
    MR_ASSIGN_OR_RETURN(T v, parse(text));
    return AttrValue(std::move(v));
  }
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) {
    return InvalidArgument("a list is written [a,b], got '", text, "'");
  }
  std::vector<T> list;
  for (absl::string_view piece : SplitOutside(text, ',')) {
    MR_ASSIGN_OR_RETURN(T v, parse(piece));
    list.push_back(std::move(v));
  }
  return AttrValue(std::move(list));
}

template <typename T>
Status FillInts(Tensor* t, const std::vector<absl::string_view>& values) {
  T* out = t->mutable_data<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (!absl::SimpleAtoi(values[i], &out[i])) return InvalidArgument("'", values[i], "' is not a uint64");
    } else {
      MR_ASSIGN_OR_RETURN(int64_t v, ParseInt(values[i]));
      if (v < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
          v > static_cast<int64_t>(std::numeric_limits<T>::max())) {
        return InvalidArgument(v, " does not fit in ", DTypeName(t->dtype()));
      }
      out[i] = static_cast<T>(v);
    }
  }
  return absl::OkStatus();
}
template <typename T>
Status FillFloats(Tensor* t, const std::vector<absl::string_view>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    MR_ASSIGN_OR_RETURN(double v, ParseDouble(values[i]));
    if constexpr (std::is_same_v<T, double>) {
      t->mutable_data<T>()[i] = v;
    } else {
      t->mutable_data<T>()[i] = static_cast<T>(static_cast<float>(v));
    }
  }
  return absl::OkStatus();
}
// "3", "1+2i", "-1-2i", "2i".
StatusOr<complex128> ParseComplex(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "i")) {
    MR_ASSIGN_OR_RETURN(double re, ParseDouble(text));
    return complex128(re, 0);
  }
  size_t split = text.npos;
  for (size_t i = 1; i < text.size(); ++i) {
    if ((text[i] == '+' || text[i] == '-') && text[i - 1] != 'e') split = i;
  }
  double re = 0;
  if (split != text.npos) {
    MR_ASSIGN_OR_RETURN(re, ParseDouble(text.substr(0, split)));
    text.remove_prefix(split);
  }
  absl::ConsumePrefix(&text, "+");
  MR_ASSIGN_OR_RETURN(double im, ParseDouble(text));
  return complex128(re, im);
}

}  // namespace

size_t FindOutside(absl::string_view text, char c, size_t from) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = from; i < text.size(); ++i) {
    const char x = text[i];
    if (quoted) {
      if (x == '\\') {
        ++i;
      } else if (x == '"') {
        quoted = false;
      }
    } else if (x == c && depth == 0) {
      return i;
    } else if (x == '"') {
      quoted = true;
    } else if (x == '(' || x == '[' || x == '{') {
      ++depth;
    } else if (x == ')' || x == ']' || x == '}') {
      --depth;
    }
  }
  return absl::string_view::npos;
}

std::vector<absl::string_view> SplitOutside(absl::string_view text, char separator) {
  std::vector<absl::string_view> out;
  if (absl::StripAsciiWhitespace(text).empty()) return out;
  while (true) {
    const size_t at = FindOutside(text, separator);
    out.push_back(absl::StripAsciiWhitespace(text.substr(0, at)));
    if (at == text.npos) return out;
    text.remove_prefix(at + 1);
  }
}

StatusOr<std::string> ParseString(absl::string_view text) {
  if (!absl::StartsWith(text, "\"")) return std::string(text);
  if (text.size() < 2 || !absl::EndsWith(text, "\"")) return InvalidArgument("unterminated string ", text);
  std::string out, error;
  if (!absl::CUnescape(text.substr(1, text.size() - 2), &out, &error)) {
    return InvalidArgument("bad string ", text, ": ", error);
  }
  return out;
}

StatusOr<PartialShape> ParseShapeText(absl::string_view text) {
  absl::ConsumePrefix(&text, "shape");
  text = absl::StripAsciiWhitespace(text);
  if (text == "?") return PartialShape();
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) {
    return InvalidArgument("'", text, "' is not a shape");
  }
  std::vector<int64_t> dims;
  for (absl::string_view piece : SplitOutside(text, ',')) {
    if (piece == "?") {
      dims.push_back(-1);
    } else {
      MR_ASSIGN_OR_RETURN(dims.emplace_back(), ParseInt(piece));
    }
  }
  return PartialShape::Make(dims);
}

StatusOr<Tensor> ParseTensorText(DType dtype, const Shape& shape, const std::vector<absl::string_view>& values) {
  if (shape.num_elements() != static_cast<int64_t>(values.size())) {
    return InvalidArgument(
        "a tensor of shape ", shape.ToString(), " needs ", shape.num_elements(), " values, got ", values.size());
  }
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  Status s;
  switch (dtype) {
    case DType::kFloat: s = FillFloats<float>(&t, values); break;
    case DType::kDouble: s = FillFloats<double>(&t, values); break;
    case DType::kHalf: s = FillFloats<Half>(&t, values); break;
    case DType::kBFloat16: s = FillFloats<BFloat16>(&t, values); break;
    case DType::kInt32:
    case DType::kQInt32: s = FillInts<int32_t>(&t, values); break;
    case DType::kInt64: s = FillInts<int64_t>(&t, values); break;
    case DType::kInt16:
    case DType::kQInt16: s = FillInts<int16_t>(&t, values); break;
    case DType::kInt8:
    case DType::kQInt8: s = FillInts<int8_t>(&t, values); break;
    case DType::kUInt8:
    case DType::kQUInt8: s = FillInts<uint8_t>(&t, values); break;
    case DType::kUInt16:
    case DType::kQUInt16: s = FillInts<uint16_t>(&t, values); break;
    case DType::kUInt32: s = FillInts<uint32_t>(&t, values); break;
    case DType::kUInt64: s = FillInts<uint64_t>(&t, values); break;
    case DType::kBool:
      for (size_t i = 0; i < values.size(); ++i) {
        MR_ASSIGN_OR_RETURN(t.mutable_data<bool>()[i], ParseBool(values[i]));
      }
      break;
    case DType::kString:
      for (size_t i = 0; i < values.size(); ++i) {
        MR_ASSIGN_OR_RETURN(std::string v, ParseString(values[i]));
        t.mutable_data<TString>()[i] = absl::string_view(v);
      }
      break;
    case DType::kComplex64:
    case DType::kComplex128:
      for (size_t i = 0; i < values.size(); ++i) {
        MR_ASSIGN_OR_RETURN(complex128 v, ParseComplex(values[i]));
        if (dtype == DType::kComplex64) {
          t.mutable_data<complex64>()[i] = complex64(static_cast<float>(v.real()), static_cast<float>(v.imag()));
        } else {
          t.mutable_data<complex128>()[i] = v;
        }
      }
      break;
    default: s = InvalidArgument("no literals of type ", DTypeName(dtype));
  }
  MR_RETURN_IF_ERROR(s);
  return t;
}

StatusOr<AttrValue> ParseAttrText(AttrKind kind, bool is_list, absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  switch (kind) {
    case AttrKind::kString: return One<std::string>(text, is_list, ParseString);
    case AttrKind::kInt: return One<int64_t>(text, is_list, ParseInt);
    case AttrKind::kFloat: return One<float>(text, is_list, ParseFloat);
    case AttrKind::kBool: return One<bool>(text, is_list, ParseBool);
    case AttrKind::kType: return One<DType>(text, is_list, ParseType);
    case AttrKind::kShape: return One<PartialShape>(text, is_list, ParseShapeText);
    case AttrKind::kTensor: return One<Tensor>(text, is_list, ParseTensor);
    case AttrKind::kFunc: return One<FuncAttr>(text, is_list, ParseFunc);
  }
  return Internal("bad attribute kind");
}

}  // namespace millrace
