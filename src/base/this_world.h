// SPDX-License-Identifier: Apache-2.0
// Waiting where no Env was given: in locks that belong to no session or device. Everything else has an Env and asks it.
#pragma once

#include "base/env.h"

namespace millrace {

// Env::Await of the simulated world that this thread belongs to, since it was started there or has made it; else of the
// process. In a simulated world in which nothing can happen any more it may return false without limit too.
bool AwaitInThisWorld(absl::Mutex& mu, const absl::Condition& condition,
                      absl::Duration patience = absl::InfiniteDuration());

// For simulated worlds: this thread belongs to `world` from now on; null: to none. Returns what it belonged to.
Env* EnterWorld(Env* world);

}  // namespace millrace
