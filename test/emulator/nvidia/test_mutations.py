"""Damaged kernels and pushbuffers: strict execution (EMULATE_STRICT=2) reports damages that change a result or break a
rule of the hardware.

In CI the mutants are the same each time. Nightly (--hypothesis-profile=nightly) there are some twenty times as many,
with another seed each time.
"""
from __future__ import annotations
import pytest
from formats.mutations import cases
from nvidia.box import code
from nvidia.warps import scheduled

from test.emulator.mutants import packet_mutations
from test.emulator.mutants.mutation_kernels import Case
from test.emulator.mutants.mutations import (
  MISSED, NOTICED, Mutant, Outcome, Recorder, counts, drawn_seed, judge, mutants, rate, run, shown)
from test.emulator.nvidia.mutation_kernels import exchanging
from test.emulator.nvidia.mutations import DAMAGES, NVIDIA, Listing
from test.emulator.nvidia.packet_mutations import CARDS, NVIDIA_PACKETS
from tinyhw.emulator.nvidia.warp.state import LANES
from tinyhw.isa.sass.table.control import NONE

ARCHS = ("sm_80", "sm_89", "sm_90")

@pytest.fixture(scope="module")
def of_kernels() -> list[Mutant]:
  return [mutant for arch in ARCHS for mutant in mutants(NVIDIA, arch, cases(80, 1000), drawn_seed())]

@pytest.fixture(scope="module")
def of_packets() -> list[Mutant]:
  count = cases(len(NVIDIA_PACKETS.damages), 20 * len(NVIDIA_PACKETS.damages))
  return [mutant for card in CARDS for mutant in packet_mutations.mutants(NVIDIA_PACKETS, card, count, drawn_seed())]

@pytest.mark.slow
def test_nearly_all_that_matters_is_reported(of_kernels: list[Mutant], of_packets: list[Mutant]) -> None:
  found = of_kernels + of_packets
  print(shown(counts(found)))
  noticed, mattered = rate(found)
  assert mattered >= 200 and noticed >= 0.95 * mattered, (f"{noticed} of {mattered}: "
                                                          f"{[m for m in found if m.verdict in MISSED]}")

@pytest.mark.slow
def test_every_broken_rule_is_reported(of_kernels: list[Mutant]) -> None:
  """Missing or weaker stalls, waits, scoreboards and barriers; and any other damage that breaks a rule."""
  assert not [m for m in of_kernels if m.verdict == "missed: a rule"]
  for kind in DAMAGES:
    noticed, mattered = rate(m for m in of_kernels if m.kind == kind.name)
    assert mattered > 5 and (noticed == mattered or not kind.rules), f"{kind.name}: {noticed} of {mattered}"

@pytest.mark.slow
def test_what_is_reported_is_wrong(of_kernels: list[Mutant]) -> None:
  """Either the oracle finds a broken rule, or results differ with strict checks off. There are no false alarms."""
  assert not [m for m in of_kernels if m.verdict == "unconfirmed"]

@pytest.mark.slow
def test_packets(of_packets: list[Mutant]) -> None:
  """Each invalidation, wait or semaphore that the driver leaves out is noticed."""
  noticed, mattered = rate(of_packets)
  assert mattered == len(of_packets) and noticed >= 0.95 * mattered, [m for m in of_packets if m.verdict not in NOTICED]
  assert {m.verdict for m in of_packets} >= {"reported", "by the card"}

@pytest.mark.slow
def test_lanes_that_part_are_reported() -> None:
  """Lanes that diverge without a barrier, which a swapped register may cause. It is reported with checks and without.
  """
  made = code("sm_90", ("buffer",), registers=(("r", 8),))
  text = scheduled(["S2R R0, SR_LANEID", "ISETP.LT.AND P0, PT, R0, 0x5, PT", "@P0 BRA there", "IADD3 R1, R0, 0x1, RZ",
                    "there:"])
  case = Case("lanes", "sm_90", made, (None,), (4,), 1)
  verdict, why = judge(NVIDIA, case, text, 0, Outcome(None, "", (bytes(4),), Recorder(1)), 1)
  assert verdict == "reported" and "no BSSY says where they reconverge" in why

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_shuffles_that_nobody_waits_for_are_reported(arch: str) -> None:
  """Each SHFL without its scoreboard, each without a wait for its result, and each whose source is not ready."""
  for case in exchanging(arch):
    listing, whole = Listing(arch, case.code.text), run(NVIDIA, case, case.code.text, 0, 1)
    shuffles = [k for k, (inst, _) in enumerate(listing.insts) if inst.row.name.startswith("SHFL")]
    assert len(shuffles) == (5 if case.code.lanes == LANES else 3) and whole.error is None
    for k in shuffles:
      (before, early), (inst, control) = listing.insts[k - 1:k + 1]
      reader = next(n for n in range(k + 1, len(listing.insts)) if listing.insts[n][1].wait >> control.write & 1)
      lines = {k: (inst, control._replace(write=NONE)),
               reader: (listing.insts[reader][0], listing.insts[reader][1]._replace(wait=0))}
      if set(before.writes()) & set(inst.reads()): lines[k - 1] = before, early._replace(stall=1)
      assert len(lines) == 3 or k == shuffles[0]
      for at, line in lines.items():
        verdict, why = judge(NVIDIA, case, listing.bytes([*listing.insts[:at], line, *listing.insts[at + 1:]]), 0,
                             whole, 1)
        assert verdict == "reported" and "(a result is read too early: " in why, (case.name, at, why)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_kernels_are_assembled_as_they_were(arch: str) -> None:
  for case in NVIDIA.cases(arch):
    listing = Listing(arch, case.code.text)
    assert listing.bytes(listing.insts) == case.code.text
