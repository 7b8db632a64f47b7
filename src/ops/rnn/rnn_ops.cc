// SPDX-License-Identifier: Apache-2.0
// Fused recurrent cells, and LSTM layers over whole sequences.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

// Dimension `d` of input i, whose rank must be `rank` where it is known.
StatusOr<int64_t> DimOf(const ShapeContext& c, int i, int rank, int d) {
  MR_ASSIGN_OR_RETURN(const PartialShape s, c.WithRank(i, rank));
  return s.dim(d);
}

// What is known of [batch, units] from x (whose batch is dimension rank - 2), cs_prev and b, at inputs x, x+1 and x+7.
StatusOr<PartialShape> LstmState(const ShapeContext& c, int x, int x_rank) {
  MR_ASSIGN_OR_RETURN(const int64_t x_batch, DimOf(c, x, x_rank, x_rank - 2));
  MR_ASSIGN_OR_RETURN(const int64_t cs_batch, DimOf(c, x + 1, 2, 0));
  MR_ASSIGN_OR_RETURN(int64_t units, DimOf(c, x + 1, 2, 1));
  MR_RETURN_IF_ERROR(c.WithRank(x + 2, 2).status());
  MR_RETURN_IF_ERROR(c.WithRank(x + 3, 2).status());
  for (int i = 4; i < 8; ++i) MR_RETURN_IF_ERROR(c.WithRank(x + i, 1).status());
  const int64_t wide = c.input(x + 7).dim(0);
  if (units < 0 && wide >= 0) units = wide / 4;
  MR_ASSIGN_OR_RETURN(const int64_t batch, c.MergeDim(x_batch, cs_batch, "batch"));
  return PartialShape::Of({batch, units});
}

Status LstmCellShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape state, LstmState(c, 0, 2));
  for (int i = 0; i < 7; ++i) c.set_output(i, state);
  return absl::OkStatus();
}

Status BlockLstmShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_ASSIGN_OR_RETURN(const PartialShape state, LstmState(c, 1, 3));
  MR_ASSIGN_OR_RETURN(const int64_t steps, DimOf(c, 1, 3, 0));
  for (int i = 0; i < 7; ++i) c.set_output(i, PartialShape::Of({steps, state.dim(0), state.dim(1)}));
  return absl::OkStatus();
}

Status LstmCellGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape state, LstmState(c, 0, 2));
  const int64_t units = state.dim(1);
  MR_ASSIGN_OR_RETURN(const int64_t wide, DimOf(c, 7, 1, 0));
  c.set_output(0, state);
  c.set_output(1, PartialShape::Of({state.dim(0), wide}));
  for (int i = 2; i < 5; ++i) c.set_output(i, PartialShape::Of({units}));
  return absl::OkStatus();
}

// The gradients of inputs 1 to 8 look like them.
Status BlockLstmGradShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(LstmState(c, 1, 3).status());
  for (int i = 0; i < 8; ++i) c.set_output(i, c.input(1 + i));
  return absl::OkStatus();
}

// What is known of h from x and h_prev.
StatusOr<PartialShape> GruState(const ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t x_batch, DimOf(c, 0, 2, 0));
  MR_ASSIGN_OR_RETURN(const int64_t h_batch, DimOf(c, 1, 2, 0));
  MR_ASSIGN_OR_RETURN(const int64_t units, DimOf(c, 1, 2, 1));
  for (int i = 2; i < 4; ++i) MR_RETURN_IF_ERROR(c.WithRank(i, 2).status());
  for (int i = 4; i < 6; ++i) MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  MR_ASSIGN_OR_RETURN(const int64_t batch, c.MergeDim(x_batch, h_batch, "batch"));
  return PartialShape::Of({batch, units});
}

Status GruCellShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape state, GruState(c));
  for (int i = 0; i < 4; ++i) c.set_output(i, state);
  return absl::OkStatus();
}

Status GruCellGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape state, GruState(c));
  const int64_t units = state.dim(1);
  c.set_output(0, c.input(0));
  c.set_output(1, state);
  c.set_output(2, state);
  c.set_output(3, PartialShape::Of({state.dim(0), units < 0 ? -1 : 2 * units}));
  return absl::OkStatus();
}

// [a, b] along the second dimension.
Output Beside(const GraphBuilder& b, Output x, Output y) {
  return b.Op("ConcatV2", {std::vector<Output>{x, y}, b.Scalar<int32_t>(1)});
}

// Only cs and h pass gradients on; the other outputs are there for the gradient op.
Status BlockLstmGradient(GradContext& g) {
  MR_ASSIGN_OR_RETURN(const bool use_peephole, g.Attr<bool>("use_peephole"));
  std::vector<Arg> inputs;
  for (int i = 0; i < 9; ++i) inputs.emplace_back(g.x(i));
  for (int i = 0; i < 7; ++i) inputs.emplace_back(g.y(i));
  inputs.emplace_back(g.dy(1));
  inputs.emplace_back(g.dy(6));
  const char* op = g.node()->op_name() == "BlockLSTM" ? "BlockLSTMGrad" : "BlockLSTMGradV2";
  Node* n = g.b().OpNode(op, std::move(inputs), {{"use_peephole", use_peephole}});
  if (n) {
    for (int i = 0; i < 8; ++i) g.set_dx(1 + i, n->output(i));
  }
  return g.status();
}

Status LstmCellGradient(GradContext& g) {
  const GraphBuilder& b = g.b();
  MR_ASSIGN_OR_RETURN(const bool use_peephole, g.Attr<bool>("use_peephole"));
  const Output x = g.x(0), h_prev = g.x(2), w = g.x(3);
  std::vector<Arg> inputs;
  for (int i = 0; i < 8; ++i) inputs.emplace_back(g.x(i));
  for (int i = 0; i < 6; ++i) inputs.emplace_back(g.y(i));
  inputs.emplace_back(g.dy(1));
  inputs.emplace_back(g.dy(6));
  Node* n = b.OpNode("LSTMBlockCellGrad", std::move(inputs), {{"use_peephole", use_peephole}});
  if (!n) return g.status();
  const Output gates = n->output(1);
  Node* offset = b.OpNode("ConcatOffset", {b.Scalar<int32_t>(1), std::vector<Output>{b.Shape(x), b.Shape(h_prev)}});
  const Output both = b.MatMul(gates, w, false, true);
  if (!offset) return g.status();
  g.set_dx(0, b.Op("Slice", {both, offset->output(0), b.Shape(x)}));
  g.set_dx(1, n->output(0));
  g.set_dx(2, b.Op("Slice", {both, offset->output(1), b.Shape(h_prev)}));
  g.set_dx(3, b.MatMul(Beside(b, x, h_prev), gates, true, false));
  for (int i = 0; i < 3; ++i) g.set_dx(4 + i, n->output(2 + i));
  g.set_dx(7, b.Op("BiasAddGrad", {gates}));
  return g.status();
}

Status GruCellGradient(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Output x = g.x(0), h_prev = g.x(1);
  std::vector<Arg> inputs;
  for (int i = 0; i < 6; ++i) inputs.emplace_back(g.x(i));
  for (int i = 0; i < 3; ++i) inputs.emplace_back(g.y(i));
  inputs.emplace_back(g.dy(3));
  Node* n = b.OpNode("GRUBlockCellGrad", std::move(inputs), {});
  if (!n) return g.status();
  const Output candidate = n->output(2), gates = n->output(3);
  g.set_dx(0, n->output(0));
  g.set_dx(1, n->output(1));
  g.set_dx(2, b.MatMul(Beside(b, x, h_prev), gates, true, false));
  g.set_dx(3, b.MatMul(Beside(b, x, b.Mul(h_prev, g.y(0))), candidate, true, false));
  g.set_dx(4, b.Op("BiasAddGrad", {gates}));
  g.set_dx(5, b.Op("BiasAddGrad", {candidate}));
  return g.status();
}

constexpr char kNoSecond[] =
    "gradients of the gradients of fused recurrent cells are not there: build the cell from ops";

void RegisterLstm(OpRegistry& r) {
  r.Add(
       "LSTMBlockCell(x:T, cs_prev:T, h_prev:T, w:T, wci:T, wcf:T, wco:T, b:T) -> (i:T, cs:T, f:T, o:T, ci:T, co:T, "
       "h:T) | forget_bias:float=1; cell_clip:float=3; use_peephole:bool=false; T in f16|f32")
      .Doc(
          "One step of an LSTM cell: [x, h_prev] w + b gives input gate, candidate, forget gate and output gate (a "
          "quarter of the columns each, in this order); the new state cs = ci * i + cs_prev * f is clipped to "
          "cell_clip if that is positive, and h = tanh(cs) * o. Gradients flow through cs and h.")
      .Shape(LstmCellShape)
      .Gradient(LstmCellGradient)
      .Example("f32[2,3]~, f32[2,2]~, f32[2,2]~, f32[5,8]~, f32[2]~, f32[2]~, f32[2]~, f32[8]~ | use_peephole=true");
  r.Add(
       "LSTMBlockCellGrad(x:T, cs_prev:T, h_prev:T, w:T, wci:T, wcf:T, wco:T, b:T, i:T, cs:T, f:T, o:T, ci:T, co:T, "
       "cs_grad:T, h_grad:T) -> (cs_prev_grad:T, dicfo:T, wci_grad:T, wcf_grad:T, wco_grad:T) | use_peephole:bool; "
       "T in f16|f32")
      .Doc(
          "The part of LSTMBlockCell's gradient between the matrix products: that of cs_prev, of the four gates before "
          "their activation (dicfo), and of the peephole weights.")
      .Shape(LstmCellGradShape)
      .NoGradient(kNoSecond)
      .Example(
          "f32[2,3]~, f32[2,2]~, f32[2,2]~, f32[5,8]~, f32[2]~, f32[2]~, f32[2]~, f32[8]~, f32[2,2]~, f32[2,2]~, "
          "f32[2,2]~, f32[2,2]~, f32[2,2]~, f32[2,2]~, f32[2,2]~, f32[2,2]~ | use_peephole=true");
  for (const bool v2 : {false, true}) {
    r.Add(absl::StrCat("BlockLSTM", v2 ? "V2" : "",
                       "(seq_len_max:i64, x:T, cs_prev:T, h_prev:T, w:T, wci:T, wcf:T, wco:T, "
                       "b:T) -> (i:T, cs:T, f:T, o:T, ci:T, co:T, h:T) | ",
                       v2 ? "" : "forget_bias:float=1; ", "cell_clip:float=", v2 ? "0" : "3",
                       "; use_peephole:bool=false; T in f16|f32"))
        .Doc(absl::StrCat(
            "A layer of LSTM cells over a sequence x [steps, batch, inputs], of which seq_len_max steps are run "
            "and the rest of the outputs is zero. The columns of w and b serve ",
            v2 ? "input gate, forget gate, candidate and output gate; the forget bias is part of b."
               : "input gate, candidate, forget gate and output gate; see LSTMBlockCell.",
            " Gradients flow through cs and h."))
        .Shape(BlockLstmShape)
        .Gradient(BlockLstmGradient)
        .Example(
            "i64[]{2}, f32[3,2,3]~, f32[2,2]~, f32[2,2]~, f32[5,8]~, f32[2]~, f32[2]~, f32[2]~, f32[8]~ | "
            "use_peephole=true");
    r.Add(absl::StrCat("BlockLSTMGrad", v2 ? "V2" : "",
                       "(seq_len_max:i64, x:T, cs_prev:T, h_prev:T, w:T, wci:T, wcf:T, "
                       "wco:T, b:T, i:T, cs:T, f:T, o:T, ci:T, co:T, h:T, cs_grad:T, h_grad:T) -> (x_grad:T, "
                       "cs_prev_grad:T, h_prev_grad:T, w_grad:T, wci_grad:T, wcf_grad:T, wco_grad:T, b_grad:T) | "
                       "use_peephole:bool; T in f16|f32"))
        .Doc(absl::StrCat("Gradient of BlockLSTM", v2 ? "V2" : "", " with respect to all inputs but the length."))
        .Shape(BlockLstmGradShape)
        .NoGradient(kNoSecond)
        .Example(
            "i64[]{2}, f32[2,2,3]~, f32[2,2]~, f32[2,2]~, f32[5,8]~, f32[2]~, f32[2]~, f32[2]~, f32[8]~, f32[2,2,2]~, "
            "f32[2,2,2]~, f32[2,2,2]~, f32[2,2,2]~, f32[2,2,2]~, f32[2,2,2]~, f32[2,2,2]~, f32[2,2,2]~, f32[2,2,2]~ | "
            "use_peephole=false");
  }
}

void RegisterGru(OpRegistry& r) {
  r.Add("GRUBlockCell(x:T, h_prev:T, w_ru:T, w_c:T, b_ru:T, b_c:T) -> (r:T, u:T, c:T, h:T) | T in f32")
      .Doc(
          "One step of a gated recurrent unit (Cho et al. 2014): [r, u] = sigmoid([x, h_prev] w_ru + b_ru), "
          "c = tanh([x, h_prev * r] w_c + b_c), h = u * h_prev + (1 - u) * c. Gradients flow through h.")
      .Shape(GruCellShape)
      .Gradient(GruCellGradient)
      .Example("f32[2,3]~, f32[2,2]~, f32[5,4]~, f32[5,2]~, f32[4]~, f32[2]~");
  r.Add(
       "GRUBlockCellGrad(x:T, h_prev:T, w_ru:T, w_c:T, b_ru:T, b_c:T, r:T, u:T, c:T, d_h:T) -> (d_x:T, d_h_prev:T, "
       "d_c_bar:T, d_r_bar_u_bar:T) | T in f32")
      .Doc("Gradient of GRUBlockCell: of x, of h_prev, and of candidate and gates before their activation.")
      .Shape(GruCellGradShape)
      .NoGradient(kNoSecond)
      .Example(
          "f32[2,3]~, f32[2,2]~, f32[5,4]~, f32[5,2]~, f32[4]~, f32[2]~, f32[2,2]~, f32[2,2]~, f32[2,2]~, f32[2,2]~");
}

}  // namespace

void RegisterRnnOps(OpRegistry& r) {
  RegisterLstm(r);
  RegisterGru(r);
}

}  // namespace millrace
