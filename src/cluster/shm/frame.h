// SPDX-License-Identifier: Apache-2.0
// What goes through the socket: packets (SOCK_SEQPACKET), each a header and what belongs to it. Both ends are of one
// machine and, as the magic number says, of one version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::shm {

inline constexpr uint32_t kMagic = 0x4d525304;   // the last byte is the version
inline constexpr size_t kMaxInline = 32 * 1024;  // longer payloads lie in segments, but for their start
inline constexpr size_t kMaxMethod = 4 * 1024;
inline constexpr size_t kMaxSegments = 4096;  // of one peer

enum class FrameType : uint32_t {
  kRequest = 1,  // id, timeout, method, payload
  kReply,        // id, code, payload: the result, or the error's text
  kCancel,       // id: the caller has given up
  kRelease,      // id of a segment: one of its messages is not needed any more
  kDrop,         // id of a segment: it will not come again
  kPing,
  kPong,
  kTell,    // method, payload: a request without a reply
  kRefuse,  // payload: why nothing is heard by this connection, which ends
};
inline constexpr uint32_t kLastFrameType = static_cast<uint32_t>(FrameType::kRefuse);

// Behind it: the method, then the payload, or what of it stands before that which lies in a segment.
struct FrameHeader {
  uint32_t magic = kMagic;
  FrameType type = FrameType::kPing;
  uint64_t id = 0;
  int64_t timeout_nanos = -1;  // -1: none
  uint64_t payload_bytes = 0;
  uint64_t segment = 0;           // 0: none
  uint64_t segment_offset = 0;    // where the rest of the payload begins there
  uint64_t segment_capacity = 0;  // when it comes for the first time: then its descriptor is with the packet
  uint32_t method_bytes = 0;
  int32_t code = 0;
};
inline constexpr size_t kMaxFrame = sizeof(FrameHeader) + kMaxMethod + kMaxInline;

}  // namespace millrace::shm
