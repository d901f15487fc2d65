"""Words of four bytes: the bits that may be set in a byte."""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

_KNOWN = frozenset({Ops.CONST, Ops.BROADCAST, Ops.BITCAST, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR})

def bits_of_bytes(u: UOp) -> int:
  """Return the bits that may be set in some byte of a 32-bit integer: 0x0f for x & 0x0f0f0f0f."""
  found: dict[UOp, int] = {}
  for v in u.toposort(lambda v: v.op in _KNOWN): found[v] = _bits(v, found)
  return found[u]

def _bits(u: UOp, known: dict[UOp, int]) -> int:
  """Return the same, from the bits of the sources."""
  if u.op is Ops.CONST and dtypes.is_int(u.dtype): return _folded(u.arg)
  if u.op in (Ops.BROADCAST, Ops.BITCAST): return known[u.src[0]]
  if u.op is Ops.AND: return known[u.src[0]] & known[u.src[1]]
  if u.op in (Ops.OR, Ops.XOR): return known[u.src[0]] | known[u.src[1]]
  # a signed number shifted to the right gets copies of its sign
  shifts = u.op is Ops.SHL or u.op is Ops.SHR and dtypes.is_unsigned(u.dtype)
  if shifts and u.src[1].op is Ops.CONST and 0 <= u.src[1].arg < 32:
    bits, n = known[u.src[0]] * 0x01010101, u.src[1].arg
    return _folded(bits << n & 0xffffffff if u.op is Ops.SHL else bits >> n)
  return 255

def _folded(word: int) -> int: return (word | word >> 8 | word >> 16 | word >> 24) & 255
