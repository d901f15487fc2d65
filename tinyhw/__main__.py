"""The command line: `python3 -m tinyhw <command>`. A command imports its modules when it runs."""
from __future__ import annotations
import importlib
import inspect
import json
import signal
import sys
from types import ModuleType
from collections.abc import Callable, Sequence

from tinyhw import __version__, isa
from tinyhw.errors import ParseError, TinyError
from tinyhw.helpers import wants_color
from tinyhw.machine.notation.text import parse_bytes, show_bytes, translate
from tinyhw.named_tuple import NamedTuple

HELP = {"-h", "--help"}

class UsageError(Exception):
  """The command line cannot be understood."""

def assembler(command: str, arguments: Sequence[str]) -> tuple[ModuleType, str]:
  """Return the architecture that --arch, an option of asm and disasm, names, and its module."""
  words = [w for a in arguments for w in (a.split("=", 1) if a.startswith("--") else [a])]
  arch = ""
  if "--arch" in words:
    at = words.index("--arch")
    arch = "".join(words[at + 1:at + 2])
    del words[at:at + 2]
  wrong = [f"{w} is " + ("no option" if w.startswith("-") else "not read: what is to be translated is on standard "
                         "input") for w in words]
  if not arch: wrong.append(f"--arch is missing, the instruction set that it is for: {', '.join(isa.ASSEMBLERS)}")
  if wrong:
    source = " < FILE" if any(not w.startswith("-") for w in words) else ""
    raise UsageError(f"{'; '.join(wrong)}; write: python3 -m tinyhw {command} --arch {arch or 'ARCH'}{source}")
  name, colon, variant = arch.partition(":")
  if name not in isa.ASSEMBLERS:
    raise UsageError(f"no instruction set is called {name}; there is {', '.join(isa.ASSEMBLERS)}")
  known = isa.VARIANTS.get(name, ())
  if colon and variant not in known:
    raise UsageError(f"{arch} is unknown; there is {', '.join([name, *(f'{name}:{other}' for other in known)])}")
  return importlib.import_module(isa.ASSEMBLERS[name]), arch

def asm(arguments: Sequence[str]) -> int:
  """Assemble text on standard input, an instruction a line. Print the bytes in hex, in memory order."""
  module, arch = assembler("asm", arguments)
  return translate(sys.stdin, lambda text: show_bytes(module.assemble(text, arch)), sys.stdout, sys.stderr)

def disasm(arguments: Sequence[str]) -> int:
  """Disassemble bytes in hex on standard input, an instruction a line.

  --plain: omit the control words of NVIDIA's instructions.
  """
  module, arch = assembler("disasm", [word for word in arguments if word != "--plain"])
  show = getattr(module, "plain", module.disassemble) if "--plain" in arguments else module.disassemble
  def one(text: str) -> str:
    code = parse_bytes(text)
    if not code: raise ParseError(f"bytes in hex are expected, like c5 f4 58 c2; got {text}")
    return str(show(code, arch))
  return translate(sys.stdin, one, sys.stdout, sys.stderr)

def doctor(arguments: Sequence[str]) -> int:
  """List the devices that open here. For others give the reason and the command that would change it. Return 1 if none
  opens.

  --device: all findings about one device.
  """
  words = [word for word in arguments if word != "--json"]
  if words and (words[0] != "--device" or len(words) != 2):
    raise UsageError(f"the options are --json and --device NAME, got {' '.join(arguments)}")
  examination, as_json = importlib.import_module("tinyhw.selftest.doctor"), "--json" in arguments
  if words:
    findings = examination.diagnose(words[1])
    print(json.dumps(findings, indent=2) if as_json else examination.show_findings(findings))
    return int(any(finding["state"] == "problem" for finding in findings))
  facts = examination.examine()
  print(json.dumps(facts, indent=2) if as_json else examination.show(facts))
  return 0 if facts["default"] else 1

def cache(arguments: Sequence[str]) -> int:
  """Show the cache folder, and the entries and bytes of each kind.

  `clear` removes all but downloads, or the named kinds. `limit` sets the maximum size: 500M, 2G, none.
  """
  caches, storage = importlib.import_module("tinyhw.files.cache"), importlib.import_module("tinyhw.files.storage")
  said = caches.run(arguments, storage.cache_dir())
  if said is None:
    raise UsageError(f"the words are clear [KIND ...], limit [SIZE] and --json, got {' '.join(arguments)}")
  print(said if isinstance(said, str) else json.dumps(said, indent=2))
  return 0

def viz(arguments: Sequence[str]) -> int:
  """Show a recording of VIZ=1 on a local page: the named file, else the newest one in CACHEDIR.

  Ctrl-C ends it.
  """
  words = [w for a in arguments for w in (a.split("=", 1) if a.startswith("--") else [a])]
  port = 0
  if "--port" in words:
    at = words.index("--port")
    text = "".join(words[at + 1:at + 2])
    if not text.isdecimal() or not 0 <= int(text) < 65536:
      raise UsageError(f"--port wants a number below 65536, got {text or 'nothing'}")
    port = int(text)
    del words[at:at + 2]
  if len(words) > 1 or any(w.startswith("-") for w in words):
    raise UsageError(f"one file and --port PORT are expected, got {' '.join(arguments)}")
  server, archive = importlib.import_module("tinyhw.viz.server"), importlib.import_module("tinyhw.viz.archive")
  server.serve(words[0] if words else archive.latest(), port)
  return 0

def emulate(arguments: Sequence[str]) -> int:
  """Run a kernel on a virtual AMD or NVIDIA GPU with strict checks, a trace, breakpoints, and registers lane by
  lane."""
  if not arguments: raise UsageError("a file and --arch are expected; `emulate --help` says what else there is")
  command = importlib.import_module("tinyhw.emulator.command")
  if HELP & set(arguments): print(f"usage: python3 -m tinyhw emulate {command.USAGE}\n\n{command.__doc__}")
  return 0 if HELP & set(arguments) else int(command.run(arguments))

def selftest(arguments: Sequence[str]) -> int:
  """Test step by step the behaviour of a device on which the driver and the compiler rely.

  --faults provokes a hang and a page fault.
  """
  words = [word for word in arguments if not word.startswith("-")]
  unknown = set(arguments) - {*words, "--json", "--faults"}
  if unknown or len(words) != 1:
    raise UsageError(f"a device is expected, and --faults or --json; got {' '.join(arguments) or 'nothing'}")
  command = importlib.import_module("tinyhw.selftest.command")
  return int(command.run(words[0], "--faults" in arguments, "--json" in arguments))

class Command(NamedTuple):
  """A command. takes: its arguments, as text. does: one line for the overview. run: gets the arguments, returns the
  exit status."""
  takes: str
  does: str
  run: Callable[[Sequence[str]], int]

COMMANDS: dict[str, dict[str, Command]] = {   # by the heading of the overview
  "devices": {
    "doctor": Command("[--device NAME] [--json]", "which devices open here, and how to open the others", doctor),
    "selftest": Command("DEVICE [--faults] [--json]", "ask a device step by step whether it works", selftest),
    "emulate": Command("FILE --arch ARCH ...", "run a GPU kernel on a virtual card, with a trace", emulate)},
  "machine code": {
    "asm": Command("--arch ARCH", "assembly text to bytes", asm),
    "disasm": Command("--arch ARCH [--plain]", "bytes to assembly text", disasm)},
  "results": {
    "viz": Command("[FILE] [--port N]", "show a recording of VIZ=1 in a browser", viz),
    "cache": Command("[clear [KIND ...] | limit [SIZE]] [--json]", "show, clear or limit the disk cache", cache)},
}
ALL = {name: command for group in COMMANDS.values() for name, command in group.items()}
VARIABLES = (("DEV=CPU", "the device: CPU, AMD, NV, CLANG, PYTHON"),
             ("DEBUG=2", "a line for each kernel; 4: its pseudo-code; 7: its machine code"),
             ("VIZ=1", "a page with graphs, passes and launches; PROFILE=1: a trace"),
             ("EMULATE=gfx1100", "a virtual card in place of a real one (with DEV=AMD or NV)"))

def overview(bold: bool) -> str:
  """Return the list of commands by heading, and the variables that users need first."""
  def heading(text: str) -> str: return f"\x1b[1m{text}\x1b[0m" if bold else text
  shown = {name: f"{name} {command.takes.partition('[')[0]}".strip() for name, command in ALL.items()}   # no options
  width = max(len(text) for text in (*shown.values(), *[name for name, _ in VARIABLES])) + 2
  lines = ["tinyhw: a deep learning framework in pure Python that talks to hardware directly", "",
           "  python3 -c 'from tinyhw import Tensor; print((Tensor([1.0, 2.0]) * 3).tolist())'", "",
           f"{heading('usage')}: python3 -m tinyhw COMMAND ...    (COMMAND --help says more; --version)"]
  for title, group in COMMANDS.items():
    lines += ["", heading(title)]
    lines += [f"  {shown[name]:<{width}}{command.does}" for name, command in group.items()]
  lines += ["", heading("language models"),
            "  python3 -m tinyhw.llm -m MODEL.gguf    talk to a model; --serve 8000: a server",
            "", heading("variables") + " (all of them: docs/guide/environment.md)"]
  lines += [f"  {name:<{width}}{meaning}" for name, meaning in VARIABLES]
  return "\n".join(lines)

def main(arguments: Sequence[str] | None = None) -> int:
  """Run a command: the given words, or those of the process. Return 2 for an unknown command or wrong options, 1 for a
  failure."""
  if arguments is None:
    # `... | head -1` ends it without a message, as it ends other commands.
    if hasattr(signal, "SIGPIPE"): signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    arguments = sys.argv[1:]
  if not arguments or arguments[0] in HELP | {"help"}:
    print(overview(wants_color()))
    return 0
  if arguments[0] == "--version":
    print(f"tinyhw {__version__}")
    return 0
  if arguments[0] not in ALL:
    print(f"no command is called {arguments[0]!r}; there is {', '.join(sorted(ALL))}: python3 -m tinyhw --help",
          file=sys.stderr)
    return 2
  takes, _, function = ALL[arguments[0]]
  if function is not emulate and HELP & set(arguments):
    print(f"usage: python3 -m tinyhw {arguments[0]} {takes}\n\n{inspect.getdoc(function)}")
    return 0
  try: return function(arguments[1:])
  except UsageError as e:
    print(f"{arguments[0]}: {e}", file=sys.stderr)
    return 2
  except TinyError as e:
    print(f"{arguments[0]}: {e.message}", file=sys.stderr)
    return 1

if __name__ == "__main__": sys.exit(main())
