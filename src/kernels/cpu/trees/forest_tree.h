// SPDX-License-Identifier: Apache-2.0
// A tree of a random forest, as a resource. Its leaves count the classes of the examples that came to them, or hold the
// means of their targets. What came from outside was checked by ParseForestTree: the children of splits make a tree, so
// a way from the root ends in a leaf.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/resource_manager.h"
#include "kernels/cpu/trees/forest_input.h"
#include "kernels/cpu/trees/forest_params.h"

namespace millrace {

// Where examples go from a split: left if it holds.
struct ForestTest {
  enum class Kind : uint8_t { kAtMost, kLess, kAtLeast, kMore, kMatches };
  Kind kind = Kind::kAtMost;
  bool inverse = false;  // of a match
  int32_t feature = 0;
  float threshold = 0;
  std::vector<float> values;  // of a match

  bool Holds(float value) const;
  bool Holds(const ForestInput& input, int64_t example) const { return Holds(input.At(example, feature)); }
};
StatusOr<ForestTest> ForestTestOf(const wire::ForestSplitNode& node);
void SetForestTest(const ForestTest& test, wire::ForestSplitNode* node);

StatusOr<float> ForestNumberOf(const wire::ForestValue& value);
// Numbers by their places, or by their keys. `fn(place, number)` gives a Status.
template <typename Fn>
Status ForEachForestNumber(const wire::ForestVector& vector, Fn fn) {
  for (size_t i = 0; i < vector.value.size(); ++i) {
    MR_ASSIGN_OR_RETURN(const float number, ForestNumberOf(vector.value[i]));
    MR_RETURN_IF_ERROR(fn(static_cast<int64_t>(i), number));
  }
  return absl::OkStatus();
}
template <typename Fn>
Status ForEachForestNumber(const wire::ForestSparseVector& vector, Fn fn) {
  for (const auto& [key, value] : vector.sparse_value) {
    MR_ASSIGN_OR_RETURN(const float number, ForestNumberOf(value));
    MR_RETURN_IF_ERROR(fn(key, number));
  }
  return absl::OkStatus();
}
// Appends a message that is encoded, as field 1.
void AppendForestPart(std::string part, std::string* text);
void AddForestNumbers(absl::Span<const float> numbers, int64_t count, wire::ForestVector* vector);
void AddForestNumbers(const std::map<int64_t, float>& numbers, wire::ForestSparseVector* vector);

struct ForestTreeNode {
  bool is_split = false;
  int32_t left = 0;
  int32_t right = 0;
  ForestTest test;
  // Of a leaf: each class's weight, or each target's mean. Nothing: all are 0.
  std::vector<float> dense;
  std::map<int64_t, float> sparse;

  // Counts an example of a class, in a leaf.
  void Count(const ForestParams& params, int64_t label, float weight);
};

struct ForestTreeState {
  ForestParams params;
  std::vector<ForestTreeNode> nodes;
  int32_t last_feature = -1;  // that a split asks for

  // The leaf that an example comes to. The features were checked (CheckFeature(last_feature)).
  int32_t Traverse(const ForestInput& input, int64_t example) const;
  // What a leaf says of an example: a probability for each class, or a mean for each target.
  void Predict(int32_t leaf, float* out) const;
  // About how long an example takes, in a tree that is balanced.
  double TraverseNanoseconds() const;
  int64_t NumLeaves() const;
  // Makes room for so many more nodes.
  void Reserve(size_t more);
  // Changes nothing where there is no memory.
  void Split(int32_t leaf, ForestTest test, ForestTreeNode left, ForestTreeNode right);
  wire::ForestNode NodeMessage(int32_t node) const;
};

// An empty string makes a tree of one leaf.
StatusOr<ForestTreeState> ParseForestTree(absl::string_view bytes, const ForestParams& params);
std::string SerializeForestTree(const ForestTreeState& state);

template <typename State>
class ForestResource : public Resource {
 public:
  explicit ForestResource(State state) : state_(std::move(state)) {}

  template <typename Fn>
  auto Read(Fn fn) const {
    absl::ReaderMutexLock lock(&mu_);
    return fn(static_cast<const State&>(state_));
  }
  template <typename Fn>
  auto Write(Fn fn) {
    absl::MutexLock lock(&mu_);
    return fn(state_);
  }

 private:
  mutable absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_);
};

class ForestTree final : public ForestResource<ForestTreeState> {
 public:
  static constexpr char kTypeName[] = "DecisionTreeResource";
  using ForestResource::ForestResource;
  std::string DebugString() const override;
};

}  // namespace millrace
