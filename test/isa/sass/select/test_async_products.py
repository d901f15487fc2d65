"""The waits for products of four warps, and the instructions that they require before them."""
from __future__ import annotations
from dataclasses import replace

import pytest

from test.codegen.products import product
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.select.async_products import is_product, left_of, synchronize_products, touched, wait_products
from tinyhw.isa.sass.table.form import NO_GROUP
from tinyhw.isa.sass.table.matrix import product_of_group
from tinyhw.isa.sass.target import assemble, target
from tinyhw.machine.ir.inst import Function, MInst

HALF, ARCH = dtypes.float16, "sm_90"
PRODUCT = "HGMMA.64x8x16.F32 R24, gdesc[UR4], R24"
FENCES = ["MEMBAR", "FENCE"]

def compiled(m: int, n: int, k: int, columns: int, operand: DType = HALF, transposed: bool = False) -> list[MInst]:
  capable = replace(capabilities(ARCH), matrix=(product_of_group(columns, operand),), bulk_copies=False)
  program = lower(optimize(product(m, n, k, operand, dtypes.float32, transposed), capable), capable, "product")
  return [inst for _, inst, _ in assemble(program, ARCH)[2]]

def ordered(*lines: str) -> list[MInst]:
  """Return the lines of one block after the pass."""
  function = Function("k")
  block = function.new_block(name="entry")
  block.insts = [parse(line, ARCH)[0] for line in lines]
  synchronize_products(function, target(ARCH))
  return block.insts

def names(insts: list[MInst]) -> list[str]: return [inst.row.name for inst in insts]

def group_of(inst: MInst) -> object: return inst.operands[inst.row.isa.index["group"]]

def test_products_arrive_and_the_last_one_closes_the_group() -> None:
  insts = ordered(PRODUCT, PRODUCT, "EXIT")
  assert names(insts) == ["WARPGROUP", "HGMMA", "HGMMA", "EXIT"] and [group_of(inst)
                                                                      for inst in insts[1:3]] == [NO_GROUP, 0]

@pytest.mark.parametrize("line", ("FADD R1, R25, R25", "MOV R24, RZ", "STS [R0], R27"))
def test_registers_of_sums_are_waited_for(line: str) -> None:
  """Any access waits, and only once. The next product arrives again."""
  insts = ordered(PRODUCT, line, line, PRODUCT)
  other = parse(line, ARCH)[0].row.name
  assert names(insts) == ["WARPGROUP", "HGMMA", "WARPGROUP.DEPBAR", other, other, "WARPGROUP",
                          "HGMMA"] and left_of(insts[2]) == 0
  assert group_of(insts[1]) == group_of(insts[6]) == 0

def test_others_do_not_wait() -> None:
  insts = ordered(PRODUCT, "FADD R1, R2, R3", PRODUCT, "LDS R5, [R1]")
  assert names(insts) == ["WARPGROUP", "HGMMA", "FADD", "HGMMA", "LDS"] and [group_of(insts[1]),
                                                                             group_of(insts[3])] == [NO_GROUP, 0]

def test_before_a_meeting_products_are_done() -> None:
  barrier = "BAR.SYNC.DEFER_BLOCKING 0x0"
  assert names(ordered(PRODUCT, barrier, PRODUCT)) == ["WARPGROUP", "HGMMA", "WARPGROUP.DEPBAR", "BAR", "WARPGROUP",
                                                       "HGMMA"]
  insts = ordered(PRODUCT, "WARPGROUP.DEPBAR.LE gsb0, 0x1", barrier, PRODUCT)
  assert names(insts) == ["WARPGROUP", "HGMMA", "WARPGROUP.DEPBAR", "BAR", "WARPGROUP",
                          "HGMMA"] and left_of(insts[2]) == 1
  assert (names(ordered(PRODUCT, "WARPGROUP.DEPBAR.LE gsb0, 0x1", PRODUCT, barrier, "EXIT"))[-3:]
          == ["WARPGROUP.DEPBAR", "BAR", "EXIT"])

@pytest.mark.parametrize("line", ("STS [R0], R1", "STS.128 [R0], R4", "DEPBAR.LE SB0, 0x0"))
def test_what_was_written_to_shared_memory_is_fenced(line: str) -> None:
  insts = ordered(line, "BAR.SYNC.DEFER_BLOCKING 0x0", PRODUCT)
  assert names(insts)[1:5] == [*FENCES, "BAR", "WARPGROUP"]
  assert names(ordered("LDS R5, [R1]", "BAR.SYNC.DEFER_BLOCKING 0x0", PRODUCT))[1:3] == ["BAR", "WARPGROUP"]

def test_functions_without_products_stay_as_they_are() -> None:
  assert names(ordered("STS [R0], R1", "BAR.SYNC.DEFER_BLOCKING 0x0")) == ["STS", "BAR"]

@pytest.mark.parametrize("operand, transposed", [(HALF, False), (HALF, True), (dtypes.bfloat16, False)])
def test_a_loop_of_products(operand: DType, transposed: bool) -> None:
  """Products of the previous iteration may be pending after the barrier. Sums stay in their registers, and are waited
  for only after the loop."""
  insts = compiled(64, 128, 512, 128, operand, transposed)
  found = [inst for inst in insts if is_product(inst)]
  assert len(found) >= 4 and len({touched(inst) for inst in found}) == 1
  assert [group_of(inst) for inst in found] == [NO_GROUP] * (len(found) - 1) + [0]
  assert [left_of(inst) for inst in insts if inst.row.name == "WARPGROUP.DEPBAR"] == [1, 0]
  at = names(insts).index("WARPGROUP.DEPBAR")
  assert names(insts)[at - 1:at + 4] == ["DEPBAR.LE", "WARPGROUP.DEPBAR", *FENCES, "BAR"]
  assert wait_products(ARCH, 1).row is insts[at].row

def test_a_product_of_one_step_is_not_copied_ahead() -> None:
  """It is too short for swizzle atoms, so products of one warp do it."""
  assert not any(map(is_product, compiled(64, 64, 64, 64)))
