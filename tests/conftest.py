"""Fixtures that several kinds of tests share: where the real data is."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from nightly import is_chosen
from real_model import LACKING, find_smollm2
from warm_python import WarmPython

# No test asks for time: Hypothesis' deadline fails a machine that is busy, not the code.
_UNTIMED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
_NIGHTLY = os.environ.get("VOCABSHIFT_NIGHTLY", "")  # as tests/nightly.py says
# The same examples in every run, and more of them where a share of the nightly tests is run too;
# VOCABSHIFT_EXAMPLES=N draws fresh ones, N times as many.
_TIMES = int(os.environ.get("VOCABSHIFT_EXAMPLES", "0"))
_FIXED = 100 if _NIGHTLY else 50
settings.register_profile("fixed", _UNTIMED, max_examples=_FIXED, derandomize=True)
settings.register_profile(
    "fresh", _UNTIMED, max_examples=100 * max(_TIMES, 1), derandomize=False, print_blob=True
)
settings.load_profile("fresh" if _TIMES else "fixed")


# Groups that take longest, longest first: started last, one of them leaves a worker without work.
LONG_GROUPS = (
    *("test_recipes", "lm-eval", "vendor llama3", "vendor qwen25"),
    *("test_report_browser", "test_resume", "test_runtimes"),
    *("vendor gguf-gemma-4", "test_hf_tokenizer", "test_processes", "vendor mistral7b-v1"),
    *("test_lora", "test_encoder", "test_automaton", "test_readme"),
)


@pytest.hookimpl(tryfirst=True)  # before anything is collected
def pytest_configure(config: pytest.Config) -> None:
    """Groups are handed out in our order, not those of most tests first, as xdist would."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Collecting makes a million objects that stay: looking for garbage among them finds none."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of one group run in a row and in one worker (`--dist loadgroup`): what they load, they
    load once. A test that names no group is of its module's."""
    wanted = [_is_wanted(item, config) for item in items]
    config.hook.pytest_deselected(items=list(compress(items, map(not_, wanted))))
    items[:] = compress(items, wanted)
    first = {group: number - len(LONG_GROUPS) for number, group in enumerate(LONG_GROUPS)}
    places = {}
    for number, item in enumerate(items):
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
        group = item.get_closest_marker("xdist_group").args[0]
        places[item] = first.setdefault(group, number)
    items.sort(key=places.__getitem__)


def _is_wanted(item: pytest.Item, config: pytest.Config) -> bool:
    if item.get_closest_marker("nightly") is None or "nightly" in config.option.markexpr:
        return True
    group = item.get_closest_marker("xdist_group")
    name = item.nodeid if group is None else group.args[0]  # all tests of a vendor, or none
    return is_chosen(name, _NIGHTLY)


@pytest.fixture(autouse=True, scope="module")
def accelerate_forgets() -> Iterator[None]:
    """A `Trainer` of transformers settles accelerate's precision for the rest of the process."""
    yield
    if "accelerate.state" in sys.modules:
        sys.modules["accelerate.state"].AcceleratorState._reset_state(reset_partial_state=True)


SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the unpacked corpora, tasks and vendor tokenizers of ../shared/data.

    Set VOCABSHIFT_SHARED to a folder unpacked earlier to save the unpacking.
    """
    unpacked = os.environ.get("VOCABSHIFT_SHARED")
    if unpacked:
        return Path(unpacked)
    if not (SHARED / "unpack.sh").exists():
        pytest.skip("../shared/data is not there: real corpora and vendor tokenizers are needed")
    folder = _for_all_workers(tmp_path_factory) / "shared-data"
    with _Lock(folder.with_suffix(".lock")):
        subprocess.run(
            [SHARED / "unpack.sh", folder, "train", "eval", "tasks", "tokenizers"],
            check=True,
            capture_output=True,
            env=_without_sanitizer(),
        )
    return folder


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """The file of SmolLM2-135M-Instruct; the test skips where it is not installed."""
    file = find_smollm2()
    if file is None or find_spec("gguf") is None or find_spec("transformers") is None:
        pytest.skip(LACKING if file is None else "needs the extras gguf and hf")
    return file


@pytest.fixture(scope="session")
def smollm2(smollm2_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a folder, in 32 bits, converted once in a run: read it, do not write to it."""
    folder = _for_all_workers(tmp_path_factory) / "smollm2"
    with _Lock(folder.with_suffix(".lock")):
        if not folder.exists():
            from vocabshift import convert_gguf

            convert_gguf(smollm2_gguf, folder, dtype="float32")
    return folder


# What programs that open models import; two seconds of each that is started.
_HEAVY = (
    *("torch", "transformers.models.auto.modeling_auto"),
    *("transformers.models.llama.modeling_llama", "lm_eval.models.huggingface"),
    *("accelerate", "peft", "scipy.stats"),
)


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPython]:
    """Stands in for python where a script starts it ten times and more."""
    heavy = [name for name in _HEAVY if find_spec(name.partition(".")[0])]
    process = WarmPython(tmp_path_factory.mktemp("warm"), *heavy)
    yield process
    process.close()


@pytest.fixture(scope="session")
def reference_cases() -> Path:
    """Folder with what the papers' own programs made of texts, beside the real data."""
    folder = SHARED.with_name("cases")
    if not folder.exists():
        pytest.skip("../shared/cases is not there: the reference cases of the papers are needed")
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser without a window: playwright drives the Chromium or Chrome of the machine."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None or find_spec("playwright") is None:
        pytest.skip("needs playwright, and Chromium or Google Chrome on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=program, args=["--no-sandbox"], env=_without_sanitizer()
        )
        yield browser
        browser.close()


def _without_sanitizer() -> dict[str, str]:
    """The environment of programs that do not start with a sanitizer's library, as Python must.

    Chromium starts with none, bash not with that of the thread sanitizer.
    """
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def _for_all_workers(factory: pytest.TempPathFactory) -> Path:
    """A folder of this run; the parent of the base temp folder is shared by all workers."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


class _Lock:
    """Exclusive file lock between the workers of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        import fcntl

        self.file = self.path.open("w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self.file.close()
