"""Control words of straight code and of loops: stalls, NOPs, scoreboards, waits."""
from __future__ import annotations

from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.late.schedule import Lines, schedule
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import JUMP_IF
from tinyhw.isa.sass.table.control import NONE
from tinyhw.isa.sass.table.form import Generation
from tinyhw.machine.ir.inst import Block, Function, MInst

def lines_of(*texts: str, arch: str = "sm_90") -> Lines:
  function = Function("text")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [parse(text, arch)[0] for text in texts]
  return schedule(function, Generation(arch))[0][1]

def stalls(*texts: str, arch: str = "sm_90") -> list[int]:
  return [control.stall for _, control in lines_of(*texts, arch=arch)]

def test_stalls() -> None:
  assert stalls("FADD R0, R1, R2", "FADD R3, R0, R0", "NOP") == [4, 1, 1]
  assert stalls("FADD R0, R1, R2", "NOP", "NOP", "IADD3 R3, R0, R0, RZ") == [1, 1, 3, 1]
  assert stalls("ISETP.EQ.AND P0, PT, R0, RZ, PT", "@P0 MOV R1, R2") == [13, 1]
  assert all(control.yields == (1 <= control.stall <= 11)
             for _, control in lines_of("ISETP.EQ.AND P0, PT, R0, RZ, PT", "@P0 MOV R1, R2"))

def test_what_is_read_is_not_overwritten_in_the_next_cycle() -> None:
  assert stalls("FADD R1, R0, R2", "LDS R0, [R8]") == [2, 2] and stalls("FADD R1, R0, R2", "MOV R0, R8") == [1, 1]

def test_what_no_stall_is_long_enough_for() -> None:
  lines = lines_of("HMMA.16816.F32 R4, R8, R12, R4", "FADD R0, R4, R5")
  assert [inst.row.name for inst, _ in lines] == ["HMMA.16816", "NOP",
                                                  "FADD"] and [control.stall for _, control in lines] == [15, 9, 1]

def boards(*texts: str) -> list[tuple[int, int, int]]: return [(c.write, c.read, c.wait) for _, c in lines_of(*texts)]

def test_scoreboards() -> None:
  found = boards("LDG.E R0, desc[UR4][R2.64]", "LDS R1, [R6]", "MUFU.RCP R4, R1", "STG.E desc[UR4][R2.64], R4",
                 "MOV R4, R0", "MOV R6, R0")
  assert found == [(0, 5, 0), (2, NONE, 0), (4, NONE, 0b100), (NONE, 5, 0b10000), (NONE, NONE, 0b100001),
                   (NONE, NONE, 0)]

def test_addresses_are_free_before_the_load_has_come() -> None:
  assert boards("LDG.E R0, desc[UR4][R2.64]", "MOV R2, R1") == [(0, 5, 0), (NONE, NONE, 0b100000)]

def test_loads_with_one_reader_share_a_scoreboard() -> None:
  loads = [f"LDS R{k}, [R8]" for k in range(4)]
  found = boards(*loads, "FADD R5, R0, R1", "FADD R6, R2, R3")
  assert [write for write, _, _ in found[:4]] == [2, 2, 3, 3] and [wait for _, _, wait in found[4:]] == [0b100, 0b1000]

def test_what_was_started_is_not_stalled_for_twice() -> None:
  assert all(control.stall >= 2 for _, control in lines_of("LDG.E R0, desc[UR4][R2.64]", "STG.E desc[UR4][R2.64], R4"))

def test_a_barrier_waits_for_shared_memory() -> None:
  lines = lines_of("LDS R0, [R1]", "LDG.E R6, desc[UR4][R4.64]", "STS [R2], R3", "BAR.SYNC.DEFER_BLOCKING 0x0")
  assert lines[3][1].wait == 0b100100

PRODUCT = "HGMMA.64x8x16.F32.BF16 R24, gdesc[UR8], "

def test_a_fence_is_waited_for_by_who_meets_others() -> None:
  found = boards("STS [R1], R2", "FENCE.VIEW.ASYNC.S", "MOV R4, R5", "BAR.SYNC.DEFER_BLOCKING 0x0")
  assert found == [(NONE, 5, 0), (4, NONE, 0b100000), (NONE, NONE, 0), (NONE, NONE, 0b10000)]
  for later in (f"{PRODUCT}RZ, !UPT", "UTMALDG.2D [UR8], [UR4]", "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR2], RZ"):
    assert boards("FENCE.VIEW.ASYNC.S", later)[1][2] == 0b10000

def test_registers_are_handed_over_when_they_are_there() -> None:
  """ARRIVE waits for all results, not for pending reads of sources. The wait for products waits for nothing else."""
  found = boards("LDS R24, [R1]", "LDG.E R0, desc[UR4][R2.64]", "STG.E desc[UR4][R2.64], R4", "WARPGROUP.ARRIVE",
                 f"{PRODUCT}R24, gsb0")
  assert [wait for _, _, wait in found] == [0, 0, 0, 0b101, 0]
  assert [wait for _, _, wait in boards("LDS R4, [R1]", "WARPGROUP.DEPBAR.LE gsb0, 0x0", "MOV R5, R4")] == [0, 0, 0b100]

def test_products_take_no_fixed_time() -> None:
  """Products follow each other at once. Their readers cause no stall, since WARPGROUP.DEPBAR is before them.

  A register that is read late stays.
  """
  assert stalls(f"{PRODUCT}RZ, !UPT", f"{PRODUCT}R24, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x0",
                "FADD R0, R24, R24") == [1, 1, 6, 1]
  assert (sum(stalls("MOV R24, R0", f"{PRODUCT}R24, gsb0")[:-1]) == 16
          and sum(stalls("R2UR UR8, R0", f"{PRODUCT}RZ, !UPT")[:-1]) == 15)
  assert boards("STG.E desc[UR4][R2.64], R24", f"{PRODUCT}RZ, !UPT")[1][2] == 0b100000

def test_registers_of_a_tensor_copy_are_kept() -> None:
  found = boards("UTMALDG.2D [UR8], [UR4]", "UMOV UR12, 0x0", "UMOV UR11, 0x1")
  assert found == [(NONE, 5, 0), (NONE, NONE, 0), (NONE, NONE, 0b100000)]

def test_float64_by_generation() -> None:
  assert ([(c.write, c.wait) for _, c in lines_of("DADD R0, R2, R4", "DADD R6, R0, R0", arch="sm_80")]
          == [(4, 0), (4, 0b10000)])
  assert [(c.write, c.stall) for _, c in lines_of("DADD R0, R2, R4", "DADD R6, R0, R0")] == [(NONE, 8), (NONE, 2)]

def test_a_loop_meets_its_own_end() -> None:
  """The beginning of the loop waits for instructions at its end. Stalls for instructions before the loop are before
  it."""
  function = Function("loop")
  first, loop, end = function.new_block(), function.new_block(depth=1), function.new_block()
  first.insts = [parse("MOV R0, RZ", "sm_90")[0]]
  body = ("FADD R1, R0, R0", "LDG.E R0, desc[UR4][R2.64]", "ISETP.EQ.AND P0, PT, R4, RZ, PT")
  loop.insts = [*(parse(text, "sm_90")[0] for text in body),
                MInst(JUMP_IF, [loop, regs.reg(regs.P, 0), 0], None, ([],))]
  end.insts = [parse("EXIT", "sm_90")[0]]
  scheduled = schedule(function, Generation("sm_90"))
  start = [(inst.row.name, control) for inst, control in scheduled[1][1]]
  assert start[0][0] == "FADD" and start[0][1].wait == 1, "R0 comes from before the loop, or from its load"
  assert scheduled[0][1][-1][1].stall == 11 and scheduled[1][1][-2][1].stall == 13
