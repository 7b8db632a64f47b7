// SPDX-License-Identifier: Apache-2.0
// A device: memory, threads and a name. Kernels see it through their context.
#pragma once

#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "op/device_name.h"
#include "tensor/tensor.h"

namespace millrace {

class ResourceManager;

class Device {
 public:
  virtual ~Device() = default;
  const std::string& name() const { return name_; }  // full
  const DeviceName& parsed_name() const { return parsed_; }
  const std::string& type() const { return parsed_.type; }  // "CPU"
  uint64_t incarnation() const { return incarnation_; }
  Allocator& allocator() const { return allocator_; }
  virtual ThreadPool& thread_pool() = 0;
  virtual int64_t memory_limit() const = 0;
  virtual std::string description() const { return ""; }
  virtual ResourceManager& resources() = 0;

 protected:
  Device(DeviceName name, uint64_t incarnation, Allocator& allocator)
      : allocator_(allocator), name_(name.ToString()), parsed_(std::move(name)), incarnation_(incarnation) {}

 private:
  Allocator& allocator_;
  std::string name_;
  DeviceName parsed_;
  uint64_t incarnation_;
};

}  // namespace millrace
