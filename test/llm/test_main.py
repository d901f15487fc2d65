"""python3 -m tinyhw.llm as a process."""
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from formats.gguf_models import TOKENIZER, Model

from tinyhw import Device
from tinyhw.errors import TinyError

ROOT = Path(__file__).resolve().parents[2]

@pytest.fixture(scope="module")
def path(tmp_path_factory):
  try: assert Device["CPU"].arch
  except TinyError: pytest.skip("the CPU device does not open here")
  found = tmp_path_factory.mktemp("llm") / "tiny.gguf"
  found.write_bytes(Model("qwen2").file(**TOKENIZER))
  return found

def start(*arguments):
  # no PATH: no other program is needed
  environment = {"PYTHONPATH": str(ROOT), "CACHEDIR": os.environ["CACHEDIR"], "DEV": "CPU", "THREADS": "1"}
  command = [sys.executable, "-m", "tinyhw.llm", *map(str, arguments)]
  return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          encoding="utf-8", cwd=ROOT)

def test_a_prompt(path):
  process = start("-m", path, "-p", "Hi", "--max_tokens", 4)
  out, err = process.communicate(timeout=60)
  assert process.returncode == 0 and out.endswith("\n") and not err, err

def test_serving_until_it_is_interrupted(path):
  process = start("-m", path, "--serve", 0)
  try:
    line = process.stdout.readline()
    assert line.startswith("serving tiny.gguf at http://127.0.0.1:"), process.stderr.read()
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(line.split(" at ")[1].split(";")[0]
                                                                           + "/models", timeout=20) as answer:
      assert b"tiny.gguf" in answer.read()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
  finally:
    process.kill()
    process.communicate()
