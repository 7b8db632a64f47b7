// SPDX-License-Identifier: Apache-2.0
//
// The part of GraphOptions that asks for rewrites of graphs. GraphOptions keeps it among its unknown fields: of
// TensorFlow's many switches these are the ones that mean something here.
#pragma once

#include <cstdint>
#include <string>

#include "wire/message.h"

namespace millrace::wire {

struct RewriterConfig {
  enum MemOptType : int32_t {
    kDefaultMemOpt = 0,
    kNoMemOpt = 1,
    kManual = 2,
    kHeuristics = 3,
    kSwappingHeuristics = 4,
    kRecomputationHeuristics = 5,
    kSchedulingHeuristics = 6,
  };

  enum Toggle : int32_t { kDefault = 0, kOn = 1, kOff = 2, kAggressive = 3 };

  int32_t memory_optimization = 0;
  int32_t remapping = kDefault;
  std::string memory_optimizer_target_node_name_scope;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// To be decoded from the unknown fields of GraphOptions.
struct RewriteOptions {
  Box<RewriterConfig> rewrite_options;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
