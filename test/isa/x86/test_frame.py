"""Frames preserve the registers of the convention, on every system, and restore the stack pointer."""
from __future__ import annotations

import pytest

from tinyhw.isa.x86 import abi, frame

from tinyhw.isa.x86.asm.encode import encode
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.isa.x86.target import target
from tinyhw.machine.ir.inst import Function, MInst

AVX2 = target("x86_64:avx2")

def framed(written: list[str], stack_bytes: int, convention: abi.Abi, monkeypatch: pytest.MonkeyPatch) -> list[MInst]:
  """The instructions of a function that writes these registers and has two returns."""
  monkeypatch.setattr(abi, "abi", lambda: convention)
  names = regs.by_name()
  function = Function("f")
  function.stack_bytes = stack_bytes
  for _ in range(2):
    block = function.new_block()
    for name in written:
      r = names[name]
      block.insts.append(MInst(TABLE["mov_r64_r64"], [r, r]) if r.cls is regs.R64
                         else MInst(TABLE["vmovaps_x_x"], [r, r]))
    block.insts.append(MInst(TABLE["ret"], []))
  frame.add_frame(function, AVX2)
  return [i for b in function.blocks for i in b.insts]

class Stack:
  """The effects of the frame's own instructions on rsp and on the registers that they save."""
  def __init__(self) -> None:
    self.rsp, self.memory = 0, {}
    self.lowest = 0

  def run(self, insts: list[MInst], held: dict[str, object]) -> None:
    for i in insts:
      if i.comment != "frame": continue
      name, operands = i.row.name, i.operands
      if name == "push":
        self.rsp -= 8
        self.memory[self.rsp] = held[repr(operands[0])]
      elif name == "pop":
        held[repr(operands[0])] = self.memory[self.rsp]
        self.rsp += 8
      elif name == "sub": self.rsp -= operands[1]
      elif name == "add": self.rsp += operands[1]
      elif operands[0] is frame.RSP: self.memory[self.rsp + operands[3]] = held[repr(operands[4])]
      else: held[repr(operands[0])] = self.memory[self.rsp + operands[4]]
      self.lowest = min(self.lowest, self.rsp)

@pytest.mark.parametrize("stack_bytes", [0, 8, 64, 200])
@pytest.mark.parametrize("convention", [abi.SYSTEM_V, abi.WINDOWS], ids=lambda c: c.name)
def test_what_must_be_kept_is_kept(convention: abi.Abi, stack_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
  written = ["rax", "rbx", "rdi", "r12", "r15", "xmm1", "xmm6", "xmm15"]
  insts = framed(written, stack_bytes, convention, monkeypatch)
  first = next(k for k, i in enumerate(insts) if i.comment != "frame")
  leave = next(k for k, i in enumerate(insts) if k > first and i.comment == "frame")
  end = next(k for k, i in enumerate(insts) if i.row.name == "ret")
  kept = [name for name in written if name in convention.saved + convention.saved_vector]
  stack, held = Stack(), {name: f"old {name}" for name in written}
  stack.run(insts[:first], held)
  assert -stack.rsp >= stack_bytes + 8 * sum(not n.startswith("xmm") for n in kept), "there is room for the slots"
  assert all(place < stack.rsp or place >= stack.rsp + stack_bytes
             for place in stack.memory), "no saved register lies in the slots"
  changed: dict[str, object] = {name: "new" for name in written}
  stack.run(insts[leave:end], changed)
  assert stack.rsp == 0 and changed == {name: f"old {name}" if name in kept else "new" for name in written}
  assert all(encode(i) for i in insts if i.comment == "frame")
  assert ([i.row.name for i in insts].count("ret") == 2
          and len(insts[leave:end]) == len([i for i in insts[end:] if i.comment == "frame"]))

def test_a_function_that_needs_no_frame_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
  insts = framed(["rax", "rcx", "xmm3"], 0, abi.SYSTEM_V, monkeypatch)
  assert not any(i.comment == "frame" for i in insts) and len(insts) == 8

def test_tiles_are_configured_first_and_released_before_each_return() -> None:
  function = Function("f")
  for _ in range(2):
    block = function.new_block()
    block.insts += [MInst(TABLE["tilezero_t"], [regs.reg(regs.TMM, 3)]), MInst(TABLE["ret"], [])]
  frame.add_frame(function, target("x86_64:amx"))
  assert [[i.row.name for i in b.insts] for b in function.blocks] == [
    ["ldtilecfg", "tilezero", "tilerelease", "ret"], ["tilezero", "tilerelease", "ret"]]
  assert len(frame.TILE_CONFIGURATION) == 64
