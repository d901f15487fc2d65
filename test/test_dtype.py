"""Data types: interned, ordered, promoted as a lattice; codes of floats against every code there is, and NumPy where
it knows the type."""
from __future__ import annotations
import copy
import itertools
import math
import os
import pickle
import subprocess
import sys
from typing import Any

from hypothesis import given, strategies as st
import pytest

from tinyhw.arithmetic import round_to
from tinyhw.config import Context
from tinyhw.dtype import (ALIASES_BY_TYPE, FLOAT_FORMATS, DType, can_lossless_cast, complex_of, decode_float,
                          dtypes,
                          encode_float, float_to_bf16,
                          float_to_fp8, float_to_fp16, fp8_to_float, least_upper_dtype, least_upper_float, plane_of,
                          to_dtype, truncate)
from tinyhw.errors import DTypeError
from tinyhw.tensor import Tensor

everything = pytest.mark.parametrize("d", dtypes.all, ids=str)
SMALL = tuple(d for d in dtypes.all if d.bitsize <= 16)

def values(d: DType) -> set[float]:
  """Every value of a type of up to 16 bits, NaN left out."""
  if d is dtypes.bool: return {0, 1}
  if dtypes.is_int(d): return set(range(int(d.min), int(d.max) + 1))
  return {x for x in (decode_float(code, d) for code in range(1 << d.bitsize)) if x == x}

@everything
def test_types_are_interned(d: DType) -> None:
  for lanes in (1, 2, 8):
    v = d.vec(lanes)
    assert v is d.vec(lanes) and v.scalar() is d and v.count == lanes and v.itemsize == (d.bitsize * lanes + 7) // 8
    assert pickle.loads(pickle.dumps(v)) is v and copy.deepcopy(v) is v
  assert d.vec(1) is d and eval(repr(d), {"dtypes": dtypes}) is d and eval(repr(d.vec(4)),
                                                                           {"dtypes": dtypes}) is d.vec(4)
  with pytest.raises(AssertionError, match="has lanes already"): d.vec(2).vec(2)

def test_names() -> None:
  for d, name in ALIASES_BY_TYPE.items():
    assert to_dtype(name) is d and to_dtype(name.upper()) is d and to_dtype(d) is d
  assert (to_dtype("half") is dtypes.float16 and to_dtype("double") is dtypes.float64
          and to_dtype("uchar") is dtypes.uint8)
  for wrong in ("float31", "is_float", "vec", ""):
    with pytest.raises(DTypeError, match="unknown dtype .*known: void, .*float64"): to_dtype(wrong)

@pytest.mark.parametrize("default", [dtypes.float32, dtypes.float16])
def test_types_of_python(default: DType) -> None:
  with Context(DEFAULT_FLOAT=default):
    assert to_dtype(float) is default and to_dtype(int) is dtypes.default_int and to_dtype(bool) is dtypes.bool
  for wrong in (str, object, None, 5, 1.0, [float], Tensor):
    with pytest.raises(DTypeError, match="unknown dtype"): to_dtype(wrong)  # type: ignore[arg-type]

def test_default_types_are_variables() -> None:
  with Context(DEFAULT_FLOAT=dtypes.half, DEFAULT_INT="int64"):
    assert (Tensor([1.5]).dtype, Tensor([1]).dtype, Tensor.rand(2).dtype) == (
      dtypes.float16, dtypes.int64, dtypes.float16)
    dtypes.default_float = dtypes.bfloat16            # inside of the Context alone
    assert Tensor(1.5).dtype is dtypes.bfloat16
  assert dtypes.default_float is dtypes.float32 and dtypes.default_int is dtypes.int32
  for wrong in ({"DEFAULT_FLOAT": "int32"}, {"DEFAULT_INT": dtypes.half}):
    with Context(**wrong), pytest.raises(DTypeError, match="DEFAULT_.* must be an?"):
      assert dtypes.default_float and dtypes.default_int

@pytest.mark.parametrize("key, value, shown", (("DEFAULT_FLOAT", "HALF", "float16"), ("DEFAULT_INT", "int64", "int64")))
def test_default_types_from_the_environment(key: str, value: str, shown: str) -> None:
  program = f"from tinyhw import dtypes; print(dtypes.{key.lower()})"
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                        env={**os.environ, key: value})
  assert done.stdout == f"dtypes.{shown}\n"

def test_types_of_numpy() -> None:
  np = pytest.importorskip("numpy")
  for d in dtypes.all:
    if d.fmt is None or d is dtypes.bfloat16: continue
    kind = np.dtype(d.fmt)
    for alike in (kind, kind.type, kind.newbyteorder()): assert to_dtype(alike) is d, alike
  assert (to_dtype(np.bool_) is dtypes.bool and to_dtype(np.intc) is dtypes.int32
          and to_dtype(np.longlong) is dtypes.int64)
  for wrong in (np.clongdouble, np.str_, np.datetime64, np.longdouble, np.dtype("S3"), np.dtype("f4,i4"), np.float32(1),
                np.ones(2)):
    with pytest.raises(DTypeError, match="unknown dtype"): to_dtype(wrong)

def test_types_of_ml_dtypes() -> None:
  ml_dtypes, np = pytest.importorskip("ml_dtypes"), pytest.importorskip("numpy")
  for name, d in (("bfloat16", dtypes.bfloat16), ("float8_e4m3fn", dtypes.fp8e4m3), ("float8_e5m2", dtypes.fp8e5m2),
                  ("float8_e4m3fnuz", dtypes.fp8e4m3fnuz), ("float8_e5m2fnuz", dtypes.fp8e5m2fnuz)):
    assert to_dtype(getattr(ml_dtypes, name)) is d and to_dtype(np.dtype(getattr(ml_dtypes, name))) is d

@pytest.mark.parametrize("kind", [float, "numpy"])
def test_methods_take_types_of_others(kind: Any) -> None:
  if kind == "numpy": kind = pytest.importorskip("numpy").float64
  wanted, x = to_dtype(kind), Tensor([[1, 2], [3, 4]])
  made = [Tensor([1], dtype=kind), Tensor(1, dtype=kind), x.cast(kind), x.sum(dtype=kind), x.prod(dtype=kind),
          x.softmax(dtype=kind),
          x.matmul(x, dtype=kind), x.linear(x, dtype=kind), x.full_like(1, dtype=kind), x.const_like(1, dtype=kind),
          Tensor.zeros(2, dtype=kind),
          Tensor.ones(2, dtype=kind), Tensor.full((2,), 1, dtype=kind), Tensor.empty(2, dtype=kind),
          Tensor.arange(2, dtype=kind),
          Tensor.linspace(0, 1, 2, dtype=kind), Tensor.eye(2, dtype=kind), Tensor.rand(2, dtype=kind),
          Tensor.randn(2, dtype=kind),
          Tensor.uniform(2, dtype=kind), x.randn_like(dtype=kind), x.zeros_like(dtype=kind),
          Tensor.einsum("ij->i", x, dtype=kind)]
  assert [t.dtype for t in made] == [wanted] * len(made)
  assert (x.bitcast(int).dtype is dtypes.int32 and Tensor.randint(2, dtype=int).dtype is dtypes.int32
          and x.cast(bool).dtype is dtypes.bool)

def test_groups_are_of_one_kind() -> None:
  assert (set(dtypes.all) == set(dtypes.floats) | set(dtypes.ints) | {dtypes.bool}
          and set(dtypes.narrow_floats) < set(dtypes.floats))
  for d in dtypes.all:
    assert ((dtypes.is_float(d), dtypes.is_int(d), dtypes.is_bool(d)).count(True) == 1
            and dtypes.is_float(d.vec(4)) == dtypes.is_float(d))
    assert not dtypes.is_unsigned(d) or d.min == 0

@everything
def test_limits(d: DType) -> None:
  if d in SMALL:
    assert (d.min, d.max) == (min(values(d)), max(values(d)))
  elif dtypes.is_int(d): assert int(d.max) - int(d.min) + 1 == 1 << d.bitsize and truncate[d](int(d.max) + 1) == d.min
  else: assert (d.min, d.max) == (-math.inf, math.inf)

# ***** promotion *****

@given(*[st.sampled_from(dtypes.all)] * 3)
def test_promotion_is_a_lattice(a: DType, b: DType, c: DType) -> None:
  both = least_upper_dtype(a, b)
  assert both is least_upper_dtype(b, a) and least_upper_dtype(a, a) is a and least_upper_dtype(a, both) is both
  # two of them have two least ancestors
  if len({a, b, c} & set(dtypes.fp8s)) < 2: assert least_upper_dtype(a, b, c) is least_upper_dtype(both, c)
  assert dtypes.is_float(both) == (dtypes.is_float(a) or dtypes.is_float(b))

@pytest.mark.parametrize("a, b, both", [
  (dtypes.int8, dtypes.uint8, dtypes.int16), (dtypes.int32, dtypes.uint32, dtypes.int64),
  (dtypes.int64, dtypes.uint64, dtypes.uint64),
  (dtypes.bool, dtypes.uint16, dtypes.uint16), (dtypes.int64, dtypes.float16, dtypes.float16),
  (dtypes.float16, dtypes.bfloat16, dtypes.float32),
  (dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.float16), (dtypes.float32, dtypes.float64, dtypes.float64)])
def test_promotions_that_everybody_knows(a: DType, b: DType, both: DType) -> None:
  assert least_upper_dtype(a, b) is both

def test_floats_of_integers() -> None:
  assert least_upper_float(dtypes.int64) is dtypes.default_float and least_upper_float(dtypes.float16) is dtypes.float16

@pytest.mark.parametrize("a, b", list(itertools.product(SMALL, SMALL)), ids=str)
def test_what_is_lossless_loses_nothing(a: DType, b: DType) -> None:
  lossless = all(values_of_cast(x, b) == x for x in values(a))
  if can_lossless_cast(a, b): assert lossless
  elif b is not dtypes.bool: assert not lossless or -0.0 in values(a), "it could have said yes"

def values_of_cast(x: float, d: DType) -> float:
  if dtypes.is_int(d) and (math.isinf(x) or x != int(x)): return math.nan
  return truncate[d](x)

# ***** numbers *****

@pytest.mark.parametrize("d", [d for d in dtypes.floats if d.bitsize <= 16], ids=str)
def test_every_code_is_read_and_written(d: DType) -> None:
  for code in range(1 << d.bitsize):
    x = decode_float(code, d)
    if x == x: assert encode_float(x, d) == code
  assert decode_float(FLOAT_FORMATS[d].largest_code, d) == max(x for x in values(d) if not math.isinf(x))

@pytest.mark.parametrize("d", [d for d in dtypes.floats if d.bitsize <= 16], ids=str)
def test_rounding_is_to_the_nearest_and_to_even_codes(d: DType) -> None:
  finite = sorted(x for x in values(d) if not math.isinf(x))
  for a, b in zip(finite, finite[1:]):
    if a == b: continue   # the zeros
    middle = (a + b) / 2
    low = encode_float(a, d)
    assert decode_float(encode_float(middle, d), d) == (a if low % 2 == 0 else b), f"halfway between {a} and {b}"
    assert encode_float(math.nextafter(middle, a),
                        d) == low and decode_float(encode_float(math.nextafter(middle, b), d), d) == b

@given(st.floats(), st.sampled_from([dtypes.float16, dtypes.float32]))
def test_numpy_agrees(x: float, d: DType) -> None:
  numpy = pytest.importorskip("numpy")
  with numpy.errstate(all="ignore"): want = float(numpy.float64(x).astype(numpy.dtype(d.fmt)))
  found = decode_float(encode_float(x, d), d)
  assert found == want and math.copysign(1, found) == math.copysign(1, want) or x != x and found != found

@given(st.floats(allow_nan=False))
def test_helpers_round(x: float) -> None:
  assert float_to_fp16(x) == decode_float(encode_float(x, dtypes.float16),
                                          dtypes.float16) and float_to_bf16(x) == truncate[dtypes.bfloat16](x)
  for d in dtypes.fp8s:
    found = fp8_to_float(float_to_fp8(x, d), d)
    assert found == decode_float(encode_float(x, d), d) or found != found

@given(st.integers(-(1 << 70), 1 << 70), st.sampled_from(dtypes.ints))
def test_integers_wrap(x: int, d: DType) -> None:
  found = truncate[d](x)
  assert d.min <= found <= d.max and (found - x) % (1 << d.bitsize) == 0 and d.const(x) == found == round_to(d)(x)

def test_constants_are_pythons() -> None:
  assert dtypes.bool.const(3) is True and dtypes.float32.const(1) == 1.0 and type(dtypes.float32.const(1)) is float
  assert dtypes.weakint.const(1 << 80) == 1 << 80 and dtypes.int8.vec(4).const(200) == -56
  with pytest.raises(DTypeError, match="no constant has type dtypes.void"): dtypes.void.const(0)

# ***** defaults *****

def test_types_of_python_numbers() -> None:
  assert [dtypes.from_py(x) for x in (True, 3, 1.5, [1, 2.0], [], [[True], [2]])] == [
    dtypes.bool, dtypes.default_int, dtypes.default_float, dtypes.default_float, dtypes.default_float,
    dtypes.default_int]
  with pytest.raises(DTypeError, match="no data type for 'x'"): dtypes.from_py("x")

def test_defaults_can_be_set() -> None:
  before = dtypes.default_float, dtypes.default_int
  try:
    dtypes.default_float, dtypes.default_int = dtypes.float16, dtypes.int64
    assert (dtypes.from_py(1.5) is dtypes.float16 and dtypes.from_py(1) is dtypes.int64
            and least_upper_float(dtypes.int8) is dtypes.float16)
    with pytest.raises(DTypeError, match="default_float must be a float type, not dtypes.int8"):
      dtypes.default_float = dtypes.int8
    with pytest.raises(DTypeError, match="default_int must be an integer type"): dtypes.default_int = dtypes.float32
  finally: dtypes.default_float, dtypes.default_int = before

def test_formats() -> None:
  assert dtypes.finfo(dtypes.float16) == (5, 10) and dtypes.finfo(dtypes.bfloat16.vec(4)) == (8, 7)
  for d, form in FLOAT_FORMATS.items(): assert form.bits == d.bitsize
  with pytest.raises(DTypeError, match="dtypes.int32 is not a float type"): dtypes.finfo(dtypes.int32)

def test_a_type_with_lanes_that_two_threads_make_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
  kind = DType.new(1, 8, "test", None)
  made, init = list[DType](), DType.__init__
  def raced(self: DType, *given: Any) -> None:
    init(self, *given)
    made.append(kind._vectors.setdefault(4, self))  # another thread is faster
    monkeypatch.setattr(DType, "__init__", init)
  def other(self: DType, *given: Any) -> None:
    monkeypatch.setattr(DType, "__init__", raced)
    DType(1, 8, "test.vec(4)", None, 4, kind)
    init(self, *given)
  monkeypatch.setattr(DType, "__init__", other)
  assert kind.vec(4) is made[0] is kind.vec(4)

def test_complex_types() -> None:
  """Types of tensors, whose planes have a real type."""
  assert to_dtype(complex) is to_dtype("cfloat") is dtypes.complex64
  assert [plane_of(d) for d in (*dtypes.complexes, dtypes.int8)] == [dtypes.float32, dtypes.float64, dtypes.int8]
  assert [complex_of(d) for d in (dtypes.float64, dtypes.float32, dtypes.float16, dtypes.int64)] == [
    dtypes.complex128, *[dtypes.complex64] * 3]
  assert least_upper_dtype(dtypes.complex64, dtypes.float64) is dtypes.complex128
  assert least_upper_dtype(dtypes.complex64, dtypes.int64) is least_upper_dtype(dtypes.complex64, dtypes.float16)
  assert not set(dtypes.complexes) & set(dtypes.all)
