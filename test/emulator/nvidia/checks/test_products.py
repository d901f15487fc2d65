"""Registers of asynchronous products: checks in advance for translated code, and states that can be compared.

The rules are in test_warpgroup.py.
"""
from __future__ import annotations
import pytest

from nvidia.products import ARRIVE, DONE
from nvidia.warps import assembled
from tinyhw.emulator.errors import MissingWait
from tinyhw.emulator.nvidia.checks.foresight import CheckState, foresee, known
from tinyhw.emulator.nvidia.checks.products import KnownProducts, Products
from tinyhw.emulator.nvidia.checks.strict import PipelineState
from tinyhw.emulator.nvidia.execute.decoded import made_ready

START = known(PipelineState())
PRODUCT = "HGMMA.64x8x16.F32.BF16 R24, gdesc[UR8], "

def state(*lines: str) -> CheckState | None:
  code = assembled([f"[B------:R-:W-:-:S15] {line}" for line in lines])
  return foresee(START, [made_ready(code[i:i + 16], "sm_90", i) for i in range(0, 16 * len(lines), 16)])

def products(*lines: str) -> KnownProducts:
  found = state(*lines)
  assert found is not None
  return found.products

def test_kernels_without_products_know_nothing_of_them() -> None:
  assert products("MOV R0, RZ", "FADD R1, R0, R0") == KnownProducts()

def test_what_is_known() -> None:
  assert products("MOV R0, RZ", ARRIVE, "FADD R1, R0, R0") == KnownProducts(True, (("R", 0), ("R", 1)), ())
  sums = tuple(("R", 24 + k) for k in range(4))
  def ages(*lines: str) -> list[tuple[tuple[str, int], int]]:
    return [(unit, age) for unit, age, _ in products(ARRIVE, *lines).taken]
  assert ages(f"{PRODUCT}RZ, !UPT") == [(unit, 0) for unit in sums]
  assert ages(f"{PRODUCT}RZ, !UPT", f"{PRODUCT}R24, gsb0") == [(unit, 1) for unit in sums]
  assert ages(f"{PRODUCT}RZ, !UPT, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x1") == [(unit, 1) for unit in sums]
  assert ages(f"{PRODUCT}RZ, !UPT, gsb0", DONE) == []
  assert ages(f"{PRODUCT}RZ, !UPT", DONE) == [(unit, 0) for unit in sums], "it is in no group yet"

def test_what_is_told_is_known() -> None:
  """As a schedule that stands for a warp's begins with the warp's state."""
  found, made = products(ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0", "FADD R1, R0, R0"), Products()
  assert found.touched and found.taken
  made.tell(found)
  assert made.known() == found

def test_haste_is_foreseen() -> None:
  assert state(ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0", "FADD R0, R24, R24") is None
  assert state(ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0", DONE, "FADD R0, R24, R24") is not None

def test_a_result_that_comes_after_arrive_has_not_been_handed_over() -> None:
  late = ["[B------:R-:W0:-:S15] MUFU.RCP R24, R0", "[B------:R-:W-:-:S15] WARPGROUP.ARRIVE",
          f"[B0-----:R-:W-:-:S15] {PRODUCT}R24, gsb0"]
  code = [made_ready(assembled(late)[i:i + 16], "sm_90", i) for i in range(0, 48, 16)]
  schedule = PipelineState()
  with pytest.raises(MissingWait, match="R24 was read or written after the last WARPGROUP.ARRIVE"):
    for step in code: schedule.issue(step.inst, step.uses, step.control)
