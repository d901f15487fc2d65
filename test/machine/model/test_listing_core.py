"""Bounds of a loop on a processor's core as text, for x86-64 code."""
from __future__ import annotations

from tinyhw.isa.x86.asm.syntax import parse_function
from tinyhw.isa.x86.describe import core, reader
from tinyhw.machine.model.listing import find_loops
from tinyhw.machine.model.listing_core import bound_lines, port_names

LOOP = """
  mov eax, 0
.body:
  vfmadd231ps ymm1, ymm0, ymmword ptr [rsi + 4*rax]
  vfmadd231ps ymm2, ymm0, ymmword ptr [rdi + 4*rax]
  add eax, 8
  cmp eax, 64
  jl .body
.last:
  ret
"""

def test_bounds_of_a_loop() -> None:
  zen = core("zen3", 256)
  function = parse_function(LOOP)
  assert bound_lines(zen, function, find_loops(function), reader("zen3", 256)) == [
    "bound of .body1: 4.0 cycles an iteration, by latency (ports 1.0, load/store 1.0, issue 0.8, latency 4.0)",
    "  at most 8.0 flop a cycle of 32, 25 %; 16.0 bytes a cycle", f"bounds: {zen.title}, caches always hit; table: "
    f"{zen.source}"]

def test_no_loop_no_bounds() -> None:
  function = parse_function("ret")
  assert bound_lines(core("zen3", 256), function, find_loops(function), reader("zen3", 256)) == []

def test_ports_have_the_names_of_the_vendor() -> None:
  assert port_names("uv", core("zen3", 256)) == "FP0 FP1" and port_names("", core("zen3", 256)) == "none"
