"""An independent assembler for AMD: the clang of the package ziglang, if it is installed."""
from __future__ import annotations
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

INSTALLED = importlib.util.find_spec("ziglang") is not None
PLACE = re.compile(r":(\d+):\d+: error: ")
ENCODING = re.compile(r"encoding: \[(.*?)\]")

def run(lines: Sequence[str], arch: str, folder: str) -> tuple[list[bytes], set[int]]:
  """The encodings of the lines, in order, and the numbers of those that are refused (then there are no encodings)."""
  name, _, wave = arch.partition(":")
  source = Path(folder) / "instructions.s"
  source.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
  command = [sys.executable, "-m", "ziglang", "clang", "-cc1as", "-triple", "amdgcn-amd-amdhsa", "-target-cpu", name,
             "-show-encoding",
             "-filetype", "asm", "-o", "-", str(source)]
  if wave == "wave64": command += ["-target-feature", "+wavefrontsize64", "-target-feature", "-wavefrontsize32"]
  if name[:5] == "gfx12": command += ["-target-feature", "+real-true16"]
  caches = {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
  done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **caches})
  refused = {int(number) - 1 for number in PLACE.findall(done.stderr)}
  return [bytes.fromhex(code.replace("0x", "").replace(",", "")) for code in ENCODING.findall(done.stdout)], refused

def assemble_all(lines: Sequence[str], arch: str) -> list[str | None]:
  """The bytes of each line in hex, None for one that is refused."""
  with tempfile.TemporaryDirectory() as folder:
    _, refused = run(lines, arch, folder)
    kept = [i for i in range(len(lines)) if i not in refused]
    codes, _ = run([lines[i] for i in kept], arch, folder)
  assert len(codes) == len(kept), f"{arch}: {len(codes)} encodings of {len(kept)} instructions"
  found: list[str | None] = [None] * len(lines)
  for i, code in zip(kept, codes): found[i] = code.hex()
  return found
