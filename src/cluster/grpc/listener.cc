// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "cluster/grpc/arguments.h"

namespace millrace::grpc_transport {
namespace {

constexpr int kBacklog = 4096;
constexpr int kNoRoomMillis = 50;  // until the next attempt, when the process has no room for a connection
constexpr int kAttempts = 20;      // to find a port that is free at all addresses
constexpr int kTakenAtOnce = 256;

struct Place {
  sockaddr_storage name{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&name); }
  void SetPort(int port) {
    const auto number = htons(static_cast<uint16_t>(port));
    if (name.ss_family == AF_INET) reinterpret_cast<sockaddr_in*>(&name)->sin_port = number;
    if (name.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(&name)->sin6_port = number;
  }
};

StatusOr<std::vector<Place>> PlacesOf(const std::string& host) {
  const std::string bare(absl::StripSuffix(absl::StripPrefix(host, "["), "]"));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(bare.c_str(), nullptr, &hints, &found);
  if (error != 0) return Unavailable(gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  std::vector<Place> places;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    Place& place = places.emplace_back();
    place.size = a->ai_addrlen;
    memcpy(&place.name, a->ai_addr, a->ai_addrlen);
  }
  return places;
}

template <typename T>
void Set(const Descriptor& socket, int level, int option, T value) {
  static_cast<void>(setsockopt(socket.get(), level, option, &value, sizeof(value)));
}

// Connections have what their listening socket has.
StatusOr<Descriptor> ListenAt(Place place, int port, bool with_ipv4, absl::Duration patience) {
  const int family = place.name.ss_family;
  Descriptor made(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.ok()) return SystemError(absl::StatusCode::kUnavailable, "no socket");
  if (family == AF_INET6) Set(made, IPPROTO_IPV6, IPV6_V6ONLY, with_ipv4 ? 0 : 1);
  Set(made, SOL_SOCKET, SO_REUSEADDR, 1);
  Set(made, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(made, IPPROTO_TCP, TCP_USER_TIMEOUT, Millis(patience));
  place.SetPort(port);
  if (bind(made.get(), place.get(), place.size) != 0 || listen(made.get(), kBacklog) != 0) {
    const int error = errno;
    return Status(error == EADDRINUSE ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kUnavailable,
                  std::generic_category().message(error));
  }
  return made;
}

int PortOf(const Descriptor& socket) {
  Place place;
  place.size = sizeof(place.name);
  if (getsockname(socket.get(), place.get(), &place.size) != 0) return 0;
  return ntohs(place.name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&place.name)->sin6_port
                                                : reinterpret_cast<sockaddr_in*>(&place.name)->sin_port);
}

}  // namespace

StatusOr<std::unique_ptr<Listener>> Listener::Open(Env& env, const std::string& host, int port,
                                                   const Options& options) {
  std::unique_ptr<Listener> made(new Listener(env, host, options));
  Status listens;
  for (int i = 0; i < kAttempts; ++i) {
    listens = made->ListenAtAll(host, port);
    if (port != 0 || !absl::IsAlreadyExists(listens)) break;  // else another port may do
  }
  if (!listens.ok()) return Unavailable(listens.message());
  made->wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->wake_.ok()) return SystemError(absl::StatusCode::kUnavailable, "no event");
  absl::StrAppend(&made->name_, ":", made->port_);
  return made;
}

// AlreadyExists: the port is somebody's at one of the addresses.
Status Listener::ListenAtAll(const std::string& host, int port) {
  listening_.clear();
  const auto listen_at = [&](const Place& place, bool with_ipv4) -> Status {
    MR_ASSIGN_OR_RETURN(Descriptor socket, ListenAt(place, port, with_ipv4, options_.patience));
    if (port == 0) port = PortOf(socket);
    listening_.push_back(std::move(socket));
    return absl::OkStatus();
  };
  MR_ASSIGN_OR_RETURN(std::vector<Place> places, PlacesOf(host));
  Status why = Unavailable("the host has no address");
  if (host == "0.0.0.0" || host == "[::]") {
    Place any;
    any.name.ss_family = AF_INET6;
    any.size = sizeof(sockaddr_in6);
    why = listen_at(any, true);
    if (why.ok() || absl::IsAlreadyExists(why)) places.clear();  // otherwise there is no IPv6 here
  }
  for (const Place& place : places) {
    why = listen_at(place, false);
    if (absl::IsAlreadyExists(why)) break;
  }
  if (absl::IsAlreadyExists(why) || listening_.empty()) return why;
  port_ = port;
  return absl::OkStatus();
}

Status Listener::Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> taker) {
  taker_ = std::move(taker);
  {
    absl::MutexLock lock(&mu_);
    is_running_ = true;
  }
  Status started = env_.StartThread([this] { Run(); });
  if (started.ok()) return started;
  absl::MutexLock lock(&mu_);
  is_running_ = false;
  return started;
}

Listener::~Listener() {
  const uint64_t one = 1;
  if (wake_.ok()) static_cast<void>(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  absl::MutexLock lock(&mu_);
  env_.Await(mu_, absl::Condition(+[](bool* is_running) { return !*is_running; }, &is_running_));
}

void Listener::Run() {
  std::vector<pollfd> waited{{wake_.get(), POLLIN, 0}};
  for (const Descriptor& socket : listening_) waited.push_back({socket.get(), POLLIN, 0});
  while (waited[0].revents == 0) {
    if (poll(waited.data(), waited.size(), -1) < 0) continue;  // a signal
    for (size_t i = 1; i < waited.size(); ++i) {
      if (waited[i].revents != 0) TakeAllFrom(waited[i].fd);
    }
  }
  absl::MutexLock lock(&mu_);
  is_running_ = false;
}

void Listener::TakeAllFrom(int listening) {
  for (int i = 0; i < kTakenAtOnce; ++i) {
    Descriptor taken(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!taken.ok()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return;
      pollfd wake{wake_.get(), POLLIN, 0};
      poll(&wake, 1, kNoRoomMillis);
      return;
    }
    if (limit_.IsReached(CountOpen())) {
      limit_.Refuse(std::move(taken), name_, FarewellOfFull());
      continue;
    }
    struct stat info{};
    if (options_.most > 0 && fstat(taken.get(), &info) == 0) open_.emplace_back(taken.get(), info.st_ino);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters handed;
    handed.listener_fd = listening;
    handed.fd = taken.Release();
    taker_->HandleNewConnection(&handed);
  }
}

// gRPC does not tell when one ends. Then its descriptor is none, or that of something else.
int64_t Listener::CountOpen() {
  if (limit_.IsReached(static_cast<int64_t>(open_.size()))) {
    std::erase_if(open_, [](const Connection& c) {
      struct stat info{};
      return fstat(c.first, &info) != 0 || info.st_ino != c.second || !S_ISSOCK(info.st_mode);
    });
  }
  return static_cast<int64_t>(open_.size());
}

// Length 8, type 7, no flags, stream 0; the last stream, which was none, and the error ENHANCE_YOUR_CALM.
std::string FarewellOfFull() { return std::string("\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0b", 17); }
bool IsFarewellOfFull(const std::string& bytes) { return absl::StartsWith(bytes, FarewellOfFull()); }

}  // namespace millrace::grpc_transport
