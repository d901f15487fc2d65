"""Programs made by hand or at random, for the tests of everything that reads them."""
from __future__ import annotations
from contextlib import contextmanager
import random
from collections.abc import Iterator
from typing import Any

from tinyhw.codegen.math.maximum import larger
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

i32 = dtypes.int32

class Builder:
  """Appends nodes to a Program in order.

  A node that a method gets is put in first, sources before it; constants go to the top.
  """
  def __init__(self, name: str):
    self.name = name
    self.top: list[UOp] = []
    self.uops: list[UOp] = []
    self.known: list[set[UOp]] = [set()]
    self.grid: Any = 1
    self.ids = 0

  def add(self, u: UOp) -> UOp:
    for n in u.toposort():
      if any(n in block for block in self.known): continue
      if n.op in (Ops.CONST, Ops.PARAM, Ops.DEFINE_VAR, Ops.DEFINE_LOCAL):
        self.top.append(n)
        self.known[0].add(n)
      else:
        self.uops.append(n)
        self.known[-1].add(n)
    return u

  def param(self, slot: int, dtype: DType, size: int) -> UOp: return self.add(UOp.param(slot, dtype, size))
  def const(self, dtype: DType, value: Any) -> UOp: return self.add(UOp.const(dtype, value))
  def local(self, dtype: DType, size: int) -> UOp:
    return self.add(UOp(Ops.DEFINE_LOCAL, dtype, (), (self.fresh(), size)))

  def fresh(self) -> int:
    self.ids += 1
    return self.ids - 1

  @contextmanager
  def loop(self, end: Any, kind: AxisType = AxisType.LOOP) -> Iterator[UOp]:
    end = end if isinstance(end, UOp) else UOp.const(i32, end)
    r = UOp(Ops.RANGE, end.dtype, (end,), (self.fresh(), kind))
    if kind is AxisType.GLOBAL: self.grid = end.arg if end.op is Ops.CONST else end
    self.add(r)
    with self.block(UOp(Ops.END, dtypes.void, (r,))): yield r

  @contextmanager
  def when(self, condition: UOp) -> Iterator[None]:
    opened = self.add(UOp(Ops.IF, dtypes.void, (condition,), self.fresh()))
    with self.block(UOp(Ops.ENDIF, dtypes.void, (opened,))): yield

  @contextmanager
  def block(self, close: UOp) -> Iterator[None]:
    self.known.append(set())
    yield
    self.known.pop()
    self.uops.append(close)

  def load(self, buffer: UOp, i: Any, lanes: int = 1, gate: UOp | None = None, alt: Any = 0) -> UOp:
    place = UOp(Ops.INDEX, buffer.dtype, (buffer, index(i)))
    return self.add(place.load(gate, alt, buffer.dtype.vec(lanes)))

  def store(self, buffer: UOp, i: Any, value: UOp, gate: UOp | None = None) -> None:
    self.add(UOp(Ops.INDEX, buffer.dtype, (buffer, index(i))).store(value, gate=gate))

  def accumulator(self, init: UOp) -> UOp: return self.add(UOp(Ops.ACC, init.dtype, (init,), self.fresh()))
  def assign(self, acc: UOp, value: UOp) -> None: self.add(UOp(Ops.ASSIGN_ACC, acc.dtype, (acc, value)))
  def barrier(self) -> None: self.uops.append(UOp(Ops.BARRIER))

  def program(self) -> Program:
    uops = tuple(self.top + self.uops)
    written = frozenset(u.src[0].src[0].arg[0] for u in uops if u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM)
    locals_ = [u for u in uops if u.op is Ops.DEFINE_LOCAL]
    return Program(self.name, uops, self.grid, written,
                   sum((u.arg[1] * u.dtype.itemsize + 63) // 64 * 64 for u in locals_))

def index(i: Any) -> UOp: return i if isinstance(i, UOp) else UOp.const(i32, i)
def broadcast(x: UOp, lanes: int) -> UOp: return x if lanes == 1 else UOp(Ops.BROADCAST, x.dtype.vec(lanes), (x,))
def vectorize(*xs: UOp) -> UOp: return UOp(Ops.VECTORIZE, xs[0].dtype.vec(len(xs)), xs)
def lane(x: UOp, k: int, lanes: int = 1) -> UOp: return UOp(Ops.GEP, x.dtype.scalar().vec(lanes), (x,), k)

# ***** programs by name *****

def add(n: int = 16, lanes: int = 1, dtype: DType = dtypes.float32) -> Program:
  """data0 = data1 + data2, `lanes` elements a work item."""
  b = Builder(f"add_{n}_{lanes}")
  out, x, y = [b.param(i, dtype, n) for i in range(3)]
  with b.loop(n // lanes, AxisType.GLOBAL) as g:
    at = g * lanes if lanes > 1 else g
    b.store(out, at, b.load(x, at, lanes) + b.load(y, at, lanes))
  return b.program()

def matmul(n: int = 8, fused: bool = False) -> Program:
  """data0 = data1 @ data2, all n by n."""
  b = Builder(f"matmul_{n}")
  out, x, y = [b.param(i, dtypes.float32, n * n) for i in range(3)]
  with b.loop(n, AxisType.GLOBAL) as i, b.loop(n) as j:
    acc = b.accumulator(b.const(dtypes.float32, 0.0))
    with b.loop(n, AxisType.REDUCE) as k:
      p, q = b.load(x, i * n + k), b.load(y, k * n + j)
      b.assign(acc, UOp(Ops.MULACC, acc.dtype, (p, q, acc)) if fused else acc + p * q)
    b.store(out, i * n + j, acc)
  return b.program()

def fold(n: int = 2, lanes: int = 8) -> Program:
  """data0[i] = the sum of data1[i * lanes : (i + 1) * lanes], in halves."""
  b = Builder(f"fold_{lanes}")
  out, x = b.param(0, dtypes.float32, n), b.param(1, dtypes.float32, n * lanes)
  with b.loop(n, AxisType.GLOBAL) as g:
    v = b.load(x, g * lanes, lanes)
    while lanes > 1:
      lanes //= 2
      v = b.add(UOp(Ops.ADD, dtypes.float32.vec(lanes), (lane(v, 0, lanes), lane(v, lanes, lanes))))
    b.store(out, g, v)
  return b.program()

def pad(n: int = 12, before: int = 3, lanes: int = 4) -> Program:
  """data0[i] = data1[i - before] where that exists, else -1; the gate is a vector."""
  b = Builder("pad")
  size = n - 2 * before
  out, x = b.param(0, dtypes.float32, n), b.param(1, dtypes.float32, size)
  with b.loop(n // lanes, AxisType.GLOBAL) as g:
    at = vectorize(*[g * lanes + k for k in range(lanes)])
    source = at + UOp.const(i32.vec(lanes), -before)
    gate = (source < UOp.const(i32.vec(lanes), size)) & (at < UOp.const(i32.vec(lanes), before)).logical_not()
    b.store(out, g * lanes, b.load(x, source, lanes, gate, -1.0))
  return b.program()

def gather(n: int = 8, size: int = 20, lanes: int = 4) -> Program:
  """data0[i] = data1[data2[i]] where data2[i] is in range, else 0."""
  b = Builder("gather")
  out, x, indices = b.param(0, dtypes.float32, n), b.param(1, dtypes.float32, size), b.param(2, i32, n)
  with b.loop(n // lanes, AxisType.GLOBAL) as g:
    at = b.load(indices, g * lanes, lanes)
    gate = (at < UOp.const(at.dtype, size)) & (at < UOp.const(at.dtype, 0)).logical_not()
    b.store(out, g * lanes, b.load(x, at, lanes, gate, 0.0))
  return b.program()

def softmax(rows: int = 3, n: int = 8) -> Program:
  """Row by row: exp2(x - max) / sum, with the exponentials kept in shared memory."""
  b = Builder("softmax")
  out, x = b.param(0, dtypes.float32, rows * n), b.param(1, dtypes.float32, rows * n)
  kept = b.local(dtypes.float32, n)
  with b.loop(rows, AxisType.GLOBAL) as row:
    top = b.accumulator(b.const(dtypes.float32, float("-inf")))
    with b.loop(n, AxisType.REDUCE) as k: b.assign(top, top.maximum(b.load(x, row * n + k)))
    total = b.accumulator(b.const(dtypes.float32, 0.0))
    with b.loop(n, AxisType.REDUCE) as k:
      e = b.add((b.load(x, row * n + k) - top).exp2())
      b.store(kept, k, e)
      b.assign(total, total + e)
    with b.loop(n) as k: b.store(out, row * n + k, b.load(kept, k) / total)
  return b.program()

def workgroups(groups: int = 2, lanes: int = 4) -> Program:
  """Reverses each group of `lanes` elements through shared memory: lanes write, meet, and read what others wrote."""
  b = Builder("workgroups")
  out, x = b.param(0, i32, groups * lanes), b.param(1, i32, groups * lanes)
  shared = b.local(i32, lanes)
  with b.loop(groups, AxisType.GLOBAL) as g, b.loop(lanes, AxisType.LOCAL) as l:
    b.store(shared, l, b.load(x, g * lanes + l))
    b.barrier()
    b.store(out, g * lanes + l, b.load(shared, l * -1 + (lanes - 1)))
  return b.program()

def convert(source: DType, target: DType, n: int, lanes: int = 1) -> Program:
  """data0 = data1 as another type."""
  b = Builder("convert")
  out, x = b.param(0, target, n), b.param(1, source, n)
  with b.loop(n // lanes, AxisType.GLOBAL) as g: b.store(out, g * lanes, b.load(x, g * lanes, lanes).cast(target))
  return b.program()

def convert_to_all(source: DType, n: int) -> Program:
  """data1, data2, ... = data0 as each type in turn."""
  b = Builder("convert_to_all")
  x, outputs = b.param(0, source, n), [b.param(k + 1, d, n) for k, d in enumerate(dtypes.all)]
  with b.loop(n, AxisType.GLOBAL) as g:
    for out in outputs: b.store(out, g, b.load(x, g).cast(out.dtype))
  return b.program()

# ***** random programs *****

FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
INTS = dtypes.ints
INT_OPS = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR,
           Ops.MULACC, Ops.NEG)
FLOAT_OPS = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MULACC, Ops.NEG, Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL)
BOOL_OPS = (Ops.AND, Ops.OR, Ops.XOR, Ops.MAX)
def folded(op: Ops, a: UOp, b: UOp) -> UOp:
  """op, or the choice that a MAX of floats becomes where targets do not have it."""
  return larger(a, b) if op is Ops.MAX and dtypes.is_float(a.dtype) else a.alu(op, b)

ARITY = {Ops.NEG: 1, Ops.SQRT: 1, Ops.TRUNC: 1, Ops.RECIPROCAL: 1, Ops.MULACC: 3}

class RandomProgram:
  """A Program of random operations on data of every type, in a grid of `items`, `lanes` elements each. Parameter 0 and
  up: one input for each type; after those, one output for each. `memory(seed)` gives fresh bytes for all of them."""
  def __init__(self, seed: int, steps: int = 12, lanes: int = 1, items: int = 3,
               types: tuple[DType, ...] = FLOATS + INTS + (dtypes.bool,)):
    self.random = random.Random(seed)
    self.lanes, self.size, self.types = lanes, items * lanes, types
    self.values: dict[DType, list[UOp]] = {d: [] for d in types}
    b = self.builder = Builder(f"random_{seed}_{lanes}")
    inputs = [b.param(k, d, self.size) for k, d in enumerate(types)]
    outputs = [b.param(len(types) + k, d, self.size) for k, d in enumerate(types)]
    with b.loop(items, AxisType.GLOBAL) as g:
      at = g * lanes if lanes > 1 else g
      for d, p in zip(types, inputs):
        self.values[d] += [b.load(p, at, lanes), UOp.const(d.vec(lanes), self.number(d))]
      for _ in range(steps): self.step()
      for d, p in zip(types, outputs): b.store(p, at, self.values[d][-1])
    self.program = b.program()

  def number(self, d: DType) -> Any:
    r = self.random
    if d is dtypes.bool: return r.random() < 0.5
    if dtypes.is_float(d):
      return r.choice([0.0, -0.0, 1.0, -1.5, float("inf"), float("nan"), 1e-40, 65504.0, 3e38, r.uniform(-9, 9),
                       r.gauss(0, 1e6)])
    return r.choice([0, 1, -1, 3, int(d.min), int(d.max), r.randint(-40, 40), r.randint(int(d.min), int(d.max))])

  def pick(self, d: DType) -> UOp: return self.random.choice(self.values[d])

  def step(self) -> None:
    r, b = self.random, self.builder
    d, kind = r.choice(self.types), r.random()
    if kind < 0.15: u = self.pick(r.choice(self.types)).cast(d)
    elif kind < 0.25:
      u = (self.pick(dtypes.bool).alu(Ops.WHERE, self.pick(d), self.pick(d)) if dtypes.bool in self.types
           else self.pick(d))
    elif kind < 0.35 and dtypes.bool in self.types:
      u, d = self.pick(d).alu(r.choice([Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE]), self.pick(d)), dtypes.bool
    elif kind < 0.4: return self.loop(d)
    else:
      numbers = FLOAT_OPS if dtypes.is_float(d) else INT_OPS
      op = r.choice(BOOL_OPS if d is dtypes.bool else numbers)
      u = UOp(op, d.vec(self.lanes), tuple(self.pick(d) for _ in range(ARITY.get(op, 2))))
    self.values[d].append(b.add(u))

  def loop(self, d: DType) -> None:
    """An accumulator that a loop changes."""
    b, op = self.builder, Ops.MAX if d is dtypes.bool else self.random.choice([Ops.ADD, Ops.MAX, Ops.MUL])
    acc = b.accumulator(self.pick(d))
    step = self.pick(d)
    with b.loop(self.random.randint(0, 4), AxisType.REDUCE) as k:
      b.assign(acc, folded(op, acc, folded(Ops.MAX, step, broadcast(b.add(k.cast(d)), self.lanes))))
    self.values[d].append(b.add(folded(Ops.MAX, acc, step)))

  def memory(self, seed: int) -> dict[int, bytearray]:
    from tinyhw.arithmetic import to_bytes
    r, self.random = self.random, random.Random(seed)
    out = {}
    for k, d in enumerate(self.types):
      out[k] = bytearray(b"".join(to_bytes(self.number(d), d) for _ in range(self.size)))
      out[len(self.types) + k] = bytearray(self.size * d.itemsize)
    self.random = r
    return out

def values(memory: Any, dtype: DType) -> list[Any]:
  """Elements of memory, NaN as text so that lists compare, and zeros with their sign."""
  from tinyhw.arithmetic import elements
  data = elements(memory, dtype)
  return [repr(data[i]) if isinstance(data[i], float) else data[i] for i in range(len(data))]

def same_memory(program: Program, a: dict[int, Any], b: dict[int, Any]) -> None:
  """Assert that all buffers hold the same values."""
  for p in program.params:
    assert values(a[p.arg[0]], p.dtype) == values(b[p.arg[0]], p.dtype), (f"{program.name}: slot {p.arg[0]} "
                                                                          f"({p.dtype}) differs")

def named() -> list[Program]:
  """Programs without lanes of workgroups and without transcendental functions: what every renderer takes."""
  return [add(), add(16, 4), add(15, 3, dtypes.uint8), matmul(5), matmul(5, True), pad(), gather(), fold()]

def memory_for(program: Program, seed: int = 0) -> dict[int, bytearray]:
  """Random bytes for every PARAM; small numbers where the type allows."""
  from tinyhw.arithmetic import to_bytes
  r = random.Random(seed)
  return {p.arg[0]: bytearray(b"".join(to_bytes(r.randint(-3, 25), p.dtype) for _ in range(p.arg[1])))
          for p in program.params}
