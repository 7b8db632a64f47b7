// SPDX-License-Identifier: Apache-2.0
// Calls of functions that others wrote.
#pragma once

#include <cxxabi.h>

#include <utility>

#include "base/stop_scope.h"
#include "capi/internal.h"

namespace millrace::capi {

// What `call` throws becomes a status, but for what ends a thread or leaves work undone.
template <typename Call>
Status CallForeign(Call&& call) {
  try {
    call();
    return absl::OkStatus();
  } catch (const WorkStopped&) {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return StatusFromException();
  }
}

inline Status FromStatus(const TF_Status& s) {
  return s.code == TF_OK ? absl::OkStatus() : Status(static_cast<absl::StatusCode>(s.code), s.message);
}

}  // namespace millrace::capi
