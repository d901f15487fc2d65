"""The toy's registers and its instruction table. Encoding and decoding follow from the rows.

A wave has 8 lanes. Scalar registers s0-s31 hold one value for all lanes, vector registers v0-v63 one for each lane.
Both are 32 bits wide. 64-bit values take aligned pairs s[2:3], v[4:5]. The matrix unit takes aligned quads v[8:11].
Predicates p0-p7 have a bit for each lane, and p7 is all ones.

An instruction is a 128-bit word. An operand is `name access class`. Access "=" writes, "+" writes and reads, ":" reads.
The name of an operand is its field in the word. Classes:

- x: a register of the row's bank (s or v) and type (p for bools).
- y: as x, but of the type that is converted.
- i: 32 bits of the row's bank.
- s1 s2 v1 v2 v4 p1: that class.
- #: an integer.
- @: a block.
"""
from __future__ import annotations
from typing import Any, NamedTuple
from collections.abc import Iterator

from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.errors import DecodeError
from tinyhw.machine.ir.inst import Access, Bank, Block, Effect, Inst, MInst, Operand, Reg, RegClass
from tinyhw.machine.notation.bits import fmt

LANES = 8
SCALAR = Bank("s", 32, tuple(range(32)))
VECTOR = Bank("v", 64, tuple(range(64)))
PREDICATE = Bank("p", 8, tuple(range(7)))

def register_class(bank: Bank, units: int, bits: int) -> RegClass:
  """Return a class of registers of several units, aligned to their count."""
  names = tuple(f"{bank.name}{i}" if units == 1 else f"{bank.name}[{i}:{i + units - 1}]" for i in range(bank.count))
  return RegClass(f"{bank.name}{units}", bank, bits, units, units, names)

S1, S2, P1 = register_class(SCALAR, 1, 32), register_class(SCALAR, 2, 64), register_class(PREDICATE, 1, 1)
V1, V2, V4 = (register_class(VECTOR, n, 32 * n) for n in (1, 2, 4))
CLASSES = {c.name: c for c in (S1, S2, V1, V2, V4, P1)}
ALWAYS = Reg(P1, index=7)

NONE, BOOL = (dtypes.void,), (dtypes.bool,)
INTS = (dtypes.uint32, dtypes.int32, dtypes.uint64, dtypes.int64)
FLOATS = (dtypes.float32, dtypes.float64)
NUMBERS = (dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16, *INTS, *FLOATS)
TYPES = NONE + BOOL + NUMBERS
SUFFIX = {d: ALIASES_BY_TYPE[d][0] + str(d.bitsize) for d in NUMBERS} | {dtypes.bool: "b"}  # f32, u8, i16, ...

WORD = fmt("op:8 vector:1 type:4 source:4 dst:8 a:8 b:8 c:8 d:8 p:3 _:4 imm:64s")

class Form(NamedTuple):
  """The contents of a row's word besides its operands: the operation, its bank and its types. They decide what the row
  does."""
  operation: str
  vector: bool
  dtype: DType
  source: DType

class Rows(NamedTuple):
  """One line of the table. It stands for a row for each operation, bank and type."""
  operations: str
  operands: str
  types: tuple[DType, ...] = NONE
  sources: tuple[DType, ...] = NONE
  effects: int = Effect.NONE

LINES = (
  #    operations                                     operands                        types; effects
  Rows("add sub mul max idiv mod shl shr",            "dst=x a:x b:x",                INTS),
  Rows("add sub mul max fdiv",                        "dst=x a:x b:x",                FLOATS),
  Rows("mulacc",                                      "dst=x a:x b:x c:x",            INTS + FLOATS),
  Rows("neg sqrt trunc reciprocal",                   "dst=x a:x",                    FLOATS),
  Rows("cmplt cmpne cmpeq",                           "dst=p1 a:x b:x",               INTS + FLOATS),
  Rows("and or xor",                                  "dst=x a:x b:x",                INTS + BOOL),
  Rows("cast",                                        "dst=x a:y",                    NUMBERS, NUMBERS),
  # dst keeps its old value where p is not set
  Rows("where",                                       "dst+x p:p1 a:x",               NUMBERS + BOOL),
  Rows("const",                                       "dst=x imm#",                   NUMBERS + BOOL),
  Rows("spread",                                      "dst=v1 a:s1"),
  Rows("spread_pair",                                 "dst=v2 a:s2"),
  Rows("quad",                                        "dst=v4 a:v1 b:v1 c:v1 d:v1"),
  Rows("part",                                        "dst=v1 a:v4 imm#"),
  # (4, 4) x (4, 8) + (4, 8), see hardware.mma
  Rows("mma",                                         "dst+v4 a:v4 b:v4"),
  # A loaded value is available after a `wait`. The address is a + b * size + imm. No memory is touched where p is not
  # set.
  Rows("load",                                        "dst=x a:s2 b:i imm#",          NUMBERS + BOOL,
       effects=Effect.LOAD),
  Rows("load_if",                                     "dst+x p:p1 a:s2 b:i imm#",     NUMBERS + BOOL,
       effects=Effect.LOAD),
  Rows("store",                                       "p:p1 a:s2 b:i imm# c:x",       NUMBERS + BOOL,
       effects=Effect.STORE),
  Rows("local_load",                                  "dst=x b:i imm#",               NUMBERS + BOOL,
       effects=Effect.LOAD),
  Rows("local_load_if",                               "dst+x p:p1 b:i imm#",          NUMBERS + BOOL,
       effects=Effect.LOAD),
  Rows("local_store",                                 "p:p1 b:i imm# c:x",            NUMBERS + BOOL,
       effects=Effect.STORE),
  # wait until at most imm loads are in flight
  Rows("wait",                                        "imm#",                         effects=Effect.BARRIER),
  Rows("barrier",                                     "",                             effects=Effect.BARRIER),
  Rows("jump",                                        "imm@",                         effects=Effect.JUMP | Effect.END),
  Rows("jump_if",                                     "p:p1 imm@",                    effects=Effect.JUMP),
  Rows("end",                                         "",                             effects=Effect.END),
  # For the machine passes. save and restore use memory of the wave's own
  *(Rows(f"move_{c}",                                 f"dst={c} a:{c}") for c in CLASSES),
  *(Rows(f"swap_{c}",                                 f"dst+{c} a+{c}") for c in ("s1", "v1", "p1")),
  *(Rows(f"save_{c}",                                 f"a:{c} imm#") for c in CLASSES),
  *(Rows(f"restore_{c}",                              f"dst={c} imm#") for c in CLASSES),
)
# the opcode is the position here
OPERATIONS = list(dict.fromkeys(name for line in LINES for name in line.operations.split()))
ACCESS = {":": Access.READ, "=": Access.WRITE, "+": Access.BOTH, "#": Access.READ, "@": Access.READ}

def operand(text: str, form: Form) -> Operand:
  """Parse an operand of a row."""
  at = next(i for i, c in enumerate(text) if c in ACCESS)
  name, mark, word = text[:at], text[at], text[at + 1:]
  if mark in "#@": return Operand(name, Access.READ, kind="integer" if mark == "#" else "block")
  dtype = {"x": form.dtype, "y": form.source, "i": dtypes.int32}.get(word)
  if dtype is not None: word = "p1" if dtype is dtypes.bool else "sv"[form.vector] + "12"[dtype.itemsize == 8]
  return Operand(name, ACCESS[mark], CLASSES[word])

def make_rows() -> Iterator[Inst]:
  """Return every row. Its name is "v_add.f32", "s_cast.f32.i32" or "barrier"."""
  for line in LINES:
    banked = any(word[-1] in "xyi" for word in line.operands.split())
    for operation in line.operations.split():
      for form in (Form(operation, v, t, s) for v in ((False, True) if banked else (False,)) for t in line.types
                   for s in line.sources):
        name = ("v_" if form.vector else "s_") * banked + ".".join([operation]
                                                                   + [SUFFIX[d] for d in form[2:] if d in SUFFIX])
        operands = tuple(operand(text, form) for text in line.operands.split())
        yield Inst(name, WORD, operands, operation, line.effects, isa=form, rematerialize=operation == "const")

TABLE = {row.name: row for row in make_rows()}
BY_FORM = {row.isa: row for row in TABLE.values()}

def encode(inst: MInst, position: dict[Block, int]) -> bytes:
  """Return the word of an instruction over physical registers. position: the number of each block's first word.

  Raises EncodeError for operands that do not fit.
  """
  form = inst.row.isa
  fields: dict[str, Any] = dict.fromkeys(WORD.fields, 0)
  fields |= {"op": OPERATIONS.index(form.operation), "vector": int(form.vector), "type": TYPES.index(form.dtype),
             "source": TYPES.index(form.source)}
  for o, value in zip(inst.row.operands, inst.operands):
    fields[o.name] = value.index if isinstance(value, Reg) else position.get(value, value)
  return WORD.pack(**fields).to_bytes(16, "little")

def decode(text: bytes) -> Iterator[MInst]:
  """Return the instructions of code. A block is the number of its first word. Raises DecodeError for an invalid
  word."""
  for word in (text[at:at + 16] for at in range(0, len(text), 16)):
    fields = WORD.unpack(int.from_bytes(word, "little")) or {}
    try:
      row = BY_FORM[Form(OPERATIONS[fields["op"]], bool(fields["vector"]), TYPES[fields["type"]],
                         TYPES[fields["source"]])]
    except (IndexError, KeyError): raise DecodeError(f"{word.hex()} is no instruction of the toy accelerator") from None
    yield MInst(row, [fields[o.name] if o.cls is None else Reg(o.cls, index=fields[o.name]) for o in row.operands])
