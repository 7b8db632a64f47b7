// SPDX-License-Identifier: Apache-2.0
// CPU kernels: parts of strings, strings joined, files.
#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/synchronization/mutex.h"
#include "base/checked.h"
#include "base/env.h"
#include "base/stop_scope.h"
#include "io/glob.h"
#include "kernel/device_env.h"
#include "kernels/cpu/text/strings.h"

namespace millrace {
namespace {

// Whether a byte begins a character of UTF-8.
bool Begins(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

int64_t Characters(absl::string_view s) { return std::count_if(s.begin(), s.end(), Begins); }

// The byte at which character n begins; the size of the string when it has no more than n.
size_t ByteOf(absl::string_view s, int64_t n) {
  for (size_t i = 0; i < s.size(); ++i) {
    if (Begins(s[i]) && n-- == 0) return i;
  }
  return s.size();
}

class UnitKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string unit, init.Attr<std::string>("unit"));
    characters_ = unit == "UTF8_CHAR";
    return absl::OkStatus();
  }

 protected:
  int64_t Length(absl::string_view s) const { return characters_ ? Characters(s) : static_cast<int64_t>(s.size()); }
  bool characters_ = false;
};

class LengthKernel final : public UnitKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
    ctx.ParallelFor(out->num_elements(), characters_ ? 15 : 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = Length(ctx.input(0).data<TString>()[i]);
        out->mutable_data<int32_t>()[i] = static_cast<int32_t>(std::min(n, kMost));
      }
    });
    return absl::OkStatus();
  }
};

// Where element i of a broadcast result comes from.
class BroadcastIndex {
 public:
  BroadcastIndex(const Shape& from, const Shape& to) : to_(to), steps_(static_cast<size_t>(to.rank()), 0) {
    int64_t step = 1;
    for (int d = from.rank() - 1, k = to.rank() - 1; d >= 0; --d, --k) {
      if (from.dim(d) != 1) steps_[static_cast<size_t>(k)] = step;
      step *= from.dim(d);
    }
  }
  int64_t operator()(int64_t i) const {
    int64_t at = 0;
    for (int d = to_.rank() - 1; d >= 0; --d) {
      at += i % to_.dim(d) * steps_[static_cast<size_t>(d)];
      i /= to_.dim(d);
    }
    return at;
  }

 private:
  const Shape& to_;
  std::vector<int64_t> steps_;
};

class SubstrKernel final : public UnitKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (!(ctx.input(1).shape() == ctx.input(2).shape())) {
      return InvalidArgument("pos and len must have one shape, got ", ctx.input(1).shape().ToString(), " and ",
                             ctx.input(2).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> pos, ctx.input(1).IntValues());
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> len, ctx.input(2).IntValues());
    MR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(input.shape(), ctx.input(1).shape()));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const BroadcastIndex of_string(input.shape(), shape), of_pos(ctx.input(1).shape(), shape);
    absl::Mutex mu;
    int64_t first_bad = shape.num_elements();
    Status status;  // of the first that is refused
    ctx.ParallelFor(shape.num_elements(), 25, [&](int64_t begin, int64_t end) {
      StopNowAndThen pause;
      for (int64_t i = begin; i < end; ++i) {
        pause();
        const absl::string_view s = input.data<TString>()[of_string(i)].view();
        const size_t p = static_cast<size_t>(of_pos(i));
        const StatusOr<absl::string_view> part = Part(s, pos[p], len[p]);
        if (part.ok()) {
          out->mutable_data<TString>()[i] = *part;
          continue;
        }
        const absl::MutexLock lock(&mu);
        if (i < first_bad) first_bad = i, status = part.status();
        return;
      }
    });
    return status;
  }

 private:
  StatusOr<absl::string_view> Part(absl::string_view s, int64_t pos, int64_t len) const {
    const int64_t size = Length(s);
    if (pos < -size || pos > size) return InvalidArgument("pos is ", pos, " in a string of length ", size);
    if (len < 0) return InvalidArgument("len is ", len, ", want 0 or more");
    const int64_t begin = pos < 0 ? pos + size : pos, count = std::min(len, size - begin);
    if (!characters_) return s.substr(static_cast<size_t>(begin), static_cast<size_t>(count));
    const size_t from = ByteOf(s, begin);
    return s.substr(from, ByteOf(s.substr(from), count));
  }
};

// The parts of each string of a vector as a sparse matrix: a string a row.
class SplitterKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) final {
    const Tensor& input = ctx.input(0);
    if (input.rank() != 1) return InvalidArgument("input must be a vector, got shape: ", input.shape().ToString());
    const Tensor& by = ctx.input(1);
    if (by.rank() != 0)
      return InvalidArgument(separator_name_, " must be a scalar, got shape: ", by.shape().ToString());
    const absl::string_view separator = by.data<TString>()->view();
    const int64_t rows = input.num_elements();
    std::vector<Block> blocks(static_cast<size_t>((rows + kBlock - 1) / kBlock));
    const auto for_blocks = [&](auto fn) {
      constexpr double kNanosPerRow = 200;
      ctx.ParallelFor(static_cast<int64_t>(blocks.size()), kNanosPerRow * kBlock, [&](int64_t begin, int64_t end) {
        StopNowAndThen pause;
        for (int64_t b = begin; b < end; ++b) {
          for (int64_t row = b * kBlock; row < std::min(rows, (b + 1) * kBlock); ++row) {
            pause();
            fn(blocks[static_cast<size_t>(b)], row);
          }
        }
      });
    };
    for_blocks([&](Block& block, int64_t row) {
      const size_t before = block.parts.size();
      if (before == 0) block.parts.reserve(4 * kBlock);
      Split(input.data<TString>()[row].view(), separator, &block.parts);
      block.counts.push_back(static_cast<int64_t>(block.parts.size() - before));
    });
    int64_t n = 0, longest = 0;
    for (Block& block : blocks) {
      block.place = n;
      n += static_cast<int64_t>(block.parts.size());
      longest = std::max(longest, *std::max_element(block.counts.begin(), block.counts.end()));
    }
    MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({n, 2}));
    MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, matrix));
    MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(n)));
    MR_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(2, Shape::Vector(2)));
    int64_t* const places = indices->mutable_data<int64_t>();
    TString* const texts = values->mutable_data<TString>();
    for_blocks([&](Block& block, int64_t row) {
      for (int64_t i = 0; i < block.counts[static_cast<size_t>(row % kBlock)]; ++i, ++block.place) {
        places[2 * block.place] = row;
        places[2 * block.place + 1] = i;
        texts[block.place] = block.parts[block.written++];
      }
    });
    shape->mutable_data<int64_t>()[0] = rows;
    shape->mutable_data<int64_t>()[1] = longest;
    return absl::OkStatus();
  }

 protected:
  explicit SplitterKernel(const char* separator_name) : separator_name_(separator_name) {}
  virtual void Split(absl::string_view s, absl::string_view by, std::vector<absl::string_view>* parts) const = 0;

 private:
  // Some rows, which a thread splits.
  static constexpr int64_t kBlock = 256;
  struct Block {
    std::vector<absl::string_view> parts;
    std::vector<int64_t> counts;  // of each row's parts
    int64_t place = 0;            // of the next part in the output
    size_t written = 0;
  };

  const char* const separator_name_;
};

// At each of a set of characters.
class SplitKernel final : public SplitterKernel {
 public:
  SplitKernel() : SplitterKernel("delimiter") {}
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(skip_empty_, init.Attr<bool>("skip_empty"));
    return absl::OkStatus();
  }

 private:
  void Split(absl::string_view s, absl::string_view delimiters, std::vector<absl::string_view>* parts) const final {
    if (delimiters.empty()) {
      for (size_t i = 0; i < s.size(); ++i) parts->push_back(s.substr(i, 1));
      return;
    }
    if (s.empty()) return;  // no part, where other empty strings between delimiters are one
    for (size_t begin = 0;;) {
      const size_t end = std::min(s.find_first_of(delimiters, begin), s.size());
      if (end > begin || !skip_empty_) parts->push_back(s.substr(begin, end - begin));
      if (end == s.size()) return;
      begin = end + 1;
    }
  }
  bool skip_empty_ = true;
};

// At a separator as a whole, or at runs of white space where it is empty; as Python's str.split, but what is left
// after `maxsplit` parts is a part of its own even when it is empty.
class SplitV2Kernel final : public SplitterKernel {
 public:
  SplitV2Kernel() : SplitterKernel("sep") {}
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(maxsplit_, init.Attr<int64_t>("maxsplit"));
    return absl::OkStatus();
  }

 private:
  void Split(absl::string_view s, absl::string_view separator, std::vector<absl::string_view>* parts) const final {
    if (maxsplit_ == 0) return parts->push_back(s);
    int64_t left = maxsplit_;
    if (separator.empty()) {
      for (s = absl::StripLeadingAsciiWhitespace(s); !s.empty(); s = absl::StripLeadingAsciiWhitespace(s)) {
        if (maxsplit_ > 0 && left-- == 0) return parts->push_back(s);
        size_t size = 0;
        while (size < s.size() && !absl::ascii_isspace(static_cast<unsigned char>(s[size]))) ++size;
        parts->push_back(s.substr(0, size));
        s.remove_prefix(size);
      }
      if (maxsplit_ > 0 && left == 0) parts->push_back(s);
      return;
    }
    for (size_t at = s.find(separator); at != absl::string_view::npos; at = s.find(separator)) {
      parts->push_back(s.substr(0, at));
      s.remove_prefix(at + separator.size());
      if (maxsplit_ > 0 && --left == 0) break;
    }
    parts->push_back(s);
  }
  int64_t maxsplit_ = -1;
};

class ReduceJoinKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(keep_, init.Attr<bool>("keep_dims"));
    MR_ASSIGN_OR_RETURN(separator_, init.Attr<std::string>("separator"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> given, ctx.input(1).IntValues());
    std::vector<int64_t> steps(static_cast<size_t>(input.rank()), 1);
    for (int d = input.rank() - 2; d >= 0; --d)
      steps[static_cast<size_t>(d)] = steps[static_cast<size_t>(d) + 1] * input.dim(d + 1);
    std::vector<bool> joined(steps.size());
    std::vector<int> axes, kept;
    for (const int64_t a : given) {
      int64_t axis = 0;
      if (!NormalizeIndex(a, input.rank(), &axis))
        return OutOfRange("Invalid reduction dimension ", a, " for an input of rank ", input.rank());
      if (joined[static_cast<size_t>(axis)]) return InvalidArgument("Duplicate reduction dimension ", axis);
      joined[static_cast<size_t>(axis)] = true;
      axes.push_back(static_cast<int>(axis));
    }
    std::vector<int64_t> dims;
    for (int d = 0; d < input.rank(); ++d) {
      if (!joined[static_cast<size_t>(d)]) kept.push_back(d);
      if (!joined[static_cast<size_t>(d)]) {
        dims.push_back(input.dim(d));
      } else if (keep_) {
        dims.push_back(1);
      }
    }
    std::reverse(axes.begin(), axes.end());  // the first one given runs fastest
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const std::vector<int64_t> inner = Offsets(input.shape(), axes, steps), outer = Offsets(input.shape(), kept, steps);
    constexpr double kNanosPerPart = 20;
    const double cost = kNanosPerPart * (1 + static_cast<double>(inner.size()));
    ctx.ParallelFor(static_cast<int64_t>(outer.size()), cost, [&](int64_t begin, int64_t end) {
      StopNowAndThen pause;
      std::string text;
      for (size_t o = static_cast<size_t>(begin); o < static_cast<size_t>(end); ++o) {
        text.clear();
        for (size_t i = 0; i < inner.size(); ++i) {
          pause();
          if (i > 0) text += separator_;
          absl::StrAppend(&text, input.data<TString>()[outer[o] + inner[i]].view());
        }
        out->mutable_data<TString>()[o] = text;
      }
    });
    return absl::OkStatus();
  }

 private:
  // Positions of all combinations along these axes, the last one running fastest.
  static std::vector<int64_t> Offsets(const Shape& shape, const std::vector<int>& axes,
                                      const std::vector<int64_t>& steps) {
    std::vector<int64_t> offsets{0};
    for (const int a : axes) {
      std::vector<int64_t> next;
      for (const int64_t o : offsets) {
        for (int64_t i = 0; i < shape.dim(a); ++i) next.push_back(o + i * steps[static_cast<size_t>(a)]);
      }
      offsets.swap(next);
    }
    return offsets;
  }
  bool keep_ = false;
  std::string separator_;
};

Status RequireName(const KernelContext& ctx, int i, absl::string_view what) {
  if (ctx.input(i).rank() == 0) return absl::OkStatus();
  return InvalidArgument(what, " must be a scalar, got shape ", ctx.input(i).shape().ToString());
}

Status MatchingFiles(KernelContext& ctx) {
  const Tensor& patterns = ctx.input(0);
  if (patterns.rank() > 1) {
    return InvalidArgument("pattern must be a scalar or a vector, got shape ", patterns.shape().ToString());
  }
  std::vector<std::string> found;
  for (const TString& pattern : patterns.flat<TString>()) {
    MR_ASSIGN_OR_RETURN(const std::vector<std::string> more, MatchFiles(EnvOf(ctx.device()), pattern));
    found.insert(found.end(), more.begin(), more.end());
  }
  std::sort(found.begin(), found.end());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(static_cast<int64_t>(found.size()))));
  std::copy(found.begin(), found.end(), out->mutable_data<TString>());
  return absl::OkStatus();
}

Status ReadFile(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(RequireName(ctx, 0, "filename"));
  MR_ASSIGN_OR_RETURN(const std::string contents, EnvOf(ctx.device()).ReadFile(ctx.input(0).data<TString>()->str()));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() = contents;
  return absl::OkStatus();
}

Status WriteFile(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(RequireName(ctx, 0, "filename"));
  MR_RETURN_IF_ERROR(RequireName(ctx, 1, "contents"));
  const std::string path = ctx.input(0).data<TString>()->str();
  if (const size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0) {
    MR_RETURN_IF_ERROR(EnvOf(ctx.device()).CreateDirs(path.substr(0, slash)));
  }
  MR_ASSIGN_OR_RETURN(const auto file, EnvOf(ctx.device()).NewWritableFile(path));
  MR_RETURN_IF_ERROR(file->Append(ctx.input(1).data<TString>()->view()));
  return file->Close();
}

}  // namespace

void RegisterStringKernels(KernelRegistry& registry) {
  registry.Add<LengthKernel>({.op = "StringLength"});
  registry.Add<SubstrKernel>({.op = "Substr"});
  registry.Add<SplitKernel>({.op = "StringSplit"});
  registry.Add<SplitV2Kernel>({.op = "StringSplitV2"});
  registry.Add<ReduceJoinKernel>({.op = "ReduceJoin"});
  registry.AddFn({.op = "ReadFile"}, ReadFile);
  registry.AddFn({.op = "MatchingFiles"}, MatchingFiles);
  registry.AddFn({.op = "WriteFile"}, WriteFile);
  RegisterBase64Kernels(registry);
  RegisterStringNumberKernels(registry);
  RegisterStringHashKernels(registry);
}

}  // namespace millrace
