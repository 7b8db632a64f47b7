// SPDX-License-Identifier: Apache-2.0
// Ops, kernels, devices and file systems that come through the C API. What a library registers while it is loaded waits
// in a RegistrationScope of the loading thread and is published at once, or not at all; what is registered otherwise is
// published at once. Nothing published is ever taken back: graphs and sessions point into it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capi/plugin/plugin_file_system.h"
#include "kernel/kernel_registry.h"
#include "millrace/c_api_kernels.h"
#include "millrace/c_api_ops.h"
#include "op/op_def.h"
#include "system/device_types.h"

namespace millrace::capi {

using ShapeInferenceFn = void (*)(TF_ShapeInferenceContext*, TF_Status*);

// The functions behind an op's declaration.
struct PluginOp {
  OpDef def;
  ShapeInferenceFn shape = nullptr;
  MR_OpGradientFn gradient = nullptr;
  void* gradient_data = nullptr;
};

struct PluginKernelEntry {
  KernelSpec spec;
  KernelFactory factory;
  std::vector<std::string> host_memory;  // arguments
};

struct Registrations {
  std::vector<PluginOp> ops;
  std::vector<PluginKernelEntry> kernels;
  std::vector<DeviceType> devices;
  std::vector<PluginFileSystem> file_systems;
  Status error;  // the first registration that was refused
  std::vector<std::function<void()>> undo;
};

// Collects what this thread registers until its end. Scopes nest.
class RegistrationScope {
 public:
  RegistrationScope();
  ~RegistrationScope();
  RegistrationScope(const RegistrationScope&) = delete;
  RegistrationScope& operator=(const RegistrationScope&) = delete;

  Registrations& collected() { return collected_; }

 private:
  Registrations collected_;
  RegistrationScope* const outer_;
};

// Into the thread's scope, or published. AlreadyExists: an op of this name, or a kernel of the same priority that
// serves operations which this one serves.
Status RegisterOp(PluginOp op);
Status RegisterKernel(PluginKernelEntry kernel);
Status RegisterDevice(DeviceType device);  // AlreadyExists: the type is taken
// AlreadyExists: the scheme is taken. InvalidArgument: it is no scheme.
Status RegisterFileSystem(PluginFileSystem file_system);
// For what takes effect at once: `undo` is run if the library that this thread loads fails.
void UndoIfLoadingFails(std::function<void()> undo);
// All of it, or nothing and an error.
Status Publish(Registrations registrations);

// What was published for an op; null: it is none of ours. May be called concurrently with Publish.
const PluginOp* FindPluginOp(absl::string_view name);

// The declaration's shape and gradient functions for such ops.
Status PluginShape(ShapeContext& c);
Status PluginGradient(GradContext& c);

}  // namespace millrace::capi
