"""The parts of a Selector together define all methods that they call of each other."""
import inspect

import pytest

from tinyhw.isa.x86.capabilities import LEVELS as CAPABILITIES
from tinyhw.isa.x86.select.level import Level
from tinyhw.isa.x86.select.part import Part
from tinyhw.isa.x86.select.select import LEVELS, Selector
from tinyhw.isa.x86.select.tile import TileSelector
from tinyhw.isa.x86.table.regs import R64, XMM
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.inst import Function

def declared(cls: type) -> list[str]:
  """Methods that a class leaves to others."""
  return [name for name, f in vars(cls).items() if inspect.isfunction(f)
          and inspect.getsource(f).rstrip().endswith("raise NotImplementedError")]

@pytest.mark.parametrize("selector", (*LEVELS.values(), TileSelector))
def test_a_selector_defines_what_its_parts_declare(selector: type[Selector]) -> None:
  wanted = declared(Part) + declared(Level)
  assert len(wanted) > 30
  for name in wanted:
    found = next(cls for cls in selector.__mro__ if name in vars(cls))
    assert name not in declared(found), f"{name} is only declared, in {found.__name__}"
    mine, theirs = inspect.signature(vars(found)[name]), inspect.signature(next(vars(c)[name] for c in (Part, Level)
                                                                                if name in vars(c)))
    assert list(mine.parameters)[:len(theirs.parameters)] == list(theirs.parameters), (f"{name} has other parameters "
                                                                                       f"in {found.__name__}")

def test_each_level_has_a_selector() -> None: assert set(LEVELS) == set(CAPABILITIES)

def test_emitting() -> None:
  part = Part()
  part.rows, part.function, part.origin = TABLE, Function("f"), None
  part.block = part.function.new_block()
  a, b = part.new(XMM), part.new(XMM)
  c = part.op(XMM, "vaddps_x_x_x", a, b)
  pointer = part.new(R64)
  d = part.tied(R64, "add_r64_i32", pointer, 4)
  e = part.copied(c)
  add, bump, copy = part.block.insts
  assert add.operands == [c, a, b] and c.cls is XMM and (bump.operands, bump.ties) == ([d, 4], (pointer,))
  assert list(copy.reads()) == [c] and list(copy.writes()) == [e] and e is not c
