"""Predicted cycles of tiles: close to the bounds of listings, and never more on a faster card.

Records of bounds are made by test/bench/tiles.py. Nothing is compiled here.
"""
from __future__ import annotations
import importlib.util
import json
from pathlib import Path
import statistics

import pytest

from tinyhw.codegen.plan.predict import (
  UNKNOWN, card_of, held_by_unit, is_transposed, predict, rate_of, sectors, step_of)
from tinyhw.codegen.plan.tile_shape import CopiedOperand, PlannedProduct, TileShape
from tinyhw.data_class import replace
from tinyhw.dtype import dtypes
from tinyhw.engine.run.compile import capabilities_of
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.matrix import Matrix

ROOT = Path(__file__).resolve().parents[3]
RECORDS = sorted((ROOT / "test" / "golden" / "tiles").glob("*.json"))
# regret of all products, and of each; median of correlations
MOST_MEAN, MOST, LEAST_CORRELATION = 1.05, 1.25, 0.8

_spec = importlib.util.spec_from_file_location("tiles", ROOT / "test" / "bench" / "tiles.py")
assert _spec is not None and _spec.loader is not None
tiles = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tiles)

@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_least_prediction_has_nearly_the_least_bound(path: Path) -> None:
  capabilities = capabilities_of(path.stem, "")
  regrets, correlations = {}, []
  for one in json.loads(path.read_text()):
    found = tiles.from_json(one["parts"], capabilities)
    predicted = [predict(t.shape, t.product, t.matrix, capabilities) for t in found]
    regrets[one["name"]] = tiles.regret(found, predicted)
    correlations.append(tiles.rank_correlation(predicted, [t.seconds for t in found]))
  assert len(regrets) >= 8 and tiles.mean(regrets.values()) <= MOST_MEAN, regrets
  assert max(regrets.values()) <= MOST, regrets
  assert statistics.median(correlations) >= LEAST_CORRELATION, correlations

def test_there_are_records() -> None: assert len(RECORDS) == 4

def test_the_same_seed_draws_the_same_products() -> None:
  first, again = (tiles.drawn(3, 4) for _ in range(2))
  assert [name for name, _ in first] == [name for name, _ in again]
  assert {name for name, _ in tiles.drawn(4, 4)}.isdisjoint(name for name, _ in first)

def test_ranks() -> None:
  assert tiles.rank_correlation([1, 2, 3], [10, 20, 30]) == 1 and tiles.rank_correlation([1, 2, 3], [3, 2, 1]) == -1
  assert tiles.rank_correlation([1, 1, 2], [5, 6, 7]) == pytest.approx(0.866, abs=1e-3)

SHAPES = (TileShape(2, 2, 2, 4, 2), TileShape(1, 1, 1, 1, 1), TileShape(1, 2, 4, 2, 4))
NARROW = CopiedOperand(True, 8, True), CopiedOperand(False, 8, True)
PRODUCTS = (PlannedProduct(4096, 4096, 4096), PlannedProduct(128, 3072, 768),
            PlannedProduct(1001, 1001, 1024, 1, NARROW))

def unit_of(capabilities: Capabilities) -> Matrix:
  return next(x for x in capabilities.matrix if x.operand is dtypes.float16 and not x.shared_operands)

@pytest.mark.parametrize("arch", tiles.ARCHS)
@pytest.mark.parametrize("faster", [
  {"local_rate": 2.0}, {"first_rate": 2.0}, {"second_rate": 2.0}, {"memory_gbs": 2.0}, {"latency": 0.5},
  {"local_latency": 0.5}, {"vector_cycles": 0.5}, {"flops": 2.0}], ids=lambda faster: next(iter(faster)))
def test_a_faster_resource_never_costs_more(arch: str, faster: dict[str, float]) -> None:
  (name, factor), = faster.items()
  capabilities = capabilities_of(arch, "")
  card = card_of(capabilities)
  now = getattr(card, name)
  better = {k: v * factor for k, v in now.items()} if name == "flops" else now * factor
  changed = replace(capabilities, card=card._replace(**{name: better}))
  for shape in SHAPES:
    for product in PRODUCTS:
      unit = unit_of(capabilities)
      assert predict(shape, product, unit, changed) <= predict(shape, product, unit, capabilities)

def test_work_that_is_done_twice_and_rounds_count() -> None:
  capabilities = capabilities_of("sm_80", "")
  unit, shape = unit_of(capabilities), TileShape(2, 2, 2, 4, 2)
  def cycles(m: int, n: int, k: int) -> float: return predict(shape, PlannedProduct(m, n, k), unit, capabilities)
  assert cycles(4097, 4096, 512) > cycles(4096, 4096, 512) and cycles(4096, 4096, 1024) > cycles(4096, 4096, 512)
  assert cycles(64, 64, 512) == cycles(63, 63, 512), "one workgroup in either case"

def test_registers_and_shared_memory_limit_workgroups() -> None:
  capabilities = capabilities_of("gfx942", "")
  unit, card = unit_of(capabilities), card_of(capabilities)
  def held(shape: TileShape, others: int = 1000, **changes: int) -> int:
    product = PlannedProduct(4096, 4096, 4096, others)._replace(**changes)
    return held_by_unit(shape, product, unit, capabilities, card, others * 1000)
  assert held(TileShape(1, 1, 1, 1, 1)) == 16, "as many as a unit has"
  assert held(TileShape(1, 1, 1, 1, 8)) == 7, "64 KB, and 9 KB each"
  assert held(TileShape(1, 1, 2, 4, 1)) < held(TileShape(1, 1, 2, 2, 1)), "registers"
  one = TileShape(1, 1, 1, 1, 1)
  assert held_by_unit(one, PlannedProduct(64, 64, 64), unit, capabilities, card, 4) == 1, "the grid"

def test_a_lane_with_too_many_accesses_waits_for_each() -> None:
  capabilities = capabilities_of("gfx942", "")
  unit, card = unit_of(capabilities), card_of(capabilities)
  def alone(shape: TileShape) -> float:
    return step_of(shape, PlannedProduct(4096, 4096, 4096), unit, capabilities, card, 1).alone
  assert alone(TileShape(1, 1, 1, 2, 8)) < 2 * card.latency
  assert alone(TileShape(1, 1, 1, 4, 8)) > 16 * card.latency, "16 pieces of a lane, of which 8 are in flight at once"

def test_caches_give_whole_sectors() -> None:
  capabilities = capabilities_of("gfx1100", "")
  card, unit = card_of(capabilities), unit_of(capabilities)   # sectors of 64 bytes
  def read(rows: int, terms: int, operand: CopiedOperand, bulk: bool = False) -> float:
    return sectors(rows, terms, operand, unit, bulk, card)
  assert read(128, 32, CopiedOperand(True)) == read(128, 16, CopiedOperand(True)) == 128 * 64, "half of each sector"
  unaligned = CopiedOperand(alignment=16)
  assert read(128, 32, unaligned) == 128 * (64 + 48), "a row begins anywhere"
  assert read(128, 32, unaligned, True) == 128 * 64
  single = CopiedOperand(True, 8, False, 0, True, 2)
  assert read(128, 32, single) == read(64, 64, single) == 128 * (64 + 62), "32 lanes read 64 bytes of a row"
  assert read(128, 16, single) == 128 * (32 + 62)

def test_lanes_transpose_where_the_unit_does_not() -> None:
  """They then read short segments, since longer ones would conflict in the banks of shared memory."""
  rdna, ampere = unit_of(capabilities_of("gfx1100", "")), unit_of(capabilities_of("sm_80", ""))
  rows = CopiedOperand(False)
  assert is_transposed(rows, rdna) and not is_transposed(rows, ampere) and not is_transposed(CopiedOperand(True), rdna)
  card = card_of(capabilities_of("gfx1100", ""))
  assert sectors(64, 32, rows, rdna, False, card) == 2 * sectors(64, 32, rows, ampere, False, card)

def test_rates() -> None:
  for arch in (*tiles.ARCHS, "metal"):
    capabilities = capabilities_of(arch, "")
    card = card_of(capabilities)
    assert all(rate_of(card, unit) in card.flops.values() for unit in capabilities.matrix)
  hopper = capabilities_of("sm_90", "")
  card, unit = card_of(hopper), next(x for x in hopper.matrix if x.shared_operands and x.operand is dtypes.float16)
  assert rate_of(card, unit) == card.flops["wgmma f16"] > rate_of(card, unit_of(hopper))

def test_a_card_without_a_model() -> None:
  known = capabilities_of("sm_80", "")
  unknown = replace(known, card=None, threads=64, lanes=8)
  card = card_of(unknown)
  assert card.units == 4 and card.unit.lanes == 8 and card.flops == UNKNOWN.flops
  assert predict(SHAPES[0], PRODUCTS[0], unit_of(known), replace(known, card=None)) > 0
