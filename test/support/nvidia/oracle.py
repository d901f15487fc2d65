"""NVIDIA's disassembler, which the package triton brings with it (or PATH): texts of instructions."""
from __future__ import annotations
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = {"sm_80": "SM80", "sm_89": "SM89", "sm_90": "SM90a", "sm_100": "SM100a", "sm_120": "SM120a"}
LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*/\* 0x[0-9a-f]{16} \*/")
REFUSED = re.compile(r"at address 0x([0-9a-f]+)")

def find() -> str | None:
  """The program, or None."""
  spec = importlib.util.find_spec("triton")
  inside = Path(spec.origin).parent / "backends/nvidia/bin/nvdisasm" if spec is not None and spec.origin else None
  return str(inside) if inside is not None and inside.exists() else shutil.which("nvdisasm")

INSTALLED = find()

def disassemble_all(codes: list[bytes], arch: str) -> list[tuple[str, int]]:
  """For each instruction its text, "" if it is refused, and the address that it was read at."""
  found, left = [("", 0)] * len(codes), list(range(len(codes)))
  while left:
    with tempfile.NamedTemporaryFile(delete=False) as file: file.write(b"".join(codes[i] for i in left))
    done = subprocess.run([str(INSTALLED), "-b", NAMES[arch], "-hex", "-ndf", file.name], capture_output=True,
                          text=True, check=False)
    os.unlink(file.name)
    if done.returncode == 0:
      for address, text in LINE.findall(done.stdout):
        found[left[int(address, 16) // 16]] = " ".join(text.split()), int(address, 16)
      return found
    refused = {int(address, 16) // 16 for address in REFUSED.findall(done.stderr)}
    assert refused, f"nvdisasm failed: {done.stderr[:500]}"
    left = [i for n, i in enumerate(left) if n not in refused]
  return found
