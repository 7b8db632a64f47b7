// SPDX-License-Identifier: Apache-2.0
// Bands, places, replaced rows, quantized numbers, matrices of three diagonals: numbers and shapes that do not fit.
#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

using K = std::vector<int32_t>;

TEST(BadInput, BandsOutsideOfTheMatrix) {
  for (const K& k : {K{5}, K{-5}, K{INT32_MAX}, K{INT32_MIN}, K{1, 0}, K{INT32_MIN, INT32_MAX}, K{0, 1, 2}, K{}}) {
    for (const char* version : {"V2", "V3"}) {
      const Dims dims = {static_cast<int64_t>(k.size())};
      GraphMaker part;
      part.F32("x", {2, 3}).I32("k", dims, k).F32("p", {});
      Check(part.Op("bad", std::string("MatrixDiagPart") + version, {"x", "k", "p"}));
      GraphMaker set;
      set.F32("x", {2, 3}).F32("d", {2}).I32("k", dims, k);
      Check(set.Op("bad", std::string("MatrixSetDiag") + version, {"x", "d", "k"}));
    }
  }
  for (const auto& [k, rows, cols] :
       {std::tuple(K{0}, 1, -1), std::tuple(K{0}, -2, -2), std::tuple(K{1}, 3, 2), std::tuple(K{0}, 4, 5),
        std::tuple(K{-1, 1}, -1, -1), std::tuple(K{2, 1}, -1, -1)}) {
    GraphMaker g;
    g.F32("d", {3})
        .I32("k", {static_cast<int64_t>(k.size())}, k)
        .I32("r", {}, {rows})
        .I32("c", {}, {cols})
        .F32("p", {});
    Check(g.Op("bad", "MatrixDiagV2", {"d", "k", "r", "c", "p"}));
  }
  for (const K& k : {K{INT32_MAX}, K{INT32_MIN}}) {  // a matrix of 2^62 elements
    GraphMaker g;
    g.F32("d", {3}).I32("k", {1}, k).I32("n", {}, {-1}).F32("p", {});
    Check(g.Op("bad", "MatrixDiagV2", {"d", "k", "n", "n", "p"}), kTooLarge);
  }
  GraphMaker padding;
  padding.F32("x", {2, 3}).I32("k", {}).F32("p", {2});
  Check(padding.Op("bad", "MatrixDiagPartV2", {"x", "k", "p"}));
}

TEST(BadInput, PlacesThatAreNone) {
  for (const auto& [at, dims] :
       {std::pair(K{7}, K{2, 3}), std::pair(K{-1}, K{2, 3}), std::pair(K{0}, K{0, 3}), std::pair(K{0}, K{-2, 3}),
        std::pair(K{0}, K{INT32_MAX, INT32_MAX}), std::pair(K{0}, K{})}) {
    GraphMaker g;
    g.I32("i", {1}, at).I32("d", {static_cast<int64_t>(dims.size())}, dims).Op("bad", "UnravelIndex", {"i", "d"});
    Check(g, dims.empty() ? Codes{absl::StatusCode::kOk} : kInvalid);
  }
  for (const char* op : {"LowerBound", "UpperBound"}) {
    for (const auto& [s, v] :
         {std::pair(Dims{3}, Dims{1, 2}), std::pair(Dims{1, 3}, Dims{2}), std::pair(Dims{1, 3}, Dims{2, 2})}) {
      GraphMaker g;
      g.F32("s", s).F32("v", v).Op("bad", op, {"s", "v"});
      Check(g);
    }
  }
  for (const int32_t bins : {0, -1, INT32_MIN}) {
    GraphMaker g;
    g.F32("v", {3}).F32("r", {2}, {0, 1}).I32("n", {}, {bins}).Op("bad", "HistogramFixedWidth", {"v", "r", "n"});
    Check(g);
  }
  GraphMaker range;
  range.F32("v", {3}).F32("r", {2}, {1, 1}).I32("n", {}, {3}).Op("bad", "HistogramFixedWidth", {"v", "r", "n"});
  Check(range);
  GraphMaker packed;  // not eight in a row
  packed.F32("x", {3, 4}).F32("t", {}).Op("bad", "CompareAndBitpack", {"x", "t"});
  Check(packed);
}

TEST(BadInput, RowsThatDoNotFit) {
  for (const char* op : {"InplaceUpdate", "InplaceAdd", "InplaceSub"}) {
    for (const auto& [x, i, v] :
         {std::tuple(Dims{3, 2}, Dims{1}, Dims{1, 3}), std::tuple(Dims{3, 2}, Dims{2}, Dims{1, 2}),
          std::tuple(Dims{3, 2}, Dims{1, 1}, Dims{1, 2}), std::tuple(Dims{}, Dims{1}, Dims{1}),
          std::tuple(Dims{0, 2}, Dims{1}, Dims{1, 2})}) {
      GraphMaker g;
      g.F32("x", x).I32("i", i, {INT32_MIN}).F32("v", v).Op("bad", op, {"x", "i", "v"});
      Check(g);
    }
    GraphMaker wraps;
    wraps.F32("x", {3, 2}).I32("i", {2}, {INT32_MIN, INT32_MAX}).F32("v", {2, 2}).Op("bad", op, {"x", "i", "v"});
    Check(wraps, kOk);
  }
}

TEST(BadInput, RangesOfQuantizedNumbers) {
  for (const auto& [lo, hi] : {std::pair(1.0F, -1.0F), std::pair(3.0F, 2.0F)}) {
    GraphMaker g;
    g.F32("x", {4}).F32("lo", {}, {lo}).F32("hi", {}, {hi});
    Check(g.Op("bad", "QuantizeV2", {"x", "lo", "hi"}, {{"T", Type(DType::kQUInt8)}}));
  }
  const auto quantized = [](GraphMaker& g, const std::string& name, const Dims& dims) {
    g.F32(name + "/x", dims, {1}).F32(name + "/lo", {}, {-1}).F32(name + "/hi", {}, {1});
    g.Op(name, "QuantizeV2", {name + "/x", name + "/lo", name + "/hi"}, {{"T", Type(DType::kQUInt8)}});
  };
  for (const auto& [a, b] :
       {std::pair(Dims{2, 3}, Dims{2, 3}), std::pair(Dims{3}, Dims{3, 1}), std::pair(Dims{0, 3}, Dims{2, 1})}) {
    GraphMaker g;
    quantized(g, "a", a);
    quantized(g, "b", b);
    Check(g.Op("bad", "QuantizedMatMul", {"a", "b", "a:1", "a:2", "b:1", "b:2"},
               {{"T1", Type(DType::kQUInt8)}, {"T2", Type(DType::kQUInt8)}}));
  }
  for (const auto& [x, f] : {std::pair(Dims{1, 3, 3, 2}, Dims{2, 2, 1, 1}), std::pair(Dims{3, 3, 2}, Dims{2, 2, 2, 1}),
                             std::pair(Dims{1, 3, 3, 2}, Dims{2, 2, 2})}) {
    GraphMaker g;
    quantized(g, "a", x);
    quantized(g, "b", f);
    Check(g.Op("bad", "QuantizedConv2D", {"a", "b", "a:1", "a:2", "b:1", "b:2"},
               {{"Tinput", Type(DType::kQUInt8)},
                {"Tfilter", Type(DType::kQUInt8)},
                {"strides", Ints({1, 1, 1, 1})},
                {"padding", Str("VALID")}}));
  }
  for (const auto& ksize :
       {Ints({1, 0, 1, 1}), Ints({1, INT64_MAX, INT64_MAX, 1}), Ints({1, 1, 1}), Ints({1, -1, 1, 1})}) {
    GraphMaker g;
    quantized(g, "a", {1, 3, 3, 2});
    Check(g.Op(
        "bad", "QuantizedMaxPool", {"a", "a:1", "a:2"},
        {{"T", Type(DType::kQUInt8)}, {"ksize", ksize}, {"strides", Ints({1, 1, 1, 1})}, {"padding", Str("VALID")}}));
  }
}

TEST(BadInput, MatricesOfThreeDiagonals) {
  for (const auto& [d, x] :
       {std::pair(Dims{2, 3}, Dims{3, 1}), std::pair(Dims{3, 3}, Dims{2, 1}), std::pair(Dims{3}, Dims{3, 1}),
        std::pair(Dims{2, 3, 3}, Dims{3, 3, 1}), std::pair(Dims{3, 3}, Dims{3})}) {
    GraphMaker g;
    g.F32("d", d).F32("x", x).Op("bad", "TridiagonalSolve", {"d", "x"});
    Check(g);
  }
  for (const Dims& d : {Dims{3}, Dims{1, 2}, Dims{2, 1, 3}, Dims{3, 1}}) {
    GraphMaker g;
    g.F32("d", d).F32("x", {3, 2}).Op("bad", "TridiagonalMatMul", {"d", "d", "d", "x"});
    Check(g);
  }
  for (const char* op : {"MatrixExponential", "MatrixSquareRoot"}) {
    for (const Dims& d : {Dims{}, Dims{3}, Dims{2, 3}, Dims{0, 3}}) {
      GraphMaker g;
      g.F32("x", d).Op("bad", op, {"x"});
      Check(g);
    }
  }
}

}  // namespace
}  // namespace millrace::bad_inputs
