// SPDX-License-Identifier: Apache-2.0
#include "capi/plugin/loader.h"

#include <dlfcn.h>
#include <link.h>

#include <map>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/current_thread.h"
#include "base/env.h"
#include "capi/internal.h"
#include "capi/plugin/foreign.h"
#include "capi/plugin/registration.h"
#include "system/system.h"

namespace millrace::capi {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);  // with another thread that loads the same library

struct Loaded {
  bool done = false;
  uint32_t loader = 0;
  Status status;
  wire::OpList ops;
};
// By dlopen's handle, which is the same for the same file.
struct Libraries {
  absl::Mutex mu;
  std::map<void*, std::shared_ptr<Loaded>> by_handle ABSL_GUARDED_BY(mu);
};
Libraries& TheLibraries() {
  static auto* const libraries = new Libraries;
  return *libraries;
}

// A symbol of the library itself, not of one that it needs.
void* OwnSymbol(void* handle, const char* name) {
  void* symbol = dlsym(handle, name);
  link_map* library = nullptr;
  Dl_info where;
  if (symbol == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0 || dladdr(symbol, &where) == 0)
    return nullptr;
  const auto* mapped = reinterpret_cast<const void*>(library->l_addr);
  return mapped == where.dli_fbase ? symbol : nullptr;
}

Status CheckVersion(const MR_PluginInfo& info) {
  if (info.struct_size < sizeof(MR_PluginInfo)) {
    return FailedPrecondition("its " MR_PLUGIN_INFO_SYMBOL " has ", info.struct_size, " bytes, want ", sizeof(info));
  }
  if (info.api_version != MR_API_VERSION) {
    return FailedPrecondition("it was made for version ", info.api_version,
                              " of this library's interface, which has version ", MR_API_VERSION);
  }
  if (info.api_size > sizeof(MR_Api)) {
    return FailedPrecondition("it was made for a newer version of this library (a table of ", info.api_size,
                              " bytes, this one has ", sizeof(MR_Api), ")");
  }
  return absl::OkStatus();
}

Status Initialise(void* handle) {
  auto plugin_init = reinterpret_cast<MR_PluginInitFn>(OwnSymbol(handle, MR_PLUGIN_INIT_SYMBOL));
  auto init_kernel = reinterpret_cast<void (*)()>(OwnSymbol(handle, "TF_InitKernel"));
  auto init_files = reinterpret_cast<void (*)(TF_FilesystemPluginInfo*)>(OwnSymbol(handle, "TF_InitPlugin"));
  if (plugin_init != nullptr) {
    TF_Status reported;
    MR_RETURN_IF_ERROR(CallForeign([&] { plugin_init(MR_GetApi(), &reported); }));
    MR_RETURN_IF_ERROR(FromStatus(reported));
  }
  if (init_kernel != nullptr) MR_RETURN_IF_ERROR(CallForeign(init_kernel));
  if (init_files != nullptr) {
    MR_ASSIGN_OR_RETURN(std::vector<PluginFileSystem> systems, InitFileSystems(init_files));
    for (PluginFileSystem& system : systems) MR_RETURN_IF_ERROR(RegisterFileSystem(std::move(system)));
  }
  return absl::OkStatus();
}

void Undo(std::vector<std::function<void()>>& list) {
  for (; !list.empty(); list.pop_back()) list.back()();
}

// After the library's own code has run in `scope`.
Status Finish(void* handle, RegistrationScope& scope, wire::OpList* ops) {
  if (const auto* info = static_cast<const MR_PluginInfo*>(OwnSymbol(handle, MR_PLUGIN_INFO_SYMBOL))) {
    MR_RETURN_IF_ERROR(CheckVersion(*info));
  }
  MR_RETURN_IF_ERROR(Initialise(handle));
  Registrations& found = scope.collected();
  MR_RETURN_IF_ERROR(found.error);
  if (found.ops.empty() && found.kernels.empty() && found.devices.empty() && found.file_systems.empty() &&
      OwnSymbol(handle, MR_PLUGIN_INIT_SYMBOL) == nullptr) {
    return InvalidArgument(
        "it registers no op, no kernel and no file system with this library, and has no function " MR_PLUGIN_INIT_SYMBOL
        " (libraries of TensorFlow ops in C++ run only in TensorFlow; what had been opened by other means has "
        "registered then)");
  }
  for (const PluginOp& op : found.ops) {
    MR_ASSIGN_OR_RETURN(ops->op.emplace_back(), OpDefToProto(op.def));
  }
  std::vector<std::function<void()>> undo = std::move(found.undo);
  Status published = Publish(std::move(found));
  if (!published.ok()) Undo(undo);
  return published;
}

// Takes the library for this thread, or waits for the thread that has it.
StatusOr<bool> Claim(void* handle, std::shared_ptr<Loaded>* entry) {
  Libraries& libraries = TheLibraries();
  absl::MutexLock lock(&libraries.mu);
  std::shared_ptr<Loaded>& known = libraries.by_handle[handle];
  const bool is_first = known == nullptr;
  if (is_first) {
    known = std::make_shared<Loaded>();
    known->loader = CurrentThread();
  }
  *entry = known;
  if (is_first || known->done) return is_first;
  if (known->loader == CurrentThread()) return FailedPrecondition("it is being loaded by itself");
  Loaded* const wanted = known.get();
  if (!Env::Default().Await(libraries.mu, absl::Condition(&wanted->done), kPatience)) {
    return DeadlineExceeded("another thread has been loading it for ", absl::FormatDuration(kPatience));
  }
  return false;
}

StatusOr<wire::OpList> Load(const std::string& path) {
  System::Default();  // before the library's constructors
  RegistrationScope scope;
  void* handle = nullptr;
  std::string why;
  MR_RETURN_IF_ERROR(CallForeign([&] {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return;
    const char* text = dlerror();
    why = text ? text : "unknown reason";
  }));
  if (handle == nullptr) return NotFound("it cannot be opened: ", why);
  std::shared_ptr<Loaded> entry;
  MR_ASSIGN_OR_RETURN(const bool is_first, Claim(handle, &entry));
  Libraries& libraries = TheLibraries();
  if (is_first) {
    wire::OpList ops;
    Status status;
    try {
      status = Finish(handle, scope, &ops);
    } catch (...) {
      status = StatusFromException();
    }
    if (!status.ok()) Undo(scope.collected().undo);
    absl::MutexLock lock(&libraries.mu);
    entry->status = std::move(status);
    entry->ops = std::move(ops);
    entry->done = true;
  }
  absl::MutexLock lock(&libraries.mu);
  MR_RETURN_IF_ERROR(entry->status);
  return entry->ops;
}

}  // namespace

StatusOr<wire::OpList> LoadPlugin(const std::string& path) {
  StatusOr<wire::OpList> ops = Load(path);
  if (ops.ok()) return ops;
  return Annotate(ops.status(), absl::StrCat("library '", path, "': "));
}

}  // namespace millrace::capi
