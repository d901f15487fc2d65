"""Python from semantics: both paths of a vector instruction agree, shapes share functions."""
from __future__ import annotations
import random

import pytest
from amd.lanes import FLOAT16, FLOAT32, INTEGERS, execute, values

from tinyhw.emulator.amd.semantics.packed import HALF
from tinyhw.emulator.amd.semantics.vector import VECTOR
from tinyhw.emulator.amd.python.lanes import compiled
from tinyhw.emulator.amd.python.shapes import OperandForm, Evaluation, InstructionShape, ResultForm
from tinyhw.emulator.notation import NotationError

@pytest.mark.parametrize("name", sorted({**VECTOR, **HALF}))
def test_all_lanes_at_once_and_one_by_one_agree(name: str) -> None:
  semantics, source = {**VECTOR, **HALF}[name], random.Random(name)
  special = FLOAT32 + INTEGERS + tuple(x << 16 | x for x in FLOAT16)
  given = {f"S{n}": values(source, special, 64) for n in range(3)} | {"K": values(source, special, 32)}
  full = execute(semantics, given, vcc=0x0f0f3355, old=3)
  for mask in (0x55555555, 0xaaaaaaaa):
    part = execute(semantics, given, mask, vcc=0x0f0f3355, old=3)
    for row in (0, 1):
      for lane in range(32):
        if mask >> lane & 1: assert same(part.u[row][lane], full.u[row][lane]), (name, lane)
        else: assert part.u[row][lane] == 3
    assert part.s[104] == full.s[104] & mask

def same(a: int, b: int) -> bool: return a == b or a & 0x7fffffff > 0x7f800000 and b & 0x7fffffff > 0x7f800000

ADDITION = InstructionShape("D.u32 = S0.u32 + S1.u32", (Evaluation((("S0", OperandForm("v")), ("S1", OperandForm("s"))),
                                                                   (("D", ResultForm("v")),)),), 32)

def test_instructions_that_differ_in_registers_share_a_function() -> None:
  assert (compiled(ADDITION) is compiled(InstructionShape(*ADDITION)) and set(compiled(ADDITION).parameters)
          == {"S0", "S1", "D"})

def test_the_text_of_a_function() -> None:
  """As in the module's docstring, with a scalar for the second operand: read once, not for each lane."""
  assert compiled(ADDITION).text == """\
def make(S0, S1, D):
  def run(w):
    s = w.s
    S1_u32_0_0 = s[S1]
    D_u0 = w.u[D]
    XS0U0 = w.u[S0]
    if w.full:
      w.u[D][:] = array('I', [((xs0u0 + S1_u32_0_0) & 0xffffffff) for xs0u0 in XS0U0.tolist()])
      return
    for l in w.active:
      xs0u0 = XS0U0[l]
      D_u0[l] = ((xs0u0 + S1_u32_0_0) & 0xffffffff)
  return run
"""

def test_a_result_that_is_no_operand_is_a_mistake_of_the_table() -> None:
  with pytest.raises(NotationError, match="D1 is no operand"): compiled(ADDITION._replace(semantics="D1.u32 = S0.u32"))
