// SPDX-License-Identifier: Apache-2.0
// Plugins and logging.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/logging.h"
#include "base/settings.h"
#include "capi/internal.h"
#include "capi/plugin/loader.h"
#include "tensorflow/c/logging.h"

using millrace::Status;
using millrace::StatusOr;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

struct TF_Library {
  std::string op_list;  // an encoded OpList
};

extern "C" {

TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status) {
  return GuardedOr<TF_Library*>(status, nullptr, [&]() -> StatusOr<TF_Library*> {
    MR_CAPI_REQUIRE(library_filename);
    MR_ASSIGN_OR_RETURN(const millrace::wire::OpList ops, millrace::capi::LoadPlugin(library_filename));
    return new TF_Library{millrace::wire::Encode(ops)};
  });
}

void MR_LoadPlugin(const char* path, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(path);
    return millrace::capi::LoadPlugin(path).status();
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

void TF_Log(TF_LogLevel level, const char* fmt, ...) {
  if (fmt == nullptr) return;
  char line[2048];
  va_list values;
  va_start(values, fmt);
  const int length = std::vsnprintf(line, sizeof(line), fmt, values);
  va_end(values);
  if (length < 0) return;
  millrace::capi::Try(0, [&] {
    millrace::LogLine(static_cast<millrace::LogLevel>(std::clamp<int>(level, TF_INFO, TF_ERROR)), line);
    return 0;
  });
}
void TF_VLog(int, const char*, ...) {}
void TF_DVLog(int, const char*, ...) {}

void MR_SettingsTable(TF_Buffer* table, TF_Status* status) {
  Guarded(status, [&]() -> Status { return millrace::capi::FillBuffer(table, millrace::SettingsTable(), "table"); });
}

void TF_RegisterFilesystemPlugin(const char* plugin_filename, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(plugin_filename);
    return millrace::capi::LoadPlugin(plugin_filename).status();
  });
}

}  // extern "C"
