// SPDX-License-Identifier: Apache-2.0
#include "wire/snapshot.h"

#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& SnapshotMetadata::Info() {
  static const MessageInfo& info =
      Table<SnapshotMetadata>("SnapshotMetadataRecord")
          .Field(1, "graph_hash", &SnapshotMetadata::graph_hash)
          .Field(2, "run_id", &SnapshotMetadata::run_id)
          .Field(3, "creation_timestamp", &SnapshotMetadata::creation_timestamp)
          .Field(1000, "finalized", &SnapshotMetadata::finalized)
          .Build();
  return info;
}

}  // namespace millrace::wire
