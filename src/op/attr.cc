// SPDX-License-Identifier: Apache-2.0
#include "op/attr.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

// Function attributes nest; deeper than this nobody means it.
constexpr int kMaxFuncDepth = 32;

bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.SharesBufferWith(b) && a.raw() == b.raw()) return true;
  if (a.dtype() == DType::kString) {
    const auto x = a.flat<TString>();
    const auto y = b.flat<TString>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (!(x[i] == y[i])) return false;
    }
    return true;
  }
  if (!IsPlain(a.dtype())) return false;
  return a.TotalBytes() == 0 || std::memcmp(a.raw(), b.raw(), a.TotalBytes()) == 0;
}

bool SameMap(const AttrMap& a, const AttrMap& b) {
  if (a.size() != b.size()) return false;
  for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) {
    if (i->first != j->first || !i->second.Equals(j->second)) return false;
  }
  return true;
}

template <typename T>
bool Same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, EmptyListAttr>) {
    return true;
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return SameTensor(a, b);
  } else if constexpr (std::is_same_v<T, FuncAttr>) {
    return a.name == b.name && SameMap(a.attrs, b.attrs);
  } else if constexpr (std::is_same_v<T, PlaceholderAttr>) {
    return a.name == b.name;
  } else if constexpr (std::is_same_v<T, float>) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
  } else {
    return a == b;
  }
}
template <typename T>
bool Same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const T x = a[i], y = b[i];
    if (!Same(x, y)) return false;
  }
  return true;
}

std::string Text(const EmptyListAttr&) { return "[]"; }
std::string Text(const std::string& s) {
  return absl::StrCat("\"", absl::CEscape(absl::string_view(s).substr(0, 64)), s.size() > 64 ? "..." : "", "\"");
}
std::string Text(int64_t i) { return absl::StrCat(i); }
std::string Text(float f) { return absl::StrCat(f); }
std::string Text(bool b) { return b ? "true" : "false"; }
std::string Text(DType t) { return DTypeName(t); }
std::string Text(const PartialShape& s) { return s.ToString(); }
std::string Text(const Tensor& t) { return t.DebugString(); }
std::string Text(const FuncAttr& f) { return f.name; }
std::string Text(const PlaceholderAttr& p) { return absl::StrCat("$", p.name); }
template <typename T>
std::string Text(const std::vector<T>& list) {
  constexpr size_t kShown = 10;
  std::string out = "[";
  for (size_t i = 0; i < list.size() && i < kShown; ++i) {
    const T element = list[i];
    absl::StrAppend(&out, i ? ", " : "", Text(element));
  }
  return absl::StrCat(out, list.size() > kShown ? ", ...]" : "]");
}

template <typename T>
constexpr int KindIndex() {
  if constexpr (std::is_same_v<T, std::string>) return static_cast<int>(AttrKind::kString);
  if constexpr (std::is_same_v<T, int64_t>) return static_cast<int>(AttrKind::kInt);
  if constexpr (std::is_same_v<T, float>) return static_cast<int>(AttrKind::kFloat);
  if constexpr (std::is_same_v<T, bool>) return static_cast<int>(AttrKind::kBool);
  if constexpr (std::is_same_v<T, DType>) return static_cast<int>(AttrKind::kType);
  if constexpr (std::is_same_v<T, PartialShape>) return static_cast<int>(AttrKind::kShape);
  if constexpr (std::is_same_v<T, Tensor>) return static_cast<int>(AttrKind::kTensor);
  if constexpr (std::is_same_v<T, FuncAttr>) return static_cast<int>(AttrKind::kFunc);
  return -1;
}

struct KindOf {
  int kind = -1;
  bool list = false;
};
KindOf KindOfValue(const AttrValue& v) {
  return std::visit(
      []<typename T>(const T&) -> KindOf {
        if constexpr (internal::IsVector<T>::value) {
          return {KindIndex<typename T::value_type>(), true};
        } else {
          return {KindIndex<T>(), false};
        }
      },
      v.storage());
}

std::string DescribeKind(const AttrValue& v) {
  if (v.get<EmptyListAttr>()) return "list()";
  if (v.get<PlaceholderAttr>()) return "placeholder";
  const KindOf k = KindOfValue(v);
  const char* name = AttrKindName(static_cast<AttrKind>(k.kind));
  return k.list ? absl::StrCat("list(", name, ")") : std::string(name);
}

StatusOr<DType> TypeFromNumber(int32_t number) {
  if (auto t = DTypeFromNumber(number)) return *t;
  return InvalidArgument("invalid data type number ", number,
                         number > kRefOffset ? " (reference types are not allowed in attributes)" : "");
}

StatusOr<AttrValue> FromProto(const wire::AttrValue& p, int depth);

StatusOr<FuncAttr> FuncFromProto(const wire::NameAttrList& p, int depth) {
  if (depth > kMaxFuncDepth) return InvalidArgument("function attributes are nested deeper than ", kMaxFuncDepth);
  FuncAttr f;
  f.name = p.name;
  for (const auto& [name, value] : p.attr) {
    MR_ASSIGN_OR_RETURN(AttrValue v, FromProto(value, depth + 1));
    f.attrs.emplace(name, std::move(v));
  }
  return f;
}

template <typename Out, typename In, typename F>
StatusOr<AttrValue> ListFromProto(const std::vector<In>& in, F&& convert) {
  std::vector<Out> out;
  out.reserve(in.size());
  for (const In& e : in) {
    MR_ASSIGN_OR_RETURN(Out v, convert(e));
    out.push_back(std::move(v));
  }
  return AttrValue(std::move(out));
}

StatusOr<AttrValue> ListFromProto(const wire::AttrListValue& l, int depth) {
  const int kinds = !l.s.empty() + !l.i.empty() + !l.f.empty() + !l.b.empty() + !l.type.empty() + !l.shape.empty() +
                    !l.tensor.empty() + !l.func.empty();
  if (kinds == 0) return AttrValue(EmptyListAttr());
  if (kinds > 1) return InvalidArgument("list attribute holds values of ", kinds, " kinds");
  if (!l.s.empty()) return AttrValue(l.s);
  if (!l.i.empty()) return AttrValue(l.i);
  if (!l.f.empty()) return AttrValue(l.f);
  if (!l.b.empty()) return AttrValue(l.b);
  if (!l.type.empty()) return ListFromProto<DType>(l.type, TypeFromNumber);
  if (!l.shape.empty()) return ListFromProto<PartialShape>(l.shape, ShapeFromProto);
  if (!l.tensor.empty()) return ListFromProto<Tensor>(l.tensor, TensorFromProto);
  return ListFromProto<FuncAttr>(l.func, [depth](const wire::NameAttrList& f) { return FuncFromProto(f, depth); });
}

StatusOr<AttrValue> FromProto(const wire::AttrValue& p, int depth) {
  using Kind = wire::AttrValue::Kind;
  switch (p.kind) {
    case Kind::kNone: break;
    case Kind::kS: return AttrValue(p.s);
    case Kind::kI: return AttrValue(p.i);
    case Kind::kF: return AttrValue(p.f);
    case Kind::kB: return AttrValue(p.b);
    case Kind::kType: {
      MR_ASSIGN_OR_RETURN(DType t, TypeFromNumber(p.type));
      return AttrValue(t);
    }
    case Kind::kShape: {
      MR_ASSIGN_OR_RETURN(PartialShape s, ShapeFromProto(p.shape ? *p.shape : wire::TensorShapeProto()));
      return AttrValue(std::move(s));
    }
    case Kind::kTensor: {
      MR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(p.tensor ? *p.tensor : wire::TensorProto()));
      return AttrValue(std::move(t));
    }
    case Kind::kPlaceholder: return AttrValue(PlaceholderAttr{p.placeholder});
    case Kind::kFunc: {
      MR_ASSIGN_OR_RETURN(FuncAttr f, FuncFromProto(p.func ? *p.func : wire::NameAttrList(), depth));
      return AttrValue(std::move(f));
    }
    case Kind::kList: return ListFromProto(p.list ? *p.list : wire::AttrListValue(), depth);
  }
  return InvalidArgument("attribute has no value");
}

StatusOr<wire::NameAttrList> FuncToProto(const FuncAttr& f) {
  wire::NameAttrList p;
  p.name = f.name;
  for (const auto& [name, value] : f.attrs) {
    MR_ASSIGN_OR_RETURN(p.attr[name], AttrToProto(value));
  }
  return p;
}

struct ToProto {
  wire::AttrValue& p;
  using Kind = wire::AttrValue::Kind;
  Status Set(Kind k) {
    p.kind = k;
    return absl::OkStatus();
  }
  wire::AttrListValue& List() {
    p.kind = Kind::kList;
    return p.list.Ensure();
  }

  Status operator()(const EmptyListAttr&) { return List(), absl::OkStatus(); }
  Status operator()(const std::string& v) { return p.s = v, Set(Kind::kS); }
  Status operator()(int64_t v) { return p.i = v, Set(Kind::kI); }
  Status operator()(float v) { return p.f = v, Set(Kind::kF); }
  Status operator()(bool v) { return p.b = v, Set(Kind::kB); }
  Status operator()(DType v) { return p.type = static_cast<int32_t>(v), Set(Kind::kType); }
  Status operator()(const PartialShape& v) { return p.shape.Ensure() = ShapeToProto(v), Set(Kind::kShape); }
  Status operator()(const Tensor& v) {
    MR_ASSIGN_OR_RETURN(p.tensor.Ensure(), TensorToAttrProto(v));
    return Set(Kind::kTensor);
  }
  Status operator()(const FuncAttr& v) {
    MR_ASSIGN_OR_RETURN(p.func.Ensure(), FuncToProto(v));
    return Set(Kind::kFunc);
  }
  Status operator()(const PlaceholderAttr& v) { return p.placeholder = v.name, Set(Kind::kPlaceholder); }
  Status operator()(const std::vector<std::string>& v) { return List().s = v, absl::OkStatus(); }
  Status operator()(const std::vector<int64_t>& v) { return List().i = v, absl::OkStatus(); }
  Status operator()(const std::vector<float>& v) { return List().f = v, absl::OkStatus(); }
  Status operator()(const std::vector<bool>& v) { return List().b = v, absl::OkStatus(); }
  Status operator()(const std::vector<DType>& v) {
    auto& out = List().type;
    for (DType t : v) out.push_back(static_cast<int32_t>(t));
    return absl::OkStatus();
  }
  Status operator()(const std::vector<PartialShape>& v) {
    auto& out = List().shape;
    for (const PartialShape& s : v) out.push_back(ShapeToProto(s));
    return absl::OkStatus();
  }
  Status operator()(const std::vector<Tensor>& v) {
    auto& out = List().tensor;
    for (const Tensor& t : v) {
      MR_ASSIGN_OR_RETURN(out.emplace_back(), TensorToAttrProto(t));
    }
    return absl::OkStatus();
  }
  Status operator()(const std::vector<FuncAttr>& v) {
    auto& out = List().func;
    for (const FuncAttr& f : v) {
      MR_ASSIGN_OR_RETURN(out.emplace_back(), FuncToProto(f));
    }
    return absl::OkStatus();
  }
};

}  // namespace

bool AttrValue::Is(AttrKind kind, bool list) const {
  if (get<PlaceholderAttr>()) return true;
  if (get<EmptyListAttr>()) return list;
  const KindOf k = KindOfValue(*this);
  return k.kind == static_cast<int>(kind) && k.list == list;
}

int64_t AttrValue::list_size() const {
  return std::visit(
      []<typename T>(const T& v) -> int64_t {
        if constexpr (internal::IsVector<T>::value) {
          return static_cast<int64_t>(v.size());
        } else {
          return std::is_same_v<T, EmptyListAttr> ? 0 : -1;
        }
      },
      v_);
}

std::string AttrValue::ToString() const {
  return std::visit([](const auto& v) { return Text(v); }, v_);
}

bool AttrValue::Equals(const AttrValue& o) const {
  if (is_list() && o.is_list() && list_size() == 0 && o.list_size() == 0) {
    return get<EmptyListAttr>() || o.get<EmptyListAttr>() || v_.index() == o.v_.index();
  }
  if (v_.index() != o.v_.index()) return false;
  return std::visit([&o]<typename T>(const T& v) { return Same(v, *o.get<T>()); }, v_);
}

const char* AttrKindName(AttrKind k) {
  static constexpr const char* kNames[] = {"string", "int", "float", "bool", "type", "shape", "tensor", "func"};
  const auto i = static_cast<size_t>(k);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

StatusOr<AttrValue> AttrFromProto(const wire::AttrValue& proto) { return FromProto(proto, 0); }

StatusOr<wire::AttrValue> AttrToProto(const AttrValue& value) {
  wire::AttrValue p;
  MR_RETURN_IF_ERROR(std::visit(ToProto{p}, value.storage()));
  return p;
}

Status AttrMissing(absl::string_view name) { return InvalidArgument("missing attribute '", name, "'"); }

Status AttrWrongKind(absl::string_view name, const AttrValue& got, const char* want) {
  return InvalidArgument(
      "attribute '", name, "' has value ", got.ToString(), " of kind ", DescribeKind(got), " when ", want, " expected");
}

}  // namespace millrace
