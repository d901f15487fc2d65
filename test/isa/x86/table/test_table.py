"""Rows: their keys, operands and properties."""
from __future__ import annotations
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.x86.rows import floats
from tinyhw.isa.x86.table import regs, table
from tinyhw.isa.x86.table.table import TABLE, assemble, mnemonic_of
from tinyhw.machine.ir.inst import Effect, Inst

ROOT = Path(__file__).resolve().parents[4]

def access_of(key: str) -> list[str]:
  return [f"{o.name}{':=+'[o.access - 1]}" for o in TABLE[key].operands if o.cls is not None]

@pytest.mark.parametrize("key,expected", [
  ("vaddps_y_y_y", ["dst=", "src0:", "src1:"]),
  ("vaddps_yk_y_y", ["dst+", "mask:", "src0:", "src1:"]),
  ("vaddps_ykz_y_y", ["dst=", "mask:", "src0:", "src1:"]),
  ("vaddps_y_y_m", ["dst=", "src0:", "base:", "index:"]),
  ("vfmadd231ps_zkz_z_b", ["dst+", "mask:", "src0:", "base:", "index:"]),
  ("add_r64_i32", ["dst+"]), ("cmp_r64_r64", ["src0:", "src1:"]), ("add_m32_r32", ["base:", "index:", "src0:"]),
  ("vgatherdps_y_my_y", ["dst+", "base:", "index:", "dst+"]),
  ("vgatherdps_zk_mz", ["dst+", "mask+", "base:", "index:"]),
  ("vscatterdps_mzk_z", ["base:", "index:", "mask+", "src0:"]),
  ("vcmpps_kk_z_z_i8", ["dst=", "mask:", "src0:", "src1:"]),
  ("vmovups_mk_z", ["base:", "index:", "mask:", "src0:"]), ("vblendmps_zk_z_z", ["dst=", "mask:", "src0:", "src1:"]),
  ("shl_r32_cl", ["dst+", "src0:"]), ("mulx_r64_r64_r64", ["dst=", "dst=", "src0:", "src1:"]),
  ("div_r32", ["dst+", "dst+", "src0:"]), ("lock_cmpxchg_m64_r64", ["base:", "index:", "src0:", "dst+"])])
def test_operands(key: str, expected: list[str]) -> None:
  assert access_of(key) == expected

def test_fixed_registers() -> None:
  assert [o.fixed for o in TABLE["idiv_r64"].operands] == [0, 2, None]
  assert TABLE["shl_r64_cl"].operands[1].fixed == 1
  assert TABLE["syscall"].clobbers == ((regs.GPR, 1), (regs.GPR, 11))

@pytest.mark.parametrize("key,effects", [
  ("add_m64_r64", Effect.LOAD | Effect.STORE | Effect.WRITE_FLAGS),
  ("adc_r64_r64", Effect.READ_FLAGS | Effect.WRITE_FLAGS),
  ("vmovups_y_m", Effect.LOAD), ("vmovups_m_y", Effect.STORE), ("lea_r64_m", Effect.NONE),
  ("shlx_r64_r64_r64", Effect.NONE),
  ("jne_rel", Effect.READ_FLAGS | Effect.JUMP), ("jmp_rel", Effect.JUMP | Effect.END), ("ret", Effect.END),
  ("call_r64", Effect.CALL),
  ("vgatherdps_zk_mz", Effect.LOAD), ("vpscatterdd_mzk_z", Effect.STORE), ("vpbroadcastd_z_r32", Effect.NONE)])
def test_effects(key: str, effects: Effect) -> None:
  assert TABLE[key].effects == effects

@pytest.mark.parametrize("key,feature", [
  ("add_r64_r64", "base"), ("vaddps_y_y_y", "avx"), ("vaddps_z_z_z", "avx512f"), ("vaddps_yk_y_y", "avx512f,avx512vl"),
  ("vpaddd_y_y_y", "avx2"),
  ("vfmadd213ss_x_x_x", "fma"), ("vcvtph2ps_y_m", "f16c"), ("shlx_r32_r32_r32", "bmi2"),
  ("vpdpbusd_z_z_z", "avx512vnni"),
  ("kmovw_k_r32", "avx512f"), ("kmovq_k_r64", "avx512bw"), ("vandps_z_z_z", "avx512dq"), ("vpermd_y_y_y", "avx2")])
def test_features(key: str, feature: str) -> None:
  assert TABLE[key].feature == feature

def test_commuting_operands() -> None:
  assert TABLE["add_r64_r64"].commutes == (0, 1)
  assert TABLE["vfmadd213ps_y_y_y"].commutes == (0, 1)
  assert TABLE["vfmadd132ps_y_y_y"].commutes == (0, 2)
  assert TABLE["sub_r64_r64"].commutes is None and TABLE["vfmadd132ps_y_y_m"].commutes is None
  assert TABLE["mov_r32_i32"].rematerialize and not TABLE["mov_m32_i32"].rematerialize

def test_keys_are_those_of_their_rows() -> None:
  rows = list(TABLE)
  assert len(rows) > 9000
  assert len({row.isa.key for row in rows}) == len(rows)
  assert all(mnemonic_of(row.isa.key) == row.name and TABLE[row.isa.key] is row for row in rows)

def test_a_key_that_does_not_exist() -> None:
  with pytest.raises(EncodeError, match="vzeroupper has no form vzeroupper_y; it has vzeroupper"): TABLE["vzeroupper_y"]
  with pytest.raises(EncodeError, match="no instruction is called vfoo"): TABLE["vfoo_y"]
  assert "vaddps_y_y_y" in TABLE and "vaddps_y_y" not in TABLE

def test_assemble_fills_in_fixed_registers() -> None:
  rax, rdx, rcx = (regs.reg(regs.R64, i) for i in (0, 2, 1))
  assert assemble("div_r64", rcx).operands == [rax, rdx, rcx]
  assert assemble("mov_r64_m64", rcx, (rax, None, 1, 8)).operands == [rcx, rax, None, 1, 8]

def test_a_process_pays_for_the_rows_that_it_uses() -> None:
  program = (f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tinyhw.isa.x86.table.table import TABLE; "
             "TABLE['vaddps_y_y_m']; print(len(TABLE.made))")
  done = subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, capture_output=True, text=True)
  assert int(done.stdout) == 1

def test_an_interrupt_while_keys_are_listed_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
  rows = table.Table((floats.TEXT,))
  def interrupted(*_: object) -> Iterator[tuple[str, table.Variant]]:
    yield from ()
    raise KeyboardInterrupt
  with monkeypatch.context() as patch:
    patch.setattr(table, "variants_of", interrupted)
    with pytest.raises(KeyboardInterrupt): rows["vaddps_y_y_y"]
  assert rows["vaddps_y_y_y"].isa.key == "vaddps_y_y_y"

def test_another_thread_finds_all_keys_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
  rows, made = table.Table((floats.TEXT,)), table.variants_of
  seen: list[object] = []
  def slowly(*given: object) -> Iterator[tuple[str, table.Variant]]:
    seen.extend(rows._keys.values())  # the keys that another thread would find now
    return made(*given)  # type: ignore[arg-type]  # as they are
  monkeypatch.setattr(table, "variants_of", slowly)
  assert rows["vaddps_y_y_y"].isa.key == "vaddps_y_y_y" and not seen

def test_equal_rows_made_by_two_threads_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
  rows, made = table.Table((floats.TEXT,)), table.make_row
  other: list[Inst] = []
  def twice(*given: object) -> Inst:
    if not other:
      other.append(made(*given))  # type: ignore[arg-type]  # as they are
      rows.made[other[0].isa.key] = other[0]  # another thread is faster
    return made(*given)  # type: ignore[arg-type]  # as they are
  monkeypatch.setattr(table, "make_row", twice)
  assert rows["vaddps_y_y_y"] is other[0] is rows["vaddps_y_y_y"]
