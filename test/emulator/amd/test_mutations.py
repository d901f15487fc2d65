"""Damaged kernels: strict execution (EMULATE_STRICT=2) reports what changes a result or breaks a rule of the hardware.

In CI the same mutants each time; nightly (--hypothesis-profile=nightly) twenty times as many, with another seed each
time.
"""
from __future__ import annotations
import pytest
from mutations import cases

from test.emulator import mutation_kernels, packet_mutations
from test.emulator.amd.mutations import AMD, DAMAGES, Listing
from test.emulator.amd.packet_mutations import AMD_PACKETS
from test.emulator.mutations import NOTICED, Mutant, counts, drawn_seed, mutants, rate, shown

ARCHS = ("gfx1100", "gfx1200", "gfx942")

@pytest.fixture(scope="module")
def found() -> list[Mutant]:
  """The mutants of all architectures. In CI they are the same each time."""
  return [mutant for arch in ARCHS for mutant in mutants(AMD, arch, cases(96, 2240), drawn_seed())]

@pytest.mark.slow
def test_nearly_all_that_matters_is_reported(found: list[Mutant]) -> None:
  print(shown(counts(found)))
  noticed, mattered = rate(found)
  assert mattered >= 200 and noticed >= 0.95 * mattered, f"{noticed} of {mattered}"

def test_level_1_reports_every_broken_rule() -> None:
  """What only changes a result, because another register was meant, is what level 2 is for."""
  found = [mutant for arch in ARCHS for mutant in mutants(AMD, arch, cases(32, 640), drawn_seed(), strict=1)]
  print(shown(counts(found)), "noticed, of what mattered:", *rate(found))
  assert not [m for m in found if m.verdict == "missed: a rule"]

def test_every_broken_rule_is_reported(found: list[Mutant]) -> None:
  """Waits, wait states and barriers that are gone or weaker; and whatever else in any class of damage breaks a rule."""
  assert not [m for m in found if m.verdict == "missed: a rule"]
  for kind in DAMAGES:
    noticed, mattered = rate([m for m in found if m.kind == kind.name])
    assert mattered > 5 and (noticed == mattered or not kind.rules), f"{kind.name}: {noticed} of {mattered}"

def test_what_is_reported_is_wrong(found: list[Mutant]) -> None:
  """The oracle finds a broken rule, or results are others where strict checks are off: there are no false alarms."""
  assert not [m for m in found if m.verdict == "unconfirmed"]

@pytest.mark.slow
@pytest.mark.parametrize("card", ARCHS)
def test_packets(card: str) -> None:
  """Flushes, cache flags, waits and signals that the driver leaves out: each is noticed."""
  count = sum(card in damage.cards for damage in AMD_PACKETS.damages)
  found = list(packet_mutations.mutants(AMD_PACKETS, card, cases(count, 8 * count), drawn_seed()))
  print(shown(counts(found)))
  noticed, mattered = rate(found)
  assert mattered == len(found) and noticed >= 0.95 * mattered, [m for m in found if m.verdict not in NOTICED]
  assert {m.verdict for m in found} >= {"reported", "by the card"}

@pytest.mark.parametrize("arch", ARCHS)
def test_kernels_are_assembled_as_they_were(arch: str) -> None:
  """Also without an instruction and put back: branches find their goals."""
  for case in mutation_kernels.cases("amd", arch):
    listing = Listing(arch, case.code.text)
    assert listing.bytes(listing.insts) == case.code.text
    shorter = Listing(arch, listing.bytes([inst if k else None for k, inst in enumerate(listing.insts)]))
    assert shorter.goals == {k - 1: goal - 1 for k, goal in listing.goals.items()}
