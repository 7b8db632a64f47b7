// SPDX-License-Identifier: Apache-2.0
// What becomes of an exception where it must go no further: at kernels, at the ends of threads, at the C API.
#pragma once

#include <type_traits>
#include <utility>

#include "base/status.h"

namespace millrace {

// REQUIRES: called while an exception is handled. No memory: ResourceExhausted; WorkStopped: Cancelled; anything else:
// Internal with what it says.
Status StatusFromException() noexcept;

// What `body` returns, a Status or StatusOr; or what its exception becomes.
template <typename Body>
std::invoke_result_t<Body&&> WithoutExceptions(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return StatusFromException();
  }
}

}  // namespace millrace
