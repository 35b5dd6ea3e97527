"""The registry of initializers: what each needs, what "auto" tries, and a new one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

torch = pytest.importorskip("torch")

import small_models  # noqa: E402
from vocabshift.cli.main import build_parser, main  # noqa: E402
from vocabshift.surgery import methods  # noqa: E402
from vocabshift.surgery.matching import match  # noqa: E402
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.surgery.row_sources import RowSources  # noqa: E402
from vocabshift.surgery.rows import InitContext, new_matrix  # noqa: E402
from vocabshift.tokenizer import token_bytes  # noqa: E402


def _prepare(
    init: str, sources: RowSources, old: Any, new: Any, *, tied: bool = False
) -> InitContext:
    return methods.prepare(methods.InitRequest(init, sources, old, new, tied, TransferOptions()))


def test_head_and_input_differ_for_first_last(make_byte_level) -> None:
    """The old model predicts the first piece and has read the last; a tied matrix does both."""
    old, new = make_byte_level(), make_byte_level("abc")
    mapping = match(old, new, {})
    a, b, c = (old.model.vocab[text] for text in "abc")
    context = _prepare("first-last", mapping, old, new)
    assert ([b, c], [a, a]) == (context.input.pieces.tolist(), context.head.pieces.tolist())
    tied = _prepare("first-last", mapping, old, new, tied=True)
    assert [a, b, a, c] == tied.input.pieces.tolist() == tied.head.pieces.tolist()


def test_byte_lengths_are_those_of_the_old_pieces(make_byte_level) -> None:
    """A letter of three bytes beside one of a single byte: three quarters to one."""
    old, new = make_byte_level("क"), make_byte_level("क", "कa")
    mapping = match(old, new, {})
    context = _prepare("fvt-weighted", mapping, old, new)
    ka = old.model.vocab["à¤ķ"]
    assert 3 == len(token_bytes.token_bytes(old)[ka])
    assert [ka, old.model.vocab["a"]] == context.head.pieces.tolist()
    assert [0.75, 0.25] == context.head.weights.tolist()


@pytest.mark.parametrize(("init", "word"), [("omp", "donor"), ("focus", "corpus")])
def test_what_a_method_needs_must_be_given(init, word) -> None:
    with pytest.raises(ValueError, match=f"init '{init}' needs {word}=.*--{word}"):
        methods.check_init(TransferOptions(init=init))
    methods.check_init(TransferOptions(init=init, **{word: "given"}))


def test_names() -> None:
    """An unknown name lists them all, "auto" last."""
    with pytest.raises(
        ValueError, match=r"'magic'; known are: fvt, retok, fvt-weighted, .*, zeros, auto"
    ):
        methods.check_init(TransferOptions(init="magic"))
    methods.check_init(TransferOptions(init="auto"))


def test_what_auto_tries() -> None:
    """What needs nothing first; the rest where it is given; nothing that is for comparison."""
    plain = ("fvt", "fvt-weighted", "first-last", "mean", "normal")
    assert plain == methods.candidates(TransferOptions())
    assert (*plain, "focus") == methods.candidates(TransferOptions(corpus=["text"]))
    assert (*plain, "omp", "focus") == methods.candidates(
        TransferOptions(corpus=["text"], donor="folder")
    )


@pytest.fixture
def ones() -> Iterator[str]:
    """An initializer that is registered and nothing else: in no list, no choice, no help text."""

    @methods.initializer("ones", "a row of ones", in_auto=True)
    def make_ones(request: methods.InitRequest) -> InitContext:
        def make(old, used, seed):
            return lambda pieces, offsets, weights=None: old.new_ones(
                (len(offsets) - 1, old.shape[1])
            )

        return request.rows(make=make)

    yield "ones"
    del methods.INITIALIZERS["ones"]


def test_an_initializer_is_added_in_one_place(ones, make_byte_level) -> None:
    """Its name is known, "auto" tries it, and rows are made by it."""
    methods.check_init(TransferOptions(init=ones))
    assert ones in methods.candidates(TransferOptions())
    old, new = make_byte_level(), make_byte_level("ab")
    context = _prepare(ones, match(old, new, {}), old, new)
    rows = new_matrix(torch.zeros(256, 3), context.input, context.make, 257, 0)
    assert [1, 1, 1] == rows[256].tolist()
    with pytest.raises(ValueError, match="'ones' is registered already"):
        methods.initializer(ones, "again")(lambda request: request.rows())


def test_the_command_line_knows_it(ones, tmp_path, capsys) -> None:
    """`transfer --init ones` makes its rows, and the help has its line; `adapt` takes it, too."""
    words = ["MODEL", "-o", "OUT", "--corpus", "en=x", "--init", ones]
    assert ones == build_parser().parse_args(["adapt", *words]).init
    assert 0 == main(["transfer", "--help"])
    assert "ones: a row of ones;" in " ".join(capsys.readouterr().out.split())
    old, new = small_models.old_tokenizer(), small_models.new_tokenizer()
    small_models.save(small_models.build("llama", old), old, tmp_path / "model")
    new.save_pretrained(tmp_path / "new")
    command = ["transfer", tmp_path / "model", tmp_path / "new", "-o", tmp_path / "out"]
    assert 0 == main([*map(str, command), "--init", ones, "--json"])
    made = json.loads(capsys.readouterr().out)["n_initialized"]
    rows = load_file(tmp_path / "out" / "model.safetensors")["model.embed_tokens.weight"]
    assert made == int((rows == 1).all(axis=1).sum()) > 0


def test_the_table_in_the_docs_is_the_registry() -> None:
    text = (Path(__file__).parents[3] / "docs" / "transfer.md").read_text(encoding="utf-8")
    rows = [f"| `{each.name}` | {each.summary} |" for each in methods.INITIALIZERS.values()]
    assert "\n".join(rows) in text
