// SPDX-License-Identifier: Apache-2.0
#include "op/op_def.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace millrace {
namespace {

const AttrValue* FindValue(const AttrMap& attrs, absl::string_view name) {
  auto it = attrs.find(name);
  return it == attrs.end() ? nullptr : &it->second;
}

template <typename T>
StatusOr<const T*> GetPointer(const AttrMap& attrs, absl::string_view name, const char* want) {
  const AttrValue* v = FindValue(attrs, name);
  if (v == nullptr) return AttrMissing(name);
  if (const T* t = v->get<T>()) return t;
  return AttrWrongKind(name, *v, want);
}

// Number of tensors that `arg` stands for, and for a typed list its types.
struct Extent {
  int64_t count = 1;
  const std::vector<DType>* types = nullptr;
};
StatusOr<Extent> ExtentOf(const ArgDef& arg, const AttrMap& attrs) {
  static const auto* no_types = new std::vector<DType>();
  Extent e;
  if (!arg.type_list_attr.empty()) {
    const AttrValue* v = FindValue(attrs, arg.type_list_attr);
    if (v != nullptr && v->get<EmptyListAttr>()) {
      e.types = no_types;
    } else {
      MR_ASSIGN_OR_RETURN(e.types, GetPointer<std::vector<DType>>(attrs, arg.type_list_attr, "list(type)"));
    }
    e.count = static_cast<int64_t>(e.types->size());
  } else if (!arg.number_attr.empty()) {
    MR_ASSIGN_OR_RETURN(const int64_t* n, GetPointer<int64_t>(attrs, arg.number_attr, "int"));
    e.count = *n;
    if (e.count < 0) return InvalidArgument("attribute '", arg.number_attr, "' is negative: ", e.count);
  }
  return e;
}

Status Expand(const std::vector<ArgDef>& args, const AttrMap& attrs, std::vector<DType>* types,
              std::vector<ArgRange>* ranges) {
  int64_t total = 0;
  for (const ArgDef& arg : args) {
    MR_ASSIGN_OR_RETURN(Extent e, ExtentOf(arg, attrs));
    if (e.count > kMaxArgs - total) {
      return InvalidArgument(
          "argument '", arg.name, "' stands for ", e.count, " tensors; an op may have at most ", kMaxArgs);
    }
    total += e.count;
  }
  types->reserve(static_cast<size_t>(total));
  ranges->reserve(args.size());
  for (const ArgDef& arg : args) {
    MR_ASSIGN_OR_RETURN(Extent e, ExtentOf(arg, attrs));
    const int begin = static_cast<int>(types->size());
    if (e.types != nullptr) {
      types->insert(types->end(), e.types->begin(), e.types->end());
    } else {
      DType t = arg.type;
      if (!arg.type_attr.empty()) {
        MR_ASSIGN_OR_RETURN(const DType* attr, GetPointer<DType>(attrs, arg.type_attr, "type"));
        t = *attr;
      }
      types->insert(types->end(), static_cast<size_t>(e.count), t);
    }
    if (arg.is_ref) {
      for (size_t i = static_cast<size_t>(begin); i < types->size(); ++i) (*types)[i] = MakeRefType((*types)[i]);
    }
    ranges->push_back({begin, static_cast<int>(types->size())});
  }
  return absl::OkStatus();
}

template <typename T>
AttrValue EmptyList() {
  return AttrValue(std::vector<T>());
}
AttrValue EmptyListOf(AttrKind kind) {
  switch (kind) {
    case AttrKind::kString: return EmptyList<std::string>();
    case AttrKind::kInt: return EmptyList<int64_t>();
    case AttrKind::kFloat: return EmptyList<float>();
    case AttrKind::kBool: return EmptyList<bool>();
    case AttrKind::kType: return EmptyList<DType>();
    case AttrKind::kShape: return EmptyList<PartialShape>();
    case AttrKind::kTensor: return EmptyList<Tensor>();
    case AttrKind::kFunc: return EmptyList<FuncAttr>();
  }
  return AttrValue();
}

std::string KindText(const AttrDef& def) {
  return def.is_list ? absl::StrCat("list(", AttrKindName(def.kind), ")") : std::string(AttrKindName(def.kind));
}

Status NotAllowed(const OpDef& op, const AttrDef& def, const std::string& got, const std::string& allowed) {
  return InvalidArgument("attribute '", def.name, "' of op ", op.name, " has value ", got,
                         ", which is not in its allowed list: ", allowed);
}

template <typename T, typename F>
Status CheckChoices(const OpDef& op, const AttrDef& def, const AttrValue& v, const std::vector<T>& allowed, F&& text) {
  const auto check = [&](const T& value) {
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return absl::OkStatus();
    return NotAllowed(op, def, text(value),
                      absl::StrJoin(allowed, ", ", [&](std::string* out, const T& t) { out->append(text(t)); }));
  };
  if (const T* one = v.get<T>()) return check(*one);
  if (const auto* list = v.get<std::vector<T>>()) {
    for (const T& value : *list) MR_RETURN_IF_ERROR(check(value));
  }
  return absl::OkStatus();
}

// Kind, allowed values and minimum of one value. An untyped empty list gets its kind.
Status CheckAttr(const OpDef& op, const AttrDef& def, AttrValue* v) {
  if (!v->Is(def.kind, def.is_list)) {
    return Annotate(AttrWrongKind(def.name, *v, KindText(def).c_str()), absl::StrCat("op ", op.name, ": "));
  }
  if (v->get<EmptyListAttr>()) *v = EmptyListOf(def.kind);
  if (const DType* t = v->get<DType>(); t != nullptr && (IsRef(*t) || *t == DType::kInvalid)) {
    return InvalidArgument("attribute '", def.name, "' of op ", op.name, " has the illegal type ", DTypeName(*t));
  }
  if (const auto* list = v->get<std::vector<DType>>()) {
    for (DType t : *list) {
      if (IsRef(t) || t == DType::kInvalid) {
        return InvalidArgument("attribute '", def.name, "' of op ", op.name, " holds the illegal type ", DTypeName(t));
      }
    }
  }
  if (!def.allowed_types.empty()) {
    MR_RETURN_IF_ERROR(CheckChoices(op, def, *v, def.allowed_types, [](DType t) { return DTypeName(t); }));
  }
  if (!def.allowed_strings.empty()) {
    MR_RETURN_IF_ERROR(CheckChoices(
        op, def, *v, def.allowed_strings, [](const std::string& s) { return absl::StrCat("\"", s, "\""); }));
  }
  if (def.has_minimum) {
    const int64_t* i = v->get<int64_t>();
    const int64_t value = i != nullptr ? *i : v->list_size();
    if ((i != nullptr || v->list_size() >= 0) && value < def.minimum) {
      return InvalidArgument(i != nullptr ? "value" : "length", " of attribute '", def.name, "' of op ", op.name,
                             " is ", value, ", must be at least ", def.minimum);
    }
  }
  return absl::OkStatus();
}

}  // namespace

const AttrDef* OpDef::FindAttr(absl::string_view attr_name) const {
  for (const AttrDef& a : attrs) {
    if (a.name == attr_name) return &a;
  }
  return nullptr;
}

StatusOr<NodeSignature> ResolveSignature(const OpDef& op, const AttrMap& attrs) {
  NodeSignature s;
  MR_RETURN_IF_ERROR(Expand(op.inputs, attrs, &s.input_types, &s.input_args));
  MR_RETURN_IF_ERROR(Expand(op.outputs, attrs, &s.output_types, &s.output_args));
  return s;
}

Status CompleteAttrs(const OpDef& op, AttrMap* attrs, std::vector<std::string>* unknown) {
  size_t known = 0;
  for (const AttrDef& def : op.attrs) {
    auto it = attrs->lower_bound(def.name);
    if (it == attrs->end() || it->first != def.name) {
      if (!def.has_default) {
        return InvalidArgument("missing attribute '", def.name, "' of op ", op.name);
      }
      attrs->emplace_hint(it, def.name, def.default_value);
    } else {
      MR_RETURN_IF_ERROR(CheckAttr(op, def, &it->second));
    }
    ++known;
  }
  if (attrs->size() == known || unknown == nullptr) return absl::OkStatus();
  for (const auto& [name, value] : *attrs) {
    if (!absl::StartsWith(name, "_") && op.FindAttr(name) == nullptr) unknown->push_back(name);
  }
  return absl::OkStatus();
}

}  // namespace millrace
