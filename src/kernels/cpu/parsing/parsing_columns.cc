// SPDX-License-Identifier: Apache-2.0
// Columns of features written to tensors.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "base/checked.h"
#include "kernels/cpu/parsing/parsing.h"

namespace millrace::parsing {
namespace {

constexpr double kCellCost = 100;

wire::FeatureKind KindOf(DType dtype) {
  return dtype == DType::kFloat   ? wire::FeatureKind::kFloat
         : dtype == DType::kInt64 ? wire::FeatureKind::kInt64
                                  : wire::FeatureKind::kBytes;
}

const char* KindName(wire::FeatureKind kind) {
  switch (kind) {
    case wire::FeatureKind::kBytes: return "bytes";
    case wire::FeatureKind::kFloat: return "float";
    case wire::FeatureKind::kInt64: return "int64";
    default: return "nothing";
  }
}

// Copies `count` elements, all of the dtype of `to`.
void CopyElements(const Tensor& from, int64_t count, Tensor& to, int64_t at) {
  if (from.dtype() == DType::kString) {
    std::copy_n(from.data<TString>(), count, to.mutable_data<TString>() + at);
    return;
  }
  const size_t unit = DTypeSize(from.dtype());
  std::memcpy(static_cast<char*>(to.mutable_raw()) + static_cast<size_t>(at) * unit, from.raw(),
              static_cast<size_t>(count) * unit);
}

// Repeats one element.
void Pad(const Tensor& padding, int64_t count, Tensor& to, int64_t at) {
  if (to.dtype() == DType::kString) {
    std::fill_n(to.mutable_data<TString>() + at, count, *padding.data<TString>());
  } else if (to.dtype() == DType::kFloat) {
    std::fill_n(to.mutable_data<float>() + at, count, *padding.data<float>());
  } else {
    std::fill_n(to.mutable_data<int64_t>() + at, count, *padding.data<int64_t>());
  }
}

Status Required(const DenseSpec& spec, const Place& place, int64_t row) {
  return InvalidArgument("Name: ", place.Of(row), ", Feature: ", place.key, " (data type: ", DTypeName(spec.dtype),
                         ") is required but could not be found.");
}

std::string CellShape(const DenseSpec& spec) {
  std::vector<int64_t> dims = spec.dims;
  if (spec.variable) dims[0] = -1;
  return PartialShape::Of(std::move(dims)).ToString();
}

Status WrongCount(const Cell& cell, const DenseSpec& spec, const Place& place, int64_t row) {
  const std::string type = spec.dtype == DType::kString ? "bytes" : DTypeName(spec.dtype);
  if (spec.variable) {
    return InvalidArgument(
        "Name: ", place.Of(row), ", Key: ", place.key, ", Index: ", row, ".  Number of ", type,
        " values is not a multiple of stride length. Values size: ", cell.feature.count,
        " but output shape: ", CellShape(spec));
  }
  return InvalidArgument(
      "Name: ", place.Of(row), ", Key: ", place.key, ", Index: ", row, ".  Number of ", type,
      " values != expected.  Values size: ", cell.feature.count, " but output shape: ", CellShape(spec));
}

bool HasValue(const Cell& cell) { return cell.feature.kind != wire::FeatureKind::kNone; }

Status CheckDense(const DenseSpec& spec, const Cell& cell, const Place& place, int64_t row) {
  if (!HasValue(cell)) {
    const bool none = !spec.variable && (!spec.fallback || spec.fallback->num_elements() == 0);
    return none ? Required(spec, place, row) : absl::OkStatus();
  }
  MR_RETURN_IF_ERROR(CheckKind(cell, spec.dtype, place, row));
  const int64_t count = cell.feature.count;
  const bool fits =
      !spec.variable       ? count == spec.elements
      : spec.elements == 0 ? count == 0
                           : count % spec.elements == 0;
  return fits ? absl::OkStatus() : WrongCount(cell, spec, place, row);
}

// Offsets of the values of each cell; the last one is their number.
StatusOr<std::vector<int64_t>> Offsets(DType dtype, absl::Span<const Cell> cells, const Place& place,
                                       int64_t* longest) {
  std::vector<int64_t> offsets(cells.size() + 1);
  *longest = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (HasValue(cells[i])) MR_RETURN_IF_ERROR(CheckKind(cells[i], dtype, place, static_cast<int64_t>(i)));
    offsets[i + 1] = offsets[i] + cells[i].feature.count;
    *longest = std::max(*longest, cells[i].feature.count);
  }
  return offsets;
}

// The values of all cells, then work(cell, its first value) for those that have some.
template <typename Work>
Status CopyCells(KernelContext& ctx, absl::Span<const Cell> cells, absl::Span<const int64_t> offsets, int output,
                 Work work) {
  const int64_t total = offsets.back(), count = static_cast<int64_t>(cells.size());
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(output, Shape::Vector(total)));
  const double cost = count == 0 ? 0 : kCellCost + 5 * static_cast<double>(total) / static_cast<double>(count);
  ctx.ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t k = static_cast<size_t>(i);
      if (cells[k].feature.count == 0) continue;
      CopyValues(cells[k], *values, offsets[k]);
      work(i, offsets[k]);
    }
  });
  return absl::OkStatus();
}

// The values of all cells, and the indices: `prefix` writes all numbers of an index but the last one.
template <typename Prefix>
Status WriteValues(KernelContext& ctx, absl::Span<const Cell> cells, absl::Span<const int64_t> offsets, int64_t rank,
                   SparseOutputs outputs, Prefix prefix) {
  MR_ASSIGN_OR_RETURN(const Shape index_shape, Shape::Make({offsets.back(), rank}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(outputs.indices, index_shape));
  return CopyCells(ctx, cells, offsets, outputs.values, [&](int64_t i, int64_t first) {
    int64_t* to = indices->mutable_data<int64_t>() + first * rank;
    for (int64_t v = 0; v < cells[static_cast<size_t>(i)].feature.count; ++v, to += rank) {
      prefix(i, to);
      to[rank - 1] = v;
    }
  });
}

Status WriteShape(KernelContext& ctx, int output, std::initializer_list<int64_t> dims) {
  MR_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(output, Shape::Vector(static_cast<int64_t>(dims.size()))));
  std::copy(dims.begin(), dims.end(), shape->mutable_data<int64_t>());
  return absl::OkStatus();
}

}  // namespace

Status Cells::Allocate(KernelContext& ctx, int64_t count) {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({count, static_cast<int64_t>(sizeof(Cell))}));
  MR_ASSIGN_OR_RETURN(memory_, ctx.AllocateTemp(DType::kUInt8, shape));
  data_ = reinterpret_cast<Cell*>(memory_.mutable_raw());
  std::uninitialized_default_construct_n(data_, count);
  return absl::OkStatus();
}

std::string Place::Of(int64_t row) const {
  if (!names || row >= names->num_elements()) return "<unknown>";
  return std::string(names->data<TString>()[row].view().substr(0, 200));
}

Status CheckKind(const Cell& cell, DType dtype, const Place& place, int64_t row) {
  if (cell.feature.kind == KindOf(dtype)) return absl::OkStatus();
  if (place.list) {
    return InvalidArgument(
        "Name: ", place.Of(0), ", Feature list: ", place.key, ", Index: ", row,
        ".  Data types don't match. Expected type: ", DTypeName(dtype), "  Feature is: ", KindName(cell.feature.kind),
        "_list");
  }
  return InvalidArgument(
      "Name: ", place.Of(row), ", Key: ", place.key, ", Index: ", row,
      ".  Data types don't match. Expected type: ", DTypeName(dtype), "  Feature is: ", KindName(cell.feature.kind),
      "_list");
}

void CopyValues(const Cell& cell, Tensor& to, int64_t at) {
  if (to.dtype() == DType::kInt64) return wire::ReadInt64s(cell.feature, to.mutable_data<int64_t>() + at);
  if (to.dtype() == DType::kFloat) return wire::ReadFloats(cell.feature, to.mutable_data<float>() + at);
  TString* next = to.mutable_data<TString>() + at;
  wire::ReadBytes(cell.feature, [&](absl::string_view s) { *next++ = s; });
}

StatusOr<DenseSpec> MakeDenseSpec(DType dtype, const PartialShape& shape, bool may_vary) {
  if (!shape.has_rank()) return InvalidArgument("a dense shape has unknown rank");
  DenseSpec spec;
  spec.dtype = dtype;
  spec.dims = shape.dims();
  spec.variable = may_vary && !spec.dims.empty() && spec.dims[0] < 0;
  for (size_t i = spec.variable ? 1 : 0; i < spec.dims.size(); ++i) {
    if (spec.dims[i] < 0) return InvalidArgument("dense shape ", shape.ToString(), " is not fully defined");
    if (!CheckedMul(spec.elements, spec.dims[i], &spec.elements)) {
      return InvalidArgument("dense shape ", shape.ToString(), " is too large");
    }
  }
  return spec;
}

Status CheckFallback(const DenseSpec& spec, const Tensor& fallback, size_t number) {
  if (spec.variable) {
    if (fallback.num_elements() == 1) return absl::OkStatus();
    return InvalidArgument(
        "dense_shapes[", number, "] is a variable length shape: ", CellShape(spec),
        ", therefore the default must be one element (the padding), but its shape is: ", fallback.shape().ToString());
  }
  if (fallback.num_elements() == 0) return absl::OkStatus();
  const auto dims = fallback.shape().dims();
  if (std::equal(dims.begin(), dims.end(), spec.dims.begin(), spec.dims.end())) return absl::OkStatus();
  return InvalidArgument("the default of dense feature ", number, " has shape ", fallback.shape().ToString(),
                         ", which is not compatible with ", CellShape(spec));
}

Status WriteDense(KernelContext& ctx, const DenseSpec& spec, absl::Span<const Cell> column, const Place& place,
                  int output) {
  const int64_t rows = static_cast<int64_t>(column.size());
  int64_t longest = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const Cell& cell = column[static_cast<size_t>(i)];
    MR_RETURN_IF_ERROR(CheckDense(spec, cell, place, i));
    longest = std::max(longest, cell.feature.count);
  }
  std::vector<int64_t> dims = spec.dims;
  if (spec.variable) dims[0] = spec.elements == 0 ? 0 : longest / spec.elements;
  dims.insert(dims.begin(), rows);
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t size = shape.num_elements() / rows;
  ctx.ParallelFor(rows, kCellCost + static_cast<double>(size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Cell& cell = column[static_cast<size_t>(i)];
      if (HasValue(cell)) {
        CopyValues(cell, *out, i * size);
      } else if (!spec.variable) {
        CopyElements(*spec.fallback, size, *out, i * size);
      }
      if (spec.variable) Pad(*spec.fallback, size - cell.feature.count, *out, i * size + cell.feature.count);
    }
  });
  return absl::OkStatus();
}

Status WriteDenseCell(KernelContext& ctx, const DenseSpec& spec, const Cell& cell, const Place& place, int output) {
  MR_RETURN_IF_ERROR(CheckDense(spec, cell, place, 0));
  std::vector<int64_t> dims = spec.dims;
  if (spec.variable) dims[0] = spec.elements == 0 ? 0 : cell.feature.count / spec.elements;
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, shape));
  if (HasValue(cell)) {
    CopyValues(cell, *out, 0);
  } else if (!spec.variable) {
    CopyElements(*spec.fallback, shape.num_elements(), *out, 0);
  }
  return absl::OkStatus();
}

Status WriteSparse(KernelContext& ctx, DType dtype, absl::Span<const Cell> column, const Place& place,
                   SparseOutputs outputs) {
  int64_t longest = 0;
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, Offsets(dtype, column, place, &longest));
  MR_RETURN_IF_ERROR(
      WriteValues(ctx, column, offsets, 2, outputs, [](int64_t row, int64_t* index) { index[0] = row; }));
  return WriteShape(ctx, outputs.shape, {static_cast<int64_t>(column.size()), longest});
}

Status WriteSparseCell(KernelContext& ctx, DType dtype, const Cell& cell, const Place& place, SparseOutputs outputs) {
  int64_t longest = 0;
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, Offsets(dtype, {&cell, 1}, place, &longest));
  MR_RETURN_IF_ERROR(WriteValues(ctx, {&cell, 1}, offsets, 1, outputs, [](int64_t, int64_t*) {}));
  return WriteShape(ctx, outputs.shape, {longest});
}

Status WriteRagged(KernelContext& ctx, DType dtype, absl::Span<const Cell> column, const Place& place, int values,
                   int splits) {
  int64_t longest = 0;
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, Offsets(dtype, column, place, &longest));
  MR_RETURN_IF_ERROR(CopyCells(ctx, column, offsets, values, [](int64_t, int64_t) {}));
  MR_ASSIGN_OR_RETURN(Tensor * begins, ctx.AllocateOutput(splits, Shape::Vector(static_cast<int64_t>(offsets.size()))));
  if (begins->dtype() == DType::kInt64) {
    std::copy(offsets.begin(), offsets.end(), begins->mutable_data<int64_t>());
    return absl::OkStatus();
  }
  if (offsets.back() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Key: ", place.key, ".  Row splits of int32 cannot say ", offsets.back(), ", use int64");
  }
  std::transform(offsets.begin(), offsets.end(), begins->mutable_data<int32_t>(), [](int64_t o) {
    return static_cast<int32_t>(o);
  });
  return absl::OkStatus();
}

Status WriteRaggedCell(KernelContext& ctx, DType dtype, const Cell& cell, const Place& place, int values, int splits) {
  int64_t longest = 0;
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, Offsets(dtype, {&cell, 1}, place, &longest));
  MR_RETURN_IF_ERROR(CopyCells(ctx, {&cell, 1}, offsets, values, [](int64_t, int64_t) {}));
  return ctx.AllocateOutput(splits, Shape::Vector(0)).status();
}

Status WriteSparseLists(KernelContext& ctx, DType dtype, absl::Span<const Cell> cells,
                        absl::Span<const int64_t> sequences, const Place& place, SparseOutputs outputs) {
  int64_t longest = 0, longest_sequence = 0;
  for (size_t i = 0; i + 1 < sequences.size(); ++i) {
    longest_sequence = std::max(longest_sequence, sequences[i + 1] - sequences[i]);
  }
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, Offsets(dtype, cells, place, &longest));
  MR_RETURN_IF_ERROR(WriteValues(ctx, cells, offsets, 3, outputs, [&](int64_t cell, int64_t* index) {
    const auto after = std::upper_bound(sequences.begin(), sequences.end(), cell);
    index[0] = after - sequences.begin() - 1;
    index[1] = cell - *(after - 1);
  }));
  return WriteShape(ctx, outputs.shape, {static_cast<int64_t>(sequences.size()) - 1, longest_sequence, longest});
}

}  // namespace millrace::parsing
