// SPDX-License-Identifier: Apache-2.0
#include "op/example.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "op/attr_text.h"

namespace millrace {
namespace {

constexpr int64_t kMaxElements = 1 << 20;

// splitmix64: the same numbers on every machine.
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t Bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }
  double Normal() {
    const double u = 1 - Uniform(), v = Uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
  }
  // One value of the generator character, as a float type sees it.
  double Real(char kind, int64_t i) {
    switch (kind) {
      case '~': return Normal();
      case '+': return 0.5 + Uniform();
      case '/': return -0.9 + 1.8 * Uniform();
      default: return static_cast<double>(i);
    }
  }
  // For integers: '~' -5..5 (0..5 when unsigned), '+' 1..5, '/' -1..1.
  int64_t Integer(char kind, int64_t i, bool is_signed) {
    const auto below = [this](uint64_t n) { return static_cast<int64_t>(Bits() % n); };
    switch (kind) {
      case '~': return is_signed ? below(11) - 5 : below(6);
      case '+': return 1 + below(5);
      case '/': return is_signed ? below(3) - 1 : below(2);
      default: return i;
    }
  }

 private:
  uint64_t state_;
};

template <typename T>
void FillReal(Tensor* t, char kind, Generator* g) {
  for (int64_t i = 0; i < t->num_elements(); ++i) {
    const double v = g->Real(kind, i);
    if constexpr (std::is_same_v<T, double>) {
      t->mutable_data<T>()[i] = v;
    } else {
      t->mutable_data<T>()[i] = static_cast<T>(static_cast<float>(v));
    }
  }
}
template <typename T>
void FillInteger(Tensor* t, char kind, Generator* g) {
  for (int64_t i = 0; i < t->num_elements(); ++i) {
    t->mutable_data<T>()[i] = static_cast<T>(g->Integer(kind, i, std::numeric_limits<T>::is_signed));
  }
}
template <typename T>
void FillComplex(Tensor* t, char kind, Generator* g) {
  using R = typename T::value_type;
  for (int64_t i = 0; i < t->num_elements(); ++i) {
    const double re = g->Real(kind, i);
    const double im = kind == '#' ? 0 : g->Real(kind, i);
    t->mutable_data<T>()[i] = T(static_cast<R>(re), static_cast<R>(im));
  }
}

Status Generate(Tensor* t, char kind, Generator* g) {
  switch (t->dtype()) {
    case DType::kFloat: FillReal<float>(t, kind, g); break;
    case DType::kDouble: FillReal<double>(t, kind, g); break;
    case DType::kHalf: FillReal<Half>(t, kind, g); break;
    case DType::kBFloat16: FillReal<BFloat16>(t, kind, g); break;
    case DType::kInt32:
    case DType::kQInt32: FillInteger<int32_t>(t, kind, g); break;
    case DType::kInt64: FillInteger<int64_t>(t, kind, g); break;
    case DType::kInt16:
    case DType::kQInt16: FillInteger<int16_t>(t, kind, g); break;
    case DType::kInt8:
    case DType::kQInt8: FillInteger<int8_t>(t, kind, g); break;
    case DType::kUInt8:
    case DType::kQUInt8: FillInteger<uint8_t>(t, kind, g); break;
    case DType::kUInt16:
    case DType::kQUInt16: FillInteger<uint16_t>(t, kind, g); break;
    case DType::kUInt32: FillInteger<uint32_t>(t, kind, g); break;
    case DType::kUInt64: FillInteger<uint64_t>(t, kind, g); break;
    case DType::kComplex64: FillComplex<complex64>(t, kind, g); break;
    case DType::kComplex128: FillComplex<complex128>(t, kind, g); break;
    case DType::kBool:
      for (int64_t i = 0; i < t->num_elements(); ++i) {
        t->mutable_data<bool>()[i] = kind == '#' ? i % 2 != 0 : (g->Bits() >> 63) != 0;
      }
      break;
    case DType::kString:
      for (int64_t i = 0; i < t->num_elements(); ++i)
        t->mutable_data<TString>()[i] = absl::string_view(absl::StrCat(i));
      break;
    default: return InvalidArgument("no examples of type ", DTypeName(t->dtype()));
  }
  return absl::OkStatus();
}

// Values between braces: separated by spaces or commas, strings quoted.
std::vector<absl::string_view> SplitValues(absl::string_view text) {
  std::vector<absl::string_view> out;
  size_t i = 0;
  const auto is_gap = [](char c) { return absl::ascii_isspace(c) || c == ','; };
  while (i < text.size()) {
    if (is_gap(text[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    bool quoted = false;
    for (; i < text.size() && (quoted || !is_gap(text[i])); ++i) {
      if (quoted && text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        quoted = !quoted;
      }
    }
    i = std::min(i, text.size());
    out.push_back(text.substr(begin, i - begin));
  }
  return out;
}

StatusOr<Tensor> ParseItem(absl::string_view item, Generator* generator) {
  const size_t open = item.find('['), close = item.find(']');
  if (open == item.npos || close == item.npos || close < open) {
    return InvalidArgument("example item '", item, "' is not dtype[dims]values");
  }
  const auto dtype = DTypeFromName(absl::StripAsciiWhitespace(item.substr(0, open)));
  if (!dtype) return InvalidArgument("'", item.substr(0, open), "' is not a type");
  MR_ASSIGN_OR_RETURN(PartialShape partial, ParseShapeText(item.substr(open, close - open + 1)));
  MR_ASSIGN_OR_RETURN(Shape shape, partial.ToShape());
  if (shape.num_elements() > kMaxElements) return InvalidArgument("example of ", shape.num_elements(), " elements");
  absl::string_view values = absl::StripAsciiWhitespace(item.substr(close + 1));
  if (absl::ConsumePrefix(&values, "{")) {
    if (!absl::ConsumeSuffix(&values, "}")) return InvalidArgument("missing '}' in '", item, "'");
    return ParseTensorText(*dtype, shape, SplitValues(values));
  }
  if (values.size() != 1 || absl::string_view("~+/#").find(values[0]) == absl::string_view::npos) {
    return InvalidArgument("example item '", item, "' needs {values} or one of ~ + / #");
  }
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(*dtype, shape));
  MR_RETURN_IF_ERROR(Generate(&t, values[0], generator));
  return t;
}

Status ParseAttrs(const OpDef& op, absl::string_view text, AttrMap* attrs) {
  for (absl::string_view piece : SplitOutside(text, ';')) {
    if (piece.empty()) continue;
    const size_t eq = piece.find('=');
    if (eq == piece.npos) return InvalidArgument("attribute '", piece, "' has no value");
    const absl::string_view name = absl::StripAsciiWhitespace(piece.substr(0, eq));
    const AttrDef* def = op.FindAttr(name);
    if (def == nullptr) return InvalidArgument("op ", op.name, " has no attribute '", name, "'");
    MR_ASSIGN_OR_RETURN(AttrValue v, ParseAttrText(def->kind, def->is_list, piece.substr(eq + 1)));
    attrs->insert_or_assign(std::string(name), std::move(v));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<OpExample> ParseExample(const OpDef& op, absl::string_view text, uint64_t seed) {
  OpExample example;
  Generator generator(seed);
  const size_t bar = FindOutside(text, '|');
  for (absl::string_view item : SplitOutside(text.substr(0, bar), ',')) {
    example.differentiate.push_back(!absl::ConsumePrefix(&item, "!"));
    MR_ASSIGN_OR_RETURN(example.inputs.emplace_back(), ParseItem(item, &generator));
  }
  if (bar != text.npos) MR_RETURN_IF_ERROR(ParseAttrs(op, text.substr(bar + 1), &example.attrs));
  return example;
}

}  // namespace millrace
