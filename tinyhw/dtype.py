"""Data types: element types, their promotion, and the rounding of numbers to them.

A `DType` is interned, so types compare with `is`. `dtype.vec(n)` has n lanes of it, as a vector register holds them.
Codegen decides how a device treats a type: some types are for storage only, others have arithmetic.
"""
from __future__ import annotations
import math
import struct
import sys
from collections.abc import Callable
from typing import Any, Union

from tinyhw.config import DEFAULT_FLOAT, DEFAULT_INT, ContextVar
from tinyhw.errors import DTypeError

ConstType = float | int | bool
DTypeLike = Union[str, type, "DType"]   # and NumPy's dtypes, whose class is not known here

class DType:
  """An element type with `count` lanes. priority orders promotion; bitsize is per lane; fmt is the struct format
  character or None.

  itemsize: bytes of one value, all lanes counted. Plain attributes: a compile asks for them a hundred thousand times.
  """
  __slots__ = ("priority", "bitsize", "name", "fmt", "count", "itemsize", "_scalar", "_vectors", "_limits",
               "__weakref__")

  def __init__(self, priority: int, bitsize: int, name: str, fmt: str | None, count: int = 1,
               scalar: DType | None = None):
    self.priority, self.bitsize, self.name, self.fmt, self.count = priority, bitsize, name, fmt, count
    self.itemsize = (bitsize * count + 7) // 8
    self._scalar = scalar or self
    self._vectors: dict[int, DType] = {}
    self._limits: tuple[ConstType, ConstType] | None = None

  @staticmethod
  def new(priority: int, bitsize: int, name: str, fmt: str | None) -> DType: return DType(priority, bitsize, name, fmt)

  def vec(self, lanes: int) -> DType:
    """The type with `lanes` lanes of this scalar type. vec(1) is the type itself."""
    assert self.count == 1, f"{self} has lanes already"
    if lanes == 1 or self.bitsize == 0: return self
    found = self._vectors.get(lanes)
    if found is None:
      found = self._vectors.setdefault(lanes, DType(self.priority, self.bitsize, f"{self.name}.vec({lanes})", None,
                                                    lanes, self))
    return found

  def scalar(self) -> DType: return self._scalar

  @property
  def setting(self) -> str:
    """Its name as the text of a variable: `Context(DEFAULT_FLOAT=dtypes.half)`."""
    return str(self).removeprefix("dtypes.")

  @property
  def min(self) -> ConstType: return self.limits()[0]

  @property
  def max(self) -> ConstType: return self.limits()[1]

  def limits(self) -> tuple[ConstType, ConstType]:
    """The least and the largest value of a lane."""
    if self._limits is None: self._limits = _limits_of(self._scalar)
    return self._limits

  def const(self, val: ConstType) -> ConstType:
    """Return val as a Python bool, int or float, as a CONST of this type holds it.

    Integers wrap. Floats are not rounded beyond Python's precision.
    """
    scalar = self.scalar()
    if scalar is dtypes.bool: return bool(val)
    if dtypes.is_float(scalar): return float(val)
    if dtypes.is_int(scalar): return int(val) if scalar is dtypes.weakint else truncate[scalar](val)
    raise DTypeError(f"no constant has type {self}")

  def __repr__(self) -> str:
    return f"dtypes.{ALIASES_BY_TYPE.get(self.scalar(), self.name)}" + (f".vec({self.count})" if self.count > 1 else "")
  def __reduce__(self) -> Any: return _restore, (self.scalar().name, self.count)
  def __lt__(self, other: DType) -> bool:
    return (self.priority, self.bitsize, self.name) < (other.priority, other.bitsize, other.name)

class DTypes:
  """The types by name, with C's names as aliases, and questions about them."""
  void = DType.new(-1, 0, "void", None)
  weakint = DType.new(-1, 800, "weakint", None)     # an integer of no fixed width: Python numbers and index expressions
  weakfloat = DType.new(-1, 800, "weakfloat", None)
  bool = DType.new(0, 1, "bool", "?")
  int8 = DType.new(1, 8, "signed char", "b")
  uint8 = DType.new(2, 8, "unsigned char", "B")
  int16 = DType.new(3, 16, "short", "h")
  uint16 = DType.new(4, 16, "unsigned short", "H")
  int32 = DType.new(5, 32, "int", "i")
  uint32 = DType.new(6, 32, "unsigned int", "I")
  int64 = DType.new(7, 64, "long", "q")
  uint64 = DType.new(8, 64, "unsigned long", "Q")
  fp8e4m3 = DType.new(9, 8, "float8_e4m3", None)
  fp8e5m2 = DType.new(10, 8, "float8_e5m2", None)
  fp8e4m3fnuz = DType.new(11, 8, "float8_e4m3fnuz", None)
  fp8e5m2fnuz = DType.new(12, 8, "float8_e5m2fnuz", None)
  float16 = DType.new(13, 16, "half", "e")
  bfloat16 = DType.new(14, 16, "__bf16", None)
  float32 = DType.new(15, 32, "float", "f")
  float64 = DType.new(16, 64, "double", "d")
  complex64 = DType.new(17, 64, "complex64", None)      # two planes of floats, of which no kernel knows
  complex128 = DType.new(18, 128, "complex128", None)

  half, float, double = float16, float32, float64
  cfloat, cdouble = complex64, complex128
  char, short, int, long = int8, int16, int32, int64
  uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64

  fp8_ocp, fp8_fnuz = (fp8e4m3, fp8e5m2), (fp8e4m3fnuz, fp8e5m2fnuz)
  fp8s = fp8_ocp + fp8_fnuz
  narrow_floats = fp8s + (float16, bfloat16)  # arithmetic on them is done in float32
  floats = narrow_floats + (float32, float64)
  int8s, int16s, int32s, int64s = (int8, uint8), (int16, uint16), (int32, uint32), (int64, uint64)
  uints = (uint8, uint16, uint32, uint64)
  sints = (int8, int16, int32, int64)
  ints = uints + sints
  weaks = (weakint, weakfloat)
  complexes = (complex64, complex128)    # types of tensors, not of elements in memory: not in `all`
  all = floats + ints + (bool,)

  @property
  def default_float(self) -> DType:
    """The type of Tensor(1.5), rand and zeros; float32 unless DEFAULT_FLOAT says otherwise. An assignment sets it."""
    return _setting(DEFAULT_FLOAT)

  @default_float.setter
  def default_float(self, dtype: DType) -> None:
    if not dtypes.is_float(dtype): raise DTypeError(f"default_float must be a float type, not {dtype}")
    DEFAULT_FLOAT.value = dtype.setting

  @property
  def default_int(self) -> DType:
    """The type of Tensor(1) and arange; int32 unless DEFAULT_INT says otherwise. An assignment sets it."""
    return _setting(DEFAULT_INT)

  @default_int.setter
  def default_int(self, dtype: DType) -> None:
    if not dtypes.is_int(dtype): raise DTypeError(f"default_int must be an integer type, not {dtype}")
    DEFAULT_INT.value = dtype.setting

  @staticmethod
  def is_float(x: DType) -> bool_: return x._scalar in _FLOATS

  @staticmethod
  def is_int(x: DType) -> bool_: return x._scalar in _INTS

  @staticmethod
  def is_unsigned(x: DType) -> bool_: return x._scalar in _UINTS

  @staticmethod
  def is_complex(x: DType) -> bool_: return x in DTypes.complexes

  @staticmethod
  def is_bool(x: DType) -> bool_: return x._scalar is DTypes.bool

  def from_py(self, x: Any) -> DType:
    """The default type of a Python number, or of nested lists of them.

    >>> dtypes.from_py(1.5)
    dtypes.float32
    """
    if type(x) is bool: return DTypes.bool
    if type(x) is int: return self.default_int
    if type(x) is float: return self.default_float
    if isinstance(x, (list, tuple)):
      kinds = {self.from_py(item) for item in x}
      return max(kinds, key=lambda d: d.priority) if kinds else self.default_float
    raise DTypeError(f"no data type for {x!r} of {type(x)}; give a number, a list of numbers, or dtype=")

  @staticmethod
  def finfo(dtype: DType) -> tuple[int_, int_]:
    """(bits of the exponent, bits of the mantissa) of a float type.

    >>> dtypes.finfo(dtypes.float16)
    (5, 10)
    """
    if not dtypes.is_float(dtype): raise DTypeError(f"{dtype} is not a float type")
    form = _format_of(dtype.scalar())
    return form.exponent_bits, form.mantissa_bits

bool_ = bool
int_ = int
dtypes = DTypes()
_FLOATS = frozenset(DTypes.floats + (DTypes.weakfloat,))
_INTS = frozenset(DTypes.ints + (DTypes.weakint,))
_UINTS = frozenset(DTypes.uints)

ALIASES_BY_TYPE: dict[DType, str] = {}
for _name in ("void", "weakint", "weakfloat", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
              "uint64", "fp8e4m3", "fp8e5m2",
              "fp8e4m3fnuz", "fp8e5m2fnuz", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
  ALIASES_BY_TYPE[getattr(DTypes, _name)] = _name
_BY_CNAME = {d.name: d for d in ALIASES_BY_TYPE}

def _restore(name: str, count: int) -> DType: return _BY_CNAME[name].vec(count)

def to_dtype(dtype: DTypeLike) -> DType:
  """Return a type for a type, a name ("float32", "half"), Python's float, int or bool (the default types), or NumPy's
  types.

  >>> dtype.to_dtype("float16")
  dtypes.float16
  >>> dtype.to_dtype(float)
  dtypes.float32
  """
  if isinstance(dtype, DType): return dtype
  if dtype is bool or dtype is int or dtype is float: return dtypes.from_py(dtype())
  if dtype is complex: return complex_of(dtypes.default_float)
  name = dtype if isinstance(dtype, str) else _numpy_name(dtype)
  found = getattr(DTypes, name.lower(), None) or _NUMPY.get(name)
  if not isinstance(found, DType):
    raise DTypeError(f"unknown dtype {dtype!r}; known: {', '.join(ALIASES_BY_TYPE.values())}")
  return found

# (variable, its text) -> the type
_SETTINGS: dict[tuple[str, str], DType] = {}

def _setting(variable: ContextVar[str]) -> DType:
  """Return the type that DEFAULT_FLOAT or DEFAULT_INT names. Raises DTypeError for one of another kind."""
  key = variable.key, variable.value
  if key not in _SETTINGS:
    found, floats = to_dtype(key[1].lower()), variable is DEFAULT_FLOAT
    if not (dtypes.is_float if floats else dtypes.is_int)(found):
      raise DTypeError(f"{variable.key} must be {'a float' if floats else 'an integer'} type, not {found}")
    _SETTINGS[key] = found
  return _SETTINGS[key]

def plane_of(dtype: DType) -> DType:
  """Return the type of the real and of the imaginary parts of a complex type; another type itself.

  >>> dtype.plane_of(dtypes.complex64)
  dtypes.float32
  """
  return {DTypes.complex64: DTypes.float32, DTypes.complex128: DTypes.float64}.get(dtype, dtype)

def complex_of(dtype: DType) -> DType:
  """Return the complex type whose parts hold a real type: complex128 for float64, else complex64.

  >>> dtype.complex_of(dtypes.float32)
  dtypes.complex64
  """
  return DTypes.complex128 if dtype in (DTypes.float64, DTypes.complex128) else DTypes.complex64

# Types that extensions of NumPy name differently.
_NUMPY = {
  "float8_e4m3fn": DTypes.fp8e4m3, "float8_e5m2": DTypes.fp8e5m2, "float8_e4m3fnuz": DTypes.fp8e4m3fnuz,
  "float8_e5m2fnuz": DTypes.fp8e5m2fnuz,
}

def _numpy_name(dtype: Any) -> str:
  """Return the name of a NumPy dtype, or of a NumPy number class; "" for anything else.

  It does not import NumPy.
  """
  numpy = sys.modules.get("numpy")
  if numpy is None: return ""
  if isinstance(dtype, type) and issubclass(dtype, numpy.generic): dtype = numpy.dtype(dtype)
  return str(dtype.name) if isinstance(dtype, numpy.dtype) else ""

# ***** promotion *****

# Each type promotes to those next to it. The sum of two types has the type of their least common ancestor (as in JAX's
# lattice). Two fp8 types have two such ancestors; float16 is taken.
_PROMOTES: dict[DType, tuple[DType, ...]] = {
  DTypes.bool: (DTypes.weakint,), DTypes.weakint: (DTypes.int8, DTypes.uint8), DTypes.int8: (DTypes.int16,),
  DTypes.int16: (DTypes.int32,),
  DTypes.int32: (DTypes.int64,), DTypes.int64: (DTypes.uint64,), DTypes.uint8: (DTypes.int16, DTypes.uint16),
  DTypes.uint16: (DTypes.int32, DTypes.uint32),
  DTypes.uint32: (DTypes.int64, DTypes.uint64), DTypes.uint64: (DTypes.weakfloat,), DTypes.weakfloat: DTypes.fp8s,
  DTypes.fp8e4m3: (DTypes.float16, DTypes.bfloat16), DTypes.fp8e5m2: (DTypes.float16, DTypes.bfloat16),
  DTypes.fp8e4m3fnuz: (DTypes.float16, DTypes.bfloat16), DTypes.fp8e5m2fnuz: (DTypes.float16, DTypes.bfloat16),
  DTypes.float16: (DTypes.float32,), DTypes.bfloat16: (DTypes.float32,),
  DTypes.float32: (DTypes.float64, DTypes.complex64), DTypes.float64: (DTypes.complex128,),
  DTypes.complex64: (DTypes.complex128,), DTypes.complex128: (),
}
_ancestors: dict[DType, frozenset[DType]] = {}
_least_upper: dict[tuple[DType, ...], DType] = {}

def _ancestors_of(dtype: DType) -> frozenset[DType]:
  if dtype not in _ancestors:
    _ancestors.setdefault(dtype, frozenset({dtype}).union(*(_ancestors_of(p) for p in _PROMOTES[dtype])))
  return _ancestors[dtype]

def least_upper_dtype(*ds: DType) -> DType:
  """The type to which all of ds promote. int64 with uint64 gives uint64; an integer with a float gives the float.

  >>> dtype.least_upper_dtype(dtypes.int8, dtypes.float16)
  dtypes.float16
  """
  found = _least_upper.get(ds)
  if found is None:
    common = frozenset.intersection(*(_ancestors_of(d.scalar()) for d in ds))
    found = _least_upper.setdefault(ds, min(common - set(DTypes.weaks) or common, key=lambda d: d.priority))
  return found

def least_upper_float(dt: DType) -> DType:
  """Return dt if it is a float type, else its promotion with the default float type.

  >>> dtype.least_upper_float(dtypes.int32)
  dtypes.float32
  """
  return dt if dtypes.is_float(dt) else least_upper_dtype(dt, dtypes.default_float)

def can_lossless_cast(dt0: DType, dt1: DType) -> bool:
  """True when every value of dt0 is a value of dt1.

  >>> dtype.can_lossless_cast(dtypes.int8, dtypes.int16)
  True
  """
  if dt0 is dt1 or dt0 is dtypes.bool: return True
  if dt1 is dtypes.bool: return False
  if dtypes.is_int(dt0) and dtypes.is_int(dt1):
    return dt1 is dtypes.weakint or (dt0 is not dtypes.weakint and dt1.min <= dt0.min and dt0.max <= dt1.max)
  if not dtypes.is_float(dt1): return False
  to = _format_of(dt1)
  if dtypes.is_int(dt0):
    return (dt0 is not dtypes.weakint and dt0.bitsize - (not dtypes.is_unsigned(dt0)) <= to.mantissa_bits + 1
            and dt0.max <= dt1.max)
  source = _format_of(dt0)
  if source.fnuz != to.fnuz and not (source.fnuz and to.mantissa_bits >= 10): return False
  return source.exponent_bits <= to.exponent_bits and source.mantissa_bits <= to.mantissa_bits

# ***** numbers *****

class FloatFormat:
  """The layout of a float type: sign, exponent, mantissa. has_inf: it encodes infinities. fnuz: no negative zero, the
  bias is one more, 0x80 is NaN."""
  def __init__(self, exponent_bits: int, mantissa_bits: int, has_inf: bool = True, fnuz: bool = False):
    self.exponent_bits, self.mantissa_bits, self.has_inf, self.fnuz = exponent_bits, mantissa_bits, has_inf, fnuz
    self.bias = (1 << (exponent_bits - 1)) - 1 + fnuz
    self.bits = 1 + exponent_bits + mantissa_bits

  @property
  def largest_code(self) -> int:
    """The code of the largest finite number, sign clear."""
    top = (1 << (self.bits - 1)) - 1
    if self.has_inf: return top - (1 << self.mantissa_bits)
    return top if self.fnuz else top - 1

FLOAT_FORMATS: dict[DType, FloatFormat] = {
  DTypes.float64: FloatFormat(11, 52), DTypes.float32: FloatFormat(8, 23), DTypes.float16: FloatFormat(5, 10),
  DTypes.bfloat16: FloatFormat(8, 7),
  DTypes.fp8e4m3: FloatFormat(4, 3, has_inf=False), DTypes.fp8e5m2: FloatFormat(5, 2),
  DTypes.fp8e4m3fnuz: FloatFormat(4, 3, False, True), DTypes.fp8e5m2fnuz: FloatFormat(5, 2, False, True),
}

def _format_of(dtype: DType) -> FloatFormat:
  return FLOAT_FORMATS[dtypes.float64 if dtype is dtypes.weakfloat else dtype]

def decode_float(code: int, dtype: DType) -> float:
  """Return the number of an encoded float.

  Source: IEEE 754; OCP 8-bit floating point specification; the FNUZ variants of AMD.
  """
  form = FLOAT_FORMATS[dtype]
  sign, magnitude = code >> (form.bits - 1), code & ((1 << (form.bits - 1)) - 1)
  if form.fnuz and sign and not magnitude: return math.nan
  if magnitude > form.largest_code:
    if form.has_inf and magnitude == form.largest_code + 1: return -math.inf if sign else math.inf
    return math.nan
  exponent, mantissa = magnitude >> form.mantissa_bits, magnitude & ((1 << form.mantissa_bits) - 1)
  if exponent: value = math.ldexp(mantissa + (1 << form.mantissa_bits), exponent - form.bias - form.mantissa_bits)
  else: value = math.ldexp(mantissa, 1 - form.bias - form.mantissa_bits)
  return -value if sign else value

def encode_float(x: float, dtype: DType) -> int:
  """Return the type's code of x, rounded to nearest, ties to even.

  Overflow gives infinity, or NaN in a type without infinities. It does not saturate.
  """
  form = FLOAT_FORMATS[dtype]
  sign = 1 << (form.bits - 1) if math.copysign(1.0, x) < 0 else 0
  overflow = form.largest_code + 1 if form.has_inf else (1 << (form.bits - 1)) - 1
  if form.fnuz: overflow = nan = 1 << (form.bits - 1)
  else: nan = (1 << (form.bits - 1)) - 1 if not form.has_inf else overflow + (1 << (form.mantissa_bits - 1))
  if math.isnan(x): return nan if form.fnuz else sign | nan
  if math.isinf(x): return overflow if form.fnuz else sign | overflow
  if x == 0: return 0 if form.fnuz else sign
  _, exponent = math.frexp(abs(x))
  quantum = max(exponent - 1, 1 - form.bias) - form.mantissa_bits          # the exponent of the last bit
  steps = (_round_half_even(math.ldexp(abs(x), -quantum)) if quantum > -1070
           else _round_half_even(abs(x) / 2.0 ** -1000 / 2.0 ** (quantum + 1000)))
  code = steps + ((quantum + form.bias + form.mantissa_bits - 1) << form.mantissa_bits)
  if code > form.largest_code: return overflow if form.fnuz else sign | overflow
  return sign | code if code or not form.fnuz else 0

# Python's round is half to even, and exact here: x has at most 53 bits.
def _round_half_even(x: float) -> int: return round(x)

def float_to_fp16(x: float) -> float:
  """x rounded to float16; overflow gives infinity.

  >>> dtype.float_to_fp16(0.1)
  0.0999755859375
  """
  return decode_float(encode_float(x, dtypes.float16), dtypes.float16)

def float_to_bf16(x: float) -> float:
  """x rounded to bfloat16; overflow gives infinity.

  >>> dtype.float_to_bf16(0.1)
  0.10009765625
  """
  return decode_float(encode_float(x, dtypes.bfloat16), dtypes.bfloat16)

def float_to_fp8(x: float, dtype: DType) -> int:
  """The 8-bit code of x in an fp8 type.

  >>> dtype.float_to_fp8(1.0, dtypes.fp8e4m3)
  56
  """
  return encode_float(x, dtype)

def fp8_to_float(x: int, dtype: DType) -> float:
  """Return the number of an 8-bit code of an fp8 type.

  >>> dtype.fp8_to_float(56, dtypes.fp8e4m3)
  1.0
  """
  return decode_float(x, dtype)

_FLOAT32 = struct.Struct("f")

def _round_float32(x: float) -> float:
  try: return float(_FLOAT32.unpack(_FLOAT32.pack(x))[0])
  except OverflowError: return math.copysign(math.inf, x)

def _wrap(bits: int, signed: bool) -> Callable[[Any], int]:
  mask, half = (1 << bits) - 1, 1 << (bits - 1)
  if signed: return lambda x: ((int(x) + half) & mask) - half
  return lambda x: int(x) & mask

# truncate[dtype](x): x as the type would hold it. Integers wrap, floats round to nearest even.
truncate: dict[DType, Callable[[Any], Any]] = {
  DTypes.bool: bool, DTypes.weakint: int, DTypes.weakfloat: float, DTypes.float64: float,
  DTypes.float32: _round_float32,
  DTypes.float16: float_to_fp16, DTypes.bfloat16: float_to_bf16,
  # no type of d
  **{d: (lambda x, d=d: decode_float(encode_float(x, d), d)) for d in DTypes.fp8s},  # type: ignore[misc]
  **{d: _wrap(d.bitsize, True) for d in DTypes.sints}, **{d: _wrap(d.bitsize, False) for d in DTypes.uints},
}

def _limits_of(dtype: DType) -> tuple[ConstType, ConstType]:
  if dtype is dtypes.bool: return False, True
  if dtype is dtypes.weakint: return -(1 << 799), (1 << 799) - 1
  if dtypes.is_unsigned(dtype): return 0, (1 << dtype.bitsize) - 1
  if dtypes.is_int(dtype): return -(1 << (dtype.bitsize - 1)), (1 << (dtype.bitsize - 1)) - 1
  if dtype in FLOAT_FORMATS and not FLOAT_FORMATS[dtype].has_inf:
    largest = decode_float(FLOAT_FORMATS[dtype].largest_code, dtype)
    return -largest, largest
  return -math.inf, math.inf
