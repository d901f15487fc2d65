"""The checks of a schedule in advance find the same as its execution. State that can make no difference is forgotten.
"""
from __future__ import annotations
import random

import pytest
from nvidia.warps import ORIGIN, assembled, scheduled

from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.nvidia.checks.foresight import CheckState, foresee, known, tell
from tinyhw.emulator.nvidia.checks.strict import PipelineState
from tinyhw.emulator.nvidia.execute.decoded import DecodedInstruction, made_ready
from tinyhw.isa.sass.model.latency import LATENCIES, LATE_READERS, MOST

START = known(PipelineState())
LINES = ["FADD R0, R1, R2", "IADD3 R3, R0, R1, RZ", "MUFU.RCP R4, R3", "FMUL R5, R4, R0",
         "ISETP.LT.AND P0, PT, R1, R2, PT", "@P0 MOV R6, R5",
         "LDS.64 R8, [R6]", "DADD R10, R8, R8", "STS [R3], R10", "IMAD.WIDE R12, R0, R1, R8", "F2I.TRUNC.NTZ R14, R5"]

def steps(code: bytes) -> list[DecodedInstruction]:
  return [made_ready(code[i:i + 16], "sm_90", ORIGIN + i) for i in range(0, len(code), 16)]

def issued(before: CheckState, what: list[DecodedInstruction]) -> str:
  """Return the error of issuing steps, or ""."""
  schedule = PipelineState()
  tell(schedule, before)
  try:
    for step in what: schedule.issue(step.inst, step.uses, step.control)
  except StrictError as e: return e.message
  return ""

def hasty(source: random.Random, line: str) -> str:
  """Return a line with any control word."""
  waits, late, board = source.choice(("------", "0-2---", "012345")), source.choice("-25"), source.choice("-02")
  return f"[B{waits}:R{late}:W{board}:Y:S{source.randint(2, 11):02d}] {line}"

def test_the_parts_of_a_way_are_the_whole() -> None:
  """To save and restore the state in between changes nothing of the rest, also for code with too short waits."""
  source, errors = random.Random(1), 0
  for _ in range(60):
    lines = [source.choice(LINES) for _ in range(12)]
    code = steps(scheduled(lines) if source.random() < 0.5 else assembled([hasty(source, line) for line in lines]))
    schedule, state = PipelineState(), START
    for i, step in enumerate(code):
      following = foresee(state, [step])
      assert (following is None) == bool(said := issued(state, [step]))
      try: schedule.issue(step.inst, step.uses, step.control)
      except StrictError as e:
        assert said == e.message
        errors += 1
        break
      assert said == "" and following == known(schedule)
      state = following
    else: assert foresee(START, code) == state
  assert 5 < errors < 55

def test_time_forgets() -> None:
  code = steps(assembled(["[B------:R-:W-:-:S15] DADD R0, R2, R2", "[B------:R-:W-:-:S15] NOP"]))
  state = foresee(START, code)
  assert state is not None and state.due == () and state.fetched == ()
  assert foresee(START, [*code, code[1]]) == foresee(START, [*code, code[1], code[1]]) == START
  assert MOST >= max(max(latency) for latency in LATENCIES.values()) and max(LATE_READERS.values()) < MOST

@pytest.mark.parametrize("line,left", [("MUFU.RCP R0, R1", "written"), ("STS [R0], R1", "read")])
def test_scoreboards_are_kept(line: str, left: str) -> None:
  state = foresee(START,
                  steps(assembled([f"[B------:R2:W-:Y:S11] {line}", "[B------:R-:W-:-:S15] NOP",
                                   "[B------:R-:W-:-:S15] NOP"])))
  assert state is not None and getattr(state, left) and state.taken == ()
