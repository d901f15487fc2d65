"""tinyhw/config.py: reading the environment, overriding for a while, in threads and tasks, and refusals."""
import ast
import asyncio
import contextvars
import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tinyhw import config
from tinyhw.config import BEAM, DEBUG, DEV, Context, ContextVar, FirstUse, getenv, of_variables
from tinyhw.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent

@pytest.fixture(autouse=True)
def defaults(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(ContextVar, "_cache", dict(ContextVar._cache))
  for variable in (DEBUG, BEAM): monkeypatch.setattr(variable, "_base", 0)
  monkeypatch.setattr(DEV, "_base", "")
  getenv.cache_clear()

@pytest.mark.parametrize("text,default,value", [("3", 0, 3), ("", 7, 7), (None, "x", "x"), ("0", True, False),
                                                ("2.5", 1.0, 2.5), ("abc", "", "abc")])
def test_getenv_has_the_type_of_its_default(monkeypatch: pytest.MonkeyPatch, text: str | None, default: object,
                                            value: object) -> None:
  monkeypatch.delenv("TINYHW_X", raising=False)
  if text is not None: monkeypatch.setenv("TINYHW_X", text)
  assert getenv("TINYHW_X",
                default) == value and type(getenv("TINYHW_X", default)) is type(default)  # type: ignore[call-overload]

def test_getenv_refuses_text_for_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("TINYHW_X", "yes")
  with pytest.raises(ConfigError, match="TINYHW_X='yes' is not a number; set it to one, or unset it"):
    getenv("TINYHW_X")

@pytest.mark.parametrize("environment, value",
                         [({}, "all"), ({"CUDA_VISIBLE_DEVICES": ""}, ""), ({"CUDA_VISIBLE_DEVICES": "1"}, "1")])
def test_an_empty_text_is_a_value_where_the_variable_says_so(environment: dict[str, str], value: str) -> None:
  """CUDA programs use all GPUs if this variable is not set, and none if it is empty."""
  program = "from tinyhw.config import CUDA_VISIBLE_DEVICES; print(repr(CUDA_VISIBLE_DEVICES))"
  done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
  assert done.stdout == f"ContextVar(CUDA_VISIBLE_DEVICES={value!r})\n", done.stderr

def test_bad_environment_is_refused_at_import() -> None:
  done = subprocess.run([sys.executable, "-c", "import tinyhw.config"], cwd=ROOT, env={"DEBUG": "loud"},
                        capture_output=True, text=True)
  assert done.returncode and "DEBUG='loud' is not a number" in done.stderr

@pytest.mark.parametrize("key, value, why", [("HCQDEV_WAIT_TIMEOUT_MS", 0, "the least that it takes is 1"),
                                             ("EMULATE_SEED", -1, "it takes is 0"),
                                             ("HCQDEV_WAIT_TIMEOUT_MS", -5, "it takes is 1"),
                                             ("EMULATE_STRICT", 3, "it is from 0 to 2")])
def test_numbers_out_of_a_variables_range_are_refused(key: str, value: int, why: str) -> None:
  for given in (value, str(value)):
    with pytest.raises(ConfigError, match=f"{key}={value}: .*{why}"): Context(**{key: given})
  with pytest.raises(ConfigError, match=why): ContextVar._cache[key].value = value
  done = subprocess.run([sys.executable, "-c", "import tinyhw.config"], cwd=ROOT, env={key: str(value)},
                        capture_output=True, text=True)
  assert done.returncode and f"{key}={value}: " in done.stderr and why in done.stderr

def test_variable_compares_as_its_value() -> None:
  with Context(DEBUG=2):
    assert (DEBUG and DEBUG == 2 and DEBUG >= 2 and DEBUG > 1 and DEBUG < 3 and DEBUG <= 2 and int(DEBUG) == 2
            and list(range(DEBUG)) == [0, 1])
    assert repr(DEBUG) == "ContextVar(DEBUG=2)" and str(DEBUG) == "2"
  assert not DEBUG

def test_contexts_nest_and_restore_after_an_error() -> None:
  with Context(DEBUG=1, DEV="CPU"):
    with pytest.raises(KeyError), Context(DEBUG=2): raise KeyError
    assert DEBUG == 1 and DEV == "CPU"
    DEBUG.value = 5  # lasts as long as the context
    assert DEBUG == 5
  assert DEBUG == 0 and DEV == ""

def test_assignment_outside_of_a_context_is_seen_by_every_thread() -> None:
  DEBUG.value = 3
  seen: list[int] = []
  thread = threading.Thread(target=lambda: seen.append(DEBUG.value))
  thread.start()
  thread.join()
  assert seen == [3]

def test_decorator_may_recurse() -> None:
  @Context(BEAM=3)
  def count(n: int) -> list[int]:
    """Doc."""
    return [BEAM.value] + (count(n - 1) if n else [])
  assert count(2) == [3, 3, 3] and BEAM == 0 and count.__name__ == "count" and count.__doc__ == "Doc."

def test_threads_that_interleave_do_not_restore_each_other() -> None:
  entered, left = threading.Event(), threading.Event()
  seen: list[int] = []
  def other() -> None:
    with Context(DEBUG=7):
      entered.set()
      left.wait(10)
      seen.append(DEBUG.value)
    seen.append(DEBUG.value)
  thread = threading.Thread(target=other)
  with Context(DEBUG=1):
    thread.start()
    entered.wait(10)
    assert DEBUG == 1
  left.set()
  thread.join()
  assert seen == [7, 0] and DEBUG == 0

def test_asyncio_tasks_have_their_own_values() -> None:
  async def task(n: int) -> int:
    with Context(DEBUG=n):
      await asyncio.sleep(0)
      return DEBUG.value
  async def both() -> list[int]: return list(await asyncio.gather(task(1), task(2)))
  assert asyncio.run(both()) == [1, 2] and DEBUG == 0

def test_the_peers_variables_are_accepted_and_said_once(capsys: pytest.CaptureFixture[str],
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(config, "_said", set())
  with Context(DEBUG=1):
    for _ in range(2):
      with Context(WINO=1, BEAM=2): assert BEAM.value == 2
  assert capsys.readouterr().err == "WINO: a choice of tinygrad's compiler; it means nothing here\n"
  with Context(FUSE_OPTIM=1): pass
  assert not capsys.readouterr().err
  assert not config.PEERS & set(ContextVar._cache)

@pytest.mark.parametrize("debug, said", (("0", ""), ("1", "IMAGE, WINO: a choice of tinygrad's compiler; it means "
                                                       "nothing here\n")))
def test_the_peers_variables_in_the_environment(debug: str, said: str) -> None:
  done = subprocess.run([sys.executable, "-c", "import tinyhw.config"], capture_output=True, text=True, check=True,
                        env={**os.environ, "WINO": "1", "IMAGE": "2", "DEBUG": debug})
  assert (done.stdout, done.stderr) == ("", said)

def test_refusals() -> None:
  with pytest.raises(ConfigError, match="no variable is named DEBUGG; the known ones are .*BEAM, "): Context(DEBUGG=1)
  with pytest.raises(ConfigError, match="DEBUG is a number, not None; pass an int"):
    Context(DEBUG=None)  # type: ignore[arg-type]
  with pytest.raises(ConfigError, match="DEV is text, not 1; pass a str"): DEV.value = 1  # type: ignore[assignment]
  with pytest.raises(ConfigError, match="variable DEBUG is declared already"): ContextVar("DEBUG", 0)

def test_tolist() -> None:
  with Context(DEV="debug,errors,"):
    assert DEV.tolist() == ["debug", "errors"]
  with Context(DEV="DEBUG,BEAM"): assert DEV.tolist(config) == [DEBUG, BEAM]

@pytest.mark.slow
def test_every_variable_is_declared_and_documented() -> None:
  assert all(doc for _, _, _, doc in config.documentation())
  for path in [p for root in ("tinyhw", "drivers") for p in (ROOT / root).rglob("*.py")]:
    for node in ast.walk(ast.parse(path.read_text())):
      if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
              and node.func.id in ("getenv", "ContextVar") and node.args):
        continue
      key = node.args[0]
      if isinstance(key, ast.Constant):
        assert key.value in ContextVar._cache, f"{path}:{node.lineno}: declare {key.value!r} in config.py"

def test_first_use() -> None:
  variable: ContextVar[int] = ContextVar("TEST_FIRST_USE", 1)
  with FirstUse(variable) as use: assert use.first is None
  with FirstUse(variable) as use:
    variable.value = 2
    assert use.first == "set" and bool(variable) and variable == 2
  with FirstUse(variable) as use: assert variable.value == 2 and use.first == "read"
  assert type(variable) is ContextVar and variable.value == 2

def test_variables_are_themselves_in_pickles_and_copies() -> None:
  for again in (pickle.loads(pickle.dumps([DEBUG, DEV])), copy.copy([DEBUG, DEV]), copy.deepcopy([DEBUG, DEV])):
    assert again[0] is DEBUG and again[1] is DEV
  with pickle.loads(pickle.dumps(Context(DEBUG=2))): assert DEBUG == 2
  assert DEBUG == 0

def test_a_variable_that_nothing_declares_is_not_unpickled() -> None:
  data = pickle.dumps(ContextVar("TEST_PICKLED", 1))
  del ContextVar._cache["TEST_PICKLED"]
  with pytest.raises(ConfigError, match="no variable is named TEST_PICKLED; import the module that declares it"):
    pickle.loads(data)

# ***** values of variables that are kept *****

def test_a_function_of_variables_is_computed_again_only_after_a_change() -> None:
  computed: list[int] = []
  @of_variables
  def double() -> int:
    computed.append(BEAM.value)
    return BEAM.value * 2
  assert [double(), double()] == [0, 0] and len(computed) == 1
  with Context(BEAM=3):
    assert [double(), double()] == [6, 6] and len(computed) == 2
    BEAM.value = 4
    assert double() == 8
    with Context(DEBUG=1): assert double() == 8
    in_thread = list[int]()
    thread = threading.Thread(target=lambda: in_thread.append(double()))
    thread.start()
    thread.join()
    assert in_thread == [0] and double() == 8, "another thread has another Context"
  assert double() == 0
  BEAM.value = 2
  assert double() == 4
  copied = contextvars.copy_context()
  with Context(BEAM=5): assert [double(), copied.run(double), double()] == [10, 4, 10]
