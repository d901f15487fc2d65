"""Each possible mistake of selection is refused, with block and instruction."""
from __future__ import annotations
from collections.abc import Callable

import pytest
from generators.invented import Build, cisc, lanes, matmul_loop

from tinyhw.errors import AllocationError
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.verify.ssa import verify

def test_good_function() -> None:
  target = cisc()
  assert verify(matmul_loop(target, 4, 2), target).liveness is not None

def undefined(b: Build, x: Reg) -> None: b.emit("lea", b.new("r64"), x, b.new("r64"), 0)
def twice(b: Build, x: Reg) -> None: b.emit("lea", x, x, x, 0)
def foreign(b: Build, x: Reg) -> None: b.emit("lea", Reg(x.cls, 77), x, x, 0)
def untied(b: Build, x: Reg) -> None: b.emit("add", b.new("r64"), x)
def wrong_bank(b: Build, x: Reg) -> None: b.emit("lea", b.new("v"), x, x, 0)
def missing(b: Build, x: Reg) -> None: b.emit("lea", b.new("r64"), x, None, 0)
def too_few(b: Build, x: Reg) -> None: b.emit("lea", b.new("r64"), x)
def named(b: Build, x: Reg) -> None: b.emit("lea", b.new("r64"), x, Reg(x.cls, -1, 3), 0)

@pytest.mark.parametrize("mistake,words", [
  (undefined, "can be read before it is written"), (twice, "defined a second time"), (foreign, "new_reg"),
  (untied, "ties"),
  (wrong_bank, "the row wants r64"), (missing, "is missing"), (too_few, "2 operands, the row has 4"),
  (named, "not allocatable")])
def test_instructions(mistake: Callable[[Build, Reg], None], words: str) -> None:
  b = Build(cisc())
  x = b.params("r64")[0]
  mistake(b, x)
  b.emit("ret", x)
  with pytest.raises(AllocationError, match=words): verify(b.function, b.target)

def test_stack_pointer_may_be_named() -> None:
  b = Build(cisc())
  x = b.params("r64")[0]
  b.emit("lea", y := b.new("r64"), x, Reg(x.cls, -1, 4), 0)
  b.emit("ret", y)
  verify(b.function, b.target)

def test_blocks() -> None:
  b = Build(cisc())
  x = b.params("r64")[0]
  with pytest.raises(AllocationError, match="Effect.END"): verify(b.function, b.target)
  b.emit("jl", b.at, arguments=([x],))
  b.emit("lea", b.new("r64"), x, x, 0)
  b.emit("ret", x)
  with pytest.raises(AllocationError, match="only jumps may follow a jump"): verify(b.function, b.target)
  b.at.insts = b.at.insts[2:]
  b.function.blocks.append(b.at)
  with pytest.raises(AllocationError, match="twice"): verify(b.function, b.target)

def test_arguments_fit_parameters() -> None:
  b = Build(lanes())
  x = b.params("d1")[0]
  entry, following = b.at, b.block("next", 0, ("d2",))
  b.emit("exit")
  b.at = entry
  b.emit("bra", following, arguments=([x],))
  with pytest.raises(AllocationError, match="do not fit"): verify(b.function, b.target)
  b.at.insts.clear()
  b.emit("bra", following, arguments=([],))
  with pytest.raises(AllocationError, match="do not fit"): verify(b.function, b.target)
