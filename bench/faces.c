/* SPDX-License-Identifier: Apache-2.0
 *
 * What a face costs: faces LIBRARY FACE [PAIRS] runs three graphs through the functions of libmillrace.so and of
 * libtensorflow.so.2 (or .1) in one process, in turns, and prints medians in us and the median of the paired ratios,
 * the face's time over the library's.
 *   tiny       one add, one feed, one fetch
 *   adds1000   1,000 dependent scalar adds, one fetch
 *   feed64MB   64 MB fed and fetched: a tensor of the caller's memory in, and the memory of the result read
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "millrace/c_api.h"

#define FUNCTIONS(X)                                                                                                   \
  X(NewStatus)                                                                                                         \
  X(GetCode) X(Message) X(NewGraph) X(NewOperation) X(SetAttrType) X(AddInput) X(FinishOperation) X(NewSessionOptions) \
      X(NewSession) X(NewTensor) X(TensorData) X(TensorByteSize) X(DeleteTensor) X(SessionRun)

typedef struct Library {
#define X(name) __typeof__(&TF_##name) name;
  FUNCTIONS(X)
#undef X
} Library;

enum { kFloats = 16 << 20 };
typedef enum Kind { kTiny, kAdds, kFeed, kKinds } Kind;
static const char* const kNames[kKinds] = {"tiny", "adds1000", "feed64MB"};
/* A turn is short, so that what else the machine does hits both. */
static const int kSteps[kKinds] = {1000, 50, 1000};

typedef struct Program {
  const Library* lib;
  TF_Session* session;
  TF_Output in, out;
  TF_Status* status;
} Program;

static void Die(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void Open(const char* path, Library* lib) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) Die(path, dlerror());
#define X(name)                                       \
  *(void**)(&lib->name) = dlsym(handle, "TF_" #name); \
  if (lib->name == NULL) Die(path, "TF_" #name " is missing");
  FUNCTIONS(X)
#undef X
}

static TF_Output Finish(Program* p, TF_OperationDescription* d) {
  TF_Output output = {p->lib->FinishOperation(d, p->status), 0};
  if (output.oper == NULL) Die("TF_FinishOperation", p->lib->Message(p->status));
  return output;
}

static Program Build(const Library* lib, Kind kind) {
  Program p = {lib, NULL, {NULL, 0}, {NULL, 0}, lib->NewStatus()};
  TF_Graph* graph = lib->NewGraph();
  TF_OperationDescription* d = lib->NewOperation(graph, "Placeholder", "x");
  char name[32];
  int i;
  lib->SetAttrType(d, "dtype", TF_FLOAT);
  p.in = p.out = Finish(&p, d);
  for (i = 0; i < (kind == kAdds ? 1000 : kind == kTiny ? 1 : 0); ++i) {
    snprintf(name, sizeof(name), "add%d", i);
    d = lib->NewOperation(graph, "Add", name);
    lib->AddInput(d, p.out);
    lib->AddInput(d, p.in);
    p.out = Finish(&p, d);
  }
  if (kind == kFeed) {
    d = lib->NewOperation(graph, "Identity", "same");
    lib->AddInput(d, p.in);
    p.out = Finish(&p, d);
  }
  p.session = lib->NewSession(graph, lib->NewSessionOptions(), p.status);
  if (p.session == NULL) Die("TF_NewSession", lib->Message(p.status));
  return p;
}

static void Keep(void* data, size_t size, void* arg) { (void)data, (void)size, (void)arg; }

/* One step; returns an element of the result. */
static float Step(const Program* p, Kind kind, float* memory) {
  const Library* lib = p->lib;
  const int64_t dims[1] = {kFloats};
  const size_t size = kind == kFeed ? sizeof(float) * kFloats : sizeof(float);
  TF_Tensor *value = lib->NewTensor(TF_FLOAT, dims, kind == kFeed, memory, size, &Keep, NULL), *result = NULL;
  float got;
  lib->SessionRun(p->session, NULL, &p->in, &value, 1, &p->out, &result, 1, NULL, 0, NULL, p->status);
  if (lib->GetCode(p->status) != TF_OK) Die("TF_SessionRun", lib->Message(p->status));
  got = ((const float*)lib->TensorData(result))[lib->TensorByteSize(result) / sizeof(float) - 1];
  lib->DeleteTensor(result);
  lib->DeleteTensor(value);
  return got;
}

static double Seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double Median(double* values, int count) {
  qsort(values, (size_t)count, sizeof(double), &Compare);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

int main(int argc, char** argv) {
  Library libraries[2];
  const int pairs = argc > 3 ? atoi(argv[3]) : 301;
  float* memory = (float*)aligned_alloc(64, sizeof(float) * kFloats);
  double *times[2], *ratios;
  int kind, pair, turn, i;
  if (argc < 3 || pairs < 1 || memory == NULL) Die("usage", "faces LIBRARY FACE [PAIRS]");
  for (i = 0; i < kFloats; ++i) memory[i] = 1;
  for (i = 0; i < 2; ++i) {
    Open(argv[i + 1], &libraries[i]);
    times[i] = (double*)malloc(sizeof(double) * (size_t)pairs);
  }
  ratios = (double*)malloc(sizeof(double) * (size_t)pairs);
  printf("%-10s %14s %12s %8s\n", "graph", "library, us", "face, us", "ratio");
  for (kind = 0; kind < kKinds; ++kind) {
    const float want = kind == kTiny ? 2 : kind == kAdds ? 1001 : 1;
    Program programs[2];
    for (i = 0; i < 2; ++i) {
      programs[i] = Build(&libraries[i], (Kind)kind);
      if (Step(&programs[i], (Kind)kind, memory) != want) Die(kNames[kind], "a wrong result");
    }
    for (pair = 0; pair < pairs; ++pair) {
      for (turn = 0; turn < 2; ++turn) {
        const int who = (pair + turn) % 2;
        const double start = Seconds();
        for (i = 0; i < kSteps[kind]; ++i) Step(&programs[who], (Kind)kind, memory);
        times[who][pair] = (Seconds() - start) / kSteps[kind] * 1e6;
      }
      ratios[pair] = times[1][pair] / times[0][pair];
    }
    printf("%-10s %14.3f %12.3f %8.3f\n", kNames[kind], Median(times[0], pairs), Median(times[1], pairs),
           Median(ratios, pairs));
  }
  return EXIT_SUCCESS;
}
