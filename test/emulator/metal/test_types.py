"""The type in which two operands meet."""
import pytest

from tinyhw.emulator.metal.parse import TypeName
from tinyhw.emulator.metal.types import ValueType, common, promoted, value_type
from tinyhw.emulator.metal.words import SourceError

@pytest.mark.parametrize(("a", "b", "found"), [
  ("char", "uchar", "int"), ("bool", "short", "int"), ("int", "uint", "uint"), ("uint", "long", "long"),
  ("long", "ulong", "ulong"), ("int", "float", "float"), ("float", "float", "float"), ("ushort", "uint", "uint")])
def test_scalars(a: str, b: str, found: str) -> None:
  assert common(ValueType(a), ValueType(b), 1) == common(ValueType(b), ValueType(a), 1) == ValueType(found)

def test_vectors_meet_their_own_type_only() -> None:
  pair = ValueType("float", 2)
  assert common(pair, pair, 1) == pair == value_type(TypeName("float2")) and str(pair) == "float2"
  for other in (ValueType("float"), ValueType("float", 4), ValueType("int", 2)):
    with pytest.raises(SourceError, match="program_source:7: error: invalid operands: float2"): common(pair, other, 7)

def test_halves_have_no_arithmetic() -> None:
  with pytest.raises(SourceError, match="arithmetic of half"): common(ValueType("half"), ValueType("float"), 1)
  assert promoted("uchar") == "int" and promoted("uint") == "uint" and promoted("float") == "float"
