"""Reasons why an NVIDIA GPU cannot be driven here, in the order in which a user meets them: `python3 -m tinyhw doctor
--device NV`.

Each check is independent, so that one run lists all necessary steps. The driver would stop at the first one. For
NV:CUDA: the vendor's library.
"""
from __future__ import annotations
import re

from tinyhw.autogen.nvidia import rm
from tinyhw.device import show_bytes
from tinyhw.drivers.gpu.doctor import Vendor, begin, counted, refused
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM, Finding, node
from tinyhw.drivers.linux.files import HostFiles, Refused, machine
from tinyhw.drivers.nvidia import walled
from tinyhw.drivers.nvidia.card import Card, opened
from tinyhw.drivers.nvidia.library import FOLDERS
from tinyhw.drivers.nvidia.rm import CONTROL, INSTEAD_OF_NOUVEAU, NOUVEAU, UVM, WSL, RmClient, connect, version_of
from tinyhw.drivers.nvidia.visible import advice, node_of
from tinyhw.errors import TinyError

NVIDIA = Vendor("NVIDIA", "NV", pci=0x10DE, module="nvidia", control=CONTROL, log="NVRM",
                container="--gpus all (the vendor's toolkit), or --device=/dev/nvidiactl --device=/dev/nvidia-uvm "
                "--device=/dev/nvidia0")
UVM_MODULE = "nvidia_uvm"
MAKE_UVM = "sudo nvidia-modprobe -u -c=0, or sudo modprobe nvidia-uvm"
FREE_SHARE = 0.9   # of a card's memory; with less, another process uses some of it

def diagnose(ordinal: int) -> list[Finding]:
  """Return the findings about GPU number `ordinal`.

  Only reads. The connection to the kernel driver stays open until the process ends.
  """
  box = machine()
  if box.exists(WSL): return [_version(box)]   # there is neither a PCI bus nor modules to check
  found = begin(box, NVIDIA)
  if found[-1].state == PROBLEM: return [_replaced(box, found[-1])]
  found += [_version(box), node(box, CONTROL, NVIDIA.container), _unified(box), *_library(box)]
  if any(f.state == PROBLEM and f.name != "card" for f in found): return found
  try: connection = connect(box)
  except TinyError as error: return [*found, _refused("connection", error)]
  try: infos = connection.list_cards()
  except TinyError as error: return [*found, _refused("cards", error)]
  found.append(counted(NVIDIA, "cards", len(infos), ordinal))
  if found[-1].state == PROBLEM:
    return [*found[:-1], found[-1]._replace(fix=advice(box, connection.run_cards()) or found[-1].fix)]
  info = infos[ordinal]
  found.append(node(box, node_of(info), NVIDIA.container))
  if found[-1].state != PROBLEM: found += _driven(connection, info)
  return found

def _replaced(box: HostFiles, problem: Finding) -> Finding:
  """Check which other module has the GPU, if NVIDIA's is not loaded."""
  if problem.name != "kernel module" or not box.exists(NOUVEAU): return problem
  return problem._replace(words=f"{problem.words}, and nouveau has the GPU", fix=INSTEAD_OF_NOUVEAU)

def _version(box: HostFiles) -> Finding:
  try: version = version_of(box)
  except TinyError as error: return _refused("version", error)
  shown = ".".join(map(str, version))
  try: structures = rm.structures(version)
  except ValueError as error:
    return Finding("version", PROBLEM, f"{shown} is not known: {error}", "install one of these versions, or use "
                   "NV:CUDA")
  return Finding("version", OK, f"{shown}, driven as branch {structures.branch}")

def _unified(box: HostFiles) -> Finding:
  """Check the node of unified memory. A separate module makes it, which often is not loaded yet."""
  if box.exists(UVM): return node(box, UVM, NVIDIA.container)
  there = box.exists(f"/sys/module/{UVM_MODULE}")
  words = ("it does not exist, although its module is loaded" if there else f"it does not exist: the kernel's module "
           f"{UVM_MODULE} is not loaded")
  return Finding(UVM, PROBLEM, words, f"{MAKE_UVM}; in a container: {NVIDIA.container}")

def _library(box: HostFiles) -> list[Finding]:
  """Check that the vendor's library, which only NV:CUDA uses, has the module's version."""
  found = {name.rpartition("libcuda.so.")[2] for folder in FOLDERS if box.exists(folder) for name in box.listdir(folder)
           if re.fullmatch(r"libcuda\.so\.\d{3,}\.[\d.]+", name)}
  try: version = ".".join(map(str, version_of(box)))
  except TinyError: return []
  if not found or any(tuple(map(int, name.split("."))) == version_of(box) for name in found): return []
  words = (f"the vendor's library is version {', '.join(sorted(found))}, and the kernel's module {version}: NV works, "
           f"NV:CUDA does not")
  return [Finding("library", NOTE, words, "restart the computer after an update; in a container: let the vendor's "
                  "toolkit bring the library")]

def _driven(connection: RmClient, info: object) -> list[Finding]:
  """Check the first objects that the driver makes."""
  try: card = opened(connection, info)
  except TinyError as error: return [_refused("chip" if "compute class" in error.message else "objects", error)]
  return [Finding("chip", OK, f"{card.name}, which is driven as {card.chip.arch}"), _memory(card)]

def _memory(card: Card) -> Finding:
  total, free = (card.facts.get(name, 0) << 10 for name in ("memory_kib", "free_kib"))
  words = f"{show_bytes(free).split(' (')[0]} of {show_bytes(total).split(' (')[0]} are free"
  if not total: return Finding("memory", NOTE, "the driver does not tell how much there is")
  if free >= FREE_SHARE * total: return Finding("memory", OK, words)
  return Finding("memory", NOTE, f"{words}: other processes hold the rest", "nvidia-smi lists them")

def _refused(name: str, error: TinyError) -> Finding:
  """Return an error of the driver as a finding. If a sandbox denies its calls to programs, there is another way."""
  found = refused(name, error)
  if not isinstance(error, Refused) or not walled(error) or "NV:CUDA" in found.fix: return found
  return found._replace(fix=f"{found.fix}; or DEV=NV:CUDA, through the vendor's library")
