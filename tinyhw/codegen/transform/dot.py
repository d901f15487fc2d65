"""Sums of products of narrow numbers, several at once.

REDUCE(int32(a) * int32(b)) of 8-bit a and b becomes a sum of DOT4s:

    r in 32:  sum += int32(w[32 i + r] & 15) * int32(x[r])         w: uint8, x: int8
    r in 8:   sum = DOT4(W[8 i + r] & 0x0f0f0f0f, X[r], sum)       W, X: the same memory as uint32

A word has the bytes of four adjacent iterations. A factor has words if its loads are adjacent along the range and begin
at multiples of four bytes. Operations on bits do the same with four bytes at once. A mask removes the bits that a shift
takes from the next byte. The result is exact, since int32 wraps in any order.

REDUCE(a * b) of loaded bfloat16 becomes a sum of DOT2s. A word has two of them. The sum is in float32, and a sum of
bfloat16 is rounded once, at the end.

A kernel stays as it is where a factor has no words, or where another access needs parts of words of the same buffer.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.kernel.affine import linear, number, total
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.words import bits_of_bytes

BYTES = (dtypes.uint8, dtypes.int8)
MOST_PRODUCTS = 64    # of a sum; the largest quantized group has 8
CHAIN = 4             # operations, each of which adds to the one before; longer chains are cut, as they wait too long
MOST_NODES = 128      # of a factor, with those of its indices
_LOGIC = frozenset({Ops.AND, Ops.OR, Ops.XOR})

class DotKind(NamedTuple):
  """An operation on words: the type of its sum, and the number of elements of a word."""
  op: Ops
  dtype: DType
  elements: int

KINDS = DOT4, DOT2 = DotKind(Ops.DOT4, dtypes.int32, 4), DotKind(Ops.DOT2, dtypes.float32, 2)

def has_dots(capabilities: Capabilities, kind: DotKind = DOT4) -> bool:
  """Does the target have the operation, for a lane or for a vector, and load words from every multiple of 4 bytes?"""
  if capabilities.lanes: return capabilities.supports(kind.op, kind.dtype)
  lanes = max(capabilities.vector_bytes // kind.dtype.itemsize, 1)
  return capabilities.supports(kind.op, kind.dtype.vec(lanes)) and not capabilities.aligned

def use_dots(sink: UOp, capabilities: Capabilities) -> UOp:
  """Return the kernel with DOT4s in its sums of products of bytes, and DOT2s in those of bfloat16."""
  kinds = [kind for kind in KINDS if has_dots(capabilities, kind)]
  if not kinds: return sink
  nodes = sink.toposort()
  ranges = sorted((u for u in nodes if u.op is Ops.RANGE), key=lambda r: r.arg)
  fresh = 1 + max((r.arg[0] for r in ranges), default=0)
  numbers = {r: fresh + len(KINDS) * k for k, r in enumerate(ranges)}
  found = {u: _dots(u, numbers, kinds) for u in nodes if u.op is Ops.REDUCE}
  sums = {u: dots for u, dots in found.items() if dots is not None}
  if not sums: return sink
  trace.hand_on(sums)
  made = sink.substitute(sums)
  params = [u for u in made.toposort() if u.op is Ops.PARAM]
  return made if len({u.arg[0] for u in params}) == len(params) else sink   # another access needs bytes of a buffer

def _dots(reduce: UOp, numbers: dict[UOp, int], kinds: list[DotKind]) -> UOp | None:
  """Return a sum in words along the innermost of its ranges that has words of all factors.

  numbers: of the ranges over words, by the range over elements. So sums over one loop stay sums over one loop.
  """
  for kind in kinds if reduce.arg is Ops.ADD else ():
    products = (_byte_products if kind is DOT4 else _bfloat16_products)(reduce)
    for r in reversed(ranges_of(reduce)) if products else ():
      if r.src[0].op is not Ops.CONST or r.src[0].arg % kind.elements: continue
      words = _Words(r, numbers[r] + KINDS.index(kind), kind.elements)
      zero = UOp(Ops.CONST, kind.dtype, (), kind.dtype.const(0))
      chains = [zero] * max(len(products or ()) // CHAIN, 1)
      for k, (a, b) in enumerate(products or ()):
        first, second = words.factor(a), words.factor(b)
        if first is None or second is None: break
        chains[k % len(chains)] = UOp(kind.op, kind.dtype, (first, second, chains[k % len(chains)]))
      else:
        value = chains[0]
        for chain in chains[1:]: value = UOp(Ops.ADD, kind.dtype, (value, chain))
        ranges = [s for s in (words.range if s is r else s for s in reduce.src[1:]) if s.op is Ops.RANGE]
        total = UOp(Ops.REDUCE, kind.dtype, (value, *ranges), Ops.ADD) if ranges else value
        return total if reduce.dtype is kind.dtype else UOp(Ops.CAST, reduce.dtype, (total,))
  return None

def _byte_products(reduce: UOp) -> list[tuple[UOp, UOp]] | None:
  """Return the pairs of 8-bit factors whose products make a sum of int32; None for other expressions."""
  if reduce.dtype is not dtypes.int32: return None
  found, left = [], [reduce.src[0]]
  while left:
    u = left.pop()
    if u.op is Ops.ADD: left += u.src
    elif u.op is Ops.MUL and all(s.op is Ops.CAST and s.src[0].dtype in BYTES for s in u.src):
      found.append((u.src[0].src[0], u.src[1].src[0]))
    else: return None
    if len(found) + len(left) > MOST_PRODUCTS: return None
  return found

def _bfloat16_products(reduce: UOp) -> list[tuple[UOp, UOp]] | None:
  """Return the two loads of bfloat16 whose products are summed, in that type or in float32; None for other expressions.
  """
  value = reduce.src[0]
  if value.op is not Ops.MUL or value.dtype not in (dtypes.bfloat16, dtypes.float32): return None
  a, b = (s.src[0] if s.op is Ops.CAST else s for s in value.src)
  return [(a, b)] if all(s.op is Ops.LOAD and s.dtype is dtypes.bfloat16 for s in (a, b)) else None

class _Words:
  """The words of 8-bit expressions along a range, or of loads of 16 bits. elements: of a word. range: the range over
  words, or 0 where there is one word."""
  def __init__(self, old: UOp, fresh: int, elements: int):
    self.old, self.elements, count = old, elements, old.src[0].arg // elements
    self.known: dict[UOp, UOp | None] = {}
    self.range = UOp(Ops.RANGE, old.dtype, (number(count),), (fresh, old.arg[1])) if count > 1 else number(0)

  def factor(self, u: UOp) -> UOp | None:
    """Return the word of a factor: int32 if its bytes have signs, else uint32."""
    small = len(u.toposort()) <= MOST_NODES
    word = self.word(u) if small and self.old in u.ranges else None
    return UOp(Ops.BITCAST, dtypes.int32, (word,)) if word is not None and u.dtype is dtypes.int8 else word

  def word(self, u: UOp) -> UOp | None:
    """Return u in adjacent iterations, as uint32."""
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
    """Return the load of a word: adjacent elements from a multiple of a word on, under the same gate."""
    (buffer, index), gate, n = u.src[0].src, u.src[1:], self.elements
    if buffer.op is not Ops.PARAM or gate and (self.old in gate[0].ranges or gate[1].op is not Ops.CONST): return None
    terms, constant = linear(index)
    if terms.pop(self.old, 0) != 1 or constant % n: return None
    if any(c % n or self.old in t.ranges for t, c in terms.items()): return None
    quotients = {t: c // n for t, c in terms.items()}
    if self.range.op is Ops.RANGE: quotients[self.range] = 1
    memory = UOp(Ops.PARAM, dtypes.uint32, (), (buffer.arg[0], buffer.arg[1] // n))
    place = UOp(Ops.INDEX, dtypes.uint32, (memory, total(quotients, constant // n)))
    if not gate: return UOp(Ops.LOAD, dtypes.uint32, (place,))
    if u.dtype not in BYTES and gate[1].arg != 0: return None
    return UOp(Ops.LOAD, dtypes.uint32, (place, gate[0], _repeated(int(gate[1].arg))))

def _shifted(word: UOp | None, down: int, mask: int) -> UOp | None:
  """Return (word >> down) & mask, or (word << -down) & mask. The mask is for each byte, and left out if it is useless.
  """
  if word is None: return None
  amount = UOp(Ops.CONST, dtypes.uint32, (), abs(down))
  if down: word = UOp(Ops.SHR if down > 0 else Ops.SHL, dtypes.uint32, (word, amount))
  return UOp(Ops.AND, dtypes.uint32, (word, _repeated(mask))) if bits_of_bytes(word) & ~mask else word

def _repeated(byte: int) -> UOp: return UOp(Ops.CONST, dtypes.uint32, (), (byte & 255) * 0x01010101)
