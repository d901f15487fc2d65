"""Stored machine code is used while it is that of its text."""
import types
import zlib
from pathlib import Path

from tinyhw.machine.assembler.stored import StoredCode

TEXTS = {"first": "one", "second": "two"}

def stored(kept: dict[str, tuple[int, str]]) -> StoredCode:
  return StoredCode("toy", list(TEXTS), TEXTS.__getitem__, lambda name: TEXTS[name].encode() * 40, kept)

def test_bytes_that_came_from_the_text_are_taken() -> None:
  code = stored({"first": (zlib.crc32(b"one"), "c0de"), "second": (zlib.crc32(b"another"), "c0de")})
  assert code.code("first") == bytes.fromhex("c0de")
  assert code.code("second") == b"two" * 40, "the text has changed"
  assert stored({}).code("first") == b"one" * 40

def test_the_command_checks_and_writes(tmp_path: Path) -> None:
  path = tmp_path / "toy_runtime.py"
  path.write_text("CODE = {}\n")
  module, code = types.SimpleNamespace(__file__=str(path)), stored({})
  assert code.write(module, ["--check"]) == 1 and path.read_text() == "CODE = {}\n"
  assert code.write(module, []) == 0 == code.write(module, ["--check"])
  namespace: dict[str, dict[str, tuple[int, str]]] = {}
  exec(path.read_text(), namespace)
  assert stored(namespace["CODE"]).code("second") == b"two" * 40 and list(namespace["CODE"]) == list(TEXTS)
