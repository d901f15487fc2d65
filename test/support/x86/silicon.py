"""One instruction at a time on the processor that runs the tests, and on the processor in Python (x86/machine.py), from
the same state.

`cases(row, rng)` makes instructions with operands and a state that fit together. Addresses are in a page of data, and
the memory after it may not be touched, so a lane that a mask should have kept from memory is noticed. Floats are
special, denormal or extreme. There are masks and flags. `Silicon.run` and `emulate` give the state afterwards,
`differences` compares. Rows that the machine in Python does not know have no cases. Needs Linux, x86-64.
"""
from __future__ import annotations
import ctypes
import functools
import math
import random
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from x86 import lanes as x86_lanes
from x86.machine import Machine, Memory, arithmetic
from x86.random import random_instruction

from tinyhw.drivers.cpu.memory import CodeArena, address_of, map_private
from tinyhw.isa.x86.asm.encode import encode
from tinyhw.isa.x86.asm.syntax import assemble_function, show
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Effect, Inst, MInst

# The block of memory: room for signal handlers (the stack pointer is BELOW bytes from its start while an instruction
# runs), the state before, the state after, a page of data, a page that faults.
BELOW, AFTER, PAGE = 1 << 16, 4096, 4096
COMPARED, SAVED, MASKS, VECTORS = 128, 160, 192, 256   # in a state: two numbers whose comparison sets the flags, the
                                                       # caller's rsp, k0 to k7, vectors
DATA = BELOW + 2 * AFTER
RSP = 4
FLAGS = ("e", "b", "s", "o")
EVEX = 0x62   # the first byte of an instruction that only AVX-512 has, if only because of its registers

# those that the machine models
WRITES_FLAGS = {"add", "sub", "and", "or", "xor", "cmp", "test", "neg", "vucomiss", "vucomisd"}
UNSAFE = Effect.JUMP | Effect.END | Effect.CALL | Effect.BARRIER
# they move the stack pointer
NOT_ALONE = {"push", "pop", "leave"}
# What selection asks of an instruction that can do more
CONTROLS = {r"v(round|rndscale)[ps][sd]": (11,), "vcvtps2ph": (0,), r"vcmp[ps][sd]": (0, 1, 2, 4, 17),
            r"vpcmpu?[bwdq]": (0, 1, 2, 4),
            "vinsertps": tuple(range(0, 256, 16))}
COMPUTES_FLOATS = re.compile(r"v(add|sub|mul|div|min|max|sqrt|round|rndscale|fmadd\d+|cvt)")

@dataclass(frozen=True)
class State:
  """general, masks: unsigned integers. vectors: 64 bytes each. flags: two numbers before (what is compared), "ecso" as
  bools after."""
  general: tuple[int, ...]
  masks: tuple[int, ...]
  vectors: tuple[bytes, ...]
  flags: tuple[int, ...]
  data: bytes

@dataclass(frozen=True)
class Case:
  inst: MInst
  state: State

# ***** making cases *****

def floats(fmt: str, rng: random.Random) -> float:
  """A number of a format, special ones often."""
  size = {"f": 32, "d": 64, "e": 16}[fmt]
  if rng.random() < 0.4: return struct.unpack("<" + fmt, rng.randbytes(size // 8))[0]
  tiny, huge, least = {"f": (2.0 ** -126, 3.4028234663852886e38, 2.0 ** -149),
                       "d": (2.0 ** -1022, 1.7976931348623157e308, 5e-324),
                       "e": (2.0 ** -14, 65504.0, 2.0 ** -24)}[fmt]
  value = rng.choice((0.0, 1.0, math.inf, math.nan, tiny, huge, least, 3 * least, tiny - least, 0.5, 1.5, 2.5,
                      2.0 ** 31, 2.0 ** 63, 2147483520.0,
                      rng.uniform(0, 4), rng.uniform(0, 1000), 1 / 3, 65519.0, 2.0 ** 15 + 2.0 ** -3))
  if fmt == "e" and value > huge: value = huge
  return -value if rng.random() < 0.4 else value

@functools.lru_cache(None)
def vectors_of(kind: str) -> list[bytes]:
  """Some vectors of a kind: made once, as they cost more than what they are for."""
  rng = random.Random(kind)
  return [vector(kind, rng) for _ in range(200)]

def vector(kind: str, rng: random.Random) -> bytes:
  """64 bytes of lanes of a kind: a format of floats, or bits of integers."""
  if kind in "fde":
    n = 64 // x86_lanes.size_of(kind)
    return struct.pack(f"<{n}{kind}", *[floats(kind, rng) for _ in range(n)])
  bits = int(kind)
  edges = (0, 1, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1)
  return b"".join((rng.choice(edges) if rng.random() < 0.4 else rng.getrandbits(bits)).to_bytes(bits // 8, "little")
                  for _ in range(512 // bits))

def kind_of(name: str, rng: random.Random) -> str:
  """Return the usual kind of the lanes of the operands."""
  if "ph2" in name: return "e"
  found = re.search(r"(?:^v\w*?)([ps])([sd])(2|$)", name)
  if found and rng.random() < 0.9: return "f" if found[2] == "s" else "d"
  return rng.choice(("8", "16", "32", "64", "f", "d"))

def start(name: str, rng: random.Random) -> State:
  kind = kind_of(name, rng)
  small = rng.random() < 0.5
  def number() -> int:
    return rng.randrange(70) if small and rng.random() < 0.7 else rng.choice((0, 1 << 63, (1 << 64) - 1,
                                                                              rng.getrandbits(64)))
  pair = number(), number()
  return State(tuple(number() for _ in range(16)),
               tuple(rng.choice((0, (1 << 64) - 1, rng.getrandbits(64))) for _ in range(8)),
               tuple(rng.choices(vectors_of(kind), k=32)), pair if rng.random() < 0.8 else (pair[0], pair[0]),
               b"".join(rng.choices(vectors_of(kind), k=PAGE // 64)))

def cases(row: Inst, rng: random.Random, data: int, text: int) -> Iterator[Case]:
  """Instructions of a row without end. data, text: where the page of data and 64 readable bytes of code will be.

  Some are of no use to emulate.
  """
  controls = next((values for pattern, values in CONTROLS.items() if re.fullmatch(pattern, row.name)), None)
  while True:
    inst = random_instruction(row, rng)
    for at, kind in row.isa.syntax:
      if kind.category == "immediate" and controls: inst.operands[at] = rng.choice(controls)
    if any(isinstance(o, regs.Reg) and o.cls.bank is regs.GPR and o.index == RSP for o in inst.operands): continue
    state = start(row.name, rng)
    if row.name in ("div", "idiv"):
      state = replace(state, general=(state.general[0], state.general[1], rng.choice((0, 0, 1)), *state.general[3:]))
    found: Case | None = Case(inst, state)
    if row.isa.memory >= 0: found = with_address(inst, state, rng, data, text)
    if found is not None: yield found

def with_address(inst: MInst, state: State, rng: random.Random, data: int, text: int) -> Case | None:
  """The operand in memory is in the page of data, or in the text where it is relative to the instruction.

  None for what cannot be.
  """
  row, at = inst.row, inst.row.isa.memory
  base, index, scale, displacement = inst.operands[at:at + 4]
  kind = next(k for place, k in row.isa.syntax if place == at)
  if not kind.touched: return Case(inst, state)
  general, size = list(state.general), max(kind.bits // 8, 1)
  if index is not None and index.cls.bank is regs.VEC: return gathered(inst, state, rng, data)
  aligned = re.match("vmovap|vmovdqa", row.name) is not None
  if base is regs.RIP:
    return None if aligned or row.effects & Effect.STORE else Case(replace_operand(inst, at + 3, text), state)
  if base is None or index is not None and base.index == index.index: return None
  fixed = {o.fixed for o in row.operands if o.fixed is not None and o.cls is not None and o.cls.bank is regs.GPR}
  if base.index in fixed: return None
  place = data + (PAGE - size if rng.random() < 0.3 else 64 * rng.randrange(PAGE // 64 - 1))
  # the end may be outside: lanes there should be masked
  if row.isa.mask >= 0 and rng.random() < 0.5: place += 4 * rng.randrange(size // 4 + 1)
  elif not aligned: place -= rng.randrange(8) if place > data else 0
  if aligned: place &= -size
  general[base.index] = (place - displacement - (0 if index is None else general[index.index] * scale)) % (1 << 64)
  return Case(inst, replace(state, general=tuple(general)))

def gathered(inst: MInst, state: State, rng: random.Random, data: int) -> Case | None:
  """Lanes that the mask lets through are in the page; others may be anywhere."""
  at = inst.row.isa.memory
  base, index, scale, displacement = inst.operands[at:at + 4]
  if base is None: return None
  general, vectors = list(state.general), list(state.vectors)
  general[base.index] = (data + PAGE // 4 - displacement) % (1 << 64)
  fmt, n = ("q", 8) if re.match(r"vp?(gather|scatter)q", inst.row.name) else ("i", 16)
  numbers = [rng.randrange(-PAGE // 4 // scale, (PAGE - PAGE // 4 - 8) // scale) for _ in range(n)]
  vectors[index.index] = struct.pack(f"<{n}{fmt}", *numbers)
  return Case(inst, replace(state, general=tuple(general), vectors=tuple(vectors)))

def replace_operand(inst: MInst, at: int, value: Any) -> MInst:
  return MInst(inst.row, [*inst.operands[:at], value, *inst.operands[at + 1:]])

# ***** running them *****

def emulate(case: Case, code: bytes, start: int, address: int, data: int) -> State:
  """The state after the instruction at an address in code, which starts at `start`.

  Raises AssertionError for what the machine does not allow.
  """
  machine, state = Machine("x86_64:avx512"), case.state
  machine.memory = Memory()
  machine.memory.add_at(start, bytearray(code))
  page = bytearray(state.data)
  machine.memory.add_at(data, page)
  machine.general[:], machine.masks[:], machine.vector[:] = state.general, state.masks, state.vectors
  arithmetic(machine, "cmp", *state.flags, 64)
  step, _ = machine.prepare(address)
  step(machine)
  return State(tuple(v & (1 << 64) - 1 for v in machine.general), tuple(machine.masks), tuple(machine.vector),
               (machine.zero, machine.carry, machine.sign, machine.overflow), bytes(page))

class Silicon:
  """Runs cases on this processor. features: as the CPU driver's processor.py finds them."""

  def __init__(self, features: frozenset[str]):
    self.wide = "avx512bw" in features
    self.arena = CodeArena()
    self.memory = map_private(DATA + 2 * PAGE)
    self.address = address_of(self.memory)
    self.data = self.address + DATA
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert libc.mprotect(self.data + PAGE, PAGE, 0) == 0
    general = [r for i, r in enumerate(regs.NAMES64) if i != RSP]
    vectors, masks = (range(32), range(8)) if self.wide else (range(16), range(0))
    z, ptr = ("zmm", "zmmword ptr") if self.wide else ("ymm", "ymmword ptr")
    saved = ("rbx", "rbp", "r12", "r13", "r14", "r15")
    self.before = assemble_function("\n".join((
      *[f"push {r}" for r in saved], f"mov qword ptr [rdi + {SAVED}], rsp", "mov rsp, rdi",
      *[f"vmovups {z}{n}, {ptr} [rsp + {VECTORS + 64 * n}]" for n in vectors],
      *[f"kmovq k{n}, qword ptr [rsp + {MASKS + 8 * n}]" for n in masks],
      f"mov rax, qword ptr [rsp + {COMPARED}]", f"cmp rax, qword ptr [rsp + {COMPARED + 8}]",
      *[f"mov {r}, qword ptr [rsp + {8 * regs.NAMES64.index(r)}]" for r in general])))
    self.after = assemble_function("\n".join((
      *[f"mov qword ptr [rsp + {AFTER + 8 * regs.NAMES64.index(r)}], {r}" for r in general],
      *[f"set{f} byte ptr [rsp + {AFTER + COMPARED + n}]" for n, f in enumerate(FLAGS)],
      *[f"kmovq qword ptr [rsp + {AFTER + MASKS + 8 * n}], k{n}" for n in masks],
      *[f"vmovups {ptr} [rsp + {AFTER + VECTORS + 64 * n}], {z}{n}" for n in vectors],
      f"mov rsp, qword ptr [rsp + {SAVED}]", *[f"pop {r}" for r in reversed(saved)], "vzeroupper", "ret")))

  def visible(self, state: State) -> State:
    """Return the part of a state that this processor has."""
    if self.wide: return state
    return replace(state, masks=(0,) * 8,
                   vectors=tuple(v[:32] + bytes(32) if n < 16 else bytes(64) for n, v in enumerate(state.vectors)))

  def load(self, code: bytes) -> tuple[int, Any]:
    """An instruction's bytes in place: its address, and what `run` and `release` want."""
    start, chunk = self.arena.add(self.before + code + self.after)
    return start + len(self.before), chunk

  def run(self, case: Case, address: int) -> State:
    """The state after the instruction at an address. A fault ends the process: emulate first."""
    state, at = case.state, BELOW
    self.memory[at:at + COMPARED] = struct.pack("<16Q", *state.general)
    self.memory[at + COMPARED:at + COMPARED + 16] = struct.pack("<2Q", *state.flags)
    self.memory[at + MASKS:at + MASKS + 64] = struct.pack("<8Q", *state.masks)
    self.memory[at + VECTORS:at + VECTORS + 2048] = b"".join(state.vectors)
    self.memory[DATA:DATA + PAGE] = state.data
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address - len(self.before))(self.address + BELOW)
    at += AFTER
    out = self.memory[at:at + VECTORS + 2048]
    general = list(struct.unpack_from("<16Q", out))
    general[RSP] = state.general[RSP]
    return State(tuple(general), struct.unpack_from("<8Q", out, MASKS),
                 tuple(out[VECTORS + 64 * n:VECTORS + 64 * n + 64] for n in range(32)),
                 tuple(bool(b) for b in out[COMPARED:COMPARED + 4]), self.memory[DATA:DATA + PAGE])

  def close(self) -> None:
    self.arena.close(unmap=True)

# ***** comparing *****

def lanes_of_floats(name: str) -> str:
  """The format of the floats that an instruction computes, or ""."""
  if not COMPUTES_FLOATS.match(name): return ""
  if name == "vcvtps2ph": return "e"
  return {"s": "f", "d": "d"}.get(name[-1], "") if name[-2:] in ("ss", "ps", "sd", "pd") else ""

def same(got: bytes, wanted: bytes, fmt: str) -> bool:
  """Equal, NaNs aside: their signs and payloads are not defined."""
  if got == wanted: return True
  if not fmt: return False
  size = x86_lanes.size_of(fmt)
  pairs = zip(x86_lanes.unpack(got, fmt), x86_lanes.unpack(wanted, fmt), range(len(got) // size))
  return all(got[k * size:k * size + size] == wanted[k * size:k * size + size] or a != a and b != b
             for a, b, k in pairs)

def same_memory(got: bytes, wanted: bytes, fmt: str) -> bool:
  """The same of a page, in which lanes need not be aligned."""
  size = x86_lanes.size_of(fmt) if fmt else 1
  for k in range(size):
    end = len(got) - (len(got) - k) % size
    if got[:k] + got[end:] == wanted[:k] + wanted[end:] and same(got[k:end], wanted[k:end], fmt): return True
  return False

def differences(case: Case, got: State, wanted: State) -> list[str]:
  """Return the differences between this processor and the machine in Python."""
  fmt, name = lanes_of_floats(case.inst.row.name), case.inst.row.name
  found = [f"{regs.NAMES64[n]}: {a:#x}, not {b:#x}" for n, (a, b) in enumerate(zip(got.general, wanted.general))
           if a != b]
  found += [f"k{n}: {a:#x}, not {b:#x}" for n, (a, b) in enumerate(zip(got.masks, wanted.masks)) if a != b]
  found += [f"vector {n}: {a.hex()}, not {b.hex()}" for n, (a, b) in enumerate(zip(got.vectors, wanted.vectors))
            if not same(a, b, fmt)]
  if name in WRITES_FLAGS:
    found += [f"flag {f}: {a}, not {b}" for f, a, b in zip(FLAGS, got.flags, wanted.flags) if a != b]
  if not same_memory(got.data, wanted.data, fmt): found.append("memory")
  return found

def may_run_alone(row: Inst) -> bool:
  """Whether a row needs nothing before it. Tiles must be configured; isa/x86/select/test_tile.py runs them."""
  return (not row.effects & UNSAFE and row.name not in NOT_ALONE and row.isa.block < 0
          and not row.pipe.startswith("tile_"))

ROW_FEATURES = {"base": (), "bmi": ("bmi1",)}

def has(features: frozenset[str], row: Inst) -> bool:
  """Whether a processor with these features has the row."""
  return features.issuperset(f for word in row.feature.split(",") for f in ROW_FEATURES.get(word, (word,)))

def check(silicon: Silicon, row: Inst, count: int, rng: random.Random) -> tuple[int, list[str]]:
  """So many cases of a row, fewer if the machine refuses most: how many there were, and what differs."""
  done, wrong = 0, []
  for tries, case in enumerate(cases(row, rng, silicon.data, -len(silicon.before) // 2)):
    if done == count or tries == 20 + 4 * count or tries == 20 and not done: break
    code = encode(case.inst)
    if not silicon.wide and code[0] == EVEX: continue
    case = Case(case.inst, silicon.visible(case.state))
    address, chunk = silicon.load(code)
    try:
      text = silicon.before + code + silicon.after
      try: wanted = emulate(case, text, address - len(silicon.before), address, silicon.data)
      except (AssertionError, ZeroDivisionError, KeyError) as error:
        if "does not know" in str(error): break
        continue
      done += 1
      got = silicon.run(case, address)
    finally: silicon.arena.release(chunk)
    found = differences(case, got, silicon.visible(wanted))
    if found: wrong.append(f"{show(case.inst)}: {'; '.join(found)}")
  return done, wrong
