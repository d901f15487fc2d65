"""x86-64 instructions in listings."""
from __future__ import annotations
import pytest

from generators.program_builder import Builder
from tinyhw.dtype import dtypes
from tinyhw.isa.x86 import target
from tinyhw.isa.x86.asm.syntax import parse
from tinyhw.isa.x86.describe import compile_listed, core, operations, peak_of, touched
from tinyhw.isa.x86.model.latency import find

@pytest.mark.parametrize("text, size, count", [
  ("vfmadd231ps ymm0, ymm1, ymmword ptr [rax]", 32, 16),
  ("vfmadd231sd xmm0, xmm1, xmm2", 0, 2),
  ("vaddps xmm0, xmm1, xmm2", 0, 4),
  ("vdivpd ymm0, ymm1, ymm2", 0, 4),
  ("vaddps zmm0, zmm1, dword ptr [rax]{1to16}", 4, 16),
  ("vbroadcastss ymm0, dword ptr [rax]", 4, 0),
  ("vgatherdps ymm0, dword ptr [rax + 4*ymm1], ymm2", 32, 0),
  ("vpaddd ymm0, ymm1, ymm2", 0, 0),
  ("push rax", 8, 0),
  ("mov word ptr [rax], cx", 2, 0),
  ("lea rax, [rax + 8]", 0, 0),
  ("tileloadd tmm1, [rax + rcx]", 1024, 0),
  ("tilestored [rax + rcx], tmm1", 1024, 0),
  ("tdpbf16ps tmm0, tmm1, tmm2", 0, 16384),
  ("tdpbssd tmm0, tmm1, tmm2", 0, 0),
])
def test_bytes_and_operations(text: str, size: int, count: int) -> None:
  inst = parse(text)
  assert (touched(inst) if inst.row.name != "lea" else 0, operations(inst)) == (size, count)

@pytest.mark.parametrize("name, bits, single", [("zen3", 256, 32), ("zen4", 512, 32), ("skylakex", 512, 64),
                                                ("icelake", 256, 32),
                                                ("generic", 256, 32)])
def test_peaks(name: str, bits: int, single: int) -> None:
  peaks = peak_of(find(name), bits)
  assert peaks.pop(16, 1024) == 1024 and peaks == {32: single, 64: single / 2}

def test_peak_is_that_of_the_element_in_use() -> None:
  how = core("zen3", 256)
  assert ([how.peak([parse(t)]) for t in ("vaddps ymm0, ymm1, ymm2", "vaddpd ymm0, ymm1, ymm2", "add eax, 1")]
          == [32, 16, 0])

def test_code_is_what_the_target_compiles() -> None:
  b = Builder("twice")
  a, c = b.param(0, dtypes.float32, 64), b.param(1, dtypes.float32, 64)
  with b.loop(8) as i: b.store(a, i * 8, b.load(c, i * 8, 8) + b.load(c, i * 8, 8))
  code, text = compile_listed(b.program(), "x86_64:avx2", "zen3")
  assert code == target.compile(b.program(), "x86_64:avx2")
  assert "vaddps" in text and "store data0[r0*8:+8]" in text and "in LOOP 8" in text
