// SPDX-License-Identifier: Apache-2.0
// What both sides agree on beyond gRPC itself. A call is unary; its method is "/millrace/NAME". A handler's error is a
// gRPC success whose message is the error's text, as it is, and whose trailing metadata says the code: so errors of the
// transport and of handlers are never taken for each other, and a text may be long and hold any bytes.
#pragma once

#include <cstdint>

namespace millrace::grpc_transport {

inline constexpr char kMethodPrefix[] = "/millrace/";
inline constexpr char kErrorCodeKey[] = "millrace-code";
inline constexpr char kSecretKey[] = "millrace-secret";              // of a call, where callers show a secret
inline constexpr int64_t kMaxMessageBytes = (int64_t{1} << 32) - 1;  // gRPC's lengths have 32 bits

}  // namespace millrace::grpc_transport
