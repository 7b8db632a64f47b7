// SPDX-License-Identifier: Apache-2.0
// How libjpeg reports: errors end the step that was tried, warnings are not printed, and the work stops on request.
#pragma once

#include <cstdio>  // jpeglib.h needs it before

#include <jpeglib.h>

#include "io/image_pixels.h"
#include "io/long_jump.h"

namespace millrace {

class JpegErrors {
 public:
  explicit JpegErrors(StopRequest stop) : stop_(stop) {
    progress_.progress_monitor = [](j_common_ptr info) { Of(info).StopIfAsked(); };
  }
  JpegErrors(const JpegErrors&) = delete;
  JpegErrors& operator=(const JpegErrors&) = delete;

  jpeg_error_mgr* Manager() {
    jpeg_error_mgr* manager = jpeg_std_error(&manager_.public_part);
    manager->error_exit = [](j_common_ptr info) {
      char message[JMSG_LENGTH_MAX];
      info->err->format_message(info, message);
      Of(info).Fail(message);
    };
    manager->output_message = [](j_common_ptr) {};
    manager_.owner = this;
    return manager;
  }
  jpeg_progress_mgr* Progress() { return &progress_; }
  // Of the library's object.
  static JpegErrors& Of(j_common_ptr info) { return *reinterpret_cast<WithOwner*>(info->err)->owner; }
  [[noreturn]] void Fail(const char* message) { jump_.Fail(message); }

  template <typename Step>
  Status Try(const Step& step) {
    if (jump_.Try(step)) return absl::OkStatus();
    return stopped_ ? StoppedDecoding() : InvalidArgument("bad JPEG: ", jump_.message());
  }

 private:
  struct WithOwner {
    jpeg_error_mgr public_part = {};
    JpegErrors* owner = nullptr;
  };
  void StopIfAsked() {
    stopped_ = stop_();
    if (stopped_) Fail("stopped");
  }

  StopRequest stop_;
  bool stopped_ = false;
  LongJump jump_;
  WithOwner manager_;
  jpeg_progress_mgr progress_ = {};
};

}  // namespace millrace
