// SPDX-License-Identifier: Apache-2.0
// Two servers that get messages of which somebody has changed bytes: each is answered once, whatever it is, and the
// servers go on. The messages that are changed are those of a real client and of the servers themselves, recorded on a
// transport that is a call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct FrameCounts {
  int64_t frames = 0, accepted = 0, refused = 0;
};

class FrameFuzzer {
 public:
  explicit FrameFuzzer(uint64_t seed);
  ~FrameFuzzer();

  // Of all methods of a server, like "Worker.RunStep"; and one that there is not.
  static std::vector<std::string> Methods();
  // Sends so many to a method. Empty: all were answered, once, and a client found the servers as they should be; or
  // else what went wrong.
  std::string Run(const std::string& method, int64_t frames, FrameCounts* counts);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
