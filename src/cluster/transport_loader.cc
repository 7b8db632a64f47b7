// SPDX-License-Identifier: Apache-2.0
#include "cluster/transport_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/synchronization/mutex.h"
#include "cluster/transport_library.h"

namespace millrace {
namespace {

constexpr char kGrpcLibrary[] = "libmillrace_grpc.so";

// Where the library or program that this function is in really lies; "" if nobody knows.
std::string OwnFolder() {
  Dl_info where;
  if (dladdr(reinterpret_cast<void*>(&OwnFolder), &where) == 0 || where.dli_fname == nullptr) return "";
  const std::unique_ptr<char, void (*)(void*)> path(realpath(where.dli_fname, nullptr), std::free);
  return path == nullptr ? "" : std::string(Dirname(path.get()));
}

StatusOr<NewTransportFn*> Load() {
  const std::string beside = JoinPath(OwnFolder(), kGrpcLibrary);
  std::string why;
  void* handle = nullptr;
  for (const std::string& name : {beside, std::string(kGrpcLibrary)}) {
    handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
    const char* text = dlerror();
    if (why.empty() && text != nullptr) why = text;
  }
  if (handle == nullptr && access(beside.c_str(), F_OK) != 0) {
    return Unimplemented(
        "this installation has no gRPC, by which other hosts are reached: the wheel never has it; a build from source "
        "on Debian has it where libgrpc++-dev is installed (",
        kGrpcLibrary, ")");
  }
  if (handle == nullptr) {
    return Unimplemented("gRPC, by which other hosts are reached, cannot be loaded: ", why,
                         ". On Debian: apt-get install libgrpc++1.51");
  }
  // It stays in memory, since gRPC's threads may outlive their users for a moment.
  auto* function = reinterpret_cast<NewTransportFn*>(dlsym(handle, kGrpcTransportSymbol));
  if (function == nullptr) return FailedPrecondition(kGrpcLibrary, " has no function ", kGrpcTransportSymbol);
  return function;
}

// Once it is there it stays; what is missing may be installed while we run.
StatusOr<NewTransportFn*> Library() {
  static absl::Mutex mu(absl::kConstInit);
  static NewTransportFn* known = nullptr;
  absl::MutexLock lock(&mu);
  if (known == nullptr) {
    MR_ASSIGN_OR_RETURN(known, Load());
  }
  return known;
}

}  // namespace

StatusOr<std::unique_ptr<RpcTransport>> NewGrpcTransport(Env& env, const RpcTransportOptions& options) {
  MR_ASSIGN_OR_RETURN(NewTransportFn* const create, Library());
  RpcTransport* transport = nullptr;
  Status status;
  const absl::string_view version = create(kTransportLibraryVersion, &env, &options, &transport, &status);
  if (version != kTransportLibraryVersion) {
    return FailedPrecondition(
        kGrpcLibrary, " is of another build: it has version '", version, "', this is '", kTransportLibraryVersion, "'");
  }
  std::unique_ptr<RpcTransport> owned(transport);
  MR_RETURN_IF_ERROR(status);
  return owned;
}

}  // namespace millrace
