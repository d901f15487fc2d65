"""Write test/golden/amd_llvm.txt: amd_llvm.c as LLVM compiles it for AMD GPUs, and checksums of what the host's version
computes.

Run by hand: python3 test/golden/make_amd_llvm.py. Needs ziglang (pip install ziglang), whose clang has the AMDGPU
backend.
"""
from __future__ import annotations
import base64
import ctypes
import importlib.metadata
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent.parent)]
from amd.llvm import WORDS, checksums, inputs  # noqa: E402

SOURCE = HERE / "amd_llvm.c"
# True16 registers and bitop3 are what the assembler does not know yet
ARCHS = {"gfx1100": ["-real-true16"], "gfx1200": [], "gfx942": [], "gfx950": ["-bitop3-insts"]}
COMMON = ["-O2", "-ffp-contract=off", "-Xclang", "-ffloat16-excess-precision=none"]
NUMBERS = {"next_free_vgpr": "vgprs", "user_sgpr_count": "user", "group_segment_fixed_size": "lds",
           "private_segment_fixed_size": "scratch",
           "accum_offset": "accumulator"}

def clang(*arguments: str) -> None: subprocess.run([sys.executable, "-m", "ziglang", *arguments], check=True)

def compiled(arch: str, folder: Path) -> tuple[bytes, dict[str, int], dict[str, dict[str, int]]]:
  """(text section, offsets of functions, numbers of each kernel's descriptor)."""
  features = [word for feature in ARCHS[arch] for word in ("-Xclang", "-target-feature", "-Xclang", feature)]
  target = ["clang", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-fdenormal-fp-math=ieee", *features,
            *COMMON, str(SOURCE)]
  clang(*target, "-c", "-o", str(folder / "k.o"))
  clang(*target, "-S", "-o", str(folder / "k.s"))
  kernels: dict[str, dict[str, int]] = {}
  for line in (folder / "k.s").read_text().split("\n"):
    words = line.split()
    if words[:1] == [".amdhsa_kernel"]: current = kernels.setdefault(words[1], {})
    elif words and words[0].startswith(".amdhsa_") and words[0][8:] in NUMBERS:
      current[NUMBERS[words[0][8:]]] = int(words[1])
  code, offsets = sections((folder / "k.o").read_bytes())
  return code, offsets, kernels

def sections(data: bytes) -> tuple[bytes, dict[str, int]]:
  """The text of a 64-bit ELF object, and the offset of each symbol in it."""
  start, count, names_at = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
  headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i) for i in range(count)]
  def name(table: int, at: int) -> str:
    return data[headers[table][4] + at:data.index(b"\0", headers[table][4] + at)].decode()
  by_name = {name(names_at, header[0]): header for header in headers}
  text, symbols = by_name[".text"], by_name[".symtab"]
  entries = [struct.unpack_from("<IBBHQQ", data, symbols[4] + 24 * i) for i in range(symbols[5] // 24)]
  return data[text[4]:text[4] + text[5]], {name(symbols[6], e[0]): e[4] for e in entries}

def main() -> None:
  with tempfile.TemporaryDirectory() as temporary:
    folder = Path(temporary)
    clang("cc", "-march=x86_64_v3", "-shared", "-fPIC", *COMMON, "-o", str(folder / "k.so"), str(SOURCE), "-lm")
    host = ctypes.CDLL(str(folder / "k.so"))
    lines = [f"# test/golden/amd_llvm.c by clang of ziglang {importlib.metadata.version('ziglang')}, made by "
             f"make_amd_llvm.py",
             "# result KERNEL: checksums of the host's results, of 16 words each; code ARCH: the text section, zlib, "
             "base64;",
             "# kernel ARCH NAME: where it begins in there, and the numbers of its descriptor"]
    names: list[str] = []
    for arch in ARCHS:
      code, offsets, kernels = compiled(arch, folder)
      lines.append(f"code {arch} {base64.b64encode(zlib.compress(code, 9)).decode()}")
      for name, numbers in kernels.items():
        lines.append(f"kernel {arch} {name} offset={offsets[name]} " + " ".join(f"{key}={value}"
                                                                                for key, value in numbers.items()))
        if name not in names: names.append(name)
    for name in names:
      if name.startswith("x_"): continue
      a, b, out = ((ctypes.c_uint32 * WORDS)(*words) for words in (*inputs(name), [0] * WORDS))
      for item in range(128): getattr(host, name)(a, b, out, item)
      lines.append(f"result {name} " + " ".join(checksums(name, list(out))))
    (HERE / "amd_llvm.txt").write_text("\n".join(lines) + "\n", encoding="ascii")

if __name__ == "__main__": main()
