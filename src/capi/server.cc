// SPDX-License-Identifier: Apache-2.0
// Servers of this process.
#include "cluster/server.h"

#include "capi/internal.h"
#include "system/system.h"

using millrace::Status;
using millrace::StatusOr;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

struct TF_Server {
  std::unique_ptr<millrace::Server> server;
};

extern "C" {

TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status) {
  return GuardedOr<TF_Server*>(status, nullptr, [&]() -> StatusOr<TF_Server*> {
    millrace::wire::ServerDef def;
    MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(proto, proto_len, "ServerDef", &def));
    MR_ASSIGN_OR_RETURN(std::unique_ptr<millrace::Server> server, millrace::System::Default().NewServer(def));
    return new TF_Server{std::move(server)};
  });
}

void TF_ServerStart(TF_Server* server, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(server);
    return server->server->Start();
  });
}

void TF_ServerStop(TF_Server* server, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(server);
    return server->server->Stop();
  });
}

void TF_ServerJoin(TF_Server* server, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(server);
    return server->server->Join();
  });
}

const char* TF_ServerTarget(TF_Server* server) { return server ? server->server->target().c_str() : ""; }

void TF_DeleteServer(TF_Server* server) { delete server; }

void MR_ServerStatus(TF_Server* server, TF_Buffer* json, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(server);
    MR_CAPI_REQUIRE(json);
    return millrace::capi::FillBuffer(json, server->server->StatusAsJson(), "status");
  });
}

void MR_ServerSteps(TF_Server* server, TF_Buffer* text, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(server);
    MR_CAPI_REQUIRE(text);
    MR_ASSIGN_OR_RETURN(const std::string steps, server->server->DescribeSteps());
    return millrace::capi::FillBuffer(text, steps, "steps");
  });
}

void MR_TargetStatus(const char* target, int64_t timeout_ms, TF_Buffer* json, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(target);
    MR_CAPI_REQUIRE(json);
    if (timeout_ms < 1) return millrace::InvalidArgument("timeout_ms is ", timeout_ms, ", want 1 or more");
    MR_ASSIGN_OR_RETURN(
        const std::string text, millrace::System::Default().ServerStatus(target, absl::Milliseconds(timeout_ms)));
    return millrace::capi::FillBuffer(json, text, "status");
  });
}

}  // extern "C"
