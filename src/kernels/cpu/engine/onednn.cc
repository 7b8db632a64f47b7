// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/onednn.h"

#include <list>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/hash/hash.h"
#include "absl/synchronization/mutex.h"
#include "dnnl.hpp"
#include "kernels/cpu/engine/onednn_scope.h"
#include "kernels/cpu/engine/onednn_versions.h"

namespace millrace::onednn {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

// Never destroyed: streams of other threads may outlive static destruction.
const dnnl::engine& Engine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}
dnnl::stream& ThreadStream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

// Runs `fn` with one thread and without signals; oneDNN's exceptions end here.
template <typename Fn>
Status Guarded(Fn fn) {
  try {
    const OneThread one_thread;
    const SignalsHeld signals_held;
    fn();
    return absl::OkStatus();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented || e.status == dnnl_invalid_arguments) {
      return Unimplemented("oneDNN: ", e.what());
    }
    if (e.status == dnnl_out_of_memory) return ResourceExhausted("oneDNN: ", e.what());
    return Internal("oneDNN: ", e.what());
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("oneDNN ran out of memory");
  }
}

Dims Spatial(const ConvKey& k, const std::array<int64_t, 3>& v) {
  return k.volumetric ? Dims{v[0], v[1], v[2]} : Dims{v[1], v[2]};
}
Dims Minus1(Dims d) {
  for (auto& v : d) --v;
  return d;
}
Dims ImageDims(const ConvKey& k, int64_t channels, const std::array<int64_t, 3>& v) {
  Dims d{k.batch, channels};
  for (int64_t s : Spatial(k, v)) d.push_back(s);
  return d;
}
Type TypeOf(const ConvKey& k) { return k.bf16 ? Type::bf16 : Type::f32; }

Desc ImageDesc(const ConvKey& k, int64_t channels, const std::array<int64_t, 3>& v, bool any) {
  auto tag = k.volumetric ? dnnl::memory::format_tag::ndhwc : dnnl::memory::format_tag::nhwc;
  if (any) tag = dnnl::memory::format_tag::any;
  return Desc(ImageDims(k, channels, v), TypeOf(k), tag);
}

Dims WeightDims(const ConvKey& k) {
  Dims d;
  if (k.groups > 1) d.push_back(k.groups);
  d.push_back(k.out_channels / k.groups);
  d.push_back(k.in_channels / k.groups);
  for (int64_t s : Spatial(k, k.kernel)) d.push_back(s);
  return d;
}
// The user's weights. Plain: [taps][in / groups][groups * out / groups]. Transposed: the same memory, where the row is
// this convolution's output and the column its input.
Desc PlainWeights(const ConvKey& k) {
  const int64_t out = (k.all_outputs > 0 ? k.all_outputs : k.out_channels) / k.groups;
  const int64_t in = k.in_channels / k.groups;
  const int64_t rows = k.transposed ? out : in;
  const int64_t columns = k.transposed ? in : out;
  const int64_t width = columns * k.groups;
  Dims strides;
  if (k.groups > 1) strides.push_back(columns);
  strides.push_back(k.transposed ? width : 1);
  strides.push_back(k.transposed ? 1 : width);
  const int64_t tap = rows * width;
  if (k.volumetric) strides.push_back(tap * k.kernel[1] * k.kernel[2]);
  strides.push_back(tap * k.kernel[2]);
  strides.push_back(tap);
  return Desc(WeightDims(k), TypeOf(k), strides);
}

bool IsReference(const std::string& name) { return name.rfind("ref", 0) == 0; }

// A change of layout; nothing when both are the same.
class Layout {
 public:
  Layout() = default;
  Layout(Desc from, Desc to) : from_(std::move(from)), to_(std::move(to)), same_(from_ == to_) {
    if (same_) return;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc pd(Engine(), from_, Engine(), to_, attr);
    scratch_ = pd.scratchpad_desc();
    reorder_ = dnnl::reorder(pd);
  }
  bool same() const { return same_; }
  void Run(const void* from, void* to) const {
    dnnl::memory a(from_, Engine(), const_cast<void*>(from)), b(to_, Engine(), to), s(scratch_, Engine());
    reorder_.execute(ThreadStream(), {{DNNL_ARG_FROM, a}, {DNNL_ARG_TO, b}, {DNNL_ARG_SCRATCHPAD, s}});
  }

 private:
  Desc from_, to_, scratch_;
  bool same_ = true;
  dnnl::reorder reorder_;
};

size_t Aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

struct Conv::Impl {
  ConvKey key;
  dnnl::primitive primitive;
  Desc src, weights, dst, scratch;
  std::string packing_name;
  Layout packing;         // plain -> packed weights, or packed -> plain for backward weights
  Layout src_in, dst_in;  // plain -> blocked images, for backward weights

  template <typename PrimitiveDesc>
  Status Adopt(const PrimitiveDesc& pd, const Desc& packed) {
    if (IsReference(pd.impl_info_str())) return Unimplemented("only a reference implementation");
    weights = packed;
    scratch = pd.scratchpad_desc();
    const Desc plain = PlainWeights(key);
    packing = key.kind == ConvKind::kBackwardWeights ? Layout(weights, plain) : Layout(plain, weights);
    AppendLayout(plain, &packing_name);
    AppendLayout(weights, &packing_name);
    return absl::OkStatus();
  }
  // Images in the primitive's layout lie behind the primitive's own scratch memory.
  size_t src_bytes() const { return src_in.same() ? 0 : Aligned(src.get_size()); }
  size_t dst_bytes() const { return dst_in.same() ? 0 : Aligned(dst.get_size()); }
};

Conv::Conv(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Conv::~Conv() = default;

StatusOr<std::shared_ptr<const Conv>> Conv::Create(const ConvKey& k) {
  auto impl = std::make_unique<Impl>();
  impl->key = k;
  Status built;
  const Status guarded = Guarded([&] {
    Impl& m = *impl;
    m.src = ImageDesc(k, k.in_channels, k.in, k.blocked);
    m.dst = ImageDesc(k, k.out_channels, k.out, k.blocked);
    const Desc any(WeightDims(k), TypeOf(k), dnnl::memory::format_tag::any);
    const Desc any_sum(WeightDims(k), Type::f32, dnnl::memory::format_tag::any);
    const Dims strides = Spatial(k, k.stride), dilation = Minus1(Spatial(k, k.dilation));
    const Dims before = Spatial(k, k.pad_before), after = Spatial(k, k.pad_after);
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto forward = DescribeForward<dnnl::convolution_forward>(
        Engine(), attr, dnnl::prop_kind::forward_training, kDirect, m.src, any, m.dst, strides, dilation, before,
        after);
    if (k.kind == ConvKind::kForward) {
      built = m.Adopt(forward, forward.weights_desc());
      if (built.ok()) m.primitive = dnnl::convolution_forward(forward);
    } else if (k.kind == ConvKind::kBackwardData) {
      const auto pd = DescribeBackward<dnnl::convolution_backward_data>(
          Engine(), attr, forward, kDirect, m.src, any, m.dst, strides, dilation, before, after);
      built = m.Adopt(pd, pd.weights_desc());
      if (built.ok()) m.primitive = dnnl::convolution_backward_data(pd);
    } else {
      const auto pd = DescribeBackward<dnnl::convolution_backward_weights>(
          Engine(), attr, forward, kDirect, m.src, any_sum, m.dst, strides, dilation, before, after);
      built = m.Adopt(pd, pd.diff_weights_desc());
      m.src = pd.src_desc();
      m.dst = pd.diff_dst_desc();
      m.src_in = Layout(ImageDesc(k, k.in_channels, k.in, false), m.src);
      m.dst_in = Layout(ImageDesc(k, k.out_channels, k.out, false), m.dst);
      if (built.ok()) m.primitive = dnnl::convolution_backward_weights(pd);
    }
  });
  MR_RETURN_IF_ERROR(guarded);
  MR_RETURN_IF_ERROR(built);
  return std::shared_ptr<const Conv>(new Conv(std::move(impl)));
}

size_t Conv::packed_bytes() const { return impl_->weights.get_size(); }
bool Conv::packed_is_plain() const { return impl_->packing.same(); }
bool Conv::SamePacking(const Conv& o) const { return impl_->weights == o.impl_->weights; }
const std::string& Conv::packing() const { return impl_->packing_name; }
size_t Conv::scratch_bytes() const {
  return Aligned(impl_->scratch.get_size()) + impl_->src_bytes() + impl_->dst_bytes();
}
Status Conv::Pack(const void* weights, void* packed) const {
  return Guarded([&] { impl_->packing.Run(weights, packed); });
}
Status Conv::Unpack(const void* packed, void* weights) const {
  return Guarded([&] { impl_->packing.Run(packed, weights); });
}

Status Conv::Run(void* src, void* weights, void* dst, void* scratch) const {
  return Guarded([&] {
    const Impl& m = *impl_;
    const bool data = m.key.kind == ConvKind::kBackwardData;
    const bool filter = m.key.kind == ConvKind::kBackwardWeights;
    char* spare = static_cast<char*>(scratch) + Aligned(m.scratch.get_size());
    if (!m.src_in.same()) {
      m.src_in.Run(src, spare);
      src = spare;
      spare += m.src_bytes();
    }
    if (!m.dst_in.same()) {
      m.dst_in.Run(dst, spare);
      dst = spare;
    }
    dnnl::memory s(m.src, Engine(), src), w(m.weights, Engine(), weights), d(m.dst, Engine(), dst);
    dnnl::memory pad(m.scratch, Engine(), scratch);
    m.primitive.execute(
        ThreadStream(),
        {{data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, s},
         {filter ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, w},
         {data || filter ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST, d},
         {DNNL_ARG_SCRATCHPAD, pad}});
  });
}

namespace {

// Least recently used out first. What cannot be built is remembered too.
class Cache {
 public:
  using Value = StatusOr<std::shared_ptr<const Conv>>;
  bool Find(const ConvKey& key, Value* value) {
    absl::MutexLock lock(&mu_);
    auto it = index_.find(key);
    if (it == index_.end()) return false;
    order_.splice(order_.begin(), order_, it->second);
    *value = it->second->second;
    return true;
  }
  void Insert(const ConvKey& key, const Value& value) {
    std::list<std::pair<ConvKey, Value>> fresh;
    fresh.emplace_front(key, value);
    absl::MutexLock lock(&mu_);
    if (!index_.emplace(key, fresh.begin()).second) return;
    order_.splice(order_.begin(), fresh);
    if (order_.size() > kLimit) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
  }

 private:
  static constexpr size_t kLimit = 1024;
  absl::Mutex mu_;
  std::list<std::pair<ConvKey, Value>> order_ ABSL_GUARDED_BY(mu_);
  // Of the standard library: Abseil's map is broken when it cannot grow.
  std::unordered_map<ConvKey, std::list<std::pair<ConvKey, Value>>::iterator, absl::Hash<ConvKey>> index_
      ABSL_GUARDED_BY(mu_);
};

Cache& ConvCache() {
  static auto* cache = new Cache;
  return *cache;
}

}  // namespace

StatusOr<std::shared_ptr<const Conv>> Conv::Get(const ConvKey& key) {
  Cache::Value value = Unimplemented("");
  if (ConvCache().Find(key, &value)) return value;
  value = Create(key);
  if (value.ok() || absl::IsUnimplemented(value.status())) ConvCache().Insert(key, value);
  return value;
}

}  // namespace millrace::onednn
