"""A kernel in assembly, the same for all generations but for its product of matrices, as a laid out Function and its
Program: what tests list.

Selection has no part in it, so that a listing changes only with what makes it. Waits and hazards are put in by the
passes that compiled code has too.
"""
from __future__ import annotations

from generators.program_builder import Builder
from tinyhw.dtype import dtypes
from tinyhw.isa.amd.asm.syntax import parse
from tinyhw.isa.amd.capabilities import generation_of
from tinyhw.isa.amd.describe import describe
from tinyhw.isa.amd.late.emit import encode_function
from tinyhw.isa.amd.late.hazards import avoid_hazards
from tinyhw.isa.amd.late.waits import add_waits
from tinyhw.isa.amd.table.table import table
from tinyhw.isa.amd.target import target
from tinyhw.machine.ir.inst import Block, Effect, Function, MInst
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

ARCHS = ("gfx942", "gfx950", "gfx1100", "gfx1200")
PRODUCTS = {"gfx942": "v_mfma_f32_16x16x16_f16 v[16:19], v[8:9], v[10:11], v[16:19]",
            "gfx950": "v_mfma_f32_16x16x32_f16 v[16:19], v[8:11], v[12:15], v[16:19]",
            "gfx1100": "v_wmma_f32_16x16x16_f16 v[16:23], v[8:15], v[8:15], v[16:23]",
            "gfx1200": "v_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[12:15], v[16:23]"}
# Behind a semicolon: which operation of the program an instruction is of
CODE = """
entry
  s_load_b128 s[4:7], s[0:1], 0x0            ; address
  v_lshlrev_b32 v1, 2, v0                    ; column
  v_lshlrev_b32 v4, 8, v0                     ; row
  v_mov_b32 v2, 0                            ; sum
  s_mov_b32 s8, 0                            ; loop
body
  global_load_b32 v3, v1, s[6:7]             ; column
  global_load_b32 v5, v4, s[6:7]             ; row
  ds_store_b32 v4, v5                        ; keep
  ds_load_b32 v6, v1                         ; kept
  v_fmac_f32 v2, v3, v5                      ; product
  v_exp_f32 v7, v6                           ; exponential
  v_add_f32 v2, v2, v7                       ; sum
  v_add_nc_u32 v1, v1, v1                    ; column
  {product}
  s_add_u32 s8, s8, 1                        ; end
  s_cmp_lt_i32 s8, 16                        ; end
  s_cbranch_scc1 body                        ; end
after
  v_add_f32 v2, v2, v16                      ; sum
  global_store_b32 v1, v2, s[4:5]            ; store
  s_endpgm
"""

def kernel() -> tuple[Program, dict[str, UOp]]:
  """The program, and its operations by the names in CODE: 8 workgroups of 64 lanes, which read columns and rows of a
  matrix of 64 x 64."""
  b = Builder("listed")
  out, data, local = b.param(0, dtypes.float32, 512), b.param(1, dtypes.float32, 4096), b.local(dtypes.float32, 4096)
  with b.loop(8, AxisType.GLOBAL) as group, b.loop(64, AxisType.LOCAL) as lane:
    total = b.accumulator(b.const(dtypes.float32, 0.0))
    with b.loop(16, AxisType.REDUCE) as step:
      column, row = b.load(data, step * 64 + lane), b.load(data, lane * 64 + step)
      b.store(local, lane * 64, row)
      kept = b.load(local, lane + step)
      product, exponential = b.add(column * row), b.add(UOp(Ops.EXP2, dtypes.float32, (kept,)))
      b.assign(total, total + product + exponential)
    b.store(out, group * 64 + lane, total)
  program = b.program()
  keep, store = (u for u in program.uops if u.op is Ops.STORE)
  end = next(u for u in program.uops if u.op is Ops.END and u.src[0] is step)
  return program, {"address": data, "column": column, "row": row, "sum": total, "loop": step, "keep": keep,
                   "kept": kept, "product": product,
                   "exponential": exponential, "end": end, "store": store}

def laid_out(arch: str) -> tuple[Function, Program]:
  """The code as it would be encoded."""
  program, operations = kernel()
  function = Function(program.name)
  blocks: dict[str, Block] = {}
  text = CODE.format(product=PRODUCTS[generation_of(arch).name])
  for line in text.split("\n"):
    if line and line[0] != " ": blocks[line] = function.new_block(name=line)
  block = function.blocks[0]
  for line in text.split("\n"):
    if not line: continue
    if line[0] != " ":
      block = blocks[line]
      continue
    words, _, name = line.partition(";")
    block.insts.append(instruction(words.strip(), arch, blocks))
    block.insts[-1].origin = operations.get(name.strip())
  add_waits(function, target(arch))
  avoid_hazards(function, target(arch))
  for inst in [inst for block in function.blocks for inst in block.insts]:
    for r in inst.writes():
      function.used.setdefault(r.cls.bank.name, set()).update(range(r.index, r.index + r.cls.units))
  return function, program

def instruction(text: str, arch: str, blocks: dict[str, Block]) -> MInst:
  name, _, goal = text.partition(" ")
  row = table(arch)[name] if goal in blocks else None
  if row is not None and row.effects & Effect.JUMP: return MInst(row, [blocks[goal]], None, ([],))
  return parse(text, arch)

def listed(arch: str) -> str:
  """The listing of the kernel."""
  function, program = laid_out(arch)
  text, places = encode_function(function, generation_of(arch))
  return describe(function, text, places, program, arch)
