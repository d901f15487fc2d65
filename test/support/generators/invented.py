"""Two invented ISAs, an interpreter for both, and random functions over them. The tests of the machine passes use them
as their oracle.

CISC resembles x86: destructive operands, a shift count in one register, a division in two, flags, a call that destroys
registers.

LANES resembles a GPU: pairs and quads that must be aligned, two banks of data and one of predicates, predicated writes,
early writes. The meaning of a row is its `isa` field: a function (machine, values read, integers) -> values written; a
jump returns whether it is taken.
"""
from __future__ import annotations
import random
from typing import Any
from collections.abc import Callable

from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.ir.inst import Access, Bank, Block, Effect, Function, Inst, MInst, Operand, Reg, RegClass
from tinyhw.machine.ir.pseudo import PARALLEL, PSEUDO
from tinyhw.machine.ir.target import Capabilities, Target

ADDRESSES = 61  # memory wraps around, so that every address is one

class Machine:
  """Registers by unit, memory, stack, flags."""
  def __init__(self, memory: dict[int, int], rng: random.Random):
    self.memory, self.flags, self.rng = dict(memory), 0, rng
    self.stack: dict[int, int] = {}
    self.units: dict[tuple[str, int], int] = {}
    self.log: list[Any] = []

  def get(self, reg: Reg) -> int:
    each, value = reg.cls.bits // reg.cls.units, 0
    assert reg.index is not None
    for i in range(reg.cls.units):
      key = (reg.cls.bank.name, reg.index + i)
      if key not in self.units: self.units[key] = self.rng.getrandbits(64)
      value |= (self.units[key] & (1 << each) - 1) << each * i
    return value

  def put(self, reg: Reg, value: int) -> None:
    each = reg.cls.bits // reg.cls.units
    assert reg.index is not None
    for i in range(reg.cls.units): self.units[(reg.cls.bank.name, reg.index + i)] = value >> each * i & (1 << each) - 1

  def clobber(self, bank: str, index: int) -> None: self.units[(bank, index)] = self.rng.getrandbits(64)

Meaning = Callable[[Machine, list[int], list[int]], Any]

def rows(text: str, classes: dict[str, RegClass], meanings: dict[str, Meaning]) -> dict[str, Inst]:
  """One row a line: `name operand ... | flags`.

  An operand: [=+!]class[@fixed][:tie], or `i` for an integer, or `b` for a block.
  """
  table = {}
  words = {"load": Effect.LOAD, "store": Effect.STORE, "rf": Effect.READ_FLAGS, "wf": Effect.WRITE_FLAGS,
           "jump": Effect.JUMP, "end": Effect.END,
           "call": Effect.CALL, "barrier": Effect.BARRIER}
  for line in filter(str.strip, text.splitlines()):
    head, _, tail = line.partition("|")
    name, *operands = head.split()
    made = []
    for k, o in enumerate(operands):
      if o in ("i", "b"):
        made.append(Operand(f"{o}{k}", Access.READ, kind="imm" if o == "i" else "block"))
        continue
      early = o.startswith("!")
      access = {"=": Access.WRITE, "!": Access.WRITE, "+": Access.BOTH}.get(o[0], Access.READ)
      o, _, tie = o.lstrip("=+!").partition(":")
      o, _, fixed = o.partition("@")
      made.append(Operand(f"{o}{k}", access, classes[o], tie=int(tie) if tie else None, fixed=int(fixed) if fixed
                          else None, early=early))
    effects, extra = Effect.NONE, {}
    for word in tail.split():
      if word in words: effects |= words[word]
      elif word == "const": extra["rematerialize"] = True
      elif word.startswith("commutes"): extra["commutes"] = tuple(int(c) for c in word[8:].split(","))
      elif word.startswith("clobbers"):
        bank, _, numbers = word[8:].partition(":")
        extra["clobbers"] = extra.get("clobbers", ()) + tuple((classes[bank].bank, int(n)) for n in numbers.split(","))
    table[name] = Inst(name, text, tuple(made), name, effects, isa=meanings[name], **extra)
  return table

M64, M32 = (1 << 64) - 1, (1 << 32) - 1

def store(m: Machine, address: int, value: int) -> None:
  m.memory[address % ADDRESSES] = value
  m.log.append((address % ADDRESSES, value))

def setflags(m: Machine, value: int) -> int:
  m.flags = value
  return value

# CISC

def cisc(general: int = 10, vectors: int = 6, swap: bool = True, wide: bool = False) -> Target:
  """general: how many of the general registers are allocatable (at least 7), vectors: how many vector registers, of 16
  or (wide) 32."""
  gpr = Bank("gpr", 16, tuple([3, 5, 6, 7, 0, 1, 2, 8, 9, 10, 11, 12, 13, 14, 15])[:max(general, 7)])
  vec = Bank("vec", 32 if wide else 16, tuple(range(vectors)))
  r64 = RegClass("r64", gpr, 64, names=tuple(f"r{i}" for i in range(16)))
  r32 = RegClass("r32", gpr, 32, names=tuple(f"e{i}" for i in range(16)))
  v = RegClass("v", vec, 64, names=tuple(f"v{i}" for i in range(32)))
  classes = {"r": r64, "e": r32, "v": v}
  table = rows(CISC_TEXT, classes, CISC_MEANINGS)
  def move(dst: Reg, src: Reg) -> MInst:
    return MInst(table[{v: "vmov", r64: "mov"}.get(dst.cls, "mov32")], [dst, src])
  def exchange(a: Reg, b: Reg) -> list[MInst]:
    if a.cls is not v: return [MInst(table["xchg" if a.cls is r64 else "xchg32"], [a, b])]
    return [MInst(table["vxor"], [x, y, z]) for x, y, z in ((a, a, b), (b, a, b), (a, a, b))]
  def invert(inst: MInst) -> MInst | None:
    return MInst(table[INVERSE[inst.row.name]], list(inst.operands)) if inst.row.name in INVERSE else None
  return Target(
    "cisc", Capabilities(32, vectors), (gpr, vec), (r64, r32, v), move=move, invert=invert,
    spill=lambda reg, slot: MInst(table[{v: "vpush", r64: "push"}.get(reg.cls, "push32")], [reg, slot]),
    reload=lambda reg, slot: MInst(table[{v: "vpop", r64: "pop"}.get(reg.cls, "pop32")], [reg, slot]),
    jump=lambda block: MInst(table["jmp"], [block]), swap=exchange if swap else None, table=table,
    latency={"vfma": PipeCost(4, "01"), "vload": PipeCost(5, "23", "load"), "vadd": PipeCost(4, "01"),
             "add": PipeCost(1, "0156"),
             "inc": PipeCost(1, "0156"), "cmp": PipeCost(1, "0156"), "jl": PipeCost(1, "6"),
             "vstore": PipeCost(4, "4|78", "store"),
             "load": PipeCost(5, "23", "load")})

INVERSE = {"jl": "jge", "jge": "jl"}

CISC_TEXT = """
movi =r i | const
zero =v | const
mov =r r
mov32 =e e
vmov =v v
xchg +r +r
xchg32 +e +e
vxor =v v v
add +r r | wf commutes0,1
sub +r r | wf
inc +r | wf
lea =r r r i
add32 +e e | wf commutes0,1
shl +r r@1 | wf
div +r@0 +r@2 r | wf
mulx =r =r r@2 r
cmp r r | wf
setl =r | rf
cmovl +r r | rf
load =r r i | load
store r i r | store
vload =v r i | load
vstore r i v | store
vadd =v v v
vsub2 =v:1 v v
vfma +v v v
vset =v r
vget =r v
call r@7 =r@0 | call clobbersr:0,1,2,6,7 clobbersv:0,1
push r i
push32 e i
vpush v i
pop =r i
pop32 =e i
vpop =v i
jl b | rf jump
jge b | rf jump
jmp b | jump end
ret r@0 | end
"""

def _stack(bits: int) -> tuple[Meaning, Meaning]:
  def push(m: Machine, x: list[int], i: list[int]) -> tuple[int, ...]:
    m.stack[i[0]] = x[0]
    return ()
  return push, lambda m, x, i: (m.stack[i[0]],)

def _call(m: Machine, x: list[int], i: list[int]) -> tuple[int, ...]:
  m.log.append(("call", x[0]))
  m.flags = x[0] & 1
  return (x[0] * 7 + 3,)

def _store(m: Machine, x: list[int], i: list[int]) -> tuple[int, ...]:
  store(m, x[0] + i[0], x[1])
  return ()

def _cmp(m: Machine, x: list[int], i: list[int]) -> tuple[int, ...]:
  m.flags = 1 if x[0] < x[1] else 0
  return ()

PUSH, POP = _stack(64)
def _load(m: Machine, x: list[int], i: list[int]) -> tuple[int]: return (m.memory[(x[0] + i[0]) % ADDRESSES],)

CISC_MEANINGS: dict[str, Meaning] = {
  "movi": lambda m, x, i: (i[0],), "zero": lambda m, x, i: (0,), "mov": lambda m, x, i: (x[0],), "mov32": lambda m, x,
  i: (x[0],),
  "vmov": lambda m, x, i: (x[0],), "xchg": lambda m, x, i: (x[1], x[0]), "xchg32": lambda m, x, i: (x[1], x[0]),
  "vxor": lambda m, x, i: (x[0] ^ x[1],),
  "add": lambda m, x, i: (setflags(m, x[0] + x[1] & M64),), "sub": lambda m, x, i: (setflags(m, x[1] - x[0] & M64),),
  "inc": lambda m, x, i: (setflags(m, x[0] + 1),), "lea": lambda m, x, i: (x[0] + x[1] + i[0],),
  "add32": lambda m, x, i: (setflags(m, x[0] + x[1] & M32),),
  "shl": lambda m, x, i: (setflags(m, x[1] << x[0] % 7 & M64),),
  "div": lambda m, x, i: ((x[1] * 3 + x[2]) // (x[0] % 97 + 1), setflags(m, (x[1] + x[2] * 5) % (x[0] % 97 + 1))),
  "mulx": lambda m, x, i: (x[0] * x[1] & M64, x[0] * x[1] >> 64),
  "cmp": _cmp, "setl": lambda m, x, i: (m.flags & 1,), "cmovl": lambda m, x, i: (x[0] if m.flags & 1 else x[1],),
  "load": _load, "store": _store, "vload": _load, "vstore": _store,
  "vadd": lambda m, x, i: (x[0] + 3 * x[1],), "vsub2": lambda m, x, i: (x[0] - 5 * x[1],), "vfma": lambda m, x,
  i: (x[2] + x[0] * (x[1] + 1),),
  "vset": lambda m, x, i: (x[0] * 11,), "vget": lambda m, x, i: (x[0] + 1,), "call": _call,
  "push": PUSH, "push32": PUSH, "vpush": PUSH, "pop": POP, "pop32": POP, "vpop": POP,
  "jl": lambda m, x, i: m.flags & 1 == 1, "jge": lambda m, x, i: m.flags & 1 == 0, "jmp": lambda m, x, i: True,
  "ret": lambda m, x, i: m.log.append(("ret", x[0])) or (),
}

# LANES

def lanes(units: int = 16, scalars: int = 4, swap: bool = True) -> Target:
  """units: of the bank that has singles, pairs and quads (a multiple of 4), scalars: registers of the other bank."""
  data, scalar, pred = Bank("data", 64, tuple(range(units))), Bank("scalar", 16,
                                                                   tuple(range(scalars))), Bank("pred", 4, (0, 1, 2))
  names = tuple(f"d{i}" for i in range(64))
  d1, d2 = RegClass("d1", data, 32, 1, 1, names), RegClass("d2", data, 64, 2, 2,
                                                           tuple(f"d[{i}:{i + 1}]" for i in range(64)))
  d4 = RegClass("d4", data, 128, 4, 4, tuple(f"d[{i}:{i + 3}]" for i in range(64)))
  d3 = RegClass("d3", data, 96, 3, 4, tuple(f"d[{i}:{i + 2}]" for i in range(64)))
  s1 = RegClass("s1", scalar, 32, names=tuple(f"s{i}" for i in range(16)))
  p1 = RegClass("p1", pred, 1, names=tuple(f"p{i}" for i in range(4)))
  classes = {c.name: c for c in (d1, d2, d4, d3, s1, p1)}
  text, meanings = LANES_TEXT, dict(LANES_MEANINGS)
  for c in classes:
    text += f"\nmov.{c} ={c} {c}\nput.{c} {c} i\nget.{c} ={c} i\nxchg.{c} +{c} +{c}"
    meanings |= {f"mov.{c}": lambda m, x, i: (x[0],), f"put.{c}": PUSH, f"get.{c}": POP, f"xchg.{c}": lambda m, x,
                 i: (x[1], x[0])}
  table = rows(text, classes, meanings)
  return Target(
    "lanes", Capabilities(0, units, lanes=True), (data, scalar, pred), tuple(classes.values()), table=table,
    move=lambda dst, src: MInst(table[f"mov.{dst.cls.name}"], [dst, src]), spill=lambda reg,
    slot: MInst(table[f"put.{reg.cls.name}"], [reg, slot]),
    reload=lambda reg, slot: MInst(table[f"get.{reg.cls.name}"], [reg, slot]),
    jump=lambda block: MInst(table["bra"], [block]),
    swap=(lambda a, b: [MInst(table[f"xchg.{a.cls.name}"], [a, b])]) if swap else None)

LANES_TEXT = """
imm =d1 i | const
simm =s1 i | const
add =d1 d1 d1
add2 =d2 d2 d2
add4 =d4 d4 d4
add3 =d3 d3 d3
dup4 =d4 d1
low =d1 d4
high =d1 d4
pack =d2 d1 d1
sum2 =d1 d2
widen !d4 d1 d2
mix3 =d3 d1 d2
sum3 =d1 d3
mad =d1:1 d1 d1 d1
mma +d4 d2 d2
padd +d1 p1 d1 d1
setp =p1 d1 d1
pand =p1 p1 p1
sel =d1 p1 d1 d1
uni =s1 d1
sadd +s1 s1 | commutes0,1
spread =d1 s1
ld4 =d4 s1 i | load
st4 s1 i d4 | store
st1 s1 i d1 | store
tex =d4@8 d1@0 d2@2
brp p1 b | jump
brn p1 b | jump
bra b | jump end
exit | end
"""

def _quad(m: Machine, x: list[int], i: list[int]) -> tuple[int]:
  return (sum((m.memory[(x[0] + i[0] + k) % ADDRESSES] & M32) << 32 * k for k in range(4)),)

LANES_MEANINGS: dict[str, Meaning] = {
  "imm": lambda m, x, i: (i[0],), "simm": lambda m, x, i: (i[0],), "add": lambda m, x, i: (x[0] + 3 * x[1],),
  "add2": lambda m, x, i: (x[0] + 3 * x[1],), "add4": lambda m, x, i: (x[0] + 3 * x[1],), "add3": lambda m, x,
  i: (x[0] + 3 * x[1],),
  "dup4": lambda m, x, i: (x[0] * (1 | 1 << 32 | 1 << 64 | 1 << 96),), "low": lambda m, x, i: (x[0] & M32,),
  "high": lambda m, x, i: (x[0] >> 96,),
  "pack": lambda m, x, i: (x[0] | x[1] << 32,), "sum2": lambda m, x, i: ((x[0] & M32) + 7 * (x[0] >> 32),),
  "widen": lambda m, x, i: (x[0] | x[1] << 64,), "mix3": lambda m, x, i: (x[0] << 64 | x[1],), "sum3": lambda m, x,
  i: (x[0] % 1000003,),
  "mad": lambda m, x, i: (x[0] + x[1] * x[2],), "mma": lambda m, x, i: (x[2] * 3 + (x[0] << 13) + x[1],),
  "padd": lambda m, x, i: (x[1] + x[2] if x[0] else x[3],), "setp": lambda m, x, i: (1 if x[0] % 8 < x[1] % 8 else 0,),
  "pand": lambda m, x, i: (x[0] & x[1],), "sel": lambda m, x, i: (x[1] if x[0] else x[2],), "uni": lambda m, x,
  i: (x[0] * 5,),
  "sadd": lambda m, x, i: (x[0] + x[1],), "spread": lambda m, x, i: (x[0] * 9,), "ld4": _quad, "st4": _store,
  "st1": _store,
  "tex": lambda m, x, i: (x[0] * 17 + (x[1] << 33),),
  "brp": lambda m, x, i: x[0] == 1, "brn": lambda m, x, i: x[0] == 0, "bra": lambda m, x, i: True, "exit": lambda m, x,
  i: (),
}

# the interpreter

def run(function: Function, arguments: list[int], memory: dict[int, int], seed: int = 0,
        fuel: int = 20000) -> list[Any]:
  """Return the effects of a function: its stores, calls and return value in order. Works on virtual, mixed and physical
  code."""
  m, env = Machine(memory, random.Random(seed)), {}

  def get(r: Reg) -> int: return env[r.id] if r.index is None else m.get(r)

  def put(r: Reg, value: int) -> None:
    value &= (1 << r.cls.bits) - 1
    if r.index is None: env[r.id] = value
    else: m.put(r, value)

  block = function.blocks[0]
  for p, a in zip(block.params, arguments): put(p, a)
  while True:
    for inst in block.insts:
      fuel -= 1
      if fuel < 0: raise TimeoutError("out of fuel")
      row, operands = inst.row, inst.operands
      reads = [get(operands[i]) for i in row.only_reads] + [get(r)
                                                            for r in (inst.ties or [operands[i] for i in row.both])]
      if row is PARALLEL:
        values = [get(r) for r in operands[1::2]]
        for r, value in zip(operands[::2], values): put(r, value)
        continue
      if row.encoding is PSEUDO:
        if row.name == "copy": put(operands[0], reads[0])
        elif row.name == "spill": m.stack[operands[1]] = reads[0]
        elif row.name == "reload": put(operands[0], m.stack[operands[1]])
        else:
          put(operands[0], reads[1])
          put(operands[1], reads[0])
        continue
      result = row.isa(m, reads, [o for o in operands if isinstance(o, int)])
      if row.effects & Effect.JUMP:
        if not result: continue
        target = next(o for o in operands if isinstance(o, Block))
        passed = ([get(a) if a.index is not None else env.get(a.id, 0) for a in inst.arguments[0]] if inst.arguments
                  else [])
        for p, value in zip(target.params, passed): put(p, value)
        block = target
        break
      for bank, number in row.clobbers: m.clobber(bank.name, number)
      for i, value in zip(row.writes, result): put(operands[i], value)
      if row.effects & Effect.END: return m.log
    else:  # falls through, as laid out
      block = function.blocks[function.blocks.index(block) + 1]

# random functions

class Maker:
  """Makes a random function: nested loops and diamonds, values of all classes, as many live as `pressure` says."""
  def __init__(self, target: Target, seed: int, pressure: int, size: int):
    self.rng, self.target, self.pressure, self.budget = random.Random(seed), target, pressure, size
    self.table: Any = target.table
    self.function = Function(f"random{seed}")
    self.block = self.function.new_block(0, "entry")
    self.classes = {c.name: c for c in target.classes}
    self.cisc = target.name == "cisc"
    skip = {"jl", "jge", "jmp", "ret", "brp", "brn", "bra", "exit", "cmp", "setl", "cmovl", "mov", "mov32", "vmov",
            "xchg", "xchg32", "vxor", "push",
            "push32", "vpush", "pop", "pop32", "vpop"}
    self.ops = [row for name, row in self.table.items() if name not in skip and "." not in name]
    self.base = self.classes["r64" if self.cisc else "s1"]

  def emit(self, name: str, *operands: Any, ties: tuple[Reg, ...] = (), arguments: tuple[list[Reg], ...] = ()) -> None:
    self.block.insts.append(MInst(self.table[name], list(operands), ties=ties, arguments=arguments))

  def value(self, cls: RegClass, pool: list[Reg]) -> Reg:
    """A value of a class: one that exists, or a constant, or a conversion."""
    found = [r for r in pool if r.cls.bank is cls.bank and (r.cls is cls or self.cisc)]
    if found and self.rng.random() < 0.9:
      return self.rng.choice(found[-self.pressure:] if self.rng.random() < 0.5 else found)
    made = self.function.new_reg(cls)
    if self.cisc and cls.bank.name == "vec": self.emit("zero", made)
    elif self.cisc and cls is self.base: self.emit("movi", made, self.rng.randrange(1000))
    elif self.cisc: self.emit("add32", made, self.value(cls, pool), ties=(self.value(self.base, pool),))
    elif cls.name == "s1": self.emit("simm", made, self.rng.randrange(1000))
    elif cls.name == "d1": self.emit("imm", made, self.rng.randrange(1000))
    elif cls.name == "d2":
      self.emit("pack", made, self.value(self.classes["d1"], pool), self.value(self.classes["d1"], pool))
    elif cls.name == "d3":
      self.emit("mix3", made, self.value(self.classes["d1"], pool), self.value(self.classes["d2"], pool))
    elif cls.name == "d4": self.emit("dup4", made, self.value(self.classes["d1"], pool))
    else: self.emit("setp", made, self.value(self.classes["d1"], pool), self.value(self.classes["d1"], pool))
    pool.append(made)
    return made

  def step(self, pool: list[Reg]) -> None:
    """One random instruction."""
    rng = self.rng
    if self.cisc and rng.random() < 0.15:
      self.emit("cmp", self.value(self.base, pool), self.value(self.base, pool))
      a, b = self.value(self.base, pool), self.function.new_reg(self.base)
      if self.block.insts[-1].row.name != "cmp": self.emit("cmp", a, a)
      if rng.random() < 0.5: self.emit("setl", b)
      else: self.emit("cmovl", b, rng.choice([r for r in pool if r.cls is self.base]), ties=(a,))
      pool.append(b)
      return
    row = rng.choice(self.ops)
    while row.name in ("call", "tex", "div") and rng.random() < 0.6: row = rng.choice(self.ops)
    operands: list[Any] = [None] * len(row.operands)
    for i in row.only_reads: operands[i] = self.value(row.operands[i].cls or self.base, pool)
    ties = tuple(self.value(row.operands[i].cls or self.base, pool) for i in row.both)
    made = []
    for i, o in enumerate(row.operands):
      if o.cls is None: operands[i] = rng.randrange(20)
      elif i in row.writes:
        operands[i] = self.function.new_reg(o.cls)
        made.append(operands[i])
    self.block.insts.append(MInst(row, operands, ties=ties))
    pool += made

  def region(self, pool: list[Reg], depth: int) -> list[Reg]:
    """Code from the current block on; returns the values that may be used after it."""
    for _ in range(self.rng.randrange(1, 5)):
      if self.budget <= 0: break
      for _ in range(self.rng.randrange(1, 12)):
        self.budget -= 1
        self.step(pool)
      choice = self.rng.random()
      if depth < 3 and choice < 0.35: pool = self.diamond(pool, depth)
      elif depth < 3 and choice < 0.75: pool = self.loop(pool, depth)
    return pool

  def branch(self, a: Reg, b: Reg, then: Block, then_arguments: list[Reg], other: Block,
             other_arguments: list[Reg]) -> None:
    if self.cisc:
      self.emit("cmp", a, b)
      self.emit("jl", then, arguments=(then_arguments,))
      self.emit("jmp", other, arguments=(other_arguments,))
    else:
      p = self.function.new_reg(self.classes["p1"])
      self.emit("setp", p, a, b)
      self.emit("brp", p, then, arguments=(then_arguments,))
      self.emit("bra", other, arguments=(other_arguments,))

  def sample(self, pool: list[Reg], count: int) -> list[Reg]:
    return [self.rng.choice(pool) for _ in range(min(count, len(pool)))] if pool else []

  def like(self, values: list[Reg]) -> list[Reg]: return [self.function.new_reg(r.cls) for r in values]

  def matching(self, values: list[Reg], pool: list[Reg]) -> list[Reg]:
    """For each value, a random one of the same class."""
    return [self.rng.choice([r for r in pool if r.cls is v.cls]) for v in values]

  def scalar(self, pool: list[Reg]) -> Reg: return self.value(self.base if self.cisc else self.classes["d1"], pool)

  def diamond(self, pool: list[Reg], depth: int) -> list[Reg]:
    a, b = self.scalar(pool), self.scalar(pool)
    then, join = self.function.new_block(self.block.depth, "then"), self.function.new_block(self.block.depth, "join")
    joined = self.sample(pool, self.rng.randrange(0, 6))
    join.params = self.like(joined)
    if self.rng.random() < 0.4:  # without an else: the edge to the join is critical
      self.branch(a, b, then, [], join, joined)
    else:
      other = self.function.new_block(self.block.depth, "else")
      self.branch(a, b, then, [], other, [])
      self.block = other
      inner = self.region(list(pool), depth + 1)
      self.emit("jmp" if self.cisc else "bra", join, arguments=(self.matching(joined, inner),))
    self.block = then
    inner = self.region(list(pool), depth + 1)
    self.emit("jmp" if self.cisc else "bra", join, arguments=(self.matching(joined, inner),))
    self.block = join
    return pool + join.params

  def loop(self, pool: list[Reg], depth: int) -> list[Reg]:
    scalar = self.base if self.cisc else self.classes["d1"]
    zero, end, header, exit = (self.function.new_reg(scalar), self.function.new_reg(scalar),
                               self.function.new_block(self.block.depth + 1, "loop"),
                               self.function.new_block(self.block.depth, "exit"))
    constant = "movi" if self.cisc else "imm"
    self.emit(constant, zero, 0)
    self.emit(constant, end, self.rng.randrange(1, 4))
    carried = self.sample(pool, self.rng.randrange(0, self.pressure))
    counter = self.function.new_reg(scalar)
    header.params = [counter, *self.like(carried)]
    self.emit("jmp" if self.cisc else "bra", header, arguments=([zero, *carried],))
    self.block = header
    while_form, body = self.rng.random() < 0.3, list(pool) + header.params[1:]
    left = self.like(self.sample(pool, self.rng.randrange(0, 5)))
    exit.params = left
    if while_form:
      inside = self.function.new_block(header.depth, "body")
      self.branch(counter, end, inside, [], exit, self.matching(left, pool + header.params[1:]))
      self.block = inside
    body = self.region(body, depth + 1)
    following = self.function.new_reg(scalar)
    if self.cisc: self.emit("inc", following, ties=(counter,))
    else:
      one = self.function.new_reg(scalar)
      self.emit("imm", one, 1)
      three = self.function.new_reg(scalar)
      self.emit("mad", three, counter, one, one)
      following = three
    if self.rng.random() < 0.3: self.step(body)
    back = [following, *self.matching(carried, body)]
    if while_form: self.emit("jmp" if self.cisc else "bra", header, arguments=(back,))
    else: self.branch(following, end, header, back, exit, self.matching(left, body))
    self.block = exit
    return pool + left + ([] if while_form else header.params[1:])

  def make(self) -> Function:
    entry = self.block
    names = ("r64", "r64", "v", "r32") if self.cisc else ("d1", "s1", "d1", "d4")
    entry.params = [self.function.new_reg(self.classes[name]) for name in names]
    self.function.fixed_params = {0: 7, 1: 6} if self.cisc else {0: 1, 3: 8}
    pool = self.region(list(entry.params), 0)
    while self.budget > 0: pool = self.region(pool, 0)
    address = self.value(self.base, pool)
    for r in self.sample(pool, self.pressure) + pool[-3:]:
      if self.cisc and r.cls.bank.name == "vec": self.emit("vstore", address, self.rng.randrange(50), r)
      elif self.cisc: self.emit("store", address, self.rng.randrange(50), r)
      elif r.cls.name == "d4": self.emit("st4", address, self.rng.randrange(50), r)
      elif r.cls.name == "d1": self.emit("st1", address, self.rng.randrange(50), r)
    if self.cisc: self.emit("ret", address)
    else: self.emit("exit")
    return self.function

def random_function(target: Target, seed: int, pressure: int = 6, size: int = 60) -> Function:
  return Maker(target, seed, pressure, size).make()

def inputs(seed: int) -> tuple[list[int], dict[int, int]]:
  rng = random.Random(seed)
  return [rng.getrandbits(rng.choice((3, 8, 32))) for _ in range(4)], {i: rng.getrandbits(40) for i in range(ADDRESSES)}

# small functions by hand

class Build:
  """Writes a function for a target: `b.emit("add", new, a, ties=(old,))`, `b.new("r64")`, `b.block()`."""
  def __init__(self, target: Target, name: str = "small"):
    self.target, self.function = target, Function(name)
    self.classes = {c.name: c for c in target.classes}
    self.at = self.function.new_block(0, "entry")

  def new(self, name: str) -> Reg: return self.function.new_reg(self.classes[name])
  def many(self, name: str, count: int) -> list[Reg]: return [self.new(name) for _ in range(count)]

  def params(self, *names: str, fixed: dict[int, int] | None = None) -> list[Reg]:
    self.at.params = [self.new(name) for name in names]
    self.function.fixed_params = fixed or {}
    return self.at.params

  def emit(self, name: str, *operands: Any, ties: tuple[Reg, ...] = (), arguments: tuple[list[Reg], ...] = ()) -> MInst:
    table: Any = self.target.table
    inst = MInst(table[name], list(operands), None, arguments, "", ties)
    self.at.insts.append(inst)
    return inst

  def block(self, name: str, depth: int = 0, params: tuple[str, ...] = ()) -> Block:
    """A new block, which following instructions go to."""
    self.at = self.function.new_block(depth, name)
    self.at.params = [self.new(p) for p in params]
    return self.at

def matmul_loop(target: Target, accumulators: int, vectors: int) -> Function:
  """An inner loop with `accumulators` that it carries: per iteration a few vector loads and one broadcast are
  multiplied into them."""
  b = Build(target, "matmul")
  a, c = b.params("r64", "r64", fixed={0: 7, 1: 6})
  zero, end = b.new("r64"), b.new("r64")
  b.emit("movi", zero, 0)
  b.emit("movi", end, 3)
  start = b.many("v", accumulators)
  for r in start: b.emit("zero", r)
  entry = b.at
  loop = b.block("loop", 1, ("r64",) + ("v",) * accumulators)
  counter, *sums = loop.params
  b.at = entry
  b.emit("jmp", loop, arguments=([zero, *start],))
  b.at = loop
  columns = b.many("v", vectors)
  for k, v in enumerate(columns): b.emit("vload", v, c, k)
  results = []
  for row in range(accumulators // vectors):
    spread = b.new("v")
    b.emit("vload", spread, a, row)
    for k, v in enumerate(columns):
      results.append(b.new("v"))
      b.emit("vfma", results[-1], v, spread, ties=(sums[row * vectors + k],))
  following = b.new("r64")
  b.emit("inc", following, ties=(counter,))
  b.emit("cmp", following, end)
  done = b.block("done", 0, ("v",) * accumulators)
  b.at = loop
  b.emit("jl", loop, arguments=([following, *results],))
  b.emit("jmp", done, arguments=(results,))
  b.at = done
  for k, r in enumerate(done.params): b.emit("vstore", a, k, r)
  b.emit("ret", a)
  return b.function
