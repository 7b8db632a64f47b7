// SPDX-License-Identifier: Apache-2.0
// Functions of the client that steps call.
#include "millrace/c_api_callbacks.h"

#include "capi/internal.h"
#include "capi/plugin/registration.h"
#include "client/interruptible.h"
#include "kernel/client_function.h"

namespace millrace::capi {
namespace {

using Tensors = std::vector<std::unique_ptr<TF_Tensor>>;

// What a call gives and takes, as arrays of pointers.
std::vector<TF_Tensor*> Released(Tensors& list) {
  std::vector<TF_Tensor*> pointers;
  for (auto& t : list) pointers.push_back(t.release());
  return pointers;
}

class CallbackFunction : public ClientFunction {
 public:
  CallbackFunction(MR_ClientFunction function, void* data) : function_(function), data_(data) {}
  ~CallbackFunction() override {
    if (release_) release_(data_);
  }
  void ReleaseWith(void (*release)(void*)) { release_ = release; }

  Status Call(std::vector<Tensor>& inputs, size_t num_outputs, std::vector<Tensor>* outputs) override {
    try {
      return Guarded(inputs, num_outputs, outputs);
    } catch (const std::exception&) {  // not what ends a thread
      return StatusFromException();
    }
  }

 private:
  Status Guarded(std::vector<Tensor>& inputs, size_t num_outputs, std::vector<Tensor>* outputs) {
    Tensors in;
    for (Tensor& t : inputs) in.push_back(std::make_unique<TF_Tensor>(TF_Tensor{std::move(t)}));
    inputs.clear();
    std::vector<TF_Tensor*> given = Released(in), made(num_outputs, nullptr);
    TF_Status status;
    function_(data_, given.data(), static_cast<int>(given.size()), made.data(), static_cast<int>(num_outputs), &status);
    Tensors kept;
    for (size_t i = 0; i < given.size(); ++i) in[i].reset(given[i]);
    for (TF_Tensor* t : made) kept.emplace_back(t);
    if (status.code != TF_OK) return Status(static_cast<absl::StatusCode>(status.code), status.message);
    for (size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i]) return Internal("a function of the client gave output ", i, " no value");
      MR_ASSIGN_OR_RETURN(Tensor value, FeedValue(kept[i].get()));
      outputs->push_back(std::move(value));
    }
    return absl::OkStatus();
  }

  const MR_ClientFunction function_;
  void* const data_;
  void (*release_)(void*) = nullptr;
};

}  // namespace
}  // namespace millrace::capi

using millrace::Status;
using millrace::capi::Guarded;

extern "C" {

void MR_RegisterClientFunction(const char* token, MR_ClientFunction function, void* data, void (*release)(void* data),
                               TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(token);
    MR_CAPI_REQUIRE(function);
    auto made = std::make_shared<millrace::capi::CallbackFunction>(function, data);
    MR_RETURN_IF_ERROR(millrace::RegisterClientFunction(token, made));
    made->ReleaseWith(release);
    millrace::capi::UndoIfLoadingFails([key = std::string(token)] { MR_UnregisterClientFunction(key.c_str()); });
    return absl::OkStatus();
  });
}

void MR_UnregisterClientFunction(const char* token) {
  if (token == nullptr) return;
  millrace::capi::Try(0, [&] { return millrace::UnregisterClientFunction(token), 0; });
}

void MR_SetInterruptCheck(TF_Session* session, int (*check)(void* data), void* data, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    auto* interruptible = dynamic_cast<millrace::Interruptible*>(session->session.get());
    if (interruptible == nullptr) return millrace::Unimplemented("steps of this session cannot be interrupted");
    interruptible->SetInterruptCheck({check, data});
    return absl::OkStatus();
  });
}

}  // extern "C"
