"""tinyhw/files/progress.py: what is drawn, and when."""
import io
from types import SimpleNamespace

import pytest

from tinyhw.files import progress
from tinyhw.helpers import tqdm, trange

class Terminal(io.StringIO):
  def isatty(self) -> bool: return True

@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
  now = [100.0]
  monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: now[0]))
  return now

@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
  stream = Terminal()
  monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
  return stream

def test_bar(clock: list[float], screen: Terminal) -> None:
  with tqdm[int](desc="train", total=8) as bar:
    clock[0] += 2
    bar.update(3)
    bar.set_description("loss 1.5")
    clock[0] += 2
    bar.update(1)
  lines = screen.getvalue().split("\r")
  assert lines[1].startswith("train:   0%|") and lines[1].endswith("| 0/8 [00:00<?, ?it/s]") and len(lines[1]) == 79
  assert lines[2].startswith("train:  38%|████") and lines[2].endswith("| 3/8 [00:02<00:03,  1.50it/s]")
  assert lines[3].startswith("loss 1.5:  50%|") and lines[-1].endswith("| 4/8 [00:04<00:04,  1.00it/s]\n")

@pytest.mark.parametrize("n,total,bar", [(0, 8, "    "), (8, 8, "████"), (4, 8, "██  "), (3, 16, "▊   "),
                                         (9, 8, "████")])
def test_blocks(n: int, total: int, bar: str, screen: Terminal) -> None:
  t = tqdm[int](total=total, disable=True)
  t.n = n
  assert t._bar(4) == bar

@pytest.mark.parametrize("x,text", [(0, "0.00"), (9.99, "9.99"), (999, "999"), (1000, "1.00k"), (12345, "12.3k"),
                                    (999_999, "1.00M"), (2e9, "2.00G")])
def test_scaled(x: float, text: str) -> None: assert progress._scaled(x) == text

def test_slow_and_scaled_rates(clock: list[float], screen: Terminal) -> None:
  t = tqdm[int](total=2)
  clock[0] += 3700
  t.update(1)
  assert screen.getvalue().endswith("1/2 [1:01:40<1:01:40, 3700.00s/it]")
  t = tqdm[int](unit="B", unit_scale=True)
  clock[0] += 2
  t.update(5000)
  assert "5.00kB [00:02, 2.50kB/s]" in screen.getvalue()

def test_redraws_at_most_rate_times_a_second(clock: list[float], screen: Terminal) -> None:
  t = tqdm[int](total=100, rate=10)
  for _ in range(10):
    clock[0] += 0.05
    t.update()
  assert 5 <= screen.getvalue().count("\r") <= 7

def test_iterates_and_writes_only_the_last_line_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
  assert list(tqdm("abc", desc="x")) == ["a", "b", "c"]
  tqdm.write("note")
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 2 and "x: 100%|" in lines[0] and "| 3/3 [" in lines[0] and lines[1] == "note"

def test_break_closes_and_disable_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
  for i in trange(10):
    if i == 4: break
  assert "4/10" in capsys.readouterr().err
  assert list(trange(3, disable=True)) == [0, 1, 2] and list(tqdm(iter("ab"), disable=True)) == ["a", "b"]
  assert capsys.readouterr().err == ""
