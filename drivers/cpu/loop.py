"""The worker loop's code: machine code from the in-repo assembler, or C for processors without an assembler here.

tinyhw/isa/x86/runtime.py has the algorithm and the proof that it is correct.
"""
from __future__ import annotations
import ctypes
import mmap
from collections.abc import Callable

from tinyhw.autogen import cpu_ring
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.drivers.cpu.workers import BATCH
from tinyhw.machine.ir.code import Code

SPIN_TICKS = 100_000  # of the time stamp counter: 25 to 50 us
SPIN_NS = 40_000      # the loop in C counts nanoseconds

class MachineLoop:
  """The worker loop as machine code of the in-repo assembler.

  ring: the name of its code. spin: ticks of the processor's counter to spin before sleeping. visible: as for CodeArena.
  """

  def __init__(self, runtime: Callable[[str], Code], ring: str = "ring", spin: int = SPIN_TICKS,
               visible: Callable[[int, int], None] | None = None):
    self.spin = spin
    code, self.submit = runtime(ring), runtime("submit")
    self.arena = CodeArena(mmap.PAGESIZE, visible)
    self.entry = self.arena.add(code.text)[0] + code.entry

  def bind(self, record: int, memory: mmap.mmap, batch_at: int) -> Callable[[], None]:
    text = self.submit.text
    for name, value in (("RECORD_MARK", record), ("ENTRY_MARK", self.entry)):
      mark = cpu_ring.MARKS[name].to_bytes(8, "little")
      assert text.count(mark) == 1, f"the runtime's submit has {name} once"
      text = text.replace(mark, value.to_bytes(8, "little"))
    return ctypes.CFUNCTYPE(None)(self.arena.add(text)[0] + self.submit.entry)

  def close(self) -> None: self.arena.close(unmap=True)

class CompiledLoop:
  """The worker loop as a function of a shared object. It stays loaded until the process ends."""
  spin = SPIN_NS

  def __init__(self, entry: int): self.entry = entry

  def bind(self, record: int, memory: mmap.mmap, batch_at: int) -> Callable[[], None]:
    function = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t)(self.entry)
    return lambda: function(record, *BATCH.unpack_from(memory, batch_at))

  def close(self) -> None: pass

_SOURCE = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>
#if defined(__linux__)
#include <unistd.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
extern int __ulock_wait(uint32_t operation, void *address, uint64_t value, uint32_t timeout_us);
extern int __ulock_wake(uint32_t operation, void *address, uint64_t value);
#endif

typedef uint32_t u32;
typedef uint64_t u64;
typedef void (*kernel_t)(const u64 *arguments, int64_t first, int64_t last, uint8_t *scratch);

#define AT(type, base, offset) ((type *)((char *)(base) + (offset)))
#define GET(type, base, offset) __atomic_load_n(AT(type, base, offset), __ATOMIC_SEQ_CST)
#define PUT(type, base, offset, value) __atomic_store_n(AT(type, base, offset), (value), __ATOMIC_SEQ_CST)
#define ADD(type, base, offset, value) __atomic_fetch_add(AT(type, base, offset), (type)(value), __ATOMIC_SEQ_CST)

enum { NONE, RAN, EARLY };

static u64 now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void wait_for_change(u32 *word, u32 expected, u64 timeout_ns) {
#if defined(__linux__) && defined(SYS_futex)
  struct timespec limit = {0, (long)timeout_ns};
  syscall(SYS_futex, word, 128, expected, timeout_ns ? &limit : 0, 0, 0);
#elif defined(__APPLE__)
  __ulock_wait(0x01000001, word, expected, (u32)(timeout_ns / 1000));
#else
  struct timespec pause = {0, 50000};
  (void)timeout_ns;
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == expected) nanosleep(&pause, 0);
#endif
}

static void wake(u32 *word, int all) {
#if defined(__linux__) && defined(SYS_futex)
  syscall(SYS_futex, word, 129, all ? 0x7fffffff : 2, 0, 0, 0);
#elif defined(__APPLE__)
  __ulock_wake(all ? 0x01000101 : 0x01000001, word, 0);
#else
  (void)word, (void)all;
#endif
}

static int take(char *context, char *record, u64 least_chunks) {
  u64 state = GET(u64, context, STATE);
  for (;;) {
    u64 serial = state >> CHUNK_BITS, chunk = state & CHUNK_MASK, done = *AT(u64, record, DONE);
    if (done && serial != *AT(u64, record, SERIAL)) {
      u64 target = GET(u64, context, TARGET);
      *AT(u64, record, DONE) = 0;
      if (ADD(u64, context, COMPLETED, done) + done == target && GET(u32, context, CALLER_SLEEPS)) {
        ADD(u32, context, BELL, 1);
        wake(AT(u32, context, BELL), 1);
      }
    }
    if (serial == GET(u64, context, PUBLISHED)) return NONE;
    char *packet = (char *)GET(u64, context, RING) + (serial & GET(u64, context, MASK)) * PACKET_BYTES;
    u64 chunks = GET(u64, packet, CHUNKS);
    if (chunks < least_chunks) return NONE;
    if (GET(u64, packet, REQUIRED) > GET(u64, context, COMPLETED)) return EARLY;
    u64 next = (chunk + 1 < chunks ? state : state | CHUNK_MASK) + 1;
    if (!__atomic_compare_exchange_n(AT(u64, context, STATE), &state, next, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST)) continue;
    *AT(u64, record, SERIAL) = serial;
    if (chunks > 1) {
      if (chunk == 0) ADD(u32, context, BELL, 1);
      int wakes = chunk == 0 || *AT(u64, record, WOKEN);
      *AT(u64, record, WOKEN) = 0;
      if (wakes && chunk + 1 < chunks && GET(u32, context, SLEEPERS)) wake(AT(u32, context, BELL), 0);
    }
    int64_t size = (int64_t)GET(u64, packet, SIZE), grid = (int64_t)GET(u64, packet, GRID);
    int64_t first = (int64_t)chunk * size;
    int64_t last = first + size < grid ? first + size : grid;
    if (first < grid) {
      kernel_t kernel = (kernel_t)GET(u64, packet, FUNCTION);
      kernel((const u64 *)GET(u64, packet, ARGUMENTS), first, last, (uint8_t *)GET(u64, record, SCRATCH));
    }
    *AT(u64, record, DONE) += 1;
    return RAN;
  }
}

static void work(char *context, char *record) {
  for (;;) {
    u64 deadline = now_ns() + GET(u64, context, SPIN);
    for (int changed = 0; !changed;) {
      u32 bell = GET(u32, context, BELL);
      int found = take(context, record, 2);
      if (found == RAN) {
        while (take(context, record, 1) == RAN) {}
        break;
      }
      for (;;) {
        relax();
        if (GET(u32, context, STOP)) return;
        if (GET(u32, context, BELL) != bell) { changed = 1; break; }
        if (now_ns() >= deadline) {
          ADD(u32, context, SLEEPERS, 1);
          if (!GET(u32, context, STOP)) wait_for_change(AT(u32, context, BELL), bell, 0);
          ADD(u32, context, SLEEPERS, -1);
          *AT(u64, record, WOKEN) = 1;
          changed = 1;
          break;
        }
        if (found == EARLY) break;
      }
    }
  }
}

static void finish(char *context, char *record, u64 target) {
  for (;;) {
    while (take(context, record, 1) == RAN) {}
    if (GET(u64, context, COMPLETED) == target) return;
    u64 deadline = now_ns() + GET(u64, context, SPIN);
    u32 bell;
    int found;
    do {
      relax();
      bell = GET(u32, context, BELL);
      found = take(context, record, 1);
      if (found != RAN && GET(u64, context, COMPLETED) == target) return;
    } while (found != RAN && now_ns() < deadline);
    if (found == RAN) continue;
    PUT(u32, context, CALLER_SLEEPS, 1);
    ADD(u32, context, SLEEPERS, 1);
    if (GET(u64, context, COMPLETED) != target) wait_for_change(AT(u32, context, BELL), bell, 2000000);
    ADD(u32, context, SLEEPERS, -1);
    PUT(u32, context, CALLER_SLEEPS, 0);
  }
}

static void run(char *context, char *record, char *packets, u64 count) {
  PUT(u64, context, COMPLETED, 0);
  if (!count) {
    ADD(u32, context, BELL, 1);
    wake(AT(u32, context, BELL), 1);
    return;
  }
  u64 mask = GET(u64, context, MASK), published = GET(u64, context, PUBLISHED), target = 0;
  char *ring = (char *)GET(u64, context, RING);
  while (count) {
    u64 piece = count < mask + 1 ? count : mask + 1;
    count -= piece;
    for (; piece; piece--, packets += PACKET_BYTES) {
      char *to = ring + (published & mask) * PACKET_BYTES;
      for (int at = 0; at < PACKET_BYTES; at += 8) PUT(u64, to, at, *AT(u64, packets, at));
      target = *AT(u64, packets, REQUIRED) + *AT(u64, packets, CHUNKS);
      published = (published + 1) & SERIAL_MASK;
    }
    PUT(u64, context, TARGET, target);
    PUT(u64, context, PUBLISHED, published);
    finish(context, record, target);
  }
  ADD(u64, context, TIMELINE, 1);
}

void *ring(char *record, char *packets, u64 count) {
  char *context = (char *)GET(u64, record, CONTEXT_ADDRESS);
#if defined(__x86_64__)
  u32 mode = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(0x1f80);
#elif defined(__aarch64__)
  u64 mode;
  __asm__ volatile("mrs %0, fpcr\n\tmsr fpcr, xzr" : "=r"(mode));
#endif
  if (GET(u64, record, WORKER)) work(context, record);
  else run(context, record, packets, count);
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(mode);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#endif
  return 0;
}
"""

def loop_source() -> str:
  """Return C source of the function `ring`, with the offsets of autogen/cpu_ring.py as macros."""
  names = {**cpu_ring.PACKET, **cpu_ring.CONTEXT, **cpu_ring.RECORD, "PACKET_BYTES": cpu_ring.PACKET_BYTES,
           "CHUNK_BITS": cpu_ring.CHUNK_BITS}
  lines = [f"#define {name} {value}" for name, value in names.items()]
  lines += [f"#define CHUNK_MASK {cpu_ring.MAX_CHUNKS:#x}ull",
            f"#define SERIAL_MASK {(1 << cpu_ring.SERIAL_BITS) - 1:#x}ull"]
  return "\n".join(lines) + _SOURCE
