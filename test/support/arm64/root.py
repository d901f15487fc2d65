"""A CPython for AArch64 under QEMU's user mode, from the packages of a Debian archive; and tests in it.

    python3 test/support/arm64/root.py build FOLDER [PACKAGE ...]    # make it; further packages of arm64 by name
    python3 test/support/arm64/root.py test FOLDER [ARGUMENT ...]    # pytest with DEV=CPU; arguments are pytest's
    python3 test/support/arm64/root.py run FOLDER [ARGUMENT ...]     # python3 with these arguments

apt works in a state of its own inside of the folder. Packages are unpacked, no script of theirs runs, and the host's
packages are not touched. ARM64_CPU names the processor that QEMU is: cortex-a72, neoverse-n1, max and so on. pytest is
the host's, since it is plain Python. NumPy has the host's version, from PyPI. The host's C compiler makes no code for
the root, so DEV=CLANG finds none.
"""
from __future__ import annotations
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DEFAULT_CPU = "max,sve-default-vector-length=32"
HOSTS = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "xdist", "execnet")
DISTRIBUTIONS = ("pytest", "pluggy", "pytest-xdist", "execnet")   # pytest finds plugins, and versions, by metadata
PACKAGES = ("python3", "libgcc-s1", "libstdc++6", "python3-hypothesis")
CONFIG = """APT::Architecture "arm64";
APT::Architectures {{ "arm64"; "{native}"; }};
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

class RootError(Exception):
  """Something that is missing on this host, with what to do."""

def sources(parts: Path, etc: Path = Path("/etc/apt")) -> int:
  """Copy the archives that the host is set up for, without the architectures that they are limited to. Returns their
  number."""
  found = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("debian.*"))]
  for file in (f for f in found if f.is_file()):
    lines = [line for line in file.read_text().splitlines() if not line.startswith("Architectures:")]
    (parts / (file.name if file.suffix == ".sources" else file.stem + ".list")).write_text("\n".join(lines) + "\n")
  return len(list(parts.iterdir()))

def local_links(root: Path) -> None:
  """Make links with absolute targets stay inside of the root."""
  for folder, folders, files in os.walk(root):
    for path in (Path(folder) / name for name in (*folders, *files)):
      if path.is_symlink() and (target := os.readlink(path)).startswith("/") and not target.startswith(str(root)):
        path.unlink()
        path.symlink_to(f"{root}{target}")

def build(folder: Path, packages: list[str]) -> None:
  """Make the root. Raises RootError, or CalledProcessError with what apt says."""
  for tool in ("apt-get", "dpkg", "dpkg-deb"):
    if shutil.which(tool) is None: raise RootError(f"{tool} is missing: the root is made from a Debian archive")
  if emulator() == "": raise RootError("QEMU's user mode for AArch64 is missing; apt-get install qemu-user-static")
  root, state = folder / "root", folder / "apt"
  for path in (root, state / "lists/partial", state / "cache/archives/partial", state / "parts"):
    path.mkdir(parents=True, exist_ok=True)
  (state / "status").touch()
  if not sources(state / "parts"): raise RootError("/etc/apt names no archive of Debian")
  native = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
  (state / "apt.conf").write_text(CONFIG.format(native=native, state=state))
  environment = {**os.environ, "APT_CONFIG": str(state / "apt.conf")}
  subprocess.run(["apt-get", "-qq", "update"], env=environment, check=True)
  subprocess.run(["apt-get", "-qq", "-y", "--download-only", "install", *PACKAGES, *packages],
                 env=environment, check=True)
  for package in sorted((state / "cache/archives").glob("*.deb")):
    subprocess.run(["dpkg-deb", "-x", package, root], check=True)
  shutil.rmtree(state / "cache")
  local_links(root)
  wrapper(folder)
  add_numpy(folder)

def add_numpy(folder: Path) -> None:
  """Install the host's version of NumPy, for AArch64."""
  version = importlib.metadata.version("numpy")
  python = next((folder / "root/usr/bin").glob("python3.[0-9]*")).name.removeprefix("python")
  platforms = [word for kind in ("manylinux2014", "manylinux_2_28") for word in ("--platform", f"{kind}_aarch64")]
  subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:", "--upgrade",
                  "--python-version", python, *platforms, "--target", folder / "root/usr/lib/python3/dist-packages",
                  f"numpy=={version}"], check=True)

def emulator() -> str:
  return next((found for name in ("qemu-aarch64-static", "qemu-aarch64") if (found := shutil.which(name))), "")

def wrapper(folder: Path) -> Path:
  """Write bin/python3, which sys.executable names there: so the programs that tests start run under QEMU, too."""
  version = sorted((folder / "root/usr/bin").glob("python3.[0-9]*"))[0]
  path = folder / "bin/python3"
  path.parent.mkdir(exist_ok=True)
  path.write_text(f"""#!/bin/sh
export PYTHONHOME="{folder}/root/usr"
exec "{emulator()}" -cpu "${{ARM64_CPU:-{DEFAULT_CPU}}}" -L "{folder}/root" -0 "{path}" "{version}" "$@"
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
  if len(arguments) < 2 or arguments[0] not in ("build", "test", "run"):
    print(__doc__)
    return 2
  command, folder, rest = arguments[0], Path(arguments[1]).resolve(), arguments[2:]
  if command == "build":
    try: build(folder, rest)
    except RootError as e: return print(e) or 1
    rest = ["-c", "import platform, sys; print('ready:', sys.version.split()[0], platform.machine())"]
  python = folder / "bin/python3"
  environment = {"DEV": "CPU", "CC": "none", **os.environ}
  if command == "test":
    borrowed(folder)
    environment["PYTHONPATH"] = str(ROOT)
    rest = ["-m", "pytest", "-p", "no:cacheprovider", *rest]
  return subprocess.run([python, *rest], env=environment, cwd=ROOT if command == "test" else None,
                        check=False).returncode

if __name__ == "__main__": sys.exit(main(sys.argv[1:]))
