"""Make the site of the documentation, and check its links.

    python tools/site.py            (make site)
    python tools/site.py --gather   (pages alone, in build/site/pages)

Documents keep their places, so that a link which is right in the repository is right on the site; a
README becomes the index of its folder. Links to files that are no pages lead to the repository. The
reference of the command line is written from its parsers, that of Python by mkdocstrings from
docstrings. zensical makes the site; it reads mkdocs.yml.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "site"
PAGES, HTML = OUT / "pages", OUT / "html"
DOCUMENTS = ("*.md", "docs/**/*.md", "recipes/**/README.md", "model_cards/**/README.md")
SOURCES = (*DOCUMENTS, "benchmarks/RESULTS.md", "docs/notebooks/*.ipynb")
PICTURES = ("docs/**/*.svg", "recipes/**/*.svg")
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.MULTILINE | re.DOTALL)

CSS = """\
.md-typeset table:not([class]) { font-size: .68rem; }
.md-typeset table:not([class]) th { min-width: 3rem; }
.md-typeset table:not([class]) code { word-break: normal; white-space: nowrap; }
[data-md-color-scheme="slate"] img[src$=".svg"] { background: #fff; border-radius: .2rem; }
"""


def documents(root: Path = ROOT) -> dict[str, Path]:
    """Every document by the path of its page; a README is the index of its folder."""
    found = {path for pattern in SOURCES for path in root.glob(pattern)}
    return {page_of(path.relative_to(root).as_posix()): path for path in sorted(found)}


def page_of(path: str) -> str:
    """The same path, but for README.md, which becomes index.md, and notebooks, which become .md."""
    return re.sub(r"\.ipynb$", ".md", re.sub(r"(^|/)README\.md$", r"\1index.md", path))


def text_of(file: Path) -> str:
    """A document as Markdown: of a notebook its cells, one after another."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".ipynb":
        return text
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"


def rewritten(text: str, folder: Path, pages: Mapping[str, object], home: str) -> str:
    """A document with its links as the site needs them, without what is before its text.

    `folder` is that of the document, and `home` the address of the repository.
    """
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = text.replace("<details>", '<details markdown="1">')  # what is inside is Markdown too

    def link(match: re.Match[str]) -> str:
        target, mark, anchor = match[2].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        at = Path(os.path.normpath(folder / target))
        inside = at.relative_to(ROOT).as_posix()
        page = page_of(f"{inside}/README.md" if at.is_dir() else inside)
        if page in pages:
            here = folder.relative_to(ROOT).as_posix()
            return f"{match[1]}{os.path.relpath(page, here)}{mark}{anchor}{match[3]}"
        if at.suffix in (".svg", ".png"):
            return match[0]
        kind = "tree" if at.is_dir() else "blob"
        return f"{match[1]}{home}/{kind}/main/{inside}{match[3]}"

    parts = _FENCE.split(text)
    return "".join(
        part if number % 2 else _LINK.sub(link, part) for number, part in enumerate(parts)
    )


def gather() -> None:
    """Write all pages anew."""
    shutil.rmtree(OUT, ignore_errors=True)
    [home] = re.findall(
        r" link: (https://github.com/\S+)", (ROOT / "mkdocs.yml").read_text("utf-8")
    )
    found = documents()
    pages = {name: rewritten(text_of(file), file.parent, found, home)
             for name, file in found.items()}  # fmt: skip
    pages["reference/command-line.md"] = command_line()
    pages["reference/python.md"] = python()
    pages["site.css"] = CSS
    for name, text in pages.items():
        (PAGES / name).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / name).write_text(text, encoding="utf-8")
    for picture in (path for pattern in PICTURES for path in ROOT.glob(pattern)):
        copy = PAGES / picture.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, copy)


def command_line() -> str:
    """The reference of the command line, from the parsers."""
    from vocabshift.cli.main import build_parser

    parser = build_parser()
    [verbs] = [action for action in parser._actions if isinstance(action.choices, dict)]
    summaries = {each.dest: each.help or "" for each in verbs._choices_actions}
    lines = [
        "# Command line",
        "",
        "What `vocabshift VERB --help` prints. Exit statuses: 0 success, 2 bad arguments or input,"
        " 1 a fault of ours, 130 Ctrl-C. Every verb takes `--json` and `--traceback` too.",
        "",
        "| verb | what it does |",
        "|---|---|",
        *(f"| [`{verb}`](#{verb}) | {cell(summaries[verb])} |" for verb in verbs.choices),
    ]
    for verb, own in verbs.choices.items():
        lines += ["", f"## {verb} {{ #{verb} }}", "", *verb_lines(own.filled())]
    return "\n".join(lines) + "\n"


def verb_lines(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Description, arguments and examples of one verb."""
    about = getattr(parser, "about", None)
    text = str(about() if about else parser.description)
    head, _, rest = text.partition("\n\n")
    yield from (cell(" ".join(head.split())), "")
    if rest:
        yield from ("```text", rest.rstrip(), "```", "")
    yield from ("| argument | meaning |", "|---|---|")
    for action in parser._actions:
        if {"--help", "--json", "--traceback"} & set(action.option_strings):
            continue
        formatter = parser._get_formatter()
        name = formatter._format_action_invocation(action) if action.option_strings else (
            str(action.metavar or action.dest))  # fmt: skip
        values = re.sub(r"\s+", " ", name).replace("|", "\\|")
        said = formatter._expand_help(action) if action.help else ""
        needed = " (required)" if action.required and action.option_strings else ""
        yield f"| `{values}` | {cell(said)}{needed} |"
    yield from ("", "```sh")
    examples = str(parser.epilog).partition("\n")[2]
    yield from (line.strip() for line in examples.strip().splitlines())
    yield "```"


def cell(text: str) -> str:
    """Text inside a table: what Markdown would read as markup is spelled out."""
    for character in "\\|<*_`[":
        text = text.replace(character, f"&#{ord(character)};")
    return text.replace("\n", " ")


def python() -> str:
    """The reference of Python: each public name with the docstring of the place that defines it."""
    import vocabshift

    lines = [
        "# Python",
        "",
        "All of it is in `vocabshift`, by convention `import vocabshift as vs`; a name loads what"
        " it needs when it is first used.",
    ]
    for name in sorted(vocabshift._FACE, key=lambda name: (name[0].isupper(), name.lower())):
        lines += ["", f"::: {vocabshift._FACE[name]}.{name}"]
        lines += ["    options:", f"      heading: vs.{name}", f"      toc_label: vs.{name}"]
    return "\n".join(lines) + "\n"


class Page(HTMLParser):
    """The links of a page, and the places in it that a link may lead to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids = {""}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect `href`, `src`, `id` and `name`."""
        for name, value in attrs:
            if name in ("href", "src") and value and tag != "link":
                self.links.append(value)
            if name == "id" or (name == "name" and tag == "a"):
                self.ids.add(value or "")


def broken(folder: Path) -> list[str]:
    """Links inside a built site that lead to no file, or to no place in it."""
    pages = {file: Page(file) for file in sorted(folder.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or file.name == "404.html":
                continue
            at = file if not parts.path else (file.parent / unquote(parts.path)).resolve()
            at = at / "index.html" if at.is_dir() else at
            known = pages.get(at)
            if not at.exists() or (known and unquote(parts.fragment) not in known.ids):
                found.append(f"{file.relative_to(folder)}: {link}")
    return found


def main() -> int:
    """Gather, build and check; the exit status is 1 if something is amiss."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--gather", action="store_true", help="write the pages, build nothing")
    options = parser.parse_args()
    gather()
    if options.gather:
        return 0
    program = Path(sys.executable).with_name("zensical")
    built = subprocess.run([program, "build", "--strict", "--clean"], cwd=ROOT, check=False)
    links = broken(HTML) if built.returncode == 0 else []
    print(*(f"broken: {link}" for link in links), sep="\n")
    pages = len(list(HTML.rglob("*.html")))
    print(f"{pages} pages in {HTML.relative_to(ROOT)}, {len(links)} broken links")
    return 1 if built.returncode or links or pages == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
