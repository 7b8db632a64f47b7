// SPDX-License-Identifier: Apache-2.0
// What oneDNN asks of an OpenMP library, for one thread: libmillrace_serial.so. A parallel region is a call of its body by
// the thread that comes to it, so nothing of OpenMP is in the process for Millrace's sake.
#include <stdbool.h>

int omp_get_max_threads(void) { return 1; }
int omp_get_num_threads(void) { return 1; }
int omp_get_thread_num(void) { return 0; }
int omp_in_parallel(void) { return 0; }
void omp_set_num_threads(int count) { (void)count; }

// The caller runs the body itself between these.
void GOMP_parallel_start(void (*body)(void*), void* data, unsigned threads) {
  (void)body;
  (void)data;
  (void)threads;
}
void GOMP_parallel_end(void) {}
void GOMP_barrier(void) {}

// The one thread's part of a loop is all of it.
bool GOMP_loop_static_start(long begin, long end, long step, long chunk, long* part_begin, long* part_end) {
  (void)chunk;
  *part_begin = begin;
  *part_end = end;
  return step > 0 ? begin < end : begin > end;
}
bool GOMP_loop_static_next(long* part_begin, long* part_end) {
  (void)part_begin;
  (void)part_end;
  return false;
}
void GOMP_loop_end_nowait(void) {}
