// SPDX-License-Identifier: Apache-2.0
// Inputs that ops of tf.contrib must refuse.
#include <cmath>
#include <limits>

#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

using absl::StatusCode;

TEST(BadInput, SlicesToReduce) {
  struct Bad {
    Dims data, indices;
    std::vector<int64_t> places;
    int64_t axis;
  };
  for (const Bad& bad :
       {Bad{{}, {2}, {0, 1}, 0}, Bad{{3}, {}, {0}, 0}, Bad{{3}, {1, 3}, {0, 1, 2}, 0}, Bad{{3}, {1, 1, 2}, {0, 1}, 0},
        Bad{{3}, {2}, {0, 1}, 1}, Bad{{3}, {2}, {0, 1}, -2}, Bad{{3}, {2}, {0, 1}, INT64_MIN},
        Bad{{3}, {2}, {-1, 2}, 0}, Bad{{3}, {1, 2}, {INT64_MIN, INT64_MAX}, 0}}) {
    for (const char* op : {"ReduceSliceSum", "ReduceSliceMax"}) {
      GraphMaker g;
      g.F32("data", bad.data).I64("indices", bad.indices, bad.places).I64("axis", {}, {bad.axis});
      g.Op("bad", op, {"data", "indices", "axis"});
      Check(g);
    }
  }
}

TEST(BadInput, PlacesInImages) {
  struct Bad {
    Dims data, warp;
  };
  for (const Bad& bad :
       {Bad{{1, 2, 2}, {1, 2}}, Bad{{1, 2, 2, 1}, {2}}, Bad{{1, 2, 2, 1}, {1, 3}}, Bad{{1, 2, 2, 1}, {2, 2}}}) {
    GraphMaker g;
    g.F32("data", bad.data).F32("warp", bad.warp).Op("bad", "Resampler", {"data", "warp"});
    Check(g, {StatusCode::kInvalidArgument, StatusCode::kUnimplemented});
  }
  GraphMaker grad;
  grad.F32("data", {1, 2, 2, 1}).F32("warp", {1, 2}).F32("grad", {1, 2});
  grad.Op("bad", "ResamplerGrad", {"data", "warp", "grad"});
  Check(grad);
  for (const float v : {std::nanf(""), std::numeric_limits<float>::infinity(), -1e30f, 1e30f}) {
    GraphMaker far;
    far.F32("data", {1, 2, 2, 1}).F32("warp", {1, 2}, {v}).Op("bad", "Resampler", {"data", "warp"});
    Check(far, kOk);
  }
}

TEST(BadInput, PairsOfRowsAndColumns) {
  for (const float rows : {3.0f, 1e30f, std::numeric_limits<float>::infinity()}) {
    GraphMaker g;
    g.F32("far", {2, 2}).F32("rows", {}, {rows}).Op("bad", "BipartiteMatch", {"far", "rows"});
    Check(g);
  }
  GraphMaker two;
  two.F32("far", {2, 2}).F32("rows", {2}, {1}).Op("bad", "BipartiteMatch", {"far", "rows"});
  Check(two);
  GraphMaker vector;
  vector.F32("far", {2}).F32("rows", {}, {1}).Op("bad", "BipartiteMatch", {"far", "rows"});
  Check(vector);
  GraphMaker nan;
  nan.F32("far", {3, 3}, {std::nanf(""), 1, std::nanf("")}).F32("rows", {}, {std::nanf("")});
  nan.Op("bad", "BipartiteMatch", {"far", "rows"});
  Check(nan, kOk);
}

TEST(BadInput, PixelsThatBelongTogether) {
  for (const Dims& dims : {Dims{}, Dims{2, 2}, Dims{1, 2, 2, 1}}) {
    GraphMaker g;
    g.F32("image", dims).Op("bad", "ImageConnectedComponents", {"image"});
    Check(g);
  }
}

TEST(BadInput, ColoursInYiq) {
  for (const Dims& dims : {Dims{2, 3}, Dims{2, 2, 4}}) {
    GraphMaker g;
    g.F32("image", dims).F32("by", {}, {1}).Op("bad", "AdjustHsvInYiq", {"image", "by", "by", "by"});
    Check(g);
  }
  GraphMaker g;
  g.F32("image", {2, 2, 3}).F32("by", {}, {1}).F32("two", {2});
  g.Op("bad", "AdjustHsvInYiq", {"image", "by", "by", "two"});
  Check(g);
}

TEST(BadInput, Stereograms) {
  const float nan = std::nanf("");
  const std::pair<std::string, wire::AttrValue> small = {"output_image_shape", ShapeOf({8, 8, 1})},
                                                window = {"output_data_window", ShapeOf({8, 8})};
  for (const Attrs& attrs :
       {Attrs{{"mu", Float(0)}, small, window}, Attrs{{"mu", Float(nan)}, small, window},
        Attrs{{"mu", Float(-1)}, small, window}, Attrs{{"eye_separation", Float(nan)}, small, window},
        Attrs{{"dots_per_inch", Int(-5)}, small, window}, Attrs{{"dots_per_inch", Int(INT64_MAX)}, small, window},
        Attrs{{"border_level", Float(nan)}, small, window}, Attrs{{"convergence_dots_size", Int(-1)}, small, window},
        Attrs{{"convergence_dots_size", Int(INT64_MAX)}, small, window}, Attrs{small},
        Attrs{{"output_image_shape", ShapeOf({8, 8})}, window},
        Attrs{{"output_image_shape", ShapeOf({8, 8, -1})}, window},
        Attrs{{"output_image_shape", ShapeOf({8, 8, 0})}, window},
        Attrs{small, {"output_data_window", ShapeOf({9, 8})}}}) {
    GraphMaker g;
    g.F32("depths", {2, 2}, {0, 1}).Op("bad", "SingleImageRandomDotStereograms", {"depths"}, attrs);
    Check(g);
  }
  for (const Dims& dims : {Dims{2}, Dims{0, 2}}) {
    GraphMaker g;
    g.F32("depths", dims).Op("bad", "SingleImageRandomDotStereograms", {"depths"}, {small, window});
    Check(g);
  }
  GraphMaker strange;
  strange.F32("depths", {2, 2}, {nan, std::numeric_limits<float>::infinity(), -1e30f});
  strange.Op("bad", "SingleImageRandomDotStereograms", {"depths"}, {small, window});
  Check(strange, kOk);
}

TEST(BadInput, NumbersLaidOutAnew) {
  for (const Dims& wanted : {Dims{-1}, Dims{-1, -1}, Dims{4, 4}, Dims{1, -1}, Dims{-1, INT64_MAX}, Dims{99, -1}}) {
    GraphMaker g;
    g.F32("x", {2, 4}).Op("bad", "PeriodicResample", {"x"}, {{"shape", ShapeOf(wanted)}});
    Check(g);
    GraphMaker back;
    back.F32("x", {2, 4})
        .Op("bad", "PeriodicResampleOpGrad", {"x"},
            {{"original_shape", ShapeOf({2, 4})}, {"desired_shape", ShapeOf(wanted)}});
    Check(back);
  }
  GraphMaker none;
  none.F32("x", {0, 4}).Op("bad", "PeriodicResample", {"x"}, {{"shape", ShapeOf({2, -1})}});
  Check(none);
  GraphMaker other;
  other.F32("x", {2, 4})
      .Op("bad", "PeriodicResampleOpGrad", {"x"},
          {{"original_shape", ShapeOf({-1, 4})}, {"desired_shape", ShapeOf({4, -1})}});
  Check(other);
}

TEST(BadInput, LinesOfLibsvm) {
  for (const char* line : {"", " ", "x", "1 2", "1 2:", "1 :2", "1 -1:2", "1 1.5:2", "1 2:x", "1.5 2:3", "1 2:3:4",
                           "99999999999999999999 1:2", "1 99999999999999999999:2"}) {
    GraphMaker g;
    g.Strings("line", {1}, {line}).Op("bad", "DecodeLibsvm", {"line"}, {{"num_features", Int(3)}});
    Check(g);
  }
}

TEST(BadInput, WindowsOfWords) {
  struct Bad {
    int32_t least, most, start, limit;
  };
  for (const Bad& bad :
       {Bad{-1, 1, 0, 1}, Bad{0, -1, 0, 1}, Bad{2, 1, 0, 1}, Bad{0, 1, -1, 1}, Bad{0, 1, INT32_MIN, -1}}) {
    GraphMaker g;
    g.I32("words", {3}).I32("least", {}, {bad.least}).I32("most", {}, {bad.most}).I32("start", {}, {bad.start});
    g.I32("limit", {}, {bad.limit}).Bools("own", {});
    g.Op("bad", "SkipGramGenerateCandidates", {"words", "least", "most", "start", "limit", "own"});
    Check(g);
  }
  GraphMaker wide;
  wide.I32("words", {3}).I32("least", {}, {0}).I32("most", {}, {INT32_MAX}).I32("start", {}, {0});
  wide.I32("limit", {}, {INT32_MAX}).Bools("own", {});
  wide.Op("bad", "SkipGramGenerateCandidates", {"words", "least", "most", "start", "limit", "own"});
  Check(wide, kOk);
}

}  // namespace
}  // namespace millrace::bad_inputs
