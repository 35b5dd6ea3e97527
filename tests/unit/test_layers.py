"""The walls of the house: an import goes strictly downwards, heavy packages stay in their rooms."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import vocabshift

SOURCE = Path(vocabshift.__file__).parent
MODULES = {
    path.relative_to(SOURCE.parent).with_suffix("").as_posix().replace("/", "."): path
    for path in sorted(SOURCE.rglob("*.py"))
}

WORKSHOPS = {"trainers", "extension", "pruning", "surgery", "cpt", "evaluation"}
LAYERS = {
    **dict.fromkeys(("_core", "errors", "results", "provenance"), 0),
    **dict.fromkeys(("output_folder", "checkpoints", "weight_files"), 0),
    **dict.fromkeys(("text", "report"), 1),
    "bpe": 2,
    **dict.fromkeys(WORKSHOPS, 3),
    **dict.fromkeys(
        ("", "planning", "adaptation", "auto_init", "superword_extension"), 4
    ),  # "": the package itself
    "adaptation_card": 4,
    "adaptation_request": 4,
    "playground": 4,
    **dict.fromkeys(("pretraining_config", "pretraining_log"), 4),
    "pretraining_inputs": 5,
    "continued_pretraining": 6,
    "model_adaptation": 5,  # joins what joins the workshops
    **dict.fromkeys(("cli", "demo", "__main__"), 7),
}

# Prefixes of the modules that may import a package; the rest may not, not even inside a function.
ROOMS = {
    "vocabshift._core": (
        *(
            "text.counting",
            "text.count_folder",
            "text.count_reader",
            "text.count_shards",
            "text.patterns",
            "text.lines",
            "text.syllables",
        ),
        *("bpe.encoder", "bpe.pipeline", "bpe.compiled_model", "bpe.reachability"),
        "bpe.model_strings",
        *(
            "bpe.vocabulary_report",
            "bpe.tokenizer_reader",
            "bpe.token_groups",
            "bpe.missing_characters",
        ),
        *("trainers.", "extension.", "pruning.orders"),
    ),
    "torch": (
        *("surgery.", "cpt.", "demo."),
        *("evaluation.causal_model", "evaluation.score", "evaluation.glitch"),
        *("evaluation.latency_local", "evaluation.harness"),
    ),
    "transformers": (
        *("surgery.", "cpt.", "demo.", "bpe.tokenizer_json", "bpe.reload", "report.hub"),
        *("evaluation.causal_model", "evaluation.score", "evaluation.glitch"),
        *("evaluation.latency_local", "evaluation.harness"),
    ),
    "accelerate": ("cpt.", "evaluation.harness"),
    "lm_eval": ("evaluation.harness",),
    "liger_kernel": ("cpt.liger",),
    "scipy": ("evaluation.", "trainers.language_clusters"),
    "rapidfuzz": ("evaluation.drift", "evaluation.robustness"),
    "tiktoken": ("bpe.tiktoken_encoding",),
    "pyarrow": ("text.", "cpt.packed_shards"),
    "datasets": ("text.", "evaluation.harness", "evaluation.tasks."),
    "matplotlib": ("report.curves", "report.figures", "report.fonts"),
    "huggingface_hub": ("report.card", "report.hub", "bpe.load", "surgery.", "evaluation.glitch"),
    "starlette": ("playground.",),
    "uvicorn": ("playground.",),
}
FACE_ALONE = ("cli.", "demo.")  # these know the public face, and what a verb needs beside it


def room(module: str) -> str:
    """First folder or file below the package; "" for the package itself."""
    return module.split(".")[1] if "." in module else ""


def imports(module: str) -> Iterator[tuple[str, bool]]:
    """(imported module, whether at import time) of a file; what only type checkers see is left
    out."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    yield from _imports(tree, at_import_time=True)


def _imports(node: ast.AST, *, at_import_time: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        for child in node.orelse:
            yield from _imports(child, at_import_time=at_import_time)
        return
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, at_import_time
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            is_module = full in MODULES or full == "vocabshift._core" or full == "vocabshift.adapt"
            package = f"{full}.__init__" in MODULES
            is_module = is_module or package or full == "vocabshift.__version__"
            yield (full if is_module else str(node.module)), at_import_time
    in_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, at_import_time=at_import_time and not in_function)


def name_of(module: str) -> str:
    return module.removesuffix(".__init__")


def is_in(module: str, rooms: tuple[str, ...]) -> bool:
    inside = name_of(module).removeprefix("vocabshift.")
    return any(
        inside == place or inside.startswith(place if place.endswith(".") else place + ".")
        for place in rooms
    )


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_strictly_downwards(module: str) -> None:
    own = room(name_of(module))
    assert own in LAYERS, f"{module} stands in no layer: add it to the walls, or move it"
    for imported, _ in imports(module):
        if imported.split(".")[0] != "vocabshift" or own == room(imported):
            continue
        if imported == "vocabshift.__version__":  # a constant of the package, not its face
            continue
        assert room(imported) in LAYERS, f"{module} imports {imported}, which has no layer"
        if own in ("cli", "demo", "__main__") and room(imported) in ("cli", "demo"):
            continue
        assert LAYERS[room(imported)] < LAYERS[own], f"{module} imports {imported}"


@pytest.mark.parametrize("module", MODULES)
def test_heavy_packages_and_the_core_stay_in_their_rooms(module: str) -> None:
    for imported, at_import_time in imports(module):
        for package, rooms in ROOMS.items():
            if imported == package or imported.startswith(package + "."):
                assert is_in(module, rooms), f"{module} imports {package}"
        if not is_in(module, ("surgery.", "cpt.", "evaluation.", "demo.")):
            heavy = imported.split(".")[0] in ("torch", "transformers", "datasets", "pyarrow")
            assert not (heavy and at_import_time), f"{module} imports {imported} at import time"


def test_imports_inside_a_folder_have_no_circle() -> None:
    """Imports inside functions too: they break a circle for the interpreter, not for a reader.

    Only the Tokenizer itself may: its `save_pretrained` and `to_hf` hand over to the files that
    know how.
    """
    arrows = {
        name_of(module): {
            name
            for name, at_import_time in imports(module)
            if name.startswith("vocabshift.")
            and (at_import_time or module != "vocabshift.tokenizer.tokenizer")
        }
        for module in MODULES
    }
    done: set[str] = set()
    circles: list[str] = []

    def visit(module: str, path: tuple[str, ...]) -> None:
        if module in path:
            circles.append(" -> ".join((*path[path.index(module) :], module)))
        elif module not in done:
            for imported in sorted(arrows.get(module, ())):
                visit(imported, (*path, module))
            done.add(module)

    for module in arrows:
        visit(module, ())
    assert [] == circles


def test_only_one_file_knows_the_json() -> None:
    """No workshop reads or writes `tokenizer.json` by itself."""
    for module, path in MODULES.items():
        if room(name_of(module)) in WORKSHOPS:
            text = path.read_text(encoding="utf-8")
            assert '"added_tokens"' not in text, module
            assert '"model"]' not in text, module


def test_no_name_that_says_nothing() -> None:
    words = {"utils", "util", "helpers", "helper", "common", "misc", "legacy"}
    assert [] == [module for module in MODULES if words & set(module.replace("_", ".").split("."))]


def test_every_module_says_what_it_owns() -> None:
    for module, path in MODULES.items():
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        is_empty = not path.read_text(encoding="utf-8").strip()
        assert docstring or is_empty, f"{module} has no docstring"


def test_nothing_outside_is_imported_that_is_no_dependency() -> None:
    known = {
        *("numpy", "tokenizers", "regex", "safetensors", "zstandard", "rich", "sentencepiece"),
        *("google", "gguf", "torch", "transformers", "pyarrow", "datasets", "vocabshift"),
        *("accelerate", "lm_eval", "scipy", "rapidfuzz", "matplotlib"),
        "liger_kernel",
        *("starlette", "uvicorn"),
        "tiktoken",
        "huggingface_hub",  # tokenizers depends on it
    }
    outside = {
        (module, imported.split(".")[0])
        for module in MODULES
        for imported, _ in imports(module)
        if imported.split(".")[0] not in known | set(sys.stdlib_module_names)
    }
    assert set() == outside
