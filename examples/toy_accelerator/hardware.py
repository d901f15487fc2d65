"""The toy accelerator itself: memory, a ring of packets with a doorbell, and waves that execute instruction words.

It raises DeviceError for each of these errors:

- an instruction that touches a register that a load in flight will write
- a pair or quad that is not aligned
- a register that was never written
- memory that does not exist
- waves of a workgroup that do not meet at a barrier
"""
from __future__ import annotations
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw import arithmetic
from tinyhw.dtype import dtypes
from tinyhw.errors import DeviceError, TinyError
from tinyhw.machine.ir.inst import Effect, MInst, Reg
from tinyhw.machine.ir.moves import Unit, units_of
from examples.toy_accelerator.table import LANES, PREDICATE, SCALAR, TYPES, decode

# code: address and bytes; workgroups; address of the arguments; lanes of a workgroup; bytes of shared memory
PACKET = struct.Struct("<QIIQII")
MEMORY_BYTES, SLOTS = 1 << 28, 64  # slots of the ring, which is at address 0
Values = Sequence[int]             # bits of each lane, or the one value of a scalar register

class Wave:
  """The registers of 8 lanes. flying: loads in flight, oldest first: destination, bits, lanes that are written."""
  def __init__(self, memory: memoryview, local: memoryview, arguments: int, group: int, first: int, lanes: int):
    self.memory, self.local, self.pc, self.state = memory, local, 0, "run"
    self.active = [first + k < lanes for k in range(LANES)]
    self.scratch: dict[int, list[Values]] = {}
    self.registers: dict[Unit, Values] = {("s", 0): [arguments & 0xffffffff], ("s", 1): [arguments >> 32],
                                          ("s", 2): [group],
                                          ("v", 0): [first + k for k in range(LANES)], ("p", 7): [1] * LANES}
    self.flying: list[tuple[Reg, Values, list[bool]]] = []

  def units(self, reg: Reg) -> list[Unit]:
    """Return the units of a register. Raises for a misaligned one, and for one that a load in flight will write."""
    units = units_of(reg)
    if units[0][1] % reg.cls.align:
      raise DeviceError(f"{reg} is misaligned: {len(units)} registers start at a multiple of {reg.cls.align}")
    for other, _, _ in self.flying:
      if any(unit in units for unit in units_of(other)):
        raise DeviceError(f"{reg} is touched while a load into {other} is in flight; wait for it")
    return units

  def parts(self, reg: Reg) -> list[Values]:
    """Return the bits in each unit of a register."""
    try: return [self.registers[unit] for unit in self.units(reg)]
    except KeyError: raise DeviceError(f"{reg} is read but was never written") from None

  def read(self, reg: Reg) -> Values:
    """Return the bits of each lane. Those of a pair are one number."""
    found = self.parts(reg)
    return found[0] if len(found) == 1 else [low | high << 32 for low, high in zip(*found)]

  def put(self, reg: Reg, *parts: Values) -> None: self.registers.update(zip(self.units(reg), parts))
  def write(self, reg: Reg, values: Values) -> None:
    if reg.cls.bank is PREDICATE and len(values) == 1: values = [*values] * LANES
    self.put(reg, *[[x >> shift & 0xffffffff for x in values] for shift in (0, 32)[:reg.cls.units]])

  def wait(self, most: int) -> None:
    """Deliver loads until at most `most` are in flight."""
    while len(self.flying) > most:
      reg, values, lanes = self.flying.pop(0)
      self.write(reg,
                 values if all(lanes) else [x if lane else old for x, old, lane in zip(values, self.read(reg), lanes)])

  def run(self, code: Code) -> None:
    """Run to the next barrier, or to the end."""
    self.state = "run"
    while self.state == "run":
      self.pc += 1
      step, inst = code[self.pc - 1]
      try: step(self)
      except TinyError as error: raise DeviceError(f"instruction {self.pc - 1}, `{inst!r}`: {error.message}") from None

Step = Callable[[Wave], None]  # the execution of an instruction
Code = list[tuple[Step, MInst]]
# By type: the `struct` code of the bits in a register, and the type of their value. Integers of 8 and 16 bits are
# sign-extended to 32.
FORMATS = {**dict.fromkeys(TYPES, ("I", "I")), **dict.fromkeys(dtypes.sints, ("I", "i")), dtypes.uint64: ("Q", "Q"),
           dtypes.int64: ("Q", "q"),
           dtypes.float32: ("I", "f"), dtypes.float64: ("Q", "d")}
def repack(x: Sequence[Any], old: str, new: str) -> Sequence[Any]:
  return struct.unpack(f"<{len(x)}{new}", struct.pack(f"<{len(x)}{old}", *x))

def arithmetic_step(inst: MInst) -> Step:
  """Apply an operation to each lane, as arithmetic.py defines it."""
  form, (dst, *sources) = inst.row.isa, inst.operands
  f = (arithmetic.cast(form.source, form.dtype) if form.operation == "cast"
       else arithmetic.operation(form.operation.upper(), form.dtype))
  old, number = FORMATS[form.source if form.operation == "cast" else form.dtype]
  bits, result = FORMATS[dtypes.bool] if dst.cls.bank is PREDICATE else FORMATS[form.dtype]
  def step(wave: Wave) -> None:
    wave.write(dst, repack([f(*lane) for lane in zip(*[repack(wave.read(s), old, number) for s in sources])], result,
                           bits))
  return step

def mma(wave: Wave, dst: Reg, a: Reg, b: Reg) -> None:
  """Multiply 4x4 matrices. Lane l holds a[l % 4, 0:4], b[0:4, l] and dst[0:4, l]. Each element of dst takes four
  multiply-adds, rounded one by one."""
  steps, columns, totals = ([repack(x, "I", "f") for x in wave.parts(r)] for r in (a, b, dst))
  for k in range(4):
    totals = [[arithmetic.fused_float32(steps[k][m], y, total) for y, total in zip(columns[k], totals[m])]
              for m in range(4)]
  wave.put(dst, *[repack(row, "f", "I") for row in totals])

def memory_step(inst: MInst) -> Step:
  """Execute a load or store, in all lanes that are in the workgroup and whose predicate is set."""
  form, named = inst.row.isa, dict(zip((o.name for o in inst.row.operands), inst.operands))
  size, local, gated = form.dtype.itemsize, form.operation.startswith("local"), "p" in named
  def step(wave: Wave) -> None:
    memory, base = (wave.local, 0) if local else (wave.memory, wave.read(named["a"])[0])
    places = [base + i * size + named["imm"] for i in repack(wave.read(named["b"]), "I", "i")]
    gate = wave.read(named["p"]) if gated else [1] * LANES
    lanes = [bool(g) and (on or not form.vector) for g, on, _ in zip(gate, wave.active, places)]
    for at, on in zip(places, lanes):
      if on and not 0 <= at <= len(memory) - size:
        raise DeviceError(f"{size} bytes at {at:#x} are outside of {'shared' if local else 'the'} memory")
    if inst.row.effects & Effect.LOAD:
      values = [int.from_bytes(memory[at:at + size], "little", signed=form.dtype in dtypes.sints) if on else 0
                for at, on in zip(places, lanes)]
      wave.units(named["dst"])
      wave.flying.append((named["dst"], values, lanes if gated else [True]))
      return
    for at, x, on in zip(places, wave.read(named["c"]), lanes):
      if on: memory[at:at + size] = x.to_bytes(8, "little")[:size]
  return step

SIMPLE: dict[str, Callable[..., Any]] = {
  "mma": mma, "wait": Wave.wait, "barrier": lambda wave: setattr(wave, "state", "barrier"),
  "end": lambda wave: setattr(wave, "state", "end"),
  "where": lambda wave, dst, p,
  a: wave.write(dst, [x if yes else old for x, yes, old in zip(wave.read(a), wave.read(p), wave.read(dst))]),
  "swap": lambda wave, a, b: [wave.put(r, *parts) for r, parts in ((a, wave.parts(b)), (b, wave.parts(a)))],
  "jump": lambda wave, goal: setattr(wave, "pc", goal), "jump_if": lambda wave, p,
  goal: setattr(wave, "pc", goal if wave.read(p)[0] else wave.pc),
  "const": lambda wave, dst, imm: wave.write(dst, [imm] * (1 if dst.cls.bank is SCALAR else LANES)),
  "spread": lambda wave, dst, a: wave.write(dst, [*wave.read(a)] * LANES),
  "quad": lambda wave, dst, *parts: wave.put(dst, *map(wave.read, parts)), "part": lambda wave, dst, a,
  k: wave.put(dst, wave.parts(a)[k]),
  "move": lambda wave, dst, a: wave.put(dst, *wave.parts(a)), "save": lambda wave, a,
  slot: wave.scratch.update({slot: wave.parts(a)}),
  "restore": lambda wave, dst, slot: wave.put(dst, *wave.scratch[slot]),
}

def step_of(inst: MInst) -> Step:
  """Return the function that executes an instruction."""
  if inst.row.effects & (Effect.LOAD | Effect.STORE): return memory_step(inst)
  name, operands = inst.row.isa.operation, inst.operands
  action = SIMPLE.get(name) or SIMPLE.get(name.partition("_")[0])
  return arithmetic_step(inst) if action is None else lambda wave: action(wave, *operands)

class Hardware:
  """A chip that reads packets from the ring when the doorbell rings. done: packets executed so far."""
  def __init__(self) -> None:
    self.memory, self.done = memoryview(bytearray(MEMORY_BYTES)), 0
    self.decoded: dict[bytes, Code] = {}

  def doorbell(self, written: int) -> None:
    """Execute packets until `written` packets in total are done."""
    while self.done < written:
      at = self.done % SLOTS * PACKET.size
      self.done += 1
      address, size, groups, arguments, lanes, local_bytes = PACKET.unpack(self.memory[at:at + PACKET.size])
      text = bytes(self.memory[address:address + size])
      if text not in self.decoded: self.decoded[text] = [(step_of(inst), inst) for inst in decode(text)]
      for group in range(groups):
        local = memoryview(bytearray(local_bytes))
        waves = [Wave(self.memory, local, arguments, group, first, lanes) for first in range(0, lanes, LANES)]
        while waves:  # each up to the next barrier in turn
          for wave in waves: wave.run(self.decoded[text])
          if len({wave.state for wave in waves}) > 1:
            raise DeviceError("some waves of a workgroup are at a barrier, others at the end")
          waves = [wave for wave in waves if wave.state == "barrier"]
