"""Narrow types against all of their codes, and against ml_dtypes where it is installed."""
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.narrow import NARROW, SCALE, decoded, narrowed, unpacked

def codes(*numbers: int) -> Tensor: return Tensor(list(numbers), dtype=dtypes.uint8)

def test_codes_are_unpacked_from_the_lowest_bits() -> None:
  assert unpacked(codes(0xf3, 0x1a), 4).tolist() == [3, 15, 10, 1]
  assert unpacked(codes(0b11100100), 2).tolist() == [0, 1, 2, 3]
  assert unpacked(codes(0x41, 0x20, 0x0c), 6).tolist() == [1, 1, 2, 3]
  assert unpacked(codes(0x41), 6).tolist()[:1] == [1] and unpacked(codes(7), 8).tolist() == [7]

NAMES = {21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
         27: "float6_e2m3fn", 28: "float6_e3m2fn"}

def kind_of(number: int) -> Any:
  return getattr(pytest.importorskip("ml_dtypes"), NAMES[number])

@pytest.mark.parametrize("number", NARROW)
def test_every_code(number: int) -> None:
  row, every = NARROW[number], np.arange(1 << NARROW[number].bits, dtype=np.uint8)
  found = decoded(Tensor(every), row)
  assert found.dtype is row.holder
  np.testing.assert_array_equal(found.float().numpy(), every.view(kind_of(number)).astype(np.float32))

@pytest.mark.parametrize("number", (23, 27, 28))
def test_floats_are_rounded_to_even_and_saturate(number: int) -> None:
  row = NARROW[number]
  exact = np.sort(decoded(Tensor(list(range(1 << row.bits)), dtype=dtypes.uint8), row).float().numpy())
  middles = (exact[1:] + exact[:-1]) / 2
  x = np.concatenate([exact, middles, np.nextafter(middles, 9, dtype=np.float32), [1e6, -1e6, np.inf]],
                     dtype=np.float32)
  expected = np.clip(x, -row.largest, row.largest).astype(kind_of(number)).astype(np.float32)
  np.testing.assert_array_equal(narrowed(Tensor(x), number).float().numpy(), expected)
  assert narrowed(Tensor([float("nan")]), number).tolist() == [0]

def test_integers_wrap() -> None:
  assert narrowed(Tensor([20.0, -9.0, 7.0]), 22).tolist() == [4, 7, 7]
  assert narrowed(Tensor([5, -1, 2]), 25).tolist() == [1, 3, 2] and narrowed(Tensor([2, 5]), 26).tolist() == [-2, 1]
  assert [NARROW[n].limits for n in (21, 22, 25, 26)] == [(0, 15), (-8, 7), (0, 3), (-2, 1)]

def test_scales_are_powers_of_two() -> None:
  x = [0.0, 1.0, 1.2, 1.5, 1.75, 3e38, float("inf"), 2.0 ** -127, 1.25 * 2.0 ** -127, 1.5 * 2.0 ** -127]
  down = [2.0 ** -127, 1, 1, 1, 1, 2.0 ** 127, 2.0 ** 127, 2.0 ** -127, 2.0 ** -127, 2.0 ** -127]
  up = [2.0 ** -127, 1, 2, 2, 2, 2.0 ** 127, 2.0 ** 127, 2.0 ** -127, 2.0 ** -126, 2.0 ** -126]
  nearest = [2.0 ** -127, 1, 1, 2, 2, 2.0 ** 127, 2.0 ** 127, 2.0 ** -127, 2.0 ** -127, 2.0 ** -126]
  for mode, expected in (("down", down), ("up", up), ("nearest", nearest)):
    assert narrowed(Tensor(x), SCALE, True, mode).tolist() == expected, mode
  found = np.array(narrowed(Tensor([0.0, float("inf"), 2.0, float("nan"), -1.0]), SCALE, False, "nearest").tolist())
  assert np.isnan(found).tolist() == [True, True, False, True, True]
  with pytest.raises(ArgumentError, match="round_mode is"): narrowed(Tensor([1.0]), SCALE, True, "away")
