"""The part of `python3 -m tinyhw emulate` (emulator/command.py) for NVIDIA GPUs: options, start of a block, and
registers.

Text is NVIDIA's own, with or without control words. Without them an instruction stalls for one cycle and waits for
nothing. The first instruction is at address 0, as in the disassembler's output. A register to show is `R4`, `R4:f32`,
`R[4:7]`, `UR4`, `P0`, `UP0`. Types are those of emulator/view.py.
"""
from __future__ import annotations
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyhw.emulator.command import NAME, Machine, Option, RunOptions, label_of
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.card.grid import MOST_BARRIERS, MOST_LANES
from tinyhw.emulator.nvidia.chips import CHIPS
from tinyhw.emulator.nvidia.execute.decoded import DecodedCode
from tinyhw.emulator.nvidia.warp.launch import LaunchParameters
from tinyhw.emulator.nvidia.warp.state import LANES, PREDICATES, REGISTERS, UNIFORM, lanes_of, named
from tinyhw.emulator.view import FORMATS, by_lane
from tinyhw.errors import ArgumentError
from tinyhw.isa.sass.abi import ABI
from tinyhw.isa.sass.asm.encode import BYTES, encode
from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.execute.decoded import DecodedInstruction
  from tinyhw.emulator.nvidia.warp.state import Warp
  from tinyhw.isa.sass.table.uses import Unit

CODE = 0
MOST_LOCAL = 1 << 16   # bytes of a lane
COUNTS = {"R": REGISTERS, "UR": UNIFORM, "P": PREDICATES, "UP": PREDICATES}
# a trace shows their results as float32
FLOATS = frozenset({"FADD", "FMUL", "FFMA", "FMNMX", "FSEL", "MUFU", "I2F"})
CHANGED = 4            # lanes of a register in a trace
_PLACE = re.compile(r"(U?[RP])(?:(\d+)|\[(\d+):(\d+)\])(?::(\w+))?$")
_TARGET = re.compile(r"([\w.$]+)(?=\s*$)")   # of a branch: its last operand

class ShownRegisters(NamedTuple):
  """Registers to show: their bank, the first and the last one, and the type."""
  bank: str
  first: int
  last: int
  form: str

def parse_registers(text: str) -> ShownRegisters:
  """Parse the name of registers. Raises ArgumentError."""
  found = _PLACE.match(text)
  form = found[5] or "x32" if found else ""
  if found is None or form not in FORMATS:
    raise ArgumentError(f"{text} is no register to show; R4, R4:f32, R[4:7], UR4, P0 and UP0 are, with "
                        f"{', '.join(FORMATS)} as types")
  first, last = int(found[2] or found[3]), int(found[2] or found[4])
  if not first <= last < COUNTS[found[1]]:
    raise ArgumentError(f"--show {text}: there are {found[1]}0 to {found[1]}{COUNTS[found[1]] - 1}")
  return ShownRegisters(found[1], first, last, form)

class NvidiaMachine(Machine):
  """See emulator/command.py."""
  code, wave = CODE, "warp"

  @classmethod
  def options(cls, arch: str) -> Mapping[str, Option]:
    if arch not in CHIPS:
      raise ArgumentError(f"--arch {arch}: there is no such virtual GPU; there are {', '.join(CHIPS)}")
    return {"registers": (REGISTERS, 1, REGISTERS), "shared": (0, 0, CHIPS[arch].shared_kib << 10),
            "local": (0, 0, MOST_LOCAL)}

  def __init__(self, asked: RunOptions):
    self.asked, self.threads = asked, (asked.threads or (LANES,))[0]
    if len(asked.threads) > 1 or not 0 < self.threads <= MOST_LANES:
      given = ",".join(map(str, asked.threads))
      raise ArgumentError(f"--threads {given}: a number from 1 to {MOST_LANES} is expected: blocks have one dimension "
                          f"here")
    self.shown = [parse_registers(text) for text in asked.shown]
    for it in self.shown:
      if it.bank == "R" and it.last >= asked.numbers["registers"]:
        raise ArgumentError(f"--show R{it.last}: the kernel has {asked.numbers['registers']} registers, see "
                            f"--registers")

  def size(self, line: str) -> int: return BYTES

  def assembled(self, line: str, offset: int, labels: Mapping[str, int]) -> bytes:
    target = _TARGET.search(line)
    if target is not None and has_target(line) and NAME.fullmatch(target[1]):
      line = f"{line[:target.start()]}{label_of(target[1], labels):#x}"
    return encode(*parse(line, self.asked.arch, CODE + offset))

  def start(self, code: bytes, memory: FlatMemory, buffers: Sequence[int],
            watch: Callable[[Any, Any], None]) -> tuple[ThreadBlock, Sequence[Warp]]:
    asked, given, program = self.asked, self.asked.numbers, FlatMemory()
    program.add(CODE, bytearray(code))
    constants = bytes(ABI[asked.arch].arguments) + struct.pack(f"<{len(buffers)}Q", *buffers) + bytes(64)
    launch = LaunchParameters(Path(asked.file).name, asked.arch, CODE, given["registers"], constants, self.threads, 1,
                              given["shared"], given["local"],
                              MOST_BARRIERS)
    block = ThreadBlock(launch, 0, memory, given["seed"], DecodedCode(asked.arch, program.load), watch)
    return block, list(block.warps)

  def show(self, wave: Warp) -> list[str]:
    return [line for it in self.shown for index in range(it.first, it.last + 1)
            for line in show(wave, (it.bank, index), it.form)]

  def changes(self, wave: Warp, step: DecodedInstruction) -> str:
    form = "f32" if step.inst.row.isa.mnemonic in FLOATS else "x32"
    return "  ".join(f"{named(unit)}={changed(wave, unit, form)}" for unit in step.uses.writes)

def has_target(line: str) -> bool:
  """Return whether an instruction's last operand is a branch target."""
  return re.search(r"(?:^|\s)(?:BRA|BSSY|CALL)[.\s]", line) is not None

def words(warp: Warp, unit: Unit) -> list[int]:
  """Return a register or predicate of all lanes; one word if all lanes share it."""
  bank, index = unit
  if bank == "R": return warp.registers[index]
  if bank == "UR": return [warp.uniform[index]]
  if bank == "UP": return [warp.uniform_predicates[index] & 1]
  return [warp.predicates[index] >> lane & 1 for lane in range(LANES)]

def show(warp: Warp, unit: Unit, form: str) -> list[str]:
  """Return lines with a register. A lane that was never written is -. One that has ended is in parentheses."""
  found, known = words(warp, unit), warp.known[unit]
  if unit in warp.schedule.written: return [f"{named(unit)}: its result has not been waited for"]
  if len(found) == 1: return [f"{named(unit)} = {FORMATS[form](found[0]) if known else '-'}"]
  if unit[0] == "P": form = "u32"
  cells = [FORMATS[form](word) if known >> lane & 1 else "-" for lane, word in enumerate(found)]
  return by_lane(named(unit), [cell if warp.active >> lane & 1 else f"({cell})" for lane, cell in enumerate(cells)])

def changed(warp: Warp, unit: Unit, form: str) -> str:
  """Return a register in a few words: those of the first lanes that run."""
  if unit in warp.schedule.written: return "(pending)"
  found = words(warp, unit)
  if len(found) == 1: return FORMATS["x32"](found[0])
  if unit[0] == "P": return f"{warp.predicates[unit[1]] & warp.active:#x}"
  lanes = lanes_of(warp.active)
  return " ".join(FORMATS[form](found[lane]) for lane in lanes[:CHANGED]) + (" ..." if len(lanes) > CHANGED else "")

MACHINE = NvidiaMachine
