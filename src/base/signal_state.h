// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

// True on threads of our own, which block all signals for as long as they live.
inline thread_local bool signals_are_blocked = false;

}  // namespace millrace
