"""Whole kernels through selection, allocation and scheduling to bytes. The bytes decode again, and NVIDIA's
disassembler prints our text."""
import pytest

from nvidia.golden import Vector
from nvidia.oracle import INSTALLED, disassemble_all
from test.codegen.kernels import axis
from test.codegen.products import product
from test.codegen.random_kernels import Generator
from test.isa.amd.select.test_alu import applied, operations
from test.isa.sass.machine import ARCHS
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.sass.asm.decode import decode_all
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.target import assemble, capabilities, compile, registers_for, target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def elementwise(arch: str, n: int = 1000) -> Program:
  out, a, b = [UOp.param(k, dtypes.float32, n) for k in range(3)]
  r = axis(n, 0)
  kernel = UOp.sink(out.index(r).store(a.index(r).load() * b.index(r).load() + a.index(r).load(), r))
  return lower(optimize(kernel, capabilities(arch)), capabilities(arch), "E")

@pytest.mark.parametrize("arch", ARCHS)
def test_what_is_encoded_decodes(arch: str) -> None:
  _, text, placed = assemble(elementwise(arch), arch)
  decoded = list(decode_all(text, arch))
  for (offset, inst, control), (at, found, same) in zip(placed, decoded):
    assert offset == at and control == same and found.row.isa.key == inst.row.isa.key, (f"{inst} at {offset} is read "
                                                                                        f"as {found}")
  assert placed[-1][1].row.name == "EXIT" and decoded[len(placed)][1].row.name == "BRA"
  assert len(text) % 128 == 0 and {inst.row.name for _, inst, _ in decoded[len(placed) + 1:]} <= {"NOP"}

@pytest.mark.parametrize("arch", ARCHS)
def test_code_says_what_a_launch_needs(arch: str) -> None:
  code = compile(elementwise(arch), arch)
  assert code.lanes in (125, 250) and code.wave == 32 and code.arguments == ("buffer",) * 3
  counts = dict(code.registers)
  assert 0 < counts["r"] <= 24 and counts["barrier"] == 0 and code.local_bytes == code.private_bytes == 0

@pytest.mark.parametrize("lanes, registers", [(32, 252), (256, 252), (288, 165), (384, 165), (640, 93), (512, 125),
                                              (1024, 61)])
def test_registers_of_a_block_fit_with_those_of_the_hardware(lanes: int, registers: int) -> None:
  """A sub-partition has 512 registers for each lane, and every fourth warp. It allocates steps of eight, two of them
  for the hardware. One is left for the frame."""
  assert registers_for(lanes) == registers == target("sm_90", registers).allocatable["R"][-1] + 1

def test_barriers_are_counted() -> None:
  n = 600
  out, a, r = UOp.param(0, dtypes.float32, 1), UOp.param(1, dtypes.float32, n), axis(n, 0, "REDUCE")
  kernel = UOp.sink(out.index(UOp.const(dtypes.weakint, 0)).store(a.index(r).load().reduce(Ops.ADD, r)))
  program = lower(optimize(kernel, capabilities("sm_90")), capabilities("sm_90"), "sum")
  code = compile(program, "sm_90")
  assert dict(code.registers)["barrier"] == 1 and code.local_bytes == program.local_bytes > 0

def test_other_generations_are_refused() -> None:
  with pytest.raises(CompileError, match="kernels for sm_100 are not made yet; there is sm_80, sm_89, sm_90"):
    target("sm_100")
  with pytest.raises(CompileError, match="no NVIDIA architecture is called sm_70"): target("sm_70")

@pytest.mark.skipif(INSTALLED is None, reason="nvdisasm is not installed; pip install triton")
@pytest.mark.parametrize("arch", ARCHS)
def test_the_disassembler_reads_what_is_made(arch: str) -> None:
  """Kernels of all operations, and random ones: each instruction's text is ours."""
  capable = capabilities(arch)
  kernels = [applied(op, dtype, AxisType.LOCAL, 64) for dtype in (dtypes.int32, dtypes.uint64, dtypes.float32,
                                                                  dtypes.float64, dtypes.float16)
             for op in operations(dtype)]
  programs = [lower(kernel, capable, "one") for kernel in kernels] + [lower(Generator(seed).kernel(), capable, "random")
                                                                      for seed in range(12)]
  products = [product(16, 8, 512, dtype, dtypes.float32, dtype is dtypes.float16)
              for dtype in (dtypes.float16, dtypes.bfloat16)]
  programs += [lower(optimize(kernel, capable), capable, "product") for kernel in products]
  codes: dict[bytes, str] = {}
  for program in programs:
    _, text, placed = assemble(program, arch)
    for offset, inst, control in placed:
      if inst.row.name != "BRA": codes[text[offset:offset + 16]] = show(inst, control, 0)
  found = disassemble_all(list(codes), arch)
  wrong = [(ours, text) for (code, ours), (text, pc) in zip(codes.items(), found)
           if not Vector(arch, pc, code, text).same(" ".join(ours.split()))]
  assert len(codes) > 300 and not wrong, f"{len(wrong)} of {len(codes)} differ: {wrong[:5]}"
