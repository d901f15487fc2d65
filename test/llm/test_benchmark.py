"""`--benchmark` prints the kernels of a token beside the memory's rate."""
from __future__ import annotations
import io

import pytest
from formats.gguf_models import TOKENIZER, Model

from test.helpers import on
from tinyhw.errors import OutOfMemory
from tinyhw.llm import benchmark, cli
from tinyhw.llm.model import Transformer

@pytest.fixture
def model(tmp_path: object) -> Transformer:
  path = tmp_path / "tiny.gguf"  # type: ignore[operator]
  path.write_bytes(Model("qwen2").file(**TOKENIZER))
  return cli.load(path)[0]

def printed(model: Transformer, count: int) -> list[str]:
  out = io.StringIO()
  benchmark.benchmark(model, count, out)
  return out.getvalue().splitlines()

def test_kernels_of_a_token_are_listed(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(benchmark, "SUM_BYTES", 1 << 16)
  tokens, memory, kernels, heading, *rows, slowest = printed(model, 4)
  assert tokens.startswith("4 tokens in ") and memory.endswith(" GB/s") and "of 8 tokens" in kernels
  assert heading.split()[0] == "share" and all("%" in row for row in rows) and len(rows) > 3
  named = {row.split()[-1] for row in rows}
  assert slowest.split()[1].rstrip(",") in named

def test_tokens_are_counted_until_the_context_is_full(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(benchmark, "SUM_BYTES", 1 << 16)
  first, *_ = printed(model, 1000)
  assert first.startswith(f"{model.config.max_context - 3} tokens in ")

def test_too_little_memory_for_the_sum_is_told(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
  def full(size: int) -> float: raise OutOfMemory("no place for 16 bytes")
  monkeypatch.setattr(benchmark, "memory_rate", full)
  assert printed(model, 2)[-1] == "the memory's rate is not known: no place for 16 bytes"

def test_a_larger_array_takes_longer() -> None:
  with on("CPU"): assert benchmark.memory_rate(1 << 20) > 0
