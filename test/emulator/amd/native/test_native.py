"""Machine code of the host and Python give the same result for all semantics that both have, with all lanes active and
with some."""
from __future__ import annotations
import random
from typing import Any

import pytest
from amd.lanes import FLOAT16, FLOAT32, FLOAT64, INTEGERS, values

from tinyhw.emulator.amd.execute.arithmetic import SEMANTICS, Computation
from tinyhw.emulator.amd.execute.state import SCALARS_AT, VECTORS_AT, Wave
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.amd.semantics.packed import HALF, PACKED
from tinyhw.emulator.amd.semantics.scalar import SCALAR
from tinyhw.emulator.amd.semantics.vector import VECTOR
from tinyhw.emulator.amd.native.native import Translator, native
from tinyhw.emulator.amd.python.lanes import compiled
from tinyhw.emulator.amd.python.operands import constant_argument
from tinyhw.emulator.amd.python.shapes import OperandForm, Evaluation, InstructionShape, ResultForm
from tinyhw.emulator.memory.lds import LocalMemory
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.emulator.native import threaded
from tinyhw.emulator.native.expressions import Untranslatable
from tinyhw.emulator.native.records import HEAD, WORD, Records
from tinyhw.emulator.native.threaded import AT, Exit
from tinyhw.isa.x86.capabilities import capabilities

pytestmark = pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")

VECTOR_FORM = OperandForm("v")
ROWS = 12
# places of operands: vector registers in steps of two, so that 64-bit ones have room
PLACES: dict[str, Any] = {"D": 0, "D1": 0, "S0": 2, "S1": 4, "S2": 6, "K": 8, "VCC": 106, "CARRY": 104}
VALUES = FLOAT32 + INTEGERS + tuple(a | b << 16 for a, b in zip(FLOAT16, reversed(FLOAT16)))
WORDS = VALUES + tuple(x >> 32 for x in FLOAT64) + tuple(x & 0xffffffff for x in FLOAT64)

def vector_shape(semantics: str, lanes: int = 32, s1: OperandForm = VECTOR_FORM, **more: bool) -> InstructionShape:
  sources = tuple((name, s1 if name == "S1" else OperandForm("v")) for name in ("S0", "S1", "S2", "D", "K"))
  return InstructionShape(semantics, (Evaluation(sources, (("D", ResultForm("v")), ("D1", ResultForm("v", dword=1)))),),
                          lanes, **more)

def scalar_shape(semantics: str) -> InstructionShape:
  return InstructionShape(semantics,
                          (Evaluation(tuple((name, OperandForm("s")) for name in ("S0", "S1", "D"))
                                      + (("K", OperandForm("k")),),
                              (("D", ResultForm("s")),)),), 0)

def translates(shape: InstructionShape, lanes: int = 32) -> bool:
  try: Translator(shape, False, lanes, capabilities("x86_64:avx2")).program()
  except Untranslatable: return False
  return True

def filled(lanes: int, source: random.Random) -> Wave:
  """Return a wave with values that show mistakes. 64-bit ones are in pairs of registers."""
  registers = DispatchRegisters("gfx942" if lanes == 64 else "gfx1100", 0x1000, lanes, ROWS, 102, (lanes, 1, 1),
                                (1, 1, 1))
  wave = Wave(registers, 0, FlatMemory(), LocalMemory(0, source), source)
  for row in range(0, ROWS, 2):
    for lane, (word, wide) in enumerate(zip(values(source, WORDS, 32, lanes), values(source, FLOAT64, 64, lanes))):
      chosen = word | source.choice(WORDS) << 32 if source.random() < 0.5 else wide
      wave.u[row][lane], wave.u[row + 1][lane] = chosen & 0xffffffff, chosen >> 32
  for register in (*range(12), 104, 105, 106, 107): wave.s[register] = source.choice((*WORDS, source.getrandbits(32)))
  wave.scc = source.getrandbits(1)
  return wave

def same(a: int, b: int, high: tuple[int, int] = (0, 0)) -> bool:
  """Return whether bits are equal, or both NaNs: of float32, of float16 in a half, or (with the words above) of
  float64.
  """
  if a == b or a & 0x7fffffff > 0x7f800000 and b & 0x7fffffff > 0x7f800000: return True
  if all(x & 0x7ff00000 == 0x7ff00000 for x in high): return True
  return all(x == y or x & 0x7fff > 0x7c00 and y & 0x7fff > 0x7c00
             for x, y in ((a & 0xffff, b & 0xffff), (a >> 16, b >> 16)))

def run_native(shape: InstructionShape, arguments: dict[str, Any], wave: Wave) -> None:
  """Execute a shape by a record of the loop."""
  loop = threaded.engine()
  masked = not wave.full and bool(shape.lanes)
  function = native(shape, masked, wave.lanes)
  assert loop is not None and function is not None
  first = (VECTORS_AT - SCALARS_AT) // 4
  def word(operand: Any) -> int:
    value = arguments[operand.name]
    if operand.kind == "constant": return int(value) >> 32 * operand.part & 0xffffffff
    return int(first + (value + operand.part) * wave.lanes if operand.kind == "row" else value + operand.part)
  records = Records(loop.functions)
  records.add(function.address, function.address, [word(operand) for operand in function.operands])
  if "EXEC = " in shape.semantics: records.activate(4 * 126)
  records.python()
  records.done()
  wave.context[AT["RECORD"]] = records.address
  assert loop.run(wave.file.address) == Exit.PYTHON
  assert wave.context[AT["RECORD"]] == records.address + WORD * (len(records.words) - HEAD)

def compare(shape: InstructionShape, lanes: int, exec_mask: int, seed: object, **places: int) -> None:
  python, machine = (filled(lanes, random.Random(f"{shape.semantics}{seed}")) for _ in range(2))
  made = compiled(shape)
  arguments = {**PLACES, **places}
  run = made.make(*(arguments[p] if p in arguments else constant_argument(p, arguments[p.split("_")[0]])
                    for p in made.parameters))
  for wave in (python, machine): wave.set_exec(exec_mask)
  run(python)
  run_native(shape, arguments, machine)
  for row in range(ROWS):
    for lane in range(lanes):
      high = (python.u[row + 1][lane], machine.u[row + 1][lane]) if row % 2 == 0 else (0, 0)
      assert same(python.u[row][lane], machine.u[row][lane], high), (shape.semantics, row, lane,
                                                                     hex(python.u[row][lane]),
                                                                     hex(machine.u[row][lane]))
  for i in range(148):
    high = (python.s[i + 1], machine.s[i + 1]) if i < 8 else (0, 0)
    assert same(python.s[i], machine.s[i], high), (shape.semantics, "scalar", i, hex(python.s[i]), hex(machine.s[i]))
  assert (python.exec, python.full) == (machine.exec, machine.full)

MASKS = ((32, 0xffffffff), (32, 0x80f00a01), (64, (1 << 64) - 1), (64, 0x8000000100f0aa55))
# semantics that read elements, mixed operands and signs have shapes of their own; test_translate.py tests them with
# instructions
NATIVE = sorted(name for name, semantics in {**VECTOR, **HALF}.items() if "(" not in semantics.replace("f32(S", "")
                or translates(vector_shape(semantics))
                if translates(vector_shape(semantics)))
NATIVE_SCALAR = sorted(name for name, semantics in SCALAR.items() if translates(scalar_shape(semantics)))

def test_what_is_native() -> None:
  assert {"v_add_f32", "v_fma_f32", "v_fmac_f32", "v_cndmask_b32", "v_cmp_lt_f32", "v_lshlrev_b32", "v_max_f32",
          "v_bfe_u32", "v_mov_b32",
          "v_add_f64", "v_add_co_u32", "v_add_co_ci_u32", "v_lshlrev_b64", "v_cvt_f32_u32", "v_cvt_i32_f32",
          "v_mul_hi_u32",
          "v_fma_f64"} <= set(NATIVE)
  assert {"s_add_u32", "s_addc_u32", "s_mul_i32", "s_lshl_b64", "s_ashr_i32", "s_cselect_b32", "s_and_saveexec_b32",
          "s_cmp_lt_i32",
          "s_bfe_u32"} <= set(NATIVE_SCALAR)
  assert not {"v_rcp_f32", "v_mad_i64_i32", "v_sqrt_f32"} & set(NATIVE)

@pytest.mark.slow
@pytest.mark.parametrize("name", NATIVE)
def test_both_agree(name: str) -> None:
  for lanes, mask in MASKS:
    for seed in range(2): compare(vector_shape(SEMANTICS[name], lanes), lanes, mask, seed)

@pytest.mark.parametrize("name", NATIVE_SCALAR)
def test_both_agree_on_scalars(name: str) -> None:
  for lanes, mask in MASKS:
    for seed in range(6): compare(scalar_shape(SEMANTICS[name]), lanes, mask, seed, K=0x3fc00000)

@pytest.mark.parametrize("name", ["v_add_co_ci_u32", "v_lshlrev_b64", "v_add_f64", "v_pk_mov_b32", "v_fma_f64"])
def test_results_may_overlap_operands(name: str) -> None:
  """All operands are read before anything is written."""
  for places in ({"D": 3, "D1": 3, "CARRY": 106}, {"D": 5, "D1": 5}, {"D": 2, "D1": 2, "CARRY": 106},
                 {"D": 1, "D1": 1}):
    for lanes, mask in MASKS: compare(vector_shape(VECTOR[name], lanes), lanes, mask, 1, **places)

@pytest.mark.slow
@pytest.mark.parametrize("form", [OperandForm("s"), OperandForm("k"), OperandForm("v", negate=True),
                                  OperandForm("v", magnitude=True),
                                  OperandForm("s", negate=True, magnitude=True),
                                  OperandForm("v", shift=8, width=8), OperandForm("v", shift=16, width=16),
                                  OperandForm("v", shift=8, width=8, signed=True),
                                  OperandForm("scc"), OperandForm("vccz"), OperandForm("execz")])
def test_forms_of_operands(form: OperandForm) -> None:
  names = (("v_add_f32", "v_fma_f32", "v_cmp_le_f32", "v_min_f32") if not form.width and form.kind in "vsk"
           else ("v_add_nc_u32", "v_max_i32"))
  for name in names:
    for lanes, mask in MASKS:
      compare(vector_shape(VECTOR[name], lanes, s1=form), lanes, mask, 1, S1=4 if form.kind != "k" else 0xbf800000)

def half_shape(semantics: str, lanes: int, op_sel: int, keep: bool = True, negate: bool = False,
               **more: bool) -> InstructionShape:
  """Return a 16-bit instruction on selected halves: bits 0 and 1 of op_sel for the sources, bit 3 for the result."""
  sources = tuple((name, OperandForm("v", shift=16 * (op_sel >> i & 1), width=16, negate=negate and i == 0))
                  for i, name in enumerate(("S0", "S1", "S2")))
  return InstructionShape(semantics, (Evaluation((*sources, ("D", OperandForm("v")), ("K", OperandForm("v"))),
      (("D", ResultForm("v", shift=16 * (op_sel >> 3), width=16, keep=keep)),)),),
                          lanes, **more)

@pytest.mark.slow
@pytest.mark.parametrize("name", ["v_add_f16", "v_sub_f16", "v_mul_f16", "v_max_f16", "v_min_f16", "v_cvt_f16_i16"])
def test_half_precision(name: str) -> None:
  for op_sel, keep, negate in ((0, True, False), (9, True, name != "v_cvt_f16_i16"), (3, False, False)):
    for lanes, mask in MASKS:
      for seed in range(4):
        compare(half_shape({**VECTOR, **HALF}[name], lanes, op_sel, keep, negate), lanes, mask, seed)

def test_conversions_between_precisions() -> None:
  for semantics in ("D.f16 = f16(S0.f32)", "D.f32 = f32(S0.f16)", "D.f64 = f64(S0.f32)", "D.f32 = f32(S0.f64)"):
    for seed in range(8): compare(vector_shape(semantics), 32, 0xffffffff, seed)

def test_clamping_of_floats() -> None:
  for name in ("v_add_f32", "v_mul_f32", "v_add_f64"):
    for seed in range(4): compare(vector_shape(VECTOR[name], clamp=True), 32, 0xffffffff, seed)

@pytest.mark.slow
@pytest.mark.parametrize("name", ["v_pk_add_f16", "v_pk_mul_f16", "v_pk_max_f16", "v_pk_add_u16", "v_pk_mad_i16",
                                  "v_pk_lshlrev_b16", "v_pk_min_i16"])
def test_packed_halves(name: str) -> None:
  floating = name.endswith("f16")
  def sources(half: int) -> tuple[tuple[str, OperandForm], ...]:
    same, crossed = OperandForm("v", shift=16 * half, width=16), OperandForm("v", shift=16 - 16 * half, width=16,
                                                                             negate=floating and bool(half))
    return ("S0", same), ("S1", crossed), ("S2", same)
  passes = tuple(Evaluation(sources(half), (("D", ResultForm("v", shift=16 * half, width=16)),)) for half in (0, 1))
  for lanes, mask in MASKS:
    for seed in range(4): compare(InstructionShape(PACKED[name], passes, lanes), lanes, mask, seed)

def test_what_stays_python() -> None:
  for wrong in (vector_shape(VECTOR["v_add_nc_u32"], clamp=True), vector_shape(VECTOR["v_add_f32"], flush32=True),
                vector_shape(VECTOR["v_add_f32"], permuted=True), vector_shape(VECTOR["v_sqrt_f32"]),
                scalar_shape(SCALAR["s_setpc_b64"])):
    assert native(wrong, False, 32) is None
  assert translates(vector_shape(VECTOR["v_add_nc_u32"], flush32=True)), "integers have no denormals"
  assert Computation(vector_shape(VECTOR["v_mov_b32"]), {}).active is None
