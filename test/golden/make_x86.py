"""Writes x86_64.txt beside it: instructions and the bytes that an independent assembler gives them. Run by hand; the
tests only read the file.

  python3 test/golden/make_x86.py

Needs llvm-mc (14 or later), and GNU as for jumps, whose distances llvm-mc does not take. Every row of the table is
there at least once, with random operands; then every addressing mode; then what must be refused, with our reason
(llvm-mc must refuse it too, except where the line says that only we do).
"""
from __future__ import annotations
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from x86.random import random_instruction

from tinyhw.errors import TinyError
from tinyhw.isa.x86.asm import syntax
from tinyhw.isa.x86.table.table import TABLE

HERE = Path(__file__).resolve().parent

FEATURES = ("avx512f avx512bw avx512dq avx512vl avx512cd avx512vnni avx512bf16 avx512vpopcntdq bmi bmi2 fma f16c "
            "lzcnt popcnt prfchw amx-tile amx-bf16 amx-int8").split()
BASES = [None, "rax", "rcx", "rbx", "rsp", "rbp", "rsi", "r8", "r12", "r13", "r15"]
INDEXES = [None, "2*rax", "4*rbp", "8*r12", "r13", "2*r15"]
DISPLACEMENTS = [0, 1, 127, 128, -128, -129, 64, 8128, 8192, -8192, -8256, 4, 508, 512, 0x7fffffff, -0x80000000]
ADDRESSED = ["mov eax, dword ptr {}", "vaddps ymm1, ymm2, ymmword ptr {}", "vaddps zmm1, zmm2, zmmword ptr {}",
             "vaddps zmm1 {{k1}}, zmm2, dword ptr {}{{1to16}}"]

REFUSED = """
foo eax
movv eax, ecx
add eax
add eax, ecx, edx
add eax, rcx
add [rax], 5
mov eax, [rax + rsp*2]
mov eax, [rax + 3*rcx]
mov eax, [eax]
mov eax, [rax + rcx + rdx]
mov eax, [rax + 0x123456789]
mov eax, [rax
mov al, 300
mov eax, 0x1ffffffff
add rax, 0x80000000
movzx eax, dword ptr [rax]
movzx eax, [rax]
shl eax, dl
shl eax, 256
div 5
setne eax
lea eax, ecx
push eax
jmp .+abc
jne rax
vaddps ymm0, ymm1, xmm2
vaddps ymm0, ymm1
vaddps ymm0, ymm1, xmmword ptr [rax]
vaddps zmm0, zmm1, ymm2
vaddps ymm32, ymm1, ymm2
vaddps ymm0, ymm1, 5
vaddps ymm0 {k0}, ymm1, ymm2
vaddps ymm0 {z}, ymm1, ymm2
vaddps ymm0 {k8}, ymm1, ymm2
vaddps ymm0, ymm1 {k1}, ymm2
vaddps ymm0, ymm1, dword ptr [rax]{1to16}
vpaddb ymm0, ymm1, dword ptr [rax]{1to8}
vpand ymm0, ymm1, ymm17
vpand ymm0 {k1}, ymm1, ymm2
vmovups zmmword ptr [rax] {k1} {z}, zmm0
vgatherdps ymm0, [rax + 4*rcx], ymm3
vgatherdps ymm0, [rax + 4*xmm2], ymm3
vgatherdps zmm0, [rax + 4*zmm2]
vmovaps ymm0, [rax + 4*ymm2]
vextractf128 xmm0, ymm1, 1000
vshufps xmm0, xmm1, xmm2
vblendvps ymm0, ymm1, ymm2, ymm16
vperm2f128 ymm0, ymm1, ymm2, ymm3
kandw k1, k2, eax
kmovw k1, rax
lock vaddps ymm0, ymm1, ymm2
lock add eax, 5
tilezero zmm0
tilezero tmm8
tdpbf16ps tmm0, tmm1
tdpbf16ps tmm0, tmm1, ymm2
tdpbssd tmm0, tmm1, [rax + rcx]
tileloadd tmm0, [rip + rcx]
tileloadd tmm0, tmm1
tilestored tmm0, [rax + rcx]
ldtilecfg rax
""".strip().split("\n")

def llvm(lines: list[str]) -> list[bytes | str]:
  """The bytes of each line, or why it is refused."""
  command = ["llvm-mc", "--triple=x86_64", "-mattr=" + ",".join("+" + f for f in FEATURES), "--show-encoding",
             "--output-asm-variant=1",
             "--x86-asm-syntax=intel"]
  done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True)
  refused = {int(m[1]): m[2] for m in re.finditer(r"^<stdin>:(\d+):\d+: error: (.*)$", done.stderr, re.M)}
  accepted = iter(re.findall(r"encoding: \[(.*)\]", done.stdout))
  return [refused[n] if n in refused else bytes.fromhex(next(accepted).replace("0x", "").replace(",", ""))
          for n in range(1, len(lines) + 1)]

def gnu(lines: list[str]) -> list[bytes]:
  """The same by GNU as, for lines that it takes; each line starts at a multiple of 16."""
  with tempfile.TemporaryDirectory() as folder:
    source, output, flat = (f"{folder}/{name}" for name in ("a.s", "a.o", "a.bin"))
    Path(source).write_text(".intel_syntax noprefix\n" + "\n".join(f".p2align 4, 0xcc\n{line}" for line in lines)
                            + "\n.p2align 4, 0xcc\n")
    subprocess.run(["as", source, "-o", output], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", output, flat], check=True)
    code = Path(flat).read_bytes()
  return [code[i:i + 16].rstrip(b"\xcc") for i in range(0, len(code), 16)]

def addresses() -> list[str]:
  """Every base, index and displacement with instructions whose displacement byte counts differently."""
  found = []
  for n, base in enumerate(BASES):
    for m, index in enumerate(INDEXES):
      for d, disp in enumerate(DISPLACEMENTS):
        if (n + m + d) % 3 and disp not in (0, 127, 128): continue
        terms = " + ".join(t for t in (base, index) if t)
        sum = f"{terms} {'-' if disp < 0 else '+'} {abs(disp)}" if terms and disp else terms or str(disp)
        found.append(ADDRESSED[(n + m + d) % len(ADDRESSED)].format(f"[{sum}]"))
  return found

def main() -> None:
  rng = random.Random(20)
  rows = [random_instruction(row, rng) for row in TABLE]
  plain = [syntax.show(i) for i in rows if i.row.isa.block < 0 and i.row.name not in ("jmp", "call")]
  plain += [f"{name} {what}" for name in ("jmp", "call") for what in ("rcx", "r12", "qword ptr [rdx + 8*r9 + 16]",
                                                                      "qword ptr [rip - 5]")]
  plain += addresses()
  distances = (2, 129, -126, 130, -127, 1000, -5000)
  jumps = [f"{mnemonic} .{n:+d}" for mnemonic in TABLE.mnemonics() for n in distances
           if any(r.isa.block >= 0 for r in TABLE.rows(mnemonic))]
  lines, wrong = [], 0
  for text, code in [*zip(plain, llvm(plain)), *zip(jumps, gnu(jumps))]:
    if isinstance(code, bytes): lines.append(f"{text:<40} ; {code.hex(' ')}")
    else:
      wrong += 1
      print(f"llvm-mc refuses {text}: {code}", file=sys.stderr)
  for text, code in zip(REFUSED, llvm(REFUSED)):
    try: wrong += print(f"we accept {text}: {syntax.assemble(text).hex(' ')}", file=sys.stderr) is None
    except TinyError as e: lines.append(f"{text:<40} ! {e.message}")
    if isinstance(code, bytes): print(f"llvm-mc accepts {text}: {code.hex(' ')}", file=sys.stderr)
  version = subprocess.run(["llvm-mc", "--version"], capture_output=True, text=True).stdout
  number = re.search(r"version (\S+)", version)
  header = (f"# x86_64.txt: made by make_x86.py; llvm-mc {number[1] if number else '?'}, GNU as for jumps; bytes in "
            f"memory order; ! refused, and why\n")
  (HERE / "x86_64.txt").write_text(header + "\n".join(dict.fromkeys(lines)) + "\n")
  print(f"{len(lines)} lines, {wrong} wrong")

if __name__ == "__main__": main()
