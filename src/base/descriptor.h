// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/status.h"

namespace millrace {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // Whose it is from now on.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// What the last system call said.
inline Status SystemError(absl::StatusCode code, absl::string_view what) {
  return Status(code, absl::StrCat(what, ": ", std::generic_category().message(errno)));
}

}  // namespace millrace
