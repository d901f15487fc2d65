"""Forms of operands that are arrays or of mixed precision, and the types that a mode flushes."""
from __future__ import annotations

from tinyhw.emulator.amd.python.shapes import OperandForm, InstructionShape
from tinyhw.emulator.notation import TYPES

def test_elements_of_a_pair_are_the_halves_that_the_instruction_chooses() -> None:
  pair = OperandForm("v", halves=(1, 0), negates=(False, True), magnitude=True)
  assert pair.element(TYPES["f16"], 0)[:4] == ("v", 0, 16, 16) and not pair.element(TYPES["f16"], 0).negate
  second = pair.element(TYPES["f16"], 1)
  assert (second.shift, second.negate, second.magnitude) == (0, True, False)

def test_other_elements_stand_one_behind_the_other() -> None:
  assert [OperandForm("v").element(TYPES["i8"], i)[1:4] for i in (0, 3, 4)] == [(0, 0, 8), (0, 24, 8), (1, 0, 8)]
  assert [OperandForm("v", dword=2).element(TYPES["u16"], i)[1:4] for i in (2, 3)] == [(3, 0, 16), (3, 16, 16)]

def test_a_mixed_operand_is_a_float32_or_a_half() -> None:
  whole, half = OperandForm("s"), OperandForm("v", mix=1, negate=True)
  assert whole.mixed() == (whole, TYPES["f32"])
  assert half.mixed() == (half._replace(shift=16, width=16), TYPES["f16"])

def test_what_is_flushed() -> None:
  single, others = InstructionShape("", (), 32, flush32=True), InstructionShape("", (), 32, flush64=True)
  assert [single.flushes(TYPES[name]) for name in ("f16", "bf16", "f32", "f64")] == [False, False, True, False]
  assert [others.flushes(TYPES[name]) for name in ("f16", "bf16", "f32", "f64")] == [True, False, False, True]
