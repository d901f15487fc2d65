"""Damaged kernels: strict execution (EMULATE_STRICT=2) reports damages that change a result or break a rule of the
hardware.

In CI the mutants are the same each time. Nightly (--hypothesis-profile=nightly) there are twenty times as many, with
another seed each time.
"""
from __future__ import annotations
import pytest
from formats.mutations import cases

from test.emulator.mutants import mutation_kernels, packet_mutations
from test.emulator.amd.mutations import AMD, DAMAGES, Listing
from test.emulator.amd.packet_mutations import AMD_PACKETS
from test.emulator.mutants.mutations import NOTICED, Mutant, counts, drawn_seed, mutants, rate, shown

ARCHS = ("gfx1100", "gfx1200", "gfx942")

@pytest.fixture(scope="module")
def found() -> list[Mutant]:
  """Return the mutants of all architectures. In CI they are the same each time."""
  return [mutant for arch in ARCHS for mutant in mutants(AMD, arch, cases(96, 2240), drawn_seed())]

@pytest.mark.slow
def test_nearly_all_that_matters_is_reported(found: list[Mutant]) -> None:
  print(shown(counts(found)))
  noticed, mattered = rate(found)
  assert mattered >= 200 and noticed >= 0.95 * mattered, f"{noticed} of {mattered}"

@pytest.mark.slow
def test_level_1_reports_every_broken_rule() -> None:
  """Level 2 finds damages that only change a result because another register was meant."""
  found = [mutant for arch in ARCHS for mutant in mutants(AMD, arch, cases(32, 640), drawn_seed(), strict=1)]
  print(shown(counts(found)), "noticed, of what mattered:", *rate(found))
  assert not [m for m in found if m.verdict == "missed: a rule"]

@pytest.mark.slow
def test_every_broken_rule_is_reported(found: list[Mutant]) -> None:
  """Missing or weaker waits, wait states and barriers; and any other damage that breaks a rule."""
  assert not [m for m in found if m.verdict == "missed: a rule"]
  for kind in DAMAGES:
    noticed, mattered = rate([m for m in found if m.kind == kind.name])
    assert mattered > 5 and (noticed == mattered or not kind.rules), f"{kind.name}: {noticed} of {mattered}"

@pytest.mark.slow
def test_what_is_reported_is_wrong(found: list[Mutant]) -> None:
  """Either the oracle finds a broken rule, or results differ with strict checks off. There are no false alarms."""
  assert not [m for m in found if m.verdict == "unconfirmed"]

@pytest.mark.slow
@pytest.mark.parametrize("card", ARCHS)
def test_packets(card: str) -> None:
  """Each flush, cache flag, wait or signal that the driver leaves out is noticed."""
  count = sum(card in damage.cards for damage in AMD_PACKETS.damages)
  found = list(packet_mutations.mutants(AMD_PACKETS, card, cases(count, 8 * count), drawn_seed()))
  print(shown(counts(found)))
  noticed, mattered = rate(found)
  assert mattered == len(found) and noticed >= 0.95 * mattered, [m for m in found if m.verdict not in NOTICED]
  assert {m.verdict for m in found} >= {"reported", "by the card"}

@pytest.mark.parametrize("arch", ARCHS)
def test_kernels_are_assembled_as_they_were(arch: str) -> None:
  """Also with an instruction removed and put back: branches find their targets."""
  for case in mutation_kernels.cases("amd", arch):
    listing = Listing(arch, case.code.text)
    assert listing.bytes(listing.insts) == case.code.text
    shorter = Listing(arch, listing.bytes([inst if k else None for k, inst in enumerate(listing.insts)]))
    assert shorter.goals == {k - 1: goal - 1 for k, goal in listing.goals.items()}
