"""The part of a product that a wave and a workgroup compute: within limits, larger where that pays."""
from __future__ import annotations

from dataclasses import replace

import pytest

from test.codegen.kernels import axis
from test.codegen.plan.test_workgroup import LANES
from tinyhw.codegen.plan.matrix_tile import fits, in_order, tile
from tinyhw.codegen.plan.predict import predict
from tinyhw.codegen.plan.tile_shape import (
  OTHER_REGISTERS, CopiedOperand, PlannedProduct, TileShape, accesses_per_lane, registers, staged)
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.table.matrix import product_of_group
from tinyhw.uop.matrix import Matrix, by_columns

UNIT = by_columns(16, 16, 16, dtypes.float16, dtypes.float32, 32)
CARD = replace(LANES, lanes=32, threads=64, local_bytes=65536, vector_registers=248, matrix=(UNIT,))

def chosen(m: int, n: int, k: int, others: int = 1, unit: Matrix = UNIT,
           **changes: int) -> dict[tuple[OptOps, int], int]:
  """Return opts other than MATRIX, by their kind and range."""
  choice = tile(axis(m, 0), axis(n, 1), axis(k, 2), PlannedProduct(m, n, k, others), unit, replace(CARD, **changes))
  assert choice is not None and choice.cost > 0
  return {(o.op, o.axis): o.amount for o in choice.opts if o.op is not OptOps.MATRIX}

def test_registers_are_counted() -> None:
  """8 of sums, 8 of each operand, and the copies: 32 rows and columns of 16 halves, by 32 lanes."""
  large = PlannedProduct(4096, 4096, 4096)
  assert registers(TileShape(1, 1, 1, 1, 1), UNIT, large, CARD) == 8 + 8 + 8 + 8 + OTHER_REGISTERS
  assert registers(TileShape(2, 2, 4, 4, 1), UNIT, large, CARD) == 128 + 64 + 16 + OTHER_REGISTERS

@pytest.mark.parametrize("changes, least", [({}, 16), ({"vector_registers": 200}, 8), ({"vector_registers": 100}, 4)])
def test_a_large_product_fills_the_registers(changes: dict[str, int], least: int) -> None:
  found = chosen(4096, 4096, 4096, **changes)
  waves, upcasts = ([found.get((op, axis), 1) for axis in range(3)] for op in (OptOps.LOCAL, OptOps.UPCAST))
  shape = TileShape(*waves[:2], *upcasts)
  assert shape.tiles_m * shape.tiles_n >= least
  card = replace(CARD, **changes)
  assert registers(shape, UNIT, PlannedProduct(4096, 4096, 4096), card) <= card.vector_registers

def test_a_small_product_is_for_many_waves() -> None:
  found = chosen(64, 64, 64)
  assert found.get((OptOps.UPCAST, 0), 1) * found.get((OptOps.UPCAST, 1), 1) == 1
  assert chosen(64, 64, 64, others=1000)[OptOps.UPCAST, 0] > 1, "many of them have work enough"

def test_nothing_is_larger_than_the_product_nor_than_local_memory() -> None:
  small, large = PlannedProduct(48, 20, 80), PlannedProduct(512, 512, 512)
  for shape in (TileShape(2, 1, 2, 1, 1), TileShape(1, 2, 1, 1, 1), TileShape(1, 1, 1, 1, 2)):
    assert not fits(shape, small, UNIT, CARD)
  assert fits(TileShape(2, 1, 1, 1, 1), small, UNIT, CARD)
  assert not fits(TileShape(2, 2, 2, 2, 4), large, UNIT, replace(CARD, local_bytes=16384))
  assert (fits(TileShape(2, 2, 2, 2, 1), large, UNIT, replace(CARD, local_bytes=16384))
          and staged(TileShape(2, 2, 2, 2, 1), UNIT) == 128)

def test_one_matrix_is_always_possible() -> None: assert chosen(16, 16, 16, vector_registers=0) == {}

def test_what_is_computed_twice_costs() -> None:
  """For 80 rows, five matrices, a wave of four would compute three of them twice."""
  product = PlannedProduct(80, 4096, 256, 64)
  assert predict(TileShape(1, 1, 4, 1, 1), product, UNIT, CARD) > predict(TileShape(1, 1, 1, 4, 1), product, UNIT, CARD)

# A unit that reads shared memory itself

HOPPER = capabilities("sm_90")

def chosen_shape(m: int, n: int, k: int, columns: int, exact: bool = False,
                 **changes: int) -> dict[tuple[OptOps, int], int] | None:
  choice = tile(axis(m, 0), axis(n, 1), axis(k, 2), PlannedProduct(m, n, k), product_of_group(columns, dtypes.bfloat16),
                replace(HOPPER, **changes), exact)
  return None if choice is None else {(o.op, o.axis): o.amount for o in choice.opts if o.op is not OptOps.MATRIX}

def test_shared_operands_are_read_by_as_many_groups_of_waves_as_registers_allow() -> None:
  assert chosen_shape(4096, 4096, 4096, 256) == {(OptOps.LOCAL, 0): 3}
  assert chosen_shape(4096, 4096, 4096, 256,
                      unit_registers=49152) == {(OptOps.LOCAL, 0): 2}, (
    "three groups would leave 128 registers to a lane")
  assert chosen_shape(4096, 4096, 4096, 256, local_bytes=160 << 10) is None, (
    "factors of one group would fit, but its lanes have too much to copy")
  assert chosen_shape(4096, 4096, 4096, 256, exact=True) == {(OptOps.LOCAL, 0): 2}, (
    "three groups compute some rows twice")

@pytest.mark.parametrize("m, n, k", [(63, 256, 512), (64, 255, 512), (64, 256, 500), (64, 256, 192), (64, 256, 65536)])
def test_shared_operands_want_whole_steps_and_not_few_of_them(m: int, n: int, k: int) -> None:
  """A long sum has a second variable, for which sums of 256 columns leave no registers."""
  assert chosen_shape(m, n, k, 256) is None
  assert k != 65536 or chosen_shape(m, n, k, 128) is not None

def test_shared_operands_of_narrow_pieces_have_room_for_them() -> None:
  """A 16-byte piece is 8 accesses of one half each, which lanes carry, or 4 accesses of two halves, which they copy."""
  unit = product_of_group(256, dtypes.bfloat16)
  def with_accesses(a: int, b: int) -> PlannedProduct:
    return PlannedProduct(4096, 4096, 4096, 1, (CopiedOperand(True, a), CopiedOperand(True, b)))
  def fitting(a: int, b: int) -> list[int]:
    return [groups for groups in (1, 2, 3) if fits(TileShape(groups, 1, 1, 1, 1), with_accesses(a, b), unit, HOPPER)]
  assert fitting(1, 1) == [2, 3] and fitting(8, 8) == [2] and fitting(4, 4) == [1, 2,
                                                                                3], ("of three groups a lane has 166 "
                                                                                     "registers")
  assert accesses_per_lane(TileShape(2, 1, 1, 1, 1), unit, with_accesses(8, 1)) == (32, 8)
  assert CopiedOperand(accesses=8).is_carried and not CopiedOperand(accesses=4).is_carried
  def cost_of(a: int, b: int) -> float:
    return predict(TileShape(2, 1, 1, 1, 1), with_accesses(a, b), unit, HOPPER)
  assert cost_of(1, 1) < cost_of(8, 1) <= cost_of(8, 8) and cost_of(1, 1) < cost_of(4, 4)

def test_shared_operands_are_for_large_products() -> None:
  """A step of the sum costs more where few workgroups share the card."""
  def cost_of(size: int, unit: Matrix) -> float:
    choice = tile(axis(size, 0), axis(size, 1), axis(4096, 2), PlannedProduct(size, size, 4096), unit, HOPPER)
    assert choice is not None
    return choice.cost
  warp = next(x for x in HOPPER.matrix if x.operand is dtypes.bfloat16 and x.lanes == 32)
  assert cost_of(4096, product_of_group(256, dtypes.bfloat16)) < cost_of(4096, warp)
  assert cost_of(256, product_of_group(256, dtypes.bfloat16)) > cost_of(256, warp)

def test_the_grid_goes_along_the_side_that_is_read_less() -> None:
  """Sixteen workgroups of (64, 128) run at once. In a product with many columns they cover all rows and few columns,
  and vice versa."""
  def order(m: int, n: int) -> list[int]:
    opts = (Opt(OptOps.MATRIX, 0, 16), Opt(OptOps.MATRIX, 1, 16), Opt(OptOps.MATRIX, 2, 16), Opt(OptOps.UPCAST, 0, 4),
            Opt(OptOps.LOCAL, 1, 8),
            Opt(OptOps.GRID, 3), Opt(OptOps.GRID, 0), Opt(OptOps.GRID, 1))
    return [o.axis for o in in_order(opts, {0: m, 1: n, 3: 5}, replace(CARD, threads=256)) if o.op is OptOps.GRID]
  assert order(256, 128 * 100) == [3, 1, 0] and order(64 * 100, 512) == [3, 0, 1] and order(1024, 1024) == [3, 0, 1]
  assert in_order((Opt(OptOps.GRID, 0), Opt(OptOps.GRID, 1)), {0: 4, 1: 4}, CARD) == (Opt(OptOps.GRID, 0),
                                                                                      Opt(OptOps.GRID, 1))
