"""Sums of products of bytes, four at once: REDUCE(int32(a) * int32(b)) of 8-bit a and b becomes a sum of DOT4s.

    r in 32:  sum += int32(w[32 i + r] & 15) * int32(x[r])         w: uint8, x: int8
    r in 8:   sum = DOT4(W[8 i + r] & 0x0f0f0f0f, X[r], sum)       W, X: the same memory as uint32

A word has the bytes of four adjacent iterations. A factor has words if its loads are adjacent along the range and begin
at multiples of four bytes. Operations on bits do the same with four bytes at once. A mask removes the bits that a shift
takes from the next byte. The result is exact, since int32 wraps in any order.

A kernel stays as it is where a factor has no words, or where another access needs bytes of the same buffer.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.kernel.affine import linear, number, total
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.dtype import dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.words import bits_of_bytes

BYTES = (dtypes.uint8, dtypes.int8)
MOST_PRODUCTS = 64    # of a sum; the largest quantized group has 8
MOST_NODES = 128      # of a factor, with those of its indices
_LOGIC = frozenset({Ops.AND, Ops.OR, Ops.XOR})
_ZERO = UOp(Ops.CONST, dtypes.int32, (), 0)

def has_dots(capabilities: Capabilities) -> bool:
  """Does the target have DOT4, for a lane or for a vector, and load words from every multiple of four bytes?"""
  if capabilities.lanes: return capabilities.supports(Ops.DOT4, dtypes.int32)
  lanes = max(capabilities.vector_bytes // dtypes.int32.itemsize, 1)
  return capabilities.supports(Ops.DOT4, dtypes.int32.vec(lanes)) and not capabilities.aligned

def use_dots(sink: UOp, capabilities: Capabilities) -> UOp:
  """Return the kernel with DOT4s in its sums of products of bytes."""
  if not has_dots(capabilities): return sink
  nodes = sink.toposort()
  fresh = 1 + max((u.arg[0] for u in nodes if u.op is Ops.RANGE), default=0)
  sums = {u: dots for k, u in enumerate(nodes, fresh) if u.op is Ops.REDUCE and (dots := _dots(u, k)) is not None}
  if not sums: return sink
  trace.hand_on(sums)
  made = sink.substitute(sums)
  params = [u for u in made.toposort() if u.op is Ops.PARAM]
  return made if len({u.arg[0] for u in params}) == len(params) else sink   # another access needs bytes of a buffer

def _dots(reduce: UOp, fresh: int) -> UOp | None:
  """Return a sum as DOT4s along the innermost of its ranges that has words of all factors. fresh: the number of the
  range over words."""
  products = _products(reduce.src[0]) if reduce.arg is Ops.ADD and reduce.dtype is dtypes.int32 else None
  if products is None: return None
  for r in reversed(ranges_of(reduce)):
    if r.src[0].op is not Ops.CONST or r.src[0].arg % 4: continue
    words, value = _Words(r, fresh), _ZERO
    for a, b in products:
      first, second = words.factor(a), words.factor(b)
      if first is None or second is None: break
      value = UOp(Ops.DOT4, dtypes.int32, (first, second, value))
    else:
      ranges = [words.range if s is r else s for s in reduce.src[1:]]
      ranges = [s for s in ranges if s.op is Ops.RANGE]
      return UOp(Ops.REDUCE, dtypes.int32, (value, *ranges), Ops.ADD) if ranges else value
  return None

def _products(value: UOp) -> list[tuple[UOp, UOp]] | None:
  """Return the pairs of 8-bit factors whose products make a sum; None for other expressions."""
  found, left = [], [value]
  while left:
    u = left.pop()
    if u.op is Ops.ADD: left += u.src
    elif u.op is Ops.MUL and all(s.op is Ops.CAST and s.src[0].dtype in BYTES for s in u.src):
      found.append((u.src[0].src[0], u.src[1].src[0]))
    else: return None
    if len(found) + len(left) > MOST_PRODUCTS: return None
  return found

class _Words:
  """The words of 8-bit expressions along a range. range: the range over words, or 0 where there is one word."""
  def __init__(self, old: UOp, fresh: int):
    self.old, count = old, old.src[0].arg // 4
    self.known: dict[UOp, UOp | None] = {}
    self.range = UOp(Ops.RANGE, old.dtype, (number(count),), (fresh, old.arg[1])) if count > 1 else number(0)

  def factor(self, u: UOp) -> UOp | None:
    """Return the word of a factor: int32 if its bytes have signs, else uint32."""
    small = len(u.toposort()) <= MOST_NODES
    word = self.word(u) if small and self.old in u.ranges else None
    return UOp(Ops.BITCAST, dtypes.int32, (word,)) if word is not None and u.dtype is dtypes.int8 else word

  def word(self, u: UOp) -> UOp | None:
    """Return u's bytes of four adjacent iterations, as uint32."""
    if u not in self.known: self.known[u] = self._word(u)
    return self.known[u]

  def _word(self, u: UOp) -> UOp | None:
    if u.op is Ops.CONST: return _repeated(u.arg)
    if u.op is Ops.LOAD: return self.load(u)
    if u.op in (Ops.BITCAST, Ops.CAST) and u.src[0].dtype in BYTES: return self.word(u.src[0])
    if u.op is Ops.AND and u.src[1].op is Ops.CONST and (field := self.field(u, 0)) is not None: return field
    if u.op in _LOGIC:
      left, right = map(self.word, u.src)
      return None if left is None or right is None else UOp(u.op, dtypes.uint32, (left, right))
    if u.op not in (Ops.SHR, Ops.SHL) or u.src[1].op is not Ops.CONST or u.src[1].arg < 0: return None
    if u.src[1].arg > 7 and (u.op is Ops.SHL or u.dtype is dtypes.uint8): return _repeated(0)
    if u.op is Ops.SHR and u.dtype is dtypes.uint8:
      return _shifted(self.word(u.src[0]), u.src[1].arg, 255 >> u.src[1].arg)
    if u.op is Ops.SHL:
      x, up = u.src[0], u.src[1].arg
      return field if (field := self.field(x, up)) is not None else _shifted(self.word(x), -up, 255 << up & 255)
    return None

  def field(self, u: UOp, up: int) -> UOp | None:
    """Return the word of ((x >> n) & mask) << up, shifted once. The mask has no bits from the next byte."""
    if u.op is not Ops.AND or u.src[0].op is not Ops.SHR or u.src[1].op is not Ops.CONST: return None
    (x, n), mask = u.src[0].src, u.src[1].arg
    if x.dtype is not dtypes.uint8 or self.old in n.ranges or n.vmin < 0: return None
    if not 0 <= mask <= 255 >> min(int(n.vmax), 8) or mask << up > 255: return None
    if n.op is Ops.CONST: return _shifted(self.word(x), n.arg - up, mask << up)
    word = self.word(x) if up == 0 else None
    if word is None: return None
    down = UOp(Ops.SHR, dtypes.uint32, (word, UOp(Ops.CAST, dtypes.uint32, (n,))))
    return UOp(Ops.AND, dtypes.uint32, (down, _repeated(mask)))

  def load(self, u: UOp) -> UOp | None:
    """Return the load of a word: four adjacent bytes from a multiple of four on, under the same gate."""
    (buffer, index), gate = u.src[0].src, u.src[1:]
    if buffer.op is not Ops.PARAM or gate and (self.old in gate[0].ranges or gate[1].op is not Ops.CONST): return None
    terms, constant = linear(index)
    if terms.pop(self.old, 0) != 1 or constant % 4: return None
    if any(c % 4 or self.old in t.ranges for t, c in terms.items()): return None
    quotients = {t: c // 4 for t, c in terms.items()}
    if self.range.op is Ops.RANGE: quotients[self.range] = 1
    memory = UOp(Ops.PARAM, dtypes.uint32, (), (buffer.arg[0], buffer.arg[1] // 4))
    place = UOp(Ops.INDEX, dtypes.uint32, (memory, total(quotients, constant // 4)))
    return UOp(Ops.LOAD, dtypes.uint32, (place, gate[0], _repeated(gate[1].arg)) if gate else (place,))

def _shifted(word: UOp | None, down: int, mask: int) -> UOp | None:
  """Return (word >> down) & mask, or (word << -down) & mask. The mask is for each byte, and left out if it is useless.
  """
  if word is None: return None
  amount = UOp(Ops.CONST, dtypes.uint32, (), abs(down))
  if down: word = UOp(Ops.SHR if down > 0 else Ops.SHL, dtypes.uint32, (word, amount))
  return UOp(Ops.AND, dtypes.uint32, (word, _repeated(mask))) if bits_of_bytes(word) & ~mask else word

def _repeated(byte: int) -> UOp: return UOp(Ops.CONST, dtypes.uint32, (), (byte & 255) * 0x01010101)
