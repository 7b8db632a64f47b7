// SPDX-License-Identifier: Apache-2.0
// What decoders of image files share. Files are untrusted: sizes are checked before memory is asked for, and a decoder
// looks every few rows whether it shall stop.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace millrace {

enum class ImageFormat : uint8_t { kUnknown, kJpeg, kPng, kGif, kBmp };
ImageFormat FormatOfImage(absl::string_view bytes);  // by the first bytes

struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
  int64_t row() const { return width * channels; }
  int64_t elements() const { return height * row(); }
};

// Memory for `frames` images of a size, row-major, not initialised. Called at most once, before the first pixel.
template <typename T>
using PixelMemory = absl::FunctionRef<StatusOr<T*>(int64_t frames, const ImageSize& size)>;
using StopRequest = absl::FunctionRef<bool()>;
inline Status StoppedDecoding() { return Cancelled("the step was cancelled"); }

// A file may say that it has so many pixels, all its frames together.
inline constexpr int64_t kMaxPixels = (int64_t{1} << 29) - 1;

}  // namespace millrace
