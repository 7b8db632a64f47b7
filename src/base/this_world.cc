// SPDX-License-Identifier: Apache-2.0
#include "base/this_world.h"

#include <utility>

namespace millrace {
namespace {

constinit thread_local Env* this_world = nullptr;

}  // namespace

bool AwaitInThisWorld(absl::Mutex& mu, const absl::Condition& condition, absl::Duration patience) {
  return (this_world ? *this_world : Env::Default()).Await(mu, condition, patience);
}

Env* EnterWorld(Env* world) { return std::exchange(this_world, world); }

}  // namespace millrace
