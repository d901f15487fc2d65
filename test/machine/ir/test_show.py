"""Functions as text."""
from __future__ import annotations
from generators.invented import Build, cisc

from tinyhw.machine.ir.inst import MInst
from tinyhw.machine.ir.pseudo import PARALLEL
from tinyhw.machine.ir.show import show, show_inst
from tinyhw.machine.passes import run

def test_function() -> None:
  b = Build(cisc())
  x, y = b.params("r64", "r64", fixed={0: 7, 1: 6})
  entry, loop = b.at, b.block("loop", 1, ("r64",))
  z = b.new("r64")
  b.emit("add", z, y, ties=(loop.params[0],))
  b.emit("cmp", z, y)
  done = b.block("done")
  b.emit("ret", z)
  b.at = loop
  b.emit("jl", loop, arguments=([z],)).comment = "again"
  b.emit("jmp", done, arguments=([],))
  b.at = entry
  b.emit("jmp", loop, arguments=([x],))
  assert show(b.function) == """function small  ; parameters in 0: 7, 1: 6
.entry0(%0:r64, %1:r64):
  jmp .loop1(%0:r64)
.loop1(%2:r64):  ; depth 1
  add %3:r64<-%2:r64, %1:r64
  cmp %3:r64, %1:r64
  jl .loop1(%3:r64)                                         ; again
  jmp .done2
.done2:
  ret %3:r64"""
  run(b.function, b.target)
  assert "; falls through" in show(b.function) and "add r7, r6" in show(b.function)

def test_parallel_copies() -> None:
  b = Build(cisc())
  assert show_inst(MInst(PARALLEL, b.many("r64", 4))) == "parallel %0:r64 <- %1:r64, %2:r64 <- %3:r64"
