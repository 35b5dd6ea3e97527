"""The floors of the package: an import goes strictly downwards, heavy packages stay where they are.

The floors are written here, not fitted to the files; `tools/house.py` reads the imports and prints
the figures.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import programs
import vocabshift

FLOORS = (
    {"_core", "errors", "progress"},
    {"storage", "results"},
    {"text"},
    {"tokenizer"},
    {"checks", "models", "engines"},
    {"trainers", "extension", "pruning", "surgery", "cpt", "evaluation"},  # no arrow between them
    {"report"},
    {"workflows", "playground"},
    {""},  # the face
    {"cli", "demo"},
    {"__main__"},
)
DEEPEST_CHAIN = 6
LONGEST_FILE = 300
MOST_FILES = 359  # a bound that should only ever sink

# Rooms that may import a package from outside; a room that is not named may not, not even inside a
# function. `_core` counts: who uses the core directly must keep its promises.
MAY_IMPORT = {
    "torch": {"surgery", "models", "cpt", "demo", "evaluation"},
    "transformers": {"surgery", "models", "cpt", "demo", "evaluation", "tokenizer", "checks"},
    "accelerate": {"cpt", "evaluation"},
    "lm_eval": {"evaluation"},
    "liger_kernel": {"models"},
    "peft": {"cpt"},
    "gguf": {"models"},
    "scipy": {"evaluation", "trainers"},
    "icu4py": {"evaluation"},
    "tiktoken": {"tokenizer", "checks"},
    "pyarrow": {"text", "cpt", "engines"},
    "pyspark": {"engines"},
    "py4j": {"engines"},  # of pyspark
    "datatrove": {"engines"},
    "datasets": {"text", "evaluation", "cpt"},
    "matplotlib": {"report"},
    "huggingface_hub": {"storage", "tokenizer", "models", "report"},
    "starlette": {"playground"},
    "uvicorn": {"playground"},
    # What `check --runtimes` compares.
    "kitoken": {"checks"},
    "morpheme": {"checks"},
    "tuetoken": {"checks"},
    "iree": {"checks"},
    "pytorch_tokenizers": {"checks"},
    "onnxruntime_extensions": {"checks"},
    "llama_cpp": {"checks"},
}
# Rooms whose files may load a heavy package with themselves; elsewhere only inside functions.
AT_IMPORT_TIME = {"torch": {"cpt", "surgery", "models", "evaluation"}, "pyarrow": {"cpt"}}
HEAVY = {"torch", "transformers", "datasets", "pyarrow", "pyspark"}


house = programs.load("tools/house.py")
PACKAGE = house.read(Path(str(vocabshift.__file__)).parent)


def floor_of(module: str) -> int:
    """Which floor a module stands on."""
    for number, rooms in enumerate(FLOORS):
        if house.room(module) in rooms:
            return number
    raise AssertionError(f"{module} is in no room: move it into one, or add the room to its floor")


def test_imports_go_strictly_downwards() -> None:
    upwards = [
        f"{module} imports {imported.module}"
        for module, imports in PACKAGE.imports.items()
        for imported in imports
        if imported.module.split(".")[0] == "vocabshift"
        and imported.module != "vocabshift.__version__"  # a constant of the package, not its face
        and house.room(imported.module) != house.room(module)
        and not {house.room(imported.module), house.room(module)} <= {"cli", "demo"}
        and floor_of(imported.module) >= floor_of(module)
    ]
    assert [] == upwards


def test_imports_are_absolute() -> None:
    relative = [
        module
        for module, imports in PACKAGE.imports.items()
        if any(imported.module.startswith(".") for imported in imports)
    ]
    assert [] == relative


def test_the_command_line_and_the_demo_know_the_face_and_the_workflows_alone() -> None:
    assert [] == house.deep_imports(PACKAGE)


def test_there_are_no_circles() -> None:
    """Imports inside functions too: they break a circle for the interpreter, not for a reader."""
    assert [] == house.circles(PACKAGE)
    assert [] == house.folder_circles(PACKAGE)


def test_a_reader_need_not_go_deep() -> None:
    """From any file, at most six files of its folder stand one above the other."""
    too_deep = [
        " -> ".join(chain)
        for chain in house.deepest_chains(PACKAGE).values()
        if len(chain) > DEEPEST_CHAIN
    ]
    assert [] == too_deep


def test_the_top_level_holds_rooms_and_the_face() -> None:
    assert [] == house.loose(PACKAGE)


def test_files_can_be_read_in_one_go() -> None:
    lengths = {
        module: len(path.read_text(encoding="utf-8").splitlines())
        for module, path in PACKAGE.files.items()
    }
    assert {} == {module: length for module, length in lengths.items() if length > LONGEST_FILE}
    assert MOST_FILES >= len(lengths)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_from_outside_stay_in_their_rooms(package: str) -> None:
    elsewhere = [
        module
        for module, imports in PACKAGE.imports.items()
        for imported in imports
        if imported.module.split(".")[0] == package
        and house.room(module) not in MAY_IMPORT[package]
    ]
    assert [] == elsewhere


def test_heavy_packages_are_loaded_when_they_are_used() -> None:
    early = [
        f"{module} imports {imported.module}"
        for module, imports in PACKAGE.imports.items()
        for imported in imports
        if imported.at_import_time
        and (package := imported.module.split(".")[0]) in HEAVY
        and house.room(module) not in AT_IMPORT_TIME.get(package, set())
    ]
    assert [] == early


def test_what_is_imported_is_declared() -> None:
    """`pyproject.toml` names these, or what it names depends on them."""
    declared = {
        *("numpy", "tokenizers", "regex", "safetensors", "zstandard", "rich", "sentencepiece"),
        *("google", "vocabshift", *MAY_IMPORT),
    }
    imported = {
        (module, outside)
        for module, imports in PACKAGE.imports.items()
        for name in imports
        if (outside := name.module.split(".")[0]) not in declared | set(sys.stdlib_module_names)
    }
    assert set() == imported


def test_only_one_room_knows_the_layout_of_a_tokenizer_file() -> None:
    """No workshop reads or writes `tokenizer.json` by itself."""
    workshops = FLOORS[5]
    for module, path in PACKAGE.files.items():
        if house.room(module) in workshops:
            text = path.read_text(encoding="utf-8")
            assert '"added_tokens"' not in text, module
            assert '"model"]' not in text, module


def test_no_name_that_says_nothing() -> None:
    words = {"utils", "util", "helpers", "helper", "common", "misc", "legacy"}
    assert [] == [
        module for module in PACKAGE.files if words & set(module.replace("_", ".").split("."))
    ]


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        module
        for module, path in PACKAGE.files.items()
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert [] == silent


def test_unit_tests_mirror_the_modules() -> None:
    """`tests/unit/ROOM/test_MODULE.py` or `test_MODULE_WHAT.py` tests `ROOM/MODULE.py`."""
    unit = Path(__file__).parent
    rooms = {path.parent.relative_to(house.SOURCE) for path in house.SOURCE.rglob("__init__.py")}
    strays = [
        str(path.relative_to(unit))
        for path in sorted(unit.rglob("test_*.py"))
        if path.parent.relative_to(unit) in rooms - {Path()}
        and not any(
            f"{path.stem.removeprefix('test_')}_".startswith(f"{module.stem}_")
            for module in (house.SOURCE / path.parent.relative_to(unit)).glob("*.py")
        )
    ]
    assert [] == strays


def test_groups_of_tests_stay_together(request: pytest.FixtureRequest) -> None:
    """pytest-xdist sees a group in the id of a test, and 3.8 does not get it into that of 9.2."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("not a worker of --dist loadgroup")
    assert request.node.nodeid.endswith("@test_layers")
