// SPDX-License-Identifier: Apache-2.0
#include "graph/infer_attrs.h"

#include <algorithm>

namespace millrace {
namespace {

// The attribute that says how long a list argument is; empty for a single tensor.
const std::string& LengthAttr(const ArgDef& arg) {
  return arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
}

// Length that the attributes give, or -1.
int64_t GivenLength(const ArgDef& arg, const AttrMap& attrs) {
  const auto it = attrs.find(LengthAttr(arg));
  if (it == attrs.end()) return -1;
  if (const int64_t* n = it->second.get<int64_t>()) return std::max<int64_t>(*n, 0);
  return it->second.list_size();
}

Status WrongCount(const OpDef& op, int64_t want, size_t got) {
  return InvalidArgument("op ", op.name, " takes ", want, " inputs, got ", got);
}

// One length per argument.
StatusOr<std::vector<int64_t>> Lengths(const OpDef& op, const NodeSpec& spec) {
  std::vector<int64_t> lengths(op.inputs.size(), 1);
  const int64_t total = static_cast<int64_t>(spec.inputs.size());
  const bool sizes_given = !spec.input_arg_sizes.empty();
  if (sizes_given && spec.input_arg_sizes.size() != op.inputs.size()) {
    return InvalidArgument("op ", op.name, " has ", op.inputs.size(), " arguments, got ", spec.input_arg_sizes.size());
  }
  int64_t known = 0, unknown_args = 0;
  const std::string* unknown_attr = nullptr;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const std::string& attr = LengthAttr(op.inputs[i]);
    if (!attr.empty()) lengths[i] = GivenLength(op.inputs[i], spec.attrs);
    if (sizes_given) {
      const int64_t size = spec.input_arg_sizes[i];
      if (lengths[i] >= 0 && size != lengths[i]) {
        return InvalidArgument(
            "argument '", op.inputs[i].name, "' of op ", op.name, " needs ", lengths[i], " tensors, got ", size);
      }
      lengths[i] = size;
    }
    if (lengths[i] >= 0) {
      if (lengths[i] > total - known) {
        return InvalidArgument("argument '", op.inputs[i].name, "' of op ", op.name, " needs ", lengths[i],
                               " inputs, got ", total - known);
      }
      known += lengths[i];
      continue;
    }
    if (unknown_attr != nullptr && *unknown_attr != attr) {
      return InvalidArgument("op ", op.name, " has several lists; attributes ", *unknown_attr, " and ", attr,
                             " cannot be told from the inputs");
    }
    unknown_attr = &attr;
    ++unknown_args;
  }
  if (unknown_args > 0) {
    if ((total - known) % unknown_args != 0) {
      return InvalidArgument(
          "op ", op.name, " takes ", unknown_args, " lists of one length, got ", total - known, " inputs for them");
    }
    for (int64_t& n : lengths) n = n < 0 ? (total - known) / unknown_args : n;
  } else if (known != total) {
    return WrongCount(op, known, spec.inputs.size());
  }
  return lengths;
}

bool Lacks(const AttrMap& attrs, const std::string& name) { return !name.empty() && !attrs.contains(name); }

Status InferFrom(const ArgDef& arg, absl::Span<const Output> inputs, AttrMap* attrs) {
  if (Lacks(*attrs, arg.number_attr)) attrs->emplace(arg.number_attr, AttrValue(static_cast<int64_t>(inputs.size())));
  if (Lacks(*attrs, arg.type_attr)) {
    for (const Output& o : inputs) {
      if (o.dtype() == DType::kInvalid) continue;
      attrs->emplace(arg.type_attr, AttrValue(BaseType(o.dtype())));
      break;
    }
  }
  if (Lacks(*attrs, arg.type_list_attr)) {
    std::vector<DType> types;
    for (const Output& o : inputs) {
      if (o.dtype() == DType::kInvalid) {
        return InvalidArgument(
            "attribute '", arg.type_list_attr, "' is missing and the type of input ", o.ToString(), " is unknown");
      }
      types.push_back(BaseType(o.dtype()));
    }
    attrs->emplace(arg.type_list_attr, AttrValue(std::move(types)));
  }
  return absl::OkStatus();
}

}  // namespace

Status InferAttrs(const OpDef& op, NodeSpec& spec) {
  const absl::Span<const Output> inputs = spec.inputs;
  const bool has_list = std::any_of(op.inputs.begin(), op.inputs.end(), [](const ArgDef& a) {
    return !a.number_attr.empty() || !a.type_list_attr.empty();
  });
  if (!has_list) {
    if (inputs.size() != op.inputs.size()) return WrongCount(op, static_cast<int64_t>(op.inputs.size()), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      MR_RETURN_IF_ERROR(InferFrom(op.inputs[i], inputs.subspan(i, 1), &spec.attrs));
    }
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, Lengths(op, spec));
  size_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const size_t n = static_cast<size_t>(lengths[i]);
    if (lengths[i] < 0 || n > inputs.size() - begin) return WrongCount(op, lengths[i], inputs.size());
    MR_RETURN_IF_ERROR(InferFrom(op.inputs[i], inputs.subspan(begin, n), &spec.attrs));
    begin += n;
  }
  if (begin != inputs.size()) return WrongCount(op, static_cast<int64_t>(begin), inputs.size());
  return absl::OkStatus();
}

}  // namespace millrace
