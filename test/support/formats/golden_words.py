"""Golden files of encodings, written with the reference assemblers of an instruction set."""
from __future__ import annotations
from collections.abc import Callable

from formats.encodings import FOLDER
from formats.reference_assemblers import ReferenceAssemblers, differences

from tinyhw.errors import TinyError

def refusal(text: str, assemble: Callable[[str], bytes]) -> str:
  """The line of a refused text, with our reason."""
  try: code = assemble(text)
  except TinyError as e: return f"{text} ! {e.message}"
  raise AssertionError(f"{text} is not refused: {code.hex()}")

def rewrite(name: str, references: ReferenceAssemblers, assemble: Callable[[str], bytes],
            bytes_of: Callable[[list[str]], list[bytes]], with_gnu: Callable[[str], bool]) -> str:
  """Fill in bytes, spellings and reasons of a golden file, and return the numbers of its lines.

  bytes_of: the bytes by llvm-mc. with_gnu: whether GNU as knows a text; the assemblers must agree on these.
  """
  path = FOLDER / name
  lines = path.read_text(encoding="utf-8").splitlines()
  head = [line for line in lines if line.startswith("#")]
  refused = [line.partition(" ! ")[0] for line in lines if " ! " in line and line[0] != "#"]
  texts = [line.partition(" ; ")[0] for line in lines if line and line[0] != "#" and " ! " not in line]
  codes = bytes_of(texts)
  both = [k for k, text in enumerate(texts) if with_gnu(text)]
  some = [texts[k] for k in both]
  wrong = differences(some, [codes[k] for k in both], references.bytes_of_gnu(some))
  assert not wrong, f"the assemblers differ: {wrong[:5]}"
  spelled = references.spelled_by_llvm(codes)
  accepted = sorted(set(range(len(refused))) - references.refused_by_llvm(refused))
  assert not accepted, f"llvm-mc takes {[refused[k] for k in accepted[:5]]}"
  made = [f"{text} ; {code.hex(' ')}" + (f" = {other}" if other != text else "")
          for text, code, other in zip(texts, codes, spelled)]
  reasons = [refusal(text, assemble) for text in refused]
  path.write_text("\n".join([*head, *dict.fromkeys(made), *reasons]) + "\n", encoding="utf-8")
  return f"{len(made)} encodings, {len(refused)} refusals"
