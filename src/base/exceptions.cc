// SPDX-License-Identifier: Apache-2.0
#include "base/exceptions.h"

#include <exception>
#include <new>
#include <stdexcept>

#include "base/stop_scope.h"

namespace millrace {
namespace {

// A code alone needs no memory.
Status Make(absl::StatusCode code, absl::string_view message) noexcept {
  try {
    return Status(code, message);
  } catch (...) {
    return Status(code, "");
  }
}

}  // namespace

Status StatusFromException() noexcept {
  try {
    throw;
  } catch (const WorkStopped&) {
    return Make(absl::StatusCode::kCancelled, "the step was stopped");
  } catch (const std::bad_alloc&) {
    return Make(absl::StatusCode::kResourceExhausted, "out of memory");
  } catch (const std::length_error&) {
    return Make(absl::StatusCode::kResourceExhausted, "out of memory");
  } catch (const std::exception& e) {
    return Make(absl::StatusCode::kInternal, e.what());
  } catch (...) {
    return Make(absl::StatusCode::kInternal, "unknown exception");
  }
}

}  // namespace millrace
