"""Estimate kernels for METAL by their source, against the published rates of an Apple GPU. No speed: nothing runs, and
Apple's compiler, which nobody outside of Apple can read, makes the code.

    python3 test/bench/metal.py [case ...]

The source is parsed (emulator/metal/parse.py), and the operations and bytes of one lane are counted in its tree, with
loops. Three times are compared: of arithmetic, of threadgroup memory, and of memory. Arithmetic and accesses are taken
to overlap. A *roofline* is the least time by the rates: of the operations on SIMD-group matrices, or of the bytes of
operands and results, each once. The table has roofline / time twice: with each byte read from memory once, as if caches
kept it, and with each access going to memory. The truth is between them.

Rates: M1 with 8 cores, from Philip Turner's metal-benchmarks. A core starts four operations of SIMD-groups in a cycle.
Shifts and products of 32-bit integers take four times as long as additions, those of 64 bits 4 (sum) and 16 (product)
times. A product of matrices of 8 x 8 reaches 102.4 of 128 multiply-adds a cycle, which is the peak here.
"""
from __future__ import annotations
import argparse
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ.update(DEV="NULL", CACHE="0")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tinyhw import Tensor
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.render.targets import METAL, compile as source_of
from tinyhw.emulator.metal.parse import Expr, FunctionTree, Stmt, parse
from tinyhw.engine.run.compile import kernel_name
from tinyhw.engine.schedule.schedule import canonicalize, schedule

CORES, HERTZ, BYTES_PER_SECOND = 8, 1.278e9, 68.25e9
PIPES, LANES = 4, 32            # operations of SIMD-groups that a core starts in a cycle
SHARED_BYTES = 128              # of threadgroup memory in a cycle of a core
PRODUCT, PEAK = 8 * 8 * 8, 102.4
MATRIX_SLOTS = PIPES * PRODUCT / PEAK   # of a product of matrices
SIZES = {"char": 1, "uchar": 1, "bool": 1, "short": 2, "ushort": 2, "half": 2, "int": 4, "uint": 4, "float": 4,
         "long": 8, "ulong": 8}
FREE = frozenset({"as_type"})
CALLS = {"fma": 1, "trunc": 1, "precise::sqrt": 8, "simd_shuffle_xor": 2, "encode_float16": 1, "decode_float16": 1}
OTHER_CALLS = 4                 # of helpers: conversions with guards
DIVISION, INTEGER_DIVISION = 8, 32

class LaneWork:
  """What one lane of a kernel does. slots: operations, in those of an addition; products: of matrices, by its
  SIMD-group; memory, shared: bytes."""
  def __init__(self, kernel: FunctionTree):
    self.slots = self.products = self.memory = self.shared = 0.0
    self.types = {argument.name: argument.type.name for argument in kernel.arguments}
    self.spaces = {argument.name: argument.type.space for argument in kernel.arguments if argument.type.mark}
    self.block(kernel.body, 1)

  def block(self, body: tuple[Stmt, ...], times: float) -> None:
    for s in body: self.statement(s, times)

  def statement(self, s: Stmt, times: float) -> None:
    if s.kind == "declare" and s.type is not None:
      self.types[s.name] = s.type.name
      if s.type.mark: self.spaces[s.name] = s.type.space
      else: self.value(s.parts[0], times)
    elif s.kind == "assign":
      self.access(s.parts[0], times)
      self.value(s.parts[1], times)
    elif s.kind == "multiply": self.products += times
    elif s.kind == "for":
      self.types[s.name] = s.type.name if s.type is not None else "int"
      count = constant(s.parts[1])
      assert count is not None, f"line {s.line}: the end of a loop is no number"
      self.slots += 2 * count * times
      self.block(s.body, times * count)
    else:
      if s.kind == "if": self.value(s.parts[0], times)
      self.block(s.body, times)

  def access(self, e: Expr, times: float) -> str:
    """Count a load or a store, if the expression is one. Return its type."""
    if e.kind == "deref":
      kind = e.parts[0].type
      assert kind is not None, "vectors are reached by casts of pointers"
      self.value(e.parts[0].parts[0], times)
      return self.bytes(kind.space, kind.name, times)
    if e.kind == "index":
      self.value(e.parts[1], times)
      base = e.parts[0]
      if base.kind == "name" and base.text in self.spaces:
        return self.bytes(self.spaces[base.text], self.types[base.text], times)
      return element(self.access(base, times))
    return self.value(e, times)

  def bytes(self, space: str, kind: str, times: float) -> str:
    size = SIZES[element(kind)] * width(kind) * times
    if space == "threadgroup": self.shared += size
    else: self.memory += size
    return kind

  def value(self, e: Expr, times: float) -> str:
    """Count an expression. Return its type."""
    if constant(e) is not None: return literal_type(e)
    if e.kind == "name": return self.types.get(e.text, "int")
    if e.kind in ("index", "deref"): return self.access(e, times)
    if e.kind == "cast" and e.type is not None:
      kind = self.value(e.parts[0], times)
      if is_float(kind) != is_float(e.type.name): self.slots += times
      return e.type.name
    if e.kind == "choice":
      gate = constant(e.parts[0])
      if gate is not None: return self.value(e.parts[1 if gate else 2], times)
      kinds = [self.value(part, times) for part in e.parts]
      self.slots += times
      return kinds[1]
    kinds = [self.value(part, times) for part in e.parts]
    if e.kind == "member": return element(kinds[0])
    if e.kind == "call":
      if e.text in FREE or width(e.text) > 1: return e.type.name if e.type is not None else e.text
      self.slots += CALLS.get(e.text, OTHER_CALLS) * times
      return "ushort" if e.text == "encode_float16" else "float" if e.text == "decode_float16" else kinds[0]
    kind = max(kinds, key=lambda k: (is_float(k), SIZES.get(k, 4)))
    self.slots += cost(e.text, kind) * times
    return kind

def cost(sign: str, kind: str) -> int:
  """Return the slots of an operator."""
  if sign in ("/", "%"): return DIVISION if is_float(kind) else INTEGER_DIVISION
  if is_float(kind): return 1
  if SIZES.get(kind, 4) == 8: return 16 if sign == "*" else 4
  return 4 if sign in ("*", "<<", ">>") else 1

def is_float(kind: str) -> bool: return kind.startswith(("float", "half"))
def width(kind: str) -> int: return int(kind[-1]) if kind[-1] in "24" else 1
def element(kind: str) -> str: return kind[:-1] if kind[-1] in "24" else kind
def literal_type(e: Expr) -> str:
  while e.parts: e = e.parts[0]
  return "float" if e.text.endswith("f") else "long" if e.text.endswith("l") else "int"

def constant(e: Expr) -> float | None:
  """Return the value of an expression of numbers."""
  if e.kind == "number":
    text = e.text.rstrip("ulf") if not e.text.startswith("0x") else e.text.rstrip("u")
    return float(text) if "." in text or "e" in text and "x" not in text else int(text, 0)
  if e.kind == "cast" and e.type is not None and not e.type.mark: return constant(e.parts[0])
  found = [constant(part) for part in e.parts] if e.kind in ("binary", "unary") else [None]
  if None in found: return None
  a, b = found[0], found[-1]
  assert a is not None and b is not None
  if e.kind == "unary": return -a if e.text == "-" else None
  return {"<": float(a < b), "+": a + b, "-": a - b, "*": a * b}.get(e.text)

class Estimate(NamedTuple):
  """Seconds of arithmetic and of threadgroup memory, and bytes that all lanes read and write."""
  arithmetic: float
  shared: float
  memory: float

def estimate(source: str, groups: int, lanes: int) -> Estimate:
  """Estimate a kernel."""
  work = LaneWork(next(f for f in parse(source) if f.result is None))
  simds = -(-lanes // LANES)
  slots = work.slots + MATRIX_SLOTS * work.products
  rounds = groups / CORES / HERTZ
  return Estimate(slots * simds / PIPES * rounds, work.shared * lanes / SHARED_BYTES * rounds,
                  work.memory * lanes * groups)

# ***** cases *****

class Case(NamedTuple):
  """A result. operations: multiply-adds of a product; bytes: of operands and results."""
  result: Tensor
  operations: float
  bytes: float

def empty(*shape: int, dtype: str = "float32") -> Tensor: return Tensor.empty(*shape, dtype=dtype)

def of(result: Tensor, *operands: Tensor, operations: float = 0) -> Case:
  return Case(result, operations, float(sum(math.prod(t.shape) * t.dtype.itemsize for t in (result, *operands))))

def product(n: int, dtype: str) -> Case:
  a, b = empty(n, n, dtype=dtype), empty(n, n, dtype=dtype)
  return of(a @ b, a, b, operations=float(n) ** 3)

def vector_by_matrix() -> Case:
  x, w = empty(1, 4096, dtype="float16"), empty(4096, 4096, dtype="float16")
  return of(x @ w.T, x, w)

def softmax() -> Case:
  x = empty(4096, 4096)
  return of(x.softmax(), x)

def layernorm() -> Case:
  x = empty(8192, 1024)
  return of(x.layernorm(), x)

CASES: dict[str, Callable[[], Case]] = {
  "half product 4096": lambda: product(4096, "float16"), "float product 2048": lambda: product(2048, "float32"),
  "vector by matrix": vector_by_matrix, "softmax": softmax, "layernorm": layernorm}

def shares(case: Case) -> tuple[float, float]:
  """Return roofline / time, with each byte from memory once, and with each access to memory."""
  roofline = max(case.operations / PEAK / CORES / HERTZ, case.bytes / BYTES_PER_SECOND)
  once = each = 0.0
  for kernel in schedule(canonicalize([case.result.uop])).kernels:
    program = lower(optimize(kernel.sink, METAL), METAL, kernel_name(kernel.sink))
    assert isinstance(program.grid, int)
    found = estimate(source_of(program, "metal").text.decode(), program.grid, max(program.lanes, 1))
    own = sum(b.arg[2] * b.dtype.itemsize for b in set(kernel.buffers))
    once += max(found.arithmetic, found.shared, own / BYTES_PER_SECOND)
    each += max(found.arithmetic, found.shared, found.memory / BYTES_PER_SECOND)
  return roofline / once, roofline / each

def main() -> None:
  parser = argparse.ArgumentParser(description="Estimate kernels for METAL by their source.")
  parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=f"one of {', '.join(CASES)}")
  options = parser.parse_args()
  print("| case | of the roofline, each byte once | each access to memory |\n|---|---|---|")
  for name in options.cases:
    once, each = shares(CASES[name]())
    print(f"| {name} | {once:.0%} | {each:.0%} |", flush=True)

if __name__ == "__main__": main()
