"""Texts of SASS that warps of the emulator execute: instructions with control words of their own, or those that the
scheduler gives them."""
from __future__ import annotations
import random
import re
from collections.abc import Mapping, Sequence

from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.warp.launch import LaunchParameters
from tinyhw.emulator.nvidia.warp.state import ALL, LANES, Warp
from tinyhw.isa.sass.asm.encode import BYTES, encode
from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.late.emit import encode_function
from tinyhw.isa.sass.late.schedule import schedule
from tinyhw.isa.sass.model.latency import shortest_stall
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import JUMP_IF
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.form import Generation
from tinyhw.machine.ir.inst import Function, MInst

ORIGIN, MEMORY = 0x7f00_0000_0000, 0x7f10_0000_0000
END = "EXIT"

JUMP_TEXT = re.compile(r"@(!?)(P\d) BRA ([a-z]\w*)$")

def scheduled(lines: Sequence[str], arch: str = "sm_90") -> bytes:
  """Code with the control words of the scheduler, and an end. `name:` is a place, to which `@P0 BRA name` goes."""
  function = Function("text")
  block, places, jumps = function.new_block(), {}, []
  for line in (*lines, END):
    goes = JUMP_TEXT.match(line)
    if line.endswith(":"): block = places[line[:-1]] = function.new_block()
    elif goes is None: block.insts.append(parse(line, arch)[0])
    else:
      block.insts.append(MInst(JUMP_IF, [goes[3], regs.reg(regs.P, int(goes[2][1])), int(goes[1] == "!")]))
      jumps.append(block.insts[-1])
      block = function.new_block()
  for jump in jumps: jump.operands[0] = places[jump.operands[0]]
  code, placed = encode_function(schedule(function, Generation(arch)), Generation(arch))
  return code[:BYTES * len(placed)]

def assembled(lines: Sequence[str], arch: str = "sm_90") -> bytes:
  """The lines as they stand, with an end; those without a control word have the shortest stall there is."""
  return b"".join(patient(*parse(line, arch, ORIGIN + 16 * k), "[" == line[:1]) for k, line in enumerate((*lines, END)))

def patient(inst: MInst, control: Control, given: bool) -> bytes:
  least = shortest_stall(inst.row)
  return encode(inst, control if given or control.stall >= least else control._replace(stall=least))

def block_of(code: bytes, arch: str = "sm_90", registers: Mapping[int, Sequence[int]] | None = None,
             content: bytearray | None = None,
             threads: int = LANES, shared: int = 0, local: int = 0, constants: bytes = b"", count: int = 64,
             barriers: int = 1, seed: int = 0,
             predicates: Mapping[int, int] | None = None) -> ThreadBlock:
  """A block that is about to execute code; R of all warps hold these words of the lanes. content: global memory at
  MEMORY."""
  memory = FlatMemory()
  memory.add(ORIGIN, bytearray(code))
  if content is not None: memory.add(MEMORY, content)
  block = ThreadBlock(LaunchParameters("text", arch, ORIGIN, count, constants, threads, 1, shared, local, barriers), 0,
                      memory, seed)
  for warp in block.warps:
    for index, words in (registers or {}).items(): give(warp, index, words)
    for index, mask in (predicates or {}).items(): warp.predicates[index], warp.known["P", index] = mask, ALL
    for index in range(4, 6): warp.known["UR", index] = ALL  # a descriptor of global memory
  return block

def give(warp: Warp, index: int, words: Sequence[int]) -> None:
  """Put words into a register: one for each lane, or the same in all."""
  warp.registers[index], warp.known["R", index] = list(words) * (LANES // len(words)), ALL

def after(lines: Sequence[str], arch: str = "sm_90", **given: object) -> Warp:
  """The first warp when scheduled lines have been executed. given: as for block_of."""
  block = block_of(scheduled(lines, arch), arch, **given)  # type: ignore[arg-type]  # named as there
  warp = block.warps[0]
  block.run()
  return warp

def words(seed: int, corners: Sequence[int] = (0, 1, 0x7fffffff, 0x80000000, 0xffffffff)) -> list[int]:
  """A word for each lane, some of them from the corners."""
  rng = random.Random(seed)
  return [rng.choice(corners) if rng.random() < 0.4 else rng.getrandbits(32) for _ in range(LANES)]
