// SPDX-License-Identifier: Apache-2.0
// What most files include: parsed once when the fuzzer is built.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "graph/graph_builder.h"
#include "kernel/kernel_registry.h"
#include "op/op_registry.h"
