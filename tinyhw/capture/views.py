"""Views of storage that a TinyJit captures, and the Variables in them."""
from __future__ import annotations
from typing import Any

from tinyhw.errors import JitError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def base_buffer(u: UOp) -> UOp:
  while u.op is not Ops.BUFFER:
    if u.op in (Ops.BIND, Ops.CONST) or not u.src:
      raise JitError("an input of a TinyJit function has no buffer of its own; realize it first")
    u = u.src[0]
  return u

def binds_in(u: UOp) -> list[UOp]:
  """Return the bound Variables in the movements of a view of storage, or in an expression of them."""
  found: dict[UOp, None] = {}
  while u.op not in (Ops.BUFFER, Ops.BIND, Ops.CONST) and u.src:
    for s in u.src[1:]: found.update({b: None for b in s.toposort() if b.op is Ops.BIND})
    u = u.src[0]
  if u.op is Ops.BIND: found[u] = None
  return list(found)

def _unbound(dims: tuple[UOp, ...]) -> list[UOp]:
  return [d.substitute({b: b.src[0] for b in d.toposort() if b.op is Ops.BIND}) if d.op is not Ops.CONST else d
          for d in dims]

def same_view(a: UOp, b: UOp) -> bool:
  """Do two nodes view their BUFFERs, of one size, through the same movement? Variables may have other values."""
  while a.op is b.op and a.op is not Ops.BUFFER and a.src and b.src and a.arg == b.arg and a.dtype is b.dtype:
    if a.src[1:] != b.src[1:] and _unbound(a.src[1:]) != _unbound(b.src[1:]): return False
    a, b = a.src[0], b.src[0]
  return a.op is b.op is Ops.BUFFER and a.arg[1:] == b.arg[1:] and a.dtype is b.dtype

def look_of(u: UOp) -> tuple[Any, ...]:
  """Return a value that is equal for nodes that are the same_view. It holds no storage."""
  found: list[Any] = []
  while u.op is not Ops.BUFFER and u.src and u.op is not Ops.BIND:
    found.append((u.op, u.arg, u.dtype, tuple(_unbound(u.src[1:]))))
    u = u.src[0]
  return *found, (u.op, u.dtype, u.arg[1:] if u.op is Ops.BUFFER else None)

def with_values(u: UOp, values: dict[str, int]) -> UOp:
  """Return a view, or an expression, with other values of its Variables."""
  new = {b: UOp(Ops.BIND, b.dtype, (b.src[0], b.src[1].const_like(values[b.src[0].expr]))) for b in binds_in(u)
         if b.src[0].expr in values}
  return u.substitute(new)

def chain(u: UOp) -> list[UOp]:
  """Return a view of storage and the nodes below it, down to the BUFFER."""
  found = [u]
  while found[-1].op is not Ops.BUFFER: found.append(found[-1].src[0])
  return found
