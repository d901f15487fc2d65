"""`python3 -m tinyhw doctor`: the devices that open here, the reasons and remedies for others, and the caches.

`examine` collects facts, `show` formats them. `--json` prints the facts themselves. `--device AMD` asks a driver that
can tell more (its module `doctor`) for all findings, not only the first reason: `diagnose`, `show_findings`. It only
looks: it installs and writes nothing, except a file in the cache folder that is removed at once.
"""
from __future__ import annotations
import importlib
import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable
from typing import Any

from tinyhw import isa
from tinyhw.config import documentation
from tinyhw.device import DRIVERS, Device, show_bytes
from tinyhw.errors import DeviceError, TinyError
from tinyhw.files.regular import write_atomically
from tinyhw.files.storage import cache_dir

# The first of these programs that is on PATH installs a C compiler with the command on the right.
INSTALLERS = {
  "apt-get": "sudo apt-get install -y clang",
  "dnf": "sudo dnf install -y clang",
  "yum": "sudo yum install -y clang",
  "pacman": "sudo pacman -S --noconfirm clang",
  "apk": "sudo apk add clang",
  "zypper": "sudo zypper install -y clang",
  "xcode-select": "xcode-select --install",
  "winget": "winget install LLVM.LLVM",
}
SYSTEMS = {"METAL": "darwin"}  # the only system that has a device
NO_DRIVER = "no driver"  # text in a device's reason if this version cannot drive it: there is no fix
MOST_FILES = 20_000      # limit of files counted in the cache folder

def installer() -> str:
  """Return the command that installs a C compiler here."""
  found = [command for program, command in INSTALLERS.items() if shutil.which(program)]
  return found[0] if found else "install clang or gcc with your system's package manager"

def fix(name: str, reason: str) -> str | None:
  """Return the command that would make a refused device open, or the next best one; None if there is none."""
  if NO_DRIVER in reason: return None
  if name == "CLANG": return "unset CC" if reason.startswith("CC=") else installer()
  if name == "AMD":
    command = re.search(r"\(sudo usermod [^)]*\)", reason)
    return f"{command[0][1:-1]}, then log in again" if command else None
  if name == "CPU":
    if reason.startswith("ARCH="): return "unset ARCH"
    return None if Device.refused.get("CLANG") is None else installer()
  return None

def _device(name: str) -> dict[str, Any]:
  try: opened = Device[name]
  except DeviceError: return {"name": name, "opens": False, "reason": Device.refused[name]}
  except TinyError as error: return {"name": name, "opens": False, "reason": f"{type(error).__name__}: {error.message}"}
  facts = opened.facts()
  family = facts["arch"].split(":")[0]
  if "signature" in facts and family in isa.LISTERS:
    lister = importlib.import_module(isa.LISTERS[family])
    facts["microarchitecture"] = lister.microarchitecture(facts["vendor"], facts["signature"], facts["features"])
  return {"name": name, "opens": True, **facts}

def _cache() -> dict[str, Any]:
  """Examine the cache folder: its contents, and whether it can be written."""
  folder, files, size = cache_dir(), 0, 0
  for place, _, names in os.walk(folder):
    for name in names:
      try: size += os.stat(os.path.join(place, name)).st_size
      except OSError: continue  # it was removed meanwhile
      files += 1
    if files > MOST_FILES: break
  probe, reason = os.path.join(folder, f"doctor-{os.getpid()}"), None
  existed = os.path.isdir(folder)
  try:
    write_atomically(probe, b"")
    os.unlink(probe)
    if not existed: os.rmdir(folder)
  except OSError as error: reason = error.strerror or str(error)
  found: dict[str, Any] = {"folder": folder, "writable": reason is None, "files": files, "bytes": size}
  if reason is not None: found |= {"reason": reason, "fix": "export CACHEDIR=/a/folder/you/can/write"}
  return found

def examine() -> dict[str, Any]:
  """Return facts that JSON can hold. Opens every device. One that another system has is named only if it opens."""
  found = [device for name in DRIVERS if (device := _device(name))["opens"]
           or SYSTEMS.get(name, sys.platform) == sys.platform]
  for device in found:  # only now: a fix may name another device that opens
    if not device["opens"]: device["fix"] = fix(device["name"], device["reason"])
  try: default, problem = Device.DEFAULT, None
  except DeviceError as error: default, problem = None, error.message
  return {
    "version": importlib.import_module("tinyhw").__version__,
    "python": {"version": platform.python_version(), "implementation": platform.python_implementation(),
               "executable": sys.executable},
    "system": {"platform": sys.platform, "release": platform.release(), "processor": platform.machine()},
    "default": default, "problem": problem, "devices": found, "cache": _cache(),
    "settings": {key: value for key, value, default_value, _ in documentation() if value != default_value},
  }

def diagnose(name: str) -> list[dict[str, Any]]:
  """Return the findings of a device's driver, in order: name, state ("ok", "note" or "problem"), words, and a fix if
  there is one.

  Raises DeviceError.
  """
  name = Device.canonicalize(name)
  kind, _, ordinal = (name, "", "0") if name in DRIVERS else name.rpartition(":")
  if kind not in DRIVERS: raise DeviceError(f"{name} keeps a file and computes nothing; there are {', '.join(DRIVERS)}")
  try: found = importlib.util.find_spec(DRIVERS[kind] + ".doctor")
  except ModuleNotFoundError: found = None
  if found is not None:
    return [finding._asdict() for finding in importlib.import_module(DRIVERS[kind] + ".doctor").diagnose(int(ordinal))]
  device = _device(name)
  if device["opens"]:
    facts = [("note", line(device)) for fact, line in LINES.items() if fact in device]
    words = [("ok", f"opens: {device['arch']}"), *facts, ("note", device.get("next_level", ""))]
    return [{"name": name, "state": state, "words": text, "fix": ""} for state, text in words if text]
  return [{"name": name, "state": "problem", "words": device["reason"], "fix": fix(name, device["reason"]) or ""}]

def show_findings(findings: list[dict[str, Any]]) -> str:
  """Format findings for people."""
  width = max(len(finding["name"]) for finding in findings)
  lines = []
  for finding in findings:
    lines.append(f"{finding['name']:<{width}}  {finding['state']:<7}  {finding['words']}")
    if finding["fix"]: lines.append(f"{'':{width}}           to fix: {finding['fix']}")
  return "\n".join(lines)

# fact -> its format, below its device
LINES: dict[str, Callable[[dict[str, Any]], str]] = {
  "processor": lambda d: (d["processor"] or d["vendor"]) + (f", core {d.get('microarchitecture', 'unknown')}"
                                                            if "vendor" in d else ""),
  "threads": lambda d: f"{d['threads']} threads",
  "cache_bytes": lambda d: "caches " + ", ".join(f"L{i} {show_bytes(n).split(' (')[0]}"
                                                 for i, n in enumerate(d["cache_bytes"], 1) if n),
  "memory_limit": lambda d: f"memory {show_bytes(d['memory_limit']).split(' (')[0]}" if d["memory_limit"]
  else "memory of unknown size",
  "features": lambda d: "features " + " ".join(d["features"]),
  "visible_bytes": lambda d: f"of which the processor sees {show_bytes(d['visible_bytes']).split(' (')[0]}",
  "kernel_interface": lambda d: f"driven by the kernel's {d['kernel_interface']}",
  "compiler": lambda d: f"compiler {d['compiler']}",
}

def show(facts: dict[str, Any]) -> str:
  """Format the facts for people."""
  python, system, cache = facts["python"], facts["system"], facts["cache"]
  where = f"{system['platform']} {system['release']}, {system['processor']}"
  lines = [f"tinyhw {facts['version']}, {python['implementation']} {python['version']} ({python['executable']}) on "
           f"{where}"]
  lines.append(f"default device: {facts['default']}" if facts["default"] else f"no default device: {facts['problem']}")
  if facts["settings"]:
    lines.append("settings: " + " ".join(f"{key}={value}" for key, value in facts["settings"].items()))
  lines.append("")
  for device in facts["devices"]:
    if device["opens"]:
      lines.append(f"{device['name']:<7} opens   {device['arch']}")
      lines += [f"{'':16}{line(device)}" for fact, line in LINES.items() if fact in device]
    else:
      lines.append(f"{device['name']:<7} refused {device['reason']}")
      if device["fix"]: lines.append(f"{'':16}to fix: {device['fix']}")
  lines += ["", f"cache   {cache['folder']}: {cache['files']} files, {show_bytes(cache['bytes']).split(' (')[0]}"]
  if not cache["writable"]:
    lines[-1] += f"; not writable ({cache['reason']}), so every process compiles its kernels anew"
    lines.append(f"{'':16}to fix: {cache['fix']}")
  return "\n".join(lines)
