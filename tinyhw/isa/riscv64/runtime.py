"""Machine code for the CPU driver itself on RISC-V, as text for this repository's assembler: the worker loop, and what
the processor says of itself.

`code(name)` returns "ring", "submit", "clock" or "vector_bytes" as Code. Its bytes are stored in
autogen/riscv64_runtime.py, which build_runtime.py writes. The loop is that of machine/assembler/worker_loop.py. The
instructions of its statements are here. They are those of RV64IMAFD, so one loop serves all processors.

RISC-V lets loads and stores pass each other. So each access of a shared field has an order:

    acquire                                    the load, then fence r, rw
    publish                                    fence rw, w, then the store
    increment, decrement, exchange, add to     amoadd or amoswap with aq and rl: one access, which nothing passes
    claim                                      lr.d.aqrl and sc.d.rl, then fence rw, rw: a later load may pass an sc

No instruction makes placed code visible: the driver asks the system (drivers/cpu/riscv64.py), which does it for all
threads. Source: RISC-V Unprivileged ISA 20240411, chapters "RVWMO" and "A"; RISC-V ABIs Specification 1.0, "RISC-V
atomics mappings".
"""
from __future__ import annotations
import importlib
import sys

from tinyhw.autogen import cpu_ring, riscv64_runtime
from tinyhw.errors import DeviceError
from tinyhw.isa.riscv64 import abi
from tinyhw.machine.assembler.stored import StoredCode
from tinyhw.machine.assembler.worker_loop import Operations, expand
from tinyhw.machine.ir.code import Code
from tinyhw.threads import once

CALLER_SLEEP_NS = 2_000_000

# t5, t6 and a7 are scratch registers of statements. s6 is the thread's fcsr: rounding mode and flags
REGISTERS = {**{f"argument{k}": f"a{k}" for k in range(4)}, "zero": "zero",
             **dict(zip((f"t{k}" for k in range(8)), ("t0", "t1", "t2", "t3", "t4", "a4", "a5", "a6"))),
             **{f"s{k}": f"s{k}" for k in range(10)}}
KEPT = ("ra", *(f"s{k}" for k in range(10)))
FRAME = -(-8 * len(KEPT) // 16) * 16
FIELD = "addi t6, {base}, {n}\n"

FORMS = {
  "enter": "\n".join([f"addi sp, sp, -{FRAME}", *(f"sd {r}, {8 * k}(sp)" for k, r in enumerate(KEPT)),
                      "fscsr s6, zero"]),
  "leave": "\n".join(["fscsr s6", *(f"ld {r}, {8 * k}(sp)" for k, r in enumerate(KEPT)), f"addi sp, sp, {FRAME}",
                      "li a0, 0", "ret"]),
  "enter take": "addi sp, sp, -32\nsd ra, 0(sp)", "leave take": "ld ra, 0(sp)\naddi sp, sp, 32\nret",
  "save a, b": "sd {a}, 8(sp)\nsd {b}, 16(sp)", "restore a, b": "ld {a}, 8(sp)\nld {b}, 16(sp)",
  "enter wait a": "addi sp, sp, -16\nsd zero, 0(sp)\nsd {a}, 8(sp)", "leave wait": "addi sp, sp, 16\nret",
  "a = timespec": "mv {a}, sp", "system n": "li a7, {n}\necall", "return": "ret",
  "a = F": "ld {a}, {n}({base})", "F = a": "sd {a}, {n}({base})", "W = a": "sw {a}, {n}({base})",
  "a = acquire F": "ld {a}, {n}({base})\nfence r, rw", "a = acquire W": "lw {a}, {n}({base})\nfence r, rw",
  "a = acquire at b": "ld {a}, 0({b})\nfence r, rw", "publish F, a": "fence rw, w\nsd {a}, {n}({base})",
  "increment W": FIELD + "li t5, 1\namoadd.w.aqrl t5, t5, (t6)",
  "decrement W": FIELD + "li t5, -1\namoadd.w.aqrl t5, t5, (t6)",
  "exchange W": FIELD + "li t5, 1\namoswap.w.aqrl t5, t5, (t6)",
  "a = add to F, b": FIELD + "amoadd.d.aqrl {a}, {b}, (t6)\nadd {a}, {a}, {b}",
  "claim at a, b, c": """.loop{k}:
lr.d.aqrl t5, ({a})
bne t5, {b}, .lost{k}
sc.d.rl t6, {c}, ({a})
bnez t6, .loop{k}
fence rw, rw
j .claimed
.lost{k}:
mv {b}, t5
j .retry""",
  "a = & F": "addi {a}, {base}, {n}", "a = & W": "addi {a}, {base}, {n}",
  "a = n": "li {a}, {n}", "a = b": "mv {a}, {b}", "a = everyone": "lui {a}, 0x80000\naddiw {a}, {a}, -1",
  "a = limit": "lui {a}, {SLEEP_UPPER}\naddi {a}, {a}, {SLEEP_LOWER}", "a = clock": "rdtime {a}",
  "a = b + n": "addi {a}, {b}, {n}", "a = b + c": "add {a}, {b}, {c}", "a = b - c": "sub {a}, {b}, {c}",
  "a = b & c": "and {a}, {b}, {c}", "a = b * c": "mul {a}, {b}, {c}",
  "a = b + packets(c)": "slli t5, {c}, {PACKET_SHIFT}\nadd {a}, {b}, t5",
  "a = serial(b)": "srli {a}, {b}, {CHUNK_BITS}",
  "a = chunk(b)": "slli {a}, {b}, {SERIAL_BITS}\nsrli {a}, {a}, {SERIAL_BITS}",
  "a = last_chunk(b)": "lui t5, {CHUNKS_UPPER}\naddi t5, t5, -1\nor {a}, {b}, t5",
  "a = wrapped(b)": "slli {a}, {b}, {CHUNK_BITS}\nsrli {a}, {a}, {CHUNK_BITS}",
  "a = least(b, c)": "mv t5, {b}\nbgeu {c}, t5, .least{k}\nmv t5, {c}\n.least{k}:\nmv {a}, t5",
  "a = least_signed(b, c)": "mv t5, {b}\nbge {c}, t5, .least{k}\nmv t5, {c}\n.least{k}:\nmv {a}, t5",
  "relax": "pause", "goto L": "j {L}", "call L": "jal {L}", "call a": "jalr {a}",
  "if a: L": "bnez {a}, {L}", "if not a: L": "beqz {a}, {L}", "if a == n: L": "li t5, {n}\nbeq {a}, t5, {L}",
  "if a > n: L": "li t5, {n}\nbgtu {a}, t5, {L}", "if a == b: L": "beq {a}, {b}, {L}",
  "if a != b: L": "bne {a}, {b}, {L}", "if a < b: L": "bltu {a}, {b}, {L}", "if a > b: L": "bgtu {a}, {b}, {L}",
  "if a >= b: L": "bgeu {a}, {b}, {L}", "if a >= b signed: L": "bge {a}, {b}, {L}",
  "count down a: L": "addi {a}, {a}, -1\nbnez {a}, {L}"}

# submit(): run the batch of the caller's record. The two addresses follow the code.
SUBMIT = """
  auipc t0, 0
  ld a0, 24(t0)
  ld t1, 32(t0)
  ld a1, {BATCH}(a0)
  ld a2, {COUNT}(a0)
  jr t1
"""

# clock(out): the ticks of the processor's counter to out[0]
CLOCK = """
  rdtime a1
  sd a1, 0(a0)
  ret
"""

# vector_bytes(out): the bytes of a vector register to out[0]. Only where the processor has V
VECTOR_BYTES = """
  csrr a1, vlenb
  sd a1, 0(a0)
  ret
"""

NAMES = ("ring", "submit", "clock", "vector_bytes")

WORDS: dict[str, int] = {
  **cpu_ring.PACKET, **cpu_ring.CONTEXT, **cpu_ring.RECORD, "PACKET_BYTES": cpu_ring.PACKET_BYTES,
  "PACKET_SHIFT": cpu_ring.PACKET_BYTES.bit_length() - 1, "CHUNK_BITS": cpu_ring.CHUNK_BITS,
  "SERIAL_BITS": cpu_ring.SERIAL_BITS, "CHUNKS_UPPER": cpu_ring.MAX_CHUNKS + 1 >> 12,
  "SLEEP_UPPER": CALLER_SLEEP_NS + 0x800 >> 12, "SLEEP_LOWER": (CALLER_SLEEP_NS + 0x800 & 0xfff) - 0x800,
  "FUTEX": abi.FUTEX, "FUTEX_WAIT_PRIVATE": abi.FUTEX_WAIT_PRIVATE, "FUTEX_WAKE_PRIVATE": abi.FUTEX_WAKE_PRIVATE}

def text(name: str) -> str:
  """The assembly text of a function. A line is an instruction, a `.label:`, or empty; `;` comments."""
  if name == "ring": return expand(Operations(REGISTERS, FORMS), WORDS, cpu_ring.WORDS)
  return {"submit": SUBMIT, "clock": CLOCK, "vector_bytes": VECTOR_BYTES}[name].format_map(WORDS)

def assembled(name: str) -> bytes:
  """The bytes of a function, by the assembler."""
  code: bytes = importlib.import_module("tinyhw.isa.riscv64.asm.syntax").assemble_function(text(name))
  marks = (cpu_ring.MARKS[mark].to_bytes(8, "little") for mark in ("RECORD_MARK", "ENTRY_MARK"))
  return code + b"".join(marks) if name == "submit" else code

STORED = StoredCode("riscv64", NAMES, text, assembled, riscv64_runtime.CODE)

@once
def code(name: str) -> Code:
  """A function as machine code for this system. Raises DeviceError for systems without a known way to wait."""
  if sys.platform != "linux":
    raise DeviceError(f"tinyhw does not know how threads wait on {sys.platform} on RISC-V; use DEV=CLANG or DEV=PYTHON")
  return Code(name, "riscv64", STORED.code(name), ())
