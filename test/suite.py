"""The tensor suite: which tests say what a device computes, and the command that runs them. It runs them on virtual
GPUs, on PoCL and lavapipe (drivers of OpenCL and Vulkan for processors), and on the CPU device under QEMU's AArch64 and
RISC-V (test/support/cpu/root.py). What is not installed is left out, with the reason.

    python3 test/suite.py                        # all tests on each of CHIPS, in turn; writes the counts (RECORD)
    python3 test/suite.py --share 16 gfx942      # a sixteenth, drawn by the names of tests and chip; writes nothing
    python3 test/suite.py --share 16 --rotate 3  # on three of the chips, other ones for other commits
    EMULATE=gfx1100x6 DEV=AMD python3 -m pytest --suite tensor -k softmax    # one test; arguments are pytest's

The suite is every test file in AREA that OUT does not name, with a reason; so new ones belong to it. Nothing is made
smaller for GPUs. What speaks of the host's own processor has the marker `host`, with a reason, and is skipped on GPUs.
`host_memory` is skipped where the program does not see the device's memory. A run in which no workgroup was executed
has failed. README.md and docs/hardware/emulator.md say what the recorded runs counted. Some 320 tests compare with
PyTorch, and are skipped where the Python that runs this has none (extra `bench`).
"""
from __future__ import annotations
import argparse
import collections
import concurrent.futures
import datetime
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import NamedTuple

TEST = Path(__file__).resolve().parent
RECORD = TEST / "golden/tensor_suite.txt"
CHIPS = {chip: device for device, chips in {"AMD": "gfx1100 gfx1200 gfx942 gfx950", "NV": "sm_80 sm_89 sm_90",
                                            "METAL": "apple7 apple8 apple9", "OPENCL": "pocl",
                                            "WEBGPU": "webgpu",
                                            "CPU": "arm64 riscv64"}.items()
         for chip in chips.split()}
# chips that are the host's own processor, or QEMU's -> names that systems have for it, and the processor that QEMU is
PROCESSORS = {"arm64": (("aarch64", "arm64"), "cortex-a72"),
              "riscv64": (("riscv64",), "rv64,zba=true,zbb=true,zfhmin=true,v=true,vlen=128")}
NEEDED = ("pytest", "xdist", "hypothesis", "numpy")  # what a Python must have to run the suite itself
ENDED = (0, 1)  # pytest's statuses of runs that came to their end: others were interrupted, or never began. A run whose
                # tests could not be collected has the status 1, too, and none that passed
PATIENCE = "200000"  # milliseconds for a submission, of which virtual cards get several times as many: the machine may
                     # have other work, too
CARDS = 6   # tests of tensors on several devices name the first one, and those with the numbers 1, 3, 4 and 5

AREA = ("test_*.py", "methods/**/test_*.py", "engine/**/test_*.py", "capture/test_*.py", "nn/test_*.py",
        "house/test_*.py", "numerics/test_*.py", "pages/test_*.py", "whole/test_*.py")
OUT = {file: reason for reason, files in {
  "computes no tensor": """test_arithmetic test_config test_device_interface test_dtype test_errors test_helpers
    test_init test_main test_trace engine/run/test_backends engine/run/test_show engine/schedule/test_memory
    house/test_generated_code house/test_layers house/test_picture house/test_run house/test_setup house/test_suite
    pages/test_glossary pages/test_sentences whole/test_api""",
  "is about devices themselves; a GPU's driver has test/drivers/amd and test/emulator": "test_device",
  "trains whole networks, which takes hours on a virtual GPU": "whole/test_programs",
  "runs programs of its own, which choose their devices": "pages/test_docs house/test_silicon engine/run/test_compile",
  "is about formats of files, whose bytes are the same on every device; test_tensor_io and test_disk move them there "
  "and back":
    "nn/test_datasets nn/test_npy nn/test_safetensors nn/test_tar_archive nn/test_torch_file nn/test_unpickle "
  "nn/test_zip_archive",
}.items() for file in (f"{name}.py" for name in files.split())}

# Types that a chip does not have. Codegen refuses their kernels by name, and then their tests are skipped.
WITHOUT = {"apple7": "float64", "apple8": "float64", "apple9": "float64", "webgpu": "float64"}
REFUSAL = (r"(?:the target has no \w+ of|(?:Metal|WGSL) has no values of|"
           r"the target does not convert(?: dtypes.\w+ to)?) dtypes.{0}\b")

LOOPS = "this driver ends the loops of a kernel"

def lacks(chip: str, error: BaseException) -> str:
  """Return why a test cannot run on a chip: the error refuses a kernel for a type that it does not have, or for its
  long loops. Empty for other errors."""
  missing = WITHOUT.get(chip)
  if missing is None or type(error).__name__ != "CompileError": return ""
  if LOOPS in str(error): return "lavapipe ends the loops of a kernel after 65535 iterations"
  return f"the card has no {missing}" if re.match(REFUSAL.format(missing), str(error)) else ""

# Of a share, one test in this many: PoCL and lavapipe compile a kernel in a tenth of a second, Python under QEMU is 13
# times as slow (RISC-V's vectors more), and virtual GPUs of Apple execute all of it in Python
SPARSER = {"pocl": 4, "webgpu": 4, "arm64": 8, "riscv64": 16, "apple7": 4, "apple8": 4, "apple9": 4}

def files() -> list[str]:
  """The suite's files, relative to test/."""
  found = sorted(str(path.relative_to(TEST).as_posix()) for pattern in AREA for path in TEST.glob(pattern))
  return [name for name in found if name not in OUT]

def chip_of(name: str) -> str:
  """The chip of EMULATE's cards: "gfx1100" of "gfx1100x6"."""
  found = re.match("[a-z]+_?[0-9a-f]+", name)
  return found[0] if found else ""

def chip_here(emulated: str, device: str) -> str:
  """The chip of EMULATE's cards, or the one of the device that DEV names; empty for an x86 host's own."""
  kind, machine = device.partition(":")[0], platform.machine()
  named = [chip for chip, kinds in CHIPS.items() if kinds == kind and kind in ("OPENCL", "WEBGPU", "CPU")
           and machine in PROCESSORS.get(chip, ((machine,), ""))[0]]
  return chip_of(emulated) or (named[0] if named else "")

def is_gpu(device: str) -> bool:
  """Is a device, as DEV names it, another one than the host's processor?"""
  return device.partition(":")[0] in set(CHIPS.values()) - {"CPU"}

def drawn(test: str, by: str, share: int) -> bool:
  """Whether a test is among one of `share`: other ones on other chips or commits (`by`), the same ones in each run."""
  return zlib.crc32(f"{by} {test}".encode()) % share == 0

# ***** what ran *****

class Run(NamedTuple):
  """The counts of a run of the suite on a chip. commit: of the tree that was tested. workgroups: executed by the
  virtual GPU, by PoCL or by lavapipe; on processors submissions to the worker threads. skipped: how many tests for each
  reason.
  """
  chip: str
  date: str
  commit: str
  passed: int
  failed: int
  workgroups: int
  skipped: dict[str, int]

  def line(self) -> str:
    counts = (f"{self.passed} passed, {self.failed} failed, {self.workgroups} workgroups; skipped: "
              f"{json.dumps(self.skipped)}")
    return f"{self.chip} {self.date} {self.commit} {counts}"

def parse(line: str) -> Run:
  """The inverse of Run.line."""
  counts, _, skipped = line.partition("; skipped: ")
  chip, date, commit, passed, _, failed, _, workgroups, _ = counts.split()
  return Run(chip, date, commit, int(passed), int(failed), int(workgroups), json.loads(skipped))

def recorded() -> dict[str, Run]:
  """The last run of the whole suite on each chip."""
  if not RECORD.exists(): return {}
  return {run.chip: run for run in map(parse, filter(lambda line: line and not line.startswith("#"),
                                                     RECORD.read_text("utf-8").splitlines()))}

def record(runs: list[Run]) -> None:
  """Write them down in the place of earlier ones of the same chips."""
  all_runs = {**recorded(), **{run.chip: run for run in runs}}
  head = ("# The last runs of the whole tensor suite on virtual GPUs, PoCL and lavapipe and under QEMU, under all "
          "checks; python3 test/suite.py writes this.\n")
  RECORD.write_text(head + "".join(f"{all_runs[chip].line()}\n" for chip in CHIPS if chip in all_runs), "utf-8")

def table() -> str:
  """The recorded runs as Markdown, with what was skipped."""
  runs = list(recorded().values())
  missing = [chip for chip in CHIPS if chip not in recorded()]
  lines = [f"No run of everything is recorded of {', '.join(missing)}.", ""] if missing else []
  if runs:
    lines += ["| card | run | commit | tests that passed | failed | skipped | workgroups executed |",
              "|---|---|---|---|---|---|---|"]
    lines += [f"| {r.chip} | {r.date} | {r.commit} | {r.passed} | {r.failed} | {sum(r.skipped.values())} | "
              f"{r.workgroups} |" for r in runs]
    lines += ["", "| skipped because | " + " | ".join(r.chip for r in runs) + " |", "|---" * (1 + len(runs)) + "|"]
    lines += [f"| {why} | " + " | ".join(str(r.skipped.get(why, 0)) for r in runs) + " |"
              for why in sorted({why for r in runs for why in r.skipped})]
    lines.append("")
  lines += ["| not in the suite | because it |", "|---|---|"]
  for reason in dict.fromkeys(OUT.values()):
    lines.append(f"| {', '.join(f'`{name}`' for name in OUT if OUT[name] == reason)} | {reason} |")
  return "\n".join(lines) + "\n"

def commit() -> str:
  """Return the name of the tree in git: a short hash, with +changes where files other than RECORD differ from it.

  `unknown` without git.
  """
  def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=TEST, check=True, capture_output=True, text=True).stdout.strip()
  try:
    return git("rev-parse", "--short", "HEAD") + "+changes" * bool(git("diff", "--name-only", "HEAD", "--", ":/",
                                                                       f":(exclude){RECORD}"))
  except (OSError, subprocess.CalledProcessError): return "unknown"

class Counter:
  """Counts the outcomes of a session's tests, and the workgroups that the virtual GPU executes; conftest.py tells
  it."""
  def __init__(self, chip: str):
    self.chip, self.workgroups = chip, 0
    self.outcomes: collections.Counter[str] = collections.Counter()
    self.reasons: collections.Counter[str] = collections.Counter()

  def add(self, when: str, outcome: str, reason: str) -> None:
    """A report: of the setup, the call or the teardown of a test."""
    if outcome == "skipped": self.reasons[reason] += 1
    elif outcome == "failed" or when == "call": self.outcomes[outcome] += 1

  def run(self) -> Run:
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return Run(self.chip, today, commit(), self.outcomes["passed"], self.outcomes["failed"], self.workgroups,
               dict(sorted(self.reasons.items())))

# ***** the command *****

def environment(share: int) -> tuple[str, list[str], int]:
  """A Python that has what is NEEDED, this one or that of test/run.py's environment; arguments that spread tests over
  the processor's cores; and how many chips run side by side. A small share is not worth spreading: each process
  collects all tests.
  """
  sys.path.insert(0, str(TEST))
  import run  # beside this file, wherever that was imported from
  python = sys.executable if all(importlib.util.find_spec(name) for name in NEEDED) else run.prepare()
  return (python, run.processes(), 1) if share == 1 else (python, [], run.at_once())

def variables_of(chip: str, folder: str) -> dict[str, str]:
  """Environment variables for a chip: CARDS cards of it. folder: for what its driver compiles."""
  common = dict(os.environ, DEV=CHIPS[chip], HCQDEV_WAIT_TIMEOUT_MS=PATIENCE)
  if chip in PROCESSORS: return dict(common, EMULATE="", QEMU_CPU=PROCESSORS[chip][1])
  if CHIPS[chip] == "WEBGPU": return dict(common, EMULATE="", WEBGPU_DEVICES=",".join(["llvmpipe"] * CARDS))
  if CHIPS[chip] != "OPENCL": return dict(common, EMULATE=f"{chip}x{CARDS}", EMULATE_STRICT="1")
  return dict(common, EMULATE="", OPENCL_DEVICES="portable computing language", OPENCL_LANES="1", POCL_CACHE_DIR=folder,
              POCL_DEVICES=" ".join(["pthread"] * CARDS))

OPEN = "from tinyhw.device import Device\nDevice['%s:%d']"

QEMU_ROOT = TEST / "support/cpu/root.py"

def why_absent(chip: str, python: str, variables: dict[str, str], folder: str) -> str:
  """Return why a chip's driver, or a Python for it, is not on this machine; empty if it is. Virtual cards are
  everywhere. folder: where that Python is made."""
  opening = [python, "-c", OPEN % (CHIPS[chip], CARDS - 1)]
  making = [python, str(QEMU_ROOT), "build", chip, folder]
  command = {"OPENCL": opening, "WEBGPU": opening, "CPU": making}.get(CHIPS[chip])
  if command is None: return ""
  done = subprocess.run(command, cwd=TEST.parent, env=variables, capture_output=True, text=True)
  return (done.stderr or done.stdout).strip().rpartition("\n")[2] if done.returncode else ""

def run_on(chip: str, share: int, rest: list[str]) -> tuple[int, Run | None]:
  """pytest's exit status, and what it counted."""
  python, spread, _ = environment(share)
  if share > 1: share *= SPARSER.get(chip, 1)
  with tempfile.TemporaryDirectory() as folder:
    variables = variables_of(chip, folder)
    if absent := why_absent(chip, python, variables, folder):
      print(f"suite.py: {chip} is left out: {absent}", flush=True)
      return 0, None
    told = Path(folder, "run")
    start = [str(QEMU_ROOT), "test", folder] if chip in PROCESSORS else ["-m", "pytest"]
    command = [python, *start, *spread, "--suite", "tensor", "--share", str(share), "--count-into", str(told),
               *rest]
    title = f"suite.py: {chip}: {' '.join(command[1:])}"
    if share == 1:
      print(title, flush=True)
      status = subprocess.call(command, cwd=TEST.parent, env=variables)
    else:
      done = subprocess.run(command, cwd=TEST.parent, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, errors="replace")
      print(f"{title}\n{done.stdout}", end="", flush=True)
      status = done.returncode
    return status, parse(told.read_text("utf-8")) if told.exists() else None

def rotated(chips: list[str], count: int, commit: str) -> list[str]:
  """`count` neighbours of a list, which goes round. The name of a commit decides where they begin."""
  first = zlib.crc32(commit.encode()) % len(chips)
  return [chips[(first + k) % len(chips)] for k in range(min(count, len(chips)))]

def main() -> int:
  """Run the suite on the chips that are named; 0 if all passed."""
  parser = argparse.ArgumentParser(description="Run the tensor suite on virtual GPUs, PoCL, lavapipe and QEMU.")
  parser.add_argument("chips", nargs="*", default=list(CHIPS), metavar="CHIP",
                      help=f"one of {', '.join(CHIPS)}; all of them if none is named")
  parser.add_argument("--share", type=int, default=1, metavar="N", help="run one test of N")
  parser.add_argument("--rotate", type=int, metavar="N", help="run N of the chips: neighbours in the list, from one on "
                      "that the commit decides")
  options, rest = parser.parse_known_args()
  if wrong := set(options.chips) - set(CHIPS):
    parser.error(f"no such chip: {', '.join(sorted(wrong))}; there are {', '.join(CHIPS)}")
  if options.rotate: options.chips = rotated(options.chips, options.rotate, commit())
  failed, (_, _, at_once) = False, environment(options.share)
  with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
    for status, found in (pool.map if at_once > 1 else map)(lambda chip: run_on(chip, options.share, rest),
                                                            options.chips):
      failed |= status != 0
      if found is None: continue
      print(f"suite.py: {found.line()}", flush=True)
      if options.share == 1 and not rest and status in ENDED and found.passed: record([found])
  return int(failed)

if __name__ == "__main__": sys.exit(main())
