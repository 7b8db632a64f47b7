// SPDX-License-Identifier: Apache-2.0
#include "cluster/shm/address.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "absl/strings/strip.h"

namespace millrace::shm {
namespace {

constexpr int kBacklog = 1024;

struct Name {
  sockaddr_un name{};
  socklen_t size = sizeof(sockaddr_un);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Name NameOf(const std::string& path) {
  Name made;
  made.name.sun_family = AF_UNIX;
  memcpy(made.name.sun_path, path.data(), path.size());
  if (!HasFile(path)) {  // Linux's form: a first byte of 0, and the length counts
    made.name.sun_path[0] = '\0';
    made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  }
  return made;
}

StatusOr<Descriptor> NewSocket() {
  Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.ok()) return SystemError(absl::StatusCode::kResourceExhausted, "no socket");
  return made;
}

}  // namespace

StatusOr<std::string> PathOf(const std::string& address) {
  absl::string_view path = address;
  if (!absl::ConsumePrefix(&path, "unix:") || path.empty()) {
    return InvalidArgument("address '", address, "': want unix:PATH");
  }
  if (path.size() >= sizeof(sockaddr_un::sun_path) || path.find('\0') != absl::string_view::npos) {
    return InvalidArgument("address '", address, "': the path has ", path.size(), " bytes; a socket's has at most ",
                           sizeof(sockaddr_un::sun_path) - 1);
  }
  return std::string(path);
}

StatusOr<Descriptor> ConnectTo(const std::string& path) {
  MR_ASSIGN_OR_RETURN(Descriptor made, NewSocket());
  const Name name = NameOf(path);
  if (connect(made.get(), name.get(), name.size) != 0) {
    return SystemError(absl::StatusCode::kUnavailable, absl::StrCat("cannot connect to unix:", path));
  }
  MR_RETURN_IF_ERROR(CheckPeer(made).status());
  return made;
}

StatusOr<Descriptor> ListenAt(const std::string& path) {
  MR_ASSIGN_OR_RETURN(Descriptor made, NewSocket());
  const Name name = NameOf(path);
  const auto bind_it = [&] { return bind(made.get(), name.get(), name.size) == 0; };
  if (!bind_it()) {
    struct stat info{};
    const bool is_dead = errno == EADDRINUSE && stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) &&
                         !ConnectTo(path).ok() && errno == ECONNREFUSED;
    if (!is_dead || unlink(path.c_str()) != 0 || !bind_it()) {
      return SystemError(absl::StatusCode::kUnavailable, absl::StrCat("cannot listen at unix:", path));
    }
  }
  // Before it listens nobody can connect.
  if ((HasFile(path) && chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) || listen(made.get(), kBacklog) != 0) {
    return SystemError(absl::StatusCode::kUnavailable, absl::StrCat("cannot listen at unix:", path));
  }
  return made;
}

StatusOr<PeerProcess> CheckPeer(const Descriptor& socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return SystemError(absl::StatusCode::kUnavailable, "nobody knows who the peer is");
  }
  if (credentials.uid != geteuid() && credentials.uid != 0) {
    return PermissionDenied("the peer belongs to user ", credentials.uid, ", this process to ", geteuid());
  }
  return PeerProcess{credentials.pid, credentials.uid};
}

}  // namespace millrace::shm
