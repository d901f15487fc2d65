"""A wave that is only registers, to execute single meanings of the AMD emulator, and values that show mistakes."""
from __future__ import annotations
import random
import struct
from collections.abc import Sequence
from types import SimpleNamespace

from tinyhw.emulator.amd.execute.state import WaveRegisters, RegisterRows
from tinyhw.emulator.python.numerics import lane_bits
from tinyhw.emulator.amd.python.lanes import compiled
from tinyhw.emulator.amd.python.operands import constant_argument
from tinyhw.emulator.amd.python.shapes import OperandForm, Evaluation, InstructionShape, ResultForm

class Lanes:
  """The state of a wave for generated functions: registers in three views, EXEC, SCC."""
  def __init__(self, lanes: int = 32, registers: int = 16, arch: str = "gfx1100"):
    self.lanes = lanes
    self.registers = SimpleNamespace(arch=arch)
    self.s = [0] * 148
    self.scc = 0
    self.pc = 0x1000
    self.file = WaveRegisters(registers, 0, lanes, random.Random(1))
    self.prepared: tuple[dict[object, object], dict[object, object]] = ({}, {})
    self.u, self.i, self.f = RegisterRows(self.file, "I"), RegisterRows(self.file, "i"), RegisterRows(self.file, "f")
    for row in range(registers): self.u[row][:] = memoryview(bytes(4 * lanes)).cast("I")
    self.set_exec((1 << lanes) - 1)

  def set_exec(self, mask: int) -> None:
    self.exec, self.full = mask, mask == (1 << self.lanes) - 1
    self.active = [i for i, bit in enumerate(lane_bits(mask, self.lanes)) if bit]

  def mask(self, register: int) -> int:
    return self.s[register] | (self.s[register + 1] << 32 if self.lanes == 64 else 0)

  def set_mask(self, register: int, mask: int) -> None:
    if register == 126: self.set_exec(mask)
    else: self.s[register], self.s[register + 1] = mask & 0xffffffff, mask >> 32

# where operands stand: vector registers in steps of two, so that 64-bit ones have room
PLACES = {"D": 0, "D1": 0, "S0": 2, "S1": 4, "S2": 6, "K": 8, "VCC": 106, "CARRY": 104}

def execute(meaning: str, operands: dict[str, Sequence[int]], exec_mask: int | None = None, vcc: int = 0, old: int = 0,
            **shape: bool | int) -> Lanes:
  """The wave after a vector meaning on 32 lanes. operands: bits for each lane of S0, S1, S2, of up to 64 bits."""
  wave = Lanes()
  for row in (0, 1): wave.u[row][:] = memoryview(struct.pack("<32I", *[old] * 32)).cast("I")
  for name, values in operands.items():
    for lane, value in enumerate(values):
      wave.u[PLACES[name]][lane], wave.u[PLACES[name] + 1][lane] = value & 0xffffffff, value >> 32
  if exec_mask is not None: wave.set_exec(exec_mask)
  wave.s[106] = vcc
  sources = tuple((name, OperandForm("v")) for name in ("S0", "S1", "S2", "D", "K"))
  targets = (("D", ResultForm("v")), ("D1", ResultForm("v", dword=1)))
  # what the caller names
  made = compiled(InstructionShape(meaning, (Evaluation(sources, targets),), 32, **shape))  # type: ignore[arg-type]
  made.make(*(PLACES[parameter] for parameter in made.parameters))(wave)
  return wave

def scalar(meaning: str, s0: int = 0, s1: int = 0, old: int = 0, scc: int = 0, exec_mask: int = 0,
           literal: int = 0) -> Lanes:
  """The wave after a scalar meaning on s[2:3] and s[4:5]; the result is in s[0:1]."""
  wave = Lanes(64)
  for place, value in ((0, old), (2, s0), (4, s1)): wave.s[place], wave.s[place + 1] = value & 0xffffffff, value >> 32
  wave.scc = scc
  wave.set_exec(exec_mask)
  forms = (("S0", OperandForm("s")), ("S1", OperandForm("s")), ("D", OperandForm("s")), ("K", OperandForm("k")))
  made = compiled(InstructionShape(meaning, (Evaluation(forms, (("D", ResultForm("s")),)),), 0))
  made.make(*(constant_argument(p, literal) if p.startswith("K_") else PLACES[p] for p in made.parameters))(wave)
  return wave

FLOAT32 = (0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x80800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff,
           0x40490fdb, 0x7f7fffff,
           0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x4b800000, 0x4effffff, 0x4f000000, 0xcf000000, 0x3f000000,
           0x40200000, 0x34000000)
FLOAT16 = (0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3555,
           0x4248, 0x6400, 0x3800)
FLOAT64 = (0, 1 << 63, 1, 0x10000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x3ff0000000000001,
           0x7fefffffffffffff, 0x7ff0000000000000,
           0xfff0000000000000, 0x7ff8000000000000, 0x400921fb54442d18, 0x36a0000000000000, 0x47efffffe0000000,
           0x41dfffffffc00000)
INTEGERS = (0, 1, 2, 3, 31, 32, 33, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffff, 0x800000, 0xffffff,
            0x7fffffff, 0x80000000,
            0x80000001, 0xfffffffe, 0xffffffff, 0x12345678, 0xdeadbeef)

def values(source: random.Random, special: Sequence[int], bits: int, count: int = 32) -> list[int]:
  """Special values and random ones."""
  return [source.choice(special) if source.random() < 0.6 else source.getrandbits(bits) for _ in range(count)]
