"""Registers as a person sees them."""
from __future__ import annotations

import pytest
from amd.kernels import Box, Kernel

from tinyhw.emulator.amd.view import changes, parse_registers, show
from tinyhw.errors import ArgumentError

def test_places() -> None:
  assert parse_registers("v4:f32") == ("v", 4, 1, "f32") and parse_registers("s[2:5]") == ("s", 2, 4, "x32")
  assert parse_registers("a7").file == "a"
  assert parse_registers("exec").first == 126
  for wrong in ("v", "x3", "v4:f31", "s[2]"):
    with pytest.raises(ArgumentError, match="no register to show"): parse_registers(wrong)

def test_lanes_that_are_not_written_or_not_active() -> None:
  k, seen = Kernel(), []
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("s_mov_b32", k.s(10), 0xf0)
  k("v_cmpx_gt_u32", 3, k.v(0))
  k("v_mov_b32", k.v(1), 0x3fc00000)
  k("s_cmp_eq_u32", 0, 0)
  k("s_endpgm")
  def watch(wave: object, step: object) -> None:
    if step.text == "s_endpgm":  # type: ignore[attr-defined]
      for text in ("v1:f32", "v0:u32", "exec", "s10", "s[11:11]", "scc", "v200", "vcc"):
        seen.append(show(wave, parse_registers(text)))  # type: ignore[arg-type]
  Box().run(k, watch=watch)
  v1, v0, mask, s10, s11, scc, none, vcc = seen
  assert v1[0].split() == ["v1:", "0", "1.5", "1.5", "1.5", "(-)", "(-)", "(-)", "(-)", "(-)"]
  assert v0[1].split() == ["8", *(f"({n})" for n in range(8, 16))] and len(v0) == 4
  assert (mask == ["exec_lo = 0x7"] and s10 == ["s10 = 0xf0"] and s11 == ["s11 = -"] and scc == ["scc = 1"]
          and vcc == ["vcc_lo = -"])
  assert none == ["v200: the kernel has no such register"]

def test_what_an_instruction_has_changed() -> None:
  k, lines, last = Kernel(), [], []
  k("s_mov_b32", k.s(4), 16)
  k("v_mov_b32", k.v(1), 0x40000000)
  k("v_add_f32", k.v(2), k.v(1), k.v(1))
  k("s_load_b32", k.s(5), k.s(0, 2), None)
  k("s_endpgm")
  def watch(wave: object, step: object) -> None:
    if last: lines.append(changes(wave, last[0]))  # type: ignore[arg-type]
    last[:] = [step]
  Box().run(k, watch=watch)
  assert lines == ["s4=0x10", "v1=0x40000000 0x40000000 0x40000000 0x40000000 ...", "v2=4 4 4 4 ...", "s5=0x0"]
