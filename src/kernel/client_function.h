// SPDX-License-Identifier: Apache-2.0
// Functions of the client's language that kernels call, by token. Thread-safe.
//
// The library knows nothing of the language: a function takes tensors and gives tensors. It runs on a thread that is
// kept for such calls, never on one of a pool or one that drives a step, so it may wait as long as it likes, and run
// steps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace millrace {

class ClientFunction {
 public:
  virtual ~ClientFunction() = default;
  // May take tensors out of `inputs`. Writes into an input only where it owns the buffer alone.
  virtual Status Call(std::vector<Tensor>& inputs, size_t num_outputs, std::vector<Tensor>* outputs) = 0;
};

// AlreadyExists when the token is taken.
Status RegisterClientFunction(const std::string& token, std::shared_ptr<ClientFunction> function);
// Calls that run keep the function until they return.
void UnregisterClientFunction(const std::string& token);
std::shared_ptr<ClientFunction> FindClientFunction(const std::string& token);

}  // namespace millrace
