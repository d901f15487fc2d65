"""The stored bytes of the runtime are those of the assembler; the command writes them, and reports a difference."""
from pathlib import Path
import types

import pytest

from tinyhw.autogen import arm64_runtime
from tinyhw.isa.arm64 import build_runtime, runtime

def test_the_file_is_up_to_date() -> None:
  assert build_runtime.main(["--check"]) == 0, "run: python3 -m tinyhw.isa.arm64.build_runtime"

def test_what_is_written_can_be_read_back() -> None:
  namespace: dict[str, object] = {}
  exec(build_runtime.build(), namespace)
  assert namespace["CODE"] == arm64_runtime.CODE and set(arm64_runtime.CODE) == set(runtime.NAMES)

def test_the_command_checks_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  path = tmp_path / "arm64_runtime.py"
  path.write_text("CODE = {}\n", encoding="utf-8")
  monkeypatch.setattr(build_runtime, "arm64_runtime", types.SimpleNamespace(__file__=str(path)))
  assert build_runtime.main(["--check"]) == 1 and path.read_text(encoding="utf-8") == "CODE = {}\n"
  assert build_runtime.main([]) == 0 and path.read_text(encoding="utf-8") == build_runtime.build()
  assert build_runtime.main(["--check"]) == 0
