// SPDX-License-Identifier: Apache-2.0
#define MILLRACE_EXCEPTIONS 1
#include "control_flow_test.cc"
