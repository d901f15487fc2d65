"""The sizes of a workgroup's part of a product."""
from test.codegen.plan.test_matrix_tile import UNIT
from tinyhw.codegen.plan.tile_shape import (
  ADDRESS_BYTES, ARRAYS, OTHER_REGISTERS, OWN_BYTES, PADDING, CopiedOperand, PlannedProduct, TileShape,
  accesses_per_lane, carries, elements, local_bytes, own_elements, registers, rows_and_columns, staged)
from tinyhw.dtype import dtypes
from tinyhw.isa.amd.capabilities import capabilities as amd
from tinyhw.isa.sass.capabilities import capabilities as nvidia
from tinyhw.isa.sass.table.matrix import product_of_group

SHAPE = TileShape(2, 1, 4, 2, 4)

def test_rows_and_columns_are_those_of_all_waves() -> None:
  assert rows_and_columns(SHAPE, UNIT) == (2 * 4 * 16, 2 * 16) and staged(SHAPE, UNIT) == 160
  assert elements(UNIT.c) == 8 and elements(None) == 0

def test_lanes_copy_pieces_of_16_bytes() -> None:
  """128 rows of 64 halves are 1,024 pieces, for 64 lanes."""
  assert accesses_per_lane(SHAPE, UNIT, PlannedProduct(512, 512, 512)) == (16, 4)
  narrow = PlannedProduct(512, 512, 512, 1, (CopiedOperand(True, 8), CopiedOperand(False, 2)))
  assert accesses_per_lane(SHAPE, UNIT, narrow) == (128, 8)

def test_rows_in_shared_memory_are_padded_where_lanes_load_them() -> None:
  assert local_bytes(SHAPE, UNIT, 1) == 160 * (64 + PADDING) * 2
  unit = product_of_group(128, dtypes.bfloat16)
  assert local_bytes(TileShape(2, 1, 1, 1, 1), unit, ARRAYS) == ARRAYS * (128 + 128) * unit.k * 2

def test_what_no_asynchronous_copy_is_as_small_as_is_carried() -> None:
  assert [CopiedOperand(accesses=n).is_carried for n in (1, 2, 4, 8, 16)] == [False, False, False, True, True]

def test_lanes_carry_an_operand_without_an_asynchronous_copy() -> None:
  ampere, mi300 = nvidia("sm_80"), amd("gfx942")
  whole, narrow = PlannedProduct(64, 64, 64), PlannedProduct(64, 64, 64, 1, (CopiedOperand(), CopiedOperand(True, 8)))
  gated = PlannedProduct(64, 64, 64, 1, (CopiedOperand(), CopiedOperand(gated=True)))
  assert not carries(whole, UNIT, ampere) and carries(narrow, UNIT, ampere) and carries(gated, UNIT, ampere)
  assert carries(whole, UNIT, mi300) and not carries(narrow._replace(bulk=True), UNIT, ampere)
  assert not carries(gated, product_of_group(128, dtypes.bfloat16), nvidia("sm_90")), "its copies have conditions"

def test_elements_of_other_periods_have_addresses_of_their_own() -> None:
  """A lane copies 4 elements of A, of 64 rows by 64 steps."""
  square, three = TileShape(2, 2, 2, 2, 1), TileShape(3, 1, 2, 2, 1)
  def own(operand: CopiedOperand, shape: TileShape = square) -> float:
    return own_elements(shape, UNIT, PlannedProduct(512, 512, 512, 1, (operand, CopiedOperand())))[0]
  computed = CopiedOperand(True, 8, True, 0, True, 2)
  assert own(computed) == own(computed._replace(period=128)) == own(computed._replace(period=16, computed=False)) == 0
  assert own(computed._replace(period=32)) == own(computed._replace(period=96)) == 64 * 16 / 128
  rows = computed._replace(along_sum=False)
  assert own(rows._replace(period=16)) == 0 < own(rows._replace(period=24)), "the steps of a tile are in one period"
  narrow = CopiedOperand(False, 8)
  assert own(narrow) == 0 < own(narrow, three), "the lanes are no power of two"
  assert own(CopiedOperand(False), three) == 0

def test_registers_of_computed_addresses() -> None:
  """A lane of 32 copies 8 elements of each operand."""
  shape, ampere = TileShape(1, 1, 1, 1, 1), nvidia("sm_80")
  def taken(a: CopiedOperand) -> int:
    product = PlannedProduct(512, 512, 512, 1, (a, CopiedOperand()))
    return registers(shape, UNIT, product, ampere) - OTHER_REGISTERS - 3 * 8
  single = CopiedOperand(True, 8, False, 0, True, 2)
  assert taken(CopiedOperand()) == 0 and taken(CopiedOperand(True, 8)) == 8, "asynchronous copies take none"
  assert taken(single) == 8 + 8 * ADDRESS_BYTES // 4
  assert taken(single._replace(period=8)) == 8 + 8 * OWN_BYTES // 4
  assert taken(single._replace(along_sum=False, period=8)) == taken(single)
