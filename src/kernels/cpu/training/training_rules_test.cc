// SPDX-License-Identifier: Apache-2.0
// Rules over narrow floats are those over floats, rounded once, wherever in a run an element lies.
#include "kernels/cpu/training/training_rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace millrace {
namespace {

constexpr size_t kElements = 133;  // whole vectors and a rest on every instruction set

template <typename H>
struct Arrays {
  std::vector<std::vector<H>> variables{kMaxRuleVariables, std::vector<H>(kElements)};
  std::vector<H> grad = std::vector<H>(kElements);

  void Run(RuleFn<H> fn, const RuleFlags& flags, size_t begin, size_t end) {
    const RuleCompute<H> scalars[kMaxRuleScalars] = {0.5f, 0.25f, 0.125f, 0.75f, 0.875f, 0.0625f};
    H* at[kMaxRuleVariables];
    for (size_t k = 0; k < variables.size(); ++k) at[k] = variables[k].data() + begin;
    fn(scalars, flags, at, grad.data() + begin, static_cast<int64_t>(end - begin));
  }
};

template <typename H>
void Compare(const char* rule, bool nesterov, float spacing) {
  const RuleFn<H> narrow = FindRule<H>(rule);
  if (!narrow) GTEST_SKIP() << "no vector code for this type on this processor";
  const RuleFn<float> wide = FindRule<float>(rule);
  ASSERT_TRUE(wide) << rule;
  const RuleFlags flags{.use_nesterov = nesterov};
  std::mt19937 random(5);
  std::uniform_real_distribution<float> positive(0.1f, 2.0f), any(-2.0f, 2.0f);
  Arrays<H> whole;
  Arrays<float> want;
  for (size_t i = 0; i < kElements; ++i) {
    for (size_t k = 0; k < whole.variables.size(); ++k) {
      // Mean squares are not less than squared means.
      const H v(k == 2 ? positive(random) + 4.0f : positive(random));
      whole.variables[k][i] = v, want.variables[k][i] = static_cast<float>(v);
    }
    whole.grad[i] = H(any(random)), want.grad[i] = static_cast<float>(whole.grad[i]);
  }
  Arrays<H> one_by_one = whole;
  whole.Run(narrow, flags, 0, kElements);
  want.Run(wide, flags, 0, kElements);
  for (size_t i = 0; i < kElements; ++i) one_by_one.Run(narrow, flags, i, i + 1);
  for (size_t k = 0; k < whole.variables.size(); ++k) {
    for (size_t i = 0; i < kElements; ++i) {
      const float got = static_cast<float>(whole.variables[k][i]), exact = want.variables[k][i];
      EXPECT_NEAR(got, exact, spacing * std::fabs(exact) + 1e-6f) << rule << " variable " << k << " at " << i;
      EXPECT_EQ(got, static_cast<float>(one_by_one.variables[k][i])) << rule << " variable " << k << " at " << i;
    }
  }
}

class NarrowRules : public testing::TestWithParam<const char*> {};

TEST_P(NarrowRules, OfHalf) {
  for (bool nesterov : {false, true}) Compare<Half>(GetParam(), nesterov, 0x1p-11f);
}
TEST_P(NarrowRules, OfBFloat16) {
  for (bool nesterov : {false, true}) Compare<BFloat16>(GetParam(), nesterov, 0x1p-8f);
}
INSTANTIATE_TEST_SUITE_P(All, NarrowRules,
                         testing::Values("GradientDescent", "Momentum", "Adagrad", "Adadelta", "Adam", "RMSProp",
                                         "CenteredRMSProp", "AdagradV2", "KerasMomentum"),
                         [](const auto& rule) { return std::string(rule.param); });

}  // namespace
}  // namespace millrace
