"""Select sums of four products of bytes (DOT4) for x86-64. VNNI has an instruction for an unsigned and a signed byte.
Other levels, and other bytes, take multiplications that add pairs.

    vpdpbusd     32-bit sums of four products of an unsigned and a signed byte, added to a sum
    vpmaddubsw   16-bit sums of two products of an unsigned and a signed byte. The sum saturates, so it is taken only
                 where the unsigned bytes are below 128
    vpmaddwd     32-bit sums of two products of 16 bits. With ones it adds the pairs of vpmaddubsw. Other bytes are
                 extended to 16 bits before: those with even numbers in one register, the others in a second one

With VNNI, products of signed bytes are a * b = (a + 128) * b - 128 * b. All of these are exact here.
"""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.isa.x86.select.vector import LETTER_CLASS, Vectors, letter
from tinyhw.machine.ir.inst import Reg
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.words import bits_of_bytes

def packed_dot(selector: Vectors, u: UOp) -> Reg:
  """Select a DOT4 of vectors."""
  a, b, total = u.src
  if is_signed(a) and not is_signed(b): a, b = b, a
  if selector.has_byte_products and is_signed(b): return with_vnni(selector, u, a, b)
  if not is_signed(a) and is_signed(b) and bits_of_bytes(a) < 128: parts = [short_products(selector, u, a, b)]
  else:
    first, second = extended(selector, a), extended(selector, b)
    parts = [wide_products(selector, u, x, y) for x, y in zip(first, second)]
  if total.op is not Ops.CONST or total.arg != 0: parts.append(selector.value(total))
  result = parts.pop()
  while parts: result = selector.vop(u.dtype.itemsize, "vpaddd_{v}_{v}_{v}", result, parts.pop())
  return result

def with_vnni(selector: Vectors, u: UOp, a: UOp, b: UOp) -> Reg:
  """Products with signed b. A signed a gets 128 more, which makes it unsigned."""
  total, signed = selector.value(u.src[2]), selector.value(b)
  if not is_signed(a): return bytes_onto(selector, u, total, selector.value(a), signed)
  flipped = selector.constant(dtypes.int32.vec(u.dtype.count), 0x80808080 - (1 << 32))
  unsigned = selector.vop(u.dtype.itemsize, "vpxor_{v}_{v}_{v}", selector.value(a), flipped)
  whole = bytes_onto(selector, u, total, unsigned, signed)
  more = bytes_onto(selector, u, selector.constant(u.dtype, 0), flipped, signed)
  return selector.vop(u.dtype.itemsize, "vpsubd_{v}_{v}_{v}", whole, more)

def bytes_onto(selector: Vectors, u: UOp, total: Reg, unsigned: Reg, signed: Reg) -> Reg:
  v = letter(u.dtype.itemsize)
  return selector.tied(LETTER_CLASS[v], f"vpdpbusd_{v}_{v}_{v}", total, unsigned, signed)

def short_products(selector: Vectors, u: UOp, a: UOp, b: UOp) -> Reg:
  pairs = selector.second(b, "vpmaddubsw", selector.value(a))
  return wide_products(selector, u, pairs, selector.constant(dtypes.int32.vec(u.dtype.count), 0x00010001))

def wide_products(selector: Vectors, u: UOp, x: Reg, y: Reg) -> Reg:
  return selector.vop(u.dtype.itemsize, "vpmaddwd_{v}_{v}_{v}", x, y)

def extended(selector: Vectors, u: UOp) -> tuple[Reg, Reg]:
  """The bytes with even numbers in 16 bits each, and those with odd numbers."""
  x, size = selector.value(u), u.dtype.itemsize
  if is_signed(u):
    low = selector.vop(size, "vpsllw_{v}_{v}_i8", x, 8)
    return selector.vop(size, "vpsraw_{v}_{v}_i8", low, 8), selector.vop(size, "vpsraw_{v}_{v}_i8", x, 8)
  mask = selector.constant(dtypes.uint32.vec(u.dtype.count), 0x00ff00ff)
  return selector.vop(size, "vpand_{v}_{v}_{v}", x, mask), selector.vop(size, "vpsrlw_{v}_{v}_i8", x, 8)

def is_signed(u: UOp) -> bool: return not dtypes.is_unsigned(u.dtype)
