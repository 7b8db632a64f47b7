// SPDX-License-Identifier: Apache-2.0
// One loop serves all: its variables are the position, the accumulators (fold and scan), and the flows of the tensor
// arrays that collect results (map and scan).
#include "graph/functional.h"

namespace millrace {

namespace {

struct TensorArray {
  Output handle, flow;
  DType dtype = DType::kInvalid;
  PartialShape element;
};

struct Sweep {
  bool carries = false;   // results are the next accumulators
  bool collects = false;  // results are stacked
};

PartialShape WithoutFirst(const PartialShape& s) {
  if (!s.has_rank() || s.rank() == 0) return PartialShape::Unknown();
  return PartialShape::Of({s.dims().begin() + 1, s.dims().end()});
}

PartialShape WithFirst(int64_t n, const PartialShape& s) {
  if (!s.has_rank()) return s;
  std::vector<int64_t> dims = s.dims();
  dims.insert(dims.begin(), n);
  return PartialShape::Of(std::move(dims));
}

// The first dimension that all have, -1 when no shape tells.
StatusOr<int64_t> CommonLength(absl::Span<const Output> elements) {
  int64_t n = -1;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!elements[i]) return InvalidArgument("element tensor ", i, " is missing");
    const PartialShape& shape = elements[i].shape();
    if (!shape.has_rank()) continue;
    if (shape.rank() == 0) {
      return InvalidArgument(
          "element tensor ", i, " ('", elements[i].ToString(), "') must have at least one dimension");
    }
    if (n >= 0 && shape.has_dim(0) && shape.dim(0) != n) {
      return InvalidArgument(
          "element tensor ", i, " ('", elements[i].ToString(), "') has ", shape.dim(0), " elements, others have ", n);
    }
    if (shape.has_dim(0)) n = shape.dim(0);
  }
  return n;
}

class SweepBuilder {
 public:
  SweepBuilder(const GraphBuilder& b, Sweep kind, const SweepOptions& options)
      : b_(b), kind_(kind), options_(options) {}

  StatusOr<std::vector<Output>> Build(absl::Span<const Output> elements, absl::Span<const Output> initial,
                                      absl::Span<const DType> dtypes, const BuildFn& fn) {
    if (elements.empty()) return InvalidArgument("there are no elements to go over");
    MR_ASSIGN_OR_RETURN(length_, CommonLength(elements));
    count_ = Count(elements[0]);
    for (const Output& o : elements) inputs_.push_back(Unstack(o));
    MR_RETURN_IF_ERROR(b_.status());
    Output position = options_.reverse ? Plus(b_, count_, -1) : b_.Scalar<int32_t>(0);
    std::vector<Output> accumulators(initial.begin(), initial.end());
    const bool starts_with_element = kind_.carries && accumulators.empty();
    if (starts_with_element) {
      for (const TensorArray& array : inputs_) accumulators.push_back(Read(b_, array, position));
    }
    if (kind_.carries) {
      for (const Output& o : accumulators) types_.push_back(BaseType(o.dtype()));
    } else {
      types_.assign(dtypes.begin(), dtypes.end());
    }
    if (kind_.collects) {
      for (DType type : types_) collected_.push_back(NewArray(type, PartialShape::Unknown()));
    }
    MR_RETURN_IF_ERROR(b_.status());
    if (starts_with_element) {
      Collect(b_, position, accumulators);
      position = Plus(b_, position, options_.reverse ? -1 : 1);
    }
    MR_RETURN_IF_ERROR(b_.status());
    return Loop(position, accumulators, fn);
  }

 private:
  Output Count(Output first) const {
    if (length_ >= 0 && length_ <= std::numeric_limits<int32_t>::max()) {
      return b_.WithName("num_elements").Scalar(static_cast<int32_t>(length_));
    }
    return b_.Op(
        "StridedSlice", {b_.Shape(first), b_.Vector<int32_t>({0}), b_.Vector<int32_t>({1}), b_.Vector<int32_t>({1})},
        {{"shrink_axis_mask", int64_t{1}}});
  }

  Output Plus(const GraphBuilder& b, Output o, int32_t step) const {
    return b.WithName("add").Add(o, b.WithName("add/y").Scalar(step));
  }
  Output Positions(const GraphBuilder& b) const {
    return b.WithName("range").Op("Range", {b.Scalar<int32_t>(0), count_, b.Scalar<int32_t>(1)});
  }

  TensorArray NewArray(DType dtype, const PartialShape& element) const {
    Node* node = b_.WithName("TensorArray")
                     .OpNode("TensorArrayV3", {count_},
                             {{"dtype", dtype}, {"element_shape", element}, {"identical_element_shapes", true}});
    if (node == nullptr) return {};
    return {node->output(0), node->output(1), dtype, element};
  }

  TensorArray Unstack(Output values) const {
    TensorArray array = NewArray(BaseType(values.dtype()), WithoutFirst(values.shape()));
    const GraphBuilder b = b_.Scope("TensorArrayUnstack");
    array.flow = b.Op("TensorArrayScatterV3", {array.handle, Positions(b), values, array.flow});
    return array;
  }

  Output Read(const GraphBuilder& b, const TensorArray& array, Output position) const {
    const Output value = b.Op("TensorArrayReadV3", {array.handle, position, array.flow}, {{"dtype", array.dtype}});
    if (value) b.Fail(b.graph().RefineShape(value, array.element));
    return value;
  }

  void Collect(const GraphBuilder& b, Output position, absl::Span<const Output> values) {
    for (size_t i = 0; i < collected_.size(); ++i) {
      TensorArray& array = collected_[i];
      array.element = values[i].shape();
      array.flow = b.Op("TensorArrayWriteV3", {array.handle, position, values[i], array.flow});
    }
  }

  Output Stack(const TensorArray& array) const {
    const GraphBuilder b = b_.Scope("TensorArrayStack");
    const Output value = b.Op("TensorArrayGatherV3", {array.handle, Positions(b), array.flow},
                              {{"dtype", array.dtype}, {"element_shape", array.element}});
    if (value) b.Fail(b.graph().RefineShape(value, WithFirst(length_, array.element)));
    return value;
  }

  StatusOr<std::vector<Output>> Loop(Output position, const std::vector<Output>& accumulators, const BuildFn& fn) {
    const size_t carried = accumulators.size();
    std::vector<Output> variables{position};
    variables.insert(variables.end(), accumulators.begin(), accumulators.end());
    for (const TensorArray& array : collected_) variables.push_back(array.flow);
    LoopOptions loop;
    loop.parallel_iterations = options_.parallel_iterations;
    loop.back_prop = options_.back_prop;
    loop.swap_memory = options_.swap_memory;
    MR_ASSIGN_OR_RETURN(
        const std::vector<Output> after,
        WhileLoop(
            b_, variables, [&](const GraphBuilder& b, const std::vector<Output>& v) { return GoesOn(b, v[0]); },
            [&](const GraphBuilder& b, const std::vector<Output>& v) { return Body(b, v, carried, fn); }, loop));
    if (!kind_.collects) return std::vector<Output>(after.begin() + 1, after.end());
    std::vector<Output> stacked;
    for (size_t i = 0; i < collected_.size(); ++i) {
      collected_[i].flow = after[1 + carried + i];
      stacked.push_back(Stack(collected_[i]));
    }
    MR_RETURN_IF_ERROR(b_.status());
    return stacked;
  }

  StatusOr<std::vector<Output>> GoesOn(const GraphBuilder& b, Output position) const {
    const Output more =
        options_.reverse ? b.Op("GreaterEqual", {position, b.Scalar<int32_t>(0)}) : b.Op("Less", {position, count_});
    MR_RETURN_IF_ERROR(b.status());
    return std::vector<Output>{more};
  }

  StatusOr<std::vector<Output>> Body(const GraphBuilder& b, const std::vector<Output>& variables, size_t carried,
                                     const BuildFn& fn) {
    std::vector<Output> arguments(variables.begin() + 1, variables.begin() + 1 + static_cast<ptrdiff_t>(carried));
    for (const TensorArray& array : inputs_) arguments.push_back(Read(b, array, variables[0]));
    MR_RETURN_IF_ERROR(b.status());
    MR_ASSIGN_OR_RETURN(const std::vector<Output> results, fn(b, arguments));
    MR_RETURN_IF_ERROR(CheckResults(results));
    std::vector<Output> next{Plus(b, variables[0], options_.reverse ? -1 : 1)};
    if (kind_.carries) next.insert(next.end(), results.begin(), results.end());
    for (size_t i = 0; i < collected_.size(); ++i) collected_[i].flow = variables[1 + carried + i];
    Collect(b, variables[0], results);
    for (const TensorArray& array : collected_) next.push_back(array.flow);
    MR_RETURN_IF_ERROR(b.status());
    return next;
  }

  Status CheckResults(const std::vector<Output>& results) const {
    if (results.size() != types_.size()) {
      return InvalidArgument(
          "the function of '", b_.scope(), "' must return ", types_.size(), " results, got ", results.size());
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const Output o = results[i];
      if (!o || o.index < 0 || o.index >= o.node->num_outputs()) {
        return InvalidArgument("result ", i, " of the function of '", b_.scope(), "' is no value");
      }
      if (BaseType(o.dtype()) != types_[i]) {
        return InvalidArgument("result ", i, " of the function of '", b_.scope(), "' must be ", DTypeName(types_[i]),
                               ", got ", DTypeName(o.dtype()), " from ", o.ToString());
      }
    }
    return absl::OkStatus();
  }

  const GraphBuilder b_;
  const Sweep kind_;
  const SweepOptions options_;
  int64_t length_ = -1;
  Output count_;
  std::vector<TensorArray> inputs_, collected_;
  std::vector<DType> types_;
};

// All or nothing.
StatusOr<std::vector<Output>> BuildSweep(
    const GraphBuilder& b, absl::string_view name, Sweep kind, const SweepOptions& options,
    absl::Span<const Output> elements, absl::Span<const Output> initial, absl::Span<const DType> dtypes,
    const BuildFn& fn) {
  const int mark = b.graph().num_node_ids();
  StatusOr<std::vector<Output>> results =
      SweepBuilder(b.Scope(name), kind, options).Build(elements, initial, dtypes, fn);
  if (!results.ok()) TakeBack(&b.graph(), mark);
  return results;
}

}  // namespace

StatusOr<std::vector<Output>> MapFn(
    const GraphBuilder& b, absl::Span<const Output> elements, absl::Span<const DType> dtypes, const BuildFn& fn,
    const SweepOptions& options, absl::string_view name) {
  std::vector<DType> types(dtypes.begin(), dtypes.end());
  if (types.empty()) {
    for (const Output& o : elements) types.push_back(BaseType(o.dtype()));
  }
  return BuildSweep(b, name, {false, true}, options, elements, {}, types, fn);
}

StatusOr<std::vector<Output>> Fold(
    const GraphBuilder& b, absl::Span<const Output> elements, absl::Span<const Output> initial, const BuildFn& fn,
    const SweepOptions& options, absl::string_view name) {
  return BuildSweep(b, name, {true, false}, options, elements, initial, {}, fn);
}

StatusOr<std::vector<Output>> Scan(
    const GraphBuilder& b, absl::Span<const Output> elements, absl::Span<const Output> initial, const BuildFn& fn,
    const SweepOptions& options, absl::string_view name) {
  return BuildSweep(b, name, {true, true}, options, elements, initial, {}, fn);
}

}  // namespace millrace
