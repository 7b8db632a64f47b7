// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements. Sizes, axes and positions are in host memory, but for the indices of Gather, which are
// checked when the device has them.
#include <algorithm>
#include <cstring>

#include "kernel.h"

namespace testacc {
namespace {

int64_t Axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    Invalid("axis " + std::to_string(axis) + " is not in a shape of rank " + std::to_string(rank));
  return axis < 0 ? axis + rank : axis;
}

Dims Steps(const Dims& dims) {
  Dims steps(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) steps[i - 1] = steps[i] * dims[i];
  return steps;
}

int64_t Product(const Dims& dims, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t i = from; i < to; ++i) n *= dims[i];
  return n;
}

// y[at] = x[start + sum(at[d] * steps[d])], for elements of `size` bytes.
void CopyStrided(char* y, const char* x, const Dims& dims, const Dims& steps, int64_t start, size_t size) {
  const int64_t n = Count(dims);
  Dims at(dims.size(), 0);
  int64_t from = start;
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(y + static_cast<size_t>(i) * size, x + from * static_cast<int64_t>(size), size);
    for (size_t d = dims.size(); d-- > 0;) {
      from += steps[d];
      if (++at[d] < dims[d]) break;
      from -= steps[d] * dims[d];
      at[d] = 0;
    }
  }
}

size_t ElementSize(const Value& v) { return TF_DataTypeSize(v.type); }

void Fill(Context& c) {
  const Dims dims = c.HostInts(0);
  for (int64_t d : dims) Require(d >= 0, "a dimension is negative");
  const Value value = c.Input(1);
  Require(value.rank() == 0, "value must be a scalar");
  const Value y = c.Output(0, dims);
  c.Queue([=] { CopyStrided(y.data, value.data, y.dims, Dims(y.dims.size(), 0), 0, ElementSize(y)); });
}

void Transpose(Context& c) {
  const Value x = c.Input(0);
  const Dims order = c.HostInts(1);
  Require(order.size() == x.dims.size(), "perm must have one entry a dimension");
  const Dims from = Steps(x.dims);
  Dims dims, steps;
  std::vector<bool> seen(order.size());
  for (int64_t p : order) {
    const auto d = static_cast<size_t>(Axis(p, x.rank()));
    Require(!seen[d], "perm names a dimension twice");
    seen[d] = true;
    dims.push_back(x.dims[d]);
    steps.push_back(from[d]);
  }
  const Value y = c.Output(0, dims);
  c.Queue([=] { CopyStrided(y.data, x.data, dims, steps, 0, ElementSize(x)); });
}

void Slice(Context& c) {
  const Value x = c.Input(0);
  const Dims begin = c.HostInts(1);
  Dims size = c.HostInts(2);
  Require(begin.size() == x.dims.size() && size.size() == x.dims.size(), "begin and size must fit the rank");
  const Dims steps = Steps(x.dims);
  int64_t start = 0;
  for (size_t d = 0; d < begin.size(); ++d) {
    if (size[d] == -1) size[d] = x.dims[d] - begin[d];
    Require(begin[d] >= 0 && size[d] >= 0 && begin[d] <= x.dims[d] - size[d], "the slice is not within the input");
    start += begin[d] * steps[d];
  }
  const Value y = c.Output(0, size);
  c.Queue([=] { CopyStrided(y.data, x.data, size, steps, start, ElementSize(x)); });
}

class StridedSlice {
 public:
  explicit StridedSlice(const Attrs& attrs)
      : begin_mask_(attrs.Int("begin_mask")),
        end_mask_(attrs.Int("end_mask")),
        shrink_mask_(attrs.Int("shrink_axis_mask")) {
    if (attrs.Int("ellipsis_mask") != 0 || attrs.Int("new_axis_mask") != 0) {
      throw Failed{TF_UNIMPLEMENTED, "StridedSlice with ellipsis or new axes on this device"};
    }
  }
  void Run(Context& c) const {
    const Value x = c.Input(0);
    const Dims begin = c.HostInts(1), end = c.HostInts(2), stride = c.HostInts(3);
    Require(begin.size() == end.size() && begin.size() == stride.size() && begin.size() <= x.dims.size(),
            "begin, end and strides must fit the rank");
    const Dims from = Steps(x.dims);
    Dims dims, steps, kept;
    int64_t start = 0;
    for (size_t d = 0; d < x.dims.size(); ++d) {
      const int64_t n = x.dims[d], bit = int64_t{1} << d;
      int64_t first = 0, count = n, step = 1;
      if (d < begin.size()) {
        step = stride[d];
        Require(step != 0, "strides must be non-zero");
        const auto place = [&](int64_t at) { return at < 0 ? at + n : at; };
        const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
        first = begin_mask_ & bit ? (step > 0 ? 0 : n - 1) : std::clamp(place(begin[d]), low, high);
        const int64_t last = end_mask_ & bit ? (step > 0 ? n : -1) : std::clamp(place(end[d]), low, high);
        count = step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
        count = std::max<int64_t>(count, 0);
        if (shrink_mask_ & bit) {
          first = place(begin[d]);
          Require(first >= 0 && first < n, "slice index is out of bounds");
          count = 1;
        }
      }
      start += first * from[d];
      dims.push_back(count);
      steps.push_back(step * from[d]);
      if (d >= begin.size() || !(shrink_mask_ & bit)) kept.push_back(count);
    }
    const Value y = c.Output(0, kept);
    c.Queue([=] { CopyStrided(y.data, x.data, dims, steps, start, ElementSize(x)); });
  }

 private:
  const int64_t begin_mask_, end_mask_, shrink_mask_;
};

// `outer` times a run of each part.
void Interleave(Context& c, std::vector<Value> parts, const Value& y, int64_t outer) {
  c.Queue([=] {
    char* to = y.data;
    for (int64_t o = 0; o < outer; ++o) {
      for (const Value& p : parts) {
        const size_t bytes = p.bytes() / static_cast<size_t>(outer);
        if (bytes > 0) std::memcpy(to, p.data + static_cast<size_t>(o) * bytes, bytes);
        to += bytes;
      }
    }
  });
}

// Inputs first .. first + count one after the other along `axis`.
void Join(Context& c, int first, int count, int64_t axis) {
  std::vector<Value> parts;
  for (int i = 0; i < count; ++i) parts.push_back(c.Input(first + i));
  const auto at = static_cast<size_t>(Axis(axis, parts[0].rank()));
  Dims dims = parts[0].dims;
  dims[at] = 0;
  for (const Value& p : parts) {
    Require(p.rank() == parts[0].rank(), "ConcatOp : Ranks of all input tensors should match");
    for (size_t d = 0; d < dims.size(); ++d) {
      Require(d == at || p.dims[d] == dims[d], "ConcatOp : Dimensions of inputs should match");
    }
    dims[at] += p.dims[at];
  }
  Interleave(c, std::move(parts), c.Output(0, dims), Product(dims, 0, at));
}
void ConcatV2(Context& c) {
  const int n = c.num_inputs() - 1;
  Join(c, 0, n, c.HostInt(n));
}
void Concat(Context& c) { Join(c, 1, c.num_inputs() - 1, c.HostInt(0)); }

// `x` cut into all outputs along `axis`, which leaves no dimension behind where `drop` is set.
void Cut(Context& c, const Value& x, size_t axis, const Dims& sizes, bool drop) {
  std::vector<Value> parts;
  for (size_t o = 0; o < sizes.size(); ++o) {
    Dims dims = x.dims;
    dims[axis] = sizes[o];
    if (drop) dims.erase(dims.begin() + static_cast<int64_t>(axis));
    parts.push_back(c.Output(static_cast<int>(o), dims));
  }
  const int64_t outer = Product(x.dims, 0, axis);
  c.Queue([=] {
    const char* from = x.data;
    for (int64_t o = 0; o < outer; ++o) {
      for (const Value& p : parts) {
        const size_t bytes = p.bytes() / static_cast<size_t>(outer);
        if (bytes > 0) std::memcpy(p.data + static_cast<size_t>(o) * bytes, from, bytes);
        from += bytes;
      }
    }
  });
}

void Split(Context& c) {
  const int64_t axis = c.HostInt(0);
  const Value x = c.Input(1);
  const auto at = static_cast<size_t>(Axis(axis, x.rank()));
  const int64_t n = c.num_outputs();
  Require(x.dims[at] % n == 0, "the dimension must be a multiple of num_split");
  Cut(c, x, at, Dims(static_cast<size_t>(n), x.dims[at] / n), false);
}

class Unpack {
 public:
  explicit Unpack(const Attrs& attrs) : axis_(attrs.Int("axis")) {}
  void Run(Context& c) const {
    const Value x = c.Input(0);
    const auto at = static_cast<size_t>(Axis(axis_, x.rank()));
    Require(x.dims[at] == c.num_outputs(), "the dimension must be num");
    Cut(c, x, at, Dims(static_cast<size_t>(x.dims[at]), 1), true);
  }

 private:
  const int64_t axis_;
};

class Pack {
 public:
  explicit Pack(const Attrs& attrs) : axis_(attrs.Int("axis")) {}
  void Run(Context& c) const {
    std::vector<Value> parts;
    for (int i = 0; i < c.num_inputs(); ++i) {
      parts.push_back(c.Input(i));
      Require(parts.back().dims == parts[0].dims, "Shapes of all inputs must match");
    }
    Dims dims = parts[0].dims;
    const auto at = static_cast<size_t>(Axis(axis_, parts[0].rank() + 1));
    dims.insert(dims.begin() + static_cast<int64_t>(at), c.num_inputs());
    Interleave(c, std::move(parts), c.Output(0, dims), Product(dims, 0, at));
  }

 private:
  const int64_t axis_;
};

void Tile(Context& c) {
  const Value x = c.Input(0);
  const Dims multiples = c.HostInts(1);
  Require(multiples.size() == x.dims.size(), "multiples must have one entry a dimension");
  // Each dimension becomes two: how often, and what.
  const Dims from = Steps(x.dims);
  Dims dims, parts, steps;
  for (size_t d = 0; d < multiples.size(); ++d) {
    Require(multiples[d] >= 0, "a multiple is negative");
    dims.push_back(multiples[d] * x.dims[d]);
    parts.insert(parts.end(), {multiples[d], x.dims[d]});
    steps.insert(steps.end(), {0, from[d]});
  }
  const Value y = c.Output(0, dims);
  c.Queue([=] { CopyStrided(y.data, x.data, parts, steps, 0, ElementSize(x)); });
}

// What an index means is known when the device has it: a wrong one fails late.
template <typename I>
void GatherRows(Context& c, int64_t axis) {
  const Value x = c.Input(0), indices = c.Input(1);
  Require(x.rank() >= 1, "params must be at least a vector");
  const auto at = static_cast<size_t>(Axis(axis, x.rank()));
  Dims dims(x.dims.begin(), x.dims.begin() + static_cast<int64_t>(at));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + static_cast<int64_t>(at) + 1, x.dims.end());
  const Value y = c.Output(0, dims);
  const int64_t outer = Product(x.dims, 0, at), rows = x.dims[at];
  const size_t run = static_cast<size_t>(Product(x.dims, at + 1, x.dims.size())) * ElementSize(x);
  c.Queue([=] {
    char* to = y.data;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < indices.size; ++i, to += run) {
        const auto row = static_cast<int64_t>(indices.as<I>()[i]);
        if (row < 0 || row >= rows) {
          Invalid("indices[" + std::to_string(i) + "] = " + std::to_string(row) + " is not in [0, " +
                  std::to_string(rows) + ")");
        }
        if (run > 0) std::memcpy(to, x.data + static_cast<size_t>(o * rows + row) * run, run);
      }
    }
  });
}
template <typename I>
void Gather(Context& c) {
  GatherRows<I>(c, 0);
}
template <typename I>
class GatherV2 {
 public:
  explicit GatherV2(const Attrs& attrs) {
    if (attrs.Int("batch_dims") != 0) throw Failed{TF_UNIMPLEMENTED, "GatherV2 with batch_dims on this device"};
  }
  void Run(Context& c) const { GatherRows<I>(c, c.HostInt(2)); }
};

template <typename I>
class OneHot {
 public:
  explicit OneHot(const Attrs& attrs) : axis_(attrs.Int("axis")) {}
  void Run(Context& c) const {
    const Value indices = c.Input(0), on = c.Input(2), off = c.Input(3);
    const int64_t depth = c.HostInt(1);
    Require(depth >= 0, "depth must be non-negative");
    Dims dims = indices.dims;
    const auto at = static_cast<size_t>(axis_ == -1 ? indices.rank() : Axis(axis_, indices.rank() + 1));
    dims.insert(dims.begin() + static_cast<int64_t>(at), depth);
    const Value y = c.Output(0, dims);
    const int64_t outer = Product(indices.dims, 0, at), inner = Product(indices.dims, at, indices.dims.size());
    c.Queue([=] {
      float* to = y.as<float>();
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t d = 0; d < depth; ++d) {
          for (int64_t i = 0; i < inner; ++i) {
            *to++ = indices.as<I>()[o * inner + i] == d ? *on.as<float>() : *off.as<float>();
          }
        }
      }
    });
  }

 private:
  const int64_t axis_;
};

void Pad(Context& c) {
  const Value x = c.Input(0);
  const std::vector<int64_t> padding = c.HostInts(1);
  Require(padding.size() == 2 * x.dims.size(), "paddings must have two entries a dimension");
  Dims dims;
  int64_t start = 0;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    Require(padding[2 * d] >= 0 && padding[2 * d + 1] >= 0, "a padding is negative");
    dims.push_back(padding[2 * d] + x.dims[d] + padding[2 * d + 1]);
  }
  const Dims steps = Steps(dims);
  for (size_t d = 0; d < x.dims.size(); ++d) start += padding[2 * d] * steps[d];
  const Value y = c.Output(0, dims);
  c.Queue([=] {
    if (y.size > 0) std::memset(y.data, 0, y.bytes());
    Dims at(x.dims.size(), 0);
    int64_t to = start;
    const size_t size = ElementSize(x);
    for (int64_t i = 0; i < x.size; ++i) {
      std::memcpy(y.data + static_cast<size_t>(to) * size, x.data + static_cast<size_t>(i) * size, size);
      for (size_t d = x.dims.size(); d-- > 0;) {
        to += steps[d];
        if (++at[d] < x.dims[d]) break;
        to -= steps[d] * x.dims[d];
        at[d] = 0;
      }
    }
  });
}

}  // namespace

void RegisterArray(TF_Status* s) {
  for (TF_DataType t : {TF_FLOAT, TF_DOUBLE, TF_INT32, TF_INT64, TF_BOOL}) {
    AddFn<Fill>({"Fill", {{"T", t}}, {"dims"}}, s);
    AddFn<Transpose>({"Transpose", {{"T", t}}, {"perm"}}, s);
    AddFn<Slice>({"Slice", {{"T", t}}, {"begin", "size"}}, s);
    AddClass<StridedSlice>({"StridedSlice", {{"T", t}}, {"begin", "end", "strides"}}, s);
    AddFn<Concat>({"Concat", {{"T", t}}, {"concat_dim"}}, s);
    AddFn<ConcatV2>({"ConcatV2", {{"T", t}}, {"axis"}}, s);
    AddFn<Split>({"Split", {{"T", t}}, {"split_dim"}}, s);
    AddClass<Pack>({"Pack", {{"T", t}}}, s);
    AddClass<Unpack>({"Unpack", {{"T", t}}}, s);
    AddFn<Tile>({"Tile", {{"T", t}}, {"multiples"}}, s);
    AddFn<Pad>({"Pad", {{"T", t}}, {"paddings"}}, s);
    AddFn<Gather<int32_t>>({"Gather", {{"Tparams", t}, {"Tindices", TF_INT32}}}, s);
    AddFn<Gather<int64_t>>({"Gather", {{"Tparams", t}, {"Tindices", TF_INT64}}}, s);
    AddClass<GatherV2<int32_t>>({"GatherV2", {{"Tparams", t}, {"Tindices", TF_INT32}}, {"axis"}}, s);
    AddClass<GatherV2<int64_t>>({"GatherV2", {{"Tparams", t}, {"Tindices", TF_INT64}}, {"axis"}}, s);
  }
  AddClass<OneHot<int32_t>>({"OneHot", {{"T", TF_FLOAT}, {"TI", TF_INT32}}, {"depth"}}, s);
  AddClass<OneHot<int64_t>>({"OneHot", {{"T", TF_FLOAT}, {"TI", TF_INT64}}, {"depth"}}, s);
}

}  // namespace testacc
