// SPDX-License-Identifier: Apache-2.0
// Composites: learning rates that change with the step. All is computed in the type of the first rate.
#include "ops/composite.h"
#include "ops/formula.h"

namespace millrace {
namespace {

using Outputs = StatusOr<std::vector<Output>>;
Outputs One(Output o) { return std::vector<Output>{o}; }

constexpr double kPi = 3.14159265358979323846;

// A call of a decay: its inputs in the type of the rate.
struct Decay {
  Decay(const GraphBuilder& builder, const CompositeCall& c)
      : b(builder), call(c), f(builder), rate(c.x("learning_rate")), type(BaseType(rate.dtype())) {}
  Output In(absl::string_view arg) const { return f.Cast(call.x(arg), type); }
  // The composite's own node.
  Outputs Scaled(Output by) const { return One(b.WithName("/").Op("Mul", {rate, by})); }

  const GraphBuilder& b;
  const CompositeCall& call;
  const Formula f;
  const Output rate;
  const DType type;
};

// global_step / decay_steps, whole when the rate is to fall in stairs.
StatusOr<Output> Periods(const Decay& d) {
  MR_ASSIGN_OR_RETURN(const bool staircase, d.call.Attr<bool>("staircase"));
  const Output step = d.In("global_step"), steps = d.In("decay_steps");
  const Output periods = d.f.Div(step, steps);
  return staircase ? d.f.Call("Floor", periods) : periods;
}

Outputs ExponentialDecay(const GraphBuilder& b, const CompositeCall& c) {
  const Decay d(b, c);
  MR_ASSIGN_OR_RETURN(const Output periods, Periods(d));
  return d.Scaled(d.f.Call("Pow", d.In("decay_rate"), periods));
}

Outputs NaturalExpDecay(const GraphBuilder& b, const CompositeCall& c) {
  const Decay d(b, c);
  MR_ASSIGN_OR_RETURN(const Output periods, Periods(d));
  const Output fall = d.f.Call("Neg", d.In("decay_rate"));
  return d.Scaled(d.f.Call("Exp", d.f.Mul(fall, periods)));
}

Outputs InverseTimeDecay(const GraphBuilder& b, const CompositeCall& c) {
  const Decay d(b, c);
  MR_ASSIGN_OR_RETURN(const Output periods, Periods(d));
  const Output divisor = d.f.Add(1.0, d.f.Mul(d.In("decay_rate"), periods));
  return One(b.WithName("/").Div(d.rate, divisor));
}

Outputs PolynomialDecay(const GraphBuilder& b, const CompositeCall& c) {
  const Decay d(b, c);
  const Formula& f = d.f;
  MR_ASSIGN_OR_RETURN(const bool cycle, c.Attr<bool>("cycle"));
  Output step = d.In("global_step"), steps = d.In("decay_steps");
  const Output end = d.In("end_learning_rate"), power = d.In("power");
  if (cycle) {  // the first multiple of decay_steps that is not behind
    steps = f.Mul(steps, f.Call("Maximum", f.Call("Ceil", f.Div(step, steps)), 1.0));
  } else {
    step = f.Call("Minimum", step, steps);
  }
  const Output height = f.Sub(d.rate, end);
  const Output left = f.Call("Pow", f.Sub(1.0, f.Div(step, steps)), power);
  return One(b.WithName("/").Op("Add", {f.Mul(height, left), end}));
}

// (1 - low) * wave + low
Output Above(const Formula& f, Output low, Output wave) { return f.Add(f.Mul(f.Sub(1.0, low), wave), low); }

Outputs CosineDecay(const GraphBuilder& b, const CompositeCall& c) {
  const Decay d(b, c);
  const Formula& f = d.f;
  const Output step = d.In("global_step"), steps = d.In("decay_steps");
  const Output done = f.Div(f.Call("Minimum", step, steps), steps);
  const Output wave = f.Mul(0.5, f.Add(1.0, f.Call("Cos", f.Mul(kPi, done))));
  return d.Scaled(Above(f, c.x("alpha"), wave));
}

Outputs CosineDecayRestarts(const GraphBuilder& b, const CompositeCall& c) {
  const Decay d(b, c);
  const Formula& f = d.f;
  MR_ASSIGN_OR_RETURN(const bool equal_periods, c.Attr<bool>("equal_periods"));
  const Output step = d.In("global_step"), first = d.In("first_decay_steps");
  const Output longer = d.In("t_mul"), higher = d.In("m_mul"), low = d.In("alpha");
  Output done = f.Div(step, first), restarts;
  if (equal_periods) {
    restarts = f.Call("Floor", done);
    done = f.Sub(done, restarts);
  } else {  // period i is longer^i long, and (1 - longer^i) / (1 - longer) lie before it
    const Output all = f.Call("Log", f.Sub(1.0, f.Mul(done, f.Sub(1.0, longer))));
    restarts = f.Call("Floor", f.Div(all, f.Call("Log", longer)));
    const Output before = f.Sub(1.0, f.Pow(longer, restarts));
    const Output inside = f.Sub(done, f.Div(before, f.Sub(1.0, longer)));
    done = f.Div(inside, f.Pow(longer, restarts));
  }
  const Output height = f.Mul(0.5, f.Pow(higher, restarts));
  const Output wave = f.Mul(height, f.Add(1.0, f.Call("Cos", f.Mul(kPi, done))));
  return d.Scaled(Above(f, low, wave));
}

// A normal number whose variance is initial_variance / (1 + step) ^ variance_decay.
StatusOr<Output> FallingNoise(const Decay& d, Output step) {
  MR_ASSIGN_OR_RETURN(const int64_t seed, d.call.Attr<int64_t>("seed"));
  MR_ASSIGN_OR_RETURN(const int64_t seed2, d.call.Attr<int64_t>("seed2"));
  const Output spread = d.f.Pow(d.f.Add(1.0, step), d.call.x("variance_decay"));
  const Output deviation = d.f.Call("Sqrt", d.f.Div(d.call.x("initial_variance"), spread));
  const Output scalar = d.b.WithName("shape").Const(Tensor::Vector<int32_t>({}));
  const Output normal = d.b.Op("RandomStandardNormal", {scalar}, {{"dtype", d.type}, {"seed", seed}, {"seed2", seed2}});
  return d.f.Mul(deviation, normal);
}

Outputs LinearCosine(const Decay& d, bool noisy) {
  const Formula& f = d.f;
  const Output steps = d.In("decay_steps"), step = f.Call("Minimum", d.In("global_step"), steps);
  Output line = f.Div(f.Sub(steps, step), steps);
  if (noisy) {
    MR_ASSIGN_OR_RETURN(const Output noise, FallingNoise(d, step));
    line = f.Add(line, noise);
  }
  const Output done = f.Div(step, steps);
  const Output periods = f.Mul(2.0, d.call.x("num_periods"));
  const Output wave = f.Mul(0.5, f.Add(1.0, f.Call("Cos", f.Mul(kPi, f.Mul(periods, done)))));
  return d.Scaled(f.Add(f.Mul(f.Add(d.call.x("alpha"), line), wave), d.call.x("beta")));
}

Outputs LinearCosineDecay(const GraphBuilder& b, const CompositeCall& c) { return LinearCosine(Decay(b, c), false); }
Outputs NoisyLinearCosineDecay(const GraphBuilder& b, const CompositeCall& c) {
  return LinearCosine(Decay(b, c), true);
}

// As many boundaries as x has passed are the place of its value.
Outputs PiecewiseConstant(const GraphBuilder& b, const CompositeCall& c) {
  const std::vector<Output> boundaries = c.list("boundaries"), values = c.list("values");
  if (values.size() != boundaries.size() + 1) {
    return InvalidArgument("PiecewiseConstant has ", boundaries.size(), " boundaries and ", values.size(),
                           " values, wants one value more than boundaries");
  }
  const Formula f(b);
  const Output x = c.x("x"), listed = b.WithName("stack").Op("Pack", {values});
  const Output limits = f.Cast(b.WithName("stack").Op("Pack", {boundaries}), BaseType(x.dtype()));
  const Output passed = f.Cast(b.Op("Greater", {x, limits}), DType::kInt32);
  return One(b.WithName("/").Op("Gather", {listed, b.Sum(passed, b.Vector<int32_t>({0}))}));
}

// Declares a decay. Inputs without a type have one of their own, which is cast to that of the rate.
CompositeDeclaration AddDecay(CompositeRegistry& r, absl::string_view name,
                              const std::vector<absl::string_view>& inputs, absl::string_view attrs = "") {
  std::string args, types = "T in FLT; Tstep in REAL";
  for (const absl::string_view input : inputs) {
    absl::StrAppend(&args, ", ", input);
    if (input.find(':') != absl::string_view::npos) continue;
    absl::StrAppend(&args, ":T", input);
    absl::StrAppend(&types, "; T", input, " in REAL");
  }
  return r.Add(absl::StrCat(name, "(learning_rate:T, global_step:Tstep", args, ") -> (rate:T) | ", types, attrs));
}

}  // namespace

void RegisterDecayComposites(CompositeRegistry& r) {
  const char* const staircase = "; staircase:bool=false";
  AddDecay(r, "ExponentialDecay", {"decay_steps", "decay_rate"}, staircase)
      .Doc("learning_rate * decay_rate ^ (global_step / decay_steps); with `staircase` the exponent is a whole number.")
      .Expand(ExponentialDecay)
      .Example("!f32[]{0.1}, i64[]{30}, i32[]{10}, f32[]{0.5}");
  AddDecay(r, "NaturalExpDecay", {"decay_steps", "decay_rate"}, staircase)
      .Doc("learning_rate * exp(-decay_rate * global_step / decay_steps).")
      .Expand(NaturalExpDecay)
      .Example("!f32[]{0.1}, i64[]{30}, i32[]{10}, f32[]{0.5}");
  AddDecay(r, "InverseTimeDecay", {"decay_steps", "decay_rate"}, staircase)
      .Doc("learning_rate / (1 + decay_rate * global_step / decay_steps).")
      .Expand(InverseTimeDecay)
      .Example("!f32[]{0.1}, i64[]{30}, i32[]{10}, f32[]{0.5}");
  AddDecay(r, "PolynomialDecay", {"decay_steps", "end_learning_rate", "power"}, "; cycle:bool=false")
      .Doc(
          "From learning_rate down to end_learning_rate over decay_steps, along (1 - step / decay_steps) ^ power; with "
          "`cycle` again from a new height over twice, three times, ... decay_steps.")
      .Expand(PolynomialDecay)
      .Example("!f32[]{0.1}, i64[]{5}, i32[]{10}, f32[]{0.0001}, f32[]{1}");
  AddDecay(r, "CosineDecay", {"decay_steps", "alpha:T"})
      .Doc(
          "From learning_rate down to alpha * learning_rate over decay_steps along half a cosine (Loshchilov and "
          "Hutter 2016).")
      .Expand(CosineDecay)
      .Example("!f32[]{0.1}, i64[]{5}, i32[]{10}, f32[]{0}");
  AddDecay(r, "CosineDecayRestarts", {"first_decay_steps", "t_mul", "m_mul", "alpha"}, "; equal_periods:bool=false")
      .Doc(
          "Half cosines that begin again, each t_mul times as long and m_mul times as high as the one before "
          "(Loshchilov "
          "and Hutter 2016). `equal_periods` says that t_mul is 1.")
      .Expand(CosineDecayRestarts)
      .Example("!f32[]{0.1}, i64[]{5}, i32[]{3}, f32[]{2}, f32[]{1}, f32[]{0}");
  AddDecay(r, "LinearCosineDecay", {"decay_steps", "num_periods:T", "alpha:T", "beta:T"})
      .Doc(
          "learning_rate * ((alpha + line) * wave + beta): a line down to 0 over decay_steps times a cosine of "
          "num_periods "
          "periods (Bello et al. 2017).")
      .Expand(LinearCosineDecay)
      .Example("!f32[]{0.1}, i64[]{5}, i32[]{10}, f32[]{0.5}, f32[]{0}, f32[]{0.001}");
  AddDecay(r, "NoisyLinearCosineDecay",
           {"decay_steps", "initial_variance:T", "variance_decay:T", "num_periods:T", "alpha:T", "beta:T"},
           "; seed:int=0; seed2:int=0")
      .Doc(
          "LinearCosineDecay whose line has normal noise of variance initial_variance / (1 + global_step) ^ "
          "variance_decay.")
      .Expand(NoisyLinearCosineDecay)
      .Example("!f32[]{0.1}, i64[]{5}, i32[]{10}, f32[]{1}, f32[]{0.55}, f32[]{0.5}, f32[]{0}, f32[]{0.001}");
  r.Add(
       "PiecewiseConstant(x:T, boundaries:N*Tboundaries, values:M*Tvalues) -> (value:Tvalues) | T in REAL; Tboundaries "
       "in REAL; Tvalues in NUM; N:int>=1; M:int>=2")
      .Doc("values[i] while x <= boundaries[i]; the last value after the last boundary.")
      .Expand(PiecewiseConstant)
      .Example("i64[]{5}, i64[]{3}, i64[]{8}, !f32[]{0.1}, !f32[]{0.01}, !f32[]{0.001} | N=2; M=3");
}

}  // namespace millrace
