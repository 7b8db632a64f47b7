// SPDX-License-Identifier: Apache-2.0
// The elements of resource and variant tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ref_counted.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace millrace {

// Names a resource, and keeps it alive when it was made in this process. A handle that came in from outside has a null
// `resource` and is looked up by name; the content of a foreign handle is never trusted as an address.
struct ResourceHandle {
  std::string device;
  std::string container;
  std::string name;
  std::string type_name;
  RefPtr<RefCounted> resource;
};

// Immutable once shared: an op that "changes" a variant makes a new value (or changes the old one as its only holder).
class VariantValue : public RefCounted {
 public:
  virtual std::string TypeName() const = 0;  // e.g. "tensorflow::TensorList"
  virtual std::string DebugString() const = 0;
};

class Variant {
 public:
  Variant() = default;
  explicit Variant(RefPtr<VariantValue> v) : value_(std::move(v)) {}
  const VariantValue* get() const { return value_.get(); }
  VariantValue* get() { return value_.get(); }
  bool empty() const { return !value_; }
  template <typename T>
  const T* As() const {
    return dynamic_cast<const T*>(value_.get());
  }
  template <typename T>
  T* As() {
    return dynamic_cast<T*>(value_.get());
  }

 private:
  RefPtr<VariantValue> value_;
};

}  // namespace millrace
