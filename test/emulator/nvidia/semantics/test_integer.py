"""Integer instructions on corner cases, against Python's integers; sums of 64 bits from two of 32."""
from __future__ import annotations
from collections.abc import Callable

import pytest

from nvidia.warps import after, words
from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.warp.numbers import signed
from tinyhw.emulator.nvidia.warp.state import ALL

A, B, C = words(1), words(2), words(3)
WORD = 0xffffffff

CASES: list[tuple[str, Callable[[int, int, int], int]]] = [
  ("IADD3 R3, R0, R1, R2", lambda a, b, c: a + b + c),
  ("IADD3 R3, -R0, R1, -R2", lambda a, b, c: b - a - c),
  ("IADD3 R3, R0, -0x5, RZ", lambda a, b, c: a - 5),
  ("IMAD R3, R0, R1, R2", lambda a, b, c: a * b + c),
  ("IMAD R3, R0, R1, -R2", lambda a, b, c: a * b - c),
  ("IMAD.MOV.U32 R3, RZ, RZ, R2", lambda a, b, c: c),
  ("LOP3.LUT R3, R0, R1, R2, 0xca, !PT", lambda a, b, c: a & b | ~a & c),
  ("LOP3.LUT R3, R0, R1, R2, 0x96, !PT", lambda a, b, c: a ^ b ^ c),
  ("SHF.L.U32 R3, R0, 0x7, RZ", lambda a, b, c: a << 7),
  ("SHF.L.U32 R3, R0, 0x20, RZ", lambda a, b, c: 0),
  ("SHF.L.W.U32.HI R3, R0, 0x21, R1", lambda a, b, c: (b << 32 | a) << 1 >> 32),
  ("SHF.L.U64.HI R3, R0, 0x25, R1", lambda a, b, c: (b << 32 | a) << 37 >> 32),
  ("SHF.R.U32.HI R3, RZ, 0x3, R0", lambda a, b, c: a >> 3),
  ("SHF.R.S32.HI R3, RZ, 0x1f, R0", lambda a, b, c: signed(a) >> 31),
  ("SHF.R.U64 R3, R0, 0x21, R1", lambda a, b, c: (b << 32 | a) >> 33),
  ("SHF.R.S64 R3, R0, 0x3f, R1", lambda a, b, c: signed(b << 32 | a, 64) >> 63),
  ("PRMT R3, R0, 0x5410, R1", lambda a, b, c: b << 16 | a & 0xffff),
  ("PRMT R3, R0, 0x8884, R1", lambda a, b, c: (0xffffff00 if a & 0x80 else 0) | b & 0xff),
  ("SGXT R3, R0, 0x8", lambda a, b, c: signed(a & 0xff, 8)),
  ("SGXT.U32 R3, R0, 0x10", lambda a, b, c: a & 0xffff),
  ("VIMNMX R3, R0, R1, PT", lambda a, b, c: min(signed(a), signed(b))),
  ("VIMNMX.U32 R3, R0, R1, !PT", lambda a, b, c: max(a, b)),
  ("MOV R3, R1", lambda a, b, c: b),
]

@pytest.mark.parametrize("line, semantics", CASES, ids=[line for line, _ in CASES])
def test_instructions(line: str, semantics: Callable[[int, int, int], int]) -> None:
  found = after([line], registers={0: A, 1: B, 2: C}).registers[3]
  assert found == [semantics(*x) & WORD for x in zip(A, B, C)]

def longs(low: list[int], high: list[int]) -> list[int]: return [h << 32 | l for l, h in zip(low, high)]

@pytest.mark.parametrize("lines, semantics", [
  (["IADD3 R4, P0, R0, R2, RZ", "IADD3.X R5, R1, R3, RZ, P0, !PT"], lambda x, y: x + y),
  (["IADD3 R4, P0, R0, -R2, RZ", "IADD3.X R5, R1, ~R3, RZ, P0, !PT"], lambda x, y: x - y),
  (["IMAD.WIDE.U32 R4, R0, R2, RZ", "IMAD R5, R0, R3, R5", "IMAD R5, R1, R2, R5"], lambda x, y: x * y),
])
def test_numbers_of_64_bits(lines: list[str], semantics: Callable[[int, int], int]) -> None:
  zeros = [0, 1] * 16  # minus 0 has a carry
  for low in (C, zeros):
    warp = after(lines, registers={0: A, 1: B, 2: low, 3: A})
    assert longs(warp.registers[4], warp.registers[5]) == [semantics(x, y) % 2 ** 64
                                                           for x, y in zip(longs(A, B), longs(low, A))]

def test_wide_products() -> None:
  warp = after(["IMAD.WIDE R4, R0, -0x7, R2", "IMAD.WIDE.U32 R6, P1, R0, R1, R2"], registers={0: A, 1: B, 2: C, 3: A})
  sums = [a * b + c for a, b, c in zip(A, B, longs(C, A))]
  assert longs(warp.registers[4], warp.registers[5]) == [signed(a) * -7 + c & 2 ** 64 - 1
                                                         for a, c in zip(A, longs(C, A))]
  assert longs(warp.registers[6], warp.registers[7]) == [x & 2 ** 64 - 1 for x in sums]
  assert warp.predicates[1] == sum(1 << k for k, x in enumerate(sums) if x >> 64)

@pytest.mark.parametrize("word, semantics",
                         [("LT", lambda a, b: a < b), ("GE.U32", lambda a, b: a % 2 ** 32 >= b % 2 ** 32),
                          ("NE", lambda a, b: a != b)])
def test_comparisons(word: str, semantics: Callable[[int, int], bool]) -> None:
  close = [b if k % 3 else a for k, (a, b) in enumerate(zip(A, B))]
  warp = after([f"ISETP.{word}.AND P0, P1, R0, R1, P2"], registers={0: A, 1: close}, predicates={2: 0xffff})
  truth = sum(1 << k for k, (a, b) in enumerate(zip(A, close)) if semantics(signed(a), signed(b)))
  assert (warp.predicates[0], warp.predicates[1]) == (truth & 0xffff, ~truth & 0xffff)

def test_comparisons_of_64_bits() -> None:
  high = [b if k % 3 else a for k, (a, b) in enumerate(zip(A, B))]
  warp = after(["ISETP.LT.U32.AND P0, PT, R0, R2, PT", "ISETP.LT.AND.EX P1, PT, R1, R3, PT, P0"],
               registers={0: B, 1: A, 2: C, 3: high})
  pairs = zip(longs(B, A), longs(C, high))
  assert warp.predicates[1] == sum(1 << k for k, (x, y) in enumerate(pairs) if signed(x, 64) < signed(y, 64))

def test_predicates() -> None:
  given = {0: 0x0f0f0f0f, 1: 0x00ff00ff, 2: 0x0000ffff}
  warp = after(["PLOP3.LUT P3, P4, P0, P1, !P2, 0x80, 0xfe", "SEL R0, RZ, 0x1, P3",
                "LOP3.LUT P5, R1, R0, 0x1, RZ, 0xc0, !PT"], predicates=given)
  assert warp.predicates[3] == 0x0f0f0f0f & 0x00ff00ff & 0xffff0000
  assert warp.predicates[4] == (0x0f0f0f0f | 0x00ff00ff | 0xffff0000) & ALL
  assert (warp.registers[0] == [1 - (warp.predicates[3] >> k & 1) for k in range(32)]
          and warp.predicates[5] == ~warp.predicates[3] & ALL)

def test_what_a_guard_forbids_stays() -> None:
  warp = after(["@P0 MOV R0, R1", "@!P0 MOV R2, R1"], registers={0: A, 1: B, 2: C}, predicates={0: 0x00ffff00})
  assert warp.registers[0] == [b if 8 <= k < 24 else a for k, (a, b) in enumerate(zip(A, B))]
  assert warp.registers[2] == [c if 8 <= k < 24 else b for k, (b, c) in enumerate(zip(B, C))]

def test_what_is_not_supported_is_refused() -> None:
  with pytest.raises(UnknownInstruction, match="POPC/309 is not supported yet"):
    after(["POPC R0, R1"], registers={1: A})
