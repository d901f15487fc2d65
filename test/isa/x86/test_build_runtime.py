"""The stored bytes of the runtime are those of the assembler; the command writes them, and reports a difference.

test_runtime.py tests their text.
"""
from pathlib import Path
import types

import pytest

from tinyhw.autogen import x86_runtime
from tinyhw.isa.x86 import abi, build_runtime

def test_the_file_is_up_to_date() -> None:
  assert build_runtime.main(["--check"]) == 0, "run: python3 -m tinyhw.isa.x86.build_runtime"

def test_what_is_written_can_be_read_back() -> None:
  namespace: dict[str, object] = {}
  exec(build_runtime.build(), namespace)
  assert namespace["CODE"] == x86_runtime.CODE and set(x86_runtime.CODE) == {(n, s) for n in build_runtime.NAMES
                                                                             for s in abi.SYSTEMS}

def test_the_command_checks_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  path = tmp_path / "x86_runtime.py"
  path.write_text("CODE = {}\n", encoding="utf-8")
  monkeypatch.setattr(build_runtime, "x86_runtime", types.SimpleNamespace(__file__=str(path)))
  assert build_runtime.main(["--check"]) == 1 and path.read_text(encoding="utf-8") == "CODE = {}\n"
  assert build_runtime.main([]) == 0 and path.read_text(encoding="utf-8") == build_runtime.build()
  assert build_runtime.main(["--check"]) == 0
