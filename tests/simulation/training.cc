// SPDX-License-Identifier: Apache-2.0
#include "simulation/training.h"

#include "simulation/fake_disk.h"

namespace millrace {

void Training::Fail(const std::string& what) {
  cluster_.Note("FAILURE: " + what);
  failures_.push_back(what);
}

void Training::Sleep(SimTask& task, absl::Duration longest) {
  const int64_t nanos = absl::ToInt64Nanoseconds(longest);
  task.host().Sleep(absl::Nanoseconds(static_cast<int64_t>(NextRandom(&random_) % static_cast<uint64_t>(nanos + 1))));
}

bool Training::MayBe(const Status& s) {
  ++num_errors;
  switch (s.code()) {
    case absl::StatusCode::kUnavailable:         // nobody there, or the way broke
    case absl::StatusCode::kAborted:             // of another life
    case absl::StatusCode::kCancelled:           // its session was closed
    case absl::StatusCode::kDeadlineExceeded:    //
    case absl::StatusCode::kFailedPrecondition:  // state that is gone
      return true;
    default: break;
  }
  Fail(absl::StrCat("an error that no fault explains: ", s.ToString()));
  return false;
}

}  // namespace millrace
