"""What GitHub would run is in the repository, has few rights, and is pinned."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAY_WRITE = {("ci", "publish-site"): {"pages", "id-token"}, ("release", "publish"): {"id-token"}}
_PROGRAM = re.compile(r"(?<![\w./-])(?:\.ci|tools|benchmarks|recipes|tests|docs|src)/[\w./-]+")


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for file in WORKFLOWS:
        for name, job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].items():
            yield file.stem, name, job


def commands() -> list[str]:
    return [step["run"] for _, _, job in jobs() for step in job.get("steps", ()) if "run" in step]


def test_targets_and_programs_exist() -> None:
    """Of every `run:` step, and the extras that it installs."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = "\n".join(commands())
    made = re.findall(r"\bmake ([\w-]+)", text)
    assert {"lint", "test", "fuzz", "site"} <= set(made) <= targets
    named = _PROGRAM.findall(text)
    assert ".ci/run" in named
    assert [] == [path for path in named if not (ROOT / path).exists()]
    extras = {
        extra for found in re.findall(r"'\.\[([\w,]+)\]'", text) for extra in found.split(",")
    }
    assert extras
    assert extras <= set(project["optional-dependencies"])


def test_the_folder_of_the_site_is_that_of_the_makefile() -> None:
    [path] = [
        step["with"]["path"]
        for _, _, job in jobs()
        for step in job.get("steps", ())
        if "upload-pages-artifact" in step.get("uses", "")
    ]
    assert path in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_actions_are_pinned_by_commit_and_say_their_version() -> None:
    for file in WORKFLOWS:
        for line in file.read_text(encoding="utf-8").splitlines():
            if "uses:" in line and "uses: ./" not in line:
                assert re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+(\.\d+)*$", line), line


def test_an_action_has_one_pin() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in WORKFLOWS)
    pins = set(re.findall(r"uses: ([\w/-]+)@(\w+)", text))
    assert len(pins) == len({name for name, _ in pins}) >= 5


def test_rights_are_few() -> None:
    """None at the top; a job reads the repository, and writes only what MAY_WRITE says."""
    for file in WORKFLOWS:
        assert {} == yaml.safe_load(file.read_text(encoding="utf-8"))["permissions"], file.name
    for workflow, name, job in jobs():
        rights = {right for right, kind in job["permissions"].items() if kind != "read"}
        assert rights == MAY_WRITE.get((workflow, name), set()), (workflow, name)
        assert "uses" in job or job["timeout-minutes"] <= 120
        for step in job.get("steps", ()):
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def test_nothing_from_outside_is_put_into_a_shell() -> None:
    """Expressions of GitHub are text in a script before the shell reads it."""
    assert [] == [command for command in commands() if "${{" in command]


def test_pythons_are_those_of_the_project() -> None:
    versions = {
        version
        for _, name, job in jobs()
        if name == "tests"
        for version in job["strategy"]["matrix"]["python"]
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = {each.rpartition(" ")[2] for each in project["classifiers"] if ":: 3." in each}
    assert said <= versions | {"3.12"}  # which `everything` runs


def test_versions_agree() -> None:
    """The citation has the version of the package."""
    import vocabshift

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert vocabshift.__version__ == citation["version"]
    assert [{"name": "the vocabshift authors"}] == citation["authors"]


def test_no_repository_is_invented() -> None:
    """Until there is one, OWNER stands for its owner."""
    files = [*WORKFLOWS, ROOT / "CITATION.cff", ROOT / "CODE_OF_CONDUCT.md", ROOT / "mkdocs.yml"]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert {"OWNER/vocabshift"} == set(re.findall(r"github\.com/([\w-]+/vocabshift)", text))


def test_the_image_copies_what_is_there() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [word for line in re.findall(r"^COPY (.+)", text, re.M) for word in line.split()[:-1]]
    assert {"src", "cpp", "pyproject.toml"} <= set(copied)
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for path in copied:
        assert (ROOT / path).exists()
        assert f"!{path}" in kept


def test_the_skill_is_in_the_form_that_is_collected() -> None:
    """A name that is the folder's, and a description that a program can choose by."""
    file = ROOT / "skills" / "vocabshift" / "SKILL.md"
    _, head, body = file.read_text(encoding="utf-8").split("---\n", 2)
    found = yaml.safe_load(head)
    assert file.parent.name == found["name"]
    assert 100 < len(found["description"]) <= 1024
    assert len(body.splitlines()) < 500
