// SPDX-License-Identifier: Apache-2.0
// Between Cords and gRPC's buffers without a copy: either form holds a reference to what the other one owns.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "absl/strings/cord.h"
#include "base/status.h"

namespace millrace::grpc_transport {

grpc::ByteBuffer ToByteBuffer(const absl::Cord& cord);

// Empties the buffer.
StatusOr<absl::Cord> ToCord(grpc::ByteBuffer* buffer);

}  // namespace millrace::grpc_transport
