"""Kernels that the selectors of all CPUs compile, with their memory: loops, gates, addresses."""
from __future__ import annotations
from collections.abc import Callable, Mapping, Sequence

from generators.program_builder import Builder, broadcast, vectorize

from test.codegen.kernels import axis, data_for
from tinyhw.arithmetic import to_bytes
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

F32, I32 = dtypes.float32, dtypes.int32

class Case(NamedTuple):
  """A program, the bytes of its parameters, and values of its variables."""
  program: Program
  memory: list[bytes]
  variables: Mapping[str, int] = {}

def lowered(kernel: UOp, known: Capabilities, optimized: bool, variables: Mapping[str, int] | None = None) -> Case:
  """A kernel as codegen lowers it for a target."""
  data = data_for(kernel)
  program = lower(optimize(kernel, known) if optimized else kernel, known, "test")
  return Case(program, [b"".join(to_bytes(x, p.dtype.scalar()) for x in data[p.arg[0]]) for p in program.params],
              variables or {})

def elementwise() -> UOp:
  out, a, b = [UOp.param(k, F32, 103) for k in range(3)]
  r = axis(103, 0)
  return UOp.sink(out.index(r).store(a.index(r).load() * b.index(r).load() + a.index(r).load(), r))

def sum_of_rows() -> UOp:
  out, a = UOp.param(0, F32, 70), UOp.param(1, F32, 70 * 9)
  i, r = axis(70, 0), axis(9, 1, "REDUCE")
  return UOp.sink(out.index(i).store(a.index(i * 9 + r).load().reduce(Ops.ADD, r), i))

def product(m: int = 24, n: int = 20, depth: int = 12) -> UOp:
  out, a, b = UOp.param(0, F32, m * n), UOp.param(1, F32, m * depth), UOp.param(2, F32, depth * n)
  i, j, k = axis(m, 0), axis(n, 1), axis(depth, 2, "REDUCE")
  factors = a.index(i * depth + k).load() * b.index(k * n + j).load()
  return UOp.sink(out.index(i * n + j).store(factors.reduce(Ops.ADD, k), i, j))

def narrow_product(dtype: DType, m: int = 10, n: int = 12, depth: int = 16) -> UOp:
  """x @ w.T of bytes in int32, or of float16 in float32."""
  total = I32 if dtypes.is_int(dtype) else F32
  out, a, b = UOp.param(0, total, m * n), UOp.param(1, dtype, m * depth), UOp.param(2, dtype, n * depth)
  i, j, k = axis(m, 0), axis(n, 1), axis(depth, 2, "REDUCE")
  factors = a.index(i * depth + k).load().cast(total) * b.index(j * depth + k).load().cast(total)
  return UOp.sink(out.index(i * n + j).store(factors.reduce(Ops.ADD, k), i, j))

def variable_loop(n: int) -> Case:
  """A loop whose end is a variable."""
  b = Builder("variable")
  out, x = b.param(0, I32, 4), b.param(1, I32, 8)
  end = b.add(UOp.variable("n", 0, 8).cast(I32) if UOp.variable("n", 0, 8).dtype is not I32 else UOp.variable("n", 0,
                                                                                                              8))
  with b.loop(4, AxisType.GLOBAL) as g:
    total = b.add(UOp(Ops.ACC, I32, (UOp.const(I32, 100),), 0))
    with b.loop(end) as r: b.add(UOp(Ops.ASSIGN_ACC, I32, (total, b.add(total + b.load(x, r)))))
    b.store(out, g, b.add(total + g))
  return Case(b.program(), [bytes(16), b"".join(to_bytes(3 * k, I32) for k in range(8))], {"n": n})

def gates() -> Case:
  """Gates keep loads and stores from memory. The buffers end where the gates do; beyond is another buffer, which must
  not change."""
  b = Builder("gates")
  out, x = b.param(0, I32, 5), b.param(1, dtypes.float64, 3)
  with b.loop(9, AxisType.GLOBAL) as g:
    inside, few = b.add(g < 5), b.add(g < 3)
    index = UOp(Ops.INDEX, dtypes.float64, (x, g))
    value = b.add(UOp(Ops.LOAD, dtypes.float64, (index, few, UOp.const(dtypes.float64, -2.5))))
    b.add(UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, I32, (out, g)), b.add(value.cast(I32)), inside)))
  return Case(b.program(), [bytes(20), b"".join(to_bytes(v, dtypes.float64) for v in (7.9, -1.5, 3e20))])

def far_gate() -> Case:
  """A gated load far from its index."""
  b = Builder("far")
  out, x = b.param(0, I32, 4), b.param(1, F32, 1030)
  with b.loop(4, AxisType.GLOBAL) as g:
    index = UOp(Ops.INDEX, F32, (x, b.add(g + 1025)))
    value = b.add(UOp(Ops.LOAD, F32, (index, b.add(g < 3), UOp.const(F32, -2.5))))
    b.store(out, g, b.add(value.cast(I32)))
  return Case(b.program(), [bytes(16), b"".join(to_bytes(float(k), F32) for k in range(1030))])

def addresses(size: int, offset: int) -> Case:
  """Constant parts of indices within and beyond what an instruction holds, and negative ones."""
  dtype = {1: dtypes.uint8, 4: F32, 8: dtypes.int64}[size]
  b = Builder("addresses")
  out, x = b.param(0, dtype, 8), b.param(1, dtype, offset + 16)
  with b.loop(4, AxisType.GLOBAL) as g:
    b.store(out, g, b.load(x, b.add(g + offset)))
    b.store(out, b.add(g + 4), b.load(x, b.add(b.add(g * -1) + (offset + 9))))
  return Case(b.program(), [bytes(8 * size), b"".join(to_bytes(k % 200, dtype) for k in range(offset + 16))])

CASES: Sequence[Callable[[], Case]] = (
  gates, far_gate, *(lambda n=n: variable_loop(n) for n in (0, 1, 5)),    # type: ignore[misc]
  *(lambda size=size, offset=offset: addresses(size, offset)              # type: ignore[misc]
    for size, offset in ((1, 0), (1, 5000), (4, 255), (4, 1 << 14), (8, 4095), (8, 40000))))

# ***** vectors *****

def small_numbers(dtype: DType, count: int) -> bytes:
  """Numbers around zero."""
  least = 3 * (dtype in dtypes.sints or dtype in dtypes.floats)
  return b"".join(to_bytes((3 * k * k + k) % 7 - least, dtype) for k in range(count))

def lanes(dtype: DType, count: int) -> Case:
  """Broadcasts, vectors of scalars, elements and parts of vectors."""
  b = Builder("lanes")
  out, x = b.param(0, dtype, 4 * count), b.param(1, dtype, count)
  with b.loop(1, AxisType.GLOBAL):
    whole = b.load(x, b.const(I32, 0), count)
    elements = [b.add(UOp(Ops.GEP, dtype, (whole,), k)) for k in range(count)]
    made = [vectorize(*elements[::-1]), broadcast(elements[-1], count)]
    for k, value in enumerate(made): b.store(out, b.const(I32, k * count), b.add(value))
    if count > 2:
      for k in range(2):
        part = b.add(UOp(Ops.GEP, dtype.vec(count // 2), (whole,), k * count // 2))
        b.store(out, b.const(I32, 2 * count + k * count // 2), part)
    for k, element in enumerate(elements): b.store(out, b.const(I32, 3 * count + k), element)
  data = b"".join(to_bytes(k * 3 - (2 if dtype not in dtypes.uints else 0), dtype) for k in range(count))
  return Case(b.program(), [bytes(4 * count * dtype.itemsize), data])

def choice(dtype: DType, other: DType, vector_bytes: int) -> Case:
  """A mask of one type chooses values of another."""
  count = vector_bytes // max(dtype.itemsize, other.itemsize)
  b = Builder("choose")
  out, x, y = b.param(0, other, 4 * count), b.param(1, dtype, 4 * count), b.param(2, other, 4 * count)
  with b.loop(4, AxisType.GLOBAL) as g:
    v, w = b.load(x, g * count, count), b.load(y, g * count, count)
    mask = b.add(UOp(Ops.CMPLT, dtypes.bool.vec(count), (v, UOp.const(dtype.vec(count), 2))))
    b.store(out, g * count, b.add(mask.where(w, w + w)))
  return Case(b.program(), [bytes(4 * count * other.itemsize), small_numbers(dtype, 4 * count),
                            small_numbers(other, 4 * count)])

def logic(count: int) -> Case:
  """Logic of masks, their memory and their elements."""
  b = Builder("logic")
  boolean = dtypes.bool.vec(count)
  out, one, x = b.param(0, dtypes.bool, 8 * count), b.param(1, dtypes.bool, 2), b.param(2, dtypes.bool, 2 * count)
  def element(of: UOp, k: int) -> UOp: return UOp(Ops.GEP, dtypes.bool, (of,), k)
  with b.loop(1, AxisType.GLOBAL):
    p, q = (b.load(x, b.const(I32, k * count), count) for k in range(2))
    found = [UOp(op, boolean, (p, q)) for op in (Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE)]
    found += [p.where(q, UOp(Ops.NEG, boolean, (q,))), UOp(Ops.WHERE, boolean, (broadcast(element(p, 1), count), p, q))]
    for k, value in enumerate(found): b.store(out, b.const(I32, k * count), b.add(value))
    b.store(one, b.const(I32, 0), b.add(element(found[2], count - 1)))
    b.store(one, b.const(I32, 1), b.add(element(vectorize(*[element(q, k) for k in range(count)]), 1)))
  return Case(b.program(), [bytes(8 * count), bytes(2), bytes((5 * k * k + 1) % 3 % 2 for k in range(2 * count))])
