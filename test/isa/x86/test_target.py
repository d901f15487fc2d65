"""The instructions that the machine passes ask the target for, executed by the processor in Python; and compilation to
Code."""
from __future__ import annotations
from array import array
import random

from generators.program_builder import Builder, add, i32, matmul
import pytest
from x86 import kernels as x86_kernels, machine as x86_machine

from tinyhw import Device, Tensor
from tinyhw.device import Launch
from tinyhw.dtype import dtypes
from tinyhw.isa.x86 import target as x86
from tinyhw.isa.x86.asm.encode import encode
from tinyhw.isa.x86.capabilities import LEVELS
from tinyhw.isa.x86.describe import compile_listed
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.inst import Block, Effect, MInst, Reg, RegClass
from tinyhw.uop.enums import NON_TEMPORAL, AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

f32 = dtypes.float32
CLASSES = (regs.R64, regs.R32, regs.XMM, regs.YMM, regs.ZMM, regs.K)

def physical(cls: RegClass, index: int) -> Reg: return regs.reg(cls, index)

@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.name)
def test_moves_spills_and_reloads_can_be_encoded_and_leave_flags_alone(cls: RegClass) -> None:
  indices = [i for i in cls.bank.allocatable if i < cls.bank.count]
  for i, j in [random.Random(0).sample(indices, 2) for _ in range(20)]:
    for inst in (x86.move(physical(cls, i), physical(cls, j)), x86.spill(physical(cls, i), 64),
                 x86.reload(physical(cls, j), 1024)):
      assert encode(inst) and not inst.row.effects & Effect.WRITE_FLAGS
    moved = x86.move(physical(cls, i), physical(cls, j))
    assert [r.index for r in moved.writes()] == [i] and [r.index for r in moved.reads()] == [j]
    assert [r.index for r in x86.reload(physical(cls, i), 0).writes()] == [i]

@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.name)
def test_swaps_exchange_and_touch_nothing_else(cls: RegClass) -> None:
  """Three xors, or one xchg: replayed on numbers."""
  indices = [i for i in cls.bank.allocatable if cls is not regs.YMM or i < 16]
  for i, j in [random.Random(1).sample(indices, 2) for _ in range(20)]:
    values = {i: 0b1100, j: 0b1010}
    for inst in x86.swap(physical(cls, i), physical(cls, j)):
      assert encode(inst) and not inst.row.effects & Effect.WRITE_FLAGS
      a, b = (inst.operands[-2].index, inst.operands[-1].index)
      if inst.row.name == "xchg": values[a], values[b] = values[b], values[a]
      else: values[inst.operands[0].index] = values[a] ^ values[b]
    assert values == {i: 0b1010, j: 0b1100}

def test_tiles_move_through_memory() -> None:
  """They have neither a move nor an exchange. Other registers and the flags stay."""
  rng = random.Random(2)
  content = [rng.randbytes(1024) for _ in range(8)]
  tile = [regs.reg(regs.TMM, i) for i in range(8)]
  code = [x86.move(tile[0], tile[1]), x86.spill(tile[2], 64), x86.reload(tile[3], 64), x86.swap(tile[4], tile[5])]
  insts = [inst for part in code for inst in (part if isinstance(part, list) else [part])]
  assert not any(inst.row.effects & Effect.WRITE_FLAGS for inst in insts)
  machine = x86_machine.Machine("x86_64:amx")
  text = machine.load(b"".join(map(encode, insts)))
  machine.tiles, machine.general[:] = list(content), [1000 + k for k in range(16)]
  machine.general[4] = stack = machine.stack.address + 8192
  before, at = list(machine.general), text.address
  while at < text.address + len(text.data):
    step, following = machine.prepare(at)
    at = step(machine) or following
  assert machine.general == before and machine.memory.read(stack + 64, 1024) == content[2]
  assert machine.tiles == [content[k] for k in (1, 1, 2, 2, 5, 4, 6, 7)]

def test_opposite_conditions() -> None:
  block = Block(3)
  for name, opposite in x86.OPPOSITE.items():
    assert x86.OPPOSITE[opposite] == name
    inverted = x86.invert(MInst(TABLE[f"j{name}_rel"], [block], None, ([],)))
    assert inverted is not None and inverted.row.name == f"j{opposite}" and inverted.operands == [block]
  assert x86.invert(x86.jump(block)) is None and x86.jump(block).operands == [block]

def test_regions_are_buffers() -> None:
  function = x86.select(add(16, 8), x86.target("x86_64:avx2"))
  touched = [x86.region(i) for b in function.blocks for i in b.insts if i.row.effects & (Effect.LOAD | Effect.STORE)]
  stores = [x86.region(i) for b in function.blocks for i in b.insts if i.row.effects & Effect.STORE]
  assert [u.arg[0] for u in stores] == [0] and all(u is None or u.op is Ops.PARAM for u in touched)

@pytest.mark.parametrize("arch", LEVELS)
def test_code_says_what_a_driver_must_know(arch: str) -> None:
  b = Builder("everything")
  out, kept, n = b.param(0, i32, 8), b.local(dtypes.float64, 9), b.add(UOp.variable("n", 0, 9, i32))
  with b.loop(8, AxisType.GLOBAL) as g:
    b.store(kept, 0, b.add(g.cast(dtypes.float64)))
    b.store(out, g, b.add(b.load(kept, 0).cast(i32) + n))
  code = x86.compile(b.program(), arch)
  assert (code.name, code.arch, code.arguments, code.local_bytes, code.entry,
          code.lanes) == ("everything", arch, ("buffer", "int64"), 128, 0, 1)
  assert x86.compile(matmul(4), arch).text == x86.compile(matmul(4), arch).text, "the same Program gives the same bytes"

def past_caches(lanes: int, results: int = 1) -> Program:
  """Results that are twice, three times ... the elements of x, stored past the caches: two lines in each iteration."""
  b = Builder(f"past_caches_{lanes}_{results}")
  out = [b.param(k, f32, 128) for k in range(results)]
  x = b.param(results, f32, 128)
  with b.loop(4, AxisType.GLOBAL) as g:
    for at in range(0, 32, lanes):
      value = b.load(x, g * 32 + at, lanes)
      for k, buffer in enumerate(out):
        made = b.add(value * UOp.const(value.dtype, float(k + 2)))
        b.store(buffer, g * 32 + at, made)
        b.uops[-1] = UOp(Ops.STORE, dtypes.void, b.uops[-1].src, None, NON_TEMPORAL)
  return b.program()

@pytest.mark.parametrize("lanes, arch", ((16, "x86_64:avx512"), (8, "x86_64:avx2")))
def test_two_versions_of_a_kernel_with_stores_past_the_caches(lanes: int, arch: str) -> None:
  """One has such stores, and waits for them at its end."""
  program = past_caches(lanes)
  text = compile_listed(program, arch)[1]
  versions = [text.count(name) for name in ("vmovntps", "vmovups", "sfence")]
  assert versions == [32 // lanes, 32 // lanes, 1] or versions == [32 // lanes, 3 * 32 // lanes, 1], text
  assert text.count("an iteration:") == text.count("overall (4 work items)") == 1, "the work of one version counts"
  assert text.index("test rax, 63") < text.index("vmovntps") < text.index("sfence")
  for shift in (0, 4, 32): x86_kernels.run(program, arch, [bytes(512), array("f", range(128)).tobytes()], shift)

@pytest.mark.parametrize("results", (1, 2))
def test_results_that_begin_anywhere(results: int) -> None:
  """A non-temporal store to an address that is no multiple of its size would end the process."""
  device = Device["CPU"]
  if not device.arch.startswith("x86_64"): pytest.skip(f"this processor is used as {device.arch}")
  program = past_caches(8 if "avx2" in device.arch else 16, results)
  loaded = device.load(x86.compile(program, device.arch))
  x = Tensor(range(128), dtype=f32).realize()
  for k in range(results):
    for offset in (0, 4, 32, 60, 64):
      memory = [Tensor.zeros(160).contiguous().realize() for _ in range(results)]
      views = [t._buffer().ensure_allocated().view(128, f32, offset if k == n else 0) for n, t in enumerate(memory)]
      buffers = [*views, x._buffer()]
      device.submit([Launch(loaded, tuple([b.ensure_allocated()._buf for b in buffers]), (), 4)])
      device.synchronize()
      for n, t in enumerate(memory):
        first = offset // 4 if k == n else 0
        assert t.tolist() == [0] * first + [i * (n + 2.0) for i in range(128)] + [0] * (32 - first), (k, n, offset)
