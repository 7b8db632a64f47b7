// SPDX-License-Identifier: Apache-2.0
#include "op/shape_context.h"

#include "base/checked.h"

namespace millrace {
namespace {

ArgRange FindArg(const std::vector<ArgDef>& args, const std::vector<ArgRange>& ranges, absl::string_view name) {
  for (size_t i = 0; i < args.size() && i < ranges.size(); ++i) {
    if (args[i].name == name) return ranges[i];
  }
  return {};
}

}  // namespace

ShapeContext::ShapeContext(const OpDef& op, const AttrMap& attrs, const NodeSignature& signature,
                           std::vector<Input> inputs)
    : op_(op),
      attrs_(attrs),
      signature_(signature),
      inputs_(std::move(inputs)),
      outputs_(signature.output_types.size()),
      output_handles_(signature.output_types.size()),
      output_as_shape_(signature.output_types.size()) {
  inputs_.resize(signature.input_types.size());
}

ArgRange ShapeContext::input_arg(absl::string_view name) const {
  return FindArg(op_.inputs, signature_.input_args, name);
}
ArgRange ShapeContext::output_arg(absl::string_view name) const {
  return FindArg(op_.outputs, signature_.output_args, name);
}

StatusOr<std::optional<int64_t>> ShapeContext::ConstantInt(int i) const {
  const Tensor* t = constant(i);
  if (t == nullptr) return std::nullopt;
  auto v = t->IntScalar();
  if (!v.ok() || t->rank() > 1)
    return InvalidArgument("input ", i, " must be an integer scalar, got ", t->DebugString());
  return std::optional<int64_t>(*v);
}

StatusOr<std::optional<std::vector<int64_t>>> ShapeContext::ConstantInts(int i) const {
  const Tensor* t = constant(i);
  if (t == nullptr) return std::nullopt;
  auto v = t->IntValues();
  if (!v.ok()) return InvalidArgument("input ", i, " must hold integers, got ", t->DebugString());
  return std::optional<std::vector<int64_t>>(*std::move(v));
}

StatusOr<PartialShape> ShapeContext::InputAsShape(int i) const {
  MR_ASSIGN_OR_RETURN(auto values, ConstantInts(i));
  if (values) {
    if (constant(i)->rank() != 1) {
      if (constant(i)->rank() == 0 && (*values)[0] == -1) return PartialShape();
      return InvalidArgument("a shape must be a vector, got ", constant(i)->DebugString());
    }
    for (int64_t d : *values) {
      if (d < -1) return InvalidArgument("a shape has the negative dimension ", d);
    }
    return PartialShape::Make(*values);
  }
  const Input& in = inputs_[static_cast<size_t>(i)];
  if (in.as_shape) return *in.as_shape;
  if (!in.shape.has_rank()) return PartialShape();
  if (in.shape.rank() != 1) return InvalidArgument("a shape must be a vector, got shape ", in.shape.ToString());
  if (!in.shape.has_dim(0)) return PartialShape();
  if (in.shape.dim(0) > kMaxRank) {
    return InvalidArgument("a shape of rank ", in.shape.dim(0), " exceeds the limit of ", kMaxRank);
  }
  return PartialShape::UnknownOfRank(static_cast<int>(in.shape.dim(0)));
}

StatusOr<PartialShape> ShapeContext::WithRank(int i, int rank) const {
  const PartialShape& s = input(i);
  if (!s.has_rank()) return PartialShape::UnknownOfRank(rank);
  if (s.rank() == rank) return s;
  return InvalidArgument("Shape must be rank ", rank, " but is rank ", s.rank(), " (input ", i, " of ", op_.name,
                         " has shape ", s.ToString(), ")");
}
StatusOr<PartialShape> ShapeContext::WithRankAtLeast(int i, int rank) const {
  const PartialShape& s = input(i);
  if (!s.has_rank() || s.rank() >= rank) return s;
  return InvalidArgument("Shape must be at least rank ", rank, " but is rank ", s.rank(), " (input ", i, " of ",
                         op_.name, " has shape ", s.ToString(), ")");
}
StatusOr<PartialShape> ShapeContext::WithRankAtMost(int i, int rank) const {
  const PartialShape& s = input(i);
  if (!s.has_rank() || s.rank() <= rank) return s;
  return InvalidArgument("Shape must be at most rank ", rank, " but is rank ", s.rank(), " (input ", i, " of ",
                         op_.name, " has shape ", s.ToString(), ")");
}

StatusOr<PartialShape> ShapeContext::Merge(const PartialShape& a, const PartialShape& b, absl::string_view what) const {
  auto merged = a.Merge(b);
  if (!merged.ok()) return InvalidArgument(merged.status().message(), " (", what, ")");
  return merged;
}

StatusOr<int64_t> ShapeContext::MergeDim(int64_t a, int64_t b, absl::string_view what) const {
  if (a < 0) return b;
  if (b < 0 || a == b) return a;
  return InvalidArgument("Dimensions must be equal, but are ", a, " and ", b, " (", what, ")");
}

StatusOr<int> ShapeContext::Axis(int64_t axis, int rank) const {
  int64_t out;
  if (!NormalizeIndex(axis, rank, &out)) {
    return InvalidArgument("axis ", axis, " is out of range [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(out);
}

}  // namespace millrace
