"""The driver's own way on a card: the self-test's steps, and a store kernel with one thing about its launch changed at
a time.

`VARIANTS` are what could not be known without a card (docs/hardware/nvidia.md): each runs in a process of its own and
says whether the kernel still does its work, so that one call tells which of them matter.
"""
from __future__ import annotations
import dataclasses
from collections.abc import Callable
from typing import Any

from card.frame import Absent, Notes, start_anew
from card.system import connected, device_of, our_device

from tinyhw.autogen.nvidia import methods
from tinyhw.autogen.nvidia import rm as rm_tables
from tinyhw.config import EMULATE, HCQDEV_WAIT_TIMEOUT_MS
from tinyhw.device import Launch
from tinyhw.drivers.nvidia import card, channel, launch, rm
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.drivers.nvidia.device import NVDevice
from tinyhw.drivers.nvidia.selftest.kernels import INDEX, STORE, kernel
from tinyhw.errors import TinyError
from tinyhw.selftest import command, frame
from tinyhw.selftest.command import assemble

GROUPS, LANES = 50, 64

def selftest(notes: Notes, device: str, faults: bool = False) -> None:
  """`python3 -m tinyhw selftest`, each result as soon as it is there.

  What goes wrong on a GPU leaves the vendor's library without use in a process: the program begins anew then, with the
  steps that are left.
  """
  if "CUDA" in device: device_of(device)
  else: connected()
  session = command.begin(device, faults)
  steps = command.steps(session)
  if faults: steps = [step for step in steps if step in (*session.first(), *session.last())]
  for step in steps:
    if step.name in notes.found and not step.basic: continue
    notes("at", step.name)
    result = next(iter(frame.run(session, [step])))
    notes(result.step.name, f"{result.outcome} ({result.milliseconds:.0f} ms): {result.words}")
    if result.outcome != frame.FAILED: continue
    if step.basic: break
    if "CUDA" in device and step is not steps[-1]: start_anew()
  notes("at", "the end")
  session.close()
  failed = [step.name for step in steps if str(notes.found.get(step.name, "")).startswith(frame.FAILED)]
  if failed: raise AssertionError(f"failed: {', '.join(failed)}")

# **** variants of a launch ****

def fields(**changed: int | None) -> Callable[[], None]:
  """Fields of the QMD have other values; None: they are left out. Those that this generation has not are left alone."""
  def change() -> None:
    kept = launch.describe
    def describe(*arguments: Any) -> dict[str, int]:
      found = kept(*arguments)
      for name, value in changed.items():
        if name not in found: continue
        if value is None: del found[name]
        else: found[name] = value
      return found
    launch.describe = describe
  return change

def without(prefix: str) -> Callable[[], None]:
  """Fields whose names begin so are left out."""
  def change() -> None:
    kept = launch.describe
    launch.describe = lambda *a: {name: value for name, value in kept(*a).items() if not name.startswith(prefix)}
  return change

def action(number: int) -> Callable[[], None]:
  """Another action of SEND_SIGNALING_PCAS2_B."""
  def change() -> None: methods.INVALIDATE_COPY_SCHEDULE = number
  return change

def older_layout() -> None:
  """On Hopper: the QMD of Ampere, which its class defines too."""
  found = card.Card._chip
  def chip(self: card.Card) -> Any:
    made = found(self)
    if made.generation != 9: raise Absent("it is for Hopper")
    return dataclasses.replace(made, generation=8)
  card.Card._chip = chip  # type: ignore[method-assign]

WITH_WINDOWS = (0xC661, 0xC761)   # classes of the usermode object that take parameters

def other_window() -> None:
  """From Hopper on: the doorbell behind BAR1, which the kernel's own channels use."""
  kept = rm.RmClient.new
  def new(self: rm.RmClient, parent: int, kind: int, parameters: Any, answer: bool = False) -> int:
    if kind in WITH_WINDOWS: parameters = self.structures.UsermodeParams(bBar1Mapping=1)
    return kept(self, parent, kind, parameters, answer)
  rm.RmClient.new = new  # type: ignore[method-assign]

def no_caches() -> None:
  """Caches keep what they hold."""
  Commands.see_earlier_kernels = lambda c: c.call(1, c.engines.compute.WAIT_FOR_IDLE,
                                                  0) and None  # type: ignore[method-assign,assignment]

def ring_of_host() -> None:
  """Ring and pointers in host memory."""
  channel.RING = card.HOST  # type: ignore[attr-defined]

def parameter(**changed: int) -> Callable[[], None]:
  """Parameters of channels have other values."""
  def change() -> None:
    kept = rm.RmClient.new
    def new(self: rm.RmClient, parent: int, kind: int, parameters: Any, answer: bool = False) -> int:
      for name, value in changed.items():
        if hasattr(parameters, "gpFifoEntries"): setattr(parameters, name, value)
      return kept(self, parent, kind, parameters, answer)
    rm.RmClient.new = new  # type: ignore[method-assign]
  return change

def acquires_stay() -> None:
  """A channel that waits does not let others have the engine."""
  def acquire(self: Commands, address: int, value: int) -> None:
    self._semaphore(address, value, operation=methods.ACQUIRE_AT_LEAST)
  Commands.acquire = acquire  # type: ignore[method-assign]

def by_descriptor() -> None:
  """Global memory through the descriptor that NVIDIA's compilers take from the constant bank, where we leave zeros."""
  place = {8: 0x118, 9: 0x208, 10: 0x358}
  texts[0] = STORE.replace("STG.E [R4], R0", "ULDC.64 UR4, c[0x0][{descriptor}]\nSTG.E desc[UR4][R4.64], R0")
  words["descriptor"] = lambda generation: hex(place[generation])

# Copies what is in memory, the numbers less 1, through shared memory without registers
COPIES = INDEX + """S2R R7, SR_TID.X
IMAD R6, R7, 0x4, RZ
LDGSTS.E [R6+{shared}], [R4.64]
LDGDEPBAR
DEPBAR.LE SB0, 0x0
BAR.SYNC.DEFER_BLOCKING 0x0
LDS R8, [R6+{shared}]
IADD3 R8, R8, 0x1, RZ
STG.E [R4], R8
EXIT"""

def copies(with_descriptor: bool) -> Callable[[], None]:
  """Asynchronous copies (LDGSTS), whose address has a descriptor or none."""
  def change() -> None:
    by_descriptor()
    load = "ULDC.64 UR4, c[0x0][{descriptor}]\nLDGSTS.E [R6+{shared}], desc[UR4][R4.64]"
    texts[0] = COPIES.replace("LDGSTS.E [R6+{shared}], [R4.64]", load) if with_descriptor else COPIES
    more["local_bytes"] = 4 * LANES
  return change

# Through local memory, below the address that the constant bank says
SPILLED = STORE.replace("STG.E [R4], R0", "LDC R9, c[0x0][{stack}]\nSTL [R9+-0x4], R0\nLDL R7, [R9+-0x4]\nSTG.E [R4], "
                        "R7")

def spills() -> None:
  """A kernel with local memory."""
  texts[0] = SPILLED
  more["private_bytes"] = 16

def local_memory(**changed: int) -> Callable[[], None]:
  """Local memory, of which other numbers are told beside its size."""
  def change() -> None:
    spills()
    def told(c: Commands, address: int, tpc_bytes: int) -> None:
      compute, known = c.engines.compute, c.engines.compute.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C
      if "max_plural_tpc_gpc_count" in changed and c.engines is methods.engines(8):
        raise Absent("it is for Hopper and later")
      c.call(1, compute.SET_SHADER_LOCAL_MEMORY_A, address >> 32, address & 0xFFFF_FFFF)
      c.call(1, compute.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, tpc_bytes >> 32, tpc_bytes & 0xFFFF_FFFF,
             known(**{"max_sm_count": 0xFF, **changed}))
    Commands.local_memory = told  # type: ignore[method-assign]
  return change

HIGH_STACK, BEHIND_STACK = 0xFFFDC0, 0x240   # of NVIDIA's compilers: where the stack begins, and what lies behind it up
                                             # to the end of the window

def high_local_memory() -> None:
  """"High" local memory, which ends where its window of 16 MiB does, as the vendor's library gives it to kernels of
  its compilers."""
  spills()
  kept = launch.describe
  def describe(*arguments: Any) -> dict[str, int]:
    found = kept(*arguments)
    return {**found, "shader_local_memory_low_size": 0,
            "shader_local_memory_high_size": found["shader_local_memory_low_size"] + BEHIND_STACK}
  launch.describe, launch.stack = describe, lambda code: HIGH_STACK
  reserve = NVDevice.reserve_local
  NVDevice.reserve_local = lambda device, size: reserve(device, size + BEHIND_STACK)  # type: ignore[method-assign]

def elsewhere(label: str, kind: card.MemoryKind) -> Callable[[], None]:
  """Memory of the driver of this label is of another kind."""
  def change() -> None:
    kept = NVDevice.get_memory
    NVDevice.get_memory = lambda device, size, own, name, host: kept(  # type: ignore[method-assign]
      device, size, kind if name == label else own, name, host)
  return change

def uncached() -> None:
  """Host memory that the processor does not cache."""
  kept = card.Card._object
  def made(self: card.Card, size: int, kind: card.MemoryKind) -> int:
    return kept(self, size, kind._replace(attr=kind.attr & ~(7 << 29)) if kind is card.HOST else kind)
  card.Card._object = made  # type: ignore[method-assign]

def copy_engine(number: int) -> Callable[[], None]:
  """Copies have a group of their own, for one of the copy engines that work beside the others."""
  def change() -> None: channel.COPY_ENGINE = rm_tables.flags("NV2080_ENGINE_TYPE_", "COPY0") + number
  return change

def subroutines() -> None:
  """Entries of the ring say that they are subroutines."""
  def entry(self: channel.Channel, address: int, count: int) -> None:
    if count: self.ring.put(methods.ENTRY.encode({"address": address >> 2, "length": count, "level": 1}))
  channel.Channel._entry = entry  # type: ignore[method-assign]

SET_BASE = 4   # GP_ENTRY1_OPCODE_SET_PB_SEGMENT_EXTENDED_BASE, of Hopper's rings

def base_in_the_ring() -> None:
  """The first entry of a ring says that bits 40 and up of pushbuffers' addresses are 0, as the kernel's own channels
  have it on Hopper."""
  kept = channel.Channel.register
  def register(self: channel.Channel) -> None:
    kept(self)
    if self.card.chip.generation != 9: raise Absent("it is for Hopper")
    self.ring.put([0, SET_BASE])
  channel.Channel.register = register  # type: ignore[method-assign]

def more_setup(name: str, **fields: int) -> Callable[[], None]:
  """One more method in the setup of the compute channel."""
  def change() -> None:
    kept = Commands.setup
    def setup(c: Commands, number: int, shared: int, local: int) -> None:
      kept(c, number, shared, local)
      method = getattr(c.engines.compute, name)
      c.call(1, method, method(**fields))
    Commands.setup = setup  # type: ignore[method-assign]
  return change

texts, words = [STORE], dict[str, Callable[[int], str]]()   # of the kernel that stores
more = dict[str, int]()                                     # and further fields of its code

# Those that may let anything run at all come first
VARIANTS: dict[str, Callable[[], None]] = {
  "as the driver has it": lambda: None,
  "the QMD of Ampere": older_layout,
  "commands and arguments in the GPU's memory": elsewhere("commands and arguments", card.RING),
  "the doorbell of BAR1": other_window, "the ring in host memory": ring_of_host,
  "entries of the ring as subroutines": subroutines,
  "the base of pushbuffers in the ring": base_in_the_ring,
  "host memory uncached": uncached, "signals in the GPU's memory": elsewhere("signals", card.RING),
  "no error notifier": parameter(hObjectError=0), "no hObjectBuffer": parameter(hObjectBuffer=0),
  "acquires without ACQUIRE_SWITCH_TSG": acquires_stay, "SET_SPA_VERSION 9.0": more_setup("SET_SPA_VERSION", major=9),
  "INVALIDATE_SKED_CACHES": more_setup("INVALIDATE_SKED_CACHES"),
  "copies in a group of their own, COPY2": copy_engine(2), "copies in a group of their own, COPY4": copy_engine(4),
  "QMD_GROUP_ID 0x3f": fields(qmd_group_id=0x3F), "QMD_GROUP_ID 0x1f": fields(qmd_group_id=0x1F),
  "QMD_GROUP_ID 0": fields(qmd_group_id=0),
  "PCAS action 9 (prefetch, schedule)": action(9), "PCAS action 2 (schedule)": action(2),
  "PCAS action 0xa": action(0xA),
  "no prefetch of the program": without("program_prefetch"), "no SASS_VERSION": fields(sass_version=None),
  "no QMD_TYPE": fields(qmd_type=None),
  "no invalidations": without("invalidate_"), "no API_VISIBLE_CALL_LIMIT": fields(api_visible_call_limit=None),
  "no SAMPLER_INDEX": fields(sampler_index=None), "no CWD_MEMBAR_TYPE": fields(cwd_membar_type=None),
  "no shared memory": fields(shared_memory_size=None),
  "the smallest split of the cache": fields(min_sm_config_shared_mem_size=1, target_sm_config_shared_mem_size=9),
  "BARRIER_COUNT 0": fields(barrier_count=None), "16 registers more": fields(register_count=40),
  "no invalidation before kernels": no_caches, "a descriptor of zeros": by_descriptor,
  "asynchronous copies": copies(False), "asynchronous copies with a descriptor of zeros": copies(True),
  "local memory": spills, "local memory, MAX_SM_COUNT 132": local_memory(max_sm_count=132),
  "local memory, MAX_PLURAL_TPC_GPC_COUNT 9": local_memory(max_plural_tpc_gpc_count=9),
  "local memory, both TPC_GPC_COUNTs 0xff": local_memory(max_plural_tpc_gpc_count=0xFF,
                                                         max_singleton_tpc_gpc_count=0xFF),
  "high local memory": high_local_memory,
}

def variant(notes: Notes, name: str) -> None:
  """Does the kernel that stores its numbers work with one thing changed?

  That it does not is an answer, but for the first one.
  """
  if not EMULATE.value: HCQDEV_WAIT_TIMEOUT_MS.value = 2000
  VARIANTS[name]()
  try: stores(notes)
  except (TinyError, AssertionError) as error:
    if name == next(iter(VARIANTS)): raise
    notes("works", f"no: {getattr(error, 'message', error)}")
  else: notes("works", "yes")

def stores(notes: Notes) -> None:
  """Run it on the device, and look at what it stored."""
  device = our_device()
  out = device.allocator.alloc(4 * LANES * GROUPS)
  before = b"".join((i - 1 & 0xFFFF_FFFF).to_bytes(4, "little") for i in range(LANES * GROUPS))
  device.allocator.copyin(out, memoryview(before))
  chip = device.card.chip
  code = kernel(assemble, chip, texts[0], "store", words={name: word(chip.generation) for name, word in words.items()},
                **more)
  device.submit([Launch(device.load(code), [out], [], GROUPS)])
  found = bytearray(4 * LANES * GROUPS)
  device.allocator.copyout(memoryview(found), out)
  wrong = [i for i in range(LANES * GROUPS) if int.from_bytes(found[4 * i:4 * i + 4], "little") != i]
  notes("numbers stored", f"{LANES * GROUPS - len(wrong)} of {LANES * GROUPS}")
  if wrong: raise AssertionError(f"{len(wrong)} numbers are missing, the first is {wrong[0]}")
