"""Tiles of a CPU's matrix unit: chosen where they cost least; the Program computes what the kernel means."""
from __future__ import annotations
from dataclasses import replace

import pytest

from test.codegen.kernels import count
from test.codegen.lower.test_tiles import AMX, BF16, I8, U8, check, product
from test.codegen.plan.test_register_tile import product as float_product
from tinyhw.codegen.optimize import choose_all
from tinyhw.codegen.plan.heuristic import lanes_of, nest_of
from tinyhw.codegen.plan.register_tile import CostModel
from tinyhw.codegen.plan.tile_unit import best, products_of, tiles_of
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import DType
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

TARGET = replace(AMX, cache_bytes=(48 << 10, 2 << 20, 64 << 20), local_bytes=1 << 20)

def model_of(kernel: UOp, in_place: bool = False) -> CostModel:
  nest = nest_of(kernel.src[0], in_place)
  return CostModel(nest, nest.reduces, lanes_of(nest, TARGET), TARGET)

def opts_of(kernel: UOp) -> tuple[Opt, ...]: return choose_all(kernel, TARGET)

def on_the_unit(kernel: UOp) -> bool: return any(o.op is OptOps.MATRIX for o in opts_of(kernel))

@pytest.mark.parametrize("types", [(BF16, BF16), (I8, I8)], ids=str)
@pytest.mark.parametrize("size", [(128, 2048, 2048), (512, 512, 512), (64, 4096, 1024)])
def test_large_products(size: tuple[int, int, int], types: tuple[DType, DType]) -> None:
  chosen = opts_of(product(*size, types))
  assert [o.amount for o in chosen if o.op is OptOps.MATRIX] == [16, 16]
  assert Opt(OptOps.VECTOR, next(o.axis for o in chosen if o.op is OptOps.VECTOR), 16) in chosen
  assert [o.amount for o in chosen if o.op is OptOps.UPCAST] == [2, 2]

def test_the_operand_with_few_rows_is_the_one_that_is_packed() -> None:
  """A panel of 128 rows serves all 4096 columns. It holds all of them, so w comes from memory once."""
  for kernel, slot in ((product(128, 4096, 2048), 1), (product(4096, 128, 2048), 2)):
    chosen = opts_of(kernel)
    assert Opt(OptOps.STAGE, slot, 1) in chosen
    assert [o.amount for o in chosen if o.op is OptOps.BLOCK][-1] == 4

def test_a_panel_leaves_room_for_rows() -> None:
  """The second cache holds the panel and the rows that it is multiplied with."""
  model = model_of(product(512, 4096, 4096))
  for p in products_of(model):
    for tile in tiles_of(model, p, 2, 2):
      assert p.y.panel_bytes(tile.staged.repetitions) <= TARGET.local_bytes
      assert tile.staged.repetitions[p.columns] == 2 * tile.blocks

@pytest.mark.parametrize("kernel", [product(1, 2048, 2048), product(4, 2048, 2048), product(128, 128, 32),
                                    float_product(256, 256, 256), product(128, 256, 512, (I8, U8), mask=15)],
                         ids=("one row", "four rows", "one step", "floats", "masked bytes"))
def test_other_products_have_register_tiles(kernel: UOp) -> None:
  assert not on_the_unit(kernel)

def test_no_element_is_computed_twice_where_operands_are_overwritten() -> None:
  assert products_of(model_of(product(128, 128, 256))) and not products_of(model_of(product(128, 128, 256), True))

def test_a_panel_has_room_in_shared_memory() -> None:
  """The panel of a very long sum has not."""
  model = model_of(product(64, 64, 1 << 20))
  found = best(model, float("inf"))
  assert found is None

def test_nothing_is_chosen_above_the_limit() -> None:
  model = model_of(product(128, 2048, 2048))
  found = best(model, float("inf"))
  assert found is not None and best(model, found.cost) is None

@pytest.mark.parametrize("size", [(33, 50, 96), (64, 32, 128), (40, 48, 88), (18, 130, 64)])
def test_results(size: tuple[int, int, int]) -> None:
  model = model_of(product(*size))
  found = best(model, float("inf"))
  assert found is not None
  assert count(check(product(*size), found.opts, size), Ops.MMA) > 0
