"""What AMD's instructions do, for the listing of DEBUG=7 and its model of a card: bytes, operations, waits, hazards, resources."""
from __future__ import annotations
import functools
import re
from collections.abc import Collection, Mapping, Sequence

from tinyhw.codegen.program import Program
from tinyhw.isa.amd.capabilities import generation_of
from tinyhw.isa.amd.decode import decode
from tinyhw.isa.amd.form import Form, Generation
from tinyhw.isa.amd.immediates import WAIT
from tinyhw.isa.amd.latency import MATRIX_SHARES_VECTOR, ISSUE, RESOURCES, SOURCE, card, costs, element_of_matrix, matrix_cycles, shape_of
from tinyhw.isa.amd.syntax import show
from tinyhw.isa.amd.target import assemble, code_of, target
from tinyhw.machine.code import Code
from tinyhw.machine.inst import Block, Function, MInst
from tinyhw.machine.listing import Line, Reader, listing, uop_text
from tinyhw.machine.listing_waves import Bounds, Card, bounds_of, wave_lines
from tinyhw.machine.occupancy import Kernel
from tinyhw.machine.waves import Model
from tinyhw.uop.ops import UOp

__all__ = ["bounds", "compile_listed", "microarchitecture"]

MATRIX = ("wmma", "mfma")
MEMORY = ("vmem", "flat", "smem", "lds")

# ***** what instructions do *****

def touched(inst: MInst) -> int:
  """Bytes of memory that an instruction of one wave names: of all its lanes, the same ones too."""
  form: Form = inst.row.isa
  if inst.row.pipe not in MEMORY: return 0
  data = [spec for spec in form.specs if spec.name in ("vdata", "data0", "data1", "sdata")] or [spec for spec in form.specs if spec.name == "vdst"]
  bits = sum(spec.type.bits * spec.type.count for spec in data if spec.type is not None)
  return bits // 8 * (1 if inst.row.pipe == "smem" else form.generation.wave)

# What one element costs: the end of a name between v_ and the type -> operations
OPERATIONS = {"fma": 2, "fmac": 2, "fmaak": 2, "fmamk": 2, "mad": 2, "add": 1, "sub": 1, "subrev": 1, "mul": 1, "min": 1, "max": 1, "rcp": 1,
              "rsq": 1, "sqrt": 1, "exp": 1, "log": 1, "sin": 1, "cos": 1, "trunc": 1, "floor": 1, "ceil": 1, "rndne": 1}
NAME = re.compile(r"v_(?P<pk>pk_)?(?:dual_)?(?P<op>[a-z]+)(?:_num|_legacy)?_(?P<type>b?f\d+)$")
DOT = re.compile(r"v_(?:dual_)?dot(?P<n>\d)(?:acc|c)?_f32_")

def element_of(inst: MInst) -> str:
  """The type of what a floating-point instruction computes with: f16 and so on of a product of matrices, vf32 on the vector unit; "" of others."""
  if inst.row.pipe in MATRIX: return element_of_matrix(inst.row.name)
  found = NAME.match(inst.row.name.partition("::")[0])
  return f"v{found['type']}" if found is not None and found["op"] in OPERATIONS else "vf32" if DOT.match(inst.row.name) else ""

def operations(inst: MInst) -> int:
  """Operations of one wave: a multiply-add is two for each element, of integers only products of matrices count."""
  if inst.row.pipe in MATRIX:
    shape = shape_of(inst.row.name)
    return 2 * shape.m * shape.n * shape.k * shape.blocks
  return sum(map(lane_operations, inst.row.name.split("::"))) * inst.row.isa.generation.wave if inst.row.name[:2] == "v_" else 0

@functools.lru_cache(None)
def lane_operations(name: str) -> int:
  """Of one lane of a vector instruction."""
  if found := DOT.match(name): return 2 * int(found["n"])
  matched = NAME.match(name)
  return OPERATIONS.get(matched["op"], 0) * (2 if matched["pk"] else 1) if matched is not None else 0

COUNTERS = re.compile(r"s_wait_(?:(?P<names>\w+cnt))$")

def waits(inst: MInst) -> dict[str, int]:
  """What an instruction waits for: counter -> how many may be left."""
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

# ***** what they take *****

class Costs:
  """What instructions of a generation take of the card's resources."""

  def __init__(self, generation: Generation):
    self.generation, self.card, self.rows = generation, card(generation), costs(generation.family)
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
    if not self.generation.cdna and self.generation.wave == 64: found = {letter: n * (2 if letter in "vt" else 1) for letter, n in found.items()}
    if pipe in MATRIX:
      cycles = float(matrix_cycles(name, self.generation.name, self.generation.family))
      found["x"] = cycles
      if self.generation.family in MATRIX_SHARES_VECTOR: found["v"] = cycles
    return found

  def moved(self, inst: MInst) -> dict[str, float]:
    """An access by bytes. Atomics count as loads and stores of their bytes."""
    size, card = touched(inst), self.card
    if inst.row.pipe == "lds": return {"d": max(1.0, size / card.local_rate)}
    share = size * card.units
    return {"g": max(1.0, size / card.first_rate), "2": share / card.second_rate}

  def latency(self, inst: MInst) -> float:
    cost = self.rows.get(inst.row.name) or self.rows.get("dual" if "::" in inst.row.name else inst.row.pipe)
    cycles = self.takes(inst)["x"] if inst.row.pipe in MATRIX else 0.0
    return cycles + (cost.latency if cost is not None else 1)

  def issue(self, inst: MInst) -> float:
    """Cycles until the wave's next instruction. s_nop n holds it back by n more."""
    return ISSUE[self.generation.family] * (1 + inst.operands[0] if inst.row.name == "s_nop" else 1)

@functools.lru_cache(None)
def model(generation: Generation) -> Model:
  """The card of a generation as waves.py wants it."""
  own = Costs(generation)
  scopes, names = {k: scope for k, (scope, _) in RESOURCES.items()}, {k: name for k, (_, name) in RESOURCES.items()}
  return Model(own.card.unit, own.takes, scopes, names, own.latency, own.issue, counters, waits, meets)

# ***** notes *****

def notes(function: Function, offsets: Mapping[int, int]) -> dict[int, str]:
  """What there is to say of instructions beside what they came from: waits and what they wait for, hazards, macros."""
  found: dict[int, str] = {}
  for block in function.blocks:
    for inst in block.insts:
      if inst.comment: found[id(inst)] = f"{inst.comment}: {uop_text(inst.origin)}" if isinstance(inst.origin, UOp) else inst.comment
  return found

def counters(inst: MInst) -> list[str]:
  form: Form = inst.row.isa
  return form.counter.split("+") if form.counter else []

# ***** text *****

def text_of(inst: MInst) -> str:
  """The instruction; jumps name their block."""
  goals = [o for o in inst.operands if isinstance(o, Block)]
  return f"{inst.row.isa.mnemonic} {goals[0]!r}" if goals else show(inst)

def kernel_of(function: Function, program: Program, generation: Generation) -> Kernel:
  """What the launch tells the hardware."""
  code = code_of(program, generation.arch, function, b"")
  return Kernel(dict(code.registers), program.local_bytes, program.lanes, program.grid if isinstance(program.grid, int) else None)

@functools.lru_cache(None)
def card_of(generation: Generation) -> Card:
  """The typical card of a generation as a listing sees it."""
  sizes = card(generation)
  def peak(insts: Sequence[MInst]) -> tuple[float, str]:
    return max([(sizes.flops.get(kind, 0.0), kind) for kind in sorted(set(map(element_of, insts)))], default=(0.0, ""))
  return Card(f"{sizes.title} ({sizes.units} {sizes.unit.name}s, {sizes.clock_ghz} GHz, {sizes.memory_gbs:g} GB/s)", SOURCE, model(generation),
              sizes.units, sizes.clock_ghz, sizes.memory_rate, operations, touched, peak)

def bounds(program: Program, arch: str) -> Bounds:
  """What limits a kernel on the typical card of an architecture, without its listing."""
  generation = generation_of(arch)
  function, _, _ = assemble(program, arch)
  return bounds_of(function, kernel_of(function, program, generation), card_of(generation))

def compile_listed(program: Program, arch: str, microarchitecture: str = "") -> tuple[Code, str]:
  """What target.compile does, and the listing."""
  t, generation = target(arch), generation_of(arch)
  function, text, places = assemble(program, arch)
  kernel = kernel_of(function, program, generation)
  waves = -(-program.lanes // generation.wave)
  reader = Reader(text_of, touched, operations, functools.partial(wave_lines, kernel, card_of(generation)), is_local, notes, waves)
  lines = [Line(offset, text[offset:offset + size_of(text, offset, inst, arch)], inst) for offset, inst in places]
  return code_of(program, arch, function, text), listing(function, lines, t.banks, reader, kernel.grid, t.allocatable, program.uops)

def size_of(text: bytes, offset: int, inst: MInst, arch: str) -> int:
  """Bytes of an instruction."""
  return decode(text, offset, arch)[1]

def is_local(inst: MInst) -> bool: return inst.row.pipe == "lds"

def microarchitecture(vendor: str, signature: int, features: Collection[str] = ()) -> str:
  """AMD's architectures are named by `arch` alone."""
  return ""
