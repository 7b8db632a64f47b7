// SPDX-License-Identifier: Apache-2.0
// Products of matrices and of stacks of matrices.
#include <algorithm>

#include "ops/linalg/linalg_ops.h"

namespace millrace {
namespace {

struct Flags {
  bool x = false;
  bool y = false;
};

// Rows and columns of a (possibly transposed) matrix shape of known rank.
int64_t Rows(const PartialShape& s, bool transposed) { return s.dim(s.rank() - (transposed ? 1 : 2)); }
int64_t Columns(const PartialShape& s, bool transposed) { return s.dim(s.rank() - (transposed ? 2 : 1)); }

Status MatMulShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const bool ta, c.Attr<bool>("transpose_a"));
  MR_ASSIGN_OR_RETURN(const bool tb, c.Attr<bool>("transpose_b"));
  MR_ASSIGN_OR_RETURN(PartialShape a, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(PartialShape b, c.WithRank(1, 2));
  if (!a.has_rank()) a = PartialShape::UnknownOfRank(2);
  if (!b.has_rank()) b = PartialShape::UnknownOfRank(2);
  MR_RETURN_IF_ERROR(c.MergeDim(Columns(a, ta), Rows(b, tb), "inner dimension").status());
  c.set_output(0, PartialShape::Of({Rows(a, ta), Columns(b, tb)}));
  return absl::OkStatus();
}

// A sum that follows may still broadcast the product.
Status FusedMatMulShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(MatMulShape(c));
  MR_ASSIGN_OR_RETURN(const auto ops, c.Attr<std::vector<std::string>>("fused_ops"));
  if (std::find(ops.begin(), ops.end(), "Add") != ops.end()) c.set_output(0, PartialShape());
  return absl::OkStatus();
}

Status BatchShape(ShapeContext& c, bool broadcast) {
  MR_ASSIGN_OR_RETURN(const bool adj_x, c.Attr<bool>("adj_x"));
  MR_ASSIGN_OR_RETURN(const bool adj_y, c.Attr<bool>("adj_y"));
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape y, c.WithRankAtLeast(1, 2));
  if (!x.has_rank() || !y.has_rank()) return absl::OkStatus();
  MR_RETURN_IF_ERROR(c.MergeDim(Columns(x, adj_x), Rows(y, adj_y), "inner dimension").status());
  auto batch = [](const PartialShape& s) {
    return PartialShape::Of(std::vector<int64_t>(s.dims().begin(), s.dims().end() - 2));
  };
  PartialShape out;
  if (broadcast) {
    bool incompatible = false;
    out = BroadcastPartial(batch(x), batch(y), &incompatible);
    if (incompatible) {
      return InvalidArgument("batch dimensions of ", x.ToString(), " and ", y.ToString(), " do not broadcast");
    }
  } else {
    MR_ASSIGN_OR_RETURN(out, c.Merge(batch(x), batch(y), "batch dimensions"));
  }
  std::vector<int64_t> dims = out.dims();
  dims.push_back(Rows(x, adj_x));
  dims.push_back(Columns(y, adj_y));
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status BatchMatMulShape(ShapeContext& c) { return BatchShape(c, false); }
Status BatchMatMulV2Shape(ShapeContext& c) { return BatchShape(c, true); }

// With z = op(x) op(y): the gradients of x and y as products of g with the other factor, in the form (left, right,
// flags) for each of the four cases.
template <typename Product>
std::pair<Output, Output> ProductGrads(Output x, Output y, Output g, Flags t, Product product) {
  if (!t.x && !t.y) return {product(g, y, false, true), product(x, g, true, false)};
  if (!t.x) return {product(g, y, false, false), product(g, x, true, false)};
  if (!t.y) return {product(y, g, false, true), product(x, g, false, false)};
  return {product(y, g, true, true), product(g, x, true, true)};
}

Status MatMulGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  Flags t;
  MR_ASSIGN_OR_RETURN(t.x, c.Attr<bool>("transpose_a"));
  MR_ASSIGN_OR_RETURN(t.y, c.Attr<bool>("transpose_b"));
  auto [gx, gy] = ProductGrads(b.Conj(c.x(0)), b.Conj(c.x(1)), c.dy(), t, [&](Output l, Output r, bool tl, bool tr) {
    return b.MatMul(l, r, tl, tr);
  });
  c.set_dx(0, gx);
  c.set_dx(1, gy);
  return c.status();
}

Status BatchGrad(GradContext& c, const char* op, std::pair<Output, Output>* grads) {
  const GraphBuilder& b = c.b();
  Flags t;
  MR_ASSIGN_OR_RETURN(t.x, c.Attr<bool>("adj_x"));
  MR_ASSIGN_OR_RETURN(t.y, c.Attr<bool>("adj_y"));
  *grads = ProductGrads(c.x(0), c.x(1), c.dy(), t, [&](Output l, Output r, bool tl, bool tr) {
    return b.Op(op, {l, r}, {{"adj_x", tl}, {"adj_y", tr}});
  });
  return c.status();
}

Status BatchMatMulGrad(GradContext& c) {
  std::pair<Output, Output> grads;
  MR_RETURN_IF_ERROR(BatchGrad(c, "BatchMatMul", &grads));
  c.set_dx(0, grads.first);
  c.set_dx(1, grads.second);
  return c.status();
}

Status BatchMatMulV2Grad(GradContext& c) {
  std::pair<Output, Output> grads;
  MR_RETURN_IF_ERROR(BatchGrad(c, "BatchMatMulV2", &grads));
  const auto [gx, gy] = UnbroadcastBatches(c.b(), c.x(0), c.x(1), grads.first, grads.second);
  c.set_dx(0, gx);
  c.set_dx(1, gy);
  return c.status();
}

// Each gradient has the type of its factor.
Status BatchMatMulV3Grad(GradContext& c) {
  const GraphBuilder& b = c.b();
  Flags t;
  MR_ASSIGN_OR_RETURN(t.x, c.Attr<bool>("adj_x"));
  MR_ASSIGN_OR_RETURN(t.y, c.Attr<bool>("adj_y"));
  const Output x = c.x(0), y = c.x(1);
  const DType type = c.dy().dtype();
  const auto product = [&](Output l, Output r, bool tl, bool tr) { return BatchMatMul(b, l, r, tl, tr); };
  const auto [by_x, by_y] = ProductGrads(b.Cast(x, type), b.Cast(y, type), c.dy(), t, product);
  const auto [gx, gy] = UnbroadcastBatches(b, x, y, by_x, by_y);
  c.set_dx(0, b.Cast(gx, x.dtype()));
  c.set_dx(1, b.Cast(gy, y.dtype()));
  return c.status();
}

bool SameKnownBatch(const PartialShape& x, const PartialShape& y) {
  if (!x.has_rank() || !y.has_rank() || x.rank() != y.rank()) return false;
  for (int i = 0; i < x.rank() - 2; ++i) {
    if (!x.has_dim(i) || x.dim(i) != y.dim(i)) return false;
  }
  return true;
}

}  // namespace

Output BatchMatMul(const GraphBuilder& b, Output x, Output y, bool adj_x, bool adj_y) {
  return b.Op("BatchMatMulV2", {x, y}, {{"adj_x", adj_x}, {"adj_y", adj_y}});
}

std::pair<Output, Output> UnbroadcastBatches(const GraphBuilder& b, Output x, Output y, Output gx, Output gy) {
  if (SameKnownBatch(x.shape(), y.shape())) return {gx, gy};
  Output x_shape = b.Shape(x), y_shape = b.Shape(y);
  auto batch = [&](Output shape) {
    Output begin = b.Vector<int32_t>({0}), end = b.Vector<int32_t>({-2}), step = b.Vector<int32_t>({1});
    return b.Op("StridedSlice", {shape, begin, end, step}, {{"begin_mask", 1}});
  };
  Node* axes = b.OpNode("BroadcastGradientArgs", {batch(x_shape), batch(y_shape)});
  if (!axes) return {};
  return {b.Reshape(b.Sum(gx, axes->output(0)), x_shape), b.Reshape(b.Sum(gy, axes->output(1)), y_shape)};
}

namespace {

Status SparseMatMulGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  MR_ASSIGN_OR_RETURN(const bool ta, c.Attr<bool>("transpose_a"));
  MR_ASSIGN_OR_RETURN(const bool tb, c.Attr<bool>("transpose_b"));
  MR_ASSIGN_OR_RETURN(const bool sparse_a, c.Attr<bool>("a_is_sparse"));
  MR_ASSIGN_OR_RETURN(const bool sparse_b, c.Attr<bool>("b_is_sparse"));
  struct Factor {
    Output value;
    bool sparse;
  };
  const Output dy = c.dy();
  const Factor a{c.x(0), sparse_a}, x{c.x(1), sparse_b}, g{dy, dy.node != nullptr && dy.node->op_name() == "ReluGrad"};
  const auto product = [&](const Factor& l, const Factor& r, bool tl, bool tr, Output like) {
    const Output p =
        b.Op("SparseMatMul", {l.value, r.value},
             {{"transpose_a", tl}, {"transpose_b", tr}, {"a_is_sparse", l.sparse}, {"b_is_sparse", r.sparse}});
    return b.Cast(p, BaseType(like.dtype()));
  };
  c.set_dx(0, ta ? product(x, g, tb, true, c.x(0)) : product(g, x, false, !tb, c.x(0)));
  c.set_dx(1, tb ? product(g, a, true, ta, c.x(1)) : product(a, g, !ta, false, c.x(1)));
  return c.status();
}

}  // namespace

void RegisterMatMulOps(OpRegistry& registry) {
  registry
      .Add(
          "SparseMatMul(a:Ta, b:Tb) -> (product:f32) | transpose_a:bool=false; transpose_b:bool=false; "
          "a_is_sparse:bool=false; b_is_sparse:bool=false; Ta in bf16|f32=f32; Tb in bf16|f32=f32")
      .Doc("MatMul of float32 and bfloat16 matrices. That an operand has many zeros is a hint, and changes no result.")
      .Shape(MatMulShape)
      .Gradient(SparseMatMulGrad)
      .Example("f32[2,3]~, f32[3,4]~")
      .Example("f32[3,2]~, f32[4,3]~ | transpose_a=true; transpose_b=true; a_is_sparse=true");
  registry.Add("MatMul(a:T, b:T) -> (product:T) | transpose_a:bool=false; transpose_b:bool=false; T in FC|IDX|i16")
      .Doc("Product of two matrices, either of them transposed first where its flag says so.")
      .Shape(MatMulShape)
      .Gradient(MatMulGrad)
      .Example("f32[2,3]~, f32[3,4]~")
      .Example("f64[3,2]~, f64[4,3]~ | transpose_a=true; transpose_b=true");
  // What the stage `fuse` makes, as _FusedConv2D.
  registry
      .Add(
          "_FusedMatMul(a:T, b:T, args:num_args*T) -> (product:T) | transpose_a:bool=false; transpose_b:bool=false; T "
          "in "
          "f32; num_args:int>=0; fused_ops:list(string)=[]; epsilon:float=0.0001; fused_names:list(string)=[]")
      .Doc(
          "MatMul and, in this order, some of BiasAdd, Add, and Relu or Relu6: `fused_ops`, whose other inputs are "
          "args.")
      .Shape(FusedMatMulShape)
      .NoGradient("gradients are taken of the ops that it stands for")
      .NoExample("graphs of clients do not have it");
  constexpr char kBatch[] = "(x:T, y:T) -> (output:T) | T in FC|IDX|i16; adj_x:bool=false; adj_y:bool=false";
  registry.Add(absl::StrCat("BatchMatMul", kBatch))
      .Doc(
          "Products of the matrices in the last two axes of x and y, whose other axes must agree; with a flag set, the "
          "conjugate transpose is taken first.")
      .Shape(BatchMatMulShape)
      .Gradient(BatchMatMulGrad)
      .Example("f32[2,2,3]~, f32[2,3,4]~")
      .Example("f64[2,3,2]~, f64[2,3,4]~ | adj_x=true");
  registry.Add(absl::StrCat("BatchMatMulV2", kBatch))
      .Doc(
          "Products of the matrices in the last two axes of x and y, whose other axes broadcast; with a flag set, the "
          "conjugate transpose is taken first.")
      .Shape(BatchMatMulV2Shape)
      .Gradient(BatchMatMulV2Grad)
      .Example("f32[2,2,3]~, f32[3,4]~")
      .Example("f64[2,1,3,2]~, f64[3,4,3]~ | adj_x=true; adj_y=true");
  registry
      .Add(
          "BatchMatMulV3(x:Ta, y:Tb) -> (output:Tout) | Ta in bf16|f16|f32|f64|u8|i8|i16|i32|i64|c64|c128; "
          "Tb in bf16|f16|f32|f64|u8|i8|i16|i32|i64|c64|c128; Tout in bf16|f16|f32|f64|i16|i32|i64|c64|c128; "
          "adj_x:bool=false; adj_y:bool=false; grad_x:bool=false; grad_y:bool=false")
      .Doc(
          "BatchMatMulV2 of matrices of one type, or of bytes, signed or not, with sums of int32. grad_x and grad_y "
          "are "
          "for readers of the graph.")
      .Shape(BatchMatMulV2Shape)
      .Gradient(BatchMatMulV3Grad)
      .Example("f32[2,2,3]~, f32[3,4]~ | Tout=f32")
      .Example("i8[2,3]#, u8[3,4]# | Tout=i32");
}

}  // namespace millrace
