// SPDX-License-Identifier: Apache-2.0
//
// What is known of a snapshot of a data set (SnapshotMetadataRecord).
#pragma once

#include <cstdint>
#include <string>

#include "wire/message.h"

namespace millrace::wire {

struct SnapshotMetadata {
  std::string graph_hash;
  std::string run_id;              // the folder of its files
  int64_t creation_timestamp = 0;  // microseconds since 1970
  bool finalized = false;          // all elements are there
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
