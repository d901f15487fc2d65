"""The stack frame of a lane: spills and reloads, and the register that addresses them.

A word of constant bank 0 (autogen/nvidia/bank.py) holds the end of the private memory of a lane, as in code of the
vendor's compiler, which calls it local memory. The launch sets its size. Slots lie below the end: slot 0 ends there.
One register, after the allocated ones, holds the word from the start of the kernel on. A reload of a predicate goes
through that register. Kernels without spills have no frame register.
"""
from __future__ import annotations

from tinyhw.autogen.nvidia import bank
from tinyhw.isa.sass.abi import GENERATIONS
from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.capabilities import generation_of
from tinyhw.isa.sass.select.vector import part
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import BRANCH
from tinyhw.machine.ir.inst import Access, Function, MInst, Reg
from tinyhw.machine.ir.target import Target
from tinyhw.machine.order.copies import Touched, liveness
from tinyhw.machine.select.macros import Macro
from tinyhw.threads import once

BYTES = 4     # of a register
UNIT = 16     # alignment of the frame, and the longest access, in bytes
WORDS = {1: "", 2: ".64", 4: ".128"}

def pointer(arch: str, register: int) -> str:
  """Return the instruction that loads the frame register."""
  return f"LDC R{register}, c[0x0][{bank.STACK[GENERATIONS[generation_of(arch).name]]:#x}]"

def pieces(registers: int, slot: int, frame: int) -> list[tuple[str, int, str]]:
  """Return the accesses of a slot: the size in the text, the first register of the group, and the address."""
  step = min(registers, max(WORDS))
  return [(WORDS[step], k, f"[R{frame}+-{slot + BYTES * (registers - k):#x}]") for k in range(0, registers, step)]

@once
def kept(registers: int, slot: int, frame: int) -> Macro:
  """Store registers to their slot. slot: in bytes; frame: the register."""
  return Macro("keep", (("b", Access.READ, f"v{registers}"),), 1,
               tuple([f"STL{word} {place}, {part('b', k) if registers > max(WORDS) else 'b'}"
                      for word, k, place in pieces(registers, slot, frame)]))

@once
def reloaded(registers: int, slot: int, frame: int) -> Macro:
  """Load registers from their slot."""
  return Macro("kept", (("d", Access.WRITE, f"v{registers}"),), 1,
               tuple([f"LDL{word} {part('d', k) if registers > max(WORDS) else 'd'}, {place}"
                      for word, k, place in pieces(registers, slot, frame)]))

@once
def kept_predicate(slot: int, frame: int) -> Macro:
  """Store a predicate to its slot: zero for false, the pointer for true. The pointer is not zero."""
  (_, _, place), = pieces(1, slot, frame)
  return Macro("keep_p", (("p", Access.READ, "p"),), 1, (f"@p STL {place}, R{frame}", f"@!p STL {place}, RZ"))

@once
def reloaded_predicate(arch: str, slot: int, frame: int) -> Macro:
  """Load a predicate from its slot, through the frame register."""
  (_, _, place), = pieces(1, slot, frame)
  return Macro("kept_p", (("d", Access.WRITE, "p"),), 1,
               (f"LDL R{frame}, {place}", f"ISETP.NE.AND d, PT, R{frame}, RZ, PT", pointer(arch, frame)))

def add_frame(function: Function, target: Target) -> Function:
  """Load the pointer at the start of a function with slots, into the register after those in use."""
  if not function.stack_bytes: return function
  function.stack_bytes = -(-function.stack_bytes // UNIT) * UNIT
  last = len(target.allocatable["R"])
  frame = regs.reg(regs.R[1], last)
  insts = [inst for block in function.blocks for inst in block.insts if inst.row.encoding is not BRANCH]
  used = [r.index + r.cls.units for inst in insts for r in inst.operands
          if isinstance(r, Reg) and r.cls.bank is regs.VECTOR and r.index is not None and r.index < last]
  lowest = max(used, default=0)
  first = regs.reg(regs.R[1], lowest)
  for inst in insts: inst.operands = [first if o == frame else o for o in inst.operands]
  function.blocks[0].insts.insert(0, parse(pointer(target.name, lowest), generation_of(target.name).name)[0])
  drop_last(function, first)
  return function

def drop_last(function: Function, frame: Reg) -> None:
  """Drop a load of the pointer after the reload of a predicate, if no path leads to another slot.

  drop_copies cannot do it: macros name the frame register in their lines, so their rows do not list it as read.
  """
  def touched(inst: MInst) -> Touched:
    written = any([inst.operands[i] == frame for i in inst.row.writes])
    return Touched(int(inst.operands.count(frame) > written), int(written))
  uses = {block: [touched(inst) for inst in block.insts] for block in function.blocks}
  _, leaving = liveness(uses)
  for block in function.blocks:
    wanted, kept = leaving[block], []
    for inst, (read, written, _) in zip(reversed(block.insts), reversed(uses[block])):
      if written and not wanted: continue
      kept.append(inst)
      wanted = wanted & ~written | read
    block.insts = kept[::-1]
