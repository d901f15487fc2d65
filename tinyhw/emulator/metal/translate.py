"""Kernels of Metal's language as Python: types are checked, and each function becomes a function of Python.

A kernel becomes a function of one thread, or a generator where threads meet: it yields at barriers, shuffles and
matrix products (lanes.py). Integers are Python's, floats are float32 values, vectors are tuples, matrices lists of the
thread's two elements. Memory is reached through accessors, one for each pointer and type, which check every access.
"""
from __future__ import annotations
from typing import Any

from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.metal import numbers
from tinyhw.emulator.metal.numbers import INTEGERS
from tinyhw.emulator.metal.parse import MATRICES, Argument, FunctionTree, Stmt, TypeName, parse
from tinyhw.emulator.metal.types import Accessor, MslPointer, MslStructure, MslValue, ValueType, value_type
from tinyhw.emulator.metal.values import ValueWriter
from tinyhw.emulator.metal.words import SourceError
from tinyhw.named_tuple import NamedTuple

MOST_BUFFERS = 31                # arguments of a kernel
FILE = f"{__file__} (kernel)"     # of the Python that is made, in tracebacks; TinyJit does not look into it
INLINE = {"threadgroup_position_in_grid": "group", "thread_index_in_threadgroup": "lane"}
MEETING = {"threadgroup_barrier mem_threadgroup": "barrier", "threadgroup_barrier mem_none": "barrier without order"}

class MslKernel(NamedTuple):
  """A translated kernel. make(accessors, call) returns the function of a thread: of its number in the grid, the group
  and the lane. lines: of the source, by the line of Python. meets: is it a generator? pointers: of a structure, in
  order: the memory's name, and the type of its elements."""
  name: str
  arguments: tuple[Argument, ...]
  accessors: tuple[Accessor, ...]
  make: Any
  lines: tuple[int, ...]
  meets: bool
  pointers: tuple[tuple[str, str], ...] = ()

class FunctionWriter(ValueWriter):
  """The Python of one function. lines: the line of the source, and Python."""
  def __init__(self, tree: FunctionTree, helpers: dict[str, FunctionTree]):
    super().__init__(tree, helpers)
    self.lines: list[tuple[int, str]] = []
    self.pointers: list[tuple[str, str]] = []
    self.depth = 2
    self.changed = {s.parts[0].text for s in statements(tree.body) if s.kind == "assign"}

  def line(self, source: int, text: str) -> None: self.lines.append((source, "  " * self.depth + text))

  # **** statements ****

  def block(self, body: tuple[Stmt, ...]) -> None:
    self.scopes.append({})
    for s in body: getattr(self, f"write_{s.kind}")(s)
    self.scopes.pop()

  def write_block(self, s: Stmt) -> None: self.block(s.body)

  def write_declare(self, s: Stmt) -> None:
    assert s.type is not None, "a declaration has a type"
    if s.type.mark:
      found = self.pointer(s.parts[0])
      if (found.space, found.name) != (s.type.space, s.type.name):
        raise SourceError(s.line, f"a pointer to {s.type.space} {s.type.name} cannot point to "
                          f"{found.space} {found.name}")
      return self.declare(s.name, found, s.line)
    value = self.converted(self.value(s.parts[0]), value_type(s.type), s.line)
    self.store_value(f"m_{s.name}", value, s.line)
    is_clean = s.name not in self.changed and (value.clean or not value.rounded)
    self.declare(s.name, MslValue(f"m_{s.name}", value.type, clean=is_clean), s.line)

  def store_value(self, name: str, value: MslValue, line: int) -> None:
    """Write an assignment to a variable of Python. Floats are rounded without a call."""
    if value.rounded: return self.line(line, f"{name} = {value.text}")
    self.line(line, f"FLOATS[0] = {value.text}")
    self.line(line, f"{name} = FLOATS[0]")
    self.line(line, f"if -TINY < {name} < TINY: {name} *= 0.0")

  def write_assign(self, s: Stmt) -> None:
    place = s.parts[0]
    if place.kind == "name":
      found = self.find(place.text, s.line)
      if not isinstance(found, MslValue): raise SourceError(s.line, f"{place.text!r} cannot be assigned to")
      return self.store_value(found.text, self.converted(self.value(s.parts[1]), found.type, s.line), s.line)
    if place.kind == "index" and place.parts[0].kind == "member" and place.parts[0].text == "thread_elements":
      matrix, k = self.element(place)
      value = self.converted(self.value(s.parts[1]), ValueType(MATRICES[matrix.name]), s.line)
      return self.line(s.line, f"m_{place.parts[0].parts[0].text}[{k}] = {self.whole(value)}")
    pointer, kind = self.place(place)
    if pointer.space == "constant": raise SourceError(s.line, "cannot assign to memory that is constant")
    value = self.converted(self.value(s.parts[1]), kind, s.line)
    self.line(s.line, f"{self.accessor(pointer, kind, True)}(t, {pointer.at}, {self.whole(value)})")

  def write_matrix(self, s: Stmt) -> None:
    assert s.type is not None, "a declaration has a type"
    self.declare(s.name, ValueType(s.type.name, 0), s.line)
    self.line(s.line, f"m_{s.name} = [None, None]")

  def write_multiply(self, s: Stmt) -> None:
    names = [part.text for part in s.parts]
    kinds = [self.find(name, s.line) for name in names]
    allowed = {("float", "float", "float", "float"), ("float", "half", "half", "float")}
    if tuple(MATRICES.get(k.name, "") if isinstance(k, ValueType) else "" for k in kinds) not in allowed:
      raise SourceError(s.line, "no matching function for call to 'simdgroup_multiply_accumulate'")
    self.line(s.line, f"yield ({self.site(s.line)}, 'multiply', {', '.join(f'm_{name}' for name in names)})")

  def write_barrier(self, s: Stmt) -> None:
    kind = MEETING.get(s.name)
    if kind is None: raise SourceError(s.line, f"{s.name} is not in the subset of kernels")
    self.line(s.line, f"yield ({self.site(s.line)}, {kind!r})")

  def write_if(self, s: Stmt) -> None:
    self.line(s.line, f"if {self.truth(self.value(s.parts[0]))}:")
    self.inner(s)

  def write_for(self, s: Stmt) -> None:
    assert s.type is not None, "a loop's variable has a type"
    kind = value_type(s.type)
    if kind.name not in INTEGERS or kind.lanes > 1:
      raise SourceError(s.line, f"a counter of {kind} is not in the subset")
    start, end = (self.converted(self.value(part), kind, s.line).text for part in s.parts)
    if s.name in self.changed: raise SourceError(s.line, f"assignments to the counter {s.name!r} are not in the subset")
    self.scopes.append({})
    self.declare(s.name, MslValue(f"m_{s.name}", kind), s.line)
    self.line(s.line, f"for m_{s.name} in range({start}, {end}):")
    self.inner(s)
    self.scopes.pop()

  def inner(self, s: Stmt) -> None:
    self.depth += 1
    self.line(s.line, "pass")
    self.block(s.body)
    self.depth -= 1

  def write_return(self, s: Stmt) -> None:
    if self.tree.result is None: raise SourceError(s.line, "a kernel returns nothing")
    value = self.converted(self.value(s.parts[0]), value_type(self.tree.result), s.line)
    self.line(s.line, f"return {self.whole(value)}")

def statements(body: tuple[Stmt, ...]) -> list[Stmt]:
  """Return all statements, also inside of others."""
  return [found for s in body for found in (s, *statements(s.body))]

RUNTIME: dict[str, Any] = {
  "ROUND": numbers.rounded, "FLUSH": numbers.flushed, "SIGNED": numbers.signed, "SHIFT": numbers.shifted,
  "DIVIDE": numbers.quotient, "REMAINDER": numbers.remainder, "QUOTIENT": numbers.quotient_of_floats,
  "TO_INTEGER": numbers.to_integer, "FROM_LONG": numbers.from_long, "TO_HALF": numbers.to_half, "FMA": numbers.fma,
  "ROOT": numbers.root, "TRUNC": numbers.truncated, "TINY": numbers.TINY, "INFINITY": float("inf"), "NAN": float("nan")}

def element_of(matrix: list[Any], k: int) -> Any:
  """Return an element of a thread's share of a matrix."""
  if matrix[k] is None: raise StrictError(f"element {k} of a matrix has no value yet")
  return matrix[k]

def with_arguments(writer: FunctionWriter) -> None:
  """Declare the arguments of a kernel. Raises SourceError."""
  tree, places = writer.tree, set[tuple[str, int]]()
  for a in tree.arguments:
    kind, attribute = a.type, a.attribute[0]
    if a.attribute in places: raise SourceError(tree.line, f"two arguments are {attribute}({a.attribute[1]})")
    places.add(a.attribute)
    if a.attribute[1] >= MOST_BUFFERS: raise SourceError(tree.line, f"{attribute}({a.attribute[1]}) is no place")
    if kind.mark == "*" and (attribute, kind.space) in (("buffer", "device"), ("buffer", "constant"),
                                                        ("threadgroup", "threadgroup")):
      writer.declare(a.name, MslPointer(a.name, kind.space, kind.name), tree.line)
    elif kind.mark == "&" and attribute == "buffer" and kind.name in tree.structures:
      writer.pointers += [(f"{a.name}.{p.name}", p.type.name) for p in tree.structures[kind.name]]
      writer.declare(a.name, MslStructure({p.name: MslPointer(f"{a.name}.{p.name}", p.type.space, p.type.name)
                                           for p in tree.structures[kind.name]}), tree.line)
    elif attribute in INLINE and kind == TypeName("uint"):
      writer.declare(a.name, MslValue(INLINE[attribute], ValueType("uint")), tree.line)
    else: raise SourceError(tree.line, f"argument {a.name!r} is not in the subset of kernels")

def translate(source: str) -> dict[str, MslKernel]:
  """Return the kernels of a source by name. Raises SourceError."""
  trees = parse(source)
  known: dict[str, FunctionTree] = {}     # functions before the one that is written: the only ones that it may call
  namespace: dict[str, Any] = {**RUNTIME, "ELEMENT": element_of, "FLOATS": memoryview(bytearray(4)).cast("f")}
  lines: list[tuple[int, str]] = []
  writers: list[FunctionWriter] = []
  for tree in trees:
    if tree.name in known: raise SourceError(tree.line, f"redefinition of {tree.name!r}")
    writer = FunctionWriter(tree, {name: other for name, other in known.items() if other.result is not None})
    known[tree.name] = tree
    if tree.result is None:
      writers.append(writer)
      continue
    if not tree.body: raise SourceError(tree.line, f"{tree.name!r} returns no value")
    for a in tree.arguments:
      writer.declare(a.name, MslValue(f"m_{a.name}", value_type(a.type), clean=a.type.name != "float"), tree.line)
    writer.depth = 1
    writer.block(tree.body)
    names = ", ".join(f"m_{a.name}" for a in tree.arguments)
    lines += [(tree.line, f"def h_{tree.name}({names}):"), *writer.lines]
    namespace |= writer.functions
  for number, writer in enumerate(writers):
    with_arguments(writer)
    writer.block(writer.tree.body)
    accessors = "".join(f"{name}, " for name in writer.accessors.values())
    lines += [(writer.tree.line, f"def make_{number}(accessors):"),
              (writer.tree.line, f"  {accessors}= accessors" if accessors else "  pass"),
              (writer.tree.line, "  def thread(t, group, lane):"), (writer.tree.line, "    pass"), *writer.lines,
              (writer.tree.line, "  return thread")]
    namespace |= writer.functions
  exec(compile("\n".join(text for _, text in lines), FILE, "exec"), namespace)
  origin = tuple(line for line, _ in lines)
  return {w.tree.name: MslKernel(w.tree.name, w.tree.arguments, tuple(w.accessors), namespace[f"make_{k}"], origin,
                              w.meets, tuple(w.pointers)) for k, w in enumerate(writers)}
