"""README.md is short, and every command in it runs as typed, in order, in one folder.

Not run are the lines that begin as NOT_RUN says: they make an environment or install the package
that is being tested, which needs a network and is what `make` has done before this test began. What
they name (extras, make targets) is checked. Names on the Hub are replaced by small models made
here. The demo trains its tokenizers as it always does, and tiny models, for less long.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vocabshift as vs
from small_models import build, old_tokenizer, save
from vocabshift import METRICS
from vocabshift.demo import story
from warm_python import WarmPython

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)

MOST_WORDS = 900  # of the whole file as `wc -w` counts it, code blocks and links included
NOT_RUN = ("pip install ", "python3 -m venv ")
HUB = {"meta-llama/Llama-3.2-1B": "llama", "Qwen/Qwen2.5-0.5B": "qwen2-padded"}
"""Names on the Hub that README may use, and the architecture of what stands in for each."""

SHIM = """\
#!{python}
import dataclasses, sys
from pathlib import Path
from vocabshift.cli.main import main

models = {models!r}
words = [models.get(word, word) for word in sys.argv[1:]]
if words[:1] == ["demo"]:
    from vocabshift.demo import walk
    tiny = dict(hidden_size=32, n_layers=1, pretraining_rounds=0.2, further_rounds=0.1)
    plan = dataclasses.replace(walk.Plan(), **tiny)
    walk.Plan = lambda: plan
status = main(words)
with Path({record!r}).open("a") as record:
    print(*sys.argv[1:], file=record)
sys.exit(status)
"""


def script() -> str:
    """All blocks as one shell script: what README tells to type, from top to bottom."""
    parts = []
    for language, text in BLOCKS:
        assert language in ("sh", "python"), f"a block of {language} is not run by this test"
        if language == "python":
            parts.append(f"python - <<'END_OF_PYTHON'\n{text}END_OF_PYTHON\n")
        else:
            lines = text.splitlines(keepends=True)
            parts.append("".join(line for line in lines if not line.startswith(NOT_RUN)))
    return "".join(parts)


def test_readme_is_short() -> None:
    words = [word for word in README.split() if any(map(str.isalnum, word))]  # no bars of tables
    assert len(words) <= MOST_WORDS


def test_blocks_are_all_found() -> None:
    """A fence that the pattern overlooks would be run by nobody."""
    assert 2 * len(BLOCKS) == len(re.findall(r"^ *(```|~~~)", README, flags=re.MULTILINE))
    assert not re.findall(r"^(?:    |\t)\S", re.sub(r"(?s)```.*?```", "", README), re.MULTILINE)


def test_what_is_installed_exists() -> None:
    """The lines that are not run name extras of pyproject.toml."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    installs = [
        line for _, text in BLOCKS for line in text.splitlines() if line.startswith("pip install ")
    ]
    assert len(installs) >= 2
    for line in installs:
        match = re.fullmatch(r"pip install (?:\.|'\.\[([\w,]+)\]') *(?:#.*)?", line)
        assert match is not None, line
        assert set((match[1] or "hf").split(",")) <= set(extras)
    [spoken] = re.findall(r"Other extras: (.*?)\.$", README, flags=re.DOTALL | re.MULTILINE)
    assert {*re.findall("`(\\w+)`", spoken), "hf"} <= set(extras)


def test_names_on_the_hub_are_marked() -> None:
    """They stand in a block that begins by saying so, and are names that exist."""
    for language, text in BLOCKS:
        named = set(re.findall(r"(?<![\w./-])[A-Za-z][\w-]*/[A-Z][\w.-]+(?![\w/])", text))
        assert named <= set(HUB)
        assert bool(named) == text.startswith("# from the Hub"), language


def test_platforms_are_those_that_are_tested() -> None:
    """README and the classifiers agree: Linux alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    systems = [each for each in project["classifiers"] if each.startswith("Operating System")]
    assert ["Operating System :: POSIX :: Linux"] == systems
    assert "and Linux. macOS and Windows are untested." in README
    versions = {each.rpartition(" ")[2] for each in project["classifiers"] if ":: 3." in each}
    assert {"3.11", "3.12", "3.13"} == versions
    assert "Python 3.11 to 3.13" in README


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 10
    assert [] == [link for link in links if not (ROOT / link).exists()]


def test_figures_in_the_text() -> None:
    """They stand in the pages they are taken from."""
    assert "over sixty metrics" in README
    assert len(METRICS) > 60
    study = (ROOT / "recipes/continued_bpe/README.md").read_text(encoding="utf-8")
    assert re.search(r"^\| ta \|.* 5\.78\d? \|.*13\.05\d?\b", study, flags=re.MULTILINE)


def test_the_picture_is_that_of_its_program(tmp_path: Path) -> None:
    """The same labels and, to rounding, the same numbers; it is small enough for a README."""
    pytest.importorskip("matplotlib")
    [command] = re.findall(r"<!-- drawn by: python (\S+ \S+) -->", README)
    program, picture = command.split()
    assert f"]({picture})" in README
    assert (ROOT / picture).stat().st_size < 100_000
    done = [sys.executable, ROOT / program, tmp_path / "again.svg"]
    subprocess.run(done, check=True, env=environment())
    committed, again = (
        path.read_text(encoding="utf-8") for path in (ROOT / picture, tmp_path / "again.svg")
    )
    assert labels(committed) == labels(again)
    if version(committed) == version(again):  # another release may draw another way
        assert heights(again) == pytest.approx(heights(committed), abs=0.05)


def labels(svg: str) -> list[str]:
    return re.findall(r"<!-- (.+?) -->", svg)


def version(svg: str) -> list[str]:
    return re.findall(r"Matplotlib v([\d.]+)", svg)


def heights(svg: str) -> list[float]:
    """Numbers of all paths with colours: the bars."""
    bars = re.findall(r'<path d="([^"]+)" clip-path="[^"]+" style="fill: #', svg)
    return [float(number) for bar in bars for number in re.findall(r"-?\d+\.?\d*", bar)]


def environment() -> dict[str, str]:
    """Without the network, and with the package that is being tested."""
    source = str(Path(vs.__file__).parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **offline, "PYTHONPATH": path}


@pytest.mark.slow
@pytest.mark.no_tsan
def test_every_command_runs(tmp_path: Path, warm_python: WarmPython) -> None:
    """As typed, from top to bottom; each block finds what those before it wrote.

    Each is a process of its own; what it imports is there already.
    """
    pytest.importorskip("torch")
    models = {}
    for name, kind in HUB.items():
        tokenizer = old_tokenizer(story.beginnings(100)["eng"], size=700)
        place = tmp_path / "hub" / name.replace("/", "--")
        models[name] = str(save(build(kind, tokenizer), tokenizer, place))
    programs = tmp_path / "bin"
    programs.mkdir()
    record = tmp_path / "record"
    shim = SHIM.format(python=warm_python.executable, models=models, record=str(record))
    (programs / "vocabshift").write_text(shim)
    (programs / "vocabshift").chmod(0o755)
    (programs / "python").write_text(f'#!/bin/sh\nexec "{warm_python.executable}" "$@"\n')
    (programs / "python").chmod(0o755)
    work = tmp_path / "clone"
    work.mkdir()

    variables = environment()
    variables["PATH"] = os.pathsep.join([str(programs), variables["PATH"]])
    done = subprocess.run(
        ["bash", "-c", f"set -eu\ntrap 'echo \"at: $BASH_COMMAND\" >&2' ERR\n{script()}"],
        cwd=work,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr[-3000:]

    typed = [line for _, text in BLOCKS for line in text.splitlines()]
    commands = [line for line in typed if line.startswith("vocabshift ")]
    assert len(commands) == len(record.read_text().splitlines()) >= 15
    made = work / "demo-out"
    for command in commands:
        for out in re.findall(r"(?:-o|--html) (runs/\S+|\S+\.html)", command):
            assert (made / out).exists(), command
    lines = done.stdout.splitlines()
    rows = vs.Results.from_jsonl("\n".join(line for line in lines if line.startswith('{"subject"')))
    assert {"fertility", "bytes_per_token", "bits_per_byte"} == set(rows.distinct("metric"))
