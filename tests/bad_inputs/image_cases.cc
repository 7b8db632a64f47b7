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
  GraphMaker forever;  // no window can be found
  forever.I32("size", {3}, {1 << 20})
      .F32("boxes", {1, 1, 4}, {0, 0, 0})
      .Op("bad", "SampleDistortedBoundingBox", {"size", "boxes"}, {{"max_attempts", Int(INT32_MAX)}});
  CheckEndless(forever);
}

}  // namespace
}  // namespace millrace::bad_inputs
