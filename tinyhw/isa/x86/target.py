"""x86-64 as a `Target`: registers, instructions for the machine passes, and compilation of a Program to Code."""
from __future__ import annotations

from tinyhw import trace
from tinyhw.data_class import replace
from tinyhw.isa.x86 import abi
from tinyhw.isa.x86.asm.encode import encode_function
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.isa.x86.frame import RSP, add_frame
from tinyhw.isa.x86.select.select import select
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg
from tinyhw.machine.ir.target import CACHE_LINE_BYTES, Hook, Target, region
from tinyhw.machine.passes import Before, cpu_code, hook_reasons, run
from tinyhw.threads import once
from tinyhw.uop.enums import NON_TEMPORAL
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

__all__ = ["capabilities", "compile", "target"]

RAX = regs.reg(regs.R64, 0)
LETTER = {regs.XMM: "x", regs.YMM: "y", regs.ZMM: "z"}
OPPOSITE = {"e": "ne", "ne": "e", "l": "ge", "ge": "l", "le": "g", "g": "le", "b": "ae", "ae": "b", "be": "a",
            "a": "be", "s": "ns", "ns": "s"}

def move(dst: Reg, src: Reg) -> MInst | list[MInst]:
  if dst.cls.bank is regs.TILE: return [*push_tile(src), *pop_tile(dst)]
  if dst.cls.bank is regs.VEC:
    v = LETTER[dst.cls]
    return MInst(TABLE[f"vmovaps_{v}_{v}"], [dst, src])
  if dst.cls.bank is regs.MASK: return MInst(TABLE["kmovq_k_k"], [dst, src])
  return MInst(TABLE["mov_r64_r64"], [regs.reg(regs.R64, _index(dst)), regs.reg(regs.R64, _index(src))])

def _index(r: Reg) -> int:
  assert r.index is not None
  return r.index

def spill(value: Reg, slot: int) -> MInst | list[MInst]:
  if value.cls.bank is regs.TILE: return in_rows("tilestored_m_t", slot, value)
  if value.cls.bank is regs.VEC: return MInst(TABLE[f"vmovups_m_{LETTER[value.cls]}"], [RSP, None, 1, slot, value])
  if value.cls.bank is regs.MASK: return MInst(TABLE["kmovq_m_k"], [RSP, None, 1, slot, value])
  return MInst(TABLE["mov_m64_r64"], [RSP, None, 1, slot, regs.reg(regs.R64, _index(value))])

def reload(value: Reg, slot: int) -> MInst | list[MInst]:
  if value.cls.bank is regs.TILE: return in_rows("tileloadd_t_m", slot, value)
  if value.cls.bank is regs.VEC: return MInst(TABLE[f"vmovups_{LETTER[value.cls]}_m"], [value, RSP, None, 1, slot])
  if value.cls.bank is regs.MASK: return MInst(TABLE["kmovq_k_m"], [value, RSP, None, 1, slot])
  return MInst(TABLE["mov_r64_m64"], [regs.reg(regs.R64, _index(value)), RSP, None, 1, slot])

def in_rows(key: str, slot: int, tile: Reg) -> list[MInst]:
  """Store or load a tile at an offset from rsp. The distance of its rows is in rax, which is saved on the stack."""
  place = [RSP, RAX, 1, slot + 8]
  return [MInst(TABLE["push_r64"], [RAX]), MInst(TABLE["mov_r64_i32"], [RAX, regs.ROW_BYTES]),
          MInst(TABLE[key], [*place, tile] if key == "tilestored_m_t" else [tile, *place]),
          MInst(TABLE["pop_r64"], [RAX])]

def push_tile(tile: Reg) -> list[MInst]:
  """Store a tile to the stack. Like a push it leaves the flags alone."""
  return [MInst(TABLE["lea_r64_m"], [RSP, RSP, None, 1, -regs.TILE_BYTES]), *in_rows("tilestored_m_t", 0, tile)]

def pop_tile(tile: Reg) -> list[MInst]:
  return [*in_rows("tileloadd_t_m", 0, tile), MInst(TABLE["lea_r64_m"], [RSP, RSP, None, 1, regs.TILE_BYTES])]

def swap(a: Reg, b: Reg) -> list[MInst]:
  """Exchange two registers without a third: by xor for vectors and masks.

  VEX reaches the first 16 vector registers and 256 bits.
  """
  if a.cls.bank is regs.TILE: return [*push_tile(a), *push_tile(b), *pop_tile(a), *pop_tile(b)]
  cls, name = (regs.K, "kxorq_k_k_k")
  if a.cls.bank is regs.VEC:
    narrow = a.cls is not regs.ZMM and max(_index(a), _index(b)) < 16
    cls, name = (regs.YMM, "vpxor_y_y_y") if narrow else (regs.ZMM, "vpxorq_z_z_z")
  elif a.cls.bank is regs.GPR:
    return [MInst(TABLE["xchg_r64_r64"], [regs.reg(regs.R64, _index(a)), regs.reg(regs.R64, _index(b))])]
  x, y = regs.reg(cls, _index(a)), regs.reg(cls, _index(b))
  return [MInst(TABLE[name], [dst, x, y]) for dst in (x, y, x)]

def jump(block: Block) -> MInst: return MInst(TABLE["jmp_rel"], [block], None, ([],))

def invert(inst: MInst) -> MInst | None:
  """The conditional jump with the opposite condition."""
  opposite = OPPOSITE.get(inst.row.name[1:])
  if opposite is None: return None
  return MInst(TABLE[f"j{opposite}_rel"], list(inst.operands), inst.origin, inst.arguments)

HOOKS: dict[str, tuple[Hook, ...]] = {"after:expand": (add_frame,)}
REASONS = hook_reasons(HOOKS, (
  Before("expand", "add_frame", "the registers that the code writes are known, so those that it must save are"),))

@once
def target(arch: str) -> Target:
  """The Target of a level of capabilities.py, such as "x86_64:avx2"."""
  caps = capabilities(arch)
  return Target(
    name=arch, capabilities=caps, banks=regs.BANKS, classes=regs.CLASSES, move=move, spill=spill, reload=reload,
    jump=jump, swap=swap, invert=invert,
    select=select, table=TABLE, allocatable={"vec": tuple(range(caps.vector_registers))}, region=region,
    hooks=HOOKS, reasons=REASONS)

def assemble(program: Program, arch: str) -> tuple[Function, bytes, list[tuple[int, MInst]]]:
  """The laid out function, its bytes, and the offset of each instruction in them."""
  t = target(arch)
  function = run(select(program, t), t)
  past_caches = {u.src[0].src[0] for u in program.uops if u.tag == NON_TEMPORAL}
  if past_caches:
    changes = {u: UOp(u.op, u.dtype, u.src, u.arg) for u in program.uops if u.tag == NON_TEMPORAL}
    trace.hand_on(changes)
    plain = run(select(replace(program, uops=tuple([changes.get(u, u) for u in program.uops])), t), t)
    function = either(function, plain, sorted(program.params.index(u) for u in past_caches))
  return function, *encode_function(function)

def either(aligned: Function, plain: Function, arguments: list[int]) -> Function:
  """Return a function that goes on as `aligned` if these arguments begin at cache lines, and otherwise as `plain`.

  Non-temporal stores need that. Buffers of the allocator do; views and memory of others may begin anywhere.
  """
  function = Function(aligned.name)
  entry = function.new_block(name="entry")
  table = regs.reg(regs.R64, regs.NAMES64.index(abi.abi().arguments[0]))
  for k, argument in enumerate(arguments):
    entry.insts.append(MInst(TABLE[f"{'or' if k else 'mov'}_r64_m64"], [RAX, table, None, 1, 8 * argument]))
  entry.insts += [MInst(TABLE["test_r64_i32"], [RAX, CACHE_LINE_BYTES - 1]),
                  MInst(TABLE["jne_rel"], [plain.blocks[0]], None, ([],)), jump(aligned.blocks[0])]
  for inst in entry.insts: inst.comment = "begins at a line?"
  for block in plain.blocks: block.rare = True    # a listing counts the work of one version
  for block in (*aligned.blocks, *plain.blocks):
    block.id = len(function.blocks)
    function.blocks.append(block)
  function.local_bytes = max(aligned.local_bytes, plain.local_bytes)
  function.stack_bytes = max(aligned.stack_bytes, plain.stack_bytes)
  function.used = {bank: aligned.used.get(bank, set()) | plain.used.get(bank, set())
                   for bank in {**aligned.used, **plain.used}}
  function.spills, function.reloads = aligned.spills, aligned.reloads
  return function

def compile(program: Program, arch: str) -> Code:
  """Compile a program to machine code for the CPU's kernel ABI. describe.py does this with a listing."""
  function, text, _ = assemble(program, arch)
  return cpu_code(program, arch, function, text)
