"""The content of the rows. All of them can be made."""
from __future__ import annotations

import pytest

from nvidia.golden import vectors
from tinyhw.errors import EncodeError
from tinyhw.isa.sass.asm.decode import decode
from tinyhw.isa.sass.table import table as rows_by_key
from tinyhw.isa.sass.table.control import NONE
from tinyhw.isa.sass.table.form import CONTROL_BIT, GENERATIONS
from tinyhw.isa.sass.table.table import table
from tinyhw.machine.ir.inst import Access, Effect

@pytest.mark.parametrize("arch", GENERATIONS)
def test_every_row_can_be_made(arch: str) -> None:
  for row in table(arch):
    form = row.isa.format
    assert form.width == 128 and form.constant >> CONTROL_BIT == 0, row.isa.key
    assert row.pipe and len(row.operands) == len(row.isa.specs), row.isa.key

@pytest.mark.parametrize("arch,key,accesses,effects", [
  ("sm_90", "FFMA/223", {"d": Access.WRITE, "a": Access.READ, "c": Access.READ, "guard": Access.READ}, Effect.NONE),
  ("sm_90", "ISETP/20c", {"pu": Access.WRITE, "pv": Access.WRITE, "pp": Access.READ}, Effect.NONE),
  ("sm_90", "LDG/981", {"d": Access.WRITE, "ub": Access.READ, "a": Access.READ}, Effect.LOAD),
  ("sm_90", "STG/986", {"a": Access.READ, "b": Access.READ}, Effect.STORE),
  ("sm_90", "EXIT/94d", {"pp": Access.READ}, Effect.END),
  ("sm_90", "BRA/947", {"pp": Access.READ}, Effect.JUMP),
  ("sm_90", "BAR/b1d", {"id": Access.READ}, Effect.BARRIER),
])
def test_roles_and_effects(arch: str, key: str, accesses: dict[str, Access], effects: int) -> None:
  row = table(arch)[key]
  assert {name: row.operands[row.isa.index[name]].access for name in accesses} == accesses
  assert row.effects == effects

def test_what_schedulers_need() -> None:
  rows = table("sm_90")
  keys = ("FFMA/223", "DFMA/22b", "MUFU/308", "LDS/984", "S2R/919")
  assert [rows[key].isa.result for key in keys] == ["fixed", "fixed", "board", "board", "board"]
  assert [table(arch)["DFMA/22b"].isa.result for arch in ("sm_80", "sm_100", "sm_120")] == ["board", "fixed", "board"]
  assert [rows[key].isa.sources for key in ("STG/986", "FFMA/223")] == ["board", "fixed"]

@pytest.mark.slow
def test_what_takes_a_scoreboard_in_the_assembler_s_code_may_do_so() -> None:
  wrong = set()
  for v in vectors():
    inst, control = decode(v.code, 0, v.arch)
    form = inst.row.isa
    if control.write != NONE and form.result != "board" or control.read != NONE and form.sources != "board":
      wrong.add((v.arch, form.key))
  assert not wrong, sorted(wrong)

def test_what_stays_in_the_reuse_cache() -> None:
  def kept(key: str) -> dict[str, int]:
    return {spec.name: spec.reuse for spec in table("sm_90")[key].isa.specs if spec.reuse >= 0}
  assert kept("FFMA/223") == {"a": 0, "b": 1, "c": 2}
  assert kept("FFMA/423") == {"a": 0, "b": 1} and kept("FADD/221") == {"a": 0,
                                                                       "b": 2} and kept("FFMA/e23") == {"a": 0, "b": 1}
  assert kept("LDS/984") == kept("MUFU/308") == {} and kept("HMMA.16816/23c") == {"a": 0, "b": 1}

def test_forms_of_a_generation() -> None:
  assert [row.isa.key for row in table("sm_80").rows_of("FFMA")] == [
    "FFMA/223", "FFMA/423", "FFMA/623", "FFMA/823", "FFMA/a23", "FFMA/c23", "FFMA/e23"]
  assert [row.isa.key for row in table("sm_100a").rows_of("FFMA")] == ["FFMA/223", "FFMA/423", "FFMA/823", "FFMA/c23",
                                                                       "FFMA/e23"]
  assert "LDCU/7ac" in table("sm_120") and "LDCU/7ac" not in table("sm_90")

def test_an_unknown_key() -> None:
  with pytest.raises(EncodeError, match="sm_100 has no instruction FFMA/a23; its forms are FFMA/223, FFMA/423"):
    table("sm_100")["FFMA/a23"]

def test_an_interrupt_while_forms_are_listed_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
  rows = rows_by_key.Table("sm_90")
  def interrupted(*given: object) -> object:
    assert not rows.known   # another thread would find this now
    raise KeyboardInterrupt
  with monkeypatch.context() as patch:
    patch.setattr(rows_by_key, "line_of", interrupted)
    with pytest.raises(KeyboardInterrupt): rows["FFMA/223"]
  assert rows["FFMA/223"].isa.key == "FFMA/223"
