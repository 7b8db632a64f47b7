// SPDX-License-Identifier: Apache-2.0
// The settings of gRPC that both ends share.
#pragma once

#include <grpc/grpc.h>

#include <algorithm>
#include <limits>

#include "absl/time/time.h"
#include "cluster/rpc_options.h"

namespace millrace::grpc_transport {

constexpr int kFrameBytes = 16 * 1024 * 1024 - 1;  // the most that HTTP/2 knows
constexpr int kLookaheadBytes = 64 * 1024 * 1024;  // that may be on their way to a reader
constexpr int kReadChunkBytes = 4 * 1024 * 1024;

inline int Millis(absl::Duration d) {
  return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(d), 1, std::numeric_limits<int>::max()));
}

// `set(name, value)`.
template <typename Set>
void SetSharedArguments(const RpcTransportOptions& options, Set set) {
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadChunkBytes);
  set(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadChunkBytes);
  set(GRPC_ARG_KEEPALIVE_TIME_MS, Millis(options.keepalive_interval));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(options.keepalive_timeout));
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  set(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  set(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);  // of a few bytes it could make many
  set(GRPC_ARG_ENABLE_CHANNELZ, 0);
  set(GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0);
}

}  // namespace millrace::grpc_transport
