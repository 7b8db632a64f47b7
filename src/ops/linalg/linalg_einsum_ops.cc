// SPDX-License-Identifier: Apache-2.0
// Einsum.
#include <map>

#include "op/einsum_equation.h"
#include "ops/linalg/linalg_ops.h"

namespace millrace {
namespace {

// Sizes of labels so far: letters must agree, axes of "..." broadcast.
Status MergeSizes(ShapeContext& c, const EinsumLabels& labels, const PartialShape& shape,
                  std::map<int, int64_t>* sizes) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t d = shape.dim(static_cast<int>(i));
    const auto [it, is_new] = sizes->emplace(labels[i], d);
    if (is_new) continue;
    int64_t& known = it->second;
    if (labels[i] < kEllipsisBase) {
      MR_ASSIGN_OR_RETURN(known, c.MergeDim(known, d, "axes with the same letter"));
    } else if (known == 1 || d > 1) {
      if (known > 1 && d != known) return InvalidArgument("axes of size ", known, " and ", d, " do not broadcast");
      known = d;
    } else if (known < 0 && d != 1) {
      known = d < 0 ? -1 : d;
    } else if (known >= 0 && d >= 0 && d != 1 && d != known) {
      return InvalidArgument("axes of size ", known, " and ", d, " do not broadcast");
    }
  }
  return absl::OkStatus();
}

Status EinsumShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const std::string text, c.Attr<std::string>("equation"));
  MR_ASSIGN_OR_RETURN(const EinsumEquation equation, EinsumEquation::Parse(text));
  if (static_cast<int>(equation.inputs.size()) != c.num_inputs()) {
    return InvalidArgument(
        "equation '", text, "' has ", equation.inputs.size(), " operands, but there are ", c.num_inputs(), " inputs");
  }
  std::map<int, int64_t> sizes;
  int broadcast_rank = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).has_rank()) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(
        const EinsumLabels labels, LabelsOf(equation.inputs[static_cast<size_t>(i)], c.input(i).rank()));
    broadcast_rank = std::max(broadcast_rank, BroadcastRank(labels));
    MR_RETURN_IF_ERROR(MergeSizes(c, labels, c.input(i), &sizes));
  }
  MR_ASSIGN_OR_RETURN(const EinsumLabels output, OutputLabelsOf(equation.output, broadcast_rank));
  std::vector<int64_t> dims;
  for (const int label : output) {
    const auto it = sizes.find(label);
    dims.push_back(it == sizes.end() ? -1 : it->second);
  }
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Output Einsum(const GraphBuilder& b, Output x, Output y, const std::string& ex, const std::string& ey,
              const std::string& out) {
  const std::string equation =
      absl::StrCat(EinsumEquation::Write(ex), ",", EinsumEquation::Write(ey), "->", EinsumEquation::Write(out));
  return b.Op("Einsum", {std::vector<Output>{x, y}}, {{"equation", AttrValue(equation)}});
}

// Part of a shape; `end` 0 means up to its end.
Output Piece(const GraphBuilder& b, Output shape, int begin, int end) {
  return b.Op("StridedSlice", {shape, b.Vector<int32_t>({begin}), b.Vector<int32_t>({end}), b.Vector<int32_t>({1})},
              {{"end_mask", end == 0 ? 1 : 0}});
}

// Sizes of "..." in the shape of an operand.
Output EllipsisShape(const GraphBuilder& b, Output shape, const std::string& operand) {
  const int at = static_cast<int>(operand.find(EinsumEquation::kEllipsis));
  return Piece(b, shape, at, at + 1 - static_cast<int>(operand.size()));
}

// Letters of x that none of the others has, each once, and a tensor of ones with their sizes.
std::string Missing(const std::string& x, absl::string_view others) {
  std::string out;
  for (const char c : x) {
    if (c == EinsumEquation::kEllipsis || others.find(c) != others.npos || out.find(c) != std::string::npos) continue;
    out.push_back(c);
  }
  return out;
}
Output OnesOf(const GraphBuilder& b, const std::string& letters, Output x, const std::string& operand) {
  const size_t ellipsis = std::min(operand.find(EinsumEquation::kEllipsis), operand.size());
  Output shape = b.Shape(x);
  std::vector<Output> sizes;
  for (const char c : letters) {
    const size_t at = operand.find(c);
    const int index = static_cast<int>(at) - (at > ellipsis ? static_cast<int>(operand.size()) : 0);
    sizes.push_back(Piece(b, shape, index, index + 1));
  }
  Output all = sizes.size() == 1 ? sizes[0] : b.Op("ConcatV2", {sizes, b.Scalar<int32_t>(0)});
  return b.Op("Fill", {all, b.ScalarOf(BaseType(x.dtype()), 1)});
}

bool HasEllipsis(const std::string& operand) { return operand.find(EinsumEquation::kEllipsis) != std::string::npos; }

// The gradient of x in z = einsum(x, y) is an einsum of g with y that has the axes of x: each axis that x alone has,
// and that was summed, comes back through a tensor of ones.
Output OperandGrad(GradContext& c, Output x, const std::string& ex, Output y, std::string ey, const std::string& ez) {
  const GraphBuilder& b = c.b();
  const std::string missing = Missing(ex, absl::StrCat(ez, ey));
  Output other = y ? b.Conj(y) : Output();
  if (!missing.empty() || !other) {
    if (missing.empty()) {
      const std::string equation = absl::StrCat(EinsumEquation::Write(ez), "->", EinsumEquation::Write(ex));
      other = b.Op("Einsum", {std::vector<Output>{c.dy()}}, {{"equation", AttrValue(equation)}});
    } else {
      Output ones = OnesOf(b, missing, x, ex);
      other = other ? Einsum(b, other, ones, ey, missing, ey + missing) : ones;
      ey += missing;
    }
  }
  if (y && !HasEllipsis(ex) && (HasEllipsis(ey) || HasEllipsis(ez))) {  // x served every one of the broadcast axes
    const Output g = Einsum(b, c.dy(), other, ez, ey, EinsumEquation::kEllipsis + ex);
    const Output extra = b.Sub(b.Op("Rank", {g}), b.Scalar(static_cast<int32_t>(ex.size())));
    return b.Sum(g, b.Op("Range", {b.Scalar<int32_t>(0), extra, b.Scalar<int32_t>(1)}));
  }
  Output g = y || !missing.empty() ? Einsum(b, c.dy(), other, ez, ey, ex) : other;
  if (!y || !HasEllipsis(ex) || (x.shape().IsFullyDefined() && g && x.shape() == g.shape())) return g;
  Output x_shape = b.Shape(x);
  Output full = HasEllipsis(ez) ? EllipsisShape(b, b.Shape(c.dy()), ez) : EllipsisShape(b, x_shape, ex);
  Node* axes = b.OpNode("BroadcastGradientArgs", {EllipsisShape(b, x_shape, ex), full});
  if (!axes) return {};
  const int32_t first = static_cast<int32_t>(ex.find(EinsumEquation::kEllipsis));
  return b.Reshape(b.Sum(g, b.Add(axes->output(0), b.Scalar(first))), x_shape);
}

Status EinsumGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(const std::string text, c.Attr<std::string>("equation"));
  MR_ASSIGN_OR_RETURN(const EinsumEquation e, EinsumEquation::Parse(text));
  if (static_cast<int>(e.inputs.size()) != c.num_inputs()) return InvalidArgument("einsum '", text, "' lacks an input");
  if (c.num_inputs() == 1) {
    c.set_dx(0, OperandGrad(c, c.x(0), e.inputs[0], {}, "", e.output));
    return c.status();
  }
  c.set_dx(0, OperandGrad(c, c.x(0), e.inputs[0], c.x(1), e.inputs[1], e.output));
  c.set_dx(1, OperandGrad(c, c.x(1), e.inputs[1], c.x(0), e.inputs[0], e.output));
  return c.status();
}

}  // namespace

void RegisterEinsumOps(OpRegistry& registry) {
  registry.Add("Einsum(inputs:N*T) -> (output:T) | equation:string; N:int>=1; T:type")
      .Doc(
          "Sum of products in Einstein's notation. The equation names the axes of one or two inputs and of the result "
          "by letters; axes that the result lacks are summed, a letter that comes twice in one operand is its "
          "diagonal, and '...' stands for axes that broadcast.")
      .Shape(EinsumShape)
      .Gradient(EinsumGrad)
      .Example("f32[2,3]~, f32[3,4]~ | equation=\"ij,jk->ik\"")
      .Example("f64[3,3]~ | equation=\"ii->i\"")
      .Example("f64[2,2,3]~, f64[3,4]~ | equation=\"...ij,jk->...ik\"")
      .Example("f64[2,1,2,3]~, f64[4,3]~ | equation=\"...ij,...j->i...\"");
}

}  // namespace millrace
