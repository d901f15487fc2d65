"""Registers that instructions read and write, whether they decide on execution, and waits for them."""
from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import JUMP_IF
from tinyhw.isa.sass.table.uses import MAKES, WANTS, uses_of
from tinyhw.machine.ir.inst import Block, MInst

# the result of uses_of
def uses(text: str, arch: str = "sm_90"): return uses_of(parse(text, arch)[0])  # type: ignore[no-untyped-def]

def test_registers() -> None:
  found = uses("@!P2 IMAD.WIDE R4, R1, R2, RZ")
  assert set(found.reads) == {(("R", 1), False), (("R", 2), False),
                              (("P", 2), True)} and found.writes == (("R", 4), ("R", 5))
  assert not found.board and not found.late
  assert uses("MOV RZ, RZ") == ((), (), False, False, False, "")

def test_memory() -> None:
  load = uses("LDG.E.64 R4, desc[UR4][R2.64]")
  assert load.board and load.late and {unit for unit, _ in load.reads} == {("R", 2), ("R", 3), ("UR", 4)}
  store = uses("STG.E desc[UR4][R2.64], R6")
  assert store.late and not store.board and ("R", 6) in {unit for unit, _ in store.reads}

def test_generations_differ() -> None:
  assert uses("DADD R0, R2, R4", "sm_80").board and not uses("DADD R0, R2, R4").board

def test_asynchronous_products() -> None:
  found = uses("HGMMA.64x8x16.F32.BF16 R24, R16, gdesc[UR4], R24, !UP0, gsb0")
  assert (found.product and found.view == WANTS and not found.board and not found.late
          and found.writes == tuple(("R", 24 + k) for k in range(4)))
  assert {unit for unit, _ in found.reads} == {*found.writes, *(("R", 16 + k) for k in range(4)), ("UR", 4), ("UR", 5),
                                               ("UP", 0)}
  assert (uses("FENCE.VIEW.ASYNC.S").view == MAKES and uses("BAR.SYNC.DEFER_BLOCKING 0x0").view == WANTS
          and not uses("MOV R0, R1").view)

def test_all_registers_of_a_tensor_copy() -> None:
  assert {unit for unit, _ in uses("UTMALDG.3D [UR8], [UR4]").reads} == {("UR", k) for k in (4, 5, *range(8, 13))}

def test_jumps() -> None:
  found = uses_of(MInst(JUMP_IF, [Block(0), regs.reg(regs.P, 1), 0]))
  assert found.reads == ((("P", 1), True),) and not found.writes
