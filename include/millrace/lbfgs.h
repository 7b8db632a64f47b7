// SPDX-License-Identifier: Apache-2.0
// L-BFGS for losses that are the same function in every step: a whole data set, or a batch that stays. Its vectors lie
// beside the variables, wherever those are; only scalars come to the client.
#pragma once

#include <functional>
#include <optional>

#include "millrace/train.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// How L-BFGS runs, and when it ends.
struct LbfgsOptions {
  // Pairs of steps and differences of gradients that it keeps.
  int history = 10;
  // It ends there at the latest.
  int max_iterations = 100;
  double gradient_tolerance = 1e-5;  // done when no |element| of the gradient is larger
  double loss_tolerance = 2.2e-9;    // done when a step gains no more, relative to max(|loss|, 1)
  int max_tries = 20;                // of one line search
};

// How a minimization went.
struct LbfgsResult {
  // The last one.
  double loss = 0;
  // Steps; how often loss and gradients were computed.
  int iterations = 0, evaluations = 0;
  // Whether a tolerance was reached.
  bool converged = false;
  // Why it ended.
  std::string message;
};

namespace internal {

// The vectors beside the variables, and the operations on them: all but the evaluation of loss and gradient.
class LbfgsVectors {
 public:
  // `gradients`: of the variables that the model trains; where there is none, zero is stored.
  LbfgsVectors(Model& model, const Scope& scope, const std::function<std::vector<Output>()>& gradients,
               const LbfgsOptions& options)
      : options_(options) {
    Scope s = scope;
    const int64_t rows = 2 * int64_t{options.history} + 1;
    step_ = s.WithName("step").Placeholder(DType::kDouble, Shape{});
    slot_ = s.WithName("slot").Placeholder(DType::kInt32, Shape{});
    coefficients_ = s.WithName("coefficients").Placeholder(DType::kDouble, Shape{rows});
    const std::vector<Variable> trained = model.trainable();
    if (trained.empty()) model.Note(Status(TF_INVALID_ARGUMENT, "the model trains no variables"));
    const std::vector<Output> given = gradients();
    std::vector<Output> slopes, squares, largest, products;
    for (size_t i = 0; i < trained.size(); ++i) {
      Add(model, s, trained[i], i < given.size() ? given[i] : Output());
      slopes.push_back(part_.slope);
      squares.push_back(part_.square);
      largest.push_back(part_.largest);
      products.push_back(part_.products);
    }
    slope_ = s.Op("AddN", {slopes});
    square_ = s.Op("AddN", {squares});
    largest_ = s.Op("Max", {s.Op("Pack", {largest}), int32_t{0}});
    products_ = s.Op("AddN", {products});
  }

  // Flat, one for each variable: the gradient at the variables' values. `stored` puts there what the constructor got.
  const std::vector<Variable>& there() const { return there_; }
  const std::vector<Operation>& stored() const { return stored_; }

  // `evaluate` sets the loss at the variables' values, and stores its gradient.
  Returned<LbfgsResult> Minimize(const Session& session, const std::function<Status(double* loss)>& evaluate) const {
    const MR_LbfgsOptions options = {options_.history, options_.max_iterations, options_.max_tries,
                                     options_.gradient_tolerance, options_.loss_tolerance};
    internal::CallStatus status;
    const std::unique_ptr<MR_Lbfgs, void (*)(MR_Lbfgs*)> solver(Api().LbfgsNew(&options, status), Api().LbfgsDelete);
    LbfgsResult result;
    Status failure = status.Get();
    MR_LbfgsMove move = {};
    std::vector<double> coefficients(2 * static_cast<size_t>(options_.history < 0 ? 0 : options_.history) + 1);
    const auto tell = [&](const std::vector<double>& values) {
      if (!failure.ok()) return;
      Api().LbfgsTell(solver.get(), values.data(), static_cast<int>(values.size()), &move, coefficients.data(), status);
      failure = status.Get();
    };
    // Appends the values of `fetches`.
    const auto run = [&](const std::vector<Feed>& fed, const std::vector<Output>& fetches,
                         const std::vector<Operation>& targets, std::vector<double>* values) {
      if (failure.ok()) failure = RunOnce(session, fed, fetches, targets, values);
    };
    std::vector<double> values;
    const auto look = [&] {
      values.assign(1, 0.0);
      if (failure.ok()) failure = evaluate(&values[0]);
      ++result.evaluations;
    };
    look();
    run({}, {largest_, square_}, begin_, &values);
    tell(values);
    while (failure.ok() && move.request != MR_LBFGS_DONE) {
      if (move.request == MR_LBFGS_ACCEPT) {
        values.clear();
        run({{slot_, Tensor(static_cast<int32_t>(move.slot))}, {step_, Tensor(move.step)}}, {largest_, products_}, {},
            &values);
        tell(values);
        continue;
      }
      if (move.request == MR_LBFGS_TURN) {
        run({{coefficients_, Tensor::Of<double>({static_cast<int64_t>(coefficients.size())}, coefficients)}}, {}, turn_,
            nullptr);
      }
      run({{step_, Tensor(move.step)}}, {}, move_, nullptr);
      look();
      run({}, {slope_}, {}, &values);
      tell(values);
    }
    run({}, {}, back_, nullptr);
    if (!failure.ok()) return internal::Give(failure, std::move(result));
    result.loss = move.loss;
    result.iterations = move.iterations;
    result.converged = move.converged != 0;
    result.message = Api().LbfgsReason(solver.get());
    return internal::Give(Status(), std::move(result));
  }

 private:
  struct Part {
    Output slope, square, largest, products;
  };

  static Status RunOnce(const Session& session, const std::vector<Feed>& feeds, const std::vector<Output>& fetches,
                        const std::vector<Operation>& targets, std::vector<double>* values) {
    std::vector<Tensor> got;
    const Status s = session.TryRun(feeds, fetches, targets, &got);
    for (const Tensor& t : got) {
      for (int64_t i = 0; s.ok() && i < t.num_elements(); ++i) values->push_back(t.data<double>()[i]);
    }
    return s;
  }

  // What is done with one variable, beside it.
  void Add(Model& model, const Scope& outer, const Variable& v, const Output& gradient) {
    const Operation self(v.ref.get().oper);
    Scope s = outer.ColocateWith(self);
    Shape shape;
    int64_t n = 1;
    if (!s.graph().ShapeOf(v.read, &shape)) n = -1;
    for (const int64_t d : shape) n = d < 0 ? -1 : n * d;
    if (n < 0) return model.Note(Status(TF_INVALID_ARGUMENT, "L-BFGS needs a variable of known shape: " + self.name()));
    const DType dtype = v.read.dtype();
    const auto dims = [](const Shape& of) { return Tensor::Of<int64_t>({static_cast<int64_t>(of.size())}, of); };
    const int32_t m = options_.history;
    // Not Model::AddVariable's: these stay with `v` where that is placed later, too.
    const auto vector = [&](const char* name, const Shape& of) {
      Scope here = Scope(s.graph(), outer.prefix() + self.name()).ColocateWith(self);
      const Operation op = here.WithName(name).Op("VariableV2", {}, {{"dtype", dtype}, {"shape", Attr::OfShape(of)}});
      const Scope inside = Scope(s.graph(), op.name()).ColocateWith(self);
      const Output zero = s.Op("Cast", {0.0f}, {{"DstT", dtype}});
      inside.WithName("Assign").Op("Assign", {op, s.Op("Fill", {dims(of), zero})});  // the model's initializer takes it
      return Variable{op, inside.WithName("read").Op("Identity", {op})};
    };
    const auto wide = [&](const Output& o) { return Output(s.Op("Cast", {o}, {{"DstT", DType::kDouble}})); };
    const auto sum = [&](const Output& o) { return Output(s.Op("Sum", {o, int32_t{0}})); };
    const Variable origin = vector("origin", {n}), direction = vector("direction", {n}), there = vector("there", {n});
    const Variable basis = vector("basis", {2 * int64_t{m} + 1, n});
    const Output step = s.Op("Cast", {step_}, {{"DstT", dtype}});
    const Output flat = s.Op("Reshape", {v.read, dims({n})});

    const Output value = gradient ? Output(s.Op("Reshape", {gradient, dims({n})})) : there.read;
    there_.push_back(there);
    stored_.push_back(s.Op("Assign", {there.ref, gradient ? value : Output(s.Op("ZerosLike", {there.read}))}));
    begin_.push_back(s.Op("Assign", {origin.ref, flat}));
    const Output zeros = s.Op("Fill", {dims({2 * int64_t{m}, n}), s.Op("Cast", {0.0f}, {{"DstT", dtype}})});
    const Output row = s.Op("Reshape", {there.read, dims({1, n})});
    begin_.push_back(s.Op("Assign", {basis.ref, s.Op("ConcatV2", {std::vector<Output>{zeros, row}, int32_t{0}})}));
    const Output change = s.Op("Mul", {step, direction.read});
    const Output point = s.Op("Add", {origin.read, change});
    move_.push_back(s.Op("Assign", {v.ref, s.Op("Reshape", {point, dims(shape)})}));
    const Output weights =
        s.Op("Reshape", {s.Op("Cast", {coefficients_}, {{"DstT", dtype}}), dims({1, 2 * int64_t{m} + 1})});
    const Output turned = s.Op("MatMul", {weights, basis.read});
    turn_.push_back(s.Op("Assign", {direction.ref, s.Op("Reshape", {turned, dims({n})})}));
    back_.push_back(s.Op("Assign", {v.ref, s.Op("Reshape", {origin.read, dims(shape)})}));

    part_.slope = sum(s.Op("Mul", {wide(there.read), wide(direction.read)}));
    part_.square = sum(s.Op("Mul", {wide(there.read), wide(there.read)}));
    part_.largest = wide(s.Op("Max", {s.Op("Abs", {there.read}), int32_t{0}}));
    const Output places = s.Op("Pack", {std::vector<Output>{slot_, s.Op("Add", {slot_, m}), s.Const(Tensor(2 * m))}});
    const Output old = s.Op("Gather", {basis.read, 2 * m});
    const Output fresh = s.Op("Pack", {std::vector<Output>{change, s.Op("Sub", {there.read, old}), there.read}});
    const Operation scattered = s.Op("ScatterUpdate", {basis.ref, places, fresh});
    const Operation moved = s.Op("Assign", {origin.ref, flat});
    const Scope after = s.WithControl({scattered, moved});
    const Output all = Scope(after).Op("Identity", {basis.ref});
    const Output rows = s.Op("Gather", {all, places});
    part_.products = wide(s.Op("MatMul", {rows, all}, {{"transpose_b", true}}));
  }

  LbfgsOptions options_;
  Output step_, slot_, coefficients_, slope_, square_, largest_, products_;
  std::vector<Variable> there_;
  std::vector<Operation> stored_, begin_, move_, turn_, back_;
  Part part_;  // of the variable that was added last
};

inline std::vector<Output> LbfgsGradients(Scope s, const Output& loss, const std::vector<Output>& values) {
  if (values.empty() || !s.status().ok()) return {};
#if MILLRACE_EXCEPTIONS
  return s.graph().Gradients({loss}, values);
#else
  const Returned<std::vector<Output> > got = s.graph().Gradients({loss}, values);
  s.Note(got.status());
  return got.ok() ? *got : std::vector<Output>();
#endif
}

}  // namespace internal

// Adds what it needs to the model's graph when it is made: variables too, so that it comes before the model's
// Initializer. The variables that the model trains must have known shapes. An error in what it built is the graph's.
class Lbfgs {
 public:
  // Minimizes a scalar loss of float or double over the variables that the model trains.
  Lbfgs(Model& model, const Output& loss, const LbfgsOptions& options = {}) {
    Scope s = model.scope().SubScope("lbfgs");
    const auto gradients = [&] {
      std::vector<Output> reads;
      for (const Variable& v : model.trainable()) reads.push_back(v.read);
      return internal::LbfgsGradients(model.scope(), loss, reads);
    };
    vectors_.emplace(model, s, gradients, options);
    loss_ = s.WithControl(vectors_->stored()).Op("Cast", {loss}, {{"DstT", DType::kDouble}});
  }

  // From the variables' values on, which are then those of the best point.
  Returned<LbfgsResult> Minimize(const Session& session, const std::vector<Feed>& feeds = {}) const {
    return vectors_->Minimize(session, [&](double* loss) {
      std::vector<Tensor> got;
      const Status s = session.TryRun(feeds, {loss_}, {}, &got);
      if (s.ok() && got[0].num_elements() != 1) return Status(TF_INVALID_ARGUMENT, "the loss is no scalar");
      if (s.ok()) *loss = got[0].data<double>()[0];
      return s;
    });
  }

 private:
  std::optional<internal::LbfgsVectors> vectors_;
  Output loss_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
