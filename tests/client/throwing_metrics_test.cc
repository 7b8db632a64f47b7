// SPDX-License-Identifier: Apache-2.0
#define MILLRACE_EXCEPTIONS 1
#include "metrics_test.cc"  // NOLINT: the same tests, in the other form
