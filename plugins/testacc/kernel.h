// SPDX-License-Identifier: Apache-2.0
// How the accelerator's kernels are written: functions of a Context, which check shapes on the host and queue what
// touches values.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "accelerator.h"

namespace testacc {

// Thrown by kernels, and by queued work (which then fails late).
struct Failed {
  TF_Code code;
  std::string message;
};
[[noreturn]] inline void Invalid(const std::string& message) { throw Failed{TF_INVALID_ARGUMENT, message}; }
inline void Require(bool condition, const char* message) {
  if (!condition) Invalid(message);
}

class ScopedStatus {
 public:
  ScopedStatus() : status_(TF_NewStatus()) {}
  ~ScopedStatus() { TF_DeleteStatus(status_); }
  ScopedStatus(const ScopedStatus&) = delete;
  ScopedStatus& operator=(const ScopedStatus&) = delete;
  operator TF_Status*() const { return status_; }
  void ThrowIfFailed() const {
    if (TF_GetCode(status_) != TF_OK) throw Failed{TF_GetCode(status_), TF_Message(status_)};
  }

 private:
  TF_Status* const status_;
};

using Dims = std::vector<int64_t>;
int64_t Count(const Dims& dims);
std::string Text(const Dims& dims);

// A tensor's type, shape and elements: of the accelerator's memory where its threads find it, so only queued work may
// touch them; of host memory where everybody does.
struct Value {
  TF_DataType type = TF_FLOAT;
  Dims dims;
  int64_t size = 0;
  char* data = nullptr;
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  int rank() const { return static_cast<int>(dims.size()); }
  size_t bytes() const { return static_cast<size_t>(size) * TF_DataTypeSize(type); }
};

// What a kernel reads of its operation when it is made.
class Attrs {
 public:
  explicit Attrs(TF_OpKernelConstruction* c) : c_(c) {}
  int64_t Int(const char* name) const;
  bool Bool(const char* name) const;
  TF_DataType Type(const char* name) const;
  std::string String(const char* name) const;
  std::vector<int64_t> Ints(const char* name) const;

 private:
  TF_OpKernelConstruction* const c_;
};

// Of one call of a compute function.
class Context {
 public:
  explicit Context(TF_OpKernelContext* c);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int num_inputs() const { return TF_NumInputs(c_); }
  int num_outputs() const { return TF_NumOutputs(c_); }
  Value Input(int i);
  Value Output(int o, const Dims& dims);
  // The contents of an integer input in host memory.
  std::vector<int64_t> HostInts(int i);
  int64_t HostInt(int i);
  // Memory for this call's work alone.
  Value Temporary(TF_DataType type, const Dims& dims);
  // Variables to be changed by queued work.
  std::vector<Value> Variables(const std::vector<int>& inputs);
  void ForwardRef(int input, int output);
  // Input i as output o with other dimensions.
  void Reshape(int i, int o, const Dims& dims);

  // `work` runs on a thread of the accelerator, after what was queued before. It may throw Failed.
  void Queue(std::function<void()> work);

 private:
  Value Describe(TF_Tensor* tensor, bool on_host);

  TF_OpKernelContext* const c_;
  Accelerator& device_;
  std::vector<TF_Tensor*> held_;  // deleted at the end
};

using Compute = void (*)(Context&);

struct Registration {
  const char* op;
  std::vector<std::pair<const char*, TF_DataType>> types = {};
  std::vector<const char*> host = {};
};

void RegisterKernel(const Registration& r, void* (*create)(TF_OpKernelConstruction*),
                    void (*compute)(void*, TF_OpKernelContext*), void (*destroy)(void*), TF_Status* status);
void ReportFailure(TF_OpKernelContext* c, const Failed& failed);

// A kernel without attributes.
template <Compute F>
void AddFn(const Registration& r, TF_Status* status) {
  RegisterKernel(
      r, nullptr,
      [](void*, TF_OpKernelContext* c) {
        try {
          Context context(c);
          F(context);
        } catch (const Failed& failed) {
          ReportFailure(c, failed);
        }
      },
      nullptr, status);
}

// K has a constructor from Attrs and void Run(Context&) const.
template <typename K>
void AddClass(const Registration& r, TF_Status* status) {
  RegisterKernel(
      r,
      [](TF_OpKernelConstruction* c) -> void* {
        try {
          return new K(Attrs(c));
        } catch (const Failed& failed) {
          ScopedStatus s;
          TF_SetStatus(s, failed.code, failed.message.c_str());
          TF_OpKernelConstruction_Failure(c, s);
          return nullptr;
        }
      },
      [](void* kernel, TF_OpKernelContext* c) {
        try {
          Context context(c);
          static_cast<const K*>(kernel)->Run(context);
        } catch (const Failed& failed) {
          ReportFailure(c, failed);
        }
      },
      [](void* kernel) { delete static_cast<K*>(kernel); }, status);
}

// The number of a type of elements.
template <typename T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr TF_DataType value = TF_FLOAT;
};
template <>
struct TypeOf<double> {
  static constexpr TF_DataType value = TF_DOUBLE;
};
template <>
struct TypeOf<int32_t> {
  static constexpr TF_DataType value = TF_INT32;
};
template <>
struct TypeOf<int64_t> {
  static constexpr TF_DataType value = TF_INT64;
};
template <>
struct TypeOf<bool> {
  static constexpr TF_DataType value = TF_BOOL;
};

}  // namespace testacc
