// SPDX-License-Identifier: Apache-2.0
// Windows, filters and channels that do not fit.
#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

const wire::AttrValue kF32 = Type(DType::kFloat);

Attrs Conv(std::vector<int64_t> strides, const char* padding = "SAME", std::vector<int64_t> dilations = {1, 1, 1, 1}) {
  return {{"strides", Ints(std::move(strides))}, {"padding", Str(padding)}, {"dilations", Ints(std::move(dilations))}};
}
Attrs Pool(std::vector<int64_t> ksize, std::vector<int64_t> strides, const char* padding = "VALID") {
  return {{"ksize", Ints(std::move(ksize))}, {"strides", Ints(std::move(strides))}, {"padding", Str(padding)}};
}

TEST(BadInput, K01_ConvStridesAndDilations) {
  for (const std::vector<int64_t>& v :
       {std::vector<int64_t>{1, 0, 1, 1},
        {1, -1, 1, 1},
        {1, 1, 1},
        {},
        {1, int64_t{1} << 40, 1, 1},
        {1, INT64_MIN, 1, 1},
        {1, 1, 1, 1, 1}}) {
    GraphMaker stride;
    stride.F32("x", {1, 4, 4, 1}).F32("f", {2, 2, 1, 1}).Op("bad", "Conv2D", {"x", "f"}, Conv(v));
    Check(stride);
    GraphMaker dilation;
    dilation.F32("x", {1, 4, 4, 1})
        .F32("f", {2, 2, 1, 1})
        .Op("bad", "Conv2D", {"x", "f"}, Conv({1, 1, 1, 1}, "SAME", v));
    Check(dilation);
  }
}

TEST(BadInput, K01_DepthwiseFarBeyondTheImage) {
  GraphMaker g;
  g.F32("x", {1, 1, 1, 2}).F32("f", {2, 2, 2, 1});
  Check(g.Op("bad", "DepthwiseConv2dNative", {"x", "f"}, Conv({1, 1, 1, 1}, "SAME", {1, 65536, 65536, 1})), kOk);
}

TEST(BadInput, K01_ConvFilters) {
  for (const Dims& f : {Dims{2, 2, 3, 1}, Dims{2, 2, 1}, Dims{}, Dims{2, 2, 0, 1}}) {
    GraphMaker g;
    g.F32("x", {1, 4, 4, 1}).F32("f", f).Op("bad", "Conv2D", {"x", "f"}, Conv({1, 1, 1, 1}, "VALID"));
    Check(g);
  }
  GraphMaker wide;  // wider than the image: kernels answer with an empty image
  wide.F32("x", {1, 4, 4, 1}).F32("f", {6, 6, 1, 1}).Op("bad", "Conv2D", {"x", "f"}, Conv({1, 1, 1, 1}, "VALID"));
  Check(wide, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
  GraphMaker none;  // no filter at all: no crash, whatever the answer
  none.F32("x", {1, 4, 4, 1}).F32("f", {0, 0, 1, 1}).Op("bad", "Conv2D", {"x", "f"}, Conv({1, 1, 1, 1}, "SAME"));
  Check(none, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
}

TEST(BadInput, K01_ConvExplicitPadding) {
  for (const std::vector<int64_t>& pad :
       {std::vector<int64_t>{0, 0, -1, 0, 0, 0, 0, 0},
        {0, 0, 1},
        {},
        {1, 0, 0, 0, 0, 0, 0, 0},
        {0, 0, INT64_MAX, INT64_MAX, 0, 0, 0, 0},
        {0, 0, int64_t{1} << 40, 0, int64_t{1} << 40, 0, 0, 0}}) {
    GraphMaker g;
    Attrs attrs = Conv({1, 1, 1, 1}, "EXPLICIT");
    attrs.emplace_back("explicit_paddings", Ints(pad));
    g.F32("x", {1, 4, 4, 1}).F32("f", {2, 2, 1, 1}).Op("bad", "Conv2D", {"x", "f"}, attrs);
    Check(g, kTooLarge);
  }
}

TEST(BadInput, K02_ConvBackpropInput) {
  GraphMaker g;
  g.I32("s", {4}, {3, 1, 1, 2}).F32("f", {1, 3, 2, 3}).F32("d", {3, 1, 0, 3});
  g.Op("bad", "Conv2DBackpropInput", {"s", "f", "d"}, Conv({1, 1, 2, 1}, "VALID"));
  Check(g, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kOk});
  for (const std::vector<int32_t>& s :
       {std::vector<int32_t>{-1, -1, -1, -1},
        {1, 4, 4, 9},
        {INT32_MAX, INT32_MAX, 4, 1},
        {1, 4},
        {1, 4, 9, 1},
        {2, 4, 4, 1}}) {
    GraphMaker h;
    h.I32("s", {static_cast<int64_t>(s.size())}, s).F32("f", {2, 2, 1, 1}).F32("d", {1, 4, 4, 1});
    h.Op("bad", "Conv2DBackpropInput", {"s", "f", "d"}, Conv({1, 1, 1, 1}));
    if (s.size() == 2) continue;  // height and width only: a form of its own
    Check(h);
  }
}

TEST(BadInput, K03_ConvBackpropFilter) {
  for (const std::vector<int32_t>& s :
       {std::vector<int32_t>{2, 2, 3, 1}, {-1, 2, 1, 1}, {2, 2, 1, 5}, {2, 2}, {INT32_MAX, INT32_MAX, 1, 1}}) {
    GraphMaker g;
    g.F32("x", {1, 4, 4, 1}).I32("s", {static_cast<int64_t>(s.size())}, s).F32("d", {1, 4, 4, 1});
    g.Op("bad", "Conv2DBackpropFilter", {"x", "s", "d"}, Conv({1, 1, 1, 1}));
    Check(g, kTooLarge);
  }
  GraphMaker empty;
  empty.F32("x", {0, 0, 0, 0}).I32("s", {4}, {0}).F32("d", {0, 0, 0, 0});
  empty.Op("bad", "Conv2DBackpropFilter", {"x", "s", "d"}, Conv({1, 1, 1, 1}));
  Check(empty, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kOk});
}

TEST(BadInput, K04_PoolWindows) {
  for (const std::vector<int64_t>& v :
       {std::vector<int64_t>{1, 0, 2, 1},
        {1, -1, 2, 1},
        {1, 2, 2},
        {1, INT64_MAX, 2, 1},
        {1, int64_t{1} << 33, 2, 1},
        {1, INT64_MIN, 2, 1}}) {
    for (const char* op : {"MaxPool", "AvgPool"}) {
      GraphMaker k;
      k.F32("x", {1, 4, 4, 1}).Op("bad", op, {"x"}, Pool(v, {1, 2, 2, 1}));
      Check(k);
      GraphMaker s;
      s.F32("x", {1, 4, 4, 1}).Op("bad", op, {"x"}, Pool({1, 2, 2, 1}, v));
      const bool legal = v.size() == 4 && v[1] > 2;  // a stride longer than the image
      Check(s, legal ? Codes{absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument} : kInvalid);
    }
  }
  GraphMaker rank;
  rank.F32("x", {4, 4}).Op("bad", "MaxPool", {"x"}, Pool({1, 2, 2, 1}, {1, 2, 2, 1}));
  Check(rank);
}

TEST(BadInput, K05_MaxPoolGrad) {
  for (const Dims& grad : {Dims{0, 0, 0, 0}, Dims{1, 9, 9, 1}, Dims{}, Dims{1, 1, 1, 7}}) {
    GraphMaker g;
    g.F32("x", {1, 1, 1, 1}).F32("d", grad);
    g.Op("bad", "MaxPoolGrad", {"x", "x", "d"}, Pool({1, 1, 1, 1}, {1, 1, 1, 1}));
    Check(g);
    GraphMaker y;
    y.F32("x", {1, 1, 1, 1}).F32("y", grad).Op("bad", "MaxPoolGrad", {"x", "y", "x"}, Pool({1, 1, 1, 1}, {1, 1, 1, 1}));
    Check(y);
  }
  GraphMaker arg;
  arg.F32("x", {1, 2, 2, 1}).F32("d", {1, 1, 1, 1}).I64("i", {1, 1, 1, 1}, {int64_t{1} << 40});
  arg.Op("bad", "MaxPoolGradWithArgmax", {"x", "d", "i"}, Pool({1, 2, 2, 1}, {1, 2, 2, 1}));
  Check(arg);
}

TEST(BadInput, K07_BatchNormChannels) {
  for (const Dims& scale : {Dims{1}, Dims{0}, Dims{}, Dims{5}, Dims{3, 1}}) {
    GraphMaker g;
    g.F32("x", {1, 2, 2, 3}).F32("s", scale, {1}).F32("o", {3}).F32("e", {0});
    g.Op("bad", "FusedBatchNorm", {"x", "s", "o", "e", "e"});
    Check(g);
    GraphMaker mean;
    mean.F32("x", {1, 2, 2, 3}).F32("s", {3}, {1}).F32("m", scale, {1});
    mean.Op("bad", "FusedBatchNorm", {"x", "s", "s", "m", "s"}, {{"is_training", Bool(false)}});
    Check(mean);
    GraphMaker grad;
    grad.F32("x", {1, 2, 2, 3}).F32("s", scale, {1}).F32("r", {3}, {1});
    grad.Op("bad", "FusedBatchNormGrad", {"x", "x", "s", "r", "r"});
    Check(grad);
  }
  GraphMaker none;
  none.F32("x", {1, 2, 2, 0}).F32("s", {0}).Op("bad", "FusedBatchNorm", {"x", "s", "s", "s", "s"});
  Check(none, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
}

TEST(BadInput, K07_BiasAndLrn) {
  GraphMaker bias;
  bias.F32("x", {2, 3}).F32("b", {4}).Op("bad", "BiasAdd", {"x", "b"});
  Check(bias);
  GraphMaker scalar;
  scalar.F32("x", {3}).F32("b", {3}).Op("bad", "BiasAdd", {"x", "b"});
  Check(scalar);
  GraphMaker lrn;
  lrn.F32("x", {1, 2, 2, 3}).Op("bad", "LRN", {"x"}, {{"depth_radius", Int(INT64_MAX)}});
  Check(lrn, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
}

TEST(BadInput, K07_LabelsOutOfRange) {
  for (int64_t label : {int64_t{-1}, int64_t{3}, INT64_MAX}) {
    GraphMaker g;
    g.F32("x", {2, 3}).I64("l", {2}, {label}).Op("bad", "SparseSoftmaxCrossEntropyWithLogits", {"x", "l"});
    Check(g, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
  }
  GraphMaker count;
  count.F32("x", {2, 3}).I64("l", {5}).Op("bad", "SparseSoftmaxCrossEntropyWithLogits", {"x", "l"});
  Check(count);
  GraphMaker top;
  top.F32("x", {2, 3}).I32("l", {5}).Op("bad", "InTopK", {"x", "l"}, {{"k", Int(1)}});
  Check(top);
}

TEST(BadInput, K14_ConvOfNoImages) {
  GraphMaker g;
  g.F32("x", {0, 4, 4, 1}).F32("f", {2, 2, 1, 3}).Op("bad", "Conv2D", {"x", "f"}, Conv({1, 1, 1, 1}));
  Check(g, kOk);
  GraphMaker p;
  p.F32("x", {0, 4, 4, 1}).Op("bad", "MaxPool", {"x"}, Pool({1, 2, 2, 1}, {1, 2, 2, 1}));
  Check(p, kOk);
}

TEST(BadInput, S12_BlocksOfImages) {
  for (int64_t block : {int64_t{0}, int64_t{-1}, int64_t{3}, INT64_MAX, int64_t{1} << 32}) {
    for (const char* op : {"SpaceToDepth", "DepthToSpace"}) {
      GraphMaker g;
      g.F32("x", {1, 4, 4, 4}).Op("bad", op, {"x"}, {{"block_size", Int(block)}});
      Check(g);
    }
    if (block == 3) continue;
    GraphMaker patches;
    patches.F32("x", {1, 4, 4, 4});
    patches.Op("bad", "ExtractImagePatches", {"x"},
               {{"ksizes", Ints({1, block, 2, 1})},
                {"strides", Ints({1, 1, 1, 1})},
                {"rates", Ints({1, 1, 1, 1})},
                {"padding", Str("VALID")}});
    Check(patches);
  }
}

}  // namespace
}  // namespace millrace::bad_inputs
