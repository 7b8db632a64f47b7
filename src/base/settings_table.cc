// SPDX-License-Identifier: Apache-2.0
// All settings, in the order in which people read of them. `python -m millrace.settings` writes the table of
// docs/running.md.
#include "base/settings.h"

namespace millrace {
namespace {

using Kind = Setting::Kind;

constexpr int64_t kYear = 86400 * 365;  // of seconds

constexpr Setting kSettings[] = {
    // ---- threads, memory, instructions ----
    {"MILLRACE_NUM_THREADS", Kind::kNumber, "", 1, kNoMost, "the cores that the process may use",
     "threads of the process's pool; the default looks at the affinity mask and at what its control groups grant"},
    {"MILLRACE_MEMORY_LIMIT_BYTES", Kind::kNumber, "", 1, kNoMost,
     "the memory of the machine and its swap, or what the container has of them",
     "an allocation that would pass it fails with ResourceExhausted, which names the op"},
    {"MILLRACE_PREPARED_LIMIT_BYTES", Kind::kNumber, "", 0, kNoMost, "no limit",
     "memory for weights kept in the form that products want"},
    {"MILLRACE_MAX_ISA", Kind::kChoice, "sse2, sse4, avx2, avx512", 0, 0, "what the machine has",
     "kernels as lesser machines have them (oneDNN's: `DNNL_MAX_CPU_ISA`)"},
    // ---- eyes ----
    {"MILLRACE_MIN_LOG_LEVEL", Kind::kNumber, "", 0, kNoMost, "0",
     "0: all, 1: warnings and errors, 2 and more: errors"},
    {"MILLRACE_LOG_FORMAT", Kind::kChoice, "text, json", 0, 0, "text", "`json`: each log line is an object"},
    {"MILLRACE_LOG_FIELDS", Kind::kPairs, "fields such as job=ps,task=0", 0, 0, "none",
     "fields that each log line has"},
    {"MILLRACE_TRACE", Kind::kFolder, "a folder", 0, 0, "no traces", "where [traces](traces.md) of steps go"},
    {"MILLRACE_TRACE_STEPS", Kind::kSteps, "steps such as 0-9,100", 0, 0, "0-49",
     "which steps of each session are traced"},
    {"MILLRACE_TRACEBACK", Kind::kSwitch, "", 0, 0, "0", "the program `millrace` shows tracebacks"},
    {"MILLRACE_SWITCHED_OFF_STAGES", Kind::kText, "names with commas", 0, 0, "none",
     "stages of the compiler that do not run (`millrace explain` lists them)"},
    {"MILLRACE_VERIFY_GRAPHS", Kind::kSwitch, "", 0, 0, "0 (1 in debug builds)",
     "graphs are verified between all stages of the compiler"},
    {"MILLRACE_GUARD_ALLOCATIONS", Kind::kSwitch, "", 0, 0, "0",
     "a page that faults behind every tensor, for tests of kernels"},
    // ---- servers, and who may use them ----
    {"MILLRACE_BIND", Kind::kPlace, "HOST or HOST:PORT", 0, 0, "the address in the cluster",
     "where [servers](cluster.md) listen"},
    {"MILLRACE_ALLOW_INSECURE_REMOTE", Kind::kSwitch, "", 0, 0, "0",
     "servers may listen where other hosts can connect, without encryption or passwords"},
    {"MILLRACE_ALLOW_OTHER_USERS", Kind::kSwitch, "", 0, 0, "0",
     "servers on the loopback interface, without certificates, take the calls of other users of the host"},
    {"MILLRACE_TLS_CA", Kind::kFile, "a file", 0, 0, "no encryption",
     "the authority's certificate, for servers and their clients ([who may connect](cluster.md#who-may-connect))"},
    {"MILLRACE_TLS_CERT", Kind::kFile, "a file", 0, 0, "none", "the process's certificate"},
    {"MILLRACE_TLS_KEY", Kind::kFile, "a file", 0, 0, "none", "its key"},
    {"MILLRACE_TLS_SECRET", Kind::kFile, "a file", 0, 0, "none", "a secret that clients show instead of a certificate"},
    {"MILLRACE_TLS_SERVER_NAME", Kind::kText, "a name", 0, 0, "the host's", "the name that servers' certificates have"},
    {"MILLRACE_ALLOW_FILES", Kind::kText, "folders (store://bucket too) with ':' between them, or all", 0, 0,
     "all on the loopback interface", "what graphs on servers may read and write"},
    {"MILLRACE_ALLOW_PY_FUNC", Kind::kSwitch, "", 0, 0, "1 on the loopback interface",
     "graphs on servers may call functions of the program"},
    {"MILLRACE_ALLOW_ANY_CLUSTER", Kind::kSwitch, "", 0, 0, "1 on the loopback interface",
     "sessions may bring clusters with any addresses"},
    {"MILLRACE_MAX_SESSIONS", Kind::kNumber, "", 1, kNoMost, "1000", "sessions of a server at once"},
    {"MILLRACE_SESSION_LEASE_SECONDS", Kind::kSeconds, "", 0, kYear, "600",
     "a server ends a session whose client, another process, it has not heard for so long; 0: never"},
    {"MILLRACE_MAX_STEPS", Kind::kNumber, "", 1, kNoMost, "1000", "steps of a server at once"},
    {"MILLRACE_MAX_CALLS", Kind::kNumber, "", 1, kNoMost, "20000",
     "calls of one task to a server at once: pulls of tensors and parts of steps"},
    {"MILLRACE_MAX_MESSAGE_BYTES", Kind::kNumber, "", 1, kNoMost, "4294967296",
     "the longest message that a server takes"},
    {"MILLRACE_MAX_CONTROL_BYTES", Kind::kNumber, "", 1, kNoMost, "16777216",
     "the longest message without a graph or a tensor that a server takes"},
    {"MILLRACE_MAX_CONNECTIONS", Kind::kNumber, "", 1, kNoMost,
     "half of the files that the process may open, at most 10000",
     "connections of a server at once, of gRPC's and of shared memory's each"},
    {"MILLRACE_MAX_CONNECTION_BYTES", Kind::kNumber, "", 1, kNoMost, "three quarters of the memory",
     "what gRPC's connections to a server may hold in memory together"},
    {"MILLRACE_HEALTH", Kind::kAddress, "[HOST:]PORT", 0, 0, "nowhere",
     "where a process with a server answers `/healthz`, `/readyz` and `/metrics`"},
    {"MILLRACE_DEAD_AFTER_SECONDS", Kind::kSeconds, "", 0, kYear, "10",
     "a task of a [cluster](cluster.md) that has answered nothing for so long is dead; 0: never; the same for all "
     "tasks"},
    {"MILLRACE_STALLED_AFTER_SECONDS", Kind::kSeconds, "", 0, kYear, "60",
     "a step in which nothing has happened for so long is described in the log; 0: never"},
    {"MILLRACE_DRAIN_SECONDS", Kind::kSeconds, "", 0, kYear, "25", "how long a process may take to end after SIGTERM"},
    // ---- what schedulers leave unsaid of clusters ----
    {"MILLRACE_JOBS", Kind::kPairs, "jobs and numbers of tasks such as ps=2,worker=3", 0, 0, "one job, worker",
     "the jobs of a [cluster](cluster.md) whose scheduler only numbers its processes"},
    {"MILLRACE_JOB", Kind::kText, "a job", 0, 0, "as the scheduler says",
     "the job of this process, where its scheduler numbers within jobs"},
    {"MILLRACE_HOSTS", Kind::kText, "a list, or a pattern with {job} and {i}", 0, 0, "as the scheduler says",
     "hosts of tasks"},
    {"MILLRACE_HOSTFILE", Kind::kFile, "a file", 0, 0, "/etc/mpi/hostfile", "a host file of MPI"},
    {"MILLRACE_SUBDOMAIN", Kind::kText, "a domain", 0, 0, "none", "the domain of the pods of an indexed Job"},
    {"MILLRACE_PORT", Kind::kNumber, "", 1, 65535, "2222 (Kubernetes), 12000 and more (MPI, Slurm)",
     "the first port of tasks on a host"},
    // ---- installation ----
    {"MILLRACE_LIBRARY", Kind::kFile, "a file", 0, 0, "that of the package", "the native library that Python loads"},
};

constexpr const char* kNamesOfTests[] = {
    "MILLRACE_CHROMIUM",
    "MILLRACE_DELAY_SEEDS",
    "MILLRACE_EVERY_ALLOCATION",
    "MILLRACE_FUZZED_FRAMES",
    "MILLRACE_FUZZ_ROUNDS",
    "MILLRACE_GUEST_ENVIRONMENT",
    "MILLRACE_JAX_PYTHON",
    "MILLRACE_KILLS",
    "MILLRACE_KILLS_FOLDER",
    "MILLRACE_KILL_SEED",
    "MILLRACE_MEMORY",
    "MILLRACE_ONNX_PYTHON",
    "MILLRACE_ORDER_SEEDS",
    "MILLRACE_PEER_PYTHON",
    "MILLRACE_PICTURES",
    "MILLRACE_SAME_MODEL",
    "MILLRACE_SCHEDULES",
    "MILLRACE_SHARED",
    "MILLRACE_SIMULATIONS",
    "MILLRACE_TENSORBOARD_PYTHON",
    "MILLRACE_TENSORFLOW_GO",
    "MILLRACE_TENSORFLOW_JAVA",
    "MILLRACE_TF_PYTHON",
    "MILLRACE_TORCH_PYTHON",
    "MILLRACE_WHEEL",
};

}  // namespace

absl::Span<const Setting> AllSettings() { return kSettings; }
absl::Span<const char* const> NamesOfTests() { return kNamesOfTests; }

}  // namespace millrace
