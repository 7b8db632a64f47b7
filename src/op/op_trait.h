// SPDX-License-Identifier: Apache-2.0
// What compilation must know of an op beyond its signature. Declarations say it (OpDeclaration::Traits), and nodes
// have it (Node::Is): no pass asks for an op's name.
#pragma once

#include <cstdint>

namespace millrace {

enum class OpTrait : uint8_t {
  kInternal,          // of the system: its name begins with '_'
  kConstant,          // its output is its attribute `value`
  kPlaceholder,       // stands for what a caller may feed
  kArgument,          // argument `index` of the graph that holds it
  kResult,            // result `index` of the graph that holds it
  kTransfer,          // meets its counterpart in the step's rendezvous
  kWaits,             // may have to wait for more than its inputs
  kChecks,            // may fail on purpose: runs also where nobody reads what it returns
  kNeverFolds,        // has a meaning beside its value
  kKeepsState,        // changes what it is given, although it is not declared as stateful
  kPassesOn,          // its output is its input 0
  kReadsShape,        // of its input it reads the shape and no value
  kDoesNothing,       // for its control edges
  kMakesVariable,     // its output is a variable or the handle of one
  kReadsVariable,     // its output is the value of the variable of input 0
  kUpdatesVariable,   // may change the variable of input 0
  kOneIsNeutral,      // of two inputs the first is the result where the second is 1
  kOneIsNeutralLeft,  // and the second where the first is 1
  kZeroIsNeutral,     // of two inputs the first is the result where the second is 0
};

class OpTraits {
 public:
  void Add(OpTrait t) { bits_ |= uint32_t{1} << static_cast<unsigned>(t); }
  bool Has(OpTrait t) const { return (bits_ >> static_cast<unsigned>(t) & 1) != 0; }

 private:
  uint32_t bits_ = 0;
};

}  // namespace millrace
