"""Elements by their names, lanes from and to bytes, atomic operations."""
from __future__ import annotations
import random
import struct

import pytest

from tinyhw.emulator.amd.execute.transfer import (
  ATOMICS, COMPARE, TransferElement, element_of, get_lanes, get_run, get_words, is_run, put_lanes, put_run)
from amd.lanes import Lanes

@pytest.mark.parametrize("words,element", [
  ("b32", TransferElement(4)), ("u8", TransferElement(1)), ("i16", TransferElement(2, True)),
  ("b128", TransferElement(16)),
  ("d16_b16", TransferElement(2, half=0)),
  ("d16_hi_i8", TransferElement(1, True, 1)), ("u16_d16_hi", TransferElement(2, half=1)), ("b8", TransferElement(1)),
  ("b512", TransferElement(64)),
  ("b7", None), ("tr_b128", None)])
def test_names(words: str, element: TransferElement | None) -> None:
  assert element_of(words) == element

def test_lanes_and_bytes() -> None:
  for active in (None, 0x80000101):
    wave = Lanes()
    if active is not None: wave.set_exec(active)
    lanes = list(wave.active)
    data = [random.Random(lane).randbytes(12) for lane in lanes]
    put_lanes(wave, 4, TransferElement(12), lanes, data)  # type: ignore[arg-type]  # as far as it goes a wave
    assert get_lanes(wave, 4, TransferElement(12), lanes) == data  # type: ignore[arg-type]
    assert get_words(wave, 5, 8, lanes) == [int.from_bytes(d[4:], "little") for d in data]  # type: ignore[arg-type]
    if active is not None: assert wave.u[4][1] == 0

def test_elements_that_stand_one_after_the_other() -> None:
  assert is_run([64, 72, 80], 8) and not is_run([64, 72, 84], 8) and not is_run([80, 72, 64],
                                                                                8) and not is_run([3, 4], 1)
  for size in (4, 12, 16):
    wave, element = Lanes(), TransferElement(size)
    data = random.Random(size).randbytes(32 * size)
    put_run(wave, 3, element, range(32), data)  # type: ignore[arg-type]
    assert get_run(wave, 3, element) == data == b"".join(get_lanes(wave, 3, element,
                                                                   range(32)))  # type: ignore[arg-type]

def test_narrow_elements_extend_or_go_to_a_half() -> None:
  wave = Lanes()
  for element, data, word in ((TransferElement(1), b"\xff", 0xff), (TransferElement(1, True), b"\xff", 0xffffffff),
                              (TransferElement(2, True), b"\x01\x80", 0xffff8001),
                              (TransferElement(2, half=0), b"\x34\x12", 0x55551234),
                              (TransferElement(2, half=1), b"\x34\x12", 0x12345555),
                              (TransferElement(1, True, 1), b"\x80", 0xff805555)):
    wave.u[0][3] = 0x55555555
    put_lanes(wave, 0, element, [3], [data])  # type: ignore[arg-type]
    assert wave.u[0][3] == word, element
  with_ecc = Lanes(arch="gfx942")
  with_ecc.u[0][3] = 0x55555555
  put_lanes(with_ecc, 0, TransferElement(2, half=0), [3], [b"\x34\x12"])  # type: ignore[arg-type]
  assert with_ecc.u[0][3] == 0xaaaa1234, "the other half is lost"
  assert get_lanes(wave, 0, TransferElement(2, half=1), [3]) == [b"\x80\xff"]  # type: ignore[arg-type]

def f(x: float) -> int: return int(struct.unpack("<I", struct.pack("<f", x))[0])

@pytest.mark.parametrize("name,old,x,new", [
  ("add_u32", 0xffffffff, 2, 1), ("sub_u64", 0, 1, (1 << 64) - 1), ("rsub_u32", 1, 5, 4),
  ("min_i32", 5, 0xffffffff, 0xffffffff),
  ("max_i32", 5, 0xffffffff, 5),
  ("min_u32", 5, 0xffffffff, 5), ("max_u64", 5, 1 << 63, 1 << 63), ("and_b32", 12, 10, 8), ("or_b64", 12, 10, 14),
  ("xor_b32", 12, 10, 6),
  ("swap_b32", 1, 2, 2), ("inc_u32", 4, 4, 0), ("inc_u32", 3, 4, 4), ("dec_u32", 0, 4, 4), ("dec_u32", 9, 4, 4),
  ("dec_u32", 3, 4, 2),
  ("add_f32", f(1.5), f(2.0), f(3.5)), ("max_f32", f(-1.0), f(2.0), f(2.0)), ("cond_sub_u32", 5, 3, 2),
  ("cond_sub_u32", 2, 3, 2),
  ("sub_clamp_u32", 2, 3, 0), ("pk_add_f16", 0x3c004000, 0x3c003c00, 0x40004200),
  ("pk_add_bf16", 0x3f804000, 0x3f803f80, 0x40004040)])
def test_atomics(name: str, old: int, x: int, new: int) -> None:
  size, function = ATOMICS[name]
  assert function(old, x) == new and size in (4, 8)

def test_comparing_ones() -> None:
  found = COMPARE.match("cmpswap_b64")
  assert found is not None and found[1] == "64" and COMPARE.match("cmpstore_b32") and not COMPARE.match("add_u32")
