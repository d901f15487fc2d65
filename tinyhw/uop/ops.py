"""`UOp`: a node of every expression graph in tinyhw.

Nodes are interned (intern.py): equal nodes are one object, so `is` compares them. To create a node costs 1 µs, to find
one 0.6 µs (Python 3.11, Zen 3).

Walks are loops with a stack, so deep graphs do not meet the recursion limit. docs/design/uop.md defines
sources, argument and semantics of each operation. Shapes are in shape.py, bounds in bounds.py.
"""
from __future__ import annotations
import importlib
import math
from typing import Any, TypeVar, Union
from collections.abc import Callable, Iterable, Iterator

from tinyhw import trace
from tinyhw.dtype import ConstType, DType, dtypes, least_upper_dtype, least_upper_float
from tinyhw.errors import ArgumentError, DTypeError, IndexingError, SymbolicError, UnknownValueError
from tinyhw.uop import bounds as _bounds
from tinyhw.uop import shape as _shape
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.intern import CACHE, NodeReference, forget, replace_ended
from tinyhw.uop.kernel_info import KernelInfo as KernelInfo
from tinyhw.uop.ranges import open_ranges
from tinyhw.uop.shape import same_shape as same_shape, sint_prod as sint_prod

sint = Union[int, "UOp"]
T = TypeVar("T")

_CONST = Ops.CONST
_SIGNED_ZERO = "-0.0"  # -0.0 == 0.0 in Python, but in the cache they must differ

_WEAKFLOAT = dtypes.weakfloat
_DECIDED = GroupOp.Comparison | {Ops.IDIV, Ops.MOD}   # operations that weak floats do in another way (weak.py)
_FIELDS = frozenset({"op", "dtype", "src", "arg", "tag"})

class UOp:
  """A node: operation, type, sources, argument.

  Nodes are immutable and interned. `tag` distinguishes nodes that are otherwise equal.
  """
  __slots__ = ("op", "dtype", "src", "arg", "tag", "_shape_", "_device_", "_bounds_", "_ranges_", "_order_", "_simple_",
               "realized", "storage",
               "line", "__weakref__")
  op: Ops
  dtype: DType
  src: tuple[UOp, ...]
  arg: Any
  tag: Any
  _shape_: Any     # cached by derive(), as the next four; None until it is computed
  _device_: Any
  _bounds_: Any
  _ranges_: Any
  _order_: Any     # of linear.order
  _simple_: Any    # of symbolic.simplify: True if this is its own simplest form
  realized: UOp | None  # the buffer (or view of one) that holds this tensor node's value, once computed
  storage: Any          # of a BUFFER: the Buffer that it names
  line: trace.Location | None    # of the user's program: it made this tensor node (trace.record)

  def __new__(cls, op: Ops, dtype: DType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None, tag: Any = None,
              metadata: trace.Location | None = None, _buffer: Any = None) -> UOp:
    """Return the node with these properties, a new one if there is none yet.

    metadata: the source line of the node, as trace.caller returns it. _buffer: the storage of a BUFFER. Neither
    distinguishes nodes.
    """
    if metadata is not None or _buffer is not None: return UOp(op, dtype, src, arg, tag)._with(metadata, _buffer)
    key = (op, dtype, src, arg, tag)
    if op is _CONST and type(arg) is float:
      if arg != arg: key = (op, dtype, src, "nan", tag)
      elif arg == 0.0 and math.copysign(1.0, arg) < 0: key = (op, dtype, src, _SIGNED_ZERO, tag)
    reference = CACHE.get(key)
    if reference is not None:
      found = reference()
      if found is not None: return found
    self = object.__new__(cls)
    self.op, self.dtype, self.src, self.arg, self.tag = op, dtype, src, arg, tag
    self._shape_ = self._device_ = self._bounds_ = self._ranges_ = self._order_ = self._simple_ = None
    self.realized = self.storage = self.line = None
    reference = NodeReference(self, forget)
    reference.key = key
    while (first := CACHE.setdefault(key, reference)) is not reference:
      found = first()
      if found is not None: return found  # another thread was faster
      if replace_ended(key, first, reference): break
    return self

  def _with(self, metadata: trace.Location | None, storage: Any) -> UOp:
    if storage is not None:
      if self.op is not Ops.BUFFER:
        raise ArgumentError(f"only a BUFFER has storage, and this is {self.op.name}; leave out _buffer")
      if self.storage is not None and self.storage is not storage:
        raise ArgumentError(f"{self!r} has other storage; give it a number of its own")
      self.storage = storage
    if metadata is not None: trace.record(self, metadata)
    return self

  @property
  def is_realized(self) -> bool:
    """Whether the value of this tensor node is in memory."""
    return self.realized is not None or self.base.op in (Ops.BUFFER, Ops.MULTI)

  @property
  def buffer(self) -> Any:
    """The storage that this tensor node views, or that its value was computed into.

    Raises UnknownValueError if there is none.
    """
    u = self.base if self.realized is None else self.realized.base
    while u.op is Ops.MULTI: u = u.src[0].base
    if u.op is Ops.BUFFER and u.storage is not None: return u.storage
    raise UnknownValueError(f"{u.op.name} of shape {self.shape} is in no memory; realize the tensor first")

  @property
  def metadata(self) -> trace.Location | None:
    """The source line of this node, if it is known (TRACEMETA)."""
    return trace.origin(self)

  def __reduce__(self) -> Any: return UOp, (self.op, self.dtype, self.src, self.arg, self.tag)
  def __copy__(self) -> UOp: return self
  def __deepcopy__(self, memo: Any) -> UOp: return self

  def __repr__(self) -> str:
    names = ", ".join(f"<{s.op.name}>" if s.op is not Ops.CONST else str(s.arg) for s in self.src)
    return f"UOp(Ops.{self.op.name}, {self.dtype}, ({names}), {self.arg!r}" + (f", tag={self.tag!r})"
                                                                               if self.tag is not None else ")")

  # ***** structure *****

  def replace(self, **changes: Any) -> UOp:
    """Return this node with some of op, dtype, src, arg and tag changed."""
    if not changes.keys() <= _FIELDS:
      raise TypeError(f"a UOp has no {', '.join(changes.keys() - _FIELDS)}; replace takes op, dtype, src, arg, tag")
    new = (changes.get("op", self.op), changes.get("dtype", self.dtype), changes.get("src", self.src),
           changes.get("arg", self.arg),
           changes.get("tag", self.tag))
    return UOp(*new)

  def toposort(self, gate: Callable[[UOp], bool] | None = None) -> dict[UOp, None]:
    """Return this node and all nodes below it, sources first.

    gate: where gate(u) is False, u is included, but the walk does not go on to its sources.

    On the stack, None lies above a node whose sources are done. Finished sources are pushed all the same. It is faster
    to check them when they are popped than before: 0.14 µs a node instead of 0.19 µs. Pushing only the next unfinished
    source takes 0.18 µs.
    """
    seen: dict[UOp, None] = {}
    stack: list[Any] = [self]
    pop, push, extend = stack.pop, stack.append, stack.extend
    while stack:
      node = pop()
      if node is None: seen[pop()] = None
      elif node not in seen:
        src = node.src
        if src and (gate is None or gate(node)):
          push(node)
          push(None)
          extend(src[::-1])
        else: seen[node] = None
    return seen

  def substitute(self, replacements: dict[UOp, UOp]) -> UOp:
    """Return this graph with nodes replaced. Replacements are not searched again."""
    if not replacements: return self
    new: dict[UOp, UOp] = dict(replacements)
    inherit = trace.same_line if trace._origins else None
    for u in self.toposort(lambda n: n not in replacements):
      if u in new: continue
      src = tuple([new[s] for s in u.src])
      new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
      if inherit is not None: inherit(new[u], u)
    return new[self]

  def derive(self, slot: str, compute: Callable[[UOp], Any]) -> Any:
    """Compute a property from the same property of the sources, and cache it in `slot`, which is empty.

    It is iterative, so that depth does not matter.
    """
    for s in self.src:
      if getattr(s, slot) is None: break
    else:  # the usual case
      found = compute(self)
      setattr(self, slot, found)
      return found
    stack = [self]
    while stack:
      node = stack[-1]
      if getattr(node, slot) is None:
        missing = [s for s in node.src if getattr(s, slot) is None]
        if missing:
          stack.extend(missing)
          continue
        setattr(node, slot, compute(node))
      stack.pop()
    return getattr(self, slot)

  @property
  def ranges(self) -> tuple[UOp, ...]:
    """The RANGEs that this node depends on and that no REDUCE, STORE, STAGE or END below it has closed, sorted by
    id."""
    found = self._ranges_
    # derive returns Any
    return self.derive("_ranges_", open_ranges) if found is None else found  # type: ignore[no-any-return]

  @property
  def shape(self) -> tuple[sint, ...]:
    """The shape of a node of the tensor graph."""
    found = self._shape_
    # derive returns Any
    return self.derive("_shape_", _shape.shape_of) if found is None else found  # type: ignore[no-any-return]

  @property
  def device(self) -> str | tuple[str, ...] | None:
    """The device of a node of the tensor graph: the first device, or tuple of devices, among its sources. None if all
    sources are constants."""
    found = self._device_
    return (self.derive("_device_", _shape.device_of) if found is None else found) or None

  @property
  def vmin(self) -> ConstType:
    found = self._bounds_
    # derive returns Any
    return (self.derive("_bounds_", _bounds.bounds_of) if found is None else found)[0]  # type: ignore[no-any-return]

  @property
  def vmax(self) -> ConstType:
    found = self._bounds_
    # derive returns Any
    return (self.derive("_bounds_", _bounds.bounds_of) if found is None else found)[1]  # type: ignore[no-any-return]

  @property
  def size(self) -> int:
    """The number of elements of a node of the tensor graph. A symbolic dimension counts with its maximum."""
    n = 1
    for d in self.shape: n *= d if isinstance(d, int) else int(d.vmax)
    return n

  @property
  def base(self) -> UOp:
    """The node below all movement operations."""
    u = self
    while u.op in GroupOp.Movement: u = u.src[0]
    return u

  @property
  def dims(self) -> tuple[sint, ...]:
    """The integers among the sources of RESHAPE, EXPAND, PAD and SHRINK. Constant ones are ints."""
    return tuple(s.arg if s.op is Ops.CONST else s for s in self.src[1:])

  @property
  def pairs(self) -> tuple[tuple[sint, sint], ...]:
    """The (begin, end) of PAD and SHRINK, one for each axis."""
    d = self.dims
    return tuple(zip(d[::2], d[1::2]))

  # ***** leaves *****

  @staticmethod
  def const(dtype: DType, value: ConstType | UOp, device: str | tuple[str, ...] | None = None) -> UOp:
    """A constant. The caller must have rounded or wrapped the value to the range of the type."""
    if isinstance(value, UOp): return value
    src = () if device is None else (UOp(Ops.DEVICE, dtypes.void, (), device),)
    return UOp(Ops.CONST, dtype, src, dtype.const(value))

  @staticmethod
  def variable(name: str, min_val: int, max_val: int, dtype: DType = dtypes.weakint, multiple_of: int = 1,
               param: bool = False) -> UOp:
    """A symbolic integer: a multiple of multiple_of with min_val <= value <= max_val.

    Raises SymbolicError if there is no such value. param is ignored: a variable is always an argument of the kernels
    that use it.

      >>> n = Variable("n", 0, 10, multiple_of=4)
      >>> n.vmax, ((n + 3) % 4).render(), (n * 3 // 12).render()
      (8, '3', '(n//4)')
    """
    if not all(isinstance(x, int) for x in (min_val, max_val, multiple_of)) or multiple_of < 1:
      raise SymbolicError(f"the variable {name} has bounds and a factor that are ints, the factor at least 1; not "
                          f"{min_val!r}, {max_val!r}, "
                          f"{multiple_of!r}")
    low, high = -(-min_val // multiple_of) * multiple_of, max_val // multiple_of * multiple_of
    if min_val > max_val:
      raise SymbolicError(f"the variable {name} cannot be in {min_val}..{max_val}; give the smaller bound first")
    if low > high:
      raise SymbolicError(f"the variable {name} has no value: {min_val}..{max_val} has no multiple of {multiple_of}")
    return UOp(Ops.DEFINE_VAR, dtype, (), (name, low, high) if multiple_of == 1 else (name, low, high, multiple_of))

  @staticmethod
  def range(end: sint, id: int, axis_type: AxisType = AxisType.LOOP) -> UOp:
    return UOp(Ops.RANGE, dtypes.weakint, (to_index(end),), (id, axis_type))

  @staticmethod
  def param(slot: int, dtype: DType, size: int) -> UOp: return UOp(Ops.PARAM, dtype, (), (slot, size))

  def sink(*stores: UOp, arg: Any = None) -> UOp:
    """Collect the stores of a kernel: UOp.sink(a, b), or a.sink(b)."""
    return UOp(Ops.SINK, dtypes.void, stores, arg)

  @property
  def expr(self) -> str: return str(self.arg[0])

  def bind(self, value: int) -> UOp:
    """Return this variable with a value.

    Raises SymbolicError unless the value is a whole number within the bounds, and if this variable has one already.
    """
    return UOp(Ops.BIND, self.dtype, (self, self.const_like(_bounds.value_for(self, value))))

  def unbind(self) -> tuple[UOp, int]:
    """Return the variable and its value. Raises SymbolicError if this is not a bound variable."""
    if self.op is not Ops.BIND: raise SymbolicError(f"cannot unbind {self!r}: it has no value; bind one to it first")
    return self.src[0], int(self)

  def variables(self) -> list[UOp]:
    """The variables below this node, by name."""
    return sorted((u for u in self.toposort() if u.op is Ops.DEFINE_VAR), key=lambda u: u.arg)

  def const_like(self, value: ConstType | UOp) -> UOp:
    return value if isinstance(value, UOp) else UOp(Ops.CONST, self.dtype, (), self.dtype.const(value))

  # ***** kernel level *****

  def index(self, i: sint) -> UOp: return UOp(Ops.INDEX, self.dtype, (self, to_index(i)))

  def __getitem__(self, indices: Any) -> UOp:
    """The INDEX of an element of a kernel's argument, which is RESHAPE(PARAM) here. indices: one for each axis."""
    given = indices if isinstance(indices, tuple) else (indices,)
    fits = len(given) == len(self.shape) and all(isinstance(i, (int, UOp)) for i in given)
    if self.op is not Ops.RESHAPE or self.src[0].op is not Ops.PARAM or not fits:
      raise IndexingError(f"cannot index {self!r} with {indices!r}: only an argument of a kernel has elements, by a "
                          f"number or UOp for each axis")
    flat: sint = 0
    for i, size in zip(given, self.shape): flat = flat * size + i
    return self.src[0].index(flat)

  __iter__ = None   # no iteration: the indices of a kernel's argument have no end

  def flatten(self) -> UOp:
    """Return an argument of a kernel as one axis."""
    assert self.op is Ops.RESHAPE and self.src[0].op is Ops.PARAM, (f"flatten wants an argument of a kernel, got "
                                                                    f"{self.op.name}")
    return UOp(Ops.RESHAPE, self.dtype, (self.src[0], to_index(self.size)))

  def end(self, *ranges: UOp) -> UOp:
    """Return this STORE, or GROUP of them, repeated for each point of the ranges."""
    assert self.op in (Ops.STORE, Ops.GROUP), f"end wants a STORE, got {self.op.name}"
    return self.replace(src=tuple([s.end(*ranges) for s in self.src]) if self.op is Ops.GROUP else self.src + ranges)

  def group(*stores: UOp) -> UOp:
    """Combine several stores into one node."""
    return UOp(Ops.GROUP, dtypes.void, stores)

  def load(self, gate: UOp | None = None, alt: UOp | ConstType = 0, dtype: DType | None = None) -> UOp:
    """Load the element at this INDEX, or alt if gate is false."""
    assert self.op is Ops.INDEX, f"load wants an INDEX, got {self.op.name}"
    result = dtype or self.dtype
    if gate is None: return UOp(Ops.LOAD, result, (self,))
    return UOp(Ops.LOAD, result, (self, gate, alt if isinstance(alt, UOp) else UOp.const(result, alt)))

  def store(self, value: UOp, *ranges: UOp, gate: UOp | None = None) -> UOp:
    assert self.op is Ops.INDEX, f"store wants an INDEX, got {self.op.name}"
    if value.dtype is dtypes.weakfloat: value = value.cast(self.dtype)
    return UOp(Ops.STORE, dtypes.void, (self, value) + (() if gate is None else (gate,)) + ranges)

  def reduce(self, op: Ops, *ranges: UOp) -> UOp:
    return UOp(Ops.REDUCE, self.dtype, (self,) + ranges, op) if ranges else self

  # ***** arithmetic *****

  def alu(self, op: Ops, *others: UOp) -> UOp:
    """Apply the elementwise op to this and others. Comparisons return bool. The number of lanes follows the
    operands."""
    dtype = self.dtype
    if dtype is _WEAKFLOAT and op in _DECIDED: return self._of_weak(op, *others)
    if op in GroupOp.Comparison: dtype = dtypes.bool.vec(dtype.count)
    elif op is Ops.WHERE: dtype = others[0].dtype
    return UOp(op, dtype, (self,) + others)

  def _binary(self, op: Ops, other: UOp | ConstType, reverse: bool = False) -> UOp:
    """Apply a binary operation. If other has an `__array_priority__`, as a tensor has, return NotImplemented, so that
    Python calls its method instead."""
    if not isinstance(other, (UOp, int, float)) and getattr(other, "__array_priority__", 0) > 0: return NotImplemented
    a, b = _common(self, other)
    return b.alu(op, a) if reverse else a.alu(op, b)

  def cast(self, dtype: DType) -> UOp:
    """Convert this value to another type."""
    dtype = dtype.vec(self.dtype.count) if dtype.count != self.dtype.count else dtype
    if self.dtype is _WEAKFLOAT and dtype is not _WEAKFLOAT: return self._rounded(dtype)
    return self if self.dtype is dtype else UOp(Ops.CAST, dtype, (self,))

  def bitcast(self, dtype: DType) -> UOp: return self if self.dtype is dtype else UOp(Ops.BITCAST, dtype, (self,))

  def where(self, x: UOp | ConstType, y: UOp | ConstType) -> UOp:
    """Select x where this is true, else y."""
    a, b = _common(x, y)
    return self.alu(Ops.WHERE, a, b)

  def __add__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.ADD, x)
  def __radd__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.ADD, x, True)
  def __sub__(self, x: UOp | ConstType) -> UOp: return self + (-x)
  def __rsub__(self, x: UOp | ConstType) -> UOp: return (-self) + x
  def __mul__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.MUL, x)
  def __rmul__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.MUL, x, True)
  def __truediv__(self, x: UOp | ConstType) -> UOp: return _floating(self)._binary(Ops.FDIV, x)
  def __rtruediv__(self, x: UOp | ConstType) -> UOp: return _floating(self)._binary(Ops.FDIV, x, True)
  def __floordiv__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.IDIV, x)
  def __rfloordiv__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.IDIV, x, True)
  def __mod__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.MOD, x)
  def __rmod__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.MOD, x, True)
  def __divmod__(self, x: UOp | ConstType) -> tuple[UOp, UOp]: return self // x, self % x
  def __rdivmod__(self, x: UOp | ConstType) -> tuple[UOp, UOp]: return x // self, x % self
  def __pow__(self, x: UOp | ConstType) -> UOp | ConstType: return self._power(x)
  def __rpow__(self, x: UOp | ConstType) -> UOp | ConstType: return self._power(x, True)
  def __abs__(self) -> UOp: return self.maximum(-self)
  def __pos__(self) -> UOp: return self
  def __and__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.AND, x)
  def __rand__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.AND, x, True)
  def __or__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.OR, x)
  def __ror__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.OR, x, True)
  def __xor__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.XOR, x)
  def __rxor__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.XOR, x, True)
  def __lshift__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.SHL, x)
  def __rlshift__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.SHL, x, True)
  def __rshift__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.SHR, x)
  def __rrshift__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.SHR, x, True)
  def __lt__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.CMPLT, x)
  def __gt__(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.CMPLT, x, True)
  def __ge__(self, x: UOp | ConstType) -> UOp: return (self < x).logical_not()
  def __le__(self, x: UOp | ConstType) -> UOp: return (self > x).logical_not()
  def __neg__(self) -> UOp:
    return self.logical_not() if self.dtype.scalar() is dtypes.bool else self * self.const_like(-1)
  def __invert__(self) -> UOp: return self ^ self.const_like(True if self.dtype.scalar() is dtypes.bool else -1)
  def __ne__(self, x: object) -> bool:
    """Compare with a number by the values of Variables, as `<` does.

    Compare with anything else by identity, as `==` always does for expressions. Interning, dicts and tuples rely on
    that.
    """
    from tinyhw.uop.decide import differs  # built from this class
    return differs(self, x)
  def eq(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.CMPEQ, x)
  def ne(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.CMPNE, x)
  def logical_not(self) -> UOp: return self ^ self.const_like(True)
  def maximum(self, x: UOp | ConstType) -> UOp: return self._binary(Ops.MAX, x)
  def minimum(self, x: UOp | ConstType) -> UOp:
    """The smaller of two values, as the complement of a maximum of complements.

    The complement is ~ for integers of fixed width, because the negative of their least number does not exist.
    """
    a, b = _common(self, x)
    if a.dtype.scalar() in dtypes.ints: return ~((~a).maximum(~b))
    return -((-a).maximum(-b))
  def recip(self) -> UOp: return self.alu(Ops.RECIPROCAL)
  def sqrt(self) -> UOp: return self.alu(Ops.SQRT)
  def exp2(self) -> UOp: return self.alu(Ops.EXP2)
  def log2(self) -> UOp: return self.alu(Ops.LOG2)
  def sin(self) -> UOp: return self.alu(Ops.SIN)
  def trunc(self) -> UOp: return self.alu(Ops.TRUNC)

  def __bool__(self) -> bool:
    """The truth of a comparison, by its bounds or by the values of its Variables.

    Raises UnknownValueError otherwise, because a graph has no truth value.
    """
    found = self._number()
    if found is not None: return bool(found)
    raise UnknownValueError(f"the truth of {self.render()} is not known: bounds {self.vmin}..{self.vmax}; bind its "
                            f"variables first")

  def __int__(self) -> int:
    found = self._number()
    if found is not None: return int(found)
    raise UnknownValueError(f"{self.render()} has no value yet: bounds {self.vmin}..{self.vmax}; bind its variables "
                            f"first")

  def __index__(self) -> int:
    if dtypes.is_float(self.dtype):
      raise TypeError(f"{self.render()} is a float, not a whole number; use // instead of /, or int()")
    return int(self)

  def __float__(self) -> float:
    found = self._number()
    if found is not None: return float(found)
    raise UnknownValueError(f"{self.render()} has no value yet; bind its variables first")

  def __round__(self, digits: int | None = None) -> UOp | float:
    """Round by the values of the Variables. A whole number is returned as it is."""
    if not dtypes.is_float(self.dtype): return self if digits is None or digits >= 0 else round(int(self), digits)
    return round(float(self), digits)

  def split_add(self) -> Iterator[UOp]: return self.split(Ops.ADD)

  def split(self, op: Ops) -> Iterator[UOp]:
    """Yield the terms of a sum (op=ADD) or the factors of a product (MUL), left to right."""
    stack = [self]
    while stack:
      u = stack.pop()
      if u.op is op: stack.extend(reversed(u.src))
      else: yield u

  # ***** conveniences *****

  def const_factor(self) -> int:
    """The largest number known to divide this integer expression: the gcd of its coefficients, or 1 if nothing is
    known."""
    from tinyhw.uop.symbolic.linear import const_factor  # built from this class
    return const_factor(self)

  def divides(self, n: sint) -> UOp | None:
    """Divide this integer expression by n if that is exact for all values, else return None."""
    from tinyhw.uop.symbolic.linear import divides  # built from this class
    return divides(self, n)

  def _power(self, x: Any, reverse: bool = False) -> UOp | ConstType:
    from tinyhw.uop.weak import power  # built from this class
    return power(self, x, reverse)

  def _rounded(self, dtype: DType) -> UOp:
    from tinyhw.uop.weak import rounded  # built from this class
    return rounded(self, dtype)

  def _of_weak(self, op: Ops, x: UOp) -> UOp:
    from tinyhw.uop.weak import compared, quotient  # built from this class
    return compared(op, self, x) if op in GroupOp.Comparison else quotient(op, self, x)

  def _number(self) -> ConstType | None:
    """The value of an expression of numbers and bound Variables (decide.py), or None if it has none."""
    if self.vmin == self.vmax: return self.vmin
    from tinyhw.uop.decide import holds_or_none, number, real  # built from this class
    if dtypes.is_float(self.dtype): return real(self)
    return holds_or_none(self) if self.dtype is dtypes.bool else number(self)

  def simplify(self) -> UOp:
    """Return the simplest form of this index expression that the symbolic rules find."""
    from tinyhw.uop.symbolic.symbolic import simplify  # built from this class
    return simplify(self)

  def render(self, simplify: bool = True) -> str:
    """Return this expression as Python-like text."""
    from tinyhw.uop.text import render  # built from this class
    return render(self.simplify() if simplify else self)

  @property
  def key(self) -> bytes:
    """A digest of the graph below this node. It is the same in every process."""
    from tinyhw.uop.text import digest  # built from this class
    return digest(self)

def _common(a: UOp | ConstType, b: UOp | ConstType) -> tuple[UOp, UOp]:
  """Convert both operands to UOps of one type. Python numbers take the type of the other operand. Different types
  promote."""
  if not isinstance(a, UOp): a = _number(a, b)
  if not isinstance(b, UOp): b = _number(b, a)
  if a.dtype is b.dtype: return a, b
  if a.dtype.count != b.dtype.count:
    raise DTypeError(f"operands have {a.dtype.count} and {b.dtype.count} lanes: {a.dtype} and {b.dtype}")
  if dtypes.weakint in (a.dtype, b.dtype) and dtypes.is_int(a.dtype) and dtypes.is_int(b.dtype):
    return a.cast(dtypes.weakint), b.cast(dtypes.weakint)
  if dtypes.weakfloat in (a.dtype, b.dtype):
    a, b = _floating(a), _floating(b)
    if a.dtype is b.dtype: return a, b
  dtype = least_upper_dtype(a.dtype, b.dtype)
  return a.cast(dtype), b.cast(dtype)

def _number(x: ConstType, other: UOp | ConstType) -> UOp:
  """A Python number as a constant of the other operand's type. A float next to an integer stays a float."""
  if not isinstance(other, UOp): return UOp.const(dtypes.weakfloat if isinstance(x, float) else dtypes.weakint, x)
  if isinstance(x, float) and not dtypes.is_float(other.dtype): return UOp.const(_float_type(other), x)
  return other.const_like(x)

def _float_type(u: UOp) -> DType:
  """The type of u as a float. If u consists of sizes and Variables, it is weak, as Python's numbers are. In a kernel it
  is at least the default type."""
  if u.dtype is dtypes.weakint and not u.ranges: return dtypes.weakfloat
  return u.dtype if dtypes.is_float(u.dtype) else least_upper_float(u.dtype).vec(u.dtype.count)

def _floating(u: UOp) -> UOp: return u.cast(_float_type(u))

def to_index(x: sint) -> UOp:
  """Convert an int or UOp to an index expression."""
  return x if isinstance(x, UOp) else UOp(Ops.CONST, dtypes.weakint, (), int(x))

def to_indices(xs: Iterable[sint]) -> tuple[UOp, ...]: return tuple([to_index(x) for x in xs])

def resolve(x: bool | UOp, default: bool = True) -> bool:
  """The truth of x if its bounds decide it, else default."""
  if not isinstance(x, UOp): return bool(x)
  return bool(x.vmin) if x.vmin == x.vmax else default

Variable = UOp.variable

_LAZY = {"UPat": "upat", "PatternMatcher": "rewrite.match", "graph_rewrite": "rewrite.rewrite"}

def __getattr__(name: str) -> Any:
  """Import `UPat`, `PatternMatcher` and `graph_rewrite` from here too, where users expect them. Their modules import
  this file."""
  if name in _LAZY: return getattr(importlib.import_module(f"tinyhw.uop.{_LAZY[name]}"), name)
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
