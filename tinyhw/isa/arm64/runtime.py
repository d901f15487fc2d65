"""Machine code for the CPU driver itself on AArch64, as text for this repository's assembler: the worker loop, and what
the processor says of itself.

`code(name)` returns "ring" (any processor), "ring_lse" (with the atomic instructions of LSE), "submit", "identify" or
"clean" as Code. Its bytes are stored in autogen/arm64_runtime.py, which build_runtime.py writes. The loop is that of
machine/assembler/worker_loop.py. Here are the instructions of its statements.

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

from tinyhw.autogen import arm64_runtime, cpu_ring
from tinyhw.errors import DeviceError
from tinyhw.isa.arm64 import abi
from tinyhw.machine.assembler.stored import StoredCode
from tinyhw.machine.assembler.worker_loop import Operations, expand
from tinyhw.machine.ir.code import Code
from tinyhw.threads import once

CALLER_SLEEP_NS = 2_000_000

# registers by number. x25 is s6: the thread's FPCR. x4 to x7 are scratch registers of statements, x8 has the number of
# a system call too
REGISTERS = {**{f"argument{k}": str(k) for k in range(4)}, **{f"t{k}": str(8 + k) for k in range(8)}, "zero": "zr",
             **dict(zip((f"s{k}" for k in range(10)), ("20", "19", "21", "22", "23", "24", "25", "26", "27", "28")))}
PLAIN = {
  "enter": """stp x29, x30, [sp, #-96]!
stp x19, x20, [sp, #16]
stp x21, x22, [sp, #32]
stp x23, x24, [sp, #48]
stp x25, x26, [sp, #64]
stp x27, x28, [sp, #80]
mrs x25, FPCR
msr FPCR, xzr""",
  "leave": """msr FPCR, x25
mov x0, #0
ldp x27, x28, [sp, #80]
ldp x25, x26, [sp, #64]
ldp x23, x24, [sp, #48]
ldp x21, x22, [sp, #32]
ldp x19, x20, [sp, #16]
ldp x29, x30, [sp], #96
ret""",
  "enter take": "stp x29, x30, [sp, #-32]!", "leave take": "ldp x29, x30, [sp], #32\nret",
  "save a, b": "stp x{a}, x{b}, [sp, #16]", "restore a, b": "ldp x{a}, x{b}, [sp, #16]",
  "enter wait a": "sub sp, sp, #16\nstp xzr, x{a}, [sp]", "leave wait": "add sp, sp, #16\nret",
  "a = timespec": "mov x{a}, sp", "system n": "mov x8, #{n}\nsvc #0", "return": "ret",
  "a = F": "ldr x{a}, [x{base}, #{n}]", "F = a": "str x{a}, [x{base}, #{n}]", "W = a": "str w{a}, [x{base}, #{n}]",
  "a = acquire F": "add x4, x{base}, #{n}\nldar x{a}, [x4]", "a = acquire W": "add x4, x{base}, #{n}\nldar w{a}, [x4]",
  "a = acquire at b": "ldar x{a}, [x{b}]", "publish F, a": "add x4, x{base}, #{n}\nstlr x{a}, [x4]",
  "a = & F": "add x{a}, x{base}, #{n}", "a = & W": "add x{a}, x{base}, #{n}",
  "a = n": "mov x{a}, #{n}", "a = b": "mov x{a}, x{b}", "a = everyone": "mov x{a}, #0x7fffffff",
  "a = limit": "movz x{a}, #{SLEEP_LOW}\nmovk x{a}, #{SLEEP_HIGH}, lsl #16", "a = clock": "mrs x{a}, CNTVCT_EL0",
  "a = b + n": "add x{a}, x{b}, #{n}", "a = b + c": "add x{a}, x{b}, x{c}", "a = b - c": "sub x{a}, x{b}, x{c}",
  "a = b & c": "and x{a}, x{b}, x{c}", "a = b * c": "mul x{a}, x{b}, x{c}",
  "a = b + packets(c)": "add x{a}, x{b}, x{c}, lsl #{PACKET_SHIFT}",
  "a = serial(b)": "lsr x{a}, x{b}, #{CHUNK_BITS}", "a = chunk(b)": "and x{a}, x{b}, #{CHUNK_MASK}",
  "a = last_chunk(b)": "orr x{a}, x{b}, #{CHUNK_MASK}", "a = wrapped(b)": "ubfx x{a}, x{b}, #0, #{SERIAL_BITS}",
  "a = least(b, c)": "cmp x{b}, x{c}\ncsel x{a}, x{c}, x{b}, hi",
  "a = least_signed(b, c)": "cmp x{b}, x{c}\ncsel x{a}, x{c}, x{b}, gt",
  "relax": "yield", "goto L": "b {L}", "call L": "bl {L}", "call a": "isb\nblr x{a}",
  "if a: L": "cbnz x{a}, {L}", "if not a: L": "cbz x{a}, {L}", "if a == n: L": "cmp x{a}, #{n}\nb.eq {L}",
  "if a > n: L": "cmp x{a}, #{n}\nb.hi {L}", "if a == b: L": "cmp x{a}, x{b}\nb.eq {L}",
  "if a != b: L": "cmp x{a}, x{b}\nb.ne {L}", "if a < b: L": "cmp x{a}, x{b}\nb.lo {L}",
  "if a > b: L": "cmp x{a}, x{b}\nb.hi {L}", "if a >= b: L": "cmp x{a}, x{b}\nb.hs {L}",
  "if a >= b signed: L": "cmp x{a}, x{b}\nb.ge {L}", "count down a: L": "subs x{a}, x{a}, #1\nb.ne {L}"}

FIELD = "add x4, x{base}, #{n}\n"
LSE = {
  "increment W": FIELD + "mov w5, #1\nldaddal w5, w6, [x4]", "decrement W": FIELD + "mov w5, #-1\nldaddal w5, w6, [x4]",
  "exchange W": FIELD + "mov w5, #1\nswpal w5, w6, [x4]",
  "a = add to F, b": FIELD + "ldaddal x{b}, x{a}, [x4]\nadd x{a}, x{a}, x{b}",
  "claim at a, b, c": "mov x5, x{b}\ncasal x5, x{c}, [x{a}]\ncmp x5, x{b}\nb.eq .claimed\nmov x{b}, x5\nb .retry"}
LOOP_START, LOOP_END = FIELD + ".loop{k}:\n", "\ncbnz w7, .loop{k}\ndmb ish"
EXCLUSIVE = {
  "increment W": LOOP_START + "ldaxr w6, [x4]\nadd w5, w6, #1\nstlxr w7, w5, [x4]" + LOOP_END,
  "decrement W": LOOP_START + "ldaxr w6, [x4]\nsub w5, w6, #1\nstlxr w7, w5, [x4]" + LOOP_END,
  "exchange W": FIELD + "mov w5, #1\n.loop{k}:\nldaxr w6, [x4]\nstlxr w7, w5, [x4]" + LOOP_END,
  "a = add to F, b": LOOP_START + "ldaxr x6, [x4]\nadd x{a}, x6, x{b}\nstlxr w7, x{a}, [x4]" + LOOP_END,
  "claim at a, b, c": """.loop{k}:
ldaxr x5, [x{a}]
cmp x5, x{b}
b.ne .lost{k}
stlxr w7, x{c}, [x{a}]
cbnz w7, .loop{k}
dmb ish
b .claimed
.lost{k}:
clrex
mov x{b}, x5
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

WORDS: dict[str, int] = {
  **cpu_ring.PACKET, **cpu_ring.CONTEXT, **cpu_ring.RECORD, "PACKET_BYTES": cpu_ring.PACKET_BYTES,
  "PACKET_SHIFT": cpu_ring.PACKET_BYTES.bit_length() - 1, "CHUNK_BITS": cpu_ring.CHUNK_BITS,
  "SERIAL_BITS": cpu_ring.SERIAL_BITS, "CHUNK_MASK": cpu_ring.MAX_CHUNKS, "SLEEP_LOW": CALLER_SLEEP_NS & 0xffff,
  "SLEEP_HIGH": CALLER_SLEEP_NS >> 16, "FUTEX": abi.FUTEX, "FUTEX_WAIT_PRIVATE": abi.FUTEX_WAIT_PRIVATE,
  "FUTEX_WAKE_PRIVATE": abi.FUTEX_WAKE_PRIVATE}

def text(name: str) -> str:
  """The assembly text of a function. A line is an instruction, a `.label:`, or empty; `;` comments."""
  if name[:4] == "ring":
    return expand(Operations(REGISTERS, {**PLAIN, **(LSE if name == "ring_lse" else EXCLUSIVE)}), WORDS, cpu_ring.WORDS)
  return {"submit": SUBMIT, "identify": IDENTIFY, "clean": CLEAN}[name].format_map(WORDS)

def assembled(name: str) -> bytes:
  """The bytes of a function, by the assembler."""
  code: bytes = importlib.import_module("tinyhw.isa.arm64.asm.syntax").assemble_function(text(name))
  marks = (cpu_ring.MARKS[mark].to_bytes(8, "little") for mark in ("RECORD_MARK", "ENTRY_MARK"))
  return code + b"".join(marks) if name == "submit" else code

STORED = StoredCode("arm64", NAMES, text, assembled, arm64_runtime.CODE)

@once
def code(name: str) -> Code:
  """A function as machine code for this system. Raises DeviceError for systems without a known way to wait."""
  if sys.platform != "linux":
    raise DeviceError(f"tinyhw does not know how threads wait on {sys.platform} on AArch64; use DEV=CLANG or "
                      f"DEV=PYTHON")
  return Code(name, "arm64", STORED.code(name), ())
