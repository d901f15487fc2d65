"""Run every check of the project, on a machine that has only Python and a way to a package registry.

  python3 test/run.py [arguments for pytest]
  python3 test/run.py --changed | --layer codegen --fast     # the tests of a change, or of a layer: house/scope.py

pytest runs in a process for each of up to 8 cores, a file's tests in one of them; `-n 0` behind the command: in one
process.

Makes a virtual environment (.venv beside the sources, or in the user's cache folder where the sources are read-only),
installs the `test` extra of setup.py there, then runs ruff, mypy and pytest. The exit status is 0 when all three pass;
pytest comes last, so that its summary ends the output. This file uses the standard library only, and only syntax that
old Pythons can read: an old one is told so, and a newer one on PATH is used.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST = (3, 10)
PACKAGE_ROOTS = ("tinyhw", "drivers", "autogen")  # where mypy looks; the last two as tinyhw.drivers and tinyhw.autogen
ATTEMPTS = 3
MOST_PROCESSES = 8

def say(text):  # type: (str) -> None
  """A line of progress, in order with the output of the tools."""
  print("run.py: " + text, flush=True)

def need_new_python():  # type: () -> None
  """Continue in a newer Python where this one is too old. Exits where there is none."""
  if sys.version_info >= OLDEST: return
  for minor in (15, 14, 13, 12, 11, 10):
    found = shutil.which("python3.%d" % minor)
    if found: os.execv(found, [found, os.path.abspath(__file__)] + sys.argv[1:])
  sys.exit("run.py: this is Python %d.%d; tinyhw needs 3.10 or newer: install one and call it: python3.13 "
           "test/run.py" % sys.version_info[:2])

def environment_folder():  # type: () -> str
  """Where the virtual environment of this Python goes."""
  name = "%s-%d.%d" % (sys.implementation.name, sys.version_info[0], sys.version_info[1])
  if os.access(ROOT, os.W_OK): return os.path.join(ROOT, ".venv", name)
  cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
  return os.path.join(cache, "tinyhw", "test-" + hashlib.sha256(ROOT.encode()).hexdigest()[:12], name)

def python_of(folder):  # type: (str) -> str
  """The interpreter of a virtual environment."""
  return os.path.join(folder, "Scripts", "python.exe") if os.name == "nt" else os.path.join(folder, "bin", "python")

def make_environment(folder):  # type: (str) -> list[str]
  """A new virtual environment; gives the command that is its pip.

  Where Python comes without ensurepip, the pip that runs here serves it.
  """
  shutil.rmtree(folder, ignore_errors=True)
  if subprocess.call([sys.executable, "-m", "venv", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0:
    return [python_of(folder), "-m", "pip"]
  shutil.rmtree(folder, ignore_errors=True)
  bare = subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT)
  pip = [sys.executable, "-m", "pip", "--python", python_of(folder)]
  if bare.returncode == 0 and subprocess.call(pip + ["--version"], stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL) == 0:
    return pip
  sys.exit("run.py: cannot make a virtual environment in %s: this Python lacks venv or pip; install them (Debian: apt "
           "install python3-venv)\n%s"
           % (folder, bare.stdout.decode(errors="replace")))

def test_requirements():  # type: () -> list[str]
  """The `test` extra as setup.py states it; in continuous integration (CI is set) the extras `oracle` and
  `webgpu` too: 1.1 GB of tools to compare with, and the library of DEV=WEBGPU."""
  import ast
  with open(os.path.join(ROOT, "setup.py"), encoding="utf-8") as file: tree = ast.parse(file.read())
  extras = next(k.value for node in ast.walk(tree) if isinstance(node, ast.Call) for k in node.keywords
                if k.arg == "extras_require")
  declared = ast.literal_eval(extras)
  return [requirement for extra in ["test"] + ["oracle", "webgpu"] * bool(os.environ.get("CI"))
          for requirement in declared[extra]]

def prepare():  # type: () -> str
  """The interpreter of an environment that has the `test` extra.

  Done once for each Python and each state of the extra.
  """
  folder, wanted = environment_folder(), test_requirements()
  stamp, state = os.path.join(folder, "tinyhw-stamp"), "%s %s" % (sys.version, wanted)
  if os.path.exists(stamp):
    with open(stamp) as file:
      if file.read() == state: return python_of(folder)
  say("making %s with %s" % (folder, ", ".join(wanted)))
  pip = make_environment(folder)
  for attempt in range(1, ATTEMPTS + 1):
    if subprocess.call(pip + ["install", "--quiet", "--disable-pip-version-check"] + wanted) == 0: break
    if attempt == ATTEMPTS:
      sys.exit("run.py: pip could not install %s (its reasons are above); the tests need a package registry once: "
               "check the network, a proxy, "
               "or point PIP_INDEX_URL or PIP_FIND_LINKS at one" % ", ".join(wanted))
    say("pip failed; trying again in %d s" % (5 * attempt))
    time.sleep(5 * attempt)
  with open(stamp, "w") as file: file.write(state)
  return python_of(folder)

def link(source, target):  # type: (str, str) -> None
  """A symbolic link, or a copy where the system has none."""
  try: os.symlink(source, target)
  except OSError: (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)

def check_types(python):  # type: (str) -> int
  """mypy on the package and the examples, in a throw-away tree of links in which drivers and autogen lie inside of the
  package, as when it is installed."""
  with tempfile.TemporaryDirectory() as tree:
    package = os.path.join(tree, "tinyhw")
    os.mkdir(package)
    for name in sorted(os.listdir(os.path.join(ROOT, "tinyhw"))):
      if name != "__pycache__": link(os.path.join(ROOT, "tinyhw", name), os.path.join(package, name))
    for name in PACKAGE_ROOTS[1:]: link(os.path.join(ROOT, name), os.path.join(package, name))
    link(os.path.join(ROOT, "examples"), os.path.join(tree, "examples"))
    cache = os.path.join(ROOT if os.access(ROOT, os.W_OK) else tree, ".mypy_cache")
    options = ["--config-file", os.path.join(ROOT, "pyproject.toml"), "--cache-dir", cache, "-p", "tinyhw", "-p",
               "examples"]
    return subprocess.call([python, "-m", "mypy"] + options, cwd=tree)

def at_once():  # type: () -> int
  """How many processes run side by side."""
  return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST_PROCESSES)

def processes():  # type: () -> list[str]
  """Arguments that share the tests among cores, by whole files, so that what a file prepares is prepared once."""
  return ["-n", str(at_once()), "--dist", "loadfile"] if at_once() > 1 else []

def joined(words):  # type: (list[str]) -> list[str]
  """The arguments for pytest, with `--layer NAME` as one word.

  pytest must know the files before it reads test/conftest.py, which declares --layer. It would take the name of a
  folder, such as drivers, for a path.
  """
  found = []  # type: list[str]
  for word in words:
    if found and found[-1] == "--layer": found[-1] += "=" + word
    else: found.append(word)
  return found

def main():  # type: () -> int
  """Run the three tools; the number of them that failed."""
  need_new_python()
  python = prepare()
  environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")])))
  failed = []
  say("ruff")
  if subprocess.call([python, "-m", "ruff", "check", "--quiet", "."], cwd=ROOT): failed.append("ruff")
  say("mypy")
  if check_types(python): failed.append("mypy")
  say("pytest" + (" (%s failed)" % " and ".join(failed) if failed else ""))
  status = subprocess.call([python, "-m", "pytest"] + processes() + joined(sys.argv[1:]), cwd=ROOT, env=environment)
  return status or len(failed)

if __name__ == "__main__": sys.exit(main())
