"""Work of AMD's instructions and the resources that they take, for the model of machine/model/waves.py."""
from __future__ import annotations
import re
from collections.abc import Mapping

from tinyhw.isa.amd.asm.immediates import WAIT
from tinyhw.isa.amd.model.latency import (
  ISSUE, MATRIX_SHARES_VECTOR, RESOURCES, costs, element_of_matrix, matrix_cycles, shape_of)
from tinyhw.isa.amd.model.rates import card
from tinyhw.isa.amd.table.form import Form, Generation
from tinyhw.machine.ir.inst import MInst
from tinyhw.machine.model.traffic import Traffic
from tinyhw.machine.model.waves import Model
from tinyhw.threads import once

MATRIX = ("wmma", "mfma")
MEMORY = ("vmem", "flat", "smem", "lds")

# ***** work of instructions *****

def touched(inst: MInst) -> int:
  """Bytes of memory that an instruction of one wave addresses: the sum over its lanes, including equal addresses."""
  form: Form = inst.row.isa
  if inst.row.pipe not in MEMORY: return 0
  data = ([spec for spec in form.specs if spec.name in ("vdata", "data0", "data1", "sdata")]
          or [spec for spec in form.specs if spec.name == "vdst"])
  bits = sum(spec.type.bits * spec.type.elements for spec in data if spec.type is not None)
  return bits // 8 * (1 if inst.row.pipe == "smem" else form.generation.wave)

# Operations of one element: the end of a name between v_ and the type -> operations
OPERATIONS = {"fma": 2, "fmac": 2, "fmaak": 2, "fmamk": 2, "mad": 2, "add": 1, "sub": 1, "subrev": 1, "mul": 1,
              "min": 1, "max": 1, "rcp": 1,
              "rsq": 1, "sqrt": 1, "exp": 1, "log": 1, "sin": 1, "cos": 1, "trunc": 1, "floor": 1, "ceil": 1,
              "rndne": 1}
NAME = re.compile(r"v_(?P<pk>pk_)?(?:dual_)?(?P<op>[a-z]+)(?:_num|_legacy)?_(?P<type>b?f\d+)$")
MIXED, ONE = "v_fma_mix", 0x3f800000   # a conversion is a product with 1.0 and a sum with 0
DOT = re.compile(r"v_(?:dual_)?dot(?P<n>\d)(?:acc|c)?_f32_")

def element_of(inst: MInst) -> str:
  """The type of a floating-point instruction's elements, or "".

  A matrix product has f16 and so on, an instruction of the vector unit vf32 and so on.
  """
  if inst.row.pipe in MATRIX: return element_of_matrix(inst.row.name)
  if inst.row.name.startswith(MIXED): return "vf32"
  found = NAME.match(inst.row.name.partition("::")[0])
  return (f"v{found['type']}" if found is not None and found["op"] in OPERATIONS else "vf32" if DOT.match(inst.row.name)
          else "")

def operations(inst: MInst) -> int:
  """Operations of one wave. A multiply-add counts as two for each element; integers count in matrix products only."""
  if inst.row.pipe in MATRIX:
    shape = shape_of(inst.row.name)
    return 2 * shape.m * shape.n * shape.k * shape.blocks
  name = inst.row.name
  wave: int = inst.row.isa.generation.wave
  if name.startswith(MIXED): return wave * (int(inst.operands[2] != ONE) + int(inst.operands[3] != 0))
  return sum(map(lane_operations, name.split("::"))) * wave if name[:2] == "v_" else 0

@once
def lane_operations(name: str) -> int:
  """Operations of one lane of a vector instruction."""
  if found := DOT.match(name): return 2 * int(found["n"])
  matched = NAME.match(name)
  return OPERATIONS.get(matched["op"], 0) * (2 if matched["pk"] else 1) if matched is not None else 0

COUNTERS = re.compile(r"s_wait_(?:(?P<names>\w+cnt))$")

def waits(inst: MInst) -> dict[str, int]:
  """The counters that an instruction waits for: counter -> the number that may be left."""
  name, generation = inst.row.name, inst.row.isa.generation
  if name == "s_waitcnt":
    parts, most = WAIT.formats[generation.family].unpack(inst.operands[0]) or {}, WAIT.greatest(generation)
    return {counter: count for counter, count in parts.items() if count != most[counter]}
  found = COUNTERS.match(name)
  if found is None: return {}
  counters, value = found["names"].split("_"), inst.operands[0]
  return {counters[0]: value} if len(counters) == 1 else {counters[0]: value >> 8, counters[1]: value & 63}

def meets(inst: MInst) -> bool:
  """Whether a wave waits here for the others of its workgroup."""
  return inst.row.name in ("s_barrier", "s_barrier_wait")

def counters(inst: MInst) -> list[str]:
  form: Form = inst.row.isa
  return form.counter.split("+") if form.counter else []

# ***** resources *****

class Costs:
  """Resources of a card that instructions of a generation take. traffic: the model of memory accesses; by default one
  without knowledge of addresses."""

  def __init__(self, generation: Generation, traffic: Traffic | None = None):
    self.generation, self.rows = generation, costs(generation.family)
    self.traffic = traffic if traffic is not None else Traffic(card(generation), generation.wave)
    self.known: dict[object, dict[str, float]] = {}

  def takes(self, inst: MInst) -> Mapping[str, float]:
    """Resource -> cycles, of one wave's instruction."""
    row, pipe = inst.row, inst.row.pipe
    if pipe in ("vmem", "flat", "lds"): return self.moved(inst)
    found = self.known.get(row)
    if found is None: found = self.known[row] = self.of_row(inst)
    return found

  def of_row(self, inst: MInst) -> dict[str, float]:
    name, pipe = inst.row.name, inst.row.pipe
    cost = self.rows.get(name) or self.rows.get("dual" if "::" in name else pipe)
    found: dict[str, float] = {}
    for letter in cost.ports.split("|") if cost is not None else (): found[letter] = found.get(letter, 0.0) + 1.0
    found.pop("", None)
    if not self.generation.cdna and self.generation.wave == 64:
      found = {letter: n * (2 if letter in "vt" else 1) for letter, n in found.items()}
    if pipe in MATRIX:
      cycles = float(matrix_cycles(name, self.generation.name, self.generation.family))
      found["x"] = cycles
      if self.generation.family in MATRIX_SHARES_VECTOR: found["v"] = cycles
    return found

  def moved(self, inst: MInst) -> dict[str, float]:
    """Resources of an access to vector memory or LDS, by the addresses of its lanes."""
    if is_local(inst): return {"d": self.traffic.local(inst, touched(inst))}
    return self.traffic.shared(inst, touched(inst), is_private(inst))

  def latency(self, inst: MInst) -> float:
    cost = self.rows.get(inst.row.name) or self.rows.get("dual" if "::" in inst.row.name else inst.row.pipe)
    cycles = self.takes(inst)["x"] if inst.row.pipe in MATRIX else 0.0
    return cycles + (cost.latency if cost is not None else 1)

  def issue(self, inst: MInst) -> float:
    """Cycles until the wave's next instruction. s_nop n delays it by n more."""
    return ISSUE[self.generation.family] * (1 + inst.operands[0] if inst.row.name == "s_nop" else 1)

def model(own: Costs) -> Model:
  """The model of waves.py for the card of a generation."""
  scopes, names = {k: scope for k, (scope, _) in RESOURCES.items()}, {k: name for k, (_, name) in RESOURCES.items()}
  return Model(own.traffic.hardware.unit, own.takes, scopes, names, own.latency, own.issue, counters, waits, meets)

def is_local(inst: MInst) -> bool: return inst.row.pipe == "lds"

def is_private(inst: MInst) -> bool: return inst.row.name.startswith("scratch_")
