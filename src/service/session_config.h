// SPDX-License-Identifier: Apache-2.0
// What a ConfigProto says of a session.
#pragma once

#include <vector>

#include "service/coordinator.h"
#include "wire/config.h"

namespace millrace {

// The coordinator's part of it; InvalidArgument for what is out of range. Env, determinism and what kernels can do are
// not the configuration's.
StatusOr<CoordinatorOptions> OptionsFrom(const wire::ConfigProto& config);

// `config` with what it leaves unset as `defaults` have it. Lists are not joined: its own count, if it has any.
wire::ConfigProto WithDefaults(const wire::ConfigProto& config, const wire::ConfigProto& defaults);

// How many threads run kernels at once, by RunOptions.inter_op_thread_pool; never empty.
std::vector<int> InterOpThreads(const wire::ConfigProto& config);

}  // namespace millrace
