// SPDX-License-Identifier: Apache-2.0
// What gRPC logs: lines of ours, in their format and by their level, unless somebody listens; each kind of error once a
// minute. GRPC_VERBOSITY means what it does everywhere.
#pragma once

#include <string>

namespace millrace::grpc_transport {

// From now on, for all gRPC in the process that shares our library of it.
void TakeOverLog();

// Hears what gRPC logs on this thread, instead of the log. One at a time.
class LogEar {
 public:
  LogEar();
  LogEar(const LogEar&) = delete;
  LogEar& operator=(const LogEar&) = delete;
  ~LogEar();

  // What the system said of the last call that failed, such as "Address already in use", or else gRPC's own words;
  // `otherwise` where it said nothing.
  std::string Why(const std::string& otherwise) const;

 private:
  std::string text_;
};

}  // namespace millrace::grpc_transport
