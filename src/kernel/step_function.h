// SPDX-License-Identifier: Apache-2.0
// Functions of a graph's library that kernels run by themselves, as often as they like and beyond the step that they
// got them in: what data sets are made of.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernel/cancellation.h"
#include "op/attr.h"

namespace millrace {

class StepTrace;

struct FunctionCall {
  CancellationManager& cancellation;         // ends it early; an error of the call does not touch it
  std::optional<int> inter_op_threads = {};  // that run its nodes at once; nothing: as the session says
  StepTrace* trace = nullptr;                // of the step that waits for the call; null: what it runs is not traced
};

// Compiled for one device. Thread-safe.
class StepFunction : public RefCounted {
 public:
  // Returns when the call is over; the caller's thread may wait.
  virtual Status Run(absl::Span<const Tensor> args, const FunctionCall& call, std::vector<Tensor>* results) const = 0;
  // Whether what a call gives may depend on the calls before it: its kernels remember something, as random ops do.
  virtual bool KeepsState() const = 0;
};

// The functions that the nodes of a partition can name. They are compiled on the caller's thread; `cancellation` ends
// that with its reason. Thread-safe.
class FunctionSource {
 public:
  virtual ~FunctionSource() = default;
  // NotFound when there is none of that name; InvalidArgument when it does not take `arg_types`, or its body is broken.
  virtual StatusOr<RefPtr<StepFunction>> Compile(const FuncAttr& function, const std::vector<DType>& arg_types,
                                                 CancellationManager& cancellation) = 0;
  // Compile, but one function for all who ask for it, so that its kernels' state is theirs together: what functions
  // that call themselves are made of. Kept as long as the source; hold the result for the time of a call only.
  virtual StatusOr<RefPtr<StepFunction>> Shared(const FuncAttr& function, const std::vector<DType>& arg_types,
                                                CancellationManager& cancellation) = 0;
  // What `graph`, which brings its functions along, gives at `output` ("node:0"). It is checked as any import is.
  virtual StatusOr<RefPtr<StepFunction>> CompileImported(
      const wire::GraphDef& graph, const std::string& output, CancellationManager& cancellation) = 0;
  // The functions of these names and those that they name in turn, with their gradients. NotFound.
  virtual StatusOr<wire::FunctionDefLibrary> Definitions(std::vector<std::string> names) const = 0;
  // Whether who asks is part of a function itself, and not of a step.
  virtual bool IsInsideFunction() const { return false; }
};

// What a kernel is, besides, that runs functions: told where they are before it computes.
class UsesFunctions {
 public:
  virtual ~UsesFunctions() = default;
  virtual void SetFunctions(std::shared_ptr<FunctionSource> functions) = 0;
};

}  // namespace millrace
