"""`UPat`: the left side of a rewrite rule. It is a pattern over UOps, written much like the expression that it matches.

`match` here is the plain, slow interpreter. match.py compiles patterns to Python functions and is tested against it.
"""
from __future__ import annotations
import importlib
import itertools
from typing import Any
from collections.abc import Iterable, Sequence

from tinyhw.dtype import ConstType, DType, dtypes
from tinyhw.errors import PatternError
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

Captures = dict[str, UOp]
OpsLike = Ops | Iterable[Ops] | None

class UPat:
  """A pattern.

  - op: one Ops or several; None matches any.
  - dtype: one or several; a scalar type also matches its vectors.
  - src: a tuple matches the sources in order, a list in any order, one UPat each source; None matches any.
  - arg: compared with ==; None matches any.
  - name: the keyword under which the rule's function gets the node. A name that appears twice is one node.
  - allow_any_len: more sources may follow.
  - custom_early_reject: ops that must all be among the ops of the sources. The compiled matcher derives such tests by
    itself.
  """
  __slots__ = ("op", "dtype", "src", "arg", "name", "any_length", "custom_early_reject", "orders", "each", "choices",
               "scalar_only")

  def __init__(self, op: OpsLike = None, dtype: DType | Iterable[DType] | None = None,
               src: UPat | Sequence[UPat] | None = None, arg: Any = None,
               name: str | None = None, allow_any_len: bool = False, custom_early_reject: Iterable[Ops] | None = None,
               scalar_only: bool = False, choices: tuple[UPat, ...] = ()) -> None:
    ops, types = (op,) if isinstance(op, Ops) else op, (dtype,) if isinstance(dtype, DType) else dtype
    self.op: tuple[Ops, ...] | None = None if ops is None else tuple(sorted(ops))
    self.dtype: tuple[DType, ...] | None = None if types is None else tuple(types)
    self.src, self.arg, self.name = src, arg, name
    self.custom_early_reject = None if custom_early_reject is None else frozenset(custom_early_reject)
    self.scalar_only, self.choices = scalar_only, choices
    self.each: UPat | None = src if isinstance(src, UPat) else None
    self.orders: tuple[tuple[UPat, ...], ...] = ()
    if isinstance(src, list): self.orders = tuple(dict.fromkeys(itertools.permutations(src)))
    elif isinstance(src, tuple): self.orders = (src,)
    elif src is not None and self.each is None:
      raise PatternError(f"src of a UPat is {src!r}; give a tuple, a list, or one UPat")
    self.any_length = allow_any_len
    for s in (src if isinstance(src, (list, tuple)) else ()):
      if not isinstance(s, UPat):
        raise PatternError(f"a source of a UPat is {s!r}; give a UPat (UPat.const(None, value) for a constant)")

  # ***** constructors *****

  @staticmethod
  def var(name: str | None = None, dtype: DType | Iterable[DType] | None = None) -> UPat:
    """Match any node (of this type)."""
    return UPat(dtype=dtype, name=name)

  @staticmethod
  def cvar(name: str | None = None, dtype: DType | Iterable[DType] | None = None, vec: bool = True,
           arg: Any = None) -> UPat:
    """Match any constant. vec=False: not one with lanes."""
    return UPat(Ops.CONST, dtype, arg=arg, name=name, scalar_only=not vec)

  @staticmethod
  def const(dtype: DType | Iterable[DType] | None, value: ConstType) -> UPat:
    """Match the constant `value`. 0, 0.0, -0.0 and False are equal, as in Python."""
    return UPat(Ops.CONST, dtype, arg=value)

  @staticmethod
  def any(*choices: UPat | Iterable[UPat]) -> UPat:
    """Match one of these patterns, tried in order."""
    flat = [p for c in choices for p in ([c] if isinstance(c, UPat) else c)]
    if not flat: raise PatternError("UPat.any wants at least one pattern")
    return UPat(choices=tuple(flat))

  def named(self, name: str) -> UPat:
    """This pattern with a name."""
    return UPat(self.op, self.dtype, self.src, self.arg, name, self.any_length, self.custom_early_reject,
                self.scalar_only, self.choices)

  def f(self, op: OpsLike, **kwargs: Any) -> UPat:
    """Match `op` with this as its only source."""
    return UPat(op, src=(self,), **kwargs)

  def or_casted(self, name: str | None = None) -> UPat:
    """Match this or a CAST of it. `name` captures the node that matches."""
    return UPat.any(self if name is None else self.named(name), UPat(Ops.CAST, name=name, src=(self,)))

  # ***** builders, as UOp has them *****

  def alu(self, op: Ops, *others: UPat) -> UPat:
    """Match an elementwise op. A commutative one matches its operands in either order."""
    operands = (self,) + others
    dtype = None if op in GroupOp.Comparison else operands[-1].dtype
    return UPat(op, dtype, list(operands) if op in GroupOp.Commutative else operands)

  def _lift(self, x: UPat | ConstType) -> UPat: return x if isinstance(x, UPat) else UPat.const(self.dtype, x)
  def _binary(self, op: Ops, x: UPat | ConstType, reverse: bool = False) -> UPat:
    other = self._lift(x)
    return other.alu(op, self) if reverse else self.alu(op, other)

  def where(self, x: UPat | ConstType, y: UPat | ConstType) -> UPat:
    if isinstance(x, UPat): a = x
    else: a = y._lift(x) if isinstance(y, UPat) else UPat.const(None, x)
    return self.alu(Ops.WHERE, a, a._lift(y))

  def cast(self, dtype: DType | Iterable[DType] | None = None, name: str | None = None) -> UPat:
    return UPat(Ops.CAST, dtype, (self,), name=name)
  def bitcast(self, dtype: DType | Iterable[DType] | None = None, name: str | None = None) -> UPat:
    return UPat(Ops.BITCAST, dtype, (self,), name=name)
  def index(self, i: UPat, **kwargs: Any) -> UPat: return UPat(Ops.INDEX, self.dtype, (self, i), **kwargs)
  def load(self, *others: UPat, **kwargs: Any) -> UPat: return UPat(Ops.LOAD, src=(self,) + others, **kwargs)
  def store(self, *others: UPat, **kwargs: Any) -> UPat: return UPat(Ops.STORE, dtypes.void, (self,) + others, **kwargs)
  def gep(self, lane: int | None = None, **kwargs: Any) -> UPat: return UPat(Ops.GEP, src=(self,), arg=lane, **kwargs)
  def reduce(self, *ranges: UPat, **kwargs: Any) -> UPat:
    return UPat(Ops.REDUCE, self.dtype, (self,) + ranges, **kwargs)

  def __add__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.ADD, x)
  def __radd__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.ADD, x, True)
  def __sub__(self, x: UPat | ConstType) -> UPat: return self + (-x)
  def __rsub__(self, x: UPat | ConstType) -> UPat: return (-self) + x
  def __mul__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.MUL, x)
  def __rmul__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.MUL, x, True)
  def __truediv__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.FDIV, x)
  def __rtruediv__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.FDIV, x, True)
  def __floordiv__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.IDIV, x)
  def __rfloordiv__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.IDIV, x, True)
  def __mod__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.MOD, x)
  def __rmod__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.MOD, x, True)
  def __and__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.AND, x)
  def __rand__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.AND, x, True)
  def __or__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.OR, x)
  def __ror__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.OR, x, True)
  def __xor__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.XOR, x)
  def __rxor__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.XOR, x, True)
  def __lshift__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.SHL, x)
  def __rlshift__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.SHL, x, True)
  def __rshift__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.SHR, x)
  def __rrshift__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.SHR, x, True)
  def __lt__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.CMPLT, x)
  def __gt__(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.CMPLT, x, True)
  def __ge__(self, x: UPat | ConstType) -> UPat: return (self < x).logical_not()
  def __le__(self, x: UPat | ConstType) -> UPat: return (self > x).logical_not()
  def __ne__(self, x: Any) -> Any: return self._binary(Ops.CMPNE, x)  # it builds a pattern; == still compares identity
  __hash__ = object.__hash__
  def __neg__(self) -> UPat: return self.logical_not() if self.dtype == (dtypes.bool,) else self * -1
  def __invert__(self) -> UPat: return self ^ (True if self.dtype == (dtypes.bool,) else -1)
  def eq(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.CMPEQ, x)
  def ne(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.CMPNE, x)
  def logical_not(self) -> UPat: return self ^ True
  def maximum(self, x: UPat | ConstType) -> UPat: return self._binary(Ops.MAX, x)
  def minimum(self, x: UPat | ConstType) -> UPat: return -((-self).maximum(-x))
  def recip(self) -> UPat: return self.alu(Ops.RECIPROCAL)
  def sqrt(self) -> UPat: return self.alu(Ops.SQRT)
  def exp2(self) -> UPat: return self.alu(Ops.EXP2)
  def log2(self) -> UPat: return self.alu(Ops.LOG2)
  def sin(self) -> UPat: return self.alu(Ops.SIN)
  def trunc(self) -> UPat: return self.alu(Ops.TRUNC)

  def __repr__(self) -> str:
    if self.choices:
      return f"UPat.any({', '.join(map(repr, self.choices))})" + (f".named({self.name!r})" if self.name else "")
    parts = [] if self.op is None else ["Ops." + self.op[0].name if len(self.op) == 1
                                        else "(" + ", ".join("Ops." + o.name for o in self.op) + ")"]
    if self.dtype is not None: parts.append(f"dtype={self.dtype[0] if len(self.dtype) == 1 else self.dtype}")
    if self.src is not None: parts.append(f"src={self.src!r}")
    if self.arg is not None: parts.append(f"arg={self.arg!r}")
    if self.name is not None: parts.append(f"name={self.name!r}")
    if self.any_length: parts.append("allow_any_len=True")
    return f"UPat({', '.join(parts)})"

  # ***** the interpreter: the oracle of match.py *****

  def accepts(self, u: UOp) -> bool:
    """Whether u itself matches, without its sources."""
    if self.op is not None and u.op not in self.op: return False
    if self.dtype is not None and u.dtype not in self.dtype and u.dtype.scalar() not in self.dtype: return False
    if self.arg is not None and self.arg != u.arg: return False
    if self.scalar_only and u.dtype.count != 1: return False
    if self.custom_early_reject is not None and not self.custom_early_reject <= {s.op for s in u.src}: return False
    wanted = len(self.orders[0]) if self.orders else 0
    return not self.orders or len(u.src) == wanted or (self.any_length and len(u.src) > wanted)

  def match(self, u: UOp, captures: Captures) -> list[Captures]:
    """Every match of u, each as a map from names to nodes that extends `captures`."""
    if not self.accepts(u): return []
    if self.name is not None:
      if captures.get(self.name, u) is not u: return []
      captures = {**captures, self.name: u}
    if self.choices: return [found for p in self.choices for found in p.match(u, captures)]
    if self.each is not None: return _match_sources(u.src, (self.each,) * len(u.src), captures)
    if not self.orders: return [captures]
    return [found for order in self.orders for found in _match_sources(u.src, order, captures)]

def _match_sources(nodes: tuple[UOp, ...], patterns: tuple[UPat, ...], captures: Captures) -> list[Captures]:
  matches = [captures]
  for node, pattern in zip(nodes, patterns):
    matches = [found for match in matches for found in pattern.match(node, match)]
  return matches

_LAZY = {"PatternMatcher": "rewrite.match", "rule": "rewrite.match", "graph_rewrite": "rewrite.rewrite"}

def __getattr__(name: str) -> Any:
  """Import `PatternMatcher` and `graph_rewrite` from here too, where users expect them. Their modules import this
  file."""
  if name in _LAZY: return getattr(importlib.import_module(f"tinyhw.uop.{_LAZY[name]}"), name)
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
