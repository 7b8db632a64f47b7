// SPDX-License-Identifier: Apache-2.0
// Sockets at "unix:PATH", for processes of one user. "unix:@NAME" is one without a file, which ends with its process;
// like ports, such names belong to a network namespace.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/descriptor.h"
#include "base/status.h"

namespace millrace::shm {

// The path, or "@NAME"; InvalidArgument unless the address has this form and fits into a socket's name.
StatusOr<std::string> PathOf(const std::string& address);

inline bool HasFile(const std::string& path) { return path.front() != '@'; }

// Removes what a dead process has left at `path`. Only the user of this process may connect.
StatusOr<Descriptor> ListenAt(const std::string& path);
StatusOr<Descriptor> ConnectTo(const std::string& path);

struct PeerProcess {
  pid_t pid = 0;
  uid_t uid = 0;
};
// PermissionDenied when the other end belongs to another user, root excepted.
StatusOr<PeerProcess> CheckPeer(const Descriptor& socket);

}  // namespace millrace::shm
