"""Expressions of Metal's language as Python: values with their types, and pointers.

Implicit conversions between floats and integers are refused, but for integers among the operands of a float.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.emulator.metal import numbers
from tinyhw.emulator.metal.numbers import INTEGERS, SIGNED, SIZES, UNSIGNED, bits_of, range_of
from tinyhw.emulator.metal.parse import MATRICES, VECTORS, Expr, FunctionTree, TypeName
from tinyhw.emulator.metal.types import (
  BOOL, FLOAT, Accessor, MslPointer, MslStructure, MslValue, ValueType, common, promoted, value_type)
from tinyhw.emulator.metal.words import SourceError

Name = MslValue | MslPointer | MslStructure | ValueType   # what a name may stand for
ARITHMETIC = ("+", "-", "*", "/", "%")
BITWISE = ("&", "|", "^")
COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")

class ValueWriter:
  """Values in one function. scopes: names that are visible, the innermost block last. helpers: of the source.

  accessors: the ways into memory, and their names in Python. functions: made for this source: conversions, operations
  on vectors. meets: do threads meet in an expression?
  """
  def __init__(self, tree: FunctionTree, helpers: dict[str, FunctionTree]):
    self.tree, self.helpers = tree, helpers
    self.scopes: list[dict[str, Name]] = [{}]
    self.accessors: dict[Accessor, str] = {}
    self.functions: dict[str, Any] = {}
    self.meets, self.sites = False, 0

  # **** names ****

  def declare(self, name: str, what: Name, line: int) -> None:
    if any(name in scope for scope in self.scopes):   # Python has one variable for both
      raise SourceError(line, f"redefinition of {name!r}; names that hide others are not in the subset of kernels")
    self.scopes[-1][name] = what

  def find(self, name: str, line: int) -> Name:
    found = next((scope[name] for scope in reversed(self.scopes) if name in scope), None)
    if found is None: raise SourceError(line, f"use of undeclared identifier {name!r}")
    return found

  def made(self, key: str, function: Any) -> str:
    """Return the name of a function that the Python calls."""
    self.functions[key] = function
    return key

  def site(self, line: int) -> str:
    """Return a name for a place where threads meet."""
    self.meets = True
    self.sites += 1
    return f"({line}, {self.sites})"

  # **** pointers ****

  def pointer(self, e: Expr) -> MslPointer:
    """Return a pointer: an argument or variable, a cast of one, or one that is moved."""
    if e.kind == "name":
      found = self.find(e.text, e.line)
      if isinstance(found, MslPointer): return found
    elif e.kind == "member" and e.parts[0].kind == "name":
      structure = self.scopes[0].get(e.parts[0].text)
      if isinstance(structure, MslStructure) and e.text in structure.pointers: return structure.pointers[e.text]
    elif e.kind == "cast" and e.type is not None and e.type.mark == "*": return self.pointer_as(e.type, e.parts[0])
    elif e.kind == "binary" and e.text == "+":
      found, by = self.pointer(e.parts[0]), self.value(e.parts[1])
      if by.type.name not in INTEGERS or by.type.lanes > 1: raise SourceError(e.line, f"a pointer moves by {by.type}")
      if found.at: raise SourceError(e.line, "pointers that move twice are not in the subset of kernels")
      if e.parts[1].kind == "number": return found._replace(base=found.base + int(by.text) * SIZES[found.name])
      return found._replace(at=by.text)
    raise SourceError(e.line, "the expression is no pointer")

  def pointer_as(self, kind: TypeName, e: Expr) -> MslPointer:
    """Return a pointer as one of another type. Its address space stays."""
    found = self.pointer(e)
    if kind.space != found.space: raise SourceError(e.line, f"a pointer into {found.space} memory becomes {kind.space}")
    if found.at and kind.mark and kind.name not in (found.name, *VECTORS):
      raise SourceError(e.line, "an element of another type")
    if kind.name in VECTORS:
      if VECTORS[kind.name][0] != found.name: raise SourceError(e.line, f"{kind.name} in memory of {found.name}")
      return found
    return found._replace(name=kind.name)

  def place(self, e: Expr) -> tuple[MslPointer, ValueType]:
    """Return where an element or a vector in memory is, and its type."""
    if e.kind == "deref":
      inner = e.parts[0]
      if inner.kind != "cast" or inner.type is None: raise SourceError(e.line, "* of a pointer without its type")
      found = self.pointer(inner)
      return (found if found.at else found._replace(at="0")), value_type(inner.type)
    if e.kind != "index": raise SourceError(e.line, "the expression is not assignable")
    found, at = self.pointer(e.parts[0]), self.value(e.parts[1])
    if at.type.name not in INTEGERS or at.type.lanes > 1:
      raise SourceError(e.line, f"an index is an integer, not {at.type}")
    if found.at: raise SourceError(e.line, "an index of a moved pointer is not in the subset of kernels")
    return found._replace(at=at.text), ValueType(found.name)

  def accessor(self, pointer: MslPointer, kind: ValueType, is_store: bool) -> str:
    key = Accessor(pointer.memory, pointer.base, kind.name, kind.lanes, is_store)
    return self.accessors.setdefault(key, f"A{len(self.accessors)}")

  def element(self, e: Expr) -> tuple[ValueType, int]:
    """Return the matrix of `name.thread_elements()[k]`, and k."""
    inner = e.parts[0].parts[0]
    found, k = self.find(inner.text, e.line), e.parts[1]
    if not isinstance(found, ValueType): raise SourceError(e.line, f"{inner.text!r} is no matrix")
    if k.kind != "number" or k.text not in ("0", "1"): raise SourceError(e.line, "a thread has the elements 0 and 1")
    return found, int(k.text)

  # **** values ****

  def value(self, e: Expr) -> MslValue:
    found: MslValue = getattr(self, f"value_of_{e.kind}")(e)
    return found

  def whole(self, value: MslValue) -> str:
    """Return the text of a value; floats are rounded."""
    return value.text if value.rounded else f"ROUND({value.text})"

  def operand(self, value: MslValue) -> str:
    """Return the text of a value as arithmetic reads it: subnormal float32 are zeros."""
    if value.type.name != "float" or value.clean and value.rounded: return value.text
    return f"FLUSH({value.text})" if value.rounded else f"ROUND({value.text})"

  def truth(self, value: MslValue) -> str:
    """Return a condition."""
    if value.type.lanes > 1: raise SourceError(self.tree.line, f"a condition of {value.type}")
    return value.text if value.type == BOOL else f"({self.operand(value)} != 0)"

  def converted(self, value: MslValue, target: ValueType, line: int, explicit: bool = False) -> MslValue:
    """Return a value as another type. explicit: by a cast."""
    source = value.type
    if source == target: return value
    if source.lanes > 1 or target.lanes > 1: raise SourceError(line, f"no conversion from {source} to {target}")
    is_from_int, is_to_int = source.name in INTEGERS, target.name in INTEGERS
    if target == BOOL: return MslValue(self.truth(value), BOOL)
    if is_from_int and is_to_int: return MslValue(self.wrap(value.text, source.name, target.name), target)
    if not explicit and not (is_from_int and target == FLOAT):
      raise SourceError(line, f"implicit conversion from {source} to {target}")
    if is_from_int and target == FLOAT:
      if SIZES[source.name] < 8: return MslValue(f"float({value.text})", FLOAT, rounded=SIZES[source.name] < 4)
      return MslValue(f"FROM_LONG({value.text})", FLOAT)
    if source == FLOAT and target.name == "half": return MslValue(f"TO_HALF({self.whole(value)})", target)
    if source.name == "half" and target == FLOAT: return MslValue(value.text, FLOAT)
    if source == FLOAT and is_to_int:
      low, high = range_of(target.name)
      return MslValue(f"TO_INTEGER({self.whole(value)}, {low}, {high})", target)
    raise SourceError(line, f"no conversion from {source} to {target}")

  def wrap(self, text: str, source: str, target: str) -> str:
    """Return an integer in the range of another type."""
    (low, high), (least, most) = range_of(source), range_of(target)
    if least <= low and high <= most: return f"({text} + 0)" if source == "bool" else text
    bits = bits_of(target)
    if target in UNSIGNED: return f"({text} & {most})"
    return f"(({text} + {1 << bits - 1} & {(1 << bits) - 1}) - {1 << bits - 1})"

  def value_of_number(self, e: Expr) -> MslValue:
    text = e.text
    if "." in text or "e" in text:
      if not text.endswith("f"): raise SourceError(e.line, f"{text} is a double, which Metal does not have; write f")
      exact = float(text[:-1])
      if math.isinf(exact) or numbers.rounded(exact) != exact and abs(exact) >= numbers.TINY:
        raise SourceError(e.line, f"{text} is no float32, and would be rounded")
      return MslValue(repr(exact), FLOAT, clean=exact == 0 or abs(exact) >= numbers.TINY)
    digits, suffix = text.rstrip("ul"), text[len(text.rstrip("ul")):]
    if digits != str(int(digits)): raise SourceError(e.line, f"{text} is octal, which is not in the subset of kernels")
    name = {"": "int" if int(digits) < 1 << 31 else "long", "u": "uint", "l": "long", "ul": "ulong"}[suffix]
    if int(digits) > range_of(name)[1]: raise SourceError(e.line, f"{text} is too large for {name}")
    return MslValue(digits, ValueType(name))

  def value_of_name(self, e: Expr) -> MslValue:
    if e.text in ("INFINITY", "NAN"): return MslValue(e.text, FLOAT)
    found = self.find(e.text, e.line)
    if not isinstance(found, MslValue): raise SourceError(e.line, f"{e.text!r} is no value")
    return found

  def value_of_unary(self, e: Expr) -> MslValue:
    x = self.value(e.parts[0])
    if e.text == "!": return MslValue(f"(not {self.truth(x)})", BOOL)
    if x.type.lanes > 1: raise SourceError(e.line, f"{e.text} of {x.type} is not in the subset of kernels")
    if x.type == FLOAT and e.text == "-": return MslValue(f"(-{self.whole(x)})", FLOAT, clean=x.clean)
    if x.type.name not in INTEGERS: raise SourceError(e.line, f"invalid operand of {e.text}: {x.type}")
    kind = ValueType(promoted(x.type.name))
    return MslValue(self.integer(f"{e.text}{x.text}", kind.name), kind)

  def integer(self, text: str, name: str) -> str:
    """Return a result of integer arithmetic: unsigned ones wrap, signed ones must not overflow."""
    return f"({text} & {range_of(name)[1]})" if name in UNSIGNED else f"SIGNED({text}, {bits_of(name)})"

  def value_of_binary(self, e: Expr) -> MslValue:
    a, b, sign = self.value(e.parts[0]), self.value(e.parts[1]), e.text
    if sign in ("&&", "||"):
      return MslValue(f"({self.truth(a)} {'and' if sign == '&&' else 'or'} {self.truth(b)})", BOOL)
    if sign in ("<<", ">>"): return self.shift(a, b, sign, e.line)
    kind = common(a.type, b.type, e.line)
    if kind.lanes > 1:
      if sign not in (*ARITHMETIC[:4], *BITWISE) or kind.name == "float" and sign in BITWISE:
        raise SourceError(e.line, f"{sign} of {kind} is not in the subset of kernels")
      name = self.made(f"V_{'_'.join(str(ord(c)) for c in sign)}_{kind.name}", numbers.of_vectors(sign, kind.name))
      return MslValue(f"{name}({a.text}, {b.text})", kind)
    x, y = (self.operand(self.converted(v, kind, e.line)) for v in (a, b))
    if sign in COMPARISONS: return MslValue(f"({x} {sign} {y})", BOOL)
    if sign in BITWISE and kind != FLOAT: return MslValue(f"({x} {sign} {y})", kind)
    if kind == FLOAT:
      if sign not in ARITHMETIC[:4]: raise SourceError(e.line, f"invalid operands of {sign}: {a.type} and {b.type}")
      return MslValue(f"QUOTIENT({x}, {y})" if sign == "/" else f"({x} {sign} {y})", FLOAT, rounded=False)
    if sign in ("/", "%"):
      bits = bits_of(kind.name) if kind.name in SIGNED else 128
      return MslValue(f"{'DIVIDE' if sign == '/' else 'REMAINDER'}({x}, {y}, {bits})", kind)
    return MslValue(self.integer(f"({x} {sign} {y})", kind.name), kind)

  def shift(self, a: MslValue, b: MslValue, sign: str, line: int) -> MslValue:
    for x in (a, b):
      if x.type.name not in INTEGERS or x.type.lanes > 1:
        raise SourceError(line, f"invalid operand of {sign}: {x.type}")
    kind = promoted(a.type.name)
    return MslValue(f"SHIFT({a.text}, {b.text}, {bits_of(kind)}, {sign == '<<'}, {kind in SIGNED})", ValueType(kind))

  def value_of_choice(self, e: Expr) -> MslValue:
    gate, a, b = map(self.value, e.parts)
    kind = a.type if a.type == b.type else common(a.type, b.type, e.line)
    a, b = self.converted(a, kind, e.line), self.converted(b, kind, e.line)
    return MslValue(f"({self.whole(a)} if {self.truth(gate)} else {self.whole(b)})", kind, clean=a.clean and b.clean)

  def value_of_cast(self, e: Expr) -> MslValue:
    assert e.type is not None, "a cast has a type"
    if e.type.mark: raise SourceError(e.line, "a pointer is no value")
    return self.converted(self.value(e.parts[0]), value_type(e.type), e.line, explicit=True)

  def value_of_index(self, e: Expr) -> MslValue:
    inner = e.parts[0]
    if inner.kind == "member" and inner.text == "thread_elements":
      matrix, k = self.element(e)
      return MslValue(f"ELEMENT(m_{inner.parts[0].text}, {k})", ValueType(MATRICES[matrix.name]))
    if inner.kind == "name" and isinstance(found := self.find(inner.text, e.line), MslValue): return self.lane(found, e)
    return self.loaded(e)

  def lane(self, vector: MslValue, e: Expr) -> MslValue:
    k = e.parts[1]
    if k.kind != "number" or not k.text.isdecimal() or int(k.text) >= vector.type.lanes:
      raise SourceError(e.line, f"an index of {vector.type} is a number below {vector.type.lanes}")
    return MslValue(f"{vector.text}[{k.text}]", ValueType(vector.type.name), clean=vector.clean)

  def value_of_deref(self, e: Expr) -> MslValue: return self.loaded(e)

  def loaded(self, e: Expr) -> MslValue:
    pointer, kind = self.place(e)
    return MslValue(f"{self.accessor(pointer, kind, False)}(t, {pointer.at})", kind, clean=kind.name != "float")

  def value_of_member(self, e: Expr) -> MslValue:
    vector = self.value(e.parts[0])
    if e.text not in "xyzw"[:vector.type.lanes] or len(e.text) > 1 or vector.type.lanes == 1:
      raise SourceError(e.line, f"no member {e.text!r} of {vector.type}")
    return MslValue(f"{vector.text}[{'xyzw'.index(e.text)}]", ValueType(vector.type.name), clean=vector.clean)

  # **** calls ****

  def value_of_call(self, e: Expr) -> MslValue:
    x = [self.value(part) for part in e.parts]
    if e.text in VECTORS: return self.vector(ValueType(*VECTORS[e.text]), x, e)
    if e.text in SIZES and len(x) == 1: return self.converted(x[0], ValueType(e.text), e.line, explicit=True)
    if e.text == "as_type" and len(x) == 1: return self.bits(x[0], e)
    if e.text == "simd_shuffle_xor" and len(x) == 2: return self.exchange(x, e)
    name, count = {"fma": ("FMA", 3), "precise::sqrt": ("ROOT", 1), "trunc": ("TRUNC", 1)}.get(e.text, ("", -1))
    if count == len(x) and all(v.type == FLOAT for v in x):
      return MslValue(f"{name}({', '.join(map(self.whole, x))})", FLOAT)
    if count == len(x) and all(v.type.name == "float" for v in x): return self.by_lane(name, x)
    tree = self.helpers.get(e.text)
    if tree is None or len(x) != len(tree.arguments) or tree.result is None:
      raise SourceError(e.line, f"no matching function for call to {e.text!r} with {', '.join(str(v.type) for v in x)}")
    given = [self.whole(self.converted(v, value_type(a.type), e.line)) for v, a in zip(x, tree.arguments)]
    kind = value_type(tree.result)
    return MslValue(f"h_{e.text}({', '.join(given)})", kind, clean=kind != FLOAT)

  def by_lane(self, name: str, x: list[MslValue]) -> MslValue:
    return MslValue(f"tuple(map({name}, {', '.join(v.text for v in x)}))", x[0].type)

  def vector(self, kind: ValueType, x: list[MslValue], e: Expr) -> MslValue:
    if len(x) != kind.lanes: raise SourceError(e.line, f"{kind} of {len(x)} values")
    lanes = [self.converted(v, ValueType(kind.name), e.line, explicit=True) for v in x]
    return MslValue(f"({', '.join(map(self.whole, lanes))})", kind, clean=all(v.clean or not v.rounded for v in lanes))

  def bits(self, x: MslValue, e: Expr) -> MslValue:
    assert e.type is not None, "as_type has a type"
    kind = value_type(e.type)
    if SIZES[x.type.name] * x.type.lanes != SIZES[kind.name] * kind.lanes or "bool" in (x.type.name, kind.name):
      raise SourceError(e.line, f"as_type from {x.type} to {kind}: they differ in size")
    name = self.made(f"AS_{x.type}_{kind}", numbers.same_bits(x.type.name, x.type.lanes, kind.name, kind.lanes))
    return MslValue(f"{name}({self.whole(x)})", kind, clean=kind.name != "float")

  def exchange(self, x: list[MslValue], e: Expr) -> MslValue:
    kind = x[0].type
    if kind.lanes > 1 or kind.name not in ("int", "uint", "short", "ushort", "char", "uchar", "half", "float"):
      raise SourceError(e.line, f"no matching function for call to 'simd_shuffle_xor' with {kind}")
    if x[1].type.name not in INTEGERS: raise SourceError(e.line, f"lanes differ by an integer, not {x[1].type}")
    return MslValue(f"(yield ({self.site(e.line)}, 'shuffle', {self.whole(x[0])}, {x[1].text}))", kind,
                 clean=kind.name != "float")
