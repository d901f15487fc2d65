"""The CLANG device: finding a compiler, what it refuses, and that a source is compiled once."""
import subprocess

import pytest
from host_kernels import open_c

from tinyhw import device as devices
from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers import clang
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.code import Code

def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("PATH", "")
  with pytest.raises(DeviceError, match="none of clang, gcc, cc is on PATH; install a C compiler"): clang.open(0, devices.runtime)

def test_cc_names_the_compiler() -> None:
  with Context(CC="no-such-compiler -O3"), pytest.raises(DeviceError, match="CC=no-such-compiler -O3: no-such-compiler is not on PATH"):
    clang.find_compiler()
  device = open_c(1)
  with Context(CC=f"{device.command[0]} -O1"): assert clang.find_compiler() == (device.command[0], "-O1")
  device.close()

def test_a_source_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
  device = open_c(1)
  source = b"#include <stdint.h>\nvoid once(const uint64_t *a, int64_t f, int64_t l, uint8_t *s) { *(int64_t *)a[0] += l; }"
  first = device.load(Code("once", "c", source, ("buffer",)))
  monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("compiled again"))
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
  with pytest.raises(CompileError, match=r"failed on kernel bad \(exit status 1\):\n.*error"): device.load(Code("bad", "c", b"void bad( {", ()))
  with pytest.raises(CompileError, match="the C source has no function other"): device.load(Code("other", "c", b"void named(void) {}", ()))
  with pytest.raises(DeviceError, match="CLANG takes C source, and k is code for x86_64:avx2"): device.load(Code("k", "x86_64:avx2", b"", ()))
  device.close()

def test_a_compiler_that_does_not_start(tmp_path: object) -> None:
  with pytest.raises(DriverError, match="starting .*: .*; name a working compiler in CC"): clang.compile_source((f"{tmp_path}/none",), "k", b"")
