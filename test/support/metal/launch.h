// Launches a kernel: buffers from standard input, and back to standard output. Before it stand SIZES, GRID, LANES, LOCAL
// (sizes of buffers and of shared memory in bytes) and CALL, which calls the kernel with memory[], shared, group, lane.
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

static const size_t sizes[] = SIZES;
static const int buffers = sizeof(sizes) / sizeof(sizes[0]);
static char *memory[buffers], *shared;
static metal::Group whole;
static metal::SimdGroup simds[(LANES + 31) / 32];
struct Start { uint group, lane; };

static void *run(void *start) {
  uint group = ((Start *)start)->group, lane = ((Start *)start)->lane;
  metal::my_group = &whole, metal::my_simd = &simds[lane / 32], metal::my_lane = lane % 32;
  CALL;
  return 0;
}

static char *room(size_t size) {
  void *found;
  return posix_memalign(&found, 16, size) ? 0 : (char *)found;
}

int main() {
  alarm(60);      // lanes that wait for others for ever
  for (int k = 0; k < buffers; k++) {
    memory[k] = room(sizes[k]);
    if (fread(memory[k], 1, sizes[k], stdin) != sizes[k]) return 2;
  }
  pthread_barrier_init(&whole.barrier, 0, LANES);
  for (int k = 0; k < (LANES + 31) / 32; k++)
    pthread_barrier_init(&simds[k].barrier, 0, LANES - 32 * k < 32 ? LANES - 32 * k : 32);
  static pthread_t threads[LANES];
  static Start starts[LANES];
  for (uint group = 0; group < GRID; group++) {
    shared = LOCAL ? room(LOCAL) : 0;
    for (uint lane = 0; lane < LANES; lane++) {
      starts[lane] = {group, lane};
      if (pthread_create(&threads[lane], 0, run, &starts[lane])) return 3;
    }
    for (uint lane = 0; lane < LANES; lane++) pthread_join(threads[lane], 0);
    free(shared);
  }
  for (int k = 0; k < buffers; k++) fwrite(memory[k], 1, sizes[k], stdout);
  return fflush(stdout);
}
