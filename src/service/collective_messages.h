// SPDX-License-Identifier: Apache-2.0
// What the members of a group of collective ops say to each other. Members are devices. They meet at the leader, a
// worker that all of them know; when all are there, each is told who the others are, and the number of their round,
// drawn at random. From then on they need no leader.
#pragma once

#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace millrace {

// Answered when all members of the group are there. Failures name those that are.
struct JoinCollectiveRequest {
  uint64_t member = 0;       // drawn at random for this call
  std::string device;        // of the member
  uint64_t incarnation = 0;  // of its worker
  uint64_t session = 0;
  int64_t step = 0;
  int64_t group_key = 0;
  int64_t instance_key = 0;
  int64_t iteration = 0;
  int64_t group_size = 0;
  std::string claim;  // what it will do, for people; must be the same for all
  bool has_source = false;
  bool is_source = false;     // of a broadcast
  std::vector<int64_t> dims;  // of what a source sends
  int64_t timeout_millis = 0;
};
struct CollectiveMember {
  std::string device;
  uint64_t incarnation = 0;
  bool operator==(const CollectiveMember&) const = default;
};
struct JoinCollectiveResponse {
  uint64_t round = 0;
  std::vector<CollectiveMember> members;  // by rank
  int64_t source = 0;                     // its rank
  std::vector<int64_t> dims;              // of what it sends
};

// A piece of the round, when it is there. Each is asked for once.
struct RecvCollectiveRequest {
  uint64_t round = 0;
  uint64_t incarnation = 0;  // of the worker that is asked
  std::string piece;
};
struct RecvCollectiveResponse {
  Tensor value;
};

// The member, or the round, fails.
struct AbortCollectiveRequest {
  uint64_t id = 0;  // of a member that has not been answered, or of a round
  Status why;
};
struct AbortCollectiveResponse {};

}  // namespace millrace
