// SPDX-License-Identifier: Apache-2.0
// What oneDNN 2 and oneDNN 3 spell differently. For onednn.cc alone.
#pragma once

#include <string>

#include "dnnl.hpp"

namespace millrace::onednn {

#if DNNL_VERSION_MAJOR >= 3

template <typename Primitive, typename... Args>
typename Primitive::primitive_desc DescribeForward(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                                   const Args&... args) {
  return {engine, args..., attr};
}
template <typename Primitive, typename Forward, typename... Args>
typename Primitive::primitive_desc DescribeBackward(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                                    const Forward& forward, const Args&... args) {
  return {engine, args..., forward, attr};
}

// All that tells one layout from another, as bytes.
inline void AppendLayout(const dnnl::memory::desc& desc, std::string* to) {
  const auto append = [to](int64_t v) { to->append(reinterpret_cast<const char*>(&v), sizeof(v)); };
  append(desc.get_ndims());
  append(static_cast<int64_t>(desc.get_data_type()));
  append(static_cast<int64_t>(desc.get_format_kind()));
  append(desc.get_submemory_offset());
  for (const dnnl::memory::dims& sizes :
       {desc.get_dims(), desc.get_padded_dims(), desc.get_padded_offsets(), desc.get_strides(), desc.get_inner_blks(),
        desc.get_inner_idxs()}) {
    append(static_cast<int64_t>(sizes.size()));
    for (const int64_t size : sizes) append(size);
  }
}

#else

template <typename Primitive, typename... Args>
typename Primitive::primitive_desc DescribeForward(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                                   const Args&... args) {
  return {typename Primitive::desc(args...), attr, engine};
}
template <typename Primitive, typename Forward, typename... Args>
typename Primitive::primitive_desc DescribeBackward(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                                    const Forward& forward, const Args&... args) {
  return {typename Primitive::desc(args...), attr, engine, forward};
}

// All that tells one layout from another, as bytes.
inline void AppendLayout(const dnnl::memory::desc& desc, std::string* to) {
  const auto append = [to](const auto& v) { to->append(reinterpret_cast<const char*>(&v), sizeof(v)); };
  const dnnl_memory_desc_t& d = desc.data;
  append(d.ndims);
  append(d.data_type);
  append(d.format_kind);
  append(d.offset0);
  append(d.extra.flags);
  const dnnl_blocking_desc_t& b = d.format_desc.blocking;
  for (int i = 0; i < d.ndims; ++i) {
    append(d.dims[i]);
    append(d.padded_dims[i]);
    append(d.padded_offsets[i]);
    append(b.strides[i]);
  }
  for (int i = 0; i < b.inner_nblks; ++i) {
    append(b.inner_blks[i]);
    append(b.inner_idxs[i]);
  }
}

#endif

}  // namespace millrace::onednn
