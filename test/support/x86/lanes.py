"""The vector and mask instructions of x86/machine.py: what each does to lanes, as tables from mnemonic to a Python
function.

Lane-wise instructions have a rule (`lane_rule`): formats of the sources' elements, format of the result's, function. A
result shorter than its register is followed by zeros. Arithmetic of floats is arithmetic.py's; of integers, Python's,
wrapped.
"""
from __future__ import annotations
import functools
import math
import operator
import re
import struct
from collections.abc import Callable
from typing import Any

from tinyhw import arithmetic
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Access, MInst

Lanes = list[Any]
FORMATS = {"b": "b", "w": "h", "d": "i", "q": "q"}
SIZES = {"b": 1, "h": 2, "i": 4, "q": 8, "f": 4, "d": 8, "e": 2}
FLOATS = {"s": ("f", "I", arithmetic.round_float32), "d": ("d", "Q", float)}

def size_of(fmt: str) -> int: return SIZES[fmt.lower()]

@functools.lru_cache(None)
def layout(n: int, fmt: str) -> struct.Struct: return struct.Struct(f"<{n}{fmt}")

def unpack(data: bytes, fmt: str) -> Lanes: return list(layout(len(data) // size_of(fmt), fmt).unpack_from(data))

def pack(values: Lanes, fmt: str) -> bytes:
  """Integers wrap."""
  if fmt in "fde": return layout(len(values), fmt).pack(*values)
  ones = (1 << 8 * size_of(fmt)) - 1
  return layout(len(values), fmt.upper()).pack(*[int(v) & ones for v in values])

def addresser(inst: MInst, at: int, end: int) -> Callable[[Any], int]:
  """The address of the memory operand at operand index `at`; relative to `end` where its base is rip."""
  base, index, scale, displacement = inst.operands[at:at + 4]
  if base is regs.RIP: return lambda m: end + displacement
  b, i = None if base is None else base.index, None if index is None else index.index
  if b is None: return lambda m: (m.general[i] * scale if i is not None else 0) + displacement & (1 << 64) - 1
  if i is None: return lambda m: m.general[b] + displacement & (1 << 64) - 1
  return lambda m: m.general[b] + m.general[i] * scale + displacement & (1 << 64) - 1

# ***** operands *****

Get = Callable[[Any], Any]

def source(inst: MInst, n: int, end: int) -> Get:
  """Shown operand n: bytes of a vector or memory, an int of a general register, mask or immediate."""
  at, kind = inst.row.isa.syntax[n]
  if kind.category == "immediate": return lambda m, v=inst.operands[at]: v
  if kind.category == "register":
    r = inst.operands[at]
    size, index = r.cls.bits // 8, r.index
    if r.cls.bank is regs.VEC: return lambda m: m.vector[index][:size]
    if r.cls.bank is regs.MASK: return lambda m: m.masks[index]
    return lambda m: m.general[index] & (1 << 8 * size) - 1
  place, size = addresser(inst, at, end), kind.bits // 8
  if kind.category == "broadcast": return lambda m: m.memory.read(place(m), size) * kind.lanes
  return lambda m: m.memory.read(place(m), size)

def mask_of(inst: MInst) -> int:
  """The number of the mask register, or -1."""
  return inst.operands[inst.row.isa.mask].index if inst.row.isa.mask >= 0 else -1

def target(inst: MInst, fmt: str, end: int) -> Callable[[Any, Lanes], None]:
  """How the first operand is written, under the instruction's mask."""
  at, kind = inst.row.isa.syntax[0]
  mask, zeroing, size = mask_of(inst), inst.row.isa.zeroing, size_of(fmt)
  if kind.category == "memory":
    place = addresser(inst, at, end)
    def store(m: Any, lanes: Lanes) -> None:
      if mask < 0: return void(m.memory.write(place(m), pack(lanes, fmt)[:kind.bits // 8 or None]))
      for k, v in enumerate(lanes):
        if m.masks[mask] >> k & 1: m.memory.write(place(m) + k * size, pack([v], fmt))
    return store
  index, width = inst.operands[at].index, inst.operands[at].cls.bits // 8
  def write(m: Any, lanes: Lanes) -> None:
    data = pack(lanes, fmt).ljust(width, b"\0")[:width]
    if mask >= 0:
      old, bits = m.vector[index], m.masks[mask] | -1 << len(lanes)   # what no lane fills is zero, whatever the mask
                                                                      # says
      rest = bytes(width) if zeroing else old
      data = b"".join((data if bits >> k & 1 else rest)[k * size:k * size + size] for k in range(width // size))
    m.vector[index] = data.ljust(64, b"\0")
  return write

def void(_: object) -> None: return None

# ***** lane by lane *****

def first_if(f: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]: return lambda a, b: a if f(a, b) else b

def ordered(a: float, b: float) -> bool: return a == a and b == b

PREDICATES: dict[int, Callable[[Any, Any], bool]] = {17: operator.lt, 0: operator.eq, 4: lambda a, b: not a == b,
                                                     1: operator.lt, 2: operator.le}

def round_of(name: str) -> Callable[..., float]:
  return {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": arithmetic.divide,
          "min": first_if(operator.lt), "max": first_if(operator.gt)}[name]

def shift(name: str, bits: int) -> Callable[[int, int], int]:
  if name == "sll": return lambda a, c: a << c if 0 <= c < bits else 0
  if name == "srl": return lambda a, c: a >> c if 0 <= c < bits else 0
  return lambda a, c: a >> (c if 0 <= c < bits else bits - 1)

@functools.lru_cache(None)
def lane_rule(name: str) -> tuple[str, str, Callable[..., Any]] | None:
  """Formats of the sources, of the result, and the function; None for what is not lane by lane."""
  if found := re.fullmatch(r"v(add|sub|mul|div|min|max)[ps]([sd])", name):
    fmt, _, rounded = FLOATS[found[2]]
    f = round_of(found[1])
    return fmt * 2, fmt, lambda a, b: rounded(f(a, b))
  if found := re.fullmatch(r"vfmadd(132|213|231)[ps]([sd])", name):
    fmt, fused = ("f", arithmetic.fused_float32) if found[2] == "s" else ("d", arithmetic.fused_float64)
    i, j, k = (int(c) - 1 for c in found[1])
    return fmt * 3, fmt, lambda *x: fused(x[i], x[j], x[k])
  if found := re.fullmatch(r"vsqrt[ps]([sd])", name):
    fmt, _, rounded = FLOATS[found[1]]
    return fmt, fmt, lambda a: rounded(arithmetic.square_root(a))
  if found := re.fullmatch(r"v(?:round|rndscale)[ps]([sd])", name):
    return FLOATS[found[1]][0] + "#", FLOATS[found[1]][0], truncated
  if found := re.fullmatch(r"v(and|andn|or|xor)p([sd])|vp(and|andn|or|xor)([dq]?)", name):
    fmt = FLOATS[found[2]][1] if found[1] else {"d": "I", "q": "Q", "": "Q"}[found[4]]
    f = {"and": operator.and_, "or": operator.or_, "xor": operator.xor, "andn": lambda a,
         b: ~a & b}[found[1] or found[3]]
    return fmt * 2, fmt, f
  if found := re.fullmatch(r"vp(add|sub|mull|mins|maxs|minu|maxu)([bwdq])", name):
    fmt = FORMATS[found[2]].upper() if found[1][-1] == "u" else FORMATS[found[2]]
    return fmt * 2, fmt, {"add": operator.add, "sub": operator.sub,
                          "mull": operator.mul}.get(found[1], min if found[1][:3] == "min" else max)
  if found := re.fullmatch(r"vp(sll|srl|sra)(v?)([wdq])", name):
    fmt = FORMATS[found[3]]
    return ((fmt if found[1] == "sra" else fmt.upper()) + (fmt.upper() if found[2] else "#"), fmt,
            shift(found[1], 8 * size_of(fmt)))
  if re.fullmatch(r"vpternlog[dq]", name):
    fmt = "I" if name[-1] == "d" else "Q"
    def ternary(a: int, b: int, c: int, table: int) -> int:
      sides = [(x, ~x) for x in (a, b, c)]
      # they have no bit in common
      return sum(sides[0][not k & 4] & sides[1][not k & 2] & sides[2][not k & 1] for k in range(8) if table >> k & 1)
    return fmt * 3 + "#", fmt, ternary
  if found := re.fullmatch(r"vprol([dq])", name):
    fmt, bits = FORMATS[found[1]].upper(), 8 * size_of(FORMATS[found[1]])
    return fmt + "#", fmt, lambda a, c: a << c % bits | a >> (bits - c % bits)
  if found := re.fullmatch(r"vpmov([sz])x([bwd])([wdq])", name):
    return FORMATS[found[2]] if found[1] == "s" else FORMATS[found[2]].upper(), FORMATS[found[3]], int
  if found := re.fullmatch(r"vpmov([wdq])([bwd])", name): return FORMATS[found[1]], FORMATS[found[2]], int
  return CONVERSIONS.get(name) or MOVES.get(name)

def truncated(a: float, control: int) -> float:
  assert control == 11, "only rounding to zero is known"
  return arithmetic.truncate_float(a)

def saturating(f: Callable[[float], int]) -> Callable[[float], int]: return lambda a: f(a) if a == a else f(math.inf)

def half(a: float, control: int) -> float:
  assert control == 0
  return arithmetic.round_float16(a)

CONVERSIONS: dict[str, tuple[str, str, Callable[..., Any]]] = {
  "vcvtdq2ps": ("i", "f", arithmetic.int_to_float32), "vcvtdq2pd": ("i", "d", float),
  "vcvtqq2ps": ("q", "f", arithmetic.int_to_float32),
  "vcvtqq2pd": ("q", "d", float), "vcvtuqq2ps": ("Q", "f", arithmetic.int_to_float32), "vcvtuqq2pd": ("Q", "d", float),
  "vcvttps2dq": ("f", "i", saturating(arithmetic.float_to_int32)),
  "vcvttpd2dq": ("d", "i", saturating(arithmetic.float_to_int32)),
  "vcvttps2qq": ("f", "q", saturating(arithmetic.float_to_int64)),
  "vcvttpd2qq": ("d", "q", saturating(arithmetic.float_to_int64)),
  "vcvtps2pd": ("f", "d", float), "vcvtpd2ps": ("d", "f", arithmetic.round_float32), "vcvtph2ps": ("e", "f", float),
  "vcvtps2ph": ("f#", "e", half),
}
MOVES: dict[str, tuple[str, str, Callable[..., Any]]] = {
  **{f"vmov{a}p{s}": (f, f, int) for a in "au" for s, f in (("s", "I"), ("d", "Q"))}, "vmovdqu": ("Q", "Q", int),
  "vmovdqa": ("Q", "Q", int),
  **{f"vmovdq{a}{8 * n}": (f, f, int) for a in "au" for n, f in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))},
}

def lanewise(inst: MInst, end: int) -> Callable[[Any], None] | None:
  """Packed instructions that have a lane rule, and scalar ones, which take the rest of the result from the first
  source."""
  rule = lane_rule(inst.row.name)
  if rule is None: return None
  formats, fmt, f = rule
  shown = inst.row.isa.syntax
  both = inst.row.operands[shown[0][0]].access == Access.BOTH and len(formats) == len(shown)
  gets = [source(inst, n, end) for n in range(0 if both else 1, len(shown))]
  put = target(inst, fmt, end)
  scalar = re.fullmatch(r"v(add|sub|mul|div|min|max|sqrt|round|rndscale|fmadd\d+)s[sd]", inst.row.name) is not None
  if scalar and mask_of(inst) >= 0: return None
  if inst.row.name in MOVES and mask_of(inst) >= 0 and shown[1][1].category == "memory":
    return masked_load(inst, fmt, end)
  if scalar and len(gets) > len(formats): rest, gets = gets[0], gets[1:]
  elif scalar: rest = gets[0]
  shift_by_vector = inst.row.name[:3] == "vps" and formats[-1] == "#" and shown[2][1].category != "immediate"
  assert not shift_by_vector, "shifts by one count for all lanes are not known"
  def step(m: Any) -> None:
    columns = [g(m) if x == "#" else unpack(g(m), x) for g, x in zip(gets, formats)]
    n = 1 if scalar else min(len(c) for c in columns if isinstance(c, list))
    lanes = [f(*[c[k] if isinstance(c, list) else c for c in columns]) for k in range(n)]
    if scalar:
      data = pack(lanes, fmt) + rest(m)[size_of(fmt):16]
      m.vector[inst.operands[0].index] = data.ljust(64, b"\0")
    else: put(m, lanes)
  return step

def masked_load(inst: MInst, fmt: str, end: int) -> Callable[[Any], None]:
  """Memory is touched for lanes whose bit is set."""
  at, kind = inst.row.isa.syntax[1]
  place, size, mask, put = addresser(inst, at, end), size_of(fmt), mask_of(inst), target(inst, fmt, end)
  n = kind.bits // 8 // size
  return lambda m: put(m, [unpack(m.memory.read(place(m) + k * size, size), fmt)[0] if m.masks[mask] >> k & 1 else 0
                           for k in range(n)])

# ***** compares, blends *****

def compares(inst: MInst, end: int) -> Callable[[Any], None] | None:
  name = inst.row.name
  if found := re.fullmatch(r"vcmp([ps])([sd])", name): fmt, fixed = FLOATS[found[2]][0], None
  elif found := re.fullmatch(r"vpcmp(u?)([bwdq])", name):
    fmt, fixed = FORMATS[found[2]].upper() if found[1] else FORMATS[found[2]], None
  elif found := re.fullmatch(r"vpcmp(eq|gt)([bwdq])", name):
    fmt, fixed = FORMATS[found[2]], operator.eq if found[1] == "eq" else operator.gt
  elif found := re.fullmatch(r"vptestm([bwdq])", name): fmt, fixed = FORMATS[found[1]], lambda a, b: a & b != 0
  else: return None
  test = fixed or PREDICATES[inst.operands[-1]]
  a, b = source(inst, 1, end), source(inst, 2, end)
  scalar, out, mask = name in ("vcmpss", "vcmpsd"), inst.operands[0], mask_of(inst)
  def step(m: Any) -> None:
    x, y = a(m), b(m)
    bits = [test(p, q) for p, q in zip(unpack(x, fmt), unpack(y, fmt))]
    if scalar: bits = bits[:1]
    if out.cls.bank is regs.MASK:
      m.masks[out.index] = sum(v << k for k, v in enumerate(bits)) & (m.masks[mask] if mask >= 0 else -1)
    else:
      data = b"".join((b"\xff" if v else b"\0") * size_of(fmt) for v in bits)
      m.vector[out.index] = (data + x[len(data):16]).ljust(64, b"\0")
  return step

def blends(inst: MInst, end: int) -> Callable[[Any], None] | None:
  name, out = inst.row.name, inst.operands[0]
  if found := re.fullmatch(r"vblendm(p[sd])|vpblendm([bwdq])", name):
    size = {"ps": 4, "pd": 8, None: 0}[found[1]] or size_of(FORMATS[found[2]])
    number = mask_of(inst)
    gate: Get = lambda m: m.masks[number] if number >= 0 else -1
  elif found := re.fullmatch(r"vblendv(p[sd])|vpblendvb", name):
    size, selector = {"ps": 4, "pd": 8, None: 1}[found[1]], source(inst, 3, end)
    gate = lambda m: sum((v < 0) << k for k, v in enumerate(unpack(selector(m), {1: "b", 4: "i", 8: "q"}[size])))
  else: return None
  no, yes = source(inst, 1, end), source(inst, 2, end)
  def step(m: Any) -> None:
    bits, b = gate(m), yes(m)
    a = bytes(64) if inst.row.isa.zeroing else no(m)
    m.vector[out.index] = b"".join((b if bits >> k & 1 else a)[k * size:k * size + size]
                                   for k in range(len(b) // size)).ljust(64, b"\0")
  return step

# ***** lanes moved *****

def picks(data: bytes, order: Lanes, size: int) -> bytes: return b"".join(data[k * size:k * size + size] for k in order)

def in_lanes(f: Callable[..., bytes]) -> Callable[..., bytes]:
  """f for each 16 bytes of the operands."""
  return lambda *xs: b"".join(f(*[x[k:k + 16] if isinstance(x, bytes) else x for x in xs])
                              for k in range(0, len(xs[0]), 16))

def insert(data: bytes, part: bytes, k: int) -> bytes:
  k %= len(data) // len(part)
  return data[:k * len(part)] + part + data[(k + 1) * len(part):]

def two_bits(control: int, n: int) -> Lanes: return [control >> 2 * k & 3 for k in range(n)]

def saturate(low: bytes, high: bytes, wide: str, fmt: str) -> bytes:
  top = 1 << 8 * size_of(fmt) - 1
  return pack([max(-top, min(top - 1, v)) for v in unpack(low + high, wide)], fmt)

def products_of_bytes(a: bytes, b: bytes) -> bytes:
  """Saturated sums of two products of an unsigned and a signed byte."""
  products = [x * y for x, y in zip(unpack(a, "B"), unpack(b, "b"))]
  return pack([max(-32768, min(32767, x + y)) for x, y in zip(products[::2], products[1::2])], "h")

def insert_single(a: bytes, b: bytes, control: int) -> bytes:
  assert control & 15 == 0
  return insert(a, picks(b, [control >> 6 if len(b) > 4 else 0], 4), control >> 4 & 3)

def insert_number(size: int, a: bytes, value: bytes | int, k: int) -> bytes:
  return insert(a, (value if isinstance(value, bytes) else value.to_bytes(8, "little"))[:size], k)

def permute_doubles(a: bytes, b: bytes | int) -> bytes:
  """Of b by the numbers in a; of each 32 bytes of a by a control byte."""
  if isinstance(b, bytes): return picks(b, [k % (len(b) // 8) for k in unpack(a, "Q")], 8)
  return b"".join(picks(a[k:k + 32], two_bits(b, 4), 8) for k in range(0, len(a), 32))

def from_two_tables(size: int, a: bytes, order: bytes, b: bytes) -> bytes:
  return picks(a + b, [k % (2 * len(a) // size) for k in unpack(order, {4: "I", 8: "Q"}[size])], size)

def four_products(total: bytes, a: bytes, b: bytes) -> bytes:
  """Sums of four products of an unsigned and a signed byte, onto 32-bit sums; the upper bits are dropped."""
  products = [x * y for x, y in zip(unpack(a, "B"), unpack(b, "b"))]
  return pack([x + sum(products[4 * k:4 * k + 4]) & 0xffffffff for k, x in enumerate(unpack(total, "I"))], "I")

def two_products(total: bytes, a: bytes, b: bytes) -> bytes:
  """Sums of the products of two bfloat16, onto float32: the upper ones first, and subnormal numbers are zeros."""
  def normal(x: float) -> float: return math.copysign(0.0, x) if abs(x) < 2.0 ** -126 else x
  sums = unpack(total, "f")
  first, second = ([normal(arithmetic.decode_bfloat16(h)) for h in unpack(s, "H")] for s in (a, b))
  for k in range(len(sums)):
    for n in (2 * k + 1, 2 * k): sums[k] = normal(arithmetic.fused_float32(first[n], second[n], normal(sums[k])))
  return pack(sums, "f")

def byte_shuffle(a: bytes, order: bytes) -> bytes: return bytes(0 if o > 127 else a[o & 15] for o in order)

MOVED: dict[str, Callable[..., bytes]] = {
  **{f"vinsert{x}": insert for x in ("f128", "i128", "f32x4", "i32x4", "f64x4", "i64x4")},
  "vpermilps": in_lanes(lambda a, c: picks(a, two_bits(c, 4), 4)),
  "vpshufd": in_lanes(lambda a, c: picks(a, two_bits(c, 4), 4)),
  "vpermq": lambda a, c: b"".join(picks(a[k:k + 32], two_bits(c, 4), 8) for k in range(0, len(a), 32)),
  "vpermd": lambda order, a: picks(a, [k % (len(a) // 4) for k in unpack(order, "I")], 4),
  "vpermilpd": lambda a, c: picks(a, [k & ~1 | c >> k & 1 for k in range(len(a) // 8)], 8),
  "vpsrldq": in_lanes(lambda a, n: a[min(n, 16):].ljust(16, b"\0")),
  "vpslldq": in_lanes(lambda a, n: a[:16 - min(n, 16)].rjust(16, b"\0")),
  "vpshufb": in_lanes(byte_shuffle),
  "vshufps": in_lanes(lambda a, b, c: picks(a, two_bits(c, 2), 4) + picks(b, two_bits(c >> 4, 2), 4)),
  "vshufpd": lambda a, b, c: b"".join(picks(x[k // 2 * 16:], [c >> k & 1], 8)
                                      for k in range(len(a) // 8) for x in ((a, b)[k % 2],)),
  "vunpcklpd": in_lanes(lambda a, b: a[:8] + b[:8]), "vunpckhpd": in_lanes(lambda a, b: a[8:] + b[8:]),
  "vunpcklps": in_lanes(lambda a, b: a[:4] + b[:4] + a[4:8] + b[4:8]),
  "vpunpcklwd": in_lanes(lambda a, b: b"".join([x[k:k + 2] for k in range(0, 8, 2) for x in (a, b)])),
  "vpunpckhwd": in_lanes(lambda a, b: b"".join([x[k:k + 2] for k in range(8, 16, 2) for x in (a, b)])),
  "vunpckhps": in_lanes(lambda a, b: a[8:12] + b[8:12] + a[12:] + b[12:]), "vinsertps": insert_single,
  "vblendps": lambda a, b, c: b"".join(picks(b if c >> k & 1 else a, [k], 4) for k in range(len(a) // 4)),
  "vblendpd": lambda a, b, c: b"".join(picks(b if c >> k & 1 else a, [k], 8) for k in range(len(a) // 8)),
  "vpermps": lambda order, a: picks(a, [k % (len(a) // 4) for k in unpack(order, "I")], 4),
  "vpermpd": permute_doubles,
  "vpmaddwd": lambda a,
  b: pack([x * y + z * w for x, y, z, w in zip(*[unpack(s, "h")[k::2] for k in (0, 1) for s in (a, b)])], "i"),
  "vpmaddubsw": products_of_bytes,
  "vpackssdw": in_lanes(lambda a, b: saturate(a, b, "i", "h")),
  "vpacksswb": in_lanes(lambda a, b: saturate(a, b, "h", "b")),
  **{f"vpinsr{e}": functools.partial(insert_number, size_of(f)) for e, f in FORMATS.items()},
}
# instructions that read their first operand, too
ONTO: dict[str, Callable[..., bytes]] = {
  "vpermt2ps": functools.partial(from_two_tables, 4), "vpermt2pd": functools.partial(from_two_tables, 8),
  "vpdpbusd": four_products, "vdpbf16ps": two_products,
}
BROADCASTS = {"vbroadcastss": 4, "vbroadcastsd": 8, "vmovddup": 8,
              **{f"vpbroadcast{e}": size_of(f) for e, f in FORMATS.items()}}

def moved(inst: MInst, end: int) -> Callable[[Any], None] | None:
  name, shown, out = inst.row.name, inst.row.isa.syntax, inst.operands[0]
  gets = [source(inst, n, end) for n in range(1, len(shown))]
  by_vector = name in ("vpermilps", "vpermilpd", "vpermq") and shown[-1][1].category != "immediate"
  if name in MOVED and inst.row.isa.mask < 0 and not by_vector:
    f = MOVED[name]
    return lambda m: m.vector.__setitem__(out.index, f(*[g(m) for g in gets]).ljust(64, b"\0"))
  if name in ONTO and inst.row.isa.mask < 0:
    onto, operands = ONTO[name], [source(inst, 0, end), *gets]
    return lambda m: m.vector.__setitem__(out.index, onto(*[g(m) for g in operands]).ljust(64, b"\0"))
  if name in BROADCASTS and inst.row.isa.mask < 0:
    size, width = BROADCASTS[name], out.cls.bits // 8
    as_bytes: Get = lambda x: x if isinstance(x, bytes) else x.to_bytes(8, "little")
    assert name != "vmovddup" or width == 16
    return lambda m: m.vector.__setitem__(out.index, (as_bytes(gets[0](m))[:size] * (width // size)).ljust(64, b"\0"))
  if name[:8] == "vextract" and name != "vextractps" and inst.row.isa.mask < 0:
    width, put = shown[0][1].bits // 8 or out.cls.bits // 8, target(inst, "I", end)
    def extract(m: Any) -> None:
      data = gets[0](m)
      at = gets[1](m) % (len(data) // width) * width
      put(m, unpack(data[at:at + width], "I"))
    return extract
  return small_moves(inst, end, gets)

def small_moves(inst: MInst, end: int, gets: list[Get]) -> Callable[[Any], None] | None:
  """Between the low lane of a vector, memory and general registers."""
  name, (at, kind) = inst.row.name, inst.row.isa.syntax[0] if inst.row.isa.syntax else (0, None)
  if mask_of(inst) >= 0: return None
  upper = name == "vmovhps" and kind is not None and kind.category == "memory"   # the upper half is stored
  size = {"vmovss": 4, "vmovd": 4, "vmovsd": 8, "vmovq": 8, "vextractps": 4}.get(name, 8 * upper)
  if found := re.fullmatch(r"vpextr([bwdq])", name): size = size_of(FORMATS[found[1]])
  if not size: return None
  picks = found is not None or name == "vextractps"
  def data_of(m: Any) -> bytes:
    value = gets[0](m)
    data = value if isinstance(value, bytes) else value.to_bytes(8, "little")
    start = gets[1](m) % (16 // size) * size if picks else size * upper
    return data[start:start + size]
  if len(gets) == 2 and not picks:
    return lambda m: m.vector.__setitem__(inst.operands[0].index,
                                          (gets[1](m)[:size] + gets[0](m)[size:]).ljust(64, b"\0"))
  if kind.category == "memory":
    place = addresser(inst, at, end)
    return lambda m: m.memory.write(place(m), data_of(m))
  index = inst.operands[at].index
  if inst.operands[at].cls.bank is regs.VEC: return lambda m: m.vector.__setitem__(index, data_of(m).ljust(64, b"\0"))
  return lambda m: m.general.__setitem__(index, int.from_bytes(data_of(m), "little"))

# ***** scalars to and from general registers *****

def crossings(inst: MInst, end: int) -> Callable[[Any], None] | None:
  name, shown = inst.row.name, inst.row.isa.syntax
  if mask_of(inst) >= 0 or not inst.operands: return None
  out = inst.operands[0]
  gets = [source(inst, n, end) for n in range(len(shown))]
  if found := re.fullmatch(r"vcvt(u?)si2s([sd])", name):
    bits = shown[2][1].bits or inst.operands[shown[2][0]].cls.bits
    fmt, convert = ("f", arithmetic.int_to_float32) if found[2] == "s" else ("d", float)
    def to_float(m: Any) -> None:
      value = gets[2](m) if isinstance(gets[2](m), int) else int.from_bytes(gets[2](m), "little")
      if not found[1] and value >> bits - 1: value -= 1 << bits
      m.vector[out.index] = (pack([convert(value)], fmt) + gets[1](m)[size_of(fmt):]).ljust(64, b"\0")
    return to_float
  if found := re.fullmatch(r"vcvtts([sd])2si", name):
    fmt, f = FLOATS[found[1]][0], saturating(arithmetic.float_to_int32 if out.cls.bits == 32
                                             else arithmetic.float_to_int64)
    return lambda m: m.general.__setitem__(out.index, f(unpack(gets[1](m), fmt)[0]) & (1 << out.cls.bits) - 1)
  if name in ("vcvtss2sd", "vcvtsd2ss"):
    a, b, rounded = ("f", "d", float) if name == "vcvtss2sd" else ("d", "f", arithmetic.round_float32)
    return lambda m: m.vector.__setitem__(out.index,
                                          (pack([rounded(unpack(gets[2](m), a)[0])], b)
                                           + gets[1](m)[size_of(b):16]).ljust(64, b"\0"))
  if found := re.fullmatch(r"vucomis([sd])", name): return flags_of_compare(gets, FLOATS[found[1]][0])
  if name == "vpmovmskb":
    return lambda m: m.general.__setitem__(out.index, sum((v < 0) << k for k, v in enumerate(unpack(gets[1](m), "b"))))
  return None

def flags_of_compare(gets: list[Get], fmt: str) -> Callable[[Any], None]:
  def step(m: Any) -> None:
    a, b = unpack(gets[0](m), fmt)[0], unpack(gets[1](m), fmt)[0]
    m.zero, m.carry, m.sign, m.overflow = not ordered(a, b) or a == b, not ordered(a, b) or a < b, False, False
  return step

# ***** gathers and masked memory of AVX2 *****

def memory(inst: MInst, end: int) -> Callable[[Any], None] | None:
  name = inst.row.name
  if found := re.fullmatch(r"vgather([dq])p([sd])", name): return gather(inst, found[1], 4 if found[2] == "s" else 8)
  if name == "vmovntps": return past_caches(inst, end)
  found = re.fullmatch(r"vmaskmovp([sd])", name)
  if not found: return None
  size = 4 if found[1] == "s" else 8
  fmt, out = {4: "i", 8: "q"}[size], inst.operands[0]
  if inst.row.isa.syntax[0][1].category == "memory":
    gate, value, place = source(inst, 1, end), source(inst, 2, end), addresser(inst, 0, end)
    def store(m: Any) -> None:
      for k, (g, v) in enumerate(zip(unpack(gate(m), fmt), unpack(value(m), fmt))):
        if g < 0: m.memory.write(place(m) + k * size, pack([v], fmt))
    return store
  gate, place = source(inst, 1, end), addresser(inst, inst.row.isa.memory, end)
  return lambda m: m.vector.__setitem__(out.index,
                                        b"".join(m.memory.read(place(m) + k * size, size) if g < 0 else bytes(size)
                                                 for k, g in enumerate(unpack(gate(m), fmt))).ljust(64, b"\0"))

def past_caches(inst: MInst, end: int) -> Callable[[Any], None]:
  value, place = source(inst, 1, end), addresser(inst, inst.row.isa.memory, end)
  def store(m: Any) -> None:
    data = value(m)
    assert place(m) % len(data) == 0, f"{inst}: address {place(m):#x} is no multiple of {len(data)}"
    m.memory.write(place(m), data)
  return store

def gather(inst: MInst, index_kind: str, size: int) -> Callable[[Any], None]:
  out, at, number = inst.operands[0], inst.row.isa.memory, mask_of(inst)
  base, index, scale, displacement = inst.operands[at:at + 4]
  lane_mask = None if number >= 0 else inst.operands[at + 4]
  fmt = {4: "i", 8: "q"}[size]
  numbers = {out.index, index.index} | ({lane_mask.index} if lane_mask is not None else set())
  assert len(numbers) == (2 if lane_mask is None else 3), f"{inst}: registers of a gather must differ"
  def step(m: Any) -> None:
    places = unpack(m.vector[index.index][:index.cls.bits // 8], "i" if index_kind == "d" else "q")
    n = min(len(places), out.cls.bits // 8 // size)
    if lane_mask is None: gates = [m.masks[number] >> k & 1 for k in range(n)]
    else: gates = [v < 0 for v in unpack(m.vector[lane_mask.index][:n * size], fmt)]
    old = m.vector[out.index]
    data = b"".join(m.memory.read(m.general[base.index] + places[k] * scale + displacement & (1 << 64) - 1, size)
                    if gates[k]
                    else old[k * size:k * size + size] for k in range(n))
    m.vector[out.index] = data.ljust(64, b"\0")
    if lane_mask is None: m.masks[number] = 0
    else: m.vector[lane_mask.index] = bytes(64)
  return step

# ***** mask registers *****

WIDTHS = {"b": 8, "w": 16, "d": 32, "q": 64}
LOGIC: dict[str, Callable[..., int]] = {
  "and": operator.and_, "or": operator.or_, "xor": operator.xor, "andn": lambda a, b: ~a & b, "xnor": lambda a,
  b: ~(a ^ b), "not": operator.invert,
  "shiftr": lambda a, n: a >> n if n < 64 else 0, "shiftl": lambda a, n: a << n if n < 64 else 0, "mov": int,
}

JOINS = {"kunpckbw": 8, "kunpckwd": 16, "kunpckdq": 32}

def join(inst: MInst, bits: int) -> Callable[[Any], None]:
  out, high, low = (o.index for o in inst.operands)
  ones = (1 << bits) - 1
  return lambda m: m.masks.__setitem__(out, (m.masks[high] & ones) << bits | m.masks[low] & ones)

def masks(inst: MInst, end: int) -> Callable[[Any], None] | None:
  name, shown = inst.row.name, inst.row.isa.syntax
  if name in JOINS: return join(inst, JOINS[name])
  found = re.fullmatch(r"k(andn|and|or|xnor|xor|not|shiftr|shiftl|mov)([bwdq])", name)
  if not found: return None
  f, ones = LOGIC[found[1]], (1 << WIDTHS[found[2]]) - 1
  gets = [source(inst, n, end) for n in range(1, len(shown))]
  as_int: Get = lambda x: x if isinstance(x, int) else int.from_bytes(x, "little")
  def value(m: Any) -> int: return f(*[as_int(g(m)) & ones for g in gets]) & ones
  if shown[0][1].category == "memory":
    place = addresser(inst, 0, end)
    return lambda m: m.memory.write(place(m), value(m).to_bytes(WIDTHS[found[2]] // 8, "little"))
  out = inst.operands[0]
  if out.cls.bank is regs.MASK: return lambda m: m.masks.__setitem__(out.index, value(m))
  return lambda m: m.general.__setitem__(out.index, value(m))

def prepare(inst: MInst, end: int) -> Callable[[Any], None] | None:
  """The step of a vector or mask instruction that ends at address `end`, or None."""
  if inst.row.name[0] not in "vk": return None
  if inst.row.name == "vzeroupper":
    return lambda m: m.vector.__setitem__(slice(0, 16), [v[:16].ljust(64, b"\0") for v in m.vector[:16]])
  for rule in (lanewise, compares, blends, masks, memory, crossings, moved):
    step = rule(inst, end)
    if step is not None: return step
  return None
