// SPDX-License-Identifier: Apache-2.0
// How libpng reports: errors end the step that was tried, warnings are not printed, and the work stops on request.
#pragma once

#include <png.h>

#include "io/image_pixels.h"
#include "io/long_jump.h"

namespace millrace {

class PngErrors {
 public:
  explicit PngErrors(StopRequest stop) : stop_(stop) {}
  PngErrors(const PngErrors&) = delete;
  PngErrors& operator=(const PngErrors&) = delete;

  // For png_create_*_struct, which get this object as the pointer to pass to these.
  [[noreturn]] static void OnError(png_structp png, png_const_charp message) {
    static_cast<PngErrors*>(png_get_error_ptr(png))->jump_.Fail(message);
  }
  static void OnWarning(png_structp, png_const_charp) {}

  template <typename Step>
  Status Try(const Step& step) {
    if (jump_.Try(step)) return absl::OkStatus();
    return stopped_ ? StoppedDecoding() : InvalidArgument("bad PNG: ", jump_.message());
  }
  void StopIfAsked(int64_t row) {
    if (row % 64 != 0) return;
    stopped_ = stop_();
    if (stopped_) jump_.Fail("stopped");
  }

 private:
  StopRequest stop_;
  bool stopped_ = false;
  LongJump jump_;
};

}  // namespace millrace
