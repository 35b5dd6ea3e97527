"""What the documents and comments of the repository name is there.

A reader follows links, paths and citations; each must lead somewhere inside the repository. Inputs
beside it (`../shared/data`, `../shared/cases`) may be named, and nothing else outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "src", "tests", "recipes", "benchmarks", "cpp", "model_cards", "tools", "skills")
CODE = (".py", ".h", ".cpp", ".sh", ".toml")

WRITTEN = {"adapt.md", "card.md", "decision.md", "index.md", "report.md"}
"""Documents that our programs write, by the names that documentation gives them."""

_SPOKEN = re.compile(r'"""[\s\S]*?"""|#[^\n]*')
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
_PATH = re.compile(rf"(?<![\w./{{-])(?:{'|'.join(FOLDERS)})/[\w./*{{,}}-]+")
_STANDS_FOR = re.compile(r"(?<![A-Z])[A-Z]{4,}(?![A-Z]|\.md)")
_MODULE = re.compile(r"(?<![\w./{*-])\w+/[\w/]+\.(?:py|h|cpp)\b")
_DOCUMENT = re.compile(r"(?<![\w/.-])[\w-]+\.md\b")
_OUTSIDE = re.compile(r"(?:\.\./)+shared[\w./-]*")
_MAY_BE_NAMED = re.compile(r"(?:\.\./)+shared(?:/(?:data|data-unpacked|cases)(?:[./].*)?)?\.?")


@cache
def texts() -> dict[str, str]:
    """Every document and source file by its path in the repository."""
    files = chain(ROOT.glob("*.md"), *((ROOT / folder).rglob("*") for folder in FOLDERS))
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in files
        if path.suffix in (".md", *CODE) and path.is_file()
    }


def documents() -> dict[str, str]:
    """The documents alone."""
    return {name: text for name, text in texts().items() if name.endswith(".md")}


def spoken(name: str, text: str) -> str:
    """What a source file says to a reader: comments and docstrings; of a document all of it."""
    return "\n".join(_SPOKEN.findall(text)) if name.endswith(".py") else text


def each_of(path: str) -> Iterator[str]:
    """`a/b.{h,cpp}` names two files; the end of a sentence is no part of a path."""
    path = path.rstrip(".,*/-")
    braces = re.fullmatch(r"([^{]*)\{([^{}]*,[^{}]*)\}([^{}]*)", path)
    if braces:
        yield from (braces[1] + one + braces[3] for one in braces[2].split(","))
    else:
        yield re.split(r"[{},]", path)[0].rstrip("./")


def is_there(path: str, *folders: Path) -> bool:
    """Whether a path, perhaps with stars, names something in one of the folders."""
    return any(next(folder.glob(path), None) is not None for folder in (ROOT, *folders))


def test_links_lead_to_files() -> None:
    broken = [
        (name, link)
        for name, text in documents().items()
        for link in _LINK.findall(text)
        if "://" not in link and not ((ROOT / name).parent / link).exists()
    ]
    assert [] == broken


def test_paths_that_are_named_exist() -> None:
    """In documents, comments and docstrings; words in capitals stand for something else."""
    named = {
        (name, path)
        for name, text in texts().items()
        for found in _PATH.findall(spoken(name, text))
        for path in each_of(found)
    }
    assert len(named) > 100
    missing = [
        (name, path)
        for name, path in sorted(named)
        if not is_there(path) and not _STANDS_FOR.search(path)
    ]
    assert [] == missing


def test_modules_that_documents_name_exist() -> None:
    """A path may begin at the root, in the package, in the core or beside the document."""
    missing = [
        (name, path)
        for name, text in documents().items()
        for path in _MODULE.findall(text)
        if not is_there(path, ROOT / "src" / "vocabshift", ROOT / "cpp", (ROOT / name).parent)
    ]
    assert [] == missing


def test_documents_that_are_cited_exist() -> None:
    """Recipes name the tables that they write, so only what they link is looked at (above)."""
    there = {Path(name).name for name in documents()} | WRITTEN
    missing = [
        (name, cited)
        for name, text in texts().items()
        if ".md" in text and not name.startswith(("recipes/", "model_cards/"))
        for cited in _DOCUMENT.findall(spoken(name, text))
        if cited not in there
    ]
    assert [] == missing


def test_nothing_else_outside_the_repository_is_named() -> None:
    named = [
        (name, path)
        for name, text in texts().items()
        for path in _OUTSIDE.findall(text)
        if not _MAY_BE_NAMED.fullmatch(path)
    ]
    assert [] == named
