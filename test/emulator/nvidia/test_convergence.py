"""Lanes that diverge and reconverge: in any order of the paths, nested, in loops, with lanes that exit; refusals."""
from __future__ import annotations

import pytest

from nvidia.warps import ORIGIN, assembled, block_of
from tinyhw.emulator.errors import EmulatorError, Hang, MissingHazard, MissingWait
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.warp.state import LANES

SLOW, NUMBERS = "[B------:R-:W-:-:S13] ", list(range(LANES))

def placed(text: str) -> list[str]:
  """Return lines, each slow enough for the next one unless it has a control word. `name:` is a label, which a line may
  name."""
  lines: list[str] = []
  places: dict[str, int] = {}
  for line in (part.strip() for part in text.strip().splitlines()):
    if not line: continue
    if line.endswith(":"): places[f"<{line[:-1]}>"] = ORIGIN + 16 * len(lines)
    else: lines.append(line if line.startswith("[") else SLOW + line)
  for name, at in places.items(): lines = [line.replace(name, hex(at)) for line in lines]
  return lines

def executed(text: str, seed: int, arch: str = "sm_90", threads: int = LANES, **predicates: int) -> ThreadBlock:
  """Execute lines. R0 has the lanes' numbers, R1 and R2 are 0."""
  block = block_of(assembled(placed(text), arch), arch, registers={0: NUMBERS, 1: [0], 2: [0]}, seed=seed,
                   threads=threads,
                   predicates={int(name[1:]): mask for name, mask in predicates.items()})
  block.run()
  return block

EITHER = """
  BSSY B0, <after>
  @P0 BRA <yes>
  IADD3 R1, R0, 0x100, RZ
  BRA <sync>
yes:
  IADD3 R1, R0, 0x200, RZ
sync:
  BSYNC B0
after:
  IADD3 R2, R1, R2, RZ
"""

@pytest.mark.parametrize("arch", ("sm_80", "sm_89", "sm_90"))
@pytest.mark.parametrize("mask", (0, 0xffffffff, 0xffff, 0x80000001))
def test_either_way(arch: str, mask: int) -> None:
  for seed in range(6):
    warp = executed(EITHER, seed, arch, P0=mask).warps[0]
    assert warp.registers[2] == [lane + (0x200 if mask >> lane & 1 else 0x100) for lane in NUMBERS]
    assert not warp.convergence.barriers and warp.ended

def test_lanes_are_together_where_they_meet() -> None:
  """A vote after BSYNC is one of all lanes. One before it is of the lanes of its way."""
  text = EITHER.replace("IADD3 R1, R0, 0x100, RZ", "VOTE.ANY R1, PT, PT").replace("IADD3 R1, R0, 0x200, RZ",
                                                                                  "VOTE.ANY R1, PT, PT")
  text = text.replace("IADD3 R2, R1, R2, RZ", "VOTE.ANY R2, PT, PT")
  for seed in range(6):
    warp = executed(text, seed, P0=0xff).warps[0]
    assert warp.registers[1] == [0xff] * 8 + [0xffffff00] * 24 and warp.registers[2] == [0xffffffff] * 32

@pytest.mark.slow
def test_a_loop_that_lanes_leave_one_by_one() -> None:
  """R1 counts to R0. The loop runs often enough to be translated where lanes do not diverge."""
  text = """
    BSSY B0, <after>
  again:
    IADD3 R1, R1, 0x1, RZ
    ISETP.LT.AND P0, PT, R1, R0, PT
    @P0 BRA <again>
    BSYNC B0
  after:
    IADD3 R2, R2, 0x1, RZ
    ISETP.LT.AND P1, PT, R2, 0x14, PT
    @P1 MOV R1, RZ
    @P1 BRA <begin>
  """
  for seed in range(3):
    warp = executed("begin:\n" + text, seed).warps[0]
    assert warp.registers[1] == [max(lane, 1) for lane in NUMBERS] and warp.registers[2] == [20] * LANES

def test_paths_inside_of_paths() -> None:
  text = """
    BSSY B0, <after>
    @P0 BRA <out>
    BSSY B1, <inner>
    @P1 BRA <meet>
    IADD3 R1, R1, 0x1, RZ
  meet:
    BSYNC B1
  inner:
    VOTE.ANY R2, PT, PT
  out:
    BSYNC B0
  after:
    IADD3 R1, R1, 0x10, RZ
  """
  for seed in range(6):
    warp = executed(text, seed, P0=0xff00, P1=0xf0f0f0f0).warps[0]
    assert warp.registers[1] == [0x10 + (not (0xff00 | 0xf0f0f0f0) >> lane & 1) for lane in NUMBERS]
    assert warp.registers[2] == [0 if 0xff00 >> lane & 1 else 0xffff00ff for lane in NUMBERS]

def test_lanes_that_end_are_not_waited_for() -> None:
  text = EITHER.replace("IADD3 R1, R0, 0x200, RZ", "EXIT")
  for seed in range(6):
    assert executed(text, seed, P0=0xffff).warps[0].registers[2] == [0] * 16 + [lane + 0x100 for lane in NUMBERS[16:]]
    assert executed(EITHER.replace("BSYNC B0", "EXIT"), seed,
                    P0=0xf).warps[0].registers[2] == [0] * LANES, "all end on their paths"

def test_a_way_may_wait_for_another_one() -> None:
  """Lanes spin until another lane has written. Whichever way is first, the other one gets on, too."""
  text = """
    BSSY B0, <after>
    @P0 BRA <writer>
  spin:
    [B------:R-:W0:-:S02] LDS R2, [RZ]
    [B0-----:R-:W-:-:S13] ISETP.EQ.AND P1, PT, R2, RZ, PT
    @P1 BRA <spin>
    BRA <sync>
  writer:
    STS [RZ], R0
  sync:
    BSYNC B0
  after:
  """
  for seed in range(6):
    lines = ["STS [RZ], R1", "[B------:R-:W0:-:S02] LDS R3, [RZ]", "[B0-----:R-:W-:-:S13] MOV R4, R3"]
    code = assembled(placed("\n".join(lines) + text))
    block = block_of(code, registers={0: NUMBERS, 1: [0], 2: [0]}, predicates={0: 1 << 31}, shared=64, seed=seed)
    block.run()
    assert block.warps[0].registers[2] == [31] * 31 + [0]

def test_paths_that_wait_for_each_other() -> None:
  text = """
    BSSY B0, <after>
    BSSY B1, <after>
    @P0 BRA <other>
    BSYNC B0
  other:
    BSYNC B1
  after:
  """
  for seed in range(4):
    with pytest.raises(Hang, match="lanes 0x.* wait at B0 for 0x.*, lanes 0x.* wait at B1 for 0x.*: none can go on"):
      executed(text, seed, P0=0xf)

@pytest.mark.parametrize("text, message", [
  ("@P0 BRA <x>\nx:", "lanes 0x0000000f of 0xffffffff branch, and no BSSY says where they reconverge"),
  ("BSYNC B0", "BSYNC of B0, which no BSSY has set"),
  ("BSSY B0, <x>\nBSSY B0, <x>\nx:", "B0 is set, and lanes 0xffffffff have not reconverged at it"),
  ("BSSY B0, <x>\n@P0 BSYNC B0\nx:", "by some lanes of a path only"),
  (EITHER.replace("IADD3 R1, R0, 0x200, RZ", "BAR.SYNC.DEFER_BLOCKING 0x0").replace("IADD3 R1, R0, 0x100, RZ",
                                                                                    "BAR.SYNC.DEFER_BLOCKING 0x0"),
   "some lanes of a warp are at a barrier"),
  (EITHER.replace("IADD3 R1, R0, 0x200, RZ", "UMOV UR6, 0x1"), "UR6 is written while lanes have diverged"),
])
def test_what_is_refused(text: str, message: str) -> None:
  with pytest.raises(EmulatorError, match=message):
    for seed in range(8): executed(text, seed, P0=0xf)

STORED = "[B------:R1:W-:-:S02] STS [RZ], R1\n[B-1----:R-:W-:-:S13] NOP\n"

def test_each_way_keeps_its_own_time() -> None:
  """A wait that one way lacks is needed where they meet. Stalls of one way need not cover another one that runs later.
  """
  load = EITHER.replace("IADD3 R1, R0, 0x200, RZ", "[B------:R-:W0:-:S02] LDS R1, [RZ]")
  fast = EITHER.replace("IADD3 R1, R0, 0x200, RZ", "[B------:R-:W-:-:S01] VOTE.ANY R1, PT, PT").replace(
    "BSYNC B0", "[B------:R-:W-:-:S05] BSYNC B0")
  for text, error in ((load, MissingWait), (fast, MissingHazard)):
    for seed in range(4):
      block = block_of(assembled(placed(STORED + text)), registers={0: NUMBERS, 1: [0], 2: [0]}, predicates={0: 0xf},
                       shared=64, seed=seed)
      with pytest.raises(error, match="R1 is"): block.run()
  waited = load.replace("IADD3 R2, R1", "[B0-----:R-:W-:-:S13] IADD3 R2, R1")
  block = block_of(assembled(placed(STORED + waited)), registers={0: NUMBERS, 1: [0], 2: [0]}, predicates={0: 0xf},
                   shared=64)
  block.run()
  assert block.warps[0].registers[2] == [0] * 4 + [lane + 0x100 for lane in NUMBERS[4:]]
