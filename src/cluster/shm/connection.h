// SPDX-License-Identifier: Apache-2.0
// One end of a connection: frames there and back, long payloads in shared memory, pings.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/cord.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "cluster/shm/frame.h"
#include "cluster/shm/loop.h"
#include "tensor/shared_memory.h"

namespace millrace::shm {

struct Frame {
  FrameType type = FrameType::kPing;
  uint64_t id = 0;
  int32_t code = 0;
  absl::Duration timeout = absl::InfiniteDuration();
  std::string method;
  absl::Cord payload;
};

// Thread-safe.
class Connection final : public Loop::Watcher, public std::enable_shared_from_this<Connection> {
 public:
  struct Pings {
    absl::Duration interval, timeout;
  };
  // Both run on the loop's thread; `closed` once, after which nothing comes any more.
  struct Users {
    std::function<void(Frame)> received;
    std::function<void(const Status&)> closed;
  };
  // `socket` is connected and does not block. The loop outlives the connection.
  static StatusOr<std::shared_ptr<Connection>> Start(Loop& loop, Descriptor socket, const Pings& pings, Users users);

  // A long payload is lent to the peer if its end is one piece of shared memory; else it is copied there. Frames arrive
  // in their order. When the connection is closed: why, Unavailable or that the peer has refused it.
  Status Send(const Frame& frame);
  ~Connection() override;
  // From now on it sends nothing, and calls nobody but those who are running. `closed` is not called. What the peer has
  // not given back is abandoned: it may still be read.
  void Close();

  void OnReady(uint32_t events) override;

  // The packet that refuses a connection; the other side's error is ResourceExhausted with this text.
  static std::string Refusal(const std::string& why);

 private:
  struct Packet {
    std::string bytes;
    std::shared_ptr<Segment> segment;  // whose descriptor goes with it; may be null
  };
  // Where a payload is.
  struct Placed {
    std::string start;
    RefPtr<SharedBuffer> buffer;  // the rest; null: there is none
    size_t offset = 0;
  };
  using Lent = std::multimap<uint64_t, RefPtr<SharedBuffer>>;
  Connection(Loop& loop, Descriptor socket, const Pings& pings, Users users);
  static void Abandon(Lent lent);
  static Status Place(const absl::Cord& payload, Placed* placed);
  std::shared_ptr<Segment> Lend(const Placed& placed, FrameHeader* header) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellOfDropped() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Enqueue(Packet packet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TrySend(const Packet& packet, bool* would_block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Flush();
  bool ReceiveOne(Status* why);
  Status Take(absl::string_view packet, Descriptor descriptor);
  StatusOr<absl::Cord> Payload(const FrameHeader& header, absl::string_view rest, Descriptor descriptor);
  void Break(const Status& why);
  void Tick();
  bool MayHold(size_t bytes);
  void Released(uint64_t segment, size_t held);

  Loop& loop_;
  const Descriptor socket_;
  const Pings pings_;
  absl::Mutex mu_;
  bool open_ ABSL_GUARDED_BY(mu_) = true;
  Status end_ ABSL_GUARDED_BY(mu_) = Unavailable("the connection is closed");
  Users users_ ABSL_GUARDED_BY(mu_);
  Loop::Key key_ ABSL_GUARDED_BY(mu_) = 0;
  Loop::Timer timer_ ABSL_GUARDED_BY(mu_) = {};
  std::deque<Packet> waiting_ ABSL_GUARDED_BY(mu_);                        // until the socket takes them
  std::map<uint64_t, std::weak_ptr<Segment>> known_ ABSL_GUARDED_BY(mu_);  // segments that the peer has
  Lent lent_ ABSL_GUARDED_BY(mu_);                                         // by segment, until they are given back
  int64_t heard_ ABSL_GUARDED_BY(mu_);
  size_t num_held_ ABSL_GUARDED_BY(mu_) = 0;  // payloads in the peer's segments that somebody here still reads
  size_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The loop's thread alone.
  std::map<uint64_t, std::shared_ptr<Segment>> mapped_;
  std::string buffer_ = std::string(kMaxFrame, '\0');
};

}  // namespace millrace::shm
