"""What users rely on does not change unnoticed: Python names, flags, keys of JSON, files.

`make golden` writes the golden files anew. Read their diff before you commit it: what is new is
growth, what is gone or changed breaks someone (docs/stability.md).
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import public_face
from public_face import Face, in_words, shape

pytestmark = [
    pytest.mark.xdist_group("lm-eval"),  # whose tasks are read once in a worker
    pytest.mark.filterwarnings("ignore:the pilots will not be told apart"),
]

GOLDEN = Path(__file__).with_name("public")
LANGUAGES = ("hi", "en")
NEXT = "If this is meant: make golden, and a line in CHANGELOG.md (docs/stability.md)."


def compare(name: str, face: Face) -> None:
    """Fail with the differences in words, or write the golden file anew."""
    file = GOLDEN / f"{name}.json"
    if os.environ.get("VOCABSHIFT_GOLDEN") == "write":
        public_face.write(file, face)
    difference = in_words(public_face.read(file), face)
    assert not difference, "\n".join([f"The public face ({name}) differs:", *difference, NEXT])


def test_python() -> None:
    pytest.importorskip("torch")
    compare("python", public_face.python_face())


def test_command_line() -> None:
    compare("command-line", public_face.command_line_face())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Face]:
    """The shapes of what the verbs print and write, from one run of each on small inputs."""
    for package in ("torch", "transformers", "gguf", "peft", "pyarrow", "lm_eval"):
        pytest.importorskip(package)
    return Story(tmp_path_factory.mktemp("public")).run()


@pytest.mark.slow
def test_json(made: dict[str, Face]) -> None:
    compare("json", made["json"])


@pytest.mark.slow
def test_files(made: dict[str, Face]) -> None:
    compare("files", made["files"])


class Story:
    """Every verb once, on a tiny model and text of two languages, in one folder."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.json: Face = {}

    def run(self) -> dict[str, Face]:
        before = Path.cwd()
        os.chdir(self.place)
        try:
            self._inputs()
            self._tokenizers()
            self._models()
            self._measurements()
        finally:
            os.chdir(before)
        return {"json": self.json, "files": self._files()}

    def verb(self, command: str, *, called: str = "") -> Any:
        """Run one command with --json; its output's shape is kept under the verb and `called`."""
        from vocabshift.cli.main import main

        words, out = command.split(), io.StringIO()
        with redirect_stdout(out):
            status = main([*words, "--json"])
        assert 0 == status, command
        found = json.loads(out.getvalue())
        self.json[f"vocabshift {words[0]} {called}".strip()] = shape(found, LANGUAGES)
        return found

    def _inputs(self) -> None:
        import small_models

        for name, texts in (("en", small_models.ENGLISH), ("hi", small_models.HINDI)):
            lines = [f"{text}, {number}." for number, text in enumerate(texts * 4)]
            Path(f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        tokenizer = small_models.old_tokenizer()
        model = small_models.build("llama-tied", tokenizer, max_position_embeddings=512)
        small_models.save(model, tokenizer, Path("model"))

    def _tokenizers(self) -> None:
        text = "hi=hi.txt en=en.txt"
        sized = "--vocab-size 300 --transition 0.96"
        self.verb(f"normalize {text} --normalizer fifth-case")
        self.verb(f"count {text} --pattern ist-stage2+o200k -o words")
        self.verb(f"count {text} --runs --counts words --recipe ist {sized} -o runs", called="runs")
        self.verb(f"train --recipe bpe --corpus {text} --vocab-size 300 -o bpe", called="bpe")
        self.verb(f"train --recipe ist --corpus {text} {sized} -o ist", called="ist")
        self.verb(f"plan model --corpus {text} --max-tokens 20 --model model")
        self.verb(f"extend model --corpus {text} --n-tokens 20 -o longer")
        self.verb(f"prune longer --corpus {text} --n-tokens 5 -o shorter")
        until = "--until 90% --by bytes-per-token --held-out hi=hi.txt"
        self.verb(f"prune longer --corpus {text} {until} -o until", called="until")
        self.verb(f"check ist --text {text} --details")
        self.verb(f"encode ist {text} --eos none -o packed", called="numpy")
        self.verb(f"encode ist {text} --eos none --format arrow -o arrow", called="arrow")

    def _models(self) -> None:
        text = "hi=hi.txt en=en.txt"
        self.verb("transfer model longer -o moved")
        self.verb(f"adapt model --corpus {text} --n-tokens 4 --score-bytes 200 -o adapted")
        config = [
            *('model = "moved"', 'data = ["hi=hi.txt", "en=en.txt"]', "batch_size = 2"),
            *("sequence_length = 16", "n_bytes = 400", "learning_rate = 1e-2"),
        ]
        Path("cpt.toml").write_text("\n".join(config), encoding="utf-8")
        self.verb("cpt cpt.toml trained=embeddings out=trained")
        self.verb("cpt cpt.toml trained=lora out=lora", called="lora")
        self.verb("merge lora/adapter -o merged")
        self.verb("language-pack trained --base model -o pack")
        self.verb("language-pack --info pack", called="info")
        self.verb("language-pack --apply pack --base model -o again", called="apply")
        self.verb("convert trained --dtype F32 -o model.gguf", called="to GGUF")
        self.verb("convert model.gguf -o from-gguf", called="from GGUF")
        self.verb(f"teach model {text} --context 32 -o taught")
        small = "--bytes 600 --ways extend --extend-tokens 8 --init fvt --finalists 1"
        small += " --sequence-length 16 --step-bytes 200"
        self.verb(f"decide model --new hi=hi.txt --home en=en.txt {small} -o decision")

    def _measurements(self) -> None:
        text = "hi=hi.txt en=en.txt"
        self.verb(f"evaluate bpe ist --text {text} --output rows.jsonl")
        self.verb(f"compare bpe ist --text {text}")
        self.verb("tables rows.jsonl --shape languages")
        self.verb("card ist --results rows.jsonl -o card.md")
        self.verb(f"score model trained --text {text}")
        self.verb(f"score moved --draft trained --text {text}", called="draft")
        self.verb(f"glitch moved --corpus {text}")
        few = "--n-prompts 1 --prompt-bytes 20 --max-new-tokens 2 --warmup 1 --repeats 1"
        self.verb(f"latency model --text en=en.txt {few} --device cpu")
        self.verb(f"draft-vocab model --corpus {text} --n-tokens 40 -o draft")
        self.verb("harness --list", called="list")
        self._harness()
        self._serve()

    def _harness(self) -> None:
        for split in ("train", "test"):
            file = Path("data/gsm8k") / f"{split}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            row = {"question": "Of 2 cats 1 goes. How many stay?", "answer": "#### 1"}
            file.write_text(f"{json.dumps(row)}\n" * 6, encoding="utf-8")
        self.verb("harness model --tasks gsm8k --data data --limit 1 --shots 0")

    def _serve(self) -> None:
        """The verb serves until Ctrl-C; its object is printed before."""
        from vocabshift.cli.main import build_parser

        args = build_parser().parse_args(["serve", "bpe", "--json"])
        found = args.run(args)
        args.server._socket.close()
        self.json["vocabshift serve"] = shape(found)

    def _files(self) -> Face:
        """Files of ours, by the folder that the verb wrote, and their layouts."""
        face: Face = {}
        for folder in sorted(path for path in self.place.iterdir() if path.is_dir()):
            if folder.name in ("model", "data"):
                continue
            for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                name = f"{folder.name}/{file.relative_to(folder).as_posix()}"
                face[name] = {"is": "a file"} | LAYOUTS.get(file.suffix, lambda _: {})(file)
        return face


# Layouts of these belong to tokenizers, transformers and PEFT.
THEIRS = {"tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"}
THEIRS |= {"adapter_config.json", "special_tokens_map.json"}


def of_json(file: Path) -> dict[str, str]:
    if file.name in THEIRS:
        return {}
    found = json.loads(file.read_bytes())
    if file.name == "vocabshift.json":  # their names are options, and keys of --json, held there
        found |= {"config": {}, "figures": {}}
    return shape(found, LANGUAGES)


def of_lines(file: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return shape(rows, LANGUAGES)


def of_parquet(file: Path) -> dict[str, str]:
    import pyarrow.parquet

    return {field.name: str(field.type) for field in pyarrow.parquet.read_schema(file)}


LAYOUTS: dict[str, Callable[[Path], dict[str, str]]] = {
    ".json": of_json,
    ".jsonl": of_lines,
    ".parquet": of_parquet,
}


def test_a_difference_is_said_in_words() -> None:
    old = {"vs.f": {"a": "parameter 1: int", "b": "by name: str"}, "vs.g": {"x": "is"}}
    new = {"vs.f": {"a": "parameter 1: float", "c": "by name: int = 2"}, "vs.h": {}}
    assert [
        "changed: vs.f: a (was: parameter 1: int; is: parameter 1: float)",
        "gone: vs.f: b (was: by name: str)",
        "new: vs.f: c (by name: int = 2)",
        "gone: vs.g",
        "new: vs.h",
    ] == in_words(old, new)


def test_shapes_of_values() -> None:
    value = {"rows": [{"n": 1, "x": None}, {"n": 1.5}], "by": {"hi": True, "a.txt": False}}
    value["none"] = []
    assert {
        "by.*": "boolean",
        "none": "empty list",
        "rows[].n": "integer or number",
        "rows[].x": "null",
    } == shape(value, LANGUAGES)
