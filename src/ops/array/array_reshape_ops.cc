// SPDX-License-Identifier: Apache-2.0
// Ops: other shapes and other orders of the same elements.
#include <algorithm>

#include "base/checked.h"
#include "ops/array/array_ops.h"

namespace millrace {
namespace {

// Product of the known dimensions, and how many are unknown; nullopt when the product overflows.
struct KnownProduct {
  int64_t product = 1;
  int unknown = 0;
};
std::optional<KnownProduct> ProductOf(const PartialShape& s) {
  KnownProduct p;
  for (int64_t d : s.dims()) {
    if (d < 0) {
      ++p.unknown;
    } else if (!CheckedMul(p.product, d, &p.product)) {
      return std::nullopt;
    }
  }
  return p;
}

Status ReshapeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape out, c.InputAsShape(1));
  const PartialShape& in = c.input(0);
  if (!out.has_rank() || !in.IsFullyDefined()) {
    c.set_output(0, std::move(out));
    return absl::OkStatus();
  }
  const int64_t count = in.num_elements();
  const auto known = ProductOf(out);
  if (!known) return InvalidArgument("Cannot reshape to ", out.ToString(), ": too many elements");
  auto mismatch = [&] {
    return InvalidArgument("Cannot reshape a tensor with ", count, " elements to shape ", out.ToString());
  };
  if (known->unknown == 0) {
    if (known->product != count) return mismatch();
  } else if (known->unknown == 1 && known->product > 0) {
    if (count % known->product != 0) {
      return InvalidArgument("Cannot reshape to ", out.ToString(), ": the ", count,
                             " elements of the input must be evenly divisible by ", known->product);
    }
    std::vector<int64_t> dims = out.dims();
    *std::find(dims.begin(), dims.end(), -1) = count / known->product;
    out = PartialShape::Of(std::move(dims));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status ExpandDimsShape(ShapeContext& c) {
  if (c.input(1).IsFullyDefined() && c.input(1).num_elements() != 1) {
    return InvalidArgument("'dim' must be a tensor with a single value, got shape ", c.input(1).ToString());
  }
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(auto dim, c.ConstantInt(1));
  if (!dim) {
    if (in.rank() + 1 > kMaxRank) return InvalidArgument("rank ", in.rank() + 1, " exceeds the limit of ", kMaxRank);
    c.set_output(0, PartialShape::UnknownOfRank(in.rank() + 1));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(int at, c.Axis(*dim, in.rank() + 1));
  std::vector<int64_t> dims = in.dims();
  dims.insert(dims.begin() + at, 1);
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status SqueezeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(std::vector<int64_t> axes, c.Attr<std::vector<int64_t>>("squeeze_dims"));
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  std::vector<bool> drop(static_cast<size_t>(in.rank()), false);
  for (int64_t axis : axes) {
    MR_ASSIGN_OR_RETURN(int at, c.Axis(axis, in.rank()));
    if (in.has_dim(at) && in.dim(at) != 1) {
      return InvalidArgument("Can not squeeze dim[", at, "], expected a dimension of 1, got ", in.dim(at));
    }
    drop[static_cast<size_t>(at)] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    if (axes.empty()) {
      if (!in.has_dim(i)) return absl::OkStatus();  // perhaps 1: not even the rank is known
      if (in.dim(i) != 1) dims.push_back(in.dim(i));
    } else if (!drop[static_cast<size_t>(i)]) {
      dims.push_back(in.dim(i));
    }
  }
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status TransposeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape perm_shape, c.WithRank(1, 1));
  const PartialShape& in = c.input(0);
  MR_ASSIGN_OR_RETURN(auto perm, c.ConstantInts(1));
  if (in.has_rank() && perm_shape.has_dim(0) && perm_shape.dim(0) != in.rank()) {
    return InvalidArgument("transpose expects a vector of size ", in.rank(), ", but perm has size ", perm_shape.dim(0));
  }
  const int64_t rank = in.has_rank() ? in.rank() : perm_shape.dim(0);
  if (rank < 0) return absl::OkStatus();
  if (rank > kMaxRank) return InvalidArgument("rank ", rank, " exceeds the limit of ", kMaxRank);
  std::vector<int64_t> dims(static_cast<size_t>(rank), -1);
  if (perm) {
    for (size_t i = 0; i < perm->size(); ++i) {
      int64_t from;
      if (!NormalizeIndex((*perm)[i], rank, &from)) {
        return InvalidArgument("perm dim ", (*perm)[i], " is out of range of input rank ", rank);
      }
      if (in.has_rank()) dims[i] = in.dim(static_cast<int>(from));
    }
  }
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status ReverseShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape flags, c.WithRank(1, 1));
  const PartialShape& in = c.input(0);
  if (!in.has_rank() && flags.has_dim(0) && flags.dim(0) <= kMaxRank) {
    c.set_output(0, PartialShape::UnknownOfRank(static_cast<int>(flags.dim(0))));
    return absl::OkStatus();
  }
  if (in.has_rank() && flags.has_dim(0) && flags.dim(0) != in.rank()) {
    return InvalidArgument("reverse needs one flag per dimension: ", in.rank(), ", got ", flags.dim(0));
  }
  c.set_output(0, in);
  return absl::OkStatus();
}

Status ReverseV2Shape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  const PartialShape& in = c.input(0);
  MR_ASSIGN_OR_RETURN(auto axes, c.ConstantInts(1));
  if (axes && in.has_rank()) {
    std::vector<bool> seen(static_cast<size_t>(in.rank()), false);
    for (int64_t axis : *axes) {
      MR_ASSIGN_OR_RETURN(int at, c.Axis(axis, in.rank()));
      if (seen[static_cast<size_t>(at)]) return InvalidArgument("axis ", at, " specified more than once");
      seen[static_cast<size_t>(at)] = true;
    }
  }
  c.set_output(0, in);
  return absl::OkStatus();
}

Status RollShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 1));
  MR_RETURN_IF_ERROR(c.WithRankAtMost(1, 1).status());
  MR_RETURN_IF_ERROR(c.WithRankAtMost(2, 1).status());
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

Status ReshapeGrad(GradContext& c) {
  c.set_dx(0, c.b().Reshape(c.dy(), ShapeOf(c.b(), c.x(0))));
  return c.status();
}

Output InversePermutation(const GraphBuilder& b, Output perm) {
  if (auto known = KnownInts(b, perm)) {
    std::vector<int64_t> inverse(known->size(), 0);
    for (size_t i = 0; i < known->size(); ++i) {
      int64_t to;
      if (NormalizeIndex((*known)[i], static_cast<int64_t>(inverse.size()), &to)) {
        inverse[static_cast<size_t>(to)] = static_cast<int64_t>(i);
      }
    }
    return IntVector(b, BaseType(perm.dtype()), inverse);
  }
  return b.Op("InvertPermutation", {perm});
}

Status TransposeGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("Transpose", {c.dy(), InversePermutation(c.b(), c.x(1))}));
  return c.status();
}
Status ConjugateTransposeGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("ConjugateTranspose", {c.dy(), InversePermutation(c.b(), c.x(1))}));
  return c.status();
}
Status ReverseGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("Reverse", {c.dy(), c.x(1)}));
  return c.status();
}
Status ReverseV2Grad(GradContext& c) {
  c.set_dx(0, c.b().Op("ReverseV2", {c.dy(), c.x(1)}));
  return c.status();
}
Status RollGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("Roll", {c.dy(), c.b().Neg(c.x(1)), c.x(2)}));
  return c.status();
}

void RegisterShapes(OpRegistry& r) {
  r.Add("Reshape(tensor:T, shape:Tshape) -> (output:T) | T:type; Tshape in IDX=i32")
      .Doc("The same elements, in row-major order, under another shape. One dimension may be -1 and is computed.")
      .Shape(ReshapeShape)
      .Gradient(ReshapeGrad)
      .Example("f32[2,3]~, i32[2]{3 -1}");
  r.Add("ExpandDims(input:T, dim:Tdim) -> (output:T) | T:type; Tdim in IDX=i32")
      .Doc("Inserts a dimension of size 1 at position `dim`; negative positions count from behind the last.")
      .Shape(ExpandDimsShape)
      .Gradient(ReshapeGrad)
      .Example("f32[2,3]~, i32[]{-1}");
  r.Add("Squeeze(input:T) -> (output:T) | T:type; squeeze_dims:list(int)>=0=[]")
      .Doc("Removes dimensions of size 1: those listed, or all when none is listed.")
      .Shape(SqueezeShape)
      .Gradient(ReshapeGrad)
      .Example("f32[1,3,1]~")
      .Example("f32[1,3,1]~ | squeeze_dims=[0]");
}

void RegisterOrders(OpRegistry& r) {
  r.Add("Transpose(x:T, perm:Tperm) -> (y:T) | T:type; Tperm in IDX=i32")
      .Doc("Permutes dimensions: dimension i of the result is dimension perm[i] of `x`.")
      .Shape(TransposeShape)
      .Gradient(TransposeGrad)
      .Example("f32[2,3,4]~, i32[3]{2 0 1}");
  r.Add("ConjugateTranspose(x:T, perm:Tperm) -> (y:T) | T:type; Tperm in IDX=i32")
      .Doc("Transpose, with complex elements conjugated.")
      .Shape(TransposeShape)
      .Gradient(ConjugateTransposeGrad)
      .Example("f32[2,3]~, i32[2]{1 0}")
      .Example("!c64[2,3]~, i32[2]{1 0}");
  r.Add("Reverse(tensor:T, dims:bool) -> (output:T) | T in FC|INT|bool|str")
      .Doc("Reverses the order of elements along each dimension whose flag in `dims` is true.")
      .Shape(ReverseShape)
      .Gradient(ReverseGrad)
      .Example("f32[2,3]~, bool[2]{0 1}");
  r.Add("ReverseV2(tensor:T, axis:Tidx) -> (output:T) | Tidx in IDX=i32; T in FC|INT|bool|str")
      .Doc("Reverses the order of elements along the dimensions that `axis` lists.")
      .Shape(ReverseV2Shape)
      .Gradient(ReverseV2Grad)
      .Example("f32[2,3]~, i32[1]{-1}");
  r.Add("Roll(input:T, shift:Tshift, axis:Taxis) -> (output:T) | T:type; Tshift in IDX; Taxis in IDX")
      .Doc(
          "Moves elements `shift` places along `axis`; those that leave at one end come back at the other. With "
          "vectors, one shift per axis; an axis named twice moves by the sum.")
      .Shape(RollShape)
      .Gradient(RollGrad)
      .Example("f32[2,3]~, i32[]{1}, i32[]{1}");
}

}  // namespace

void RegisterArrayReshapeOps(OpRegistry& registry) {
  RegisterShapes(registry);
  RegisterOrders(registry);
}

}  // namespace millrace
