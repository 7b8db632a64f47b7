// SPDX-License-Identifier: Apache-2.0
// The rendezvous of one worker's part of a step that several workers take part in.
#pragma once

#include <string>

#include "absl/container/flat_hash_set.h"
#include "service/transport.h"

namespace millrace {

// What devices of this worker (`own_devices`) send waits here, for this worker and for others; what others send is
// asked for through the transport. Both must outlive the step.
RefPtr<Rendezvous> NewJointRendezvous(int64_t step_id, const absl::flat_hash_set<std::string>& own_devices,
                                      Transport* transport);

}  // namespace millrace
