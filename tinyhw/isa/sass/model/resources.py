"""Effects and costs of NVIDIA's instructions on the resources of a card, for the model of machine/model/waves.py.

Control words (schedule.py) are part of the model: an instruction stalls its warp, waits for scoreboards, and takes
some. DEPBAR.LE waits for a scoreboard that counts memory operations in order (LDGDEPBAR). Products of a warpgroup run
asynchronously. The tensor core is busy for the time of their operations. "gsb" counts the groups for which
WARPGROUP.DEPBAR waits.
"""
from __future__ import annotations
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from tinyhw.isa.sass.model.latency import COSTS
from tinyhw.isa.sass.model.rates import CARDS, RESOURCES, costs
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import BRANCH
from tinyhw.isa.sass.table.control import NONE, SCOREBOARDS, USUAL, Control
from tinyhw.isa.sass.table.form import NO_GROUP, Form
from tinyhw.isa.sass.table.units import WARP, column
from tinyhw.isa.sass.table.uses import PRODUCTS, PRODUCTS_DONE
from tinyhw.machine.ir.inst import Effect, Function, MInst, Reg
from tinyhw.machine.model.traffic import Traffic
from tinyhw.machine.model.waves import Model
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

MOVES_DATA = Effect.LOAD | Effect.STORE
LOCAL = ("LDS", "STS", "LDSM", "STSM", "ATOMS")
PRIVATE = ("LDL", "STL")
NO_DATA = ("LDGDEPBAR", "CCTL", "QSPC", "ARRIVES", "LDC", "ULDC")  # they access no memory that counts towards a bound
READ_CYCLES = 20     # until late sources have been read; assumed
BANKS = 2            # of vector registers, by the lowest bit of their numbers
PORTS = 2            # registers of a bank that can be read in a cycle
READING = ("alu", "fma", "half", "pack")
GROUPS = "gsb"       # counts groups of products
PRODUCT_CYCLES = 24  # from the last operation of a product to its result; assumed equal to HMMA
WARPGROUP = 4        # warps
PIECE = 32           # bytes of the steps of a row or column in a product of a warpgroup

def mnemonic(inst: MInst) -> str:
  """Return the first word of an instruction's text."""
  return inst.row.name.partition(".")[0]

# ***** what instructions do *****

def touched(inst: MInst, waves: int = 1) -> int:
  """Return the bytes of memory that an instruction of one warp accesses, counting repeated bytes of its lanes.

  waves: warps of a block. One of them issues a bulk tensor copy, but in the model all warps do the same, so each gets
  its share.
  """
  if mnemonic(inst) == BULK_COPY: return bulk_copy_bytes(inst) // waves
  if not inst.row.effects & MOVES_DATA or inst.row.encoding is BRANCH or mnemonic(inst) in NO_DATA: return 0
  form: Form = inst.row.isa
  if mnemonic(inst) == "LDGSTS": return WARP * {"": 4, "64": 8, "128": 16}[modifier(inst, "copy")]
  data = next((str(spec.units) for spec in form.specs if spec.units in SIZED), None)
  if data is None: return 0
  word = modifier(inst, data)
  return WARP * (4 * int(word or 1) if data == "count" else BYTES.get(word.partition(".")[0], 4))

BULK_COPY = "UTMALDG"

def bulk_copy_bytes(inst: MInst) -> int:
  """Return the bytes of a bulk tensor copy of the program; 0 if its box is unknown."""
  u = inst.origin
  return int(u.arg) * u.src[0].dtype.itemsize if isinstance(u, UOp) and u.op is Ops.ASYNC_COPY else 0

SIZED = ("size", "count", "atype", "atype8", "stype", "stype8", "afloat")
BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "S64": 8, "F64": 8, "128": 16}

def modifier(inst: MInst, name: str) -> str:
  """Return the word of a modifier."""
  form: Form = inst.row.isa
  spec = form.specs[form.index[name]]
  assert spec.enumeration is not None, f"{inst}: {name} is no modifier"
  words: Sequence[str] = spec.enumeration.words
  return words[operand(inst, name)]

SHAPE = re.compile(r"=(?P<m>16|8)x?8x?(?P<k>16|32|64|8|4)$")
OPERATIONS = {"FFMA": 2, "FADD": 1, "FMUL": 1, "FMNMX": 1, "MUFU": 1, "DFMA": 2, "DADD": 1, "DMUL": 1, "HFMA2": 4,
              "HADD2": 2, "HMUL2": 2,
              "HMNMX2": 2}
ELEMENTS = {"F": "vf32", "M": "vf32", "D": "vf64", "H": "vf16"}

def element_of(inst: MInst) -> str:
  """Return the element type of a floating-point instruction: f16 and so on for matrix products, vf32 on the pipes of
  lanes, else ""."""
  name = mnemonic(inst)
  if inst.row.pipe == PRODUCTS:
    return WARPGROUP_ELEMENTS.get(inst.row.name.removesuffix(".R"),
                                  "") or f"wgmma {'bf16' if has_word(inst, 'gmbf') else 'f16'}"
  if inst.row.pipe != "tensor": return ELEMENTS[name[0]] if name in OPERATIONS else ""
  if name == "HMMA": return next((kind for kind in ("bf16", "tf32") if kind.upper() in words_of(inst)), "f16")
  return {"IMMA": "i8", "QMMA": "fp8", "DMMA": "f64"}.get(name, "")

WARPGROUP_ELEMENTS = {"IGMMA": "wgmma i8", "QGMMA": "wgmma fp8", "HGMMA.TF32": "wgmma tf32"}

def words_of(inst: MInst) -> set[str]:
  """Return the literal words of an instruction, and the modifiers that give the type of a product."""
  return {*(word.lstrip("=") for word in inst.row.isa.words),
          *(modifier(inst, name) for name in ("mmabf", "mmafmt") if name in inst.row.isa.index)}

def has_word(inst: MInst, name: str) -> bool:
  """Return whether a modifier has a word."""
  return name in inst.row.isa.index and bool(modifier(inst, name))

def product_shape(inst: MInst) -> tuple[int, int, int]:
  """Return rows, columns and steps of a product of a warpgroup."""
  rows, columns, steps = map(int,
                             modifier(inst, next(name for name in SHAPES if name in inst.row.isa.index)).split("x"))
  return rows, columns, steps

SHAPES = ("gmma16", "gmma16h", "gmma8", "gmma32", "gmmai")

def factor_bytes(inst: MInst) -> int:
  """Return the bytes of shared memory that a product of a warpgroup reads for each of its warps.

  A row of the first factor is for one warp. Columns of the second factor are for all warps.
  """
  rows, columns, _ = product_shape(inst)
  return PIECE * (columns + (0 if "a" in inst.row.isa.index else rows)) // WARPGROUP

def ends_group(inst: MInst) -> bool: return inst.row.pipe == PRODUCTS and operand(inst, "group") != NO_GROUP

def operations(inst: MInst) -> int:
  """Return the operations of one warp. A multiply-add counts as two for each element. Integers count in matrix products
  only."""
  if inst.row.pipe == PRODUCTS: return 2 * math.prod(product_shape(inst)) // WARPGROUP
  shapes = ([found for found in map(SHAPE.match, inst.row.isa.words) if found is not None] if inst.row.pipe == "tensor"
            else [])
  if shapes: return 2 * int(shapes[0]["m"]) * 8 * int(shapes[0]["k"])
  return OPERATIONS.get(mnemonic(inst), 0) * WARP

def is_local(inst: MInst) -> bool: return inst.row.encoding is not BRANCH and mnemonic(inst) in LOCAL

def is_private(inst: MInst) -> bool: return inst.row.encoding is not BRANCH and mnemonic(inst) in PRIVATE

def meets(inst: MInst) -> bool:
  """Return whether a warp waits here for the others of its block."""
  return inst.row.name in ("BAR", "BAR.RED", "BAR.R", "BAR.RR")

def only_waits(inst: MInst) -> bool: return mnemonic(inst) == "DEPBAR" or inst.row.name == PRODUCTS_DONE

# ***** costs *****

def conflicts_of(function: Function, controls: Mapping[int, Control]) -> dict[int, int]:
  """Return the extra cycles, by id, of instructions that read three registers of one bank.

  A source that the previous instruction marked for reuse, at the same operand, is not read again.
  """
  found: dict[int, int] = {}
  kept: dict[int, int] = {}  # source -> register in the cache
  for block in function.blocks:
    kept = {}
    for inst in block.insts:
      if inst.row.encoding is BRANCH: continue
      form: Form = inst.row.isa
      sources: dict[int, int] = {}
      for spec, value in zip(form.specs, inst.operands):
        if (spec.reuse < 0 or not isinstance(value, Reg) or value.cls.bank is not regs.VECTOR
            or value.index in (None, regs.ZERO)):
          continue
        sources[spec.reuse] = value.index or 0
      read = {index for slot, index in sources.items() if kept.get(slot) != index}
      more = max([[index % BANKS for index in read].count(bank) for bank in range(BANKS)]) - PORTS
      if more > 0 and inst.row.pipe in READING: found[id(inst)] = more
      marked = controls.get(id(inst), USUAL).reuse
      kept = {slot: index for slot, index in sources.items() if marked >> slot & 1}
  return found

class Costs:
  """The costs of instructions of an architecture.

  traffic: the costs of accesses; if absent, nothing is known about the accesses. controls: by id of instructions.
  conflicts: extra cycles, by id. waves: warps of a block. sm_86 differs from sm_80 here.
  """

  def __init__(self, arch: str, traffic: Traffic | None = None, controls: Mapping[int, Control] | None = None,
               conflicts: Mapping[int, int] | None = None, waves: int = 1):
    self.rows, self.card = costs(arch), CARDS[column(arch)]
    self.traffic = traffic if traffic is not None else Traffic(self.card, WARP)
    self.controls, self.conflicts, self.waves = controls or {}, conflicts or {}, waves
    self.known: dict[object, dict[str, float]] = {}

  def takes(self, inst: MInst) -> Mapping[str, float]:
    """Return resource -> cycles, for the instruction of one warp. A bank conflict delays the issue of other
    instructions."""
    size = touched(inst, self.waves)
    if size and is_local(inst): return {"i": 1.0, "d": self.traffic.local(inst, size)}
    if size:
      copied = {"d": self.traffic.local(inst, size)} if mnemonic(inst) in ("LDGSTS", BULK_COPY) else {}
      return {"i": 1.0, **self.traffic.shared(inst, size, is_private(inst)), **copied}
    found = self.known.get(inst.row)
    if found is None: found = self.known[inst.row] = self.of_row(inst)
    more = self.conflicts.get(id(inst), 0)
    return {**found, "i": found["i"] + more} if more else found

  def of_row(self, inst: MInst) -> dict[str, float]:
    found = {"i": 1.0}
    if inst.row.encoding is BRANCH: return found
    if inst.row.pipe == "tensor":
      rate = self.card.flops.get(element_of(inst), 0.0)
      return {**found, "x": operations(inst) / rate} if rate else found
    if inst.row.pipe == PRODUCTS:
      return {**found, "x": self.tensor_cycles(inst), "d": factor_bytes(inst) / self.card.local_rate}
    cost = self.rows.get(mnemonic(inst)) or self.rows.get(inst.row.pipe)
    for letter in cost.ports.split("|") if cost is not None else (): found[letter] = found.get(letter, 0.0) + 1.0
    return found

  def tensor_cycles(self, inst: MInst) -> float:
    """Return the cycles of the tensor core for a product of a warpgroup."""
    rate = self.card.flops.get(element_of(inst), 0.0)
    return operations(inst) / rate if rate else 0.0

  def latency(self, inst: MInst) -> float:
    """Return the cycles until the result is there.

    Fixed latencies are part of the stalls. A product adds to the sums of the product before without delay.
    """
    if inst.row.pipe == PRODUCTS or not self.counters(inst): return 0
    cost = COSTS.get(mnemonic(inst)) or COSTS.get(inst.row.pipe)
    return cost.latency if cost is not None else 1

  def issue(self, inst: MInst) -> float: return max(1.0, self.control(inst).stall)

  def control(self, inst: MInst) -> Control: return self.controls.get(id(inst), USUAL)

  def counters(self, inst: MInst) -> list[str]:
    """Return the scoreboards that are taken, and groups of products."""
    control = self.control(inst)
    if ends_group(inst): return [GROUPS]
    return [f"sb{board}" for board in (control.write, control.read) if board != NONE]

  def early(self, inst: MInst, counter: str) -> float | None:
    """Return the cycles until a scoreboard of late sources is free (they have been read) or a group ends (its last
    product is done)."""
    if counter == GROUPS: return self.tensor_cycles(inst) + PRODUCT_CYCLES
    control = self.control(inst)
    return READ_CYCLES if counter == f"sb{control.read}" and control.read != NONE else None

  def waits(self, inst: MInst) -> dict[str, int]:
    """Return the scoreboards to wait for -> the count that may remain pending."""
    found = {f"sb{board}": 0 for board in range(SCOREBOARDS) if self.control(inst).wait >> board & 1}
    if inst.row.name == PRODUCTS_DONE: found[GROUPS] = operand(inst, "n")
    if inst.row.name == "DEPBAR.LE": found[f"sb{operand(inst, 'board')}"] = operand(inst, "n")
    return found

  def held(self, inst: MInst, counter: str) -> Iterable[Reg]:
    """Return the registers that must not change before a scoreboard is free."""
    if counter == GROUPS: return inst.writes()
    return inst.reads() if self.early(inst, counter) is not None else inst.writes()

  def words(self, inst: MInst) -> str:
    """Return the text of the control word: `after 0 2; result 1; sources 5; 4 cycles`."""
    control = self.control(inst)
    waits = " ".join(str(board) for board in range(SCOREBOARDS) if control.wait >> board & 1)
    parts = [f"after {waits}" if waits else "", f"result {control.write}" if control.write != NONE else "",
             f"sources {control.read}" if control.read != NONE else "",
             f"{control.stall} cycle{'s' if control.stall != 1 else ''}"]
    return "; ".join(part for part in parts if part)

def operand(inst: MInst, name: str) -> int:
  """Return a numeric operand."""
  value = inst.operands[inst.row.isa.index[name]]
  assert isinstance(value, int)
  return value

def model(own: Costs) -> Model:
  """Return the card of an architecture in the form of waves.py."""
  scopes, names = {k: scope for k, (scope, _) in RESOURCES.items()}, {k: name for k, (_, name) in RESOURCES.items()}
  return Model(own.traffic.hardware.unit, own.takes, scopes, names, own.latency, own.issue, own.counters, own.waits,
               meets, own.early)
