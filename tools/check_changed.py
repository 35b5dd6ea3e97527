"""Run the quick tests of what changed since the branch left main: the last part of `make check`.

    python tools/check_changed.py --list
    python tools/check_changed.py --base origin/main -- -n 2 -x

Owns the way from a changed file to its tests. A file of the package leads to the test that mirrors
it and to every unit, property and golden test that names its module; the core to the golden and
property tests. Integration tests take minutes and run only where they changed themselves: `make
test` runs everything.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUICK = ("tests/unit", "tests/property", "tests/golden")
DOCS_TEST = "tests/unit/cli/test_main_docs.py"
BY_PREFIX = (
    ("cpp/", ("tests/golden", "tests/property")),
    ("src/vocabshift/cli/", ("tests/unit/cli",)),
    ("src/", ("tests/unit/test_layers.py",)),
    ("recipes/", ("tests/unit/recipes", DOCS_TEST)),
    ("benchmarks/", ("tests/unit/benchmarks",)),
    ("model_cards/", ("tests/unit/test_model_cards.py",)),
    ("docs/", (DOCS_TEST,)),
    ("skills/", (DOCS_TEST,)),
    (".github/", ("tests/unit/test_workflows.py",)),
    ("README.md", (DOCS_TEST, "tests/integration/test_readme.py")),
    ("pyproject.toml", ("tests/unit/test_face.py",)),
)


def changed_files(base: str) -> list[str]:
    """Paths that differ between the merge base with `base` and the working tree, new files too."""
    fork = _git("merge-base", "HEAD", base)[0]
    return [
        *_git("diff", "--name-only", fork),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]


def default_base() -> str:
    """The main branch, that of the remote first; without either, the last commit."""
    known = _git("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes")
    return next((name for name in ("origin/main", "main") if name in known), "HEAD")


def tests_of(paths: Iterable[str], root: Path = ROOT) -> list[str]:
    """Test files and folders for the changed `paths`, those inside a listed folder left out."""
    found: set[str] = set()
    for path in paths:
        found.update(_tests_of(path, root))
    there = {name for name in found if (root / name).exists()}
    return sorted(name for name in there if not there & {str(up) for up in Path(name).parents})


def _tests_of(path: str, root: Path) -> Iterable[str]:
    file = Path(path)
    if file.suffix == ".py" and path.startswith("tests/"):
        if file.name.startswith("test_"):
            yield path
        elif file.name == "conftest.py":
            yield str(file.parent)
        else:
            yield from _naming(file.stem, root)
    for prefix, tests in BY_PREFIX:
        if path.startswith(prefix):
            yield from tests
    if file.suffix == ".py" and path.startswith("src/vocabshift/"):
        inside = file.relative_to("src/vocabshift")
        yield str(Path("tests/unit") / inside.parent / f"test_{inside.name}")
        if file.name != "__init__.py":
            yield from _naming(".".join(file.relative_to("src").with_suffix("").parts), root)
        elif inside == Path("__init__.py"):
            yield "tests/unit/test_face.py"
    elif file.suffix == ".py" and path.startswith("tools/"):
        yield f"tests/unit/tools/test_{file.name}"


def _naming(module: str, root: Path) -> Iterable[str]:
    """Quick tests that name the module, as an import or as a target of monkeypatch."""
    package, _, name = module.rpartition(".")
    imported = re.compile(
        rf"\b{re.escape(module)}\b|from {re.escape(package)} import [^\n]*\b{name}\b"
        if package
        else rf"(?:from|import) {re.escape(module)}\b"
    )
    for folder in QUICK:
        for test in sorted((root / folder).rglob("test_*.py")):
            if imported.search(test.read_text(encoding="utf-8")):
                yield str(test.relative_to(root))


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main() -> int:
    """Run pytest on the tests, or list them; its exit status, 0 where there is nothing to run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--base", help="branch that this one left (default: origin/main or main)")
    parser.add_argument("--list", action="store_true", help="name the tests, run none")
    parser.add_argument("flags", nargs="*", help="for pytest, after --")
    args = parser.parse_args()
    base = args.base or default_base()
    tests = tests_of(changed_files(base))
    if args.list or not tests:
        print("\n".join(tests) or f"nothing that has a quick test changed since {base}")
        return 0
    command = [sys.executable, "-m", "pytest", "--import-mode=importlib", *args.flags, *tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
