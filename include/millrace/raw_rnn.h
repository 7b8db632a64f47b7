// SPDX-License-Identifier: Apache-2.0
// A recurrent network whose inputs a function decides step by step, as decoders need it (TensorFlow's tf.nn.raw_rnn):
//
//   auto result = millrace::RawRnn(scope, rnn, [&](Scope s, const millrace::RawRnnCall& at) {
//     millrace::RawRnnStep next;
//     next.state = at.first() ? rnn.ZeroState(inputs) : at.state;
//     next.finished = s.Op("GreaterEqual", {at.time, lengths});
//     next.input = ...;   // from at.output, or inputs at at.time
//     return next;        // no `emit`: the cell's output is emitted
//   });
//   Output outputs = result.emitted[0].Stack(scope);   // [steps, batch, width]
#pragma once

#include <limits>

#include "millrace/control_flow.h"
#include "millrace/rnn.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// What the function is given. In the first call, which is made before the loop, the time is 0 and all else empty. In
// the calls after it, the time counts the outputs that are there, and `output` is the latest.
struct RawRnnCall {
  Output time;  // int32 scalar
  // That of the cell, [batch, width]; null in the first call.
  Output output;
  // The cell's.
  Outputs state;
  // What the function returned as such the last time.
  Outputs loop_state;
  // Whether it is the call before the loop.
  bool first() const { return !output; }
};

// What it decides.
struct RawRnnStep {
  Output finished;  // bool [batch], or a scalar for all: these emit zeros and keep their state from now on
  Output input;     // [batch, ...] of the next step
  Outputs state;    // in the first call the initial one, later mostly that of the call
  // In the first call: examples of what is emitted, without the batch (only types and shapes count); later what is
  // emitted, [batch, ...] each. Empty in all calls: the output of the cell.
  Outputs emit;
  // Any values that the function wants to see in its next call; empty later: those of the call.
  Outputs loop_state;
};
// The function: it states what follows from a call, in the scope that it gets.
using RawRnnFn = std::function<RawRnnStep(const Scope&, const RawRnnCall&)>;

// What was emitted, one element per step.
struct EmittedArray {
  // The TensorArray.
  Output handle, flow;
  // Of its elements.
  DType dtype = DType::kFloat;
  Shape element;           // [batch, ...], -1: not known
  bool has_shape = false;  // else not even the rank is
  // [steps, batch, ...]
  Output Stack(Scope scope) const {
    const Output size = scope.Op("TensorArraySizeV3", {handle, flow});
    const Output order = scope.Op("Range", {int32_t{0}, size, int32_t{1}});
    return scope.Op("TensorArrayGatherV3", {handle, order, flow},
                    {{"dtype", dtype}, {"element_shape", has_shape ? Attr::OfShape(element) : Attr::UnknownShape()}});
  }
};

// What a loop leaves.
struct RawRnnResult {
  // An array for each tensor that is emitted.
  std::vector<EmittedArray> emitted;
  // The last ones.
  Outputs state, loop_state;
};

// One step of any cell: of an input and its states to an output and the next states.
using CellStep = std::function<Recurrent::Result(const Scope&, Output input, const Outputs& state)>;

namespace internal {

class RawRnnLoop {
 public:
  RawRnnLoop(const Scope& scope, const CellStep& cell, const RawRnnFn& fn) : scope_(scope), cell_(cell), fn_(fn) {}

  RawRnnResult Run(const LoopOptions& options) {
    const Output time = scope_.Const(Tensor(int32_t{0}));
    first_ = fn_(scope_, {time, {}, {}, {}});
    if (!scope_.status().ok()) return {};
    if (!first_.finished || !first_.input || first_.emit.empty()) {
      Wrong(scope_, "the first call of a RawRnn's function must give `finished`, `input` and `emit`");
      return {};
    }
    has_input_shape_ = scope_.graph().ShapeOf(first_.input, &input_shape_);
    const Shape batch = {input_shape_.empty() ? -1 : input_shape_[0]};
    const Output zero = scope_.Const({0}), one = scope_.Const({1});
    const Output size = scope_.Op("StridedSlice", {scope_.Op("Shape", {first_.input}), zero, one, one});
    Outputs variables = {time, first_.finished, first_.input};
    for (const Output& e : first_.emit) {
      EmittedArray array;
      array.dtype = e.dtype();
      Shape rest;
      array.has_shape = scope_.graph().ShapeOf(e, &rest);
      array.element = batch;
      array.element.insert(array.element.end(), rest.begin(), rest.end());
      const Operation made = scope_.Op(
          "TensorArrayV3", {int32_t{0}},
          {{"dtype", array.dtype},
           {"dynamic_size", true},
           {"element_shape", array.has_shape ? Attr::OfShape(array.element) : Attr::UnknownShape()}});
      if (!made) return {};
      array.handle = made[0];
      const Output dims = scope_.Op("ConcatV2", {Outputs{size, scope_.Op("Shape", {e})}, int32_t{0}});
      zeros_.push_back(scope_.Op("Fill", {dims, scope_.Op("Cast", {int32_t{0}}, {{"DstT", array.dtype}})}));
      variables.push_back(made[1]);
      arrays_.push_back(array);
    }
    variables.insert(variables.end(), first_.state.begin(), first_.state.end());
    variables.insert(variables.end(), first_.loop_state.begin(), first_.loop_state.end());
    if (!scope_.status().ok()) return {};
    const Outputs last = WhileLoop(
        scope_, variables, [](Scope s, const Outputs& v) { return Continue(s, v[1]); },
        [this](Scope s, const Outputs& v) { return Body(s, v); }, options);
    if (last.size() != variables.size()) return {};
    RawRnnResult result{arrays_, {}, {}};
    for (size_t i = 0; i < arrays_.size(); ++i) result.emitted[i].flow = last[3 + i];
    result.state = Piece(last, 3 + arrays_.size(), first_.state.size());
    result.loop_state = Piece(last, last.size() - first_.loop_state.size(), first_.loop_state.size());
    return result;
  }

 private:
  static Outputs Piece(const Outputs& list, size_t from, size_t count) {
    const auto begin = list.begin() + static_cast<std::ptrdiff_t>(from);
    return Outputs(begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  static Outputs Wrong(Scope& s, const char* what) { return s.Fail(Status(TF_INVALID_ARGUMENT, what)), Outputs(); }
  static Output Continue(Scope s, Output finished) {
    const Output count = s.Op("Rank", {finished});
    const Output all = s.Op("All", {finished, s.Op("Range", {int32_t{0}, count, int32_t{1}})});
    return s.Op("LogicalNot", {all});
  }

  // Variables: time, finished, input, a flow per array, the states, the loop's own.
  Outputs Body(Scope s, const Outputs& v) {
    const size_t emits = arrays_.size(), states = first_.state.size();
    const Outputs held = Piece(v, 3 + emits, states);
    const Recurrent::Result step = cell_(s, v[2], held);
    if (!step.outputs || step.state.size() != states) return Wrong(s, "the cell gives other states than it takes");
    RawRnnCall call{s.Op("AddV2", {v[0], int32_t{1}}), step.outputs, step.state,
                    Piece(v, 3 + emits + states, first_.loop_state.size())};
    RawRnnStep next = fn_(s, call);
    if (!s.status().ok()) return {};
    if (next.loop_state.empty()) next.loop_state = call.loop_state;
    if (!next.finished || !next.input || next.emit.size() != emits || next.state.size() != states ||
        next.loop_state.size() != first_.loop_state.size()) {
      return Wrong(s, "a RawRnn's function must always give as many tensors as in its first call");
    }
    if (has_input_shape_) SetShape(s, next.input, input_shape_);
    Outputs out = {call.time, s.Op("LogicalOr", {v[1], next.finished}), next.input};
    for (size_t i = 0; i < emits; ++i) {
      const Output value = Through(s, v[1], zeros_[i], next.emit[i]);
      out.push_back(s.Op("TensorArrayWriteV3", {arrays_[i].handle, v[0], value, v[3 + i]}));
    }
    for (size_t i = 0; i < states; ++i) out.push_back(Through(s, v[1], held[i], next.state[i]));
    out.insert(out.end(), next.loop_state.begin(), next.loop_state.end());
    return out;
  }

  // Where an example is finished, what it had. A scalar is for all and just passes.
  Output Through(Scope& s, Output finished, Output had, Output now) const {
    Shape shape;
    const bool known = s.graph().ShapeOf(had, &shape);
    if (known && shape.empty()) return now;
    const Output chosen = s.Op("Select", {finished, had, now});
    if (known) SetShape(s, chosen, shape);
    return chosen;
  }
  static void SetShape(Scope& s, Output o, const Shape& shape) {
    CallStatus status;
    if (o) Api().GraphSetTensorShape(s.graph().get(), o.get(), shape.data(), static_cast<int>(shape.size()), status);
  }

  Scope scope_;
  const CellStep& cell_;
  const RawRnnFn& fn_;
  RawRnnStep first_;
  Shape input_shape_;
  bool has_input_shape_ = false;
  std::vector<EmittedArray> arrays_;
  Outputs zeros_;
};

}  // namespace internal

// Runs any cell until all examples are finished. The first call of `fn` must say what is emitted.
inline RawRnnResult RawRnn(const Scope& scope, const CellStep& cell, const RawRnnFn& fn,
                           const LoopOptions& options = {}) {
  return internal::RawRnnLoop(scope, cell, fn).Run(options);
}

// Runs `rnn`'s cell until all examples are finished.
inline RawRnnResult RawRnn(const Scope& scope, Recurrent& rnn, const RawRnnFn& fn, const LoopOptions& options = {}) {
  const CellStep cell = [&rnn](const Scope&, Output input, const Outputs& state) { return rnn.Step(input, state); };
  bool own = false;  // whether the function says what is emitted
  const RawRnnFn emits = [&](const Scope& at, const RawRnnCall& call) {
    RawRnnStep next = fn(at, call);
    if (call.first()) own = !next.emit.empty();
    if (own || !at.status().ok()) return next;
    Scope s = at;
    if (!call.first()) {
      next.emit = {call.output};
    } else if (!next.state.empty()) {
      next.emit = {
          s.Op("Fill", {s.Const({rnn.output_size()}), s.Op("Cast", {int32_t{0}}, {{"DstT", next.state[0].dtype()}})})};
    }
    return next;
  };
  return RawRnn(scope, cell, emits, options);
}

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
