"""The part of `python3 -m tinyhw emulate` (emulator/command.py) for AMD GPUs: options, start of a workgroup, and
registers.

s[0:1] points to the addresses of the buffers. v0 has the numbers of a lane's work item, in three fields of 10 bits.
"""
from __future__ import annotations
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.emulator.amd.chips import CHIPS
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.amd.view import changes, parse_registers, show
from tinyhw.emulator.amd.workgroup import Workgroup
from tinyhw.emulator.command import Machine, Option, RunOptions, label_of
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.errors import ArgumentError
from tinyhw.isa.amd.asm.syntax import assemble

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.decoded import DecodedInstruction
  from tinyhw.emulator.amd.execute.state import Wave

CODE, ARGUMENTS, SCRATCH = 0x10000, 0x20000, 0x40000000
MOST_SCRATCH = 1 << 16   # bytes of a lane
MOST_THREADS = 1024
SGPRS = {False: 106, True: 102}  # of a wave: of RDNA, of CDNA

def is_cdna(arch: str) -> bool: return arch.startswith("gfx9")

class AmdMachine(Machine):
  """See emulator/command.py."""
  code, wave = CODE, "wave"

  @classmethod
  def options(cls, arch: str) -> Mapping[str, Option]:
    chip = CHIPS.get(arch)
    if chip is None: raise ArgumentError(f"--arch {arch}: there is no such virtual GPU; there are {', '.join(CHIPS)}")
    return {"wave": (0, 0, None), "lds": (0, 0, chip.lds_kib << 10), "vgprs": (256, 8, 512) if is_cdna(arch)
            else (256, 1, 256),
            "scratch": (0, 0, MOST_SCRATCH)}

  def __init__(self, asked: RunOptions):
    self.asked, self.cdna, self.vgprs = asked, is_cdna(asked.arch), asked.numbers["vgprs"]
    self.lanes = asked.numbers["wave"] or (64 if self.cdna else 32)
    self.accumulator = self.vgprs // 2 if self.cdna else None   # the first accumulation register, among those of a lane
    waves = (64,) if self.cdna else (32, 64)
    if self.lanes not in waves:
      raise ArgumentError(f"--wave {self.lanes}: a wave of {asked.arch} has {' or '.join(map(str, waves))} lanes")
    if len(asked.threads) > 3 or any(n < 1 for n in asked.threads) or math.prod(asked.threads) > MOST_THREADS:
      raise ArgumentError(f"--threads {','.join(map(str, asked.threads))}: one to three numbers from 1 on are "
                          f"expected, of {MOST_THREADS} together")
    self.syntax = asked.arch if self.cdna or self.lanes == 32 else f"{asked.arch}:wave64"
    self.shown = [parse_registers(text) for text in asked.shown]
    self.check_shown()

  def check_shown(self) -> None:
    has = {"s": SGPRS[self.cdna], "v": self.accumulator or self.vgprs,
           "a": self.vgprs - (self.accumulator or self.vgprs)}
    for shown in self.shown:
      if shown.file in has and not 0 < shown.units <= has[shown.file] - shown.first:
        name = (f"{shown.file}{shown.first}" if shown.units == 1
                else f"{shown.file}[{shown.first}:{shown.first + shown.units - 1}]")
        raise ArgumentError(f"--show {name}: the kernel has {has[shown.file]} registers of the kind {shown.file}" +
                            (f"; with --vgprs {self.vgprs}" if shown.file != "s" else ""))

  def size(self, line: str) -> int: return 4 if is_branch(line) else len(assemble(line, self.syntax))

  def assembled(self, line: str, offset: int, labels: Mapping[str, int]) -> bytes:
    name, _, target = map(str.strip, line.partition(" "))
    place = label_of(target, labels) if is_branch(line) else None
    return assemble(line if place is None else f"{name} {(place - offset - 4) // 4}", self.syntax)

  def start(self, code: bytes, memory: FlatMemory, buffers: Sequence[int],
            watch: Callable[[Any, Any], None]) -> tuple[Workgroup, Sequence[Wave]]:
    given, lanes, program = self.asked.numbers, self.lanes, FlatMemory()
    program.add(CODE, bytearray(code))
    memory.add(ARGUMENTS, bytearray(struct.pack(f"<{len(buffers)}Q", *buffers) + bytes(64)))
    x, y, z = (*(self.asked.threads or (lanes,)), 1, 1)[:3]
    memory.add(SCRATCH, bytearray(given["scratch"] * lanes * -(-x * y * z // lanes)))
    registers = DispatchRegisters(self.asked.arch, CODE, lanes, self.vgprs, SGPRS[self.cdna], (x, y, z), (1, 1, 1),
                                  (ARGUMENTS, 0), work_item_ids=3,
                                  lds_bytes=given["lds"], accumulator=self.accumulator, scratch_base=SCRATCH,
                                  float_denorm=15,
                                  scratch_wave_bytes=given["scratch"] * lanes, scratch_enabled=bool(given["scratch"]))
    group = Workgroup(self.asked.arch, program.load, registers, (0, 0, 0), memory, given["lds"], given["seed"], watch)
    return group, list(group.waves)

  def show(self, wave: Wave) -> list[str]: return [line for shown in self.shown for line in show(wave, shown)]

  def changes(self, wave: Wave, step: DecodedInstruction) -> str: return changes(wave, step)

def is_branch(line: str) -> bool: return line.startswith(("s_branch", "s_cbranch"))

MACHINE = AmdMachine
