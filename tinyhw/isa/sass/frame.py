"""The stack frame of a lane: spills and reloads, and the register that they are addressed by.

As in code of the vendor's compiler, a word of constant bank 0 (autogen/nvidia/bank.py) says where the memory of a lane
ends that a kernel may have; a launch says how much it is. Slots lie below: slot 0 ends there. One register, behind
those that are allocated, holds the word from the kernel's begin on; a predicate that comes back goes through it.
Kernels that spill nothing have neither.
"""
from __future__ import annotations

from tinyhw.autogen.nvidia import bank
from tinyhw.isa.sass.abi import GENERATIONS
from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.capabilities import generation_of
from tinyhw.isa.sass.select.group import part
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import BRANCH
from tinyhw.machine.ir.inst import Access, Function, MInst, Reg
from tinyhw.machine.ir.target import Target
from tinyhw.machine.order.copies import Touched, liveness
from tinyhw.machine.select.macros import Macro
from tinyhw.once import once

BYTES = 4     # of a register
UNIT = 16     # of the frame and of the longest access, in bytes
WORDS = {1: "", 2: ".64", 4: ".128"}

def pointer(arch: str, register: int) -> str:
  """The instruction that makes the register of the frame."""
  return f"LDC R{register}, c[0x0][{bank.STACK[GENERATIONS[generation_of(arch).name]]:#x}]"

def pieces(registers: int, slot: int, frame: int) -> list[tuple[str, int, str]]:
  """The accesses of a slot: the size as it is written, the first register of the group, and the address."""
  step = min(registers, max(WORDS))
  return [(WORDS[step], k, f"[R{frame}+-{slot + BYTES * (registers - k):#x}]") for k in range(0, registers, step)]

@once
def kept(registers: int, slot: int, frame: int) -> Macro:
  """Registers to their slot. slot: in bytes; frame: the register."""
  return Macro("keep", (("b", Access.READ, f"v{registers}"),), 1,
               tuple([f"STL{word} {place}, {part('b', k) if registers > max(WORDS) else 'b'}"
                      for word, k, place in pieces(registers, slot, frame)]))

@once
def reloaded(registers: int, slot: int, frame: int) -> Macro:
  """The way back."""
  return Macro("kept", (("d", Access.WRITE, f"v{registers}"),), 1,
               tuple([f"LDL{word} {part('d', k) if registers > max(WORDS) else 'd'}, {place}"
                      for word, k, place in pieces(registers, slot, frame)]))

@once
def kept_predicate(slot: int, frame: int) -> Macro:
  """A predicate to its slot: zero, or the pointer, which is not zero."""
  (_, _, place), = pieces(1, slot, frame)
  return Macro("keep_p", (("p", Access.READ, "p"),), 1, (f"@p STL {place}, R{frame}", f"@!p STL {place}, RZ"))

@once
def reloaded_predicate(arch: str, slot: int, frame: int) -> Macro:
  """The way back, through the pointer's register."""
  (_, _, place), = pieces(1, slot, frame)
  return Macro("kept_p", (("d", Access.WRITE, "p"),), 1,
               (f"LDL R{frame}, {place}", f"ISETP.NE.AND d, PT, R{frame}, RZ, PT", pointer(arch, frame)))

def add_frame(function: Function, target: Target) -> Function:
  """Make the pointer where there are slots, in the register behind those that are used."""
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
  """Drop the pointer that is made behind a predicate that came back, where no path goes on to a slot. drop_copies
  cannot: macros name the frame's register in their lines, so that their rows do not list it among what they read."""
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
