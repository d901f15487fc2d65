"""The rows of RISC-V: variants, and what holds for all of them."""
from __future__ import annotations

from tinyhw.isa.riscv64.table import regs
from tinyhw.isa.riscv64.table.table import TABLE, formats_of
from tinyhw.machine.ir.inst import Access, Effect

def test_formats_of_a_line() -> None:
  line = "fmul.$  00010FFmmmmmnnnnnrrrddddd1010011  Fd=, Fn, Fm  s d"
  assert [made.split("  ")[0] for made in formats_of(line)] == ["fmul.s", "fmul.d"]
  assert list(formats_of("@ load i load")) == ["@ load i load"]

def test_a_format_is_two_bits_and_a_feature() -> None:
  words = {row.name: (row.isa.value >> 25 & 3, row.feature) for name in ("fmul.s", "fmul.d", "fmul.h")
           for row in TABLE.rows(name)}
  assert words == {"fmul.s": (0, "f"), "fmul.d": (1, "d"), "fmul.h": (2, "zfh")}

def test_all_rows() -> None:
  rows = list(TABLE)
  assert len(rows) > 1500
  for row in rows:
    form = row.isa
    assert form.value & 3 == 3 and form.value & ~form.mask == 0 and row.pipe and row.feature, form.text
    writes = [o for o in row.operands if o.access & Access.WRITE]
    assert writes or row.effects & ~Effect.READ_FLAGS or row.name in ("nop",), f"{row.name} {form.text} does nothing"

def test_masked_rows_keep_old_elements_and_read_v0() -> None:
  for row in TABLE:
    if not row.isa.text.endswith("v0.t") or row.effects & Effect.STORE: continue
    result, mask = row.operands[0], row.operands[-1]
    assert (mask.fixed, mask.access) == (0, Access.READ)
    if result.cls is not None and result.cls.bank is regs.VECTOR: assert result.access is Access.BOTH, row.isa.text

def test_two_rows_of_one_word_are_spellings() -> None:
  seen: dict[tuple[int, int], list[str]] = {}
  for row in TABLE: seen.setdefault((row.isa.mask, row.isa.value), []).append(f"{row.name} {row.isa.text}")
  assert not [texts for texts in seen.values() if len(set(texts)) != len(texts)]
