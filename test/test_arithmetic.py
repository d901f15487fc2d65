"""arithmetic.py against NumPy, exact rational numbers, and published vectors."""
import math
import operator
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from tinyhw import arithmetic
from tinyhw.arithmetic import (
  CODED, cast, dot2, dot4, elements, from_bytes, operation, round_to, to_bytes, whatever_others_are)
from tinyhw.dtype import DType, dtypes, encode_float, truncate
from tinyhw.errors import DTypeError

np = pytest.importorskip("numpy")
np.seterr(all="ignore")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy says when casts overflow; that is what is
                                                                   # tested
few = settings(max_examples=12)

NUMPY = {d: np.dtype(d.fmt) for d in dtypes.ints + (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bool)}

def same(a: object, b: object) -> bool: return a == b or (a != a and b != b)

def numbers(d: DType) -> st.SearchStrategy:
  """Values of a type, often extreme ones."""
  if d is dtypes.bool: return st.booleans()
  if dtypes.is_int(d):
    return st.integers(d.min, d.max) | st.sampled_from([0, 1, d.min, d.max]) | st.integers(max(d.min, -9), 9)
  return (st.floats() | st.floats(-100, 100) | st.sampled_from([1e-40, 65504.0, 65520.0, 3.4028235677973366e38,
                                                                2.0 ** -149])).map(round_to(d))

FLOAT_OPS = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "FDIV": np.divide, "CMPLT": np.less,
             "CMPNE": np.not_equal}
INT_OPS = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAX": np.maximum, "AND": np.bitwise_and,
           "OR": np.bitwise_or,
           "XOR": np.bitwise_xor, "CMPLT": np.less, "CMPEQ": np.equal}

@pytest.mark.parametrize("d", (dtypes.float16, dtypes.float32, dtypes.float64), ids=str)
@pytest.mark.parametrize("name", FLOAT_OPS)
def test_float_operations_agree_with_numpy(d: DType, name: str) -> None:
  @few
  @given(numbers(d), numbers(d))
  def check(a: float, b: float) -> None:
    want = FLOAT_OPS[name](NUMPY[d].type(a), NUMPY[d].type(b)).item()
    assert same(operation(name, d)(a, b), want)
  check()

@pytest.mark.parametrize("d", dtypes.ints, ids=str)
@pytest.mark.parametrize("name", INT_OPS)
def test_integer_operations_agree_with_numpy(d: DType, name: str) -> None:
  @few
  @given(numbers(d), numbers(d))
  def check(a: int, b: int) -> None:
    assert operation(name, d)(a, b) == INT_OPS[name](NUMPY[d].type(a), NUMPY[d].type(b)).item()
  check()

@pytest.mark.parametrize("d", dtypes.ints, ids=str)
def test_division_rounds_down_and_wraps(d: DType) -> None:
  @few
  @given(numbers(d), numbers(d))
  def check(a: int, b: int) -> None:
    quotient, rest = operation("IDIV", d)(a, b), operation("MOD", d)(a, b)
    if b == 0: assert (quotient, rest) == (0, 0)
    else: assert (quotient, rest) == (round_to(d)(a // b), a % b)
  check()
  assert operation("IDIV", dtypes.int8)(-128, -1) == -128

@pytest.mark.parametrize("d", dtypes.ints, ids=str)
def test_shifts_are_defined_for_every_count(d: DType) -> None:
  bits = d.bitsize
  for a in (d.min, d.max, 1, 0, round_to(d)(-1)):
    for count in (-1, 0, 1, bits - 1, bits, bits + 1, 1000):
      inside = 0 <= count < bits
      assert operation("SHL", d)(a, count) == (round_to(d)(a << count) if inside else 0)
      assert operation("SHR", d)(a, count) == (a >> count if inside else -(a < 0))

FOUR = st.lists(st.integers(0, 255) | st.sampled_from([0, 1, 127, 128, 255]), min_size=4, max_size=4).map(bytes)

@pytest.mark.parametrize("b", dtypes.int32s, ids=str)
@pytest.mark.parametrize("a", dtypes.int32s, ids=str)
def test_products_of_four_bytes(a: DType, b: DType) -> None:
  """The bytes of a word of int32 have signs, and those of uint32 have none. The sum wraps."""
  @given(FOUR, FOUR, numbers(dtypes.int32))
  def check(x: bytes, y: bytes, z: int) -> None:
    first, second = (np.frombuffer(data, np.uint8 if dtypes.is_unsigned(d) else np.int8).astype(np.int64)
                     for data, d in ((x, a), (y, b)))
    want = np.int64(int(first @ second) + z).astype(np.int32)
    assert dot4(a, b)(from_bytes(x, a), from_bytes(y, b), z) == want
  check()

def test_products_of_pairs_of_bfloat16() -> None:
  """The upper halves come first, each step is rounded, and subnormal numbers are zeros."""
  one, two, least, tiny = 0x3f80, 0x4000, 0x0080, 0x007f
  assert dot2(two << 16 | one, two << 16 | one, 0.5) == 5.5
  assert dot2(one << 16 | one, one << 16 | 0xbf80, 2.0 ** 24) == 2.0 ** 24 - 1, "2**24 + 1 is rounded to 2**24"
  assert dot2(one << 16 | one, 0xbf80 << 16 | one, 2.0 ** 24) == 2.0 ** 24
  assert dot2(tiny << 16 | tiny, two << 16 | two, 0.0) == 0.0 and dot2(least, one, 0.0) == 2.0 ** -126
  assert dot2(least, 0x3f00, 0.0) == 0.0, "the product is subnormal"
  assert dot2(0, 0, 2.0 ** -127) == 0.0 and math.copysign(1, dot2(0x80008000, one << 16 | one, -(2.0 ** -140))) == -1
  assert math.isnan(dot2(0x7f80, 0, 0.0)) and math.isnan(dot2(0x7f80, tiny, 1.0)), "infinity times zero"

def test_extreme_products_of_four_bytes() -> None:
  int32, uint32 = dtypes.int32, dtypes.uint32
  assert dot4(uint32, uint32)(0xffffffff, 0xffffffff, 1) == 4 * 255 * 255 + 1
  assert dot4(int32, int32)(-0x7f7f7f80, -0x7f7f7f80, -1) == 4 * 128 * 128 - 1
  assert dot4(uint32, int32)(0xffffffff, -0x7f7f7f80, 0) == dot4(int32, uint32)(-0x7f7f7f80, 0xffffffff,
                                                                                0) == -4 * 255 * 128
  assert dot4(uint32, int32)(0x04030201, 0x281e140a, 0) == 10 + 40 + 90 + 160
  assert dot4(int32, int32)(1, 1, 0x7fffffff) == -0x80000000

@given(numbers(dtypes.float32), numbers(dtypes.float32), numbers(dtypes.float32))
def test_fused_float32_rounds_once(a: float, b: float, c: float) -> None:
  got = operation("MULACC", dtypes.float32)(a, b, c)
  if not all(map(math.isfinite, (a, b, c))): assert same(got, round_to(dtypes.float32)(a * b + c))
  else: assert got == nearest_float32(Fraction(a) * Fraction(b) + Fraction(c))

def nearest_float32(exact: Fraction) -> float:
  """By bisection over the codes of float32: slow and obvious."""
  magnitude, low, high = abs(exact), 0, 0x7f7fffff
  value = lambda code: Fraction(from_bytes(code.to_bytes(4, "little"), dtypes.float32))
  if magnitude >= value(high) + (value(high) - value(high - 1)) / 2: return math.copysign(math.inf, exact)
  while low < high:
    middle = (low + high + 1) // 2
    if value(middle) <= magnitude: low = middle
    else: high = middle - 1
  if low < 0x7f7fffff:
    below, above = magnitude - value(low), value(low + 1) - magnitude
    if above < below or (above == below and low & 1): low += 1
  return math.copysign(float(value(low)), exact)

@given(numbers(dtypes.float64), numbers(dtypes.float64), numbers(dtypes.float64))
def test_fused_float64_rounds_once(a: float, b: float, c: float) -> None:
  got = operation("MULACC", dtypes.float64)(a, b, c)
  if not all(map(math.isfinite, (a, b, c))): return
  exact = Fraction(a) * Fraction(b) + Fraction(c)
  try: want = float(exact)
  except OverflowError: want = math.inf if exact > 0 else -math.inf
  assert got == want

def test_a_fused_sum_that_two_roundings_would_get_wrong() -> None:
  a, c = 1 + 2.0 ** -12, 2.0 ** -60       # a*a is halfway between two float32; c decides
  assert operation("MULACC", dtypes.float32)(a, a, c) == 1 + 2.0 ** -11 + 2.0 ** -23
  assert operation("MULACC", dtypes.float32)(a, a, -c) == 1 + 2.0 ** -11

def test_a_fused_sum_with_infinity_is_infinite_whatever_the_product() -> None:
  for c in (math.inf, -math.inf):
    for a in (1e300, -1e300): assert operation("MULACC", dtypes.float64)(a, 1e300, c) == c
    for a in (2.0 ** 120, -2.0 ** 120): assert operation("MULACC", dtypes.float32)(a, 2.0 ** 120, c) == c
  assert math.isnan(operation("MULACC", dtypes.float64)(math.inf, 1.0, -math.inf))

@pytest.mark.parametrize("source", tuple(NUMPY), ids=str)
@pytest.mark.parametrize("target", tuple(NUMPY), ids=str)
def test_casts_agree_with_numpy_where_it_defines_them(source: DType, target: DType) -> None:
  @few
  @given(numbers(source))
  def check(x: object) -> None:
    if dtypes.is_float(source) and dtypes.is_int(target):
      way = dtypes.int64 if target.bitsize == 64 or target is dtypes.uint32 else dtypes.int32
      if not way.min <= x <= way.max or x != x: return
    middle = NUMPY[source].type(x)
    if target is dtypes.float16 and not dtypes.is_float(source): middle = middle.astype(np.float32)  # by way of float32
    assert same(cast(source, target)(x), middle.astype(NUMPY[target]).item())
  check()

@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.bfloat16, *dtypes.fp8s), ids=str)
def test_float64_rounds_once(dtype: DType) -> None:
  """Next to the middle of two codes, at a distance below the resolution of float32."""
  decode, encode = CODED[dtype]
  for code in (1, 2, 9, 60, 61, 100):
    low, high = decode(code), decode(code + 1)
    middle = (low + high) / 2
    assert round_to(dtype)(middle * (1 + 2.0 ** -40)) == high and round_to(dtype)(middle * (1 - 2.0 ** -40)) == low
    assert encode(middle * (1 + 2.0 ** -40)) == code + 1 and cast(dtypes.float64,
                                                                  dtype)(middle * (1 - 2.0 ** -40)) == low
    assert truncate[dtype](middle * (1 + 2.0 ** -40)) == high

def test_floats_that_no_integer_holds() -> None:
  to = lambda target, x: cast(dtypes.float32, target)(x)
  for x in (math.nan, math.inf, -math.inf, 2.0 ** 70, -(2.0 ** 70)):
    assert [to(d, x) for d in (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16)] == [0, 0, 0, 0]
    assert [to(d, x) for d in (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)] == [-2**31, 0, -2**63, 2**63]
  assert to(dtypes.uint8, -1.5) == 255 and to(dtypes.uint8, 300.0) == 44 and to(dtypes.uint32, -1.0) == 2**32 - 1
  assert to(dtypes.uint64, -1.0) == 2**64 - 1 and to(dtypes.uint64,
                                                     2.0 ** 63) == 2**63 and to(dtypes.bool, math.nan) is True

@given(st.integers(-2**63, 2**64 - 1))
def test_integers_become_float32_with_one_rounding(x: int) -> None:
  assert arithmetic.int_to_float32(x) == nearest_float32(Fraction(x))

@pytest.mark.parametrize("d", dtypes.narrow_floats, ids=str)
def test_every_code_of_a_narrow_float_survives(d: DType) -> None:
  for code in range(1 << d.bitsize):
    data = code.to_bytes(d.itemsize, "little")
    x = from_bytes(data, d)
    assert same(round_to(d)(x), x)
    if x == x: assert to_bytes(x, d) == data

@pytest.mark.parametrize("d", (dtypes.float16, dtypes.bfloat16), ids=str)
@given(st.floats(width=32))
def test_fast_rounding_agrees_with_the_plain_one(d: DType, x: float) -> None:
  if x == x: assert to_bytes(x, d) == encode_float(x, d).to_bytes(2, "little")
  assert same(round_to(d)(x), from_bytes(to_bytes(x, d), d))

def test_transcendentals_have_values_everywhere() -> None:
  f = lambda name, *x: operation(name, dtypes.float32)(*x)
  assert [f("LOG2", x) for x in (0.0, 8.0, math.inf)] == [-math.inf, 3.0,
                                                          math.inf] and f("LOG2", -1.0) != f("LOG2", -1.0)
  assert [f("EXP2", x) for x in (1000.0, -1000.0, -math.inf, 0.5)] == [math.inf, 0.0, 0.0, float(np.float32(2 ** 0.5))]
  assert f("SIN", math.inf) != f("SIN", math.inf) and math.copysign(1, f("SIN", -0.0)) == -1
  assert (f("POW", -8.0, 1e9) == math.inf and f("POW", 0.0, -1.0) == math.inf and f("POW", -0.0, -3.0) == -math.inf
          and f("POW", -2.0, 0.5) != 0)
  assert f("FDIV", 1.0, -0.0) == -math.inf and f("RECIPROCAL", 0.0) == math.inf and f("FDIV", 0.0, 0.0) != 0
  assert f("SQRT", -0.0) == 0.0 and f("SQRT", -1.0) != 0 and f("TRUNC",
                                                               -1.7) == -1.0 and f("TRUNC", math.inf) == math.inf

def test_maximum_is_nan_if_an_operand_is_and_the_first_of_equals() -> None:
  f = operation("MAX", dtypes.float32)
  assert all(f(a, b) != f(a, b) for a, b in ((math.nan, 1.0), (1.0, math.nan), (math.nan, math.inf),
                                             (math.inf, math.nan), (math.nan, math.nan)))
  assert math.copysign(1, f(-0.0, 0.0)) == -1 and math.copysign(1,
                                                                f(0.0, -0.0)) == 1 and f(1.0, 2.0) == f(2.0, 1.0) == 2.0

def test_bools() -> None:
  table = {"ADD": operator.or_, "MUL": operator.and_, "MAX": operator.or_, "SUB": operator.xor, "XOR": operator.xor}
  for name, f in table.items():
    for a in (False, True):
      for b in (False, True): assert operation(name, dtypes.bool)(a, b) is f(a, b)

def test_threefry_known_answers() -> None:
  # Random123's kat_vectors, threefry2x32, 20 rounds: counter, key -> result, low word first
  pack = lambda low, high: high << 32 | low
  assert arithmetic.threefry(0, 0) == pack(0x6b200159, 0x99ba4efe)
  assert arithmetic.threefry(2**64 - 1, 2**64 - 1) == pack(0x1cb996fc, 0xbb002be7)
  assert arithmetic.threefry(pack(0x243f6a88, 0x85a308d3), pack(0x13198a2e, 0x03707344)) == pack(0xc4923a9c, 0x483df7a0)

def test_elements_are_views() -> None:
  for d in dtypes.ints + dtypes.floats + (dtypes.bool,):
    memory = bytearray(4 * d.itemsize)
    view = elements(memory, d)
    view[2] = round_to(d)(1)
    assert len(view) == 4 and [view[i] for i in range(4)] == [0, 0, 1, 0] and any(memory)
  assert elements([1, 2], dtypes.int8) == [1, 2]
  assert elements(np.arange(6, dtype=np.int32).reshape(2, 3), dtypes.int32)[4] == 4

def test_what_has_no_meaning_says_so() -> None:
  with pytest.raises(DTypeError, match="IDIV has no meaning for dtypes.float32"): operation("IDIV", dtypes.float32)
  with pytest.raises(DTypeError, match="memory cannot hold dtypes.weakint"): elements(bytearray(8), dtypes.weakint)
  with pytest.raises(DTypeError, match="has no bytes"): to_bytes(1, dtypes.weakint)

def test_results_of_one_known_operand() -> None:
  f32, inf = dtypes.float32, math.inf
  assert whatever_others_are("MUL", f32, 2, 1, 0.0) == 0 and whatever_others_are("MUL", f32, 2, 1, 1.0) is None
  assert whatever_others_are("ADD", f32, 2, 1, -inf) == whatever_others_are("SUB", f32, 2, 0, -inf) == -inf
  assert whatever_others_are("SUB", f32, 2, 1, -inf) is None and whatever_others_are("ADD", f32, 2, 0, 0.0) is None
  assert whatever_others_are("EXP", f32, 1, 0, -inf) == 0 and whatever_others_are("NEG", f32, 1, 0, 2.0) == -2
  assert whatever_others_are("CAST", dtypes.float16, 1, 0, -inf) == -inf
  assert whatever_others_are("CAST", dtypes.int32, 1, 0, 0.0) is None
  assert whatever_others_are("BITCAST", dtypes.int32, 1, 0, 0.0) is None
