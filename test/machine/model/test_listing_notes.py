"""Notes on instructions: causes of waits, in straight code and around a loop, hazards, conflicts of lanes."""
from __future__ import annotations
import pytest

from amd.listed import ARCHS, laid_out, listed
from tinyhw.isa.amd.asm.syntax import parse
from tinyhw.isa.amd.describe import vendor_of
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import table
from tinyhw.isa.sass.asm.syntax import parse as parse_sass
from tinyhw.isa.sass.model.resources import Costs, model, touched
from tinyhw.machine.ir.inst import Function, MInst
from tinyhw.machine.model.access import Pattern
from tinyhw.machine.model.listing_notes import Noted, Notes
from tinyhw.machine.model.traffic import Traffic

def notes(*texts: str, arch: str = "gfx1100", loop: bool = False, pattern: Pattern | None = None) -> list[str]:
  """The notes of instructions at offsets 0, 100, 200 ..."""
  function = Function("test")
  block = function.new_block()
  block.insts += [parse(text, arch) for text in texts]
  if loop: block.insts.append(MInst(table(arch)["s_cbranch_scc1"], [block], None, ([],)))
  offsets = {id(inst): 100 * n for n, inst in enumerate(block.insts)}
  vendor = vendor_of(Generation(arch))
  traffic = Traffic(vendor.hardware, vendor.wave, lambda inst: pattern)
  found = Notes(vendor.noted, vendor.model(traffic), traffic, function, offsets).found
  return [found.get(id(inst), "") for inst in block.insts[:len(texts)]]

LOADS = ("global_load_b32 v1, v0, s[0:1]", "global_load_b64 v[2:3], v0, s[0:1]")

def test_a_wait_names_the_load_that_is_needed_next() -> None:
  assert notes(*LOADS, "s_waitcnt vmcnt(1)", "v_mov_b32 v4, v1")[2] == "vmcnt<=1: v1 of 0"
  assert notes(*LOADS, "s_waitcnt vmcnt(0)", "v_mov_b32 v4, v3")[2] == "vmcnt<=0: v[2:3] of 100"

def test_what_may_still_be_under_way_is_not_named() -> None:
  assert notes(*LOADS, "s_waitcnt vmcnt(1)", "v_mov_b32 v4, v2")[2] == "vmcnt<=1"

def test_counters_are_apart() -> None:
  text = notes(LOADS[0], "ds_load_b32 v2, v0", "s_waitcnt vmcnt(0) lgkmcnt(0)", "v_add_f32 v3, v1, v2")[2]
  assert text == "vmcnt<=0: v1 of 0, lgkmcnt<=0: v2 of 100"

def test_around_a_loop() -> None:
  assert notes("s_waitcnt vmcnt(0)", "v_mov_b32 v4, v1", LOADS[0], loop=True)[0] == "vmcnt<=0: v1 of 200, last time"

def test_a_barrier_waits_for_local_memory() -> None:
  assert notes("ds_store_b32 v0, v1", "s_waitcnt lgkmcnt(0)", "s_barrier")[1] == "lgkmcnt<=0: ds_store_b32 of 0"

@pytest.mark.parametrize("text, stride, note", [
  ("ds_load_b32 v1, v0", 4, ""), ("ds_load_b32 v1, v0", 16, "banks x4"),
  ("ds_store_b128 v0, v[4:7]", 16, ""), ("ds_store_b128 v0, v[4:7]", 64, "banks x4"),
  ("global_load_b32 v1, v0, s[0:1]", 4, ""), ("global_load_b32 v1, v0, s[0:1]", 256, "32 sectors, not 2"),
  ("v_mov_b32 v0, v1", 4, "")])
def test_lanes_in_each_others_way(text: str, stride: int, note: str) -> None:
  assert notes(text, pattern=Pattern((tuple(range(0, 32 * stride, stride)),), 1.0, 1.0)) == [note]

def test_hazards_say_which_register_is_late() -> None:
  function, _ = laid_out("gfx942")
  comments = [inst.comment for block in function.blocks for inst in block.insts if inst.row.name == "s_nop"]
  assert comments == ["hazard: v7 in 1 state", "hazard: v16 in 4 states"]

@pytest.mark.parametrize("arch", ARCHS)
def test_every_wait_of_the_listed_kernel_says_for_what(arch: str) -> None:
  waits = [line for line in listed(arch).splitlines() if "<=" in line]
  assert len(waits) == 3 and all(" of " in line for line in waits)

def test_scoreboards_of_nvidia() -> None:
  """The instruction itself has the wait. The note on a scoreboard of sources names the registers."""
  function, texts = Function("test"), ("[B------:R5:W0:-:S02] LDG.E R0, desc[UR4][R2.64]",
                                       "[B0-----:R-:W-:-:S01] FFMA R1, R0, R0, R0",
                                       "[B-----5:R-:W-:-:S01] MOV R2, R1", "[B------:R-:W-:-:S01] MOV R3, R1")
  lines = [parse_sass(text, "sm_80") for text in texts]
  function.new_block().insts += [inst for inst, _ in lines]
  own = Costs("sm_80", None, {id(inst): control for inst, control in lines})
  noted = Noted(touched, lambda inst: False, lambda inst: False, lambda inst: 0, lambda inst: False, own.held)
  found = Notes(noted, model(own), own.traffic, function, {id(inst): 16 * n for n, (inst, _) in enumerate(lines)}).found
  assert [found.get(id(inst), "") for inst, _ in lines] == ["", "sb0<=0: R0 of 0", "sb5<=0: R2 of 0", ""]
