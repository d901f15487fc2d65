"""Types of values and pointers in Metal's language, and the type in which two operands meet.

Types follow C++: operands narrower than int become int, a signed and an unsigned one of the same size become unsigned.
"""
from __future__ import annotations

from tinyhw.emulator.metal.numbers import INTEGERS, SIZES, UNSIGNED
from tinyhw.emulator.metal.parse import VECTORS, TypeName
from tinyhw.emulator.metal.words import SourceError
from tinyhw.named_tuple import NamedTuple

class ValueType(NamedTuple):
  """The type of a value: a scalar's name, and the number of lanes; a matrix of the SIMD-group has no lanes."""
  name: str
  lanes: int = 1
  def __str__(self) -> str: return f"{self.name}{self.lanes}" if self.lanes > 1 else self.name

class MslValue(NamedTuple):
  """An expression of Python. rounded: a float that is a float32; clean: one that is not subnormal."""
  text: str
  type: ValueType
  rounded: bool = True
  clean: bool = True

class MslPointer(NamedTuple):
  """A pointer. memory: the argument that it points into, `base` bytes from its start, and `at` elements after that.
  """
  memory: str
  space: str
  name: str
  base: int = 0
  at: str = ""

class MslStructure(NamedTuple):
  """An argument that is a structure of pointers."""
  pointers: dict[str, MslPointer]

class Accessor(NamedTuple):
  """A way into memory, for elements of a type: `lanes` adjacent ones, from `base` bytes on."""
  memory: str
  base: int
  name: str
  lanes: int
  is_store: bool

BOOL, FLOAT = ValueType("bool"), ValueType("float")

def value_type(kind: TypeName) -> ValueType:
  if kind.name in VECTORS: return ValueType(*VECTORS[kind.name])
  return ValueType(kind.name)

def promoted(name: str) -> str: return "int" if name in INTEGERS and SIZES[name] < 4 else name

def common(a: ValueType, b: ValueType, line: int) -> ValueType:
  """Return the type in which two operands meet."""
  if a.lanes > 1 or b.lanes > 1:
    if a != b: raise SourceError(line, f"invalid operands: {a} and {b}")
    return a
  if "half" in (a.name, b.name): raise SourceError(line, "arithmetic of half is not in the subset of kernels")
  if "float" in (a.name, b.name): return FLOAT
  one, two = promoted(a.name), promoted(b.name)
  if SIZES[one] != SIZES[two]: return ValueType(one if SIZES[one] > SIZES[two] else two)
  return ValueType(one if one in UNSIGNED else two)
