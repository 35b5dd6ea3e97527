"""The shape of the package in figures: files, imports, chains, circles, and what a change touches.

    python tools/house.py
    python tools/house.py --source OTHER/src/vocabshift --json

Reads source text alone, so that it also measures another checkout. `tests/unit/test_layers.py` uses
the same functions. An import counts wherever it stands, inside functions too; what only type
checkers see does not.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "vocabshift"
PACKAGE = "vocabshift"
LOOSE = {"", "__main__", "_core", "errors", "progress", "results"}  # what the top level may hold
CLI_MAY_IMPORT = {"", "cli", "demo", "errors", "progress", "results", "workflows"}
# One of each kind that people add: how files spell it, and which files are its own.
SAMPLES = {
    "metric": (r"\bword_fragmentation_rate\b", ()),
    "initializer": (r"\bfirst[-_]last\b", ()),
    "pattern": (r"\bsuperbpe[-_]stage2\b|\bkSuperBpeStage2\b", ()),
    "trainer": (r"picky|Picky", ("trainers/picky.py", "picky_")),
}


@dataclass(frozen=True)
class Import:
    """One imported name: the module it comes from, and whether it is loaded with the file."""

    module: str
    at_import_time: bool


@dataclass(frozen=True)
class House:
    """The modules of a package by dotted name, and what each imports."""

    files: Mapping[str, Path]
    imports: Mapping[str, tuple[Import, ...]]

    def arrows(self, module: str) -> set[str]:
        """Modules of the package that a module imports."""
        own = {imported.module for imported in self.imports[module]}
        return {name for name in own if name in self.files and name != module}


def read(source: Path) -> House:
    """The package in a folder; ValueError where there is none."""
    if not (source / "__init__.py").is_file():
        raise ValueError(f"{source} is no package: it has no __init__.py")
    files = {
        _dotted(path.relative_to(source)): path
        for path in sorted(source.rglob("*.py"))
        if all(part.isidentifier() for part in path.relative_to(source).with_suffix("").parts)
    }
    return House(files, {name: tuple(_imports(path, files)) for name, path in files.items()})


def room(module: str) -> str:
    """First folder or file below the package; "" for the package itself."""
    return module.split(".")[1] if "." in module else ""


def folder(house: House, module: str) -> str:
    """The package that a module lies in, itself where it is one."""
    is_package = house.files[module].name == "__init__.py"
    return module if is_package else module.rpartition(".")[0]


def circles(house: House) -> list[list[str]]:
    """Chains of imports that come back to where they began, one for each import that closes one."""
    found: list[list[str]] = []
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            found.append([*path[path.index(module) :], module])
        elif module not in done:
            for imported in sorted(house.arrows(module)):
                visit(imported, [*path, module])
            done.add(module)

    for module in house.files:
        visit(module, [])
    return found


def folder_circles(house: House) -> list[tuple[str, str]]:
    """Pairs of folders of one room that import each other."""
    arrows = {
        (folder(house, module), folder(house, imported))
        for module in house.files
        for imported in house.arrows(module)
        if room(module) == room(imported) and folder(house, module) != folder(house, imported)
    }
    return sorted((one, other) for one, other in arrows if one < other and (other, one) in arrows)


def deepest_chains(house: House) -> dict[str, list[str]]:
    """By folder the longest chain of imports that stays in it; what closes a circle is left out."""
    closing = {(circle[-2], circle[-1]) for circle in circles(house)}

    @cache
    def chain(module: str) -> tuple[str, ...]:
        inside = [
            chain(imported)
            for imported in house.arrows(module)
            if (module, imported) not in closing
            and folder(house, imported) == folder(house, module)
            and house.files[imported].name != "__init__.py"
        ]
        return (module, *max(inside, key=len, default=()))

    longest: dict[str, list[str]] = {}
    for module in house.files:
        found = list(chain(module))
        if len(found) > len(longest.get(folder(house, module), [])):
            longest[folder(house, module)] = found
    return longest


def deep_imports(house: House) -> list[tuple[str, str]]:
    """What the command line imports beside the face and the workflows: (module, imported)."""
    return sorted(
        (module, imported.module)
        for module in house.files
        if room(module) in ("cli", "demo")
        for imported in house.imports[module]
        if imported.module.split(".")[0] == PACKAGE and room(imported.module) not in CLI_MAY_IMPORT
    )


def loose(house: House) -> list[str]:
    """Modules at the top level that are no room."""
    return sorted(
        name
        for name, path in house.files.items()
        if name.count(".") == 1 and path.name != "__init__.py" and room(name) not in LOOSE
    )


def figures(source: Path) -> dict[str, object]:
    """Everything that is printed, by name."""
    house = read(source)
    lines = {name: _line_count(path) for name, path in house.files.items()}
    largest = max(lines, key=lambda name: lines[name])
    deepest = max(deepest_chains(house).values(), key=len)
    cli = deep_imports(house)
    return {
        "python_files": len(lines),
        "python_lines": sum(lines.values()),
        "median_file": statistics.median(lines.values()),
        "largest_file": f"{largest} ({lines[largest]})",
        "import_lines": sum(_import_lines(path) for path in house.files.values()),
        "circles": [" -> ".join(circle) for circle in circles(house)],
        "folder_circles": [f"{one} <-> {other}" for one, other in folder_circles(house)],
        "deepest_chain": f"{len(deepest)}: {' -> '.join(deepest)}",
        "loose_modules": len(loose(house)),
        "deep_imports_of_the_cli": len(cli),
        "modules_they_reach": len({imported for _, imported in cli}),
        "any_in_public_signatures": len(any_in_signatures(house)),
        "files_touched": {kind: len(touched(source, *sample)) for kind, sample in SAMPLES.items()},
    }


def any_in_signatures(house: House) -> list[str]:
    """Parameters of the face's functions whose annotation names `Any`, as "function(parameter)"."""
    return [
        f"{name}({argument.arg})"
        for name, function in sorted(_face_functions(house).items())
        for argument in _arguments(function)
        if argument.annotation and "Any" in _names(argument.annotation)
    ]


def touched(source: Path, spelling: str, own: tuple[str, ...]) -> list[Path]:
    """Files of the package and the core that name a thing: what adding another would touch."""
    core = source.parents[1] / "cpp"
    files = [*source.rglob("*.py"), *core.rglob("*.cpp"), *core.rglob("*.h")]
    return [
        path
        for path in sorted(files)
        if not any(mine in path.as_posix() for mine in own)
        and re.search(spelling, path.read_text(encoding="utf-8"))
    ]


def _dotted(path: Path) -> str:
    inside = path.with_suffix("").as_posix().replace("/", ".")
    return f"{PACKAGE}.{inside}".removesuffix(".__init__")


def _imports(path: Path, files: Mapping[str, Path]) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from _imports_below(tree, files, at_import_time=True)


def _imports_below(
    node: ast.AST, files: Mapping[str, Path], *, at_import_time: bool
) -> Iterator[Import]:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        for child in node.orelse:
            yield from _imports_below(child, files, at_import_time=at_import_time)
        return
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, at_import_time)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            full = f"{'.' * node.level}{node.module}.{alias.name}"
            is_module = full in files or full in (f"{PACKAGE}._core", f"{PACKAGE}.__version__")
            yield Import(full if is_module else str(node.module), at_import_time)
    in_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in ast.iter_child_nodes(node):
        yield from _imports_below(child, files, at_import_time=at_import_time and not in_function)


def _line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _import_lines(path: Path) -> int:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def _face_functions(house: House) -> dict[str, ast.FunctionDef]:
    """The functions that the package exports, from the files that define them."""
    face = ast.parse(house.files[PACKAGE].read_text(encoding="utf-8"))
    homes = {
        alias.name: str(node.module)
        for node in ast.walk(face)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}.")
        for alias in node.names
    }
    return {
        node.name: node
        for name, module in homes.items()
        for node in ast.parse(house.files[module].read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    }


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    arguments = function.args
    stars = [star for star in (arguments.vararg, arguments.kwarg) if star]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]


def _names(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def main() -> None:
    """Print the figures as a table or as JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--source", type=Path, default=SOURCE, help="folder of the package")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    try:
        found = figures(options.source.resolve())
    except ValueError as error:
        parser.error(str(error))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        shown = value
        if isinstance(value, dict):
            shown = ", ".join(f"{key} {count}" for key, count in value.items())
        elif isinstance(value, list):
            shown = f"{len(value)}" + "".join(f"\n    {entry}" for entry in value)
        print(f"{name.replace('_', ' ')}: {shown}")


if __name__ == "__main__":
    main()
