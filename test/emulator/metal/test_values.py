"""Values of expressions: their types, conversions and rounding."""
import struct

import pytest

from tinyhw.emulator.metal.translate import translate
from tinyhw.emulator.metal.words import SourceError
from test.emulator.metal.conftest import Runner, kernel_of

@pytest.mark.parametrize(("body", "words"), [
  ("out[0] = nowhere;", "program_source:5: error: use of undeclared identifier 'nowhere'"),
  ("int a = 1.5f;", "implicit conversion from float to int"),
  ("float a = 1.5;", "1.5 is a double"), ("float a = 0.1f; out[0] = a;", "0.1f is no float32, and would be rounded"),
  ("uint a = 5000000000u;", "too large for uint"), ("float a = 1e400f;", "1e400f is no float32"),
  ("int a = 010;", "010 is octal"),
  ("float2 a = float2(1.0f);", "float2 of 1 values"), ("int a = float2(1.0f, 2.0f)[2];", "begins|no pointer|index"),
  ("float4 a = float4(1.0f, 1.0f, 1.0f, 1.0f); float b = a[4];", "an index of float4 is a number below 4"),
  ("device int *p = (device int *)(shared_bytes + 0);", "a pointer into threadgroup memory becomes device"),
  ("int4 v = *(device int4 *)(shared_bytes + 0);", "a pointer into threadgroup memory becomes device"),
  ("float4 v = *(device float4 *)(x + 0);", "float4 in memory of int"), ("out[1.0f] = 1;", "an index is an integer"),
  ("int a = as_type<int>(1l);", "as_type from long to int: they differ in size"),
  ("int a = max(1, 2);", "no matching function for call to 'max'"),
  ("long a = simd_shuffle_xor(1l, 1);",
   "no matching function for call to 'simd_shuffle_xor' with long"),
  ("float a = 1.0f << 1;", "invalid operand of <<: float"),
  ("simdgroup_float8x8 a; out[0] = int(a.thread_elements()[2]);", "a thread has the elements 0 and 1")])
def test_refusals(body: str, words: str) -> None:
  with pytest.raises(SourceError, match=words): translate(kernel_of(body))

def test_conversions_of_integers(run: Runner) -> None:
  body = ("out[lane * 4] = (uchar)(x[0] - 1); out[lane * 4 + 1] = int(char(200)); "
          "out[lane * 4 + 2] = -1 < 1u ? 1 : 0; out[lane * 4 + 3] = (int)numbers[0];")
  assert struct.unpack("4i", run(body, x=bytes(64), lanes=1).data[:16]) == (255, -56, 0, 7)

def test_floats_are_rounded_after_each_operation(run: Runner) -> None:
  x = struct.pack("4f", 1 + 2.0**-12, 1 + 2.0**-12, -(1 + 2.0**-11), 1e-40)
  body = ("out[0] = x[0] * x[1] + x[2]; out[1] = fma(x[0], x[1], x[2]); out[2] = x[3]; out[3] = x[3] * 1.0f; "
          "out[4] = x[3] != 0 ? 1.0f : 0.0f;")
  found = struct.unpack("5f", run(body, x=x, element="float", lanes=1).data[:20])
  assert found[:2] == (0.0, 2.0**-24) and found[2] > 0 and found[3:] == (0.0, 0.0)
