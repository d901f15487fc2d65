"""Machine code for the CPU driver itself on AArch64, as text for this repository's assembler: the worker loop, and what
the processor says of itself.

`code(name)` returns "ring" (any processor), "ring_lse" (with the atomic instructions of LSE), "submit", "identify" or
"clean" as Code. Its bytes are stored in autogen/arm64_runtime.py, which build_runtime.py writes. The algorithm is that
of isa/x86/runtime.py, which explains it. Names, labels and their order are the same.

AArch64 lets loads and stores pass each other. So each access of a shared field has an order, and the tests compare the
text with this table:

    PUBLISHED                                  written by stlr, after packets, TARGET and COMPLETED = 0; read by ldar
    STATE                                      claimed by casal; read by ldar. The claim's release part keeps the reads
                                               of the packet before it: who sees the claim may overwrite the packet
    COMPLETED                                  added to by ldaddal, after a read of TARGET; read by ldar
    BELL, SLEEPERS, CALLER_SLEEPS              ldaddal or swpal, then ldar of what the other thread writes

Without LSE each of these is a loop of ldaxr and stlxr, followed by dmb ish, since a later load may pass a stlxr.
Registers take the old values: an atomic operation whose result goes to xzr has no acquire.

An isb stands before each call of a kernel. Kernels may have been placed since this thread's last one, and a processor
may have fetched old instructions. Source: Arm Architecture Reference Manual, DDI 0487, sections B2.3 and B2.2.5.
"""
from __future__ import annotations
import importlib
import sys
import zlib

from tinyhw.autogen import arm64_runtime, cpu_ring
from tinyhw.errors import DeviceError
from tinyhw.isa.arm64 import abi
from tinyhw.machine.ir.code import Code
from tinyhw.threads import once

CALLER_SLEEP_NS = 2_000_000

# ring(record, packets, count), as in isa/x86/runtime.py.
# Registers: x19 context, x20 record, x21 deadline, x22 target (caller) or bell (worker), x23 packets (caller), x24
# packets
# left (caller), x25 the thread's FPCR, x26 bell (caller) or the result of the last look (worker), x27 and x28 of .take.
RING = """
  stp x29, x30, [sp, #-96]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  mrs x25, FPCR
  msr FPCR, xzr
  mov x20, x0
  mov x23, x1
  mov x24, x2
  ldr x19, [x20, #{CONTEXT_ADDRESS}]
  ldr x9, [x20, #{WORKER}]
  cbnz x9, .worker_look_afresh
  str xzr, [x19, #{COMPLETED}]
  cbnz x24, .feed
  {increment} BELL
  add x0, x19, #{BELL}
  bl .wake_all
  b .leave

.feed:                                            ; copy as many packets as the ring takes
  ldr x9, [x19, #{MASK}]
  add x10, x9, #1
  cmp x10, x24
  csel x10, x24, x10, hi
  sub x24, x24, x10
  ldr x11, [x19, #{PUBLISHED}]
  ldr x12, [x19, #{RING}]
.copy:
  and x13, x11, x9
  add x13, x12, x13, lsl #{PACKET_SHIFT}
  ldr x14, [x23, #{FUNCTION}]
  str x14, [x13, #{FUNCTION}]
  ldr x14, [x23, #{ARGUMENTS}]
  str x14, [x13, #{ARGUMENTS}]
  ldr x14, [x23, #{GRID}]
  str x14, [x13, #{GRID}]
  ldr x14, [x23, #{SIZE}]
  str x14, [x13, #{SIZE}]
  ldr x14, [x23, #{REQUIRED}]
  str x14, [x13, #{REQUIRED}]
  ldr x15, [x23, #{CHUNKS}]
  str x15, [x13, #{CHUNKS}]
  add x22, x14, x15
  add x11, x11, #1
  ubfx x11, x11, #0, #{SERIAL_BITS}               ; serial numbers wrap
  add x23, x23, #{PACKET_BYTES}
  subs x10, x10, #1
  b.ne .copy
  str x22, [x19, #{TARGET}]
  add x9, x19, #{PUBLISHED}
  stlr x11, [x9]

.run:
  mov x0, #1
  bl .take
  cmp w0, #1
  b.eq .run
  {acquire} x9 COMPLETED
  cmp x22, x9
  b.eq .fed
  mrs x9, CNTVCT_EL0
  ldr x10, [x19, #{SPIN}]
  add x21, x9, x10
.caller_spin:
  yield
  {acquire} w26 BELL
  mov x0, #1
  bl .take
  cmp w0, #1
  b.eq .run
  {acquire} x9 COMPLETED
  cmp x22, x9
  b.eq .fed
  mrs x9, CNTVCT_EL0
  cmp x9, x21
  b.lo .caller_spin
  {exchange} CALLER_SLEEPS
  {increment} SLEEPERS
  {acquire} x9 COMPLETED
  cmp x22, x9
  b.eq .caller_awake
  add x0, x19, #{BELL}
  mov w1, w26
  movz x2, #{SLEEP_LOW}
  movk x2, #{SLEEP_HIGH}, lsl #16
  bl .wait
.caller_awake:
  {decrement} SLEEPERS
  str wzr, [x19, #{CALLER_SLEEPS}]
  b .run
.fed:
  cbnz x24, .feed
  ldr x9, [x19, #{TIMELINE}]
  add x9, x9, #1
  str x9, [x19, #{TIMELINE}]
.leave:
  msr FPCR, x25
  mov x0, #0
  ldp x27, x28, [sp, #80]
  ldp x25, x26, [sp, #64]
  ldp x23, x24, [sp, #48]
  ldp x21, x22, [sp, #32]
  ldp x19, x20, [sp, #16]
  ldp x29, x30, [sp], #96
  ret

.worker_look_afresh:
  mrs x9, CNTVCT_EL0
  ldr x10, [x19, #{SPIN}]
  add x21, x9, x10
.worker_look:
  {acquire} w22 BELL
  mov x0, #2                                      ; leave single chunks to whoever is awake and busy
  bl .take
  cmp w0, #1
  b.eq .worker_busy
  mov w26, w0
.worker_spin:
  yield
  {acquire} w9 STOP
  cbnz w9, .leave
  {acquire} w9 BELL
  cmp w22, w9
  b.ne .worker_look_afresh
  mrs x9, CNTVCT_EL0
  cmp x9, x21
  b.hs .worker_sleep
  cbnz w26, .worker_look                          ; a packet with several chunks that must not start yet: watch it too
  b .worker_spin
.worker_busy:
  mov x0, #1
  bl .take
  cmp w0, #1
  b.eq .worker_busy
  b .worker_look_afresh
.worker_sleep:
  {increment} SLEEPERS
  {acquire} w9 STOP
  cbnz w9, .worker_awake
  add x0, x19, #{BELL}
  mov w1, w22
  mov x2, #0
  bl .wait
.worker_awake:
  {decrement} SLEEPERS
  mov x9, #1
  str x9, [x20, #{WOKEN}]
  b .worker_look_afresh

; Take a chunk of the current packet if it has at least x0 chunks, and run it.
; x0: 1 ran one; 0 there is none for us; 2 there is one that must not start yet.
.take:
  stp x29, x30, [sp, #-32]!
  mov x27, x0
  add x28, x19, #{STATE}
  ldar x8, [x28]
.retry:
  lsr x9, x8, #{CHUNK_BITS}
  ldr x10, [x20, #{DONE}]
  cbz x10, .count_done
  ldr x11, [x20, #{SERIAL}]
  cmp x9, x11
  b.ne .count                                     ; no more of the packet that we worked on
.count_done:
  {acquire} x10 PUBLISHED
  cmp x9, x10
  b.eq .none
  and x11, x8, #{CHUNK_MASK}                      ; the chunk
  ldr x12, [x19, #{MASK}]
  and x12, x9, x12
  ldr x13, [x19, #{RING}]
  add x12, x13, x12, lsl #{PACKET_SHIFT}          ; the packet; if it is reused while we look, the claim fails
  ldr x13, [x12, #{CHUNKS}]
  cmp x13, x27
  b.lo .none
  ldr x14, [x12, #{REQUIRED}]
  {acquire} x15 COMPLETED
  cmp x14, x15
  b.hi .early
  mov x14, x8
  add x15, x11, #1
  cmp x15, x13
  b.lo .claim
  orr x14, x14, #{CHUNK_MASK}                     ; the last one: on to the next packet
.claim:
  add x14, x14, #1
  {compare_and_exchange}
.claimed:
  str x9, [x20, #{SERIAL}]
  cmp x13, #1
  b.hi .announce
.execute:                                         ; x12: packet, x11: chunk
  ldr x9, [x12, #{SIZE}]
  mul x1, x11, x9                                 ; first work item
  add x2, x1, x9                                  ; behind the last one
  ldr x10, [x12, #{GRID}]
  cmp x1, x10
  b.ge .complete
  cmp x2, x10
  csel x2, x10, x2, gt
  ldr x0, [x12, #{ARGUMENTS}]
  ldr x9, [x12, #{FUNCTION}]
  ldr x3, [x20, #{SCRATCH}]
  isb
  blr x9
.complete:
  ldr x9, [x20, #{DONE}]
  add x9, x9, #1
  str x9, [x20, #{DONE}]
  mov x0, #1
  ldp x29, x30, [sp], #32
  ret
.none:
  mov x0, #0
  ldp x29, x30, [sp], #32
  ret
.early:
  mov x0, #2
  ldp x29, x30, [sp], #32
  ret
.count:
  ldr x10, [x19, #{TARGET}]                       ; read before our chunks count: after that the next batch may begin
  ldr x11, [x20, #{DONE}]
  str xzr, [x20, #{DONE}]
  {add_to} COMPLETED
  cmp x12, x10
  b.ne .count_done
  {acquire} w12 CALLER_SLEEPS
  cbz w12, .count_done
  {increment} BELL
  add x0, x19, #{BELL}
  bl .wake_all
  ldar x8, [x28]
  b .retry
.announce:                                        ; several chunks
  cbnz x11, .not_first
  {increment} BELL
  b .wake_others
.not_first:
  ldr x10, [x20, #{WOKEN}]
  cbz x10, .execute
.wake_others:
  str xzr, [x20, #{WOKEN}]
  cmp x15, x13
  b.hs .execute
  {acquire} w10 SLEEPERS
  cbz w10, .execute
  stp x12, x11, [sp, #16]
  add x0, x19, #{BELL}
  bl .wake_some
  ldp x12, x11, [sp, #16]
  b .execute

; wait(x0 address, w1 expected, x2 timeout in ns or 0): returns when woken, on a signal, or at once if the word differs.
; wake_some(x0) wakes one or two, wake_all(x0) all.
.wait:
  sub sp, sp, #16
  stp xzr, x2, [sp]                               ; struct timespec
  mov x3, #0
  cbz x2, .forever
  mov x3, sp
.forever:
  mov w2, w1
  mov x1, #{FUTEX_WAIT_PRIVATE}
  mov x8, #{FUTEX}
  svc #0
  add sp, sp, #16
  ret
.wake_some:
  mov x2, #2
  b .wake
.wake_all:
  mov x2, #0x7fffffff
.wake:
  mov x1, #{FUTEX_WAKE_PRIVATE}
  mov x8, #{FUTEX}
  svc #0
  ret
"""

# The operations in braces above. Each has its field's address in x4; x5 to x7 are scratch registers. k is a number for
# labels. Sources and results are those of the text: .take has the expected STATE in x8, the new one in x14; add_to
# adds x11,
# and its sum is in x12.
LSE = {
  "increment": "mov w5, #1\n  ldaddal w5, w6, [x4]", "decrement": "mov w5, #-1\n  ldaddal w5, w6, [x4]",
  "exchange": "mov w5, #1\n  swpal w5, w6, [x4]", "add_to": "ldaddal x11, x12, [x4]\n  add x12, x12, x11",
  "compare_and_exchange": "mov x5, x8\n  casal x5, x14, [x28]\n  cmp x5, x8\n  b.eq .claimed\n  mov x8, x5\n  b .retry"}
EXCLUSIVE = {
  "increment": ".loop{k}:\n  ldaxr w6, [x4]\n  add w5, w6, #1\n  stlxr w7, w5, [x4]\n  cbnz w7, .loop{k}\n  dmb ish",
  "decrement": ".loop{k}:\n  ldaxr w6, [x4]\n  sub w5, w6, #1\n  stlxr w7, w5, [x4]\n  cbnz w7, .loop{k}\n  dmb ish",
  "exchange": "mov w5, #1\n.loop{k}:\n  ldaxr w6, [x4]\n  stlxr w7, w5, [x4]\n  cbnz w7, .loop{k}\n  dmb ish",
  "add_to": ".loop{k}:\n  ldaxr x6, [x4]\n  add x12, x6, x11\n  stlxr w7, x12, [x4]\n  cbnz w7, .loop{k}\n  dmb ish",
  "compare_and_exchange": """.loop{k}:
  ldaxr x5, [x28]
  cmp x5, x8
  b.ne .lost{k}
  stlxr w7, x14, [x28]
  cbnz w7, .loop{k}
  dmb ish
  b .claimed
.lost{k}:
  clrex
  mov x8, x5
  b .retry"""}

# submit(): run the batch of the caller's record. The two addresses follow the code.
SUBMIT = """
  ldr x0, #24
  ldr x16, #28
  ldr x1, [x0, #{BATCH}]
  ldr x2, [x0, #{COUNT}]
  br x16
  nop
"""

# identify(out): CTR_EL0, CNTFRQ_EL0 and DCZID_EL0 to out[0..2]
IDENTIFY = """
  mrs x1, CTR_EL0
  str x1, [x0]
  mrs x1, CNTFRQ_EL0
  str x1, [x0, #8]
  mrs x1, DCZID_EL0
  str x1, [x0, #16]
  ret
"""

# clean(start, end): make code visible to instruction fetch. Source: DDI 0487, section B2.2.5
CLEAN = """
  mrs x2, CTR_EL0
  ubfx x3, x2, #16, #4                            ; log2 of the words in a line of the data cache
  mov w4, #4
  lsl x3, x4, x3
  sub x5, x3, #1
  bic x5, x0, x5
.data:
  dc cvau, x5
  add x5, x5, x3
  cmp x5, x1
  b.lo .data
  dsb ish
  and x3, x2, #15                                 ; the same of the instruction cache
  lsl x3, x4, x3
  sub x5, x3, #1
  bic x5, x0, x5
.code:
  ic ivau, x5
  add x5, x5, x3
  cmp x5, x1
  b.lo .code
  dsb ish
  isb
  ret
"""

NAMES = ("ring", "ring_lse", "submit", "identify", "clean")

def ring_text(operations: dict[str, str]) -> str:
  """The text of the ring with these atomic operations."""
  lines, k = [], 0
  for line in RING.split("\n"):
    word, _, rest = line.strip().partition(" ")
    if word == "{acquire}":
      register, field = rest.split()
      lines.append(f"  add x4, x19, #{{{field}}}\n  ldar {register}, [x4]")
    elif word[:1] == "{" and word[1:-1] in operations:
      if rest: lines.append(f"  add x4, x19, #{{{rest}}}")
      lines.append("  " + operations[word[1:-1]].replace("{k}", str(k)))
      k += 1
    else: lines.append(line)
  return "\n".join(lines)

def text(name: str) -> str:
  """The assembly text of a function. A line is an instruction, a `.label:`, or empty; `;` comments."""
  words: dict[str, int] = {**cpu_ring.PACKET, **cpu_ring.CONTEXT, **cpu_ring.RECORD}
  words |= {"PACKET_BYTES": cpu_ring.PACKET_BYTES, "PACKET_SHIFT": cpu_ring.PACKET_BYTES.bit_length() - 1,
            "CHUNK_BITS": cpu_ring.CHUNK_BITS, "SERIAL_BITS": cpu_ring.SERIAL_BITS, "CHUNK_MASK": cpu_ring.MAX_CHUNKS,
            "SLEEP_LOW": CALLER_SLEEP_NS & 0xffff, "SLEEP_HIGH": CALLER_SLEEP_NS >> 16, "FUTEX": abi.FUTEX,
            "FUTEX_WAIT_PRIVATE": abi.FUTEX_WAIT_PRIVATE, "FUTEX_WAKE_PRIVATE": abi.FUTEX_WAKE_PRIVATE}
  texts = {"ring": ring_text(EXCLUSIVE), "ring_lse": ring_text(LSE), "submit": SUBMIT, "identify": IDENTIFY,
           "clean": CLEAN}
  return texts[name].format_map(words)

def assembled(name: str) -> bytes:
  """The bytes of a function, by the assembler."""
  code: bytes = importlib.import_module("tinyhw.isa.arm64.asm.syntax").assemble_function(text(name))
  marks = (cpu_ring.MARKS[mark].to_bytes(8, "little") for mark in ("RECORD_MARK", "ENTRY_MARK"))
  return code + b"".join(marks) if name == "submit" else code

def assemble(name: str) -> bytes:
  """The bytes of a function. Stored bytes are used if they came from this text; otherwise the assembler is loaded."""
  crc, kept = arm64_runtime.CODE.get(name, (0, ""))
  return bytes.fromhex(kept) if crc == zlib.crc32(text(name).encode()) else assembled(name)

@once
def code(name: str) -> Code:
  """A function as machine code for this system. Raises DeviceError for systems without a known way to wait."""
  if sys.platform != "linux":
    raise DeviceError(f"tinyhw does not know how threads wait on {sys.platform} on AArch64; use DEV=CLANG or "
                      f"DEV=PYTHON")
  return Code(name, "arm64", assemble(name), ())
