// SPDX-License-Identifier: Apache-2.0
#include "cluster/shm/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace millrace::shm {
namespace {

constexpr int kFramesAtOnce = 64;  // then others have their turn
// Of the peer's memory, what readers here may hold on to, as values of variables and elements of queues; what comes
// then is copied, so that the peer has segments left.
constexpr size_t kMostHeld = kMaxSegments / 4;
constexpr size_t kMostHeldBytes = size_t{1} << 30;
constexpr size_t kWorthLending = size_t{64} << 10;

absl::string_view BytesOf(const FrameHeader& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

}  // namespace

Connection::Connection(Loop& loop, Descriptor socket, const Pings& pings, Users users)
    : loop_(loop),
      socket_(std::move(socket)),
      pings_(pings),
      users_(std::move(users)),
      heard_(loop.env().MonotonicNanos()) {}

StatusOr<std::shared_ptr<Connection>> Connection::Start(
    Loop& loop, Descriptor socket, const Pings& pings, Users users) {
  std::shared_ptr<Connection> connection(new Connection(loop, std::move(socket), pings, std::move(users)));
  absl::MutexLock lock(&connection->mu_);  // so that the loop waits until all is there
  MR_ASSIGN_OR_RETURN(connection->key_, loop.Watch(connection->socket_.get(), connection));
  connection->timer_ = loop.At(
      connection->heard_ + absl::ToInt64Nanoseconds(pings.interval), [weak = std::weak_ptr<Connection>(connection)] {
        if (auto self = weak.lock()) self->Tick();
      });
  return connection;
}

Connection::~Connection() { Abandon(std::move(lent_)); }

void Connection::Abandon(Lent lent) {
  for (auto& [id, buffer] : lent) SharedMemory::Instance().Abandon(std::move(buffer));
}

void Connection::Close() {
  Users users;  // end outside of the lock
  Lent lent;
  {
    absl::MutexLock lock(&mu_);
    if (!open_) return;
    open_ = false;
    loop_.Forget(key_);
    loop_.Drop(timer_);
    shutdown(socket_.get(), SHUT_RDWR);
    std::swap(users, users_);
    lent.swap(lent_);
  }
  Abandon(std::move(lent));
}

void Connection::Break(const Status& why) {
  std::function<void(const Status&)> closed;
  {
    absl::MutexLock lock(&mu_);
    closed = users_.closed;
    if (absl::IsResourceExhausted(why)) end_ = why;
  }
  Close();
  if (closed) closed(why);
}

void Connection::Tick() {
  const int64_t now = loop_.env().MonotonicNanos();
  SharedMemory::Instance().Trim();
  {
    absl::MutexLock lock(&mu_);
    if (!open_) return;
    TellOfDropped();
    if (now - heard_ < absl::ToInt64Nanoseconds(pings_.timeout + pings_.interval)) {
      FrameHeader header;
      header.type = FrameType::kPing;
      if (waiting_.empty()) Enqueue({std::string(BytesOf(header)), nullptr}).IgnoreError();
      timer_ = loop_.At(now + absl::ToInt64Nanoseconds(pings_.interval), [weak = weak_from_this()] {
        if (auto self = weak.lock()) self->Tick();
      });
      return;
    }
  }
  Break(Unavailable("the peer has not answered for ", absl::FormatDuration(pings_.timeout)));
}

Status Connection::Send(const Frame& frame) {
  if (frame.method.size() > kMaxMethod) {
    return InvalidArgument("a method's name of ", frame.method.size(), " bytes; at most ", kMaxMethod, " are taken");
  }
  FrameHeader header;
  header.type = frame.type;
  header.id = frame.id;
  header.code = frame.code;
  if (frame.timeout != absl::InfiniteDuration()) {
    header.timeout_nanos = std::max(int64_t{0}, absl::ToInt64Nanoseconds(frame.timeout));
  }
  header.method_bytes = static_cast<uint32_t>(frame.method.size());
  header.payload_bytes = frame.payload.size();
  Placed placed;
  MR_RETURN_IF_ERROR(Place(frame.payload, &placed));
  absl::MutexLock lock(&mu_);
  if (!open_) return end_;
  std::shared_ptr<Segment> fresh = placed.buffer ? Lend(placed, &header) : nullptr;
  return Enqueue({absl::StrCat(BytesOf(header), frame.method, placed.start), std::move(fresh)});
}

Status Connection::Place(const absl::Cord& payload, Placed* placed) {
  if (payload.size() <= kMaxInline) {
    absl::CopyCordToString(payload, &placed->start);
    return absl::OkStatus();
  }
  size_t before = 0;
  for (absl::string_view chunk : payload.Chunks()) {
    const bool is_last = before + chunk.size() == payload.size();
    if (is_last && before <= kMaxInline && chunk.size() >= kWorthLending) {
      placed->buffer = SharedMemory::Instance().Find(chunk);
      if (!placed->buffer) break;
      placed->offset = static_cast<size_t>(chunk.data() - static_cast<const char*>(placed->buffer->data()));
      absl::CopyCordToString(payload.Subcord(0, before), &placed->start);
      return absl::OkStatus();
    }
    before += chunk.size();
  }
  MR_ASSIGN_OR_RETURN(placed->buffer, SharedMemory::Instance().Allocate(payload.size()));
  char* to = static_cast<char*>(placed->buffer->data());
  for (absl::string_view chunk : payload.Chunks()) {
    memcpy(to, chunk.data(), chunk.size());
    to += chunk.size();
  }
  return absl::OkStatus();
}

// Together with the sending: what comes first brings the descriptor.
std::shared_ptr<Segment> Connection::Lend(const Placed& placed, FrameHeader* header) {
  const uint64_t id = placed.buffer->id();
  if (known_.size() >= kMaxSegments) TellOfDropped();
  const bool is_new = known_.emplace(id, placed.buffer->segment()).second;
  lent_.emplace(id, placed.buffer);
  header->segment = id;
  header->segment_offset = placed.offset;
  if (!is_new) return nullptr;
  header->segment_capacity = placed.buffer->segment()->capacity();
  return placed.buffer->segment();
}

void Connection::TellOfDropped() {
  for (auto it = known_.begin(); it != known_.end();) {
    const auto here = it++;
    if (!here->second.expired()) continue;
    FrameHeader header;
    header.type = FrameType::kDrop;
    header.id = here->first;
    Enqueue({std::string(BytesOf(header)), nullptr}).IgnoreError();
    known_.erase(here);
  }
}

Status Connection::Enqueue(Packet packet) {
  if (!open_) return end_;
  bool would_block = false;
  if (waiting_.empty() && TrySend(packet, &would_block)) return absl::OkStatus();
  if (waiting_.empty() && !would_block) {
    shutdown(socket_.get(), SHUT_RDWR);  // then the loop tells everybody
    return SystemError(absl::StatusCode::kUnavailable, "the connection broke");
  }
  waiting_.push_back(std::move(packet));
  if (waiting_.size() == 1) loop_.AlsoWhenWritable(key_, true);
  return absl::OkStatus();
}

bool Connection::TrySend(const Packet& packet, bool* would_block) {
  iovec bytes{const_cast<char*>(packet.bytes.data()), packet.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (packet.segment != nullptr) {
    const int descriptor = packet.segment->descriptor();
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &descriptor, sizeof(int));
  }
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  *would_block = sent < 0 && (errno == EAGAIN || errno == ENOBUFS);
  return sent >= 0;
}

void Connection::Flush() {
  absl::MutexLock lock(&mu_);
  while (open_ && !waiting_.empty()) {
    bool would_block = false;
    if (!TrySend(waiting_.front(), &would_block)) {
      if (!would_block) shutdown(socket_.get(), SHUT_RDWR);
      return;
    }
    waiting_.pop_front();
  }
  if (open_) loop_.AlsoWhenWritable(key_, false);
}

void Connection::OnReady(uint32_t events) {
  {
    absl::MutexLock lock(&mu_);  // not before Start() is done
    if (!open_) return;
    heard_ = loop_.env().MonotonicNanos();
  }
  if ((events & EPOLLOUT) != 0) Flush();
  if ((events & ~uint32_t{EPOLLOUT}) == 0) return;
  Status why;
  for (int i = 0; i < kFramesAtOnce && ReceiveOne(&why); ++i) {
  }
  if (!why.ok()) Break(why);
}

std::string Connection::Refusal(const std::string& why) {
  FrameHeader header;
  header.type = FrameType::kRefuse;
  header.payload_bytes = why.size();
  return absl::StrCat(BytesOf(header), why);
}

// Whether there may be more.
bool Connection::ReceiveOne(Status* why) {
  iovec bytes{buffer_.data(), buffer_.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    *why = got == 0 ? Unavailable("the peer has closed the connection")
                    : SystemError(absl::StatusCode::kUnavailable, "the connection broke");
    return false;
  }
  Descriptor descriptor;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len < CMSG_LEN(sizeof(int))) continue;
    int fd = -1;
    memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    descriptor = Descriptor(fd);
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    *why = InvalidArgument("the peer sent a packet that is longer than any may be");
    return false;
  }
  *why = Take({buffer_.data(), static_cast<size_t>(got)}, std::move(descriptor));
  return why->ok();
}

Status Connection::Take(absl::string_view packet, Descriptor descriptor) {
  FrameHeader header;
  if (packet.size() < sizeof(header)) return InvalidArgument("a packet of ", packet.size(), " bytes has no header");
  memcpy(&header, packet.data(), sizeof(header));
  const absl::string_view rest = packet.substr(sizeof(header));
  const auto type = static_cast<uint32_t>(header.type);
  if (header.magic != kMagic || type == 0 || type > kLastFrameType || header.method_bytes > rest.size()) {
    return InvalidArgument("the peer sent a packet that is no frame of this version");
  }
  Frame frame{.type = header.type, .id = header.id, .code = header.code};
  switch (header.type) {
    case FrameType::kPong: return absl::OkStatus();
    case FrameType::kPing: return Send({.type = FrameType::kPong});
    case FrameType::kRefuse: return ResourceExhausted(rest);
    case FrameType::kDrop: mapped_.erase(header.id); return absl::OkStatus();
    case FrameType::kRelease: {
      RefPtr<SharedBuffer> released;  // ends outside of the lock
      absl::MutexLock lock(&mu_);
      const auto lent = lent_.find(header.id);
      if (lent == lent_.end()) return absl::OkStatus();
      released = std::move(lent->second);
      lent_.erase(lent);
      return absl::OkStatus();
    }
    default: break;
  }
  if (header.timeout_nanos >= 0) frame.timeout = absl::Nanoseconds(header.timeout_nanos);
  frame.method = std::string(rest.substr(0, header.method_bytes));
  MR_ASSIGN_OR_RETURN(frame.payload, Payload(header, rest.substr(header.method_bytes), std::move(descriptor)));
  std::function<void(Frame)> received;
  {
    absl::MutexLock lock(&mu_);
    received = users_.received;
  }
  if (received) received(std::move(frame));
  return absl::OkStatus();
}

StatusOr<absl::Cord> Connection::Payload(const FrameHeader& header, absl::string_view rest, Descriptor descriptor) {
  if (header.segment == 0) {
    if (header.payload_bytes != rest.size()) {
      return InvalidArgument("a payload of ", rest.size(), " bytes, which says that it has ", header.payload_bytes);
    }
    return absl::Cord(rest);
  }
  std::shared_ptr<Segment>& segment = mapped_[header.segment];
  if (descriptor.ok()) {
    if (segment != nullptr || mapped_.size() > kMaxSegments) {
      return InvalidArgument("the peer sent segment ", header.segment, " twice, or more than ", kMaxSegments);
    }
    StatusOr<std::unique_ptr<Segment>> mapped = Segment::Map(std::move(descriptor), header.segment_capacity);
    if (!mapped.ok()) return Unavailable(mapped.status().message());  // ResourceExhausted is for refusals alone
    segment = *std::move(mapped);
  }
  if (segment == nullptr) return InvalidArgument("the peer spoke of segment ", header.segment, ", which never came");
  const uint64_t size = header.payload_bytes - rest.size();
  if (header.payload_bytes < rest.size() || header.segment_offset > segment->capacity() ||
      size > segment->capacity() - header.segment_offset) {
    return InvalidArgument("a payload of ", header.payload_bytes, " bytes, ", rest.size(),
                           " of them not in a segment of ", segment->capacity(), " but at ", header.segment_offset);
  }
  const absl::string_view bytes = segment->bytes().substr(header.segment_offset, size);
  absl::Cord payload(rest);
  if (!MayHold(bytes.size())) {
    payload.Append(bytes);
    Released(header.segment, 0);
    return payload;
  }
  payload.Append(absl::MakeCordFromExternal(
      bytes, [weak = weak_from_this(), held = segment, id = header.segment, size = bytes.size()] {
        if (auto self = weak.lock()) self->Released(id, size);
      }));
  return payload;
}

bool Connection::MayHold(size_t bytes) {
  absl::MutexLock lock(&mu_);
  if (bytes == 0 || num_held_ >= kMostHeld || bytes > kMostHeldBytes - held_bytes_) return false;
  ++num_held_;
  held_bytes_ += bytes;
  return true;
}

// `held`: bytes of the payload, if it was held.
void Connection::Released(uint64_t segment, size_t held) {
  FrameHeader header;
  header.type = FrameType::kRelease;
  header.id = segment;
  absl::MutexLock lock(&mu_);
  if (held > 0) --num_held_;
  held_bytes_ -= held;
  Enqueue({std::string(BytesOf(header)), nullptr}).IgnoreError();
}

}  // namespace millrace::shm
