"""The CLANG device: finding a compiler, what it refuses, and that a source is compiled once."""
import math
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from host_kernels import open_c

from test.helpers import on
from tinyhw import Tensor
from tinyhw import device as devices
from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers import clang
from tinyhw.drivers.cpu.launch import HostDevice, HostProgram
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.ir.code import Code

def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("PATH", "")
  with pytest.raises(DeviceError, match="none of clang, gcc, cc is on PATH; install a C compiler"):
    clang.open(0, devices.runtime)

def test_cc_names_the_compiler() -> None:
  with Context(CC="no-such-compiler -O3"), pytest.raises(DeviceError, match="CC=no-such-compiler -O3: "
                                                         "no-such-compiler is not on PATH"):
    clang.find_compiler()
  device = open_c(1)
  with Context(CC=f"{device.command[0]} -O1"): assert clang.find_compiler() == (device.command[0], "-O1")
  device.close()

def test_a_source_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
  device = open_c(1)
  source = (b"#include <stdint.h>\nvoid once(const uint64_t *a, int64_t f, int64_t l, uint8_t *s) { *(int64_t *)a[0] "
            b"+= l; }")
  first = device.load(Code("once", "c", source, ("buffer",)))
  monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: pytest.fail("compiled again"))
  again = open_c(1)
  second = again.load(Code("once", "c", source, ("buffer",)))
  memory = device.allocator.alloc(8)
  memory.view[:8] = bytes(8)
  device.submit([Launch(first, (memory,), (), 5)])
  again.submit([Launch(second, (memory,), (), 6)])
  assert memory.view[0] == 11
  device.close()
  again.close()

def test_what_is_refused() -> None:
  device = open_c(1)
  with pytest.raises(CompileError, match=r"failed on kernel bad \(exit status 1\):\n.*error"):
    device.load(Code("bad", "c", b"void bad( {", ()))
  with pytest.raises(CompileError, match="the C source has no function other"):
    device.load(Code("other", "c", b"void named(void) {}", ()))
  with pytest.raises(DeviceError, match="CLANG takes C source, and k is code for x86_64:avx2"):
    device.load(Code("k", "x86_64:avx2", b"", ()))
  device.close()

def test_a_compiler_that_does_not_start(tmp_path: object) -> None:
  with pytest.raises(DriverError, match="starting .*: .*; name a working compiler in CC"):
    clang.addresses((f"{tmp_path}/none",), [clang.CSource("k", b"")])

def adder(name: str, value: int, more: str = "") -> Code:
  """Return a kernel that adds a number to the first element."""
  text = (f"#include <stdint.h>\nvoid {name}(const uint64_t *a, int64_t f, int64_t l, uint8_t *s) {{ *(int64_t *)a[0] "
          f"+= {value}; }}{more}")
  return Code(name, "c", text.encode(), ("buffer",))

def results(device: HostDevice, programs: list[HostProgram]) -> list[int]:
  """Return the sum of each program with 0."""
  memory, found = device.allocator.alloc(8), []
  for program in programs:
    memory.view[:8] = bytes(8)
    device.submit([Launch(program, (memory,))])
    found.append(memory.view[0])
  return found

def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
  """Record the commands that are started from now on."""
  found: list[list[str]] = []
  start = subprocess.Popen
  def told(command: list[str], **options: Any) -> Any:
    found.append(command)
    return start(command, **options)
  monkeypatch.setattr(subprocess, "Popen", told)
  return found

def test_kernels_that_are_loaded_together_are_compiled_together(monkeypatch: pytest.MonkeyPatch) -> None:
  """Kernels with the same name, and a kernel that is there twice, are compiled together too."""
  device = open_c(1)
  started = commands(monkeypatch)
  codes = [adder("together", 1), adder("together", 2), adder("together_0", 3), adder("together", 1)]
  assert results(device, device.load_all(codes)) == [1, 2, 3, 1] and len(started) == 1
  assert results(device, device.load_all([*codes, adder("together", 4)])) == [1, 2, 3, 1, 4] and len(started) == 2
  assert device.load_all([]) == [] and len(started) == 2
  device.close()

def test_much_source_is_shared_among_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
  device = open_c(1)
  monkeypatch.setattr(clang, "available_threads", lambda: 3)
  started = commands(monkeypatch)
  long = "/*" + "long" * (clang.RUN_BYTES // 4) + "*/"
  codes = [adder(f"much{k}", k, long if k < 2 else "") for k in range(7)]
  assert results(device, device.load_all(codes)) == list(range(7)) and len(started) == 3
  device.close()

def test_a_kernel_that_is_refused_is_named_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
  device = open_c(1)
  good = [adder("good", 5), adder("good", 6)]
  with pytest.raises(CompileError, match=r"failed on kernel wrong \(exit status 1\):\n.*error"):
    device.load_all([good[0], Code("wrong", "c", b"void wrong( {", ()), good[1]])
  with pytest.raises(CompileError, match="the C source has no function absent"):
    device.load_all([good[0], Code("absent", "c", b"void named(void) {}", ())])
  with pytest.raises(DeviceError, match="k is code for python"):
    device.load_all([good[0], Code("k", "python", b"", ())])
  assert results(device, device.load_all(good)) == [5, 6]
  device.close()

def test_sources_that_do_not_go_together_are_compiled_alone() -> None:
  device = open_c(1)
  twice = "\nint defined_twice;\nstatic int defined_twice_here(void) { return 1; }"
  assert results(device, device.load_all([adder("first", 7, twice), adder("second", 8, twice)])) == [7, 8]
  device.close()

def test_a_compiler_that_does_not_know_this_machine(tmp_path: Path) -> None:
  device = open_c(1)
  picky = tmp_path / "cc"
  picky.write_text(f'#!/bin/sh\ncase "$*" in *-march=native*) exit 1;; esac\nexec {device.command[0]} "$@"\n')
  picky.chmod(0o755)
  device.command = (str(picky),)
  assert results(device, device.load_all([adder("old", 9), adder("older", 10)])) == [9, 10]
  device.close()

def test_what_cpu_ran_in_a_test_is_compiled_with_one_run_for_clang(monkeypatch: pytest.MonkeyPatch) -> None:
  """test/helpers.py: the tests of tensors rely on it for their speed."""
  open_c(1).close()
  def computed() -> list[int]:
    return [(Tensor([1, 2, 3, 4, 5, 6, 7, 8, 9]) * factor - 41).tolist()[1] for factor in (331, 332, 333)]
  with on("CPU"): assert computed() == [621, 623, 625]
  started = commands(monkeypatch)
  with on("CLANG"): assert computed() == [621, 623, 625] and len(started) == 1

def test_a_choice_between_vectors_by_a_loaded_number() -> None:
  """gcc 12 took one lane of the chosen vector, for AVX-512 (program 617054 of test/campaigns/gathers.py)."""
  rng = random.Random(1)
  def numbers(*shape: int) -> Tensor:
    return Tensor([float(rng.randint(-3, 3)) for _ in range(math.prod(shape))], device="CLANG").reshape(shape).realize()
  images, weights, scale = numbers(1, 1, 5, 17), numbers(17, 4), numbers(1, 5, 4)
  rows, columns = (Tensor([0], dtype=dtype, device="CLANG").realize() for dtype in ("int32", "int16"))
  (found,) = ((images[rows, columns.flip(0)] @ weights) * scale).sum().gradient(images)
  expected = (scale @ weights.T).reshape(images.shape)
  assert found.tolist() == expected.tolist()

def test_an_interrupt_while_a_folder_is_removed_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
  def interrupted(folder: str) -> None:
    os.rmdir(folder)
    try: raise KeyboardInterrupt
    finally: raise OSError("Bad file descriptor")
  monkeypatch.setattr(clang.shutil, "rmtree", interrupted)
  with pytest.raises(KeyboardInterrupt), clang.scratch_folder(): pass
