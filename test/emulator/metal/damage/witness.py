"""A second witness of kernels of Metal's language: a compiler of C++ compiles the same source with a header that has
what the kernels use (test/support/metal/), and sanitizers watch the lanes, each of which is a thread.

The address and undefined sanitizers see indices outside of memory and misaligned vectors, the thread sanitizer sees
races. Values that nobody has written are seen by the virtual GPU alone.
"""
from __future__ import annotations
import functools
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from test.emulator.mutants.mutation_kernels import Case

HEADERS = Path(__file__).resolve().parents[3] / "support/metal"
COMPILERS = ("clang++", "g++")
SANITIZERS = {"memory": "address,undefined", "races": "thread"}
ALIGNMENT = 16
OPTIONS = ("-std=c++17", "-O1", "-g1", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-sanitize-recover=all", "-w",
           "-pthread")

class Witnessed(NamedTuple):
  """The outcome of a run. report: of the compiler or a sanitizer; results: the buffers that the kernel writes."""
  report: str
  results: tuple[bytes, ...]

@functools.lru_cache(None)
def missing(kind: str) -> str:
  """Return why there is no witness of a kind on this machine; empty if there is one."""
  compiler = next(filter(shutil.which, COMPILERS), None)
  if compiler is None: return f"no compiler: {', '.join(COMPILERS)}"
  done = subprocess.run([compiler, f"-fsanitize={SANITIZERS[kind]}", "-x", "c++", "-", "-o", "/dev/null"],
                        input="int main() {}", capture_output=True, text=True)
  return f"{compiler} has no {SANITIZERS[kind]} sanitizer" if done.returncode else ""

def program_of(case: Case) -> str:
  """Return the kernel's source with a main function."""
  source = case.code.text.decode()
  found = re.search(r"kernel void (\w+)\((.*)\) \{", source)
  assert found is not None
  given = []
  for argument in found[2].split(", "):
    kind = argument.partition(" [[")[0].replace("device ", "").replace("threadgroup ", "")
    number = re.search(r"\[\[buffer\((\d+)\)\]\]", argument)
    if number: given.append(f"({kind.rpartition('*')[0]}*)memory[{number[1]}]")
    elif "[[threadgroup(" in argument: given.append("(uchar *)shared")
    else: given.append(kind.split()[-1])
  source = source.replace(" [[threadgroup(0)]]", "")    # the name of this attribute is one of an address space, too
  sizes = ", ".join(str(size) for size in case.sizes)
  return (f"{source}\n#define SIZES {{{sizes}}}\n#define GRID {case.grid}\n#define LANES {case.code.lanes}\n"
          f"#define LOCAL {case.code.local_bytes}\n#define CALL {found[1]}({', '.join(given)})\n"
          f"#include \"launch.h\"\n")

def run(case: Case, kind: str, folder: Path) -> Witnessed:
  """Compile a kernel with sanitizers, and launch it."""
  compiler = next(filter(shutil.which, COMPILERS))
  source, binary = folder / f"{kind}.cpp", folder / kind
  source.write_text(program_of(case))
  built = subprocess.run([compiler, *OPTIONS, f"-fsanitize={SANITIZERS[kind]}", f"-I{HEADERS}", str(source), "-o",
                          str(binary)], capture_output=True, text=True)
  if built.returncode:
    return Witnessed(next((line for line in built.stderr.splitlines() if "error" in line), "it does not compile"), ())
  contents = b"".join(bytes(size) if content is None else content for content, size in zip(case.buffers, case.sizes))
  done = subprocess.run([str(binary)], input=contents, capture_output=True)
  if done.returncode:
    words = [line for line in done.stderr.decode(errors="replace").splitlines() if "ERROR" in line or "error:" in line
             or "WARNING" in line]
    return Witnessed(words[0] if words else f"ended with {done.returncode}", ())
  places = [sum(case.sizes[:k]) for k in range(len(case.sizes))]
  return Witnessed("", tuple([done.stdout[at:at + size] for at, size, content in zip(places, case.sizes, case.buffers)
                              if content is None]))
