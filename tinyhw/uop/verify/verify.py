"""Checks that a tensor graph, a kernel or a Program follows the rules of docs/design/uop.md.

SPEC=1 checks each node alone, and the order of Programs. It takes about 3 µs a node. SPEC=2 also checks shapes, closed
ranges, and that every access is inside of its buffer.

Each representation is a table: operation -> a check that returns the problem, or None. `verify` finds the
representation, and raises VerifyError with the node, the rule and the lines around it.
"""
from __future__ import annotations
from typing import Any
from collections.abc import Callable, Mapping

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import VerifyError
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.matrix import BLOCK_BYTES, WORD_BYTES, Matrix, MatrixRows, Scattered, SwizzledLayout, blocks_of
from tinyhw.uop.ops import KernelInfo, UOp, resolve, same_shape
from tinyhw.uop.ranges import has_position
from tinyhw.uop.text import line_number, show
from tinyhw.uop.verify.async_copies import COPY_CHECKS
from tinyhw.uop.verify.inbounds import outside, outside_run

Check = Callable[[UOp], "str | None"]

def verify(u: Any, level: int = 2) -> None:
  """Check a tensor graph, a kernel (SINK of stores) or a Program. level: as SPEC; 0 checks nothing.

  Raises VerifyError.
  """
  if level <= 0: return
  if not isinstance(u, UOp): return _Program(u, level).check()
  if u.op in (Ops.SINK, Ops.STORE, Ops.GROUP) and any(n.op is Ops.STORE
                                                      for n in (u, *u.src, *(s for g in u.src for s in g.src))):
    _check_nodes(u, KERNEL, "a kernel")
    if level > 1: _check_kernel(u)
    return
  _check_nodes(u, TENSOR, "a tensor graph")
  if level > 1: _check_shapes(u)

def _fail(root: Any, u: UOp, rule: str) -> None:
  lines, at = show(root).split("\n"), line_number(root, u)
  around = [f"{'>' if i == at else ' '} {lines[i]}" for i in range(max(0, at - 6), min(len(lines), at + 3))]
  raise VerifyError(f"{u.op.name}: {rule}; in\n" + "\n".join(around))

def _check_nodes(root: UOp, table: Mapping[Ops, Check], where: str) -> None:
  for u in root.toposort():
    check = table.get(u.op)
    wrong = f"not an operation of {where}" if check is None else check(u)
    if wrong is not None: _fail(root, u, wrong)

# ***** rules of elementwise operations, the same everywhere *****

def _sources(u: UOp, *counts: int) -> str | None:
  return None if len(u.src) in counts else f"{len(u.src)} sources, not {' or '.join(map(str, counts))}"

def _cast(u: UOp) -> str | None:
  if len(u.src) != 1: return _sources(u, 1)
  if u.dtype.count != u.src[0].dtype.count: return f"{u.src[0].dtype} to {u.dtype} changes the number of lanes"
  return "casts to no type" if u.dtype is dtypes.void else None

def _bitcast(u: UOp) -> str | None:
  if len(u.src) != 1: return _sources(u, 1)
  a, b = u.src[0].dtype, u.dtype
  return None if a.bitsize * a.count == b.bitsize * b.count or {a.itemsize,
                                                                b.itemsize} == {1} else f"{a} and {b} differ in size"

def _compare(u: UOp) -> str | None:
  if len(u.src) != 2: return _sources(u, 2)
  a, b = u.src[0].dtype, u.src[1].dtype
  if a is not b: return f"operands of types {a} and {b}"
  return None if u.dtype is dtypes.bool.vec(a.count) else f"gives {u.dtype}, not {dtypes.bool.vec(a.count)}"

def _where(u: UOp) -> str | None:
  if len(u.src) != 3: return _sources(u, 3)
  if u.src[0].dtype is not dtypes.bool.vec(u.dtype.count):
    return f"condition of type {u.src[0].dtype}, not {dtypes.bool.vec(u.dtype.count)}"
  return _same_types(u, u.src[1:])

def _dot4(u: UOp) -> str | None:
  if len(u.src) != 3: return _sources(u, 3)
  if u.dtype.scalar() is not dtypes.int32: return f"gives {u.dtype}, not int32"
  for s in u.src[:2]:
    if s.dtype.scalar() not in dtypes.int32s or s.dtype.count != u.dtype.count:
      return f"four bytes in a {s.dtype}, not an int32 or uint32 with the lanes of {u.dtype}"
  return _same_types(u, u.src[2:])

def _dot2(u: UOp) -> str | None:
  if len(u.src) != 3: return _sources(u, 3)
  if u.dtype.scalar() is not dtypes.float32: return f"gives {u.dtype}, not float32"
  for s in u.src[:2]:
    if s.dtype is not dtypes.uint32.vec(u.dtype.count):
      return f"two bfloat16 in a {s.dtype}, not a uint32 with the lanes of {u.dtype}"
  return _same_types(u, u.src[2:])

def _same_types(u: UOp, src: tuple[UOp, ...]) -> str | None:
  for s in src:
    if s.dtype is not u.dtype: return f"an operand of type {s.dtype} in an operation on {u.dtype}"
  return None

def _shift(u: UOp) -> str | None:
  if len(u.src) != 2: return _sources(u, 2)
  if u.src[1].dtype.count != u.dtype.count or not dtypes.is_int(u.src[1].dtype):
    return f"shifts {u.dtype} by {u.src[1].dtype}"
  return _same_types(u, u.src[:1])

_ONLY: dict[str, Callable[[DType], bool]] = {
  "floats": dtypes.is_float, "integers": dtypes.is_int, "integers and bools": lambda d: dtypes.is_int(d)
  or dtypes.is_bool(d),
  "uint64": lambda d: d.scalar() is dtypes.uint64, "numbers": lambda d: d is not dtypes.void,
}
_DOMAIN: dict[Ops, str] = {
  **{op: "floats" for op in GroupOp.Transcendental | {Ops.RECIPROCAL, Ops.SQRT, Ops.TRUNC, Ops.FDIV}},
  **{op: "integers" for op in (Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR)},
  **{op: "integers and bools" for op in (Ops.AND, Ops.OR, Ops.XOR)},
  Ops.THREEFRY: "uint64",
}

def _alu(op: Ops) -> Check:
  arity = next(n for n, group in ((1, GroupOp.Unary), (2, GroupOp.Binary), (3, GroupOp.Ternary)) if op in group)
  types = _DOMAIN.get(op, "numbers")
  allowed = _ONLY[types]
  general = {Ops.SHL: _shift, Ops.SHR: _shift}.get(op)
  def check(u: UOp) -> str | None:
    if not allowed(u.dtype): return f"has no meaning for {u.dtype}: it is for {types}"
    if general is not None: return general(u)
    if len(u.src) != arity: return _sources(u, arity)
    dtype = u.dtype
    for s in u.src:
      if s.dtype is not dtype: return f"an operand of type {s.dtype} in an operation on {dtype}"
    return None
  return check

_ELEMENTWISE: dict[Ops, Check] = {
  **{op: _alu(op) for op in GroupOp.ALU}, Ops.CAST: _cast, Ops.BITCAST: _bitcast, Ops.WHERE: _where, Ops.DOT4: _dot4,
  Ops.DOT2: _dot2,
  **{op: _compare for op in GroupOp.Comparison},
}

def _const(u: UOp) -> str | None:
  if u.dtype is dtypes.void: return "a constant of no type"
  kind: type = float if dtypes.is_float(u.dtype) else int
  if dtypes.is_bool(u.dtype): kind = bool
  return None if type(u.arg) is kind else f"value {u.arg!r} is no {kind.__name__}, as {u.dtype} has"

def _variable(u: UOp) -> str | None:
  fine = (isinstance(u.arg, tuple) and len(u.arg) in (3, 4) and isinstance(u.arg[0], str) and u.arg[1] <= u.arg[2]
          and dtypes.is_int(u.dtype))
  if fine and len(u.arg) == 4:
    fine = isinstance(u.arg[3], int) and u.arg[3] > 1 and u.arg[1] % u.arg[3] == u.arg[2] % u.arg[3] == 0
  return (None if fine and not u.src else f"argument {u.arg!r} is not (name, min, max) of an integer, nor these and "
          f"what they are multiples of")

def _bind(u: UOp) -> str | None:
  fine = len(u.src) == 2 and u.src[0].op is Ops.DEFINE_VAR and u.src[1].op is Ops.CONST
  return (None if fine and u.src[0].arg[1] <= u.src[1].arg <= u.src[0].arg[2] else "not a variable and a constant in "
          "its bounds")

# ***** tensor graphs *****

def _first_type(u: UOp) -> str | None: return _same_types(u, u.src[:1]) if u.src else _sources(u, 1)

def _integers(u: UOp) -> str | None:
  for s in u.src[1:]:
    if not dtypes.is_int(s.dtype): return f"a size of type {s.dtype}"
  return _first_type(u)

def _tensor_buffer(u: UOp) -> str | None:
  fine = (isinstance(u.arg, tuple) and len(u.arg) == 3 and _is_device(u.arg[1]) and isinstance(u.arg[2], int)
          and u.arg[2] >= 0)
  return None if fine and not u.src else f"argument {u.arg!r} is not (unique number, device, size)"

def _tensor_bitcast(u: UOp) -> str | None:
  """The last axis becomes longer or shorter if the size of the type changes."""
  return None if len(u.src) == 1 and u.shape else _bitcast(u)

def _reduce_axis(u: UOp) -> str | None:
  if len(u.src) != 1: return _sources(u, 1)
  if not (isinstance(u.arg, tuple) and len(u.arg) == 2 and isinstance(u.arg[1], tuple)):
    return f"argument {u.arg!r} is not (op, axes)"
  return _first_type(u) if u.arg[0] in (Ops.ADD, Ops.MUL, Ops.MAX) else f"does not fold with {u.arg[0]!r}"

def _gather(u: UOp) -> str | None:
  if len(u.src) != 2: return _sources(u, 2)
  return _first_type(u) if dtypes.is_int(u.src[1].dtype) else f"an index of type {u.src[1].dtype}"

def _scatter(u: UOp) -> str | None:
  if len(u.src) != 3: return _sources(u, 3)
  if not (isinstance(u.arg, tuple) and len(u.arg) == 2 and u.arg[0] in (None, Ops.ADD, Ops.MUL, Ops.MAX)
          and u.arg[1] in ("after", "before", "whole")):
    return f"argument {u.arg!r} is not (op, 'after', 'before' or 'whole')"
  if not dtypes.is_int(u.src[1].dtype): return f"an index of type {u.src[1].dtype}"
  return _same_types(u, (u.src[0], u.src[2]))

def _is_device(x: Any) -> bool:
  """Whether x is a name, or a tuple of names of several devices."""
  return isinstance(x, str) or isinstance(x, tuple) and len(x) > 1 and all(isinstance(d, str) for d in x)

def _copy(u: UOp) -> str | None:
  if len(u.src) != 2 or u.src[1].op is not Ops.DEVICE: return "not (value, DEVICE)"
  several = {"stack": (u.src[0].device,), "split": (u.device,), "swap": (u.src[0].device, u.device)}
  if u.arg is not None and not all(isinstance(d, tuple) for d in several.get(u.arg, (u.device,))):
    return f"{u.arg!r} needs several devices"
  return _first_type(u)

def _multi(u: UOp) -> str | None:
  if len(u.src) != 1 or not isinstance(u.device, tuple): return "not a value on several devices"
  return _first_type(u) if u.arg is None or 0 <= u.arg < len(u.shape) else f"axis {u.arg} of {u.shape}"

def _axes(u: UOp) -> str | None:
  return _first_type(u) if isinstance(u.arg, tuple) and len(u.src) == 1 else f"axes are {u.arg!r}"
def _anything(u: UOp) -> str | None: return None
def _assign(u: UOp) -> str | None: return _same_types(u, u.src) if len(u.src) == 2 else _sources(u, 2)

TENSOR: dict[Ops, Check] = {
  **_ELEMENTWISE, Ops.CONST: _const, Ops.DEFINE_VAR: _variable, Ops.BIND: _bind, Ops.BUFFER: _tensor_buffer,
  Ops.REDUCE_AXIS: _reduce_axis,
  Ops.GATHER: _gather, Ops.SCATTER: _scatter, Ops.COPY: _copy,
  Ops.MULTI: _multi, Ops.PERMUTE: _axes, Ops.FLIP: _axes, Ops.ASSIGN: _assign,
  Ops.DEVICE: lambda u: None if _is_device(u.arg) else f"argument {u.arg!r} is no name of a device",
  Ops.IOTA: lambda u: None if u.src and dtypes.is_int(u.dtype) else f"not a count, and of type {u.dtype}",
  **{op: _integers for op in (Ops.RESHAPE, Ops.EXPAND, Ops.PAD, Ops.SHRINK)},
  **{op: _first_type for op in (Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH, Ops.AFTER)},
  Ops.SINK: _anything, Ops.BITCAST: _tensor_bitcast,
}

def _product(shape: Any) -> Any:
  n: Any = 1
  for d in shape: n = d * n
  return n.simplify() if isinstance(n, UOp) else n

def _shape_rule(u: UOp) -> str | None:
  """The problem of u's shape, or None."""
  if u.op is Ops.BITCAST and u.shape:
    have, want = (_product((x.shape[-1], x.dtype.itemsize)) for x in (u.src[0], u))
    return None if _equal(have, want) else f"{have} bytes in a row of {u.src[0].shape} to {want} of {u.shape}"
  if u.op in GroupOp.Elementwise:
    for s in u.src:
      if s.shape != () and not same_shape(s.shape, u.shape):
        return f"operands of shapes {s.shape} and {u.shape}; insert EXPAND or RESHAPE"
    return None
  if not u.src: return None
  shape = u.src[0].shape
  if u.op is Ops.RESHAPE and not _equal(_product(shape), _product(u.shape)):
    return f"{shape} to {u.shape} changes the number of elements"
  if u.op is Ops.EXPAND and not (len(shape) == len(u.shape)
                                 and all(_equal(a, 1) or _equal(a, b) for a, b in zip(shape, u.shape))):
    return f"{shape} does not expand to {u.shape}"
  if u.op is Ops.PERMUTE and sorted(u.arg) != list(range(len(shape))):
    return f"{u.arg} does not order the axes of {shape}"
  if u.op in (Ops.PAD, Ops.SHRINK) and len(u.src) != 1 + 2 * len(shape):
    return f"{len(u.src) - 1} numbers for the {len(shape)} axes of {shape}"
  if u.op is Ops.PAD and not all(resolve(x >= 0) for pair in u.pairs for x in pair):
    return f"negative amount in {u.pairs}"
  if u.op is Ops.SHRINK and not all(resolve(b >= 0) and resolve(b <= e) and resolve(e <= d)
                                    for (b, e), d in zip(u.pairs, shape)):
    return f"{u.pairs} is not inside of {shape}"
  if u.op in (Ops.FLIP, Ops.REDUCE_AXIS):
    axes = u.arg if u.op is Ops.FLIP else u.arg[1]
    if any(not 0 <= k < len(shape) for k in axes): return f"axes {axes} of {shape}"
  if u.op is Ops.GATHER:
    index = u.src[1].shape
    if len(shape) != len(index) or any(k != u.arg and not _equal(a, b) for k, (a, b) in enumerate(zip(shape, index))):
      return f"index of shape {index} for {shape} along axis {u.arg}"
  if u.op is Ops.SCATTER and not any(same_shape(u.src[1].shape, u.src[2].shape[:k])
                                     for k in (len(u.src[2].shape), len(u.src[2].shape) - 1)):
    return f"values of shape {u.src[2].shape} for an index of shape {u.src[1].shape}"
  if u.op is Ops.ASSIGN and u.src[1].shape != () and not same_shape(shape, u.src[1].shape):
    return f"a value of shape {u.src[1].shape} for {shape}"
  return None

def _equal(a: Any, b: Any) -> bool:
  return a is b or resolve(a == b if isinstance(a, int) and isinstance(b, int) else (a - b).simplify().eq(0), False)

def _check_shapes(root: UOp) -> None:
  for u in root.toposort():
    if u.op in (Ops.SINK, Ops.DEVICE): continue
    wrong = _shape_rule(u)
    if wrong is not None: _fail(root, u, wrong)

# ***** kernels *****

def _slot(u: UOp) -> str | None:
  fine = isinstance(u.arg, tuple) and len(u.arg) == 2 and all(isinstance(x, int) and x >= 0 for x in u.arg)
  return (None if fine and not u.src and u.dtype.count == 1 else f"argument {u.arg!r} is not (number, size), or it "
          f"has lanes or sources")

def _range(u: UOp) -> str | None:
  if len(u.src) != 1: return _sources(u, 1)
  if not (isinstance(u.arg, tuple) and len(u.arg) == 2 and isinstance(u.arg[1], AxisType)):
    return f"argument {u.arg!r} is not (id, AxisType)"
  return None if u.src[0].dtype is u.dtype and dtypes.is_int(u.dtype) else f"{u.dtype} counts to a {u.src[0].dtype}"

_MEMORY = frozenset({Ops.PARAM, Ops.DEFINE_LOCAL, Ops.STAGE, Ops.BUFFER, Ops.AFTER})

def _index(u: UOp) -> str | None:
  if len(u.src) != 2: return _sources(u, 2)
  if u.src[0].op not in _MEMORY: return f"into {u.src[0].op.name}, which is no memory"
  if not dtypes.is_int(u.src[1].dtype): return f"index of type {u.src[1].dtype}"
  return None if u.dtype is u.src[0].dtype else f"of type {u.dtype} into memory of {u.src[0].dtype}"

def _load(u: UOp) -> str | None:
  if len(u.src) not in (1, 3) and u.arg is None: return _sources(u, 1, 3)
  place = u.src[0]
  if place.op is not Ops.INDEX: return f"from {place.op.name}, not INDEX"
  if u.dtype.scalar() is not place.dtype: return f"of {u.dtype} from memory of {place.dtype}"
  lanes = place.src[1].dtype.count
  if lanes not in (1, u.dtype.count): return f"of {u.dtype.count} lanes with {lanes} indices"
  if u.arg is not None: return _rows(u)
  if len(u.src) == 1: return None
  return _gate(u.src[1], u.dtype.count) or _same_types(u, u.src[2:])

def _rows(u: UOp) -> str | None:
  fine = isinstance(u.arg, MatrixRows) and all(s.op is Ops.INDEX and s.src[1].dtype.count == 1 for s in u.src)
  fine = fine and u.arg.rows > 0 and u.arg.stride >= 0 and u.dtype.count % u.arg.rows == 0
  fine = fine and len(u.src) == 1 + (u.arg.prefetched > 0)
  return None if fine else f"of {u.dtype.count} elements by {u.arg!r}, or with a gate"

def _gate(gate: UOp, lanes: int) -> str | None:
  return (None if gate.dtype in (dtypes.bool, dtypes.bool.vec(lanes)) else f"gate of type {gate.dtype}, not bool or "
          f"{dtypes.bool.vec(lanes)}")

def _scattered(count: int, how: Scattered) -> str | None:
  elements = {first + k for first, _ in how.places for k in range(how.length)}
  memory = {offset + k for _, offset in how.places for k in range(how.length)}
  if len(memory) != len(how.places) * how.length or min(memory):
    return f"of pieces that overlap, or none of which is where INDEX says: {how}"
  return None if max(elements) < count else f"of element {max(elements)} of {count}"

def _store(u: UOp) -> str | None:
  if len(u.src) < 2 or u.src[0].op is not Ops.INDEX: return "not (INDEX, value, ...)"
  place, value = u.src[:2]
  if isinstance(u.arg, Scattered): return _scattered(value.dtype.count, u.arg)
  if value.dtype.scalar() is not place.dtype: return f"of {value.dtype} into memory of {place.dtype}"
  lanes = place.src[1].dtype.count
  if lanes not in (1, value.dtype.count): return f"of {value.dtype.count} lanes with {lanes} indices"
  rest = [s for s in u.src[2:] if s.op is not Ops.RANGE]
  if len(rest) > 1 or (rest and u.src[2] is not rest[0]): return "what follows the value is not a gate and then ranges"
  return _gate(rest[0], value.dtype.count) if rest else None

def _fold(u: UOp) -> str | None:
  # values that unrolled iterations add in order; no loop may be left of them
  several = u.op is Ops.REDUCE and u.src[0].op is Ops.GROUP
  values = 1 + (u.op is Ops.STAGE and has_position(u) and dtypes.is_int(u.src[1].dtype))
  if len(u.src) < 2 - several or any(s.op is not Ops.RANGE for s in u.src[values:]): return "not (value, RANGE, ...)"
  if u.op is Ops.REDUCE and u.arg not in (Ops.ADD, Ops.MUL, Ops.MAX): return f"does not fold with {u.arg!r}"
  if u.op is Ops.STAGE and u.dtype in dtypes.weaks: return f"holds {u.dtype}, which has no size in memory"
  return _same_types(u, u.src[:1])

def _broadcast(u: UOp) -> str | None:
  return (None if len(u.src) == 1 and u.src[0].dtype is u.dtype.scalar() and u.dtype.count > 1
          else f"{[s.dtype for s in u.src]} to {u.dtype}")

def _vectorize(u: UOp) -> str | None:
  return (None if len(u.src) == u.dtype.count > 1 and all(s.dtype is u.dtype.scalar() for s in u.src)
          else f"{[s.dtype for s in u.src]} to {u.dtype}")

def _lane(u: UOp) -> str | None:
  n = u.dtype.count
  fine = (len(u.src) == 1 and u.dtype.scalar() is u.src[0].dtype.scalar() and isinstance(u.arg, int)
          and 0 <= u.arg <= u.src[0].dtype.count - n)
  fine = fine and (n == 1 or u.arg % n == 0 and n & n - 1 == 0 and not dtypes.is_bool(u.dtype))
  return None if fine else f"lane {u.arg!r} of {[s.dtype for s in u.src]} to {u.dtype}"

def _shuffle(u: UOp) -> str | None:
  fine = (len(u.src) in (1, 2) and u.src[0].dtype is u.src[-1].dtype and u.src[0].dtype.scalar() is u.dtype.scalar()
          and isinstance(u.arg, tuple) and len(u.arg) == u.dtype.count > 1 and not dtypes.is_bool(u.dtype)
          and all(isinstance(k, int) and 0 <= k < len(u.src) * u.src[0].dtype.count for k in u.arg))
  return None if fine else f"lanes {u.arg!r} of {[s.dtype for s in u.src]} to {u.dtype}"

_LANES: dict[Ops, Check] = {Ops.BROADCAST: _broadcast, Ops.VECTORIZE: _vectorize, Ops.GEP: _lane, Ops.SHUFFLE: _shuffle}

KERNEL: dict[Ops, Check] = {
  **_ELEMENTWISE, **_LANES, Ops.CONST: _const, Ops.DEFINE_VAR: _variable, Ops.BIND: _bind, Ops.PARAM: _slot,
  Ops.RANGE: _range, Ops.INDEX: _index,
  Ops.LOAD: _load, Ops.STORE: _store, Ops.REDUCE: _fold, Ops.STAGE: _fold, Ops.GROUP: _anything, Ops.DEVICE: _anything,
  Ops.DEFINE_LOCAL: _slot,
  Ops.AFTER: _first_type,  # AFTER(DEFINE_LOCAL, stores): codegen replaces STAGE by this
  Ops.MMA: lambda u: _matrix(u), Ops.FRAGMENT: lambda u: _fragment(u, 2),
  Ops.SHARED_OPERAND: lambda u: _shared_operand(u),
  Ops.TENSOR_BOX: COPY_CHECKS[Ops.TENSOR_BOX],
  Ops.EXCHANGE: lambda u: _exchange(u),
  Ops.SINK: lambda u: None if u.arg is None or isinstance(u.arg, KernelInfo) else f"argument {u.arg!r} is no "
  f"KernelInfo",
}

def memory_size(u: UOp) -> int:
  """Elements of the memory that an INDEX points into."""
  while u.op is Ops.AFTER: u = u.src[0]
  if u.op is not Ops.STAGE: return int(u.arg[1])
  if has_position(u): return int(u.src[1].vmax) + 1
  n = 1
  for r in u.src[1:]: n *= int(r.src[0].vmax)
  return n

def _check_kernel(root: UOp) -> None:
  if root.ranges: _fail(root, root, f"ranges {[r.arg for r in root.ranges]} are closed by nothing")
  slots: dict[int, UOp] = {}
  for u in root.toposort():
    if u.op is Ops.PARAM and slots.setdefault(u.arg[0], u) is not u:
      _fail(root, u, f"slot {u.arg[0]} is {slots[u.arg[0]].dtype} and {u.dtype}, or of two sizes")
    if u.op in (Ops.LOAD, Ops.STORE):
      wrong = outside(u, memory_size(u.src[0].src[0]))
      if wrong is not None: _fail(root, u, wrong)

# ***** Programs *****

def _no_sources(u: UOp) -> str | None: return None if not u.src else "has sources"
def _accumulator(u: UOp) -> str | None: return _same_types(u, u.src) if len(u.src) == 1 else _sources(u, 1)

def _assign_accumulator(u: UOp) -> str | None:
  if len(u.src) != 2 or u.src[0].op is not Ops.ACC: return "not (ACC, value)"
  return _same_types(u.src[0], u.src[1:])


def _condition(u: UOp) -> str | None:
  return None if len(u.src) == 1 and u.src[0].dtype is dtypes.bool else f"a condition of {[s.dtype for s in u.src]}"

def _fragment(u: UOp, most: int) -> str | None:
  """most: the number of sources; the second is the number of the lane in its wave."""
  if not 1 <= len(u.src) <= most or u.src[0].op is not Ops.INDEX or u.src[0].dtype is not u.dtype.scalar():
    return "not of (INDEX), and its type"
  if blocks_of(u.dtype) not in (1, 2, 4) or u.dtype.itemsize % WORD_BYTES:
    return f"of {u.dtype.itemsize} bytes, not of 4, 8 or 16"
  return "transposes elements that have not two bytes" if u.arg and u.dtype.scalar().itemsize != 2 else None

def _matrix(u: UOp) -> str | None:
  shared = len(u.src) == 3 and u.src[0].op is u.src[1].op is Ops.SHARED_OPERAND
  if len(u.src) == 3 and isinstance(u.arg, Matrix) and u.arg.shared_operands != shared:
    return "takes SHARED_OPERAND nodes, or values"
  return _sources(u, 3) or (None if u.src[2].dtype is u.dtype else f"adds {u.src[2].dtype} to {u.dtype}")

def _exchange(u: UOp) -> str | None:
  fine = len(u.src) == 1 and u.dtype.count == 1 and isinstance(u.arg, int) and u.arg > 0 and u.arg & u.arg - 1 == 0
  return _same_types(u, u.src) if fine else f"a distance of {u.arg!r}, not a power of two, or not of one scalar"

def _shared_operand(u: UOp) -> str | None:
  if len(u.src) != 1 or u.src[0].op is not Ops.INDEX or u.src[0].dtype is not u.dtype:
    return "not of (INDEX), and its type"
  return None if isinstance(u.arg, SwizzledLayout) else f"lies as {u.arg!r}, not as SwizzledLayout"

PROGRAM: dict[Ops, Check] = {
  **{op: KERNEL[op] for op in (*_ELEMENTWISE, *_LANES, Ops.CONST, Ops.DEFINE_VAR, Ops.PARAM, Ops.RANGE, Ops.INDEX,
                               Ops.LOAD)},
  Ops.DEFINE_LOCAL: _slot, Ops.ACC: _accumulator, Ops.ASSIGN_ACC: _assign_accumulator, Ops.IF: _condition,
  Ops.MMA: _matrix, Ops.BARRIER: _no_sources,
  Ops.END: lambda u: None if len(u.src) == 1 and u.src[0].op is Ops.RANGE else "closes no RANGE",
  Ops.ENDIF: lambda u: None if len(u.src) == 1 and u.src[0].op is Ops.IF else "closes no IF",
  Ops.STORE: lambda u: _store(u) if all(s.op is not Ops.RANGE for s in u.src[2:]) else "names ranges; in a Program "
  "brackets do that",
  Ops.FRAGMENT: lambda u: _fragment(u, 1), Ops.SHARED_OPERAND: _shared_operand, Ops.EXCHANGE: _exchange, **COPY_CHECKS,
  Ops.SINK: _anything, Ops.NOOP: _anything,
}

class _Program:
  """State of the check: the blocks that are open at a position of a Program, and the definitions in each."""
  def __init__(self, program: Any, level: int):
    self.program, self.level = program, level
    self.open: list[UOp] = []
    self.defined: list[set[UOp]] = [set()]
    self.visible: set[UOp] = set()
    self.ranges: set[UOp] = set()
    self.slots: dict[int, UOp] = {}

  def check(self) -> None:
    for u in self.program.uops:
      rule = PROGRAM.get(u.op)
      wrong = "not an operation of a Program" if rule is None else rule(u)
      if wrong is None: wrong = self._place(u)
      if wrong is not None: _fail(self.program, u, wrong)
    if self.open: _fail(self.program, self.open[-1], "is never closed")

  def _place(self, u: UOp) -> str | None:
    """The problem of u at its position, or None. After that u is defined."""
    for s in u.src:
      if s not in self.visible: return f"source {s!r} does not stand before it in a block that is still open"
    if u.dtype.scalar() in dtypes.weaks: return f"type {u.dtype} has no width; lower it to int32 or int64"
    if u.op in (Ops.END, Ops.ENDIF): return self._close(u)
    wrong = None
    if u.op is Ops.RANGE: wrong = self._range(u)
    if u.op is Ops.PARAM and self.slots.setdefault(u.arg[0], u) is not u: wrong = f"slot {u.arg[0]} is defined twice"
    if u.op in (Ops.LOAD, Ops.STORE) and self.level > 1:
      wrong = outside(u, memory_size(u.src[0].src[0]), [b.src[0] for b in self.open if b.op is Ops.IF])
    if u.op in (Ops.ASYNC_COPY, Ops.FRAGMENT) and self.level > 1:
      count = u.arg if u.op is Ops.ASYNC_COPY else BLOCK_BYTES // u.dtype.scalar().itemsize
      for place in (s for s in u.src if s.op is Ops.INDEX):
        wrong = wrong or outside_run(u, place, count, memory_size(place.src[0]),
                                     [b.src[0] for b in self.open if b.op is Ops.IF])
    self.defined[-1].add(u)
    self.visible.add(u)
    if u.op in (Ops.RANGE, Ops.IF):
      self.open.append(u)
      self.defined.append(set())
    return wrong

  def _range(self, u: UOp) -> str | None:
    if u in self.ranges: return "is opened twice"
    self.ranges.add(u)
    if u.arg[1] is AxisType.GLOBAL and self.open:
      return f"a GLOBAL range inside of {self.open[-1].op.name}; it is the outermost, and there is one"
    return None

  def _close(self, u: UOp) -> str | None:
    if not self.open or self.open[-1] is not u.src[0]:
      return f"closes {u.src[0]!r}, which is not the innermost open bracket"
    self.open.pop()
    self.visible -= self.defined.pop()
    return None
