// SPDX-License-Identifier: Apache-2.0
#include "millrace/millrace.h"
int main() { return millrace::Graph().get() == nullptr; }
