// SPDX-License-Identifier: Apache-2.0
// Shape functions tested with one-line strings:
//
//   ShapeCase c(registry, "MatMul");
//   EXPECT_EQ(c.Run("[?,3];[3,5]"), "[?,5]");
//   EXPECT_EQ(c.Run("[2,3];[4,5]").substr(0, 6), "error:");
//
// Inputs and outputs are separated by ';', a scalar is "[]", "?" is unknown. Type attributes that are not given are
// float where allowed, else the first type of their set; a length N not given follows from the number of inputs.
#pragma once

#include <string>
#include <vector>

#include "op/attr_text.h"
#include "op/op_registry.h"
#include "op/shape_context.h"

namespace millrace {

class ShapeCase {
 public:
  ShapeCase(const OpRegistry& registry, absl::string_view op) : op_(registry.Find(op)), name_(op) {}

  ShapeCase& Attr(absl::string_view name, AttrValue v) {
    attrs_.insert_or_assign(std::string(name), std::move(v));
    return *this;
  }
  // Input i has this value, and its shape.
  ShapeCase& Constant(size_t i, Tensor t) {
    if (constants_.size() <= i) constants_.resize(i + 1);
    constants_[i] = std::move(t);
    return *this;
  }
  ShapeCase& ClearConstants() {
    constants_.clear();
    return *this;
  }

  std::string Run(absl::string_view inputs) const {
    auto result = Infer(inputs);
    return result.ok() ? *result : absl::StrCat("error: ", result.status().message());
  }

 private:
  StatusOr<std::string> Infer(absl::string_view text) const {
    if (op_ == nullptr) return NotFound("no op ", name_);
    std::vector<ShapeContext::Input> inputs;
    for (absl::string_view piece : SplitOutside(text, ';')) {
      MR_ASSIGN_OR_RETURN(inputs.emplace_back().shape, ParseShapeText(piece));
    }
    for (size_t i = 0; i < constants_.size(); ++i) {
      if (!constants_[i].IsInitialized()) continue;
      if (i >= inputs.size()) inputs.resize(i + 1);
      inputs[i].constant = &constants_[i];
      inputs[i].shape = constants_[i].shape();
    }
    AttrMap attrs = attrs_;
    FillAttrs(inputs.size(), &attrs);
    MR_RETURN_IF_ERROR(CompleteAttrs(*op_, &attrs, nullptr));
    MR_ASSIGN_OR_RETURN(NodeSignature signature, ResolveSignature(*op_, attrs));
    if (signature.input_types.size() != inputs.size()) {
      return InvalidArgument(name_, " takes ", signature.input_types.size(), " inputs, got ", inputs.size());
    }
    ShapeContext context(*op_, attrs, signature, std::move(inputs));
    if (op_->shape_fn != nullptr) MR_RETURN_IF_ERROR(op_->shape_fn(context));
    std::string out;
    for (const PartialShape& s : context.outputs()) absl::StrAppend(&out, out.empty() ? "" : ";", s.ToString());
    return out;
  }

  void FillAttrs(size_t inputs, AttrMap* attrs) const {
    size_t single = 0, lists = 0;
    const ArgDef* list = nullptr;
    for (const ArgDef& a : op_->inputs) {
      const bool is_list = !a.number_attr.empty() || !a.type_list_attr.empty();
      lists += is_list;
      single += !is_list;
      if (is_list) list = &a;
    }
    for (const AttrDef& a : op_->attrs) {
      if (a.kind != AttrKind::kType || a.is_list || a.has_default || attrs->contains(a.name)) continue;
      bool has_float = a.allowed_types.empty();
      for (DType t : a.allowed_types) has_float |= t == DType::kFloat;
      attrs->emplace(a.name, AttrValue(has_float ? DType::kFloat : a.allowed_types[0]));
    }
    if (lists != 1 || inputs < single) return;
    const size_t n = inputs - single;
    if (!list->number_attr.empty()) {
      attrs->emplace(list->number_attr, AttrValue(static_cast<int64_t>(n)));
    } else {
      attrs->emplace(list->type_list_attr, AttrValue(std::vector<DType>(n, DType::kFloat)));
    }
  }

  const OpDef* op_;
  std::string name_;
  AttrMap attrs_;
  std::vector<Tensor> constants_;
};

}  // namespace millrace
