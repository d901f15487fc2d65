"""The two forms of the worker loop, one by one; test_workers.py runs both."""
import ctypes
import mmap

import pytest
from host_kernels import OPENERS, Loaded, c_loop, values

from tinyhw.autogen import cpu_ring
from tinyhw.device import Launch
from tinyhw.drivers import clang
from tinyhw.drivers.cpu.launch import HostProgram
from tinyhw.drivers.cpu.loop import MachineLoop, loop_source
from tinyhw.errors import DeviceError
from tinyhw.isa.x86 import abi
from tinyhw.isa.x86.asm.syntax import assemble_function
from tinyhw.machine.ir.code import Code

def test_the_source_has_every_offset() -> None:
  for name, value in {**cpu_ring.PACKET, **cpu_ring.CONTEXT, **cpu_ring.RECORD}.items():
    assert f"#define {name} {value}\n" in loop_source()

def test_fields_do_not_overlap() -> None:
  r = cpu_ring
  for fields, size in ((r.PACKET, r.PACKET_BYTES), (r.CONTEXT, r.CONTEXT_BYTES), (r.RECORD, r.RECORD_BYTES)):
    assert len(set(fields.values())) == len(fields) and all(0 <= at and at + 8 <= size for at in fields.values())
  places = sorted((at, at + (4 if name in r.WORDS else 8)) for name, at in r.CONTEXT.items())
  assert all(end <= start for (_, end), (start, _) in zip(places, places[1:])) and set(r.WORDS) < set(r.CONTEXT)

def test_bind_needs_its_marks() -> None:
  loop = MachineLoop(lambda name: Code(name, "x86_64", b"\xc3", ()))
  with pytest.raises(AssertionError, match="has RECORD_MARK once"): loop.bind(0, mmap.mmap(-1, 64), 0)
  loop.close()

@pytest.mark.parametrize("kind", list(OPENERS))
def test_loops_of_one_process_are_independent(kind: str) -> None:
  devices = [Loaded(OPENERS[kind](2)) for _ in range(3)]
  memories = [loaded.zeros(64) for loaded in devices]
  for _ in range(50):
    for loaded, memory in zip(devices, memories, strict=True):
      loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 64)])
  assert [values(memory, 64) for memory in memories] == [[50] * 64] * 3
  for loaded in devices: loaded.device.close()

MXCSR = """
  mov r10, qword ptr [{a}]
  stmxcsr dword ptr [r10]
  ret"""
SET = """
  mov dword ptr [rsp - 8], {value}
  ldmxcsr dword ptr [rsp - 8]
  ret"""
GET = """
  stmxcsr dword ptr [rsp - 8]
  mov eax, dword ptr [rsp - 8]
  ret"""
FLUSH, DEFAULT, MODES = 0x8040, 0x1f80, 0xffc0

def test_kernels_run_with_ieee_denormals() -> None:
  """The mode of the calling thread does not matter, and stays the same."""
  loaded = Loaded(OPENERS["machine"](1))
  def place(text: str) -> HostProgram:
    return loaded.device.load(Code("f", "x86_64:avx2", assemble_function(text), ("buffer",)))
  kernel, get = place(MXCSR.format(a=abi.abi().arguments[0])), place(GET)
  read = ctypes.CFUNCTYPE(ctypes.c_uint32)(get.address)
  flush, restore = place(SET.format(value=DEFAULT | FLUSH)), place(SET.format(value=read()))
  where = loaded.zeros(1)
  ctypes.CFUNCTYPE(None)(flush.address)()
  try:
    loaded.device.submit([Launch(kernel, (where,))])
    kept = read()
  finally: ctypes.CFUNCTYPE(None)(restore.address)()
  assert values(where, 1)[0] & MODES == DEFAULT and kept & MODES == DEFAULT | FLUSH
  loaded.device.close()

def test_a_machine_without_an_assembler_compiles_the_loop() -> None:
  OPENERS["c"](1).close()
  def no_assembler(name: str) -> Code: raise DeviceError("no assembler")
  device = clang.open(0, no_assembler)
  assert device.loop.entry == c_loop().entry
  device.close()
