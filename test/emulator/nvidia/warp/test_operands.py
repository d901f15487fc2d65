"""Sources with their signs, results in some lanes, and unknown modifiers."""
from __future__ import annotations

import struct

import pytest

from nvidia.warps import after, block_of, give, words
from tinyhw.emulator.errors import OutOfBounds, UnknownInstruction
from tinyhw.emulator.nvidia.warp.operands import Operands, put
from tinyhw.emulator.nvidia.warp.state import ALL, LANES
from tinyhw.isa.sass.asm.syntax import parse

def operands(text: str) -> Operands: return Operands(parse(text, "sm_90")[0])

def test_sources() -> None:
  warp = block_of(b"").warps[0]
  give(warp, 1, [0x3fc00000])
  give(warp, 2, words(1))
  give(warp, 3, words(2))
  o = operands("FFMA R0, -R1, |R1|, 2")
  assert [o.source(name, "f")(warp)[0] for name in "abc"] == [-1.5, 1.5, 2.0]
  assert operands("IADD3 R0, R2, -R3, RZ").source("b")(warp) == [-x & 0xffffffff for x in words(2)]
  assert operands("IADD3 R0, R2, -0x2, RZ").source("b")(warp) == [0xfffffffe] * LANES
  assert operands("DADD R4, R2, R6").source("a", "q")(warp) == [h << 32 | l for l, h in zip(words(1), words(2))]
  assert operands("DADD R4, R2, RZ").source("c", "q")(warp) == [0] * LANES

def test_uniform_registers_are_the_same_in_all_lanes() -> None:
  warp = block_of(b"").warps[0]
  warp.uniform[6], warp.uniform[7] = 0x3f800000, 0x40000000
  assert operands("FADD R0, R1, UR6").source("b", "f")(warp) == [1.0] * LANES
  assert operands("DADD R0, R2, UR6").source("c", "d")(warp)[0] == 2 + 0x3f800000 * 2.0 ** -51

def test_words_of_constant_memory() -> None:
  """They are read as the operand's kind, with its sign. They are no immediates."""
  bank = bytes(8) + struct.pack("<fId", -1.5, 0xfffffff0, 0.75)
  warp = block_of(b"", constants=bank).warps[0]
  assert operands("FADD R0, R1, -c[0x0][0x8]").source("b", "f")(warp) == [1.5] * LANES
  assert operands("IADD3 R0, R1, c[0x0][0xc], RZ").source("b")(warp) == [0xfffffff0] * LANES
  assert operands("DADD R4, R2, |c[0x0][0x10]|").source("c", "d")(warp) == [0.75] * LANES
  assert operands("IMAD.WIDE R4, R2, R3, c[0x0][0x8]").raw("c", "q")(warp)[0] == int.from_bytes(bank[8:16], "little")
  assert after(["MOV R3, c[0x0][0xc]", "IMAD.WIDE.U32 R4, RZ, RZ, c[0x0][0x8]"],
               constants=bank).registers[4][0] == 0xbfc00000
  for text, why in (("MOV R0, c[0x0][0x18]", "bank 0 has 24 bytes"),
                    ("MOV R0, c[0x2][0x0]", "constant bank 2 has not been given"),
                    ("DADD R4, R2, c[0x0][0xc]", "no multiple of its size")):
    with pytest.raises(OutOfBounds, match=why): after([text], registers={2: [0], 3: [0]}, constants=bank)

def test_predicates() -> None:
  warp = block_of(b"", predicates={1: 0xff}).warps[0]
  assert (operands("SEL R0, R1, R2, P1").predicate("pp")(warp) == 0xff
          and operands("SEL R0, R1, R2, !P1").predicate("pp")(warp) == ALL & ~0xff)
  assert operands("SEL R0, R1, R2, PT").predicate("pp")(warp) == ALL

def test_results_go_to_lanes_of_a_mask() -> None:
  warp = block_of(b"", registers={0: [7]}).warps[0]
  put(warp, 0, [1] * LANES, 0xf)
  assert warp.registers[0] == [1] * 4 + [7] * 28
  put(warp, 9, [1] * LANES, 0xf)
  assert warp.known["R", 9] == 0xf
  assert after(["MOV RZ, 0x5", "MOV R1, RZ"]).registers[1] == [0] * LANES, "what is written to RZ is forgotten"

def test_a_modifier_that_semantics_do_not_know_is_refused() -> None:
  o = operands("FADD.SAT R0, R1, R2")
  with pytest.raises(UnknownInstruction, match="FADD/221 with SAT is not supported yet"): o.finish()
  assert o.word("sat") == "SAT" and o.word("nothing") == ""
  o.finish()
