// SPDX-License-Identifier: Apache-2.0
// Image files, boxes and windows that must be refused, through the ops that read them.
#include <cmath>
#include <limits>

#include "absl/strings/escaping.h"
#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

using absl::StatusCode;

// 65500 x 65500 pixels in 20 bytes: start of image, start of frame.
std::string HugeJpeg() { return absl::HexStringToBytes("ffd8ffc0000b08ffdcffdc01011100ffda0008"); }
std::string HugeGif() { return absl::HexStringToBytes("474946383961ffffffff0000002c00000000ffffffff0008023b3b003b"); }
std::string HugeBmp() {
  return absl::HexStringToBytes("424d00000000000000003600000028000000ffffff7fffffff7f01001800") + std::string(40, '\0');
}

TEST(BadInput, ImageFiles) {
  for (const char* op : {"DecodeJpeg", "DecodePng", "DecodeGif", "DecodeBmp", "ExtractJpegShape"}) {
    for (const std::string& file :
         {std::string(), std::string("x"), std::string("BM"), std::string("GIF89a"), std::string("\xff\xd8\xff"),
          std::string("\x89PNG\r\n\x1a\n"), HugeJpeg(), HugeGif(), HugeBmp()}) {
      GraphMaker g;
      g.Strings("file", {}, {file}).Op("bad", op, {"file"});
      Check(g);
    }
    GraphMaker many;
    many.Strings("file", {2}, {"a", "b"}).Op("bad", op, {"file"});
    Check(many);
  }
}

TEST(BadInput, ImageAttributes) {
  for (const Attrs& attrs :
       {Attrs{{"channels", Int(-1)}}, Attrs{{"channels", Int(2)}}, Attrs{{"ratio", Int(3)}}, Attrs{{"ratio", Int(0)}},
        Attrs{{"dct_method", Str("what")}}, Attrs{{"channels", Int(std::numeric_limits<int64_t>::max())}}}) {
    GraphMaker g;
    g.Strings("file", {}, {"\xff\xd8\xff"}).Op("bad", "DecodeJpeg", {"file"}, attrs);
    Check(g);
  }
  for (const int64_t quality : {int64_t{-1}, int64_t{101}, std::numeric_limits<int64_t>::max()}) {
    GraphMaker g;
    g.Const("image", DType::kUInt8, Values(DType::kUInt8, {2, 2, 3}))
        .Op("bad", "EncodeJpeg", {"image"}, {{"quality", Int(quality)}});
    Check(g);
  }
}

TEST(BadInput, ImagesToEncode) {
  for (const Dims& dims : {Dims{}, Dims{2}, Dims{2, 2}, Dims{2, 2, 5}, Dims{0, 2, 3}, Dims{2, 0, 3}, Dims{2, 2, 0}}) {
    for (const char* op : {"EncodeJpeg", "EncodePng"}) {
      GraphMaker g;
      g.Const("image", DType::kUInt8, Values(DType::kUInt8, dims)).Op("bad", op, {"image"});
      Check(g, {StatusCode::kInvalidArgument, StatusCode::kInternal});
    }
  }
}

TEST(BadInput, CropsOfImages) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const float v : {nan, infinity, -infinity}) {
    GraphMaker g;
    g.F32("image", {1, 3, 3, 1}).F32("boxes", {1, 4}, {0, 0, v}).I32("which", {1}).I32("size", {2}, {2});
    g.Op("bad", "CropAndResize", {"image", "boxes", "which", "size"});
    Check(g);
    GraphMaker grad;
    grad.F32("grad", {1, 2, 2, 1}).F32("boxes", {1, 4}, {0, 0, v}).I32("which", {1}).I32("size", {4}, {1, 3, 3, 1});
    grad.Op("bad", "CropAndResizeGradImage", {"grad", "boxes", "which", "size"}, {{"T", Type(DType::kFloat)}});
    Check(grad);
  }
  for (const float v : {1e30f, -1e30f, 3e9f}) {
    GraphMaker g;
    g.F32("image", {1, 3, 3, 1}).F32("boxes", {1, 4}, {0, 0, v}).I32("which", {1}).I32("size", {2}, {2});
    g.Op("bad", "CropAndResize", {"image", "boxes", "which", "size"});
    Check(g, kOk);
  }
  for (const int32_t which : {-1, 1, INT32_MAX, INT32_MIN}) {
    GraphMaker g;
    g.F32("image", {1, 3, 3, 1}).F32("boxes", {1, 4}, {0, 0, 1}).I32("which", {1}, {which}).I32("size", {2}, {2});
    g.Op("bad", "CropAndResize", {"image", "boxes", "which", "size"});
    Check(g, {StatusCode::kOutOfRange});
  }
  for (const int32_t size : {0, -1, INT32_MIN, INT32_MAX}) {
    GraphMaker g;
    g.F32("image", {1, 3, 3, 1}).F32("boxes", {1, 4}, {0, 0, 1}).I32("which", {1}).I32("size", {2}, {size});
    g.Op("bad", "CropAndResize", {"image", "boxes", "which", "size"});
    Check(g, kTooLarge);
  }
}

TEST(BadInput, BoxesInImages) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const float v : {nan, infinity, -infinity, 1e30f, -1e30f}) {
    GraphMaker draw;
    draw.F32("image", {1, 3, 3, 1})
        .F32("boxes", {1, 2, 4}, {v, 0, 1, v, 0, v})
        .Op("bad", "DrawBoundingBoxes", {"image", "boxes"});
    Check(draw, kOk);
    GraphMaker look;
    look.F32("image", {1, 3, 3, 1})
        .I32("size", {2}, {2})
        .F32("at", {1, 2}, {v})
        .Op("bad", "ExtractGlimpse", {"image", "size", "at"});
    Check(look, kOk);
    GraphMaker sample;
    sample.I32("size", {3}, {9})
        .F32("boxes", {1, 1, 4}, {0, 0, v})
        .Op("bad", "SampleDistortedBoundingBox", {"size", "boxes"});
    Check(sample);
  }
  for (const int32_t size : {-1, INT32_MIN, INT32_MAX}) {
    GraphMaker g;
    g.I32("size", {3}, {size})
        .F32("boxes", {1, 1, 4}, {0, 0, 1})
        .Op("bad", "SampleDistortedBoundingBox", {"size", "boxes"});
    Check(g);
    GraphMaker look;
    look.F32("image", {1, 3, 3, 1})
        .I32("size", {2}, {size})
        .F32("at", {1, 2})
        .Op("bad", "ExtractGlimpse", {"image", "size", "at"});
    Check(look, kTooLarge);
  }
  std::vector<float> whole;
  for (int i = 0; i < 400'000; ++i) whole.insert(whole.end(), {0, 0, 1, 1});
  GraphMaker many;
  many.F32("image", {1, 3000, 3000, 1})
      .F32("boxes", {1, static_cast<int64_t>(whole.size() / 4), 4}, whole)
      .Op("bad", "DrawBoundingBoxes", {"image", "boxes"});
  CheckEndless(many);
  GraphMaker forever;  // no window can be found
  forever.I32("size", {3}, {1 << 20})
      .F32("boxes", {1, 1, 4}, {0, 0, 0})
      .Op("bad", "SampleDistortedBoundingBox", {"size", "boxes"}, {{"max_attempts", Int(INT32_MAX)}});
  CheckEndless(forever);
}

TEST(BadInput, ScalesAndChoicesOfBoxes) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  const auto scaled = [](float scale, float translation, int32_t size, const Dims& image) {
    GraphMaker g;
    g.F32("x", image, {1}).I32("size", {2}, {size, 2}).F32("scale", {2}, {scale, 1}).F32("by", {2}, {translation, 0});
    return g.Op("bad", "ScaleAndTranslate", {"x", "size", "scale", "by"});
  };
  for (const float v : {0.0f, -1.0f, nan}) Check(scaled(v, 0, 2, {1, 3, 3, 1}));
  for (const float v : {nan, infinite, -infinite, 1e30f}) Check(scaled(1, v, 2, {1, 3, 3, 1}), kOk);
  for (const float v : {1e-30f, 1e30f, infinite}) Check(scaled(v, 0, 2, {1, 3, 3, 1}), kOk);
  for (const int32_t v : {0, -1, INT32_MIN}) Check(scaled(1, 0, v, {1, 3, 3, 1}));
  Check(scaled(1, 0, INT32_MAX, {1, 3, 3, 1}), kTooLarge);
  for (const Dims& dims : {Dims{}, Dims{3, 3, 1}, Dims{1, 0, 3, 1}, Dims{1, 3, 3, 0}}) Check(scaled(1, 0, 2, dims));

  for (const int32_t limit : {-1, INT32_MIN}) {
    GraphMaker g;
    g.F32("boxes", {2, 4}, {0, 0, 1}).F32("scores", {2}, {1}).I32("most", {}, {limit}).F32("iou", {}, {0.5});
    g.Op("bad", "NonMaxSuppressionV4", {"boxes", "scores", "most", "iou", "iou"},
         {{"pad_to_max_output_size", Bool(true)}});
    Check(g, kInvalid, How::kFed);
    GraphMaker all;
    all.F32("boxes", {2, 3, 1, 4}, {0, 0, 1})
        .F32("scores", {2, 3, 2}, {1})
        .I32("most", {}, {limit})
        .F32("iou", {}, {0.5});
    all.Op("bad", "CombinedNonMaxSuppression", {"boxes", "scores", "most", "most", "iou", "iou"});
    Check(all, kInvalid, How::kFed);
  }
  for (const float v : {-0.1f, nan, infinite}) {
    GraphMaker g;
    g.F32("boxes", {2, 4}, {0, 0, 1})
        .F32("scores", {2}, {1})
        .I32("most", {}, {2})
        .F32("v", {}, {v})
        .F32("half", {}, {0.5});
    g.Op("bad", "NonMaxSuppressionV5", {"boxes", "scores", "most", "v", "half", "half"});
    Check(g);
  }
  for (const float v : {-0.1f, nan}) {
    GraphMaker g;
    g.F32("boxes", {2, 4}, {0, 0, 1})
        .F32("scores", {2}, {1})
        .I32("most", {}, {2})
        .F32("v", {}, {v})
        .F32("half", {}, {0.5});
    g.Op("bad", "NonMaxSuppressionV5", {"boxes", "scores", "most", "half", "half", "v"});
    Check(g);
  }
  GraphMaker oblong;
  oblong.F32("o", {2, 3}).F32("scores", {2}).I32("most", {}, {2}).F32("v", {});
  oblong.Op("bad", "NonMaxSuppressionWithOverlaps", {"o", "scores", "most", "v", "v"});
  Check(oblong);
}

TEST(BadInput, I04_TransformToAWideRow) {
  GraphMaker g;
  g.I32("image", {1, 2, 2, 1}).F32("move", {1, 8}, {1, 0, 0, 0, 1, 0, 0, 0}).I32("size", {2}, {1, 1 << 29});
  g.Op("bad", "ImageProjectiveTransformV2", {"image", "move", "size"},
       {{"dtype", Type(DType::kInt32)}, {"interpolation", Str("BILINEAR")}});
  CheckEndless(g);
}

// Each is compared with all that were kept.
TEST(BadInput, I05_SuppressionOfBoxesThatAllStay) {
  constexpr int32_t kBoxes = 400'000;
  GraphMaker g;  // they have no area
  g.F32("boxes", {kBoxes, 4}, {0}).F32("scores", {kBoxes}, {1}).I32("most", {}, {kBoxes}).F32("half", {}, {0.5});
  g.F32("least", {}, {0}).Op("bad", "NonMaxSuppressionV3", {"boxes", "scores", "most", "half", "least"});
  CheckEndless(g);
}

}  // namespace
}  // namespace millrace::bad_inputs
