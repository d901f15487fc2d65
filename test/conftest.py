"""What all tests share: random tests that are the same in every run, a cache of their own, machine code that is checked, engines."""
import os
from collections.abc import Iterator

import hypothesis
import pytest

from test.helpers import ENGINES, on
from tinyhw.config import CACHEDIR, CHECK

hypothesis.settings.register_profile("tinyhw", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=5000, print_blob=True)   # pytest --hypothesis-profile=nightly
hypothesis.settings.load_profile("tinyhw")

@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
  """Tests and what they start, other libraries and browsers too, leave the user's folders alone: theirs are in the temporary folder of this run."""
  os.environ["no_proxy"] = "127.0.0.1"  # servers on loopback are reached directly
  os.environ["CACHEDIR"] = CACHEDIR.value = str(tmp_path_factory.mktemp("cache"))
  for kind in ("CACHE", "CONFIG"): os.environ[f"XDG_{kind}_HOME"] = str(tmp_path_factory.mktemp(f"xdg_{kind.lower()}"))
  os.environ["PARALLEL"] = "0"          # tinygrad compiles what its cache lacks in this process: its workers would wait for ever below pytest
  CHECK.value = 1  # allocated machine code is run symbolically and compared with what was to be allocated
  yield

@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
  """The test runs on the interpreter and on every device, or on the one that DEV names."""
  with on(request.param) as name: yield name
