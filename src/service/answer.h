// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/exceptions.h"
#include "service/worker_interface.h"

namespace millrace {

// Answers with what `work` returns, a StatusOr, or what it throws.
template <typename Response, typename Work>
void Answer(Reply<Response> reply, Work work) {
  StatusOr<Response> response = WithoutExceptions([&]() -> StatusOr<Response> { return work(); });
  std::move(reply)(std::move(response));
}

}  // namespace millrace
