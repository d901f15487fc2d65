"""Operands as Python text: constants, parts of registers, modifiers."""
from __future__ import annotations
import pytest

from tinyhw.emulator.amd.python.operands import Operands, constant_argument, constant_parameter, constant_value
from tinyhw.emulator.amd.python.shapes import OperandForm, InstructionShape
from tinyhw.emulator.notation import TYPES

def test_constants_are_numbers_of_a_type() -> None:
  assert constant_value(0x3c00, TYPES["f16"]) == 1.0 and constant_value(0xffffffff, TYPES["i32"]) == -1
  assert constant_value(0x3ff0000000000000, TYPES["f64"]) == 1.0 and constant_value(0x3f80, TYPES["bf16"]) == 1.0

def test_a_parameter_says_which_part_of_a_constant_it_is() -> None:
  half = OperandForm("k", shift=16, width=16)
  assert constant_parameter("S0", half, TYPES["f16"]) == "S0_f16_16_16" and constant_argument("S0_f16_16_16",
                                                                                              0x3c000000) == 1.0
  assert constant_parameter("S0", OperandForm("k"), TYPES["u32"]) == "S0_u32" and constant_argument("S0_u32", 7) == 7

@pytest.mark.parametrize("form, kind, value, before", [
  (OperandForm("s"), "u32", "S0_u32_0_0", "S0_u32_0_0 = s[S0]"),
  (OperandForm("s", dword=1), "u32", "S0_u32_1_0", "S0_u32_1_0 = s[S0 + 1]"),
  (OperandForm("s"), "u64", "S0_u64_0_0", "S0_u64_0_0 = s[S0] | s[S0 + 1] << 32"),
  (OperandForm("s", shift=16, width=16), "f16", "S0_f16_0_16", "S0_f16_0_16 = HALVES[(s[S0] >> 16 & 0xffff) & 0xffff]"),
  (OperandForm("s", negate=True, magnitude=True), "f32", "(-abs(S0_f32_0_0))", "S0_f32_0_0 = float32_of(s[S0])"),
  (OperandForm("vccz"), "u32", "S0_u32_0_0", "S0_u32_0_0 = (0 if w.mask(106) else 1)"),
])
def test_a_scalar_is_read_once(form: OperandForm, kind: str, value: str, before: str) -> None:
  operands = Operands(InstructionShape("", (), 32))
  operands.sources = {"S0": form}
  assert operands.fetch("S0", TYPES[kind]).text == operands.fetch("S0", TYPES[kind]).text == value
  assert operands.before == [before] and not operands.streams

def test_a_vector_register_is_read_for_each_lane() -> None:
  operands = Operands(InstructionShape("", (), 32, permuted=True))
  operands.sources = {"S0": OperandForm("v"), "S1": OperandForm("v", shift=8, width=8, signed=True)}
  assert operands.fetch("S0", TYPES["i32"]).text == "xs0i0" and operands.fetch("S1", TYPES["u32"]).text == "v0"
  assert operands.streams == {"xs0i0": "w.moved(w.i[S0], moves)",
                              "xs1u0": "w.u[S1]"}, ("other lanes give the first operand alone")
  assert operands.inside == ["v0 = ((((xs1u0 >> 8 & 0xff)) ^ 0x80) - 0x80 & 0xffffffff)"]

def test_denormals_are_flushed_where_the_mode_says_so() -> None:
  operands = Operands(InstructionShape("", (), 0, flush32=True))
  operands.sources = {"S0": OperandForm("k")}
  assert (operands.fetch("S0", TYPES["f32"]).text == "flush_f32(S0_f32)" and operands.fetch("S0", TYPES["f16"]).text
          == "S0_f16")
