// SPDX-License-Identifier: Apache-2.0
// Recurrent kernels against plain loops in double; gradients against finite differences of those loops.
#include <cmath>
#include <functional>

#include "gtest/gtest.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/rnn/rnn.h"

namespace millrace {
namespace {

using Values = std::vector<double>;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Sizes {
  int64_t steps, batch, inputs, units;
};

// Inputs x, cs_prev, h_prev, w, wci, wcf, wco, b. Results i, cs, f, o, ci, co, h, each [steps, batch, units].
struct LstmReference {
  Sizes s;
  bool peephole = false, v2 = false;
  double forget_bias = 0, clip = 0;
  int64_t run = 0;  // steps

  std::vector<Values> operator()(const std::vector<Values>& in) const {
    const auto n = static_cast<size_t>(s.steps * s.batch * s.units);
    std::vector<Values> out(7, Values(n, 0.0));
    const int64_t ci_at = v2 ? 2 : 1, f_at = v2 ? 1 : 2;
    auto at = [](const Values& v, int64_t i) { return v[static_cast<size_t>(i)]; };
    for (int64_t t = 0; t < run; ++t) {
      for (int64_t b = 0; b < s.batch; ++b) {
        auto before = [&](const Values& first, const Values& all, int64_t k) {
          return t == 0 ? at(first, b * s.units + k) : at(all, ((t - 1) * s.batch + b) * s.units + k);
        };
        for (int64_t k = 0; k < s.units; ++k) {
          auto gate = [&](int64_t g) {
            double sum = at(in[7], g * s.units + k);
            for (int64_t j = 0; j < s.inputs; ++j) {
              sum += at(in[0], (t * s.batch + b) * s.inputs + j) * at(in[3], (j * 4 + g) * s.units + k);
            }
            for (int64_t j = 0; j < s.units; ++j) {
              sum += before(in[2], out[6], j) * at(in[3], ((s.inputs + j) * 4 + g) * s.units + k);
            }
            return sum;
          };
          const double c = before(in[1], out[1], k), use = peephole ? 1 : 0;
          const double i = Sigmoid(gate(0) + use * c * at(in[4], k)), ci = std::tanh(gate(ci_at));
          const double f = Sigmoid(gate(f_at) + forget_bias + use * c * at(in[5], k));
          double cs = ci * i + c * f;
          if (clip > 0) cs = std::min(std::max(cs, -clip), clip);
          const double o = Sigmoid(gate(3) + use * cs * at(in[6], k)), co = std::tanh(cs);
          const double results[] = {i, cs, f, o, ci, co, co * o};
          for (size_t r = 0; r < 7; ++r) out[r][static_cast<size_t>((t * s.batch + b) * s.units + k)] = results[r];
        }
      }
    }
    return out;
  }
};

Values Numbers(int64_t n, int seed, double scale = 1) {
  Values v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<double>(static_cast<float>(scale * std::sin(1.3 * static_cast<double>(i) + 7.1 * seed)));
  }
  return v;
}

Tensor AsTensor(const Values& v, std::initializer_list<int64_t> dims) {
  Tensor t = *Tensor::Make(DType::kFloat, *Shape::Make(dims));
  for (size_t i = 0; i < v.size(); ++i) t.mutable_data<float>()[i] = static_cast<float>(v[i]);
  return t;
}

std::vector<Values> LstmValues(const Sizes& s) {
  return {Numbers(s.steps * s.batch * s.inputs, 1),
          Numbers(s.batch * s.units, 2),
          Numbers(s.batch * s.units, 3),
          Numbers((s.inputs + s.units) * 4 * s.units, 4, 0.6),
          Numbers(s.units, 5),
          Numbers(s.units, 6),
          Numbers(s.units, 7),
          Numbers(4 * s.units, 8)};
}

// Inputs of BlockLSTM (x of rank 3, with the length) or LSTMBlockCell (rank 2).
std::vector<Tensor> LstmTensors(const Sizes& s, const std::vector<Values>& v, bool sequence, int64_t run) {
  std::vector<Tensor> t;
  if (sequence) t.push_back(Tensor::Scalar<int64_t>(run));
  t.push_back(sequence ? AsTensor(v[0], {s.steps, s.batch, s.inputs}) : AsTensor(v[0], {s.batch, s.inputs}));
  t.push_back(AsTensor(v[1], {s.batch, s.units}));
  t.push_back(AsTensor(v[2], {s.batch, s.units}));
  t.push_back(AsTensor(v[3], {s.inputs + s.units, 4 * s.units}));
  for (size_t i = 4; i < 7; ++i) t.push_back(AsTensor(v[i], {s.units}));
  t.push_back(AsTensor(v[7], {4 * s.units}));
  return t;
}

void ExpectNear(const Tensor& got, const Values& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.num_elements(), static_cast<int64_t>(want.size())) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(got.data<float>()[i]), want[i], tolerance) << what << " element " << i;
  }
}

// d/dv of sum over (weights * outputs) at results `which`, for every element of input `k`.
Values Differences(const std::function<std::vector<Values>(const std::vector<Values>&)>& f, std::vector<Values> at,
                   size_t k, const std::vector<std::pair<size_t, Values>>& weights) {
  auto total = [&](const std::vector<Values>& in) {
    const std::vector<Values> out = f(in);
    double sum = 0;
    for (const auto& [r, w] : weights) {
      for (size_t i = 0; i < w.size(); ++i) sum += w[i] * out[r][i];
    }
    return sum;
  };
  Values grad;
  for (double& v : at[k]) {
    const double keep = v, step = 1e-5;
    v = keep + step;
    const double up = total(at);
    v = keep - step;
    grad.push_back((up - total(at)) / (2 * step));
    v = keep;
  }
  return grad;
}

constexpr char kBlock[] =
    "(seq_len_max:i64, x:T, cs_prev:T, h_prev:T, w:T, wci:T, wcf:T, wco:T, b:T) -> (i:T, cs:T, f:T, o:T, ci:T, co:T, "
    "h:T) | "
    "cell_clip:float=0; forget_bias:float=0; use_peephole:bool=false; T in f16|f32";
constexpr char kBlockGrad[] =
    "(seq_len_max:i64, x:T, cs_prev:T, h_prev:T, w:T, wci:T, wcf:T, wco:T, b:T, i:T, cs:T, f:T, o:T, ci:T, co:T, h:T, "
    "cs_grad:T, h_grad:T) -> (x_grad:T, cs_prev_grad:T, h_prev_grad:T, w_grad:T, wci_grad:T, wcf_grad:T, wco_grad:T, "
    "b_grad:T) | use_peephole:bool; T in f16|f32";

class RnnKernels : public testing::Test {
 protected:
  std::vector<Tensor> Run(const std::string& schema, AttrMap attrs, std::vector<Tensor> in) {
    attrs.emplace("T", DType::kFloat);
    auto out = runner_.Run(schema, std::move(attrs), std::move(in));
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *std::move(out) : std::vector<Tensor>();
  }
  KernelRunner runner_{RegisterRnnKernels, 2};
};

TEST_F(RnnKernels, BlockLstmForward) {
  for (const Sizes s : {Sizes{4, 3, 5, 37}, Sizes{1, 1, 1, 1}, Sizes{3, 2, 0, 4}}) {
    for (const bool v2 : {false, true}) {
      for (const bool peephole : {false, true}) {
        const LstmReference f{s, peephole, v2, v2 ? 0.0 : 1.0, 0.7, s.steps - s.steps / 4};
        const std::vector<Values> v = LstmValues(s), want = f(v);
        AttrMap attrs{{"use_peephole", peephole}, {"cell_clip", 0.7f}, {"forget_bias", v2 ? 0.0f : 1.0f}};
        const std::vector<Tensor> got =
            Run(absl::StrCat(v2 ? "BlockLSTMV2" : "BlockLSTM", kBlock), attrs, LstmTensors(s, v, true, f.run));
        ASSERT_EQ(got.size(), 7u);
        for (size_t i = 0; i < 7; ++i) ExpectNear(got[i], want[i], 1e-5, absl::StrCat("output ", i, " v2 ", v2));
      }
    }
  }
}

TEST_F(RnnKernels, BlockLstmGradient) {
  const Sizes s{5, 3, 2, 7};
  for (const bool v2 : {false, true}) {
    for (const bool peephole : {false, true}) {
      const LstmReference f{s, peephole, v2, 0, 0, 4};
      const std::vector<Values> v = LstmValues(s);
      const int64_t n = s.steps * s.batch * s.units;
      const std::vector<std::pair<size_t, Values>> weights = {{1, Numbers(n, 11)}, {6, Numbers(n, 12)}};
      std::vector<Tensor> in = LstmTensors(s, v, true, f.run);
      for (const Values& r : f(v)) in.push_back(AsTensor(r, {s.steps, s.batch, s.units}));
      for (const auto& [which, w] : weights) in.push_back(AsTensor(w, {s.steps, s.batch, s.units}));
      const std::vector<Tensor> got =
          Run(absl::StrCat(v2 ? "BlockLSTMGradV2" : "BlockLSTMGrad", kBlockGrad), {{"use_peephole", peephole}}, in);
      ASSERT_EQ(got.size(), 8u);
      for (size_t k = 0; k < 8; ++k) {
        ExpectNear(got[k], Differences(f, v, k, weights), 2e-5, absl::StrCat("gradient ", k, " v2 ", v2));
      }
    }
  }
}

TEST_F(RnnKernels, LstmCellIsOneStepOfTheLayer) {
  const Sizes s{1, 4, 3, 6};
  const LstmReference f{s, true, false, 1, 0, 1};
  const std::vector<Values> v = LstmValues(s), want = f(v);
  const std::vector<Tensor> got = Run(
      "LSTMBlockCell(x:T, cs_prev:T, h_prev:T, w:T, wci:T, wcf:T, wco:T, b:T) -> (i:T, cs:T, f:T, o:T, ci:T, co:T, "
      "h:T) | "
      "forget_bias:float=1; cell_clip:float=3; use_peephole:bool=false; T in f16|f32",
      {{"use_peephole", true}, {"cell_clip", -1.0f}}, LstmTensors(s, v, false, 1));
  ASSERT_EQ(got.size(), 7u);
  for (size_t i = 0; i < 7; ++i) ExpectNear(got[i], want[i], 1e-5, absl::StrCat("output ", i));
}

TEST_F(RnnKernels, GruCellAndItsGradient) {
  const int64_t batch = 3, inputs = 2, units = 19;
  const std::vector<Values> v = {
      Numbers(batch * inputs, 1),
      Numbers(batch * units, 2),
      Numbers((inputs + units) * 2 * units, 3, 0.4),
      Numbers((inputs + units) * units, 4, 0.4),
      Numbers(2 * units, 5),
      Numbers(units, 6)};
  auto f = [&](const std::vector<Values>& in) {
    std::vector<Values> out(4, Values(static_cast<size_t>(batch * units)));
    auto at = [](const Values& a, int64_t i) { return a[static_cast<size_t>(i)]; };
    for (int64_t b = 0; b < batch; ++b) {
      auto product = [&](const Values& h, const Values& w, int64_t width, int64_t column) {
        double sum = 0;
        for (int64_t j = 0; j < inputs; ++j) sum += at(in[0], b * inputs + j) * at(w, j * width + column);
        for (int64_t j = 0; j < units; ++j) sum += at(h, j) * at(w, (inputs + j) * width + column);
        return sum;
      };
      const Values h(in[1].begin() + b * units, in[1].begin() + (b + 1) * units);
      Values reset, r, u;
      for (int64_t k = 0; k < units; ++k) {
        r.push_back(Sigmoid(product(h, in[2], 2 * units, k) + at(in[4], k)));
        u.push_back(Sigmoid(product(h, in[2], 2 * units, units + k) + at(in[4], units + k)));
        reset.push_back(h[static_cast<size_t>(k)] * r.back());
      }
      for (int64_t k = 0; k < units; ++k) {
        const double c = std::tanh(product(reset, in[3], units, k) + at(in[5], k));
        const double results[] = {at(r, k), at(u, k), c, at(u, k) * at(h, k) + (1 - at(u, k)) * c};
        for (size_t i = 0; i < 4; ++i) out[i][static_cast<size_t>(b * units + k)] = results[i];
      }
    }
    return out;
  };
  std::vector<Tensor> in = {
      AsTensor(v[0], {batch, inputs}),
      AsTensor(v[1], {batch, units}),
      AsTensor(v[2], {inputs + units, 2 * units}),
      AsTensor(v[3], {inputs + units, units}),
      AsTensor(v[4], {2 * units}),
      AsTensor(v[5], {units})};
  const std::vector<Tensor> got =
      Run("GRUBlockCell(x:T, h_prev:T, w_ru:T, w_c:T, b_ru:T, b_c:T) -> (r:T, u:T, c:T, h:T) | T in f32", {}, in);
  const std::vector<Values> want = f(v);
  ASSERT_EQ(got.size(), 4u);
  for (size_t i = 0; i < 4; ++i) ExpectNear(got[i], want[i], 1e-5, absl::StrCat("output ", i));

  for (size_t i = 0; i < 3; ++i) in.push_back(got[i]);
  const Values weights = Numbers(batch * units, 9);
  in.push_back(AsTensor(weights, {batch, units}));
  const std::vector<Tensor> grads = Run(
      "GRUBlockCellGrad(x:T, h_prev:T, w_ru:T, w_c:T, b_ru:T, b_c:T, r:T, u:T, c:T, d_h:T) -> (d_x:T, d_h_prev:T, "
      "d_c_bar:T, "
      "d_r_bar_u_bar:T) | T in f32",
      {}, in);
  ASSERT_EQ(grads.size(), 4u);
  ExpectNear(grads[0], Differences(f, v, 0, {{3, weights}}), 2e-5, "x");
  ExpectNear(grads[1], Differences(f, v, 1, {{3, weights}}), 2e-5, "h_prev");
  // The biases stand just before the activations: their gradients are sums over the batch.
  auto sum = [&](const Tensor& t, size_t n) {
    Values s(n, 0.0);
    for (int64_t i = 0; i < t.num_elements(); ++i)
      s[static_cast<size_t>(i) % n] += static_cast<double>(t.data<float>()[i]);
    return s;
  };
  const Values d_c = sum(grads[2], static_cast<size_t>(units)), d_ru = sum(grads[3], static_cast<size_t>(2 * units));
  ExpectNear(AsTensor(d_c, {units}), Differences(f, v, 5, {{3, weights}}), 2e-5, "c_bar");
  ExpectNear(AsTensor(d_ru, {2 * units}), Differences(f, v, 4, {{3, weights}}), 2e-5, "r_bar_u_bar");
}

TEST_F(RnnKernels, RefusesWrongShapesAndLengths) {
  const Sizes s{2, 2, 3, 4};
  const std::string schema = absl::StrCat("BlockLSTM", kBlock);
  AttrMap attrs{{"T", DType::kFloat}};
  for (const int64_t run : {int64_t{-1}, int64_t{3}}) {
    auto out = runner_.Run(schema, attrs, LstmTensors(s, LstmValues(s), true, run));
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << run;
  }
  for (size_t i = 1; i < 9; ++i) {
    std::vector<Tensor> in = LstmTensors(s, LstmValues(s), true, 2);
    in[i] = *Tensor::Zeros(DType::kFloat, *Shape::Make({7, 1}));
    EXPECT_EQ(runner_.Run(schema, attrs, in).status().code(), absl::StatusCode::kInvalidArgument) << i;
  }
}

}  // namespace
}  // namespace millrace
