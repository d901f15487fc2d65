"""The evidence table of README.md: for each target, how far it is proven, from the tests and golden files that there
are.

    python3 test/pages/evidence.py

Levels: L0 it encodes; L1 it decodes back, and agrees with an independent assembler; L2 an emulator runs the exact bytes
and passes the tensor tests; L3 the conversation with the driver is checked; L4 it ran on silicon. A level stands here
only if what shows it is in the repository, counted here. Runs of the whole tensor suite on virtual GPUs and PoCL are
recorded by test/suite.py, runs on silicon by hand, in `silicon`. test/pages/test_docs.py compares README.md with the
table.
"""
from __future__ import annotations
import re
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import suite

TEST = Path(__file__).resolve().parents[1]

class Target(NamedTuple):
  """A line of the table. golden: vectors, and the pattern of those that belong to this target. files: tests that must
  exist for each level.

  tools: independent assemblers that made the vectors. chip: the virtual GPU (processors: QEMU). Its recorded run of the
  tensor suite is all of L2; without one that passed, L2 is reached in part.
  """
  name: str
  golden: tuple[str, str]
  files: dict[str, str]
  silicon: str = ""
  tools: str = "llvm-mc 14 and GNU as"
  chip: str = ""

WIDE = r"zmm|\{k\d\}|\bk[0-7]\b|[xy]mm(?:1[6-9]|2\d|3[01])\b"   # registers and forms that need EVEX, or masks
DRIVER = "drivers/cpu/test_workers.py"

AMD = {"L0": "isa/amd/asm/test_encode.py", "L1": "isa/amd/asm/test_decode.py", "L2": "emulator/amd/test_tensors.py",
       "L3": "drivers/gpu/test_emulated.py"}
NVIDIA = {"L0": "isa/sass/asm/test_encode.py", "L1": "isa/sass/asm/test_decode.py",
          "L2": "emulator/nvidia/test_tensors.py",
          "L3": "drivers/gpu/test_emulated.py"}
ENCODES = {level: NVIDIA[level] for level in ("L0", "L1")}
ARM64 = {"L0": "isa/arm64/asm/test_encode.py", "L1": "isa/arm64/asm/test_decode.py",
         "L2": "isa/arm64/select/test_select.py",
         "L3": "isa/arm64/test_runtime.py"}
RISCV64 = {"L0": "isa/riscv64/asm/test_encode.py", "L1": "isa/riscv64/asm/test_decode.py",
           "L2": "isa/riscv64/select/test_select.py",
           "L3": "isa/riscv64/test_runtime.py"}
X86 = {"L0": "isa/x86/asm/test_encode.py", "L1": "isa/x86/asm/test_decode.py", "L3": DRIVER}

TARGETS = (
  Target("x86-64, AVX2", ("golden/x86_64.txt", f"^(?!.*(?:{WIDE}))"), {**X86, "L2": "isa/x86/select/test_mask.py"},
         "AMD Zen 3 (EPYC, family 25 model 1) and Intel Granite Rapids, Linux: `examples/digits.py`, every kernel of "
         "`docs/tour.md`"),
  Target("x86-64, AVX-512", ("golden/x86_64.txt", f"(?:{WIDE})"), {**X86, "L2": "isa/x86/select/test_evex.py"},
         "Intel Granite Rapids (KVM guest), Linux: `examples/digits.py`, `test/isa/x86/test_silicon.py`"),
  Target("x86-64, AMX", ("golden/x86_64.txt", "tmm|tilecfg|tilerelease"), {**X86, "L2": "isa/x86/select/test_tile.py"},
         "Intel Granite Rapids (KVM guest), Linux: `test/isa/x86/select/test_tile.py`, to the bit"),
  Target("AArch64, AdvSIMD to SVE2", ("golden/arm64.txt", ""), ARM64, tools="llvm-mc 19 and GNU as 2.40",
         chip="arm64"),
  Target("RISC-V, RV64G with V 1.0", ("golden/riscv64.txt", ""), RISCV64, tools="llvm-mc 19 and GNU as 2.40",
         chip="riscv64"),
  *(Target(f"AMD {name} ({chip})", (f"golden/amd_{chip}.txt", "^(?!@)"), AMD, tools=tools, chip=chip)
    for name, chip, tools in (
    ("RDNA3", "gfx1100", "LLVM 19 and 22"), ("RDNA4", "gfx1200", "LLVM 19 and 22"),
    ("CDNA3", "gfx942", "LLVM 19 and 22"),
    ("CDNA4", "gfx950", "LLVM 22"))),
  # Its vectors are gfx1200's, which LLVM 22 gives for it, too (isa/amd/test_oracle.py).
  Target("AMD RDNA4 (gfx1201)", ("golden/amd_gfx1200.txt", "^(?!@)"),
         {"L0": "isa/amd/asm/test_encode.py", "L1": "isa/amd/test_oracle.py"},
         tools="LLVM 22"),
  *(Target(f"NVIDIA {name} (sm_{number})", ("golden/sass.txt", rf"^[\d,]*\b{number}\b"), files, chip=f"sm_{number}",
           tools="ptxas 13.0 and nvdisasm 13.1") for name, number, files in (
    ("Ampere", 80, NVIDIA), ("Ada", 89, NVIDIA), ("Hopper", 90, NVIDIA), ("Blackwell", 100, ENCODES),
    ("Blackwell", 120, ENCODES))),
)
SOURCES = (
  ("C (`DEV=CLANG`)", "drivers/test_clang.py", "an installed compiler makes the code; the same worker ring; tests "
   "compare it with PYTHON"),
  ("Python (`DEV=PYTHON`)", "drivers/test_python.py", "no machine code; compared with the interpreter "
   "`tinyhw/uop/evaluate/`, the definition"),
)

# Source that an installed driver compiles: the chip of the suite's run, the tests of the driver
OPENCL = ("OpenCL C (`DEV=OPENCL`)", "pocl", "drivers/opencl/test_device.py")
WEBGPU = ("WGSL (`DEV=WEBGPU`)", "webgpu", "drivers/webgpu/test_device.py")
# Source that a virtual GPU executes: the chip of the suite's run, tests of kernels and of the driver
METAL = ("Metal's language (`DEV=METAL`)", "apple7", "emulator/metal/test_translate.py", "drivers/metal/test_device.py")

def vectors(golden: tuple[str, str]) -> tuple[int, int]:
  """Golden lines with bytes, and refused ones, that belong to a target."""
  name, pattern = golden
  path, belongs = TEST / name, re.compile(pattern)
  if not path.exists(): return 0, 0
  good = bad = 0
  for line in path.read_text(encoding="utf-8").splitlines():
    if line.startswith("#") or not belongs.search(line.partition(" ; ")[0].partition(" ! ")[0]): continue
    if " ! " in line: bad += 1
    else: good += 1
  return good, bad

def suite_on(chip: str) -> str:
  """Return the counts of a recorded run of the whole tensor suite. Empty where there is none, or tests failed."""
  run = suite.recorded().get(chip)
  if run is None or run.failed: return ""
  counts = f"{run.passed} tests passed, {sum(run.skipped.values())} skipped ([why](docs/hardware/emulator.md))"
  return f"the tensor suite (`test/suite.py`), {run.date} at {run.commit}: {counts}"

def row(target: Target) -> str:
  good, bad = vectors(target.golden)
  have = {level for level, name in target.files.items() if (TEST / name).exists()}
  encoded = f"yes, {good} encodings; {bad} invalid ones are rejected" if "L0" in have and good else "–"
  decoded = f"yes, {target.tools}" if {"L0", "L1"} <= have and good else "–"
  emulated, driver = (f"`test/{target.files[level]}`" if level in have else "–" for level in ("L2", "L3"))
  if "L2" in have and target.chip: emulated = suite_on(target.chip) or f"in part: {emulated}"
  return f"| {target.name} | {encoded} | {decoded} | {emulated} | {driver} | {target.silicon or 'not yet'} |\n"

def table() -> str:
  """The table as Markdown."""
  head = ("| target | L0 encodes | L1 decodes, agrees | L2 emulated | L3 driver | L4 on silicon "
          "|\n|---|---|---|---|---|---|\n")
  checked = {test: f"`test/{test}`" if (TEST / test).exists() else "–" for _, test, _ in SOURCES}
  rest = "".join(f"| {name} | – | – | – | {checked[test]} | {what} |\n" for name, test, what in SOURCES)
  name, chip, test = OPENCL
  on_pocl = suite_on(chip) or "in part, on PoCL: `test/codegen/render/test_opencl.py`"
  rest += f"| {name} | – | – | {on_pocl} | `test/{test}` | not yet on a GPU; PoCL computes on the processor |\n"
  name, chip, test = WEBGPU
  on_lavapipe = suite_on(chip) or "in part, on lavapipe: `test/codegen/render/test_wgsl.py`"
  rest += f"| {name} | – | – | {on_lavapipe} | `test/{test}` | not yet on a GPU; lavapipe computes on the processor |\n"
  name, chip, kernels, test = METAL
  rest += f"| {name} | – | – | {suite_on(chip) or f'in part: `test/{kernels}`'} | `test/{test}` | not yet |\n"
  return head + "".join(map(row, TARGETS)) + rest

if __name__ == "__main__": print(table(), end="")
