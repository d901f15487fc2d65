"""Programs of tensor operations, and how they are chosen: a Maker takes one operation after the other and runs it in
NumPy as it goes, so that it knows shapes and values.

Floats start as multiples of 1/4; as long as sums and products of them are exact in their type, the order of additions
does not matter and results must be equal. Here are the operators and movements; generators/tensor_methods.py adds the
other methods, generators/tensor_programs.py runs programs.
"""
from __future__ import annotations
from collections.abc import Callable
from dataclasses import dataclass, field
import random
from typing import Any, NamedTuple

import numpy as np

from tinyhw import Tensor, dtypes

FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
TYPES = ("bool", *SIGNED, *UNSIGNED, *FLOATS)
DIGITS = {"float16": 10, "float32": 23, "float64": 52}   # bits of the significand that exact values may use
MOST_ELEMENTS = 4096

class Value(NamedTuple):
  """A value of a program. bits: of the fraction of its floats, all of which are multiples of 2**-bits; None where
  roundings may differ."""
  array: Any
  bits: int | None = 0

  @property
  def kind(self) -> str: return str(self.array.dtype)
  @property
  def is_float(self) -> bool: return self.kind in FLOATS

class Step(NamedTuple):
  """One operation: what it is called, positions of its operands, and what it does with Tensors."""
  name: str
  operands: tuple[int, ...]
  tensor: Callable[..., Tensor]

@dataclass
class Program:
  """inputs: arrays. steps: each makes one more value. results: positions of the values to compare, with what they are
  in NumPy."""
  inputs: list[Any] = field(default_factory=list)
  steps: list[Step] = field(default_factory=list)
  results: list[int] = field(default_factory=list)
  values: list[Value] = field(default_factory=list)

  def __str__(self) -> str:
    lines = [f"%{k} = input {a.dtype}{list(a.shape)}" for k, a in enumerate(self.inputs)]
    for k, s in enumerate(self.steps, len(self.inputs)):
      lines.append(f"%{k} = {s.name}({', '.join(f'%{o}' for o in s.operands)}) : "
                   f"{self.values[k].kind}{list(self.values[k].array.shape)}")
    return "\n".join([*lines, f"results {self.results}"])

def largest(array: Any) -> float:
  """The largest absolute value; 0 of nothing."""
  return float(np.abs(array.astype(np.float64)).max()) if array.size else 0.0

class Maker:
  """Chooses operations. A method named op_… makes one value, or returns False if it does not fit what there is."""
  def __init__(self, choices: random.Random, inexact: bool = True):
    self.random = choices
    self.numpy = np.random.default_rng(choices.getrandbits(32))
    self.program = Program()
    self.inexact = inexact

  # ***** values *****

  @property
  def values(self) -> list[Value]: return self.program.values

  def data(self, shape: tuple[int, ...], kind: str) -> Any:
    if kind == "bool": return self.numpy.random(shape) < 0.5
    if kind in FLOATS: return (self.numpy.integers(-12, 13, shape) / 4).astype(kind)
    if kind in UNSIGNED: return self.numpy.integers(0, 12, shape).astype(kind)
    wide = self.random.random() < 0.2
    info = np.iinfo(kind)
    return self.numpy.integers(info.min if wide else -9, info.max if wide else 9, shape, dtype=kind, endpoint=True)

  def shape(self, most: int = 3) -> tuple[int, ...]:
    sizes = (1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33) * 4 + (0,)
    while True:
      shape = tuple(self.random.choice(sizes) for _ in range(self.random.randint(0, most)))
      if np.prod(shape, dtype=int) <= 1024: return shape

  def input(self, shape: tuple[int, ...], kind: str) -> int:
    """A new input. Inputs come first: only before there are steps."""
    array = self.data(shape, kind)
    self.program.inputs.append(array)
    self.values.append(Value(array, 2 if kind in FLOATS else 0))
    return len(self.values) - 1

  def pick(self, wanted: Callable[[Value], bool] = lambda v: True) -> int | None:
    """A value that satisfies a condition, rather a new one."""
    found = [k for k, v in enumerate(self.values) if wanted(v)]
    if not found: return None
    return found[-1 - min(self.random.randrange(len(found)) for _ in range(3))]

  def add(self, name: str, operands: tuple[int, ...], array: Any, tensor: Callable[..., Tensor],
          bits: int | None = 0) -> bool:
    """A step. The values must be exact multiples if `bits` says so, and small enough to go on with."""
    array = np.asarray(array)
    if array.size > MOST_ELEMENTS or array.ndim > 6: return False
    if str(array.dtype) in FLOATS:
      if not np.isfinite(array).all() or largest(array) > (1e4 if bits is not None else 1e2): return False
      if bits is not None and largest(array) * 2.0 ** bits >= 2.0 ** DIGITS[str(array.dtype)]: bits = None
      if bits is None and not self.inexact: return False
    self.program.steps.append(Step(name, operands, tensor))
    self.values.append(Value(array, bits))
    return True

  def alike(self, k: int) -> int:
    """A value that broadcasts with value k and has its type, or k itself."""
    shape, kind = self.values[k].array.shape, self.values[k].kind
    def fits(v: Value) -> bool:
      if v.kind != kind: return False
      try: return len(np.broadcast_shapes(v.array.shape, shape)) > 0 or not shape
      except ValueError: return False
    found = self.pick(fits)
    assert found is not None
    return found

  # ***** elementwise *****

  def op_unary(self) -> bool:
    k = self.pick(lambda v: v.kind != "bool")
    if k is None: return False
    v = self.values[k]
    table: list[tuple[str, Any, Any, int | None]] = [
      ("neg", np.negative, lambda t: -t, v.bits), ("abs", np.abs, lambda t: t.abs(), v.bits),
      ("relu", lambda a: np.maximum(a, a.dtype.type(0)), lambda t: t.relu(), v.bits),
      ("square", lambda a: a * a, lambda t: t.square(), None if v.bits is None else 2 * v.bits)]
    if v.bits is not None: table.append(("sign", np.sign, lambda t: t.sign(), 0))
    if v.is_float:
      table.append(("sqrt", lambda a: np.sqrt(np.abs(a)), lambda t: t.abs().sqrt(), None))
      table.append(("reciprocal", lambda a: (1 / (np.abs(a) + a.dtype.type(1))).astype(a.dtype),
                    lambda t: (t.abs() + 1).reciprocal(), None))
      if v.bits is not None:
        table += [("floor", np.floor, lambda t: t.floor(), 0), ("ceil", np.ceil, lambda t: t.ceil(), 0),
                  ("trunc", np.trunc, lambda t: t.trunc(), 0),
                  ("round", np.round, lambda t: t.round(), 0)]
    else: table.append(("invert", np.invert, lambda t: ~t, 0))
    name, array, tensor, bits = self.random.choice(table)
    with np.errstate(all="ignore"): return self.add(name, (k,), array(v.array), tensor, bits)

  def op_binary(self) -> bool:
    a = self.pick()
    assert a is not None
    b = self.alike(a)
    x, y = self.values[a], self.values[b]
    bits = None if x.bits is None or y.bits is None else max(x.bits, y.bits)
    product = None if x.bits is None or y.bits is None else x.bits + y.bits
    table: list[tuple[str, Any, Any, int | None]] = [
      ("maximum", np.maximum, lambda s, t: s.maximum(t), bits),
      ("minimum", np.minimum, lambda s, t: s.minimum(t), bits)]
    if x.kind != "bool": table += [
      ("add", np.add, lambda s, t: s + t, bits), ("sub", np.subtract, lambda s, t: s - t, bits),
      ("mul", np.multiply, lambda s, t: s * t, product)]
    if not x.is_float: table += [
      ("and", np.bitwise_and, lambda s, t: s & t, 0), ("or", np.bitwise_or, lambda s, t: s | t, 0),
      ("xor", np.bitwise_xor, lambda s, t: s ^ t, 0)]
    if bits is not None: table += [
      ("lt", np.less, lambda s, t: s < t, 0), ("gt", np.greater, lambda s, t: s > t, 0),
      ("le", np.less_equal, lambda s, t: s <= t, 0),
      ("ge", np.greater_equal, lambda s, t: s >= t, 0), ("eq", np.equal, lambda s, t: s == t, 0),
      ("ne", np.not_equal, lambda s, t: s != t, 0)]
    if x.kind in SIGNED + UNSIGNED and (y.array != 0).all() and not (y.array.astype(np.int64) == -1).any():
      table += [("floordiv", np.floor_divide, lambda s, t: s // t, 0), ("mod", np.mod, lambda s, t: s % t, 0)]
    name, array, tensor, bits = self.random.choice(table)
    with np.errstate(all="ignore"): return self.add(name, (a, b), array(x.array, y.array), tensor, bits)

  def op_scalar(self) -> bool:
    """With a Python number."""
    k = self.pick(lambda v: v.kind != "bool")
    if k is None: return False
    v = self.values[k]
    if v.is_float:
      c = self.random.choice([-2.0, -0.5, 0.25, 1.0, 3.0])
      bits, product = (None, None) if v.bits is None else (max(v.bits, 2), v.bits + 2)
      table = [("add", lambda a: a + c, lambda t: t + c, bits), ("rsub", lambda a: c - a, lambda t: c - t, bits),
               ("mul", lambda a: a * c, lambda t: t * c, product)]
    else:
      d = self.random.choice([1, 2, 3, 5, 7, 8, 100])
      n = self.random.randrange(0, 8 * v.array.dtype.itemsize - 1)
      one = v.array.dtype.type
      table = [("add", lambda a: a + one(d), lambda t: t + d, 0), ("mul", lambda a: a * one(d), lambda t: t * d, 0),
               ("floordiv", lambda a: a // one(d), lambda t: t // d, 0),
               ("mod", lambda a: a % one(d), lambda t: t % d, 0),
               ("shl", lambda a: a << one(n), lambda t: t << n, 0), ("shr", lambda a: a >> one(n), lambda t: t >> n, 0)]
      c = d
    name, array, tensor, bits = self.random.choice(table)
    with np.errstate(all="ignore"):
      return self.add(f"{name}[{c}]", (k,), np.asarray(array(v.array)).astype(v.kind), tensor, bits)

  def op_where(self) -> bool:
    a = self.pick()
    c = self.pick(lambda v: v.kind == "bool")
    if a is None or c is None: return False
    b = self.alike(a)
    x, y, z = self.values[c], self.values[a], self.values[b]
    try: np.broadcast_shapes(x.array.shape, y.array.shape, z.array.shape)
    except ValueError: return False
    bits = None if y.bits is None or z.bits is None else max(y.bits, z.bits)
    return self.add("where", (c, a, b), np.where(x.array, y.array, z.array), lambda s, t, u: s.where(t, u), bits)

  def op_cast(self) -> bool:
    k = self.pick(lambda v: v.bits is not None)
    kind = self.random.choice(TYPES)
    if k is None: return False
    v = self.values[k]
    if v.is_float and kind in UNSIGNED: return False   # of negative numbers NumPy's result is not defined
    with np.errstate(all="ignore"): array = v.array.astype(kind)
    if v.is_float and kind not in FLOATS and kind != "bool" and largest(v.array) > 100: return False
    if kind in FLOATS:
      if not np.isfinite(array).all(): return False
      bits: int | None = v.bits
      if (array.astype(np.float64) != v.array.astype(np.float64)).any(): bits = None
    else: bits = 0
    return self.add(f"cast[{kind}]", (k,), array, lambda t: t.cast(getattr(dtypes, kind)), bits)

  def op_bitcast(self) -> bool:
    k = self.pick(lambda v: v.kind in SIGNED + UNSIGNED)
    if k is None: return False
    v = self.values[k]
    kind = self.random.choice([t for t in SIGNED + UNSIGNED if np.dtype(t).itemsize == v.array.dtype.itemsize])
    return self.add(f"bitcast[{kind}]", (k,), v.array.view(kind), lambda t: t.bitcast(getattr(dtypes, kind)))

  # ***** movement *****

  def moved(self, name: str, k: int, array: Any, tensor: Callable[..., Tensor]) -> bool:
    return self.add(name, (k,), array, tensor, self.values[k].bits)

  def op_reshape(self) -> bool:
    k = self.pick()
    assert k is not None
    a, rest = self.values[k].array, self.values[k].array.size
    shape: list[int] = [] if rest else [0]
    while rest > 1:
      n = self.random.choice([d for d in range(1, rest + 1) if rest % d == 0])
      shape.append(n)
      rest //= n
    return self.moved(f"reshape{shape}", k, a.reshape(shape), lambda t: t.reshape(tuple(shape)))

  def op_permute(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 1)
    if k is None: return False
    order = self.random.sample(range(self.values[k].array.ndim), self.values[k].array.ndim)
    return self.moved(f"permute{order}", k, self.values[k].array.transpose(order), lambda t: t.permute(order))

  def op_expand(self) -> bool:
    k = self.pick()
    assert k is not None
    a, n = self.values[k].array, self.random.choice([2, 3, 8, 17])
    at = self.random.randint(0, a.ndim)
    shape = a.shape[:at] + (n,) + a.shape[at:]
    return self.moved(f"expand{at, n}", k, np.broadcast_to(np.expand_dims(a, at), shape),
                      lambda t: t.unsqueeze(at).expand(shape))

  def op_pad(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0)
    if k is None: return False
    a = self.values[k].array
    amounts = [(self.random.randint(0, 3), self.random.randint(0, 3)) if self.random.random() < 0.6 else (0, 0)
               for _ in a.shape]
    value = self.random.choice([0, 0, 1]) if self.values[k].kind != "bool" else 0
    if self.random.random() < 0.2 and len(amounts) <= 3 and all(n > 3 for n in a.shape):
      names: list[tuple[str, Any]] = [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
      mode, name = self.random.choice(names)
      return self.moved(f"pad[{mode}]{amounts}", k, np.pad(a, amounts, mode=name),
                        lambda t: t.pad(tuple(amounts), mode=mode))
    return self.moved(f"pad{amounts, value}", k, np.pad(a, amounts, constant_values=value),
                      lambda t: t.pad(tuple(amounts), value=value))

  def op_slice(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0)
    if k is None: return False
    index: list[Any] = []
    for n in self.values[k].array.shape:
      choice = self.random.random()
      if choice < 0.4 or n == 0: index.append(slice(None))
      elif choice < 0.5: index.append(self.random.randrange(-n, n))
      elif choice < 0.55: index += [None, slice(None)]
      else:
        start, stop = sorted(self.random.sample(range(n + 1), 2)) if n > 1 else (0, 1)
        step = self.random.choice([1, 1, 1, 2, 3, -1, -2])
        index.append(slice(start, stop, step) if step > 0 else slice(stop - 1, start - 1 if start > 0 else None, step))
    key = tuple(index)
    return self.moved(f"slice{key}", k, self.values[k].array[key], lambda t: t[key])

  def op_flip(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0)
    if k is None: return False
    axis = self.random.randrange(self.values[k].array.ndim)
    return self.moved(f"flip[{axis}]", k, np.flip(self.values[k].array, axis), lambda t: t.flip(axis))

  def op_roll(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0)
    if k is None: return False
    axis = self.random.randrange(self.values[k].array.ndim)
    n = self.random.randint(-3, 3)
    return self.moved(f"roll[{n}, {axis}]", k, np.roll(self.values[k].array, n, axis), lambda t: t.roll(n, axis))

  def op_cat(self) -> bool:
    a = self.pick(lambda v: v.array.ndim > 0)
    if a is None: return False
    x = self.values[a]
    axis = self.random.randrange(x.array.ndim)
    def fits(v: Value) -> bool:
      if v.kind != x.kind or v.array.ndim != x.array.ndim: return False
      return all(m == n or i == axis for i, (m, n) in enumerate(zip(v.array.shape, x.array.shape)))
    b = self.pick(fits)
    assert b is not None
    bits = None if x.bits is None or self.values[b].bits is None else max(x.bits, self.values[b].bits or 0)
    return self.add(f"cat[{axis}]", (a, b), np.concatenate([x.array, self.values[b].array], axis), lambda s,
                    t: s.cat(t, dim=axis), bits)

  def op_gather(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0)
    i = self.pick(lambda v: v.kind in SIGNED + UNSIGNED and v.array.ndim < 3)
    if k is None or i is None: return False
    a, index = self.values[k].array, self.values[i].array
    axis = self.random.randrange(a.ndim)
    n = a.shape[axis]
    kind = index.dtype.type
    if n > 100 or n == 0: return False
    rows = index % kind(n)
    key = (slice(None),) * axis
    return self.add(f"gather[{axis}]", (k, i), a[key + (rows,)], lambda t, r: t[key + (r % n,)], self.values[k].bits)

  # ***** reductions *****

  def op_reduce(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0)
    if k is None: return False
    v = self.values[k]
    axes = tuple(sorted(self.random.sample(range(v.array.ndim), self.random.randint(1, v.array.ndim))))
    keep = self.random.random() < 0.3
    table: list[tuple[str, Any, Any, int | None]] = [] if v.array.size == 0 else [
      ("max", lambda a: a.max(axes, keepdims=keep), lambda t: t.max(axes, keepdim=keep), v.bits),
      ("min", lambda a: a.min(axes, keepdims=keep), lambda t: t.min(axes, keepdim=keep), v.bits)]
    if v.kind == "bool": table += [
      ("any", lambda a: a.any(axes, keepdims=keep), lambda t: t.any(axes, keepdim=keep), 0),
      ("all", lambda a: a.all(axes, keepdims=keep), lambda t: t.all(axes, keepdim=keep), 0)]
    else:
      kind = v.kind if v.kind != "float16" else "float32"
      bits = v.bits
      if (v.is_float and bits is not None and np.abs(v.array.astype(np.float64)).sum() * 2.0 ** bits
          >= 2.0 ** DIGITS[kind]):
        bits = None
      table += [("sum", lambda a: a.sum(axes, keepdims=keep, dtype=kind),
                 lambda t: t.sum(axes, keepdim=keep, dtype=getattr(dtypes, kind)), bits)] * 3
      if v.is_float and v.array.size:
        table.append(("mean", lambda a: a.mean(axes, keepdims=keep), lambda t: t.mean(axes, keepdim=keep), None))
    if v.bits is not None and v.array.size and len(axes) == 1:
      table.append(("argmax", lambda a: a.argmax(axes[0], keepdims=keep).astype(np.int32),
                    lambda t: t.argmax(axes[0], keepdim=keep), 0))
    name, array, tensor, bits = self.random.choice(table)
    with np.errstate(all="ignore"): return self.add(f"{name}{list(axes), keep}", (k,), array(v.array), tensor, bits)

  def op_cumulative(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0 and v.kind in ("int32", "int64", "float32", "float64"))
    if k is None: return False
    v = self.values[k]
    axis = self.random.randrange(v.array.ndim)
    bits = v.bits
    if v.is_float and bits is not None and np.abs(v.array).sum() * 2.0 ** bits >= 2.0 ** DIGITS[v.kind]: bits = None
    return self.add(f"cumsum[{axis}]", (k,), v.array.cumsum(axis, dtype=v.kind), lambda t: t.cumsum(axis), bits)

  def op_matmul(self) -> bool:
    a = self.pick(lambda v: v.array.ndim >= 1 and v.kind in ("float32", "float64", "int32"))
    if a is None: return False
    x = self.values[a]
    def fits(v: Value) -> bool:
      if v.kind != x.kind or v.array.ndim == 0: return False
      try: np.matmul(x.array, v.array)
      except ValueError: return False
      return True
    b = self.pick(fits)
    if b is None: return False
    y = self.values[b]
    if x.bits is None or y.bits is None: bits = None
    else:
      bits = x.bits + y.bits
      if x.is_float and largest(x.array) * largest(y.array) * x.array.shape[-1] * 2.0 ** bits >= 2.0 ** DIGITS[x.kind]:
        bits = None
    return self.add("matmul", (a, b), np.matmul(x.array, y.array), lambda s, t: s @ t, bits)

  def op_rows(self) -> bool:
    """Softmax and what is like it: a reduction that is used again by each element of its row."""
    k = self.pick(lambda v: v.array.ndim > 0 and v.array.size > 0 and v.kind in ("float32", "float64"))
    if k is None: return False
    v, axis = self.values[k].array, self.random.randrange(self.values[k].array.ndim)
    e = np.exp(v - v.max(axis, keepdims=True))
    d = v - v.mean(axis, keepdims=True)
    table = [("softmax", e / e.sum(axis, keepdims=True), lambda t: t.softmax(axis)),
             ("layernorm", d / np.sqrt((d * d).mean(axis, keepdims=True) + 1e-5), lambda t: t.layernorm(axis)),
             ("centred", v - v.max(axis, keepdims=True), lambda t: t - t.max(axis, keepdim=True))]
    name, array, tensor = self.random.choice(table)
    return self.add(f"{name}[{axis}]", (k,), array.astype(v.dtype), tensor, self.values[k].bits if name == "centred"
                    else None)

  def op_function(self) -> bool:
    k = self.pick(lambda v: v.is_float and largest(v.array) < 30)
    if k is None: return False
    table: list[tuple[str, Any, Any]] = [
      ("exp", lambda a: np.exp(a * 0.125), lambda t: (t * 0.125).exp()),
      ("log", lambda a: np.log(np.abs(a) + 1), lambda t: (t.abs() + 1).log()),
      ("sin", np.sin, lambda t: t.sin()), ("tanh", np.tanh, lambda t: t.tanh()),
      ("sigmoid", lambda a: 1 / (1 + np.exp(-a)), lambda t: t.sigmoid())]
    name, array, tensor = self.random.choice(table)
    return self.add(name, (k,), array(self.values[k].array).astype(self.values[k].kind), tensor, None)

  # ***** storage *****

  def op_contiguous(self) -> bool:
    k = self.pick()
    assert k is not None
    return self.moved("contiguous", k, self.values[k].array, lambda t: t.contiguous())

  def op_realize(self) -> bool:
    """Part of the graph is computed now; what follows reads its buffer."""
    k = self.pick()
    assert k is not None
    return self.moved("realize", k, self.values[k].array, lambda t: t.contiguous().realize())

  def op_assign(self) -> bool:
    """A part of a copy is overwritten; the copy's users before are read after."""
    k = self.pick(lambda v: v.array.size > 0 and v.array.ndim > 0)
    if k is None: return False
    v = self.values[k]
    start, stop = sorted(self.random.sample(range(v.array.shape[0] + 1), 2)) if v.array.shape[0] > 1 else (0, 1)
    mode = self.random.randrange(3)
    array = v.array.copy()
    before = array[::-1].copy() if mode == 2 else array.copy()
    if mode == 0: array[start:stop] = np.array(1).astype(v.kind)
    elif mode == 1: array[start:stop] = np.flip(v.array[start:stop], -1)
    else: array[start:stop] = array[start:stop][::-1].copy()
    def tensor(t: Tensor) -> Tensor:
      c = t.clone().realize()
      same = c + 0 if v.kind != "bool" else c | False
      old = c.flip(0) if mode == 2 else same
      if mode == 0: c[start:stop] = 1
      elif mode == 1: c[start:stop] = t[start:stop].flip(-1)
      else: c[start:stop] = c[start:stop].flip(0)
      del old
      return c
    del before
    return self.moved(f"assign[{start}:{stop}, {mode}]", k, array, tensor)
