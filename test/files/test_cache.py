"""tinyhw/files/cache.py: the cache folder stays below its limit, and the command shows, clears and limits it."""
from __future__ import annotations
from collections.abc import Iterator
import json
import os
from pathlib import Path
import subprocess
import sys

import pytest

from tinyhw.__main__ import main
from tinyhw.config import CACHE_LIMIT, Context, parse_size
from tinyhw.errors import ArgumentError, ConfigError, DriverError
from tinyhw.files import cache
from tinyhw.files.regular import atomic_file
from tinyhw.files.storage import diskcache_get, diskcache_put

ROOT = Path(__file__).resolve().parents[2]
MANY = """
import sys
from tinyhw.files.storage import diskcache_get, diskcache_put
for i in range(120):
  diskcache_put("t", f"{sys.argv[1]} {i}", b"x" * 5000)
  found = diskcache_get("t", f"{sys.argv[1]} {i}")
  assert found in (None, b"x" * 5000)
"""

@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
  with Context(CACHEDIR=str(tmp_path / "cache"), CACHE=1, CACHE_LIMIT=""): yield tmp_path / "cache"

def size(folder: Path) -> int:
  return sum(cache.blocks(p.stat().st_size) * cache.BLOCK_BYTES for p in folder.rglob("*") if p.is_file())
def entries(folder: Path) -> list[Path]: return [p for p in folder.rglob("*") if p.is_file() and p.name != cache.LEDGER]

@pytest.mark.parametrize(("text", "bytes_"), [("500M", 500 << 20), ("2g", 2 << 30), ("1048576", 1 << 20), ("3KB", 3072),
                                              ("1GiB", 1 << 30), ("0", 0),
                                              ("1.5G", 3 << 29), ("0.5k", 512), ("3.2MB", 3355443),
                                              ("none", None), ("None", None)])
def test_sizes(text: str, bytes_: int | None) -> None: assert parse_size(text) == bytes_

@pytest.mark.parametrize("text", ["", "M", "-1", "1.5", "1.G", ".5G", "1.5.5G", "1e3", "5X", "10 M", "9" * 19,
                                  "\u0663"])
def test_what_is_no_size(text: str) -> None:
  with pytest.raises(ArgumentError, match="is no size; write 500M, 2G, a number of bytes, or none for no limit"):
    parse_size(text)

def test_results_stay_below_the_limit(folder: Path) -> None:
  with Context(CACHE_LIMIT="400K"):
    for i in range(300):
      diskcache_put("t", i, b"x" * 5000)
      assert size(folder) <= 400 << 10
    assert size(folder) > 300 << 10, "it is used"
    assert diskcache_get("t", 299) is not None and diskcache_get("t", 0) is None

def test_what_was_not_used_for_longest_goes_first(folder: Path) -> None:
  for i in range(10): diskcache_put("t", i, b"x" * 5000)
  for k, path in enumerate(sorted(entries(folder))): os.utime(path, (1e9 + k, 1e9 + k))
  used = [i for i in range(10) if diskcache_get("t", i) is not None and i % 2]   # all are read
  assert used == [1, 3, 5, 7, 9] and all(path.stat().st_mtime > 1.5e9 for path in entries(folder))
  for path in sorted(entries(folder))[:5]: os.utime(path, (1e9, 1e9))
  oldest = sorted(entries(folder))[:5]
  assert cache.make_room(str(folder / cache.RESULTS), 5 * 8192, (cache.LEDGER,)) == 5
  assert not any(path.exists() for path in oldest) and len(entries(folder)) == 5

def test_processes_share_the_limit(folder: Path) -> None:
  environment = {**os.environ, "CACHEDIR": str(folder), "PYTHONPATH": str(ROOT), "CACHE_LIMIT": "400K"}
  processes = [subprocess.Popen([sys.executable, "-c", MANY, str(k)], env=environment) for k in range(4)]
  assert [process.wait(120) for process in processes] == [0] * 4
  assert size(folder) <= (400 << 10) + 4 * 8192

def test_a_lost_or_strange_ledger_is_made_again(folder: Path) -> None:
  with Context(CACHE_LIMIT="none"):
    for i in range(100): diskcache_put("t", i, b"x" * 5000)
  ledger = folder / cache.RESULTS / cache.LEDGER
  assert not ledger.exists()
  with Context(CACHE_LIMIT="400K"):
    diskcache_put("t", "a", 1)
    assert size(folder) <= 400 << 10 and ledger.stat().st_size == 1
    if not hasattr(os, "mkfifo"): return
    ledger.unlink()
    os.mkfifo(ledger)
    for i in range(2): diskcache_put("t", f"b{i}", 1)
    assert ledger.is_file()

def test_no_limit_and_nothing(folder: Path) -> None:
  with Context(CACHE_LIMIT="none"):
    for i in range(5): diskcache_put("t", i, 1)
  assert len(entries(folder)) == 5
  with Context(CACHE_LIMIT="0"): diskcache_put("t", 5, 1)
  assert entries(folder) == []

def test_a_wrong_limit_is_told(folder: Path) -> None:
  with pytest.raises(ConfigError, match="CACHE_LIMIT: 'much' is no size"): Context(CACHE_LIMIT="much")
  with pytest.raises(ConfigError, match="CACHE_LIMIT: 'much' is no size"): CACHE_LIMIT.value = "much"
  assert cache.limit(str(folder)) == cache.DEFAULT_LIMIT

def test_a_wrong_limit_of_the_environment_is_told_also_where_nothing_is_written() -> None:
  """At import, as for other variables with wrong values."""
  done = subprocess.run([sys.executable, "-c", "import tinyhw.config"], cwd=ROOT, env={"CACHE_LIMIT": "much"},
                        capture_output=True, text=True)
  why = "CACHE_LIMIT: 'much' is no size; write 500M, 2G, a number of bytes, or none for no limit"
  assert done.returncode and why in done.stderr, done.stderr

def test_what_is_being_written_is_left_alone(folder: Path) -> None:
  diskcache_put("t", 1, 1)
  with atomic_file(str(entries(folder)[0].with_name("x")), private=True):
    assert cache.make_room(str(folder / cache.RESULTS), 0, (cache.LEDGER,)) == 1 and len(entries(folder)) == 1

def test_recordings_are_bounded_and_the_newest_stays(folder: Path) -> None:
  (folder / "viz").mkdir(parents=True)
  for k in range(3):
    (folder / "viz" / f"{k}.viz.zip").write_bytes(b"x" * 5000)
    os.utime(folder / "viz" / f"{k}.viz.zip", (1e9 + k, 1e9 + k))
  with Context(CACHE_LIMIT="16K"): cache.recorded(str(folder), "viz")
  assert sorted(os.listdir(folder / "viz")) == ["1.viz.zip", "2.viz.zip"]
  with Context(CACHE_LIMIT="0"): cache.recorded(str(folder), "viz")
  assert os.listdir(folder / "viz") == ["2.viz.zip"]

# **** the command ****

def fill(folder: Path) -> None:
  for table, name in (("code", "a"), ("code", "b"), ("beam", "a"), ("call_f", "a")): diskcache_put(table, name, 1)
  for path in ("viz/1.viz.zip", "profile/1.json", "downloads/sub/file"):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(b"x" * 5000)

def run(*words: str) -> int: return main(["cache", *words])

def test_the_command_shows_what_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
  assert run() == 0 and "kernels           0 entries         0" in capsys.readouterr().out
  fill(folder)
  assert run() == 0
  assert capsys.readouterr().out == f"""folder      {folder}
limit       1.0G, of kernels, searches and calls together, and of recordings
kernels           2 entries      8.0K
searches          1 entries      4.0K
calls             1 entries      4.0K
recordings        2 entries     16.0K
downloads         1 entries      8.0K
"""
  assert run("--json") == 0
  facts = json.loads(capsys.readouterr().out)
  assert facts["limit"] == 1 << 30 and facts["kinds"]["downloads"] == {"entries": 1, "bytes": 8192}

def test_the_command_clears(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
  fill(folder)
  assert run("clear", "searches") == 0 and capsys.readouterr().out == "removed 1 files: searches\n"
  assert diskcache_get("beam", "a") is None and diskcache_get("code", "a") == 1
  assert run("clear") == 0
  assert (capsys.readouterr().out == "removed 5 files: kernels, searches, calls, recordings; `cache clear downloads` "
          "removes downloads\n")
  assert entries(folder) == [folder / "downloads" / "sub" / "file"]
  assert run("clear", "downloads") == 0 and entries(folder) == []
  assert run("clear", "all") == 1
  assert "the cache has no 'all'; it has kernels, searches, calls, recordings, downloads" in capsys.readouterr().err

def test_the_command_limits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
  for i in range(100): diskcache_put("t", i, b"x" * 5000)
  assert run("limit", "400K") == 0 and "limit       400.0K" in capsys.readouterr().out
  assert size(folder) <= 400 << 10 and cache.limit(str(folder)) == 400 << 10
  with Context(CACHE_LIMIT="5G"): assert cache.limit(str(folder)) == 5 << 30
  assert run("limit", "none") == 0 and cache.limit(str(folder)) is None
  assert run("limit") == 0 and "limit       none" in capsys.readouterr().out
  assert run("limit", "many") == 1 and "'many' is no size" in capsys.readouterr().err
  assert (run("limit", "1", "2") == 2 and run("forget") == 2
          and "the words are clear [KIND ...], limit [SIZE]" in capsys.readouterr().err)

@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_limit_that_is_not_to_be_believed_is_none(folder: Path) -> None:
  folder.mkdir()
  path = folder / cache.LIMIT_FILE
  for text in (b"many", b"\xff\xfe", b""):
    path.write_bytes(text)
    path.chmod(0o600)
    assert cache.limit(str(folder)) == cache.DEFAULT_LIMIT
  path.write_bytes(b"5K")
  assert cache.limit(str(folder)) == 5 << 10
  path.chmod(0o666)
  assert cache.limit(str(folder)) == cache.DEFAULT_LIMIT
  path.unlink()
  os.mkfifo(path)
  assert cache.limit(str(folder)) == cache.DEFAULT_LIMIT

def test_what_cannot_be_done_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  fill(folder)
  def refuse(path: str) -> None: raise PermissionError(13, "Permission denied", path)
  with monkeypatch.context() as patch:
    patch.setattr(cache.os, "unlink", refuse)
    with pytest.raises(DriverError, match=r"2 files could not be removed \(.*: Permission denied\); check their "
                       r"permissions"):
      cache.clear(str(folder), ["kernels"])
    assert cache.make_room(str(folder), 0) == 0
  (folder / cache.LIMIT_FILE).mkdir()
  with pytest.raises(DriverError, match="cannot write .*limit: Is a directory; set CACHE_LIMIT instead"):
    cache.set_limit(str(folder), "5M")
