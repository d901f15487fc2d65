"""Spills below the address in the constant bank, as in code of the vendor's compiler."""
from __future__ import annotations
import re

import pytest

from nvidia.warps import after
from test.codegen.products import product
from test.isa.sass.machine import ARCHS, check
from tinyhw.autogen.nvidia import bank
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.isa.sass import target
from tinyhw.isa.sass.abi import ABI
from tinyhw.isa.sass.asm.decode import decode_all
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.capabilities import capabilities, generation_of
from tinyhw.isa.sass.frame import kept, kept_predicate, pointer, reloaded, reloaded_predicate

def test_slots_lie_below_the_end() -> None:
  assert kept(1, 0, 9).lines == ("STL [R9+-0x4], b",) and reloaded(2, 8, 9).lines == ("LDL.64 d, [R9+-0x10]",)
  assert kept(8, 16, 9).lines == ("STL.128 [R9+-0x30], b.0", "STL.128 [R9+-0x20], b.r4")
  assert kept_predicate(4, 9).lines == ("@p STL [R9+-0x8], R9", "@!p STL [R9+-0x8], RZ")
  assert reloaded_predicate("sm_90", 4, 9).lines == ("LDL R9, [R9+-0x8]", "ISETP.NE.AND d, PT, R9, RZ, PT",
                                                     "LDC R9, c[0x0][0x28]")

@pytest.mark.parametrize("arch", ARCHS)
def test_a_kernel_that_spills(monkeypatch: pytest.MonkeyPatch, arch: str) -> None:
  """Results are right. Every access of local memory uses the pointer, which the kernel loads first, into the register
  after all others."""
  monkeypatch.setattr(target, "registers_for", lambda lanes: 40)
  monkeypatch.setattr(target, "STEPS", {"R": (20,), "P": (2,)})
  kernel = product(64, 64, 64, dtypes.float32, dtypes.float32)
  program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "spilling")
  code = target.compile(program, arch)
  texts = [show(inst, control, 0) for _, inst, control in decode_all(code.text, arch)]
  pointer = f"R{dict(code.registers)['r'] - 1}"
  places = [text for text in texts if re.search(r"\b(STL|LDL)\b", text)]
  assert code.private_bytes > 0 == code.private_bytes % 16 and dict(code.registers)["r"] <= 41 and len(places) > 2
  assert f"LDC {pointer}, c[0x0][{bank.STACK[8]:#x}]" in texts[0] and all(f"[{pointer}+-0x" in text
                                                                          for text in places), places[:3]
  assert ABI[generation_of(arch).name].stack == bank.STACK[8]
  check(kernel, arch, tolerance=1e-5)

def test_a_predicate_comes_back_through_the_pointer() -> None:
  mask, size = 0x1234_ABCD, 16
  constants = bytes(bank.STACK[9]) + size.to_bytes(4, "little")
  there = [line.replace("@p", "@P0").replace("@!p", "@!P0") for line in kept_predicate(4, 9).lines]
  back = [line.replace(" d,", " P1,") for line in reloaded_predicate("sm_90", 4, 9).lines]
  warp = after([pointer("sm_90", 9), *there, *back], "sm_90", constants=constants, local=size, predicates={0: mask})
  assert warp.predicates[1] == mask and warp.registers[9] == [size] * 32
