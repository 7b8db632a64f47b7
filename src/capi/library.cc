// SPDX-License-Identifier: Apache-2.0
// Plugins, logging, and the entry points that are not provided.
#include <dlfcn.h>

#include "base/logging.h"
#include "capi/internal.h"

using millrace::InvalidArgument;
using millrace::NotFound;
using millrace::Status;
using millrace::StatusOr;
using millrace::Unimplemented;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

struct TF_Library {
  std::string op_list;  // an encoded OpList
};

namespace {

std::string LastLinkerError() {
  const char* text = dlerror();
  return text ? text : "unknown reason";
}

// What a plugin reported, as a status.
Status FromStatus(const TF_Status& s) {
  return s.code == TF_OK ? absl::OkStatus() : Status(static_cast<absl::StatusCode>(s.code), s.message);
}

StatusOr<TF_Library*> LoadPlugin(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return NotFound("cannot open '", path, "': ", LastLinkerError());
  auto init = reinterpret_cast<MR_PluginInitFn>(dlsym(handle, MR_PLUGIN_INIT_SYMBOL));
  if (init == nullptr) {
    dlclose(handle);
    return InvalidArgument("'", path, "' is no Millrace plugin: it has no function ", MR_PLUGIN_INIT_SYMBOL,
                           " (libraries of TensorFlow ops run only in TensorFlow)");
  }
  TF_Status reported;
  init(MR_GetApi(), &reported);
  MR_RETURN_IF_ERROR(millrace::Annotate(FromStatus(reported), absl::StrCat("plugin '", path, "': ")));
  return new TF_Library();  // the shared library stays: what it registered points into it
}

Status NoServers() { return Unimplemented("this build has no servers; use the local session"); }
Status NoApiDefs() { return Unimplemented("ApiDef maps are not provided"); }

}  // namespace

extern "C" {

TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status) {
  return GuardedOr<TF_Library*>(status, nullptr, [&]() -> StatusOr<TF_Library*> {
    MR_CAPI_REQUIRE(library_filename);
    return LoadPlugin(library_filename);
  });
}

TF_Buffer TF_GetOpList(TF_Library* lib_handle) {
  if (lib_handle == nullptr) return {nullptr, 0, nullptr};
  return {lib_handle->op_list.data(), lib_handle->op_list.size(), nullptr};
}

void TF_DeleteLibraryHandle(TF_Library* lib_handle) { delete lib_handle; }

void TF_RegisterLogListener(void (*listener)(const char*)) {
  millrace::capi::Try(0, [&] {
    if (listener == nullptr) return millrace::SetLogListener({}), 0;
    millrace::SetLogListener([listener](millrace::LogLevel, const std::string& text) { listener(text.c_str()); });
    return 0;
  });
}

TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer*, TF_Status* status) {
  Guarded(status, NoApiDefs);
  return nullptr;
}
void TF_DeleteApiDefMap(TF_ApiDefMap*) {}
void TF_ApiDefMapPut(TF_ApiDefMap*, const char*, size_t, TF_Status* status) { Guarded(status, NoApiDefs); }
TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap*, const char*, size_t, TF_Status* status) {
  Guarded(status, NoApiDefs);
  return nullptr;
}

TF_Server* TF_NewServer(const void*, size_t, TF_Status* status) {
  Guarded(status, NoServers);
  return nullptr;
}
void TF_ServerStart(TF_Server*, TF_Status* status) { Guarded(status, NoServers); }
void TF_ServerStop(TF_Server*, TF_Status* status) { Guarded(status, NoServers); }
void TF_ServerJoin(TF_Server*, TF_Status* status) { Guarded(status, NoServers); }
const char* TF_ServerTarget(TF_Server*) { return ""; }
void TF_DeleteServer(TF_Server*) {}

void TF_RegisterFilesystemPlugin(const char*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("file system plugins are not provided"); });
}

}  // extern "C"
