"""The kernel cache on disk: shared by processes, best effort, never trusted when damaged."""
from __future__ import annotations
import ast
import dataclasses
import os
from pathlib import Path
import random
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from test.support import kernel_modes
from test.support.lines import lines_executed
from tinyhw.codegen.optimize import optimize
from tinyhw.config import CACHEDIR, CHECK, Context, documentation
from tinyhw.device import Device
from tinyhw.engine.run import compile as compiling, realize, version
from tinyhw.engine.run.compile import (
  CachedKernel, backend, capabilities_of, compile_kernel, kernel_name, measured, mode, value_of)
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.errors import ConfigError, DeviceError
from tinyhw.files.cache import LEDGER
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import UOp

ROOT = Path(__file__).resolve().parents[3]
ARCH = "python"
PROGRAM = "from tinyhw import Tensor; assert ((Tensor([1.0, 2.0]) * 3 + 1).exp().sum().log().item()) > 7"

def sink(n: int) -> UOp: return schedule(canonicalize([(Tensor.empty(n, device="PYTHON") * 2 + 1).uop])).kernels[0].sink

@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
  """Use a separate cache. The returned list grows with each compiled kernel."""
  found: list[str] = []
  plain = compiling._compile
  monkeypatch.setattr(compiling, "_compile", lambda s, arch, *more: found.append(arch) or plain(s, arch, *more))
  monkeypatch.setattr(CACHEDIR, "value", str(tmp_path))
  return found

def entries(folder: Path) -> list[Path]: return [p for p in folder.rglob("*") if p.is_file() and p.name != LEDGER]

def test_the_kernels_of_a_schedule_are_loaded_together(monkeypatch: pytest.MonkeyPatch) -> None:
  opened, told = Device["PYTHON"], list[int]()
  monkeypatch.setattr(opened, "kernels", {})
  monkeypatch.setattr(opened, "load_all", lambda codes: told.append(len(codes))
                      or [opened.load(code) for code in codes])
  def three_kernels() -> Tensor:
    return ((Tensor.empty(7, device="PYTHON").zeros_like() + 1).contiguous().sum().contiguous() + 2).contiguous()
  before = three_kernels().realize().item()
  assert before == 9 and told == [3]
  assert three_kernels().item() == before and told == [3]

def test_a_kernel_is_compiled_once(count: list[str]) -> None:
  first, second = compile_kernel(sink(11), ARCH), compile_kernel(sink(11), ARCH)
  assert isinstance(second, CachedKernel) and first[1:] == second[1:] and len(count) == 1

UNITS: dict[str, Callable[[Matrix], bool]] = {
  "gfx1100": lambda unit: not unit.fragments and not unit.shared_operands, "gfx942": lambda unit: not unit.fragments
  and not unit.shared_operands,
  "sm_80": lambda unit: unit.fragments, "sm_90": lambda unit: unit.shared_operands}

@pytest.mark.parametrize("arch", UNITS)
def test_operations_are_those_asked_for_whatever_unit_does_them(count: list[str], arch: str) -> None:
  """Lanes share matrices, fragments and shared operands: an MMA is one node for each lane, and operands go through
  shared memory."""
  kernel = schedule(
    canonicalize([(Tensor.empty(1024, 512, dtype="half", device="NULL")
                   @ Tensor.empty(512, 2048, dtype="half", device="NULL")).uop])).kernels[0].sink
  units = {u.arg for u in optimize(kernel, capabilities_of(arch, "")).toposort() if u.op is Ops.MMA}
  assert units and all(map(UNITS[arch], units))
  made = compile_kernel(kernel, arch)
  assert (made.operations, made.bytes_moved) == (2 * 1024 * 512 * 2048, 2 * (1024 * 512 + 512 * 2048 + 1024 * 2048))

@pytest.mark.parametrize("arch", ["x86_64:avx2", "gfx1100"])
def test_elements_that_a_tile_computes_again_are_counted_once(count: list[str], arch: str) -> None:
  kernel = schedule(canonicalize([(Tensor.empty(1001) * 2 + 1).uop])).kernels[0].sink
  made = compile_kernel(kernel, arch)
  assert (made.operations, made.bytes_moved) == (2 * 1001, 2 * 1001 * 4)

def test_cache_0_neither_reads_nor_writes(count: list[str], tmp_path: Path) -> None:
  with Context(CACHE=0):
    for _ in range(2): compile_kernel(sink(12), ARCH)
  assert len(count) == 2 and not entries(tmp_path)

def test_damaged_entries_are_misses(count: list[str], tmp_path: Path) -> None:
  compile_kernel(sink(13), ARCH)
  for damage in (lambda d: d[:-1], lambda d: b"", lambda d: d[:40] + bytes([d[40] ^ 1]) + d[41:]):
    for path in entries(tmp_path): path.write_bytes(damage(path.read_bytes()))
    compile_kernel(sink(13), ARCH)
  assert len(count) == 4

def test_another_compiler_is_a_miss(count: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
  compile_kernel(sink(14), ARCH)
  monkeypatch.setitem(version._versions, backend(ARCH).__name__, "other")
  for _ in range(2): compile_kernel(sink(14), ARCH)
  assert len(count) == 2

def test_a_compiler_without_a_version_keeps_nothing(count: list[str], monkeypatch: pytest.MonkeyPatch,
                                                    tmp_path: Path) -> None:
  monkeypatch.setitem(version._versions, backend(ARCH).__name__, "")
  for _ in range(2): compile_kernel(sink(18), ARCH)
  assert len(count) == 2 and not entries(tmp_path)

def test_another_kernel_in_an_entry_s_place_is_a_miss(count: list[str], tmp_path: Path) -> None:
  """Such a kernel once ran, and silently gave wrong numbers."""
  three = schedule(canonicalize([(Tensor.empty(19, device="PYTHON") * 3).uop])).kernels[0].sink
  compile_kernel(three, ARCH)
  (wrong,) = entries(tmp_path)
  content = wrong.read_bytes()
  wrong.unlink()
  right = compile_kernel(sink(19), ARCH)
  (file,) = entries(tmp_path)
  file.write_bytes(content)
  assert compile_kernel(sink(19), ARCH).code == right.code and len(count) == 3

def test_another_machine_is_a_miss(count: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
  opened = Device["PYTHON"]
  monkeypatch.setattr(opened, "facts", lambda: {"arch": ARCH, "threads": 3, "cache_bytes": (1, 2, 3), "local_bytes": 1,
                                                "vendor": "some"})
  for _ in range(2): compile_kernel(sink(17), ARCH, "PYTHON")
  assert len(count) == 1 and measured("PYTHON") == {"threads": 3, "cache_bytes": (1, 2, 3), "local_bytes": 1}
  for fact, value in (("threads", 5), ("cache_bytes", (1, 2, 4)), ("local_bytes", 2)):
    facts = {**opened.facts(), fact: value}
    monkeypatch.setattr(opened, "facts", lambda facts=facts: facts)
    assert getattr(capabilities_of(ARCH, "PYTHON"), fact) == value
    compile_kernel(sink(17), ARCH, "PYTHON")
  assert len(count) == 4

def test_what_a_device_does_not_know_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(Device["PYTHON"], "facts", lambda: {"arch": ARCH, "threads": 3, "cache_bytes": None,
                                                          "local_bytes": 0})
  assumed = backend("c").capabilities("c")
  assert capabilities_of("c", "") == assumed and capabilities_of("c",
                                                                 "PYTHON") == dataclasses.replace(assumed, threads=3)

def test_units_that_are_less_exact_are_there_where_they_are_allowed() -> None:
  """They come first, and change the code."""
  usual, before = capabilities_of("sm_89", ""), mode()
  assert usual == backend("sm_89").capabilities("sm_89") and usual.less_exact
  with Context(ALLOW_FP8_SUMS=1):
    shapes, found = dict(usual.less_exact)["ALLOW_FP8_SUMS"], capabilities_of("sm_89", "").matrix
    assert found[:len(shapes)] == shapes and set(found) == {*shapes, *usual.matrix} and mode() != before
    assert capabilities_of("sm_80", "") == backend("sm_80").capabilities("sm_80")

# ***** modes *****

@pytest.fixture(scope="module")
def fresh() -> Iterator[dict[str, list[str]]]:
  """Return the launches in each mode with empty caches."""
  found = {}
  with Context(CACHE=0):
    for name, settings in kernel_modes.MODES.items():
      kernel_modes.open_device()
      found[name] = kernel_modes.launched(settings)
  yield found
  Device.close(kernel_modes.DEVICE)

def wrong_in_this_process(fresh: dict[str, list[str]]) -> list[str]:
  """Return the modes whose launches differ after other modes ran in this process."""
  kernel_modes.open_device()
  with Context(CACHE=0):
    return [name for name in [*fresh, *reversed(fresh)] if kernel_modes.launched(kernel_modes.MODES[name])
            != fresh[name]]

def wrong_after_another_process(fresh: dict[str, list[str]], folder: Path, left_out: int | None = None) -> list[str]:
  """Return the modes whose launches differ after another process filled the cache on disk."""
  environment = {"CACHEDIR": str(folder), "PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT),
                 "CHECK": str(int(CHECK)), "DEV": "PYTHON"}
  arguments = [] if left_out is None else [str(left_out)]
  subprocess.run([sys.executable, "-B", kernel_modes.__file__, *arguments], env=environment, timeout=60, check=True)
  wrong = []
  for name, settings in kernel_modes.MODES.items():
    kernel_modes.open_device()
    if kernel_modes.launched(settings) != fresh[name]: wrong.append(name)
  return wrong

def test_each_mode_is_seen_in_some_code(fresh: dict[str, list[str]]) -> None:
  assert len({tuple(found) for found in fresh.values()}) == len(fresh)

@pytest.mark.slow
def test_a_kernel_in_use_is_that_of_the_mode(fresh: dict[str, list[str]], count: list[str], tmp_path: Path) -> None:
  assert not wrong_in_this_process(fresh)
  count.clear()
  assert not wrong_after_another_process(fresh, tmp_path) and not count

@pytest.mark.slow
@pytest.mark.parametrize("left_out", range(len(mode())))
def test_a_mode_that_keys_leave_out_is_noticed(fresh: dict[str, list[str]], count: list[str], tmp_path: Path,
                                               left_out: int) -> None:
  """The tests of modes are sensitive: a mode left out of the keys in memory and on disk gives wrong kernels."""
  if left_out == CHECKED:
    with kernel_modes.without(left_out), pytest.raises(AssertionError): check_of_checks(count)
    return
  with kernel_modes.without(left_out):
    assert wrong_in_this_process(fresh)
    assert wrong_after_another_process(fresh, tmp_path, left_out)

def check_of_checks(count: list[str]) -> None:
  opened = kernel_modes.open_device()
  for checked, compiled in ((0, 1), (1, 2), (0, 2), (1, 2)):
    with Context(CHECK=checked): realize.found_parts(opened.name, [kernel_modes.kernels()[0].sink])
    assert len(count) == compiled
  for checked in (0, 1):
    kernel_modes.open_device()
    with Context(CHECK=checked): realize.found_parts(opened.name, [kernel_modes.kernels()[0].sink])
    assert len(count) == 2
  Device.close(opened.name)

CHECKED = 3     # the place of CHECK among the modes

@pytest.mark.parametrize("arch, steps", [("x86_64:avx2", "add_frame"),
                                         ("gfx1100", "reduce_to_words interleave add_waits pair_operations prefetch"),
                                         ("sm_90", "drop_copies synchronize_products pipeline"),
                                         ("c", "legalize allocate")])
def test_dump_knows_all_passes_of_a_target(arch: str, steps: str, capsys: pytest.CaptureFixture[str]) -> None:
  (kernel,) = schedule(canonicalize([(Tensor.empty(64, device="NULL") + 1).uop])).kernels
  for step in steps.split():
    with Context(DUMP=step): compile_kernel(kernel.sink, arch)
    assert f"after {step}\n" in capsys.readouterr().out or (arch, step) == ("c", "allocate")    # no code of a machine
  with Context(DUMP="foo:bar"), pytest.raises(ConfigError, match="no pass is called 'foo'; there are grid, "
                                              ".*linearize, .*select, .*layout"):
    compile_kernel(kernel.sink, arch)

def test_what_was_not_checked_is_compiled_again_to_check_it(count: list[str]) -> None:
  """CHECK=1 once found kernels in the cache, and checked nothing."""
  with Context(CHECK=0): unchecked = mode()
  with Context(CHECK=1): assert [k for k, (a, b) in enumerate(zip(unchecked, mode())) if a != b] == [CHECKED]
  check_of_checks(count)

def test_what_is_to_be_shown_is_compiled_again(count: list[str], capsys: pytest.CaptureFixture[str]) -> None:
  """DUMP once found the kernel in the cache, and showed nothing."""
  for _ in range(2):
    with Context(DUMP="linearize"): compile_kernel(sink(20), ARCH)
    assert capsys.readouterr().out
  assert len(count) == 2

# Variables that modules which make code read, and why they are in no key: what is shown, or verified, is compiled anew.
IN_NO_KEY = {"DEBUG", "DUMP", "SPEC", "VIZ", "IGNORE_BEAM_CACHE", "CACHE"}
MAKES_CODE = ("uop", "codegen", "machine", "isa", "engine/run/compile.py", "engine/run/sizes.py", "engine/run/tune.py")

@pytest.mark.slow
def test_variables_that_makers_of_code_read_are_modes() -> None:
  """A new variable is in the keys, and a mode in kernel_modes shows it, or there is a reason here."""
  declared = {key for key, *_ in documentation()}
  read = set[str]()
  for place in MAKES_CODE:
    path = ROOT / "tinyhw" / place
    for file in [path] if path.suffix else path.rglob("*.py"):
      tree = ast.parse(file.read_text(encoding="utf-8"))
      imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "tinyhw.config"
                  for a in n.names}
      named = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
               and n.value.id == "config"}
      read |= (imported | named) & declared
  assert read - IN_NO_KEY == {key for settings in kernel_modes.MODES.values() for key in settings} | {"CHECK"}

def test_code_of_one_architecture_is_not_that_of_another_of_its_backend(count: list[str]) -> None:
  for _ in range(2):
    for arch in ("x86_64:avx2", "x86_64:avx512"): assert compile_kernel(sink(22), arch).code.arch == arch
  assert len(count) == 2

def test_a_folder_that_cannot_be_made_costs_speed_only(count: list[str], monkeypatch: pytest.MonkeyPatch,
                                                       tmp_path: Path) -> None:
  (tmp_path / "file").write_text("")
  monkeypatch.setattr(CACHEDIR, "value", str(tmp_path / "file"))
  for _ in range(2): compile_kernel(sink(15), ARCH)
  assert len(count) == 2

def test_an_interrupt_while_compiling_leaves_no_trace(count: list[str], monkeypatch: pytest.MonkeyPatch,
                                                      tmp_path: Path) -> None:
  with monkeypatch.context() as patch:
    patch.setattr(compiling, "_compile", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt): compile_kernel(sink(16), ARCH)
  assert not entries(tmp_path)
  assert isinstance(compile_kernel(sink(16), ARCH), CachedKernel)

def test_two_processes_share_a_cache(tmp_path: Path) -> None:
  environment = {"CACHEDIR": str(tmp_path), "PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), "DEV": "CPU"}
  both = [subprocess.Popen([sys.executable, "-B", "-c", PROGRAM], env=environment) for _ in range(2)]
  assert [p.wait(60) for p in both] == [0, 0]
  assert entries(tmp_path) and not [p for p in entries(tmp_path) if p.name.endswith(".tmp")]

def test_names_and_values() -> None:
  assert kernel_name(sink(17)) == "E_17"
  v = UOp.variable("n", 1, 8)
  assert value_of(5, {}) == 5 and value_of(v * 3 + 1, {"n": 4}) == 13

def test_kernels_that_a_device_keeps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
  """A server with ever new sizes keeps the last kernels. A schedule larger than the bound stays whole."""
  monkeypatch.setattr(compiling, "MOST_KERNELS", 6)
  device = Device["PYTHON"]
  monkeypatch.setattr(device, "kernels", {})
  compiled: list[UOp] = []
  plain = compiling.compile_kernel
  monkeypatch.setattr(compiling, "compile_kernel", lambda s, arch, device="": compiled.append(s)
                      or plain(s, arch, device))
  often, once = sink(3), [sink(n) for n in range(4, 24)]
  for kernel in once: assert len(compiling.parts("PYTHON", [often, kernel])) == 2
  assert compiled.count(often) == 4 and len(device.kernels) == 6
  compiling.parts("PYTHON", once)
  before = len(compiled)
  assert len(compiling.parts("PYTHON", once)) == len(once) and len(compiled) == before

@pytest.mark.parametrize("name", ["PYTHON:7", "CPU:7"])
def test_a_closed_device_keeps_no_kernels(name: str) -> None:
  try: Device[name]
  except DeviceError as error: pytest.skip(error.message)
  Device.close(name)  # another test may have opened it
  closed = Device[name]
  x = Tensor([1.0, 2.0], device=name)
  assert (x + 1).tolist() == [2.0, 3.0] and len(closed.kernels) == 1
  Device.close(name)
  assert not closed.kernels
  assert (x + 1).tolist() == [2.0, 3.0] and Device[name].kernels and Device[name] is not closed
  Device.close(name)

# ***** cost *****

def constants(n: int) -> Tensor:
  """Return more constants than there are registers: the instructions are scheduled, and values spilled."""
  x = Tensor.empty(4096, device="PYTHON")
  for k in range(n): x = x * x + (0.5 + k / 128)
  return x

def shared(n: int) -> Tensor:
  """Return a graph whose nodes are used again and again."""
  choose, nodes = random.Random(1), [Tensor.empty(4096, device="PYTHON")]
  while len(nodes) < n:
    a, b = choose.choice(nodes[-24:]), choose.choice(nodes[-24:])
    nodes.append((a + b, a * b, a - b, a.maximum(b))[choose.randrange(4)])
  total = nodes[-1]
  for x in nodes[-24:-1]: total = total + x
  return total

@pytest.mark.parametrize("arch", ["x86_64:avx2", "x86_64:avx512"])
@pytest.mark.parametrize(("make", "n"), [(constants, 60), (shared, 120)], ids=["constants", "shared"])
def test_doubling_a_kernel_doubles_the_cost(arch: str, make: Callable[[int], Tensor], n: int) -> None:
  costs = []
  for size in (n, 2 * n):
    kernel, = [k.sink for k in schedule(canonicalize([make(size).uop])).kernels]
    with Context(CACHE=0, SPEC=0, CHECK=0):
      compile_kernel(kernel, arch)  # rows of instructions are made at first use
      costs.append(lines_executed(lambda: compile_kernel(kernel, arch)))
  assert costs[1] <= 2.2 * costs[0], f"{costs[0]} lines became {costs[1]}"
