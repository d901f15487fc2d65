"""The frame of a GPU's listing, with the instructions of test_waves.py: the data of the launch and of the card that it
combines."""
from __future__ import annotations
from types import SimpleNamespace
from typing import Any

from test.machine.model.test_listing_waves import nest, operations, touched
from test.machine.model.test_traffic import CARD
from test.machine.model.test_waves import MODEL
from tinyhw.machine.ir.inst import MInst
from tinyhw.machine.model.listing_gpu import LaunchModel, GpuGeneration
from tinyhw.machine.model.listing_notes import Noted
from tinyhw.machine.model.occupancy import KernelResources
from tinyhw.machine.model.traffic import Traffic
from tinyhw.machine.model.waves import Model

def element(inst: MInst) -> str: return {"add": "f16", "store": "vf32"}.get(inst.row.name, "")
def never(inst: MInst) -> bool: return False

def launch(grid: int | None) -> tuple[LaunchModel, list[Traffic]]:
  """A kernel of two waves a workgroup, and the arguments of its model."""
  seen: list[Traffic] = []
  def model(traffic: Traffic) -> Model:
    seen.append(traffic)
    return MODEL
  noted = Noted(touched, never, never, lambda inst: 0, never)
  card = CARD._replace(unit=MODEL.unit, flops={"f16": 2.0, "vf32": 8.0})
  program: Any = SimpleNamespace(uops=(), lanes=8, local_bytes=0)
  return LaunchModel(GpuGeneration(card, 4, 1 << 20, "made up", repr, operations, element, noted, model),
                     KernelResources({"v": 16}, 0, 8, grid), nest(), program), seen

def test_a_small_grid_shares_the_card_among_fewer_units() -> None:
  assert [launch(grid)[1][0].units for grid in (3, 400, None)] == [3, 10, 10]

def test_bounds_are_of_the_vendors_instructions() -> None:
  found = launch(40)[0].bounds()
  assert found.operations == 105 * 4 * 2 * 40 and found.hottest.operations == 21 * 4

def test_peak_is_that_of_the_best_instruction_there_is() -> None:
  vendor, insts = launch(40)[0].vendor, [inst for block in nest().blocks for inst in block.insts]
  assert vendor.peak(insts) == (8.0, "f32, vector unit")
  assert (vendor.peak([inst for inst in insts if inst.row.name == "add"]) == (2.0, "f16, matrix unit")
          and vendor.peak([]) == (0.0, ""))
