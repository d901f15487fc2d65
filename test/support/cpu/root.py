"""A CPython for another CPU under QEMU's user mode, from the packages of a Debian archive; and tests in it.

    python3 test/support/cpu/root.py build arm64 FOLDER [PACKAGE ...]    # make it: arm64 or riscv64; further packages
    python3 test/support/cpu/root.py test FOLDER [ARGUMENT ...]          # pytest with DEV=CPU; arguments are pytest's
    python3 test/support/cpu/root.py run FOLDER [ARGUMENT ...]           # python3 with these arguments

apt works in a state of its own inside of the folder, and checks the archive's signature and all checksums. Packages are
unpacked, no script of theirs runs, and the host's packages are not touched. QEMU_CPU names the processor that QEMU is:
cortex-a72, neoverse-n1, rv64 and so on (`qemu-riscv64 -cpu help`). pytest is the host's, since it is plain Python. The
host's C compiler makes no code for the root, so DEV=CLANG finds none.

AArch64 takes the release of the host, and NumPy has the host's version, from PyPI. RISC-V is in Debian from its release
13 on, and PyPI has no NumPy for it, so both are Debian's. It needs QEMU 9, which tells programs what the processor has.
Where the host has an older one, that of Debian 13 is unpacked into the folder.
"""
from __future__ import annotations
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
HOSTS = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "xdist", "execnet")
DISTRIBUTIONS = ("pytest", "pluggy", "pytest-xdist", "execnet")   # pytest finds plugins, and versions, by metadata
PACKAGES = ("python3", "libgcc-s1", "libstdc++6", "python3-hypothesis")
CONFIG = """APT::Architecture "{debian}";
APT::Architectures {{ "{debian}"; "{native}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State "{state}";
Dir::State::status "{state}/status";
Dir::State::lists "{state}/lists";
Dir::Cache "{state}/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{state}/parts";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
"""

class Kind(NamedTuple):
  """A CPU.

  qemu: the end of the emulator's name, and the least version that serves. cpu: the processor that it is by default.
  suite: the release of Debian, "" for the host's. numpy: where NumPy comes from.
  """
  qemu: str
  least: int
  cpu: str
  suite: str
  numpy: str

KINDS = {"arm64": Kind("aarch64", 5, "max,sve-default-vector-length=32", "", "PyPI"),
         "riscv64": Kind("riscv64", 9, "rv64,zba=true,zbb=true,zfhmin=true,v=true,vlen=128", "trixie", "Debian")}

class RootError(Exception):
  """Something that is missing on this host, with what to do."""

def sources(parts: Path, suite: str, etc: Path = Path("/etc/apt")) -> int:
  """Copy the archives that the host is set up for, without the architectures that they are limited to. suite: the
  release to take from them, which updates and security fixes are no part of; "" for the host's. Returns the number of
  files."""
  found = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("debian.*"))]
  for file in (f for f in found if f.is_file()):
    text = "\n".join(line for line in file.read_text().splitlines() if not line.startswith("Architectures:")) + "\n"
    if suite: text = of_suite(text, suite)
    if text: (parts / (file.name if file.suffix == ".sources" else file.stem + ".list")).write_text(text)
  return len(list(parts.iterdir()))

def of_suite(text: str, suite: str) -> str:
  """The first archive of a list that is not one of fixes, with another release; "" if there is none."""
  for entry in text.split("\n\n"):
    if "security" in entry or "URIs:" not in entry: continue
    return re.sub(r"(?m)^Suites:.*$", f"Suites: {suite}", entry).strip() + "\n"
  for line in text.splitlines():
    one = re.match(r"deb\s+(\[[^]]*\]\s+)?(\S+)\s", line)
    if one and "security" not in line: return f"deb {one[1] or ''}{one[2]} {suite} main\n"
  return ""

def local_links(root: Path) -> None:
  """Make links with absolute targets stay inside of the root."""
  for folder, folders, files in os.walk(root):
    for path in (Path(folder) / name for name in (*folders, *files)):
      if path.is_symlink() and (target := os.readlink(path)).startswith("/") and not target.startswith(str(root)):
        path.unlink()
        path.symlink_to(f"{root}{target}")

def build(kind: Kind, debian: str, folder: Path, packages: list[str]) -> None:
  """Make the root. Raises RootError, or CalledProcessError with what apt says."""
  for tool in ("apt-get", "dpkg", "dpkg-deb"):
    if shutil.which(tool) is None: raise RootError(f"{tool} is missing: the root is made from a Debian archive")
  native = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
  emulator = installed(kind)
  if not emulator and not kind.suite:
    raise RootError(f"QEMU's user mode for {kind.qemu} is missing; apt-get install qemu-user-static")
  root, state = folder / "root", folder / "apt"
  for path in (root, state / "lists/partial", state / "cache/archives/partial", state / "parts"):
    path.mkdir(parents=True, exist_ok=True)
  (state / "status").touch()
  if not sources(state / "parts", kind.suite): raise RootError("/etc/apt names no archive of Debian")
  (state / "apt.conf").write_text(CONFIG.format(debian=debian, native=native, state=state))
  environment = {**os.environ, "APT_CONFIG": str(state / "apt.conf")}
  numpy = ["python3-numpy"] if kind.numpy == "Debian" else []
  subprocess.run(["apt-get", "-qq", "update"], env=environment, check=True)
  subprocess.run(["apt-get", "-qq", "-y", "--download-only", "install", *PACKAGES, *numpy, *packages],
                 env=environment, check=True)
  if not emulator:
    subprocess.run(["apt-get", "-qq", "download", f"qemu-user:{native}"], env=environment, check=True, cwd=state)
    emulator = unpacked(kind, next(state.glob("qemu-user_*.deb")), folder)
  for package in sorted((state / "cache/archives").glob("*.deb")):
    subprocess.run(["dpkg-deb", "-x", package, root], check=True)
  shutil.rmtree(state)
  for name in ("bin", "lib", "sbin"):
    if not (root / name).exists(): (root / name).symlink_to(f"usr/{name}")   # as a package without files does
  local_links(root)
  blas(root)
  wrapper(kind, emulator, folder)
  if kind.numpy == "PyPI": add_numpy(folder)

def unpacked(kind: Kind, package: Path, folder: Path) -> str:
  """Unpack the one emulator of QEMU's package, which has 400 MB of them."""
  with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as files:
    with tarfile.open(fileobj=files.stdout, mode="r|") as archive:
      for member in archive:
        if member.name == f"./usr/bin/qemu-{kind.qemu}":
          member.name = f"qemu-{kind.qemu}"
          archive.extract(member, folder)
  return str(folder / f"qemu-{kind.qemu}")

def blas(root: Path) -> None:
  """Link NumPy's libraries, as scripts of their packages do."""
  for library in root.glob("usr/lib/*/*/lib*.so.3"):
    if library.parent.name in ("blas", "lapack"): (library.parent.parent / library.name).symlink_to(library)

def add_numpy(folder: Path) -> None:
  """Install the host's version of NumPy, for AArch64."""
  version = importlib.metadata.version("numpy")
  python = next((folder / "root/usr/bin").glob("python3.[0-9]*")).name.removeprefix("python")
  platforms = [word for kind in ("manylinux2014", "manylinux_2_28") for word in ("--platform", f"{kind}_aarch64")]
  subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:", "--upgrade",
                  "--python-version", python, *platforms, "--target", folder / "root/usr/lib/python3/dist-packages",
                  f"numpy=={version}"], check=True)

def installed(kind: Kind) -> str:
  """The host's emulator; "" if there is none, or an older one than serves."""
  for name in (f"qemu-{kind.qemu}-static", f"qemu-{kind.qemu}"):
    if found := shutil.which(name):
      shown = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
      version = re.search(r"version (\d+)", shown)
      if version and int(version[1]) >= kind.least: return found
  return ""

def wrapper(kind: Kind, emulator: str, folder: Path) -> Path:
  """Write bin/python3, which sys.executable names there: so the programs that tests start run under QEMU, too."""
  version = sorted((folder / "root/usr/bin").glob("python3.[0-9]*"))[0]
  path = folder / "bin/python3"
  path.parent.mkdir(exist_ok=True)
  path.write_text(f"""#!/bin/sh
export PYTHONHOME="{folder}/root/usr" QEMU_CPU="${{QEMU_CPU:-{kind.cpu}}}"
exec "{emulator}" -L "{folder}/root" -0 "{path}" "{version}" "$@"
""")
  path.chmod(0o755)
  return path

def borrowed(folder: Path) -> Path:
  """A folder with links to the host's pytest, which every Python of the root finds."""
  links = folder / "host"
  links.mkdir(exist_ok=True)
  for name in HOSTS:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None: continue
    target = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
    if not (links / target.name).exists(): (links / target.name).symlink_to(target)
  for name in DISTRIBUTIONS:
    found = next((f for f in importlib.metadata.files(name) or () if f.name == "METADATA"), None)
    if found is None: continue
    target = Path(found.locate()).parent
    if not (links / target.name).exists(): (links / target.name).symlink_to(target)
  (folder / "root/usr/lib/python3/dist-packages/host.pth").write_text(f"{links}\n")
  return links

def main(arguments: list[str]) -> int:
  command, *rest = arguments or ["help"]
  if len(rest) < (2 if command == "build" else 1) or command not in ("build", "test", "run") \
      or command == "build" and rest[0] not in KINDS:
    print(__doc__)
    return 2
  debian = rest.pop(0) if command == "build" else ""
  folder = Path(rest.pop(0)).resolve()
  if debian:
    try: build(KINDS[debian], debian, folder, rest)
    except RootError as e: return print(e) or 1
    rest = ["-c", "import platform, sys; print('ready:', sys.version.split()[0], platform.machine())"]
  environment = {"DEV": "CPU", "CC": "none", **os.environ}
  if command == "test":
    borrowed(folder)
    environment["PYTHONPATH"] = str(ROOT)
    rest = ["-m", "pytest", "-p", "no:cacheprovider", *rest]
  return subprocess.run([folder / "bin/python3", *rest], env=environment, cwd=ROOT if command == "test" else None,
                        check=False).returncode

if __name__ == "__main__": sys.exit(main(sys.argv[1:]))
