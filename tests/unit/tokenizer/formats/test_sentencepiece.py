"""SentencePiece models, Unigram and BPE, against SentencePiece itself."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import vocabshift as vs
from vocabshift.errors import InvalidTokenizerError
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.tokenizer.formats.load import open_tokenizer

sentencepiece = pytest.importorskip("sentencepiece")

LINES = [
    "the cat sat on the mat and looked at the other cat",
    "a heater heats the room; 12 rooms are 12 heaters",
    "बिल्ली चटाई पर बैठी और दूसरी बिल्ली को देखती रही",
    "பூனை பாயில் அமர்ந்து மற்றொரு பூனையைப் பார்த்தது",
    "ﬁne ½ cup… naïve café",
]
OTHERS = [
    "the  cat ",
    " mat",
    "\tthe cat",
    "日本 cat",
    "ﬁﬁ ½",
    "e\u0301",
    "<x>cat the<x> mat",
    "a<x>cat the<x> mat",
    "-",
    "the cat\n",
    "cat\u2028",
    "<x> cat <x> mat",
]

SETTINGS = {
    "plain": {},
    "bytes": {"byte_fallback": True},
    "identity": {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
    },
    "stripped": {"normalization_rule_name": "identity"},
    "user": {"user_defined_symbols": ["<x>", "cat"]},
    "kept": {
        "user_defined_symbols": ["<x>"],
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
    },
}


def _model(folder: Path, **settings) -> tuple[Path, sentencepiece.SentencePieceProcessor]:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 20),
        model_writer=written,
        model_type=settings.pop("model_type", "unigram"),
        vocab_size=400,
        hard_vocab_limit=False,
        minloglevel=2,
        **settings,
    )
    path = folder / "tokenizer.model"
    path.write_bytes(written.getvalue())
    return path, sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())


@pytest.mark.parametrize("kind", ["Unigram", "BPE"])
@pytest.mark.parametrize("name", SETTINGS)
def test_ids_are_those_of_sentencepiece(tmp_path: Path, name: str, kind: str) -> None:
    """Normalization, prefix, byte fallback and user-defined pieces are SentencePiece's."""
    path, processor = _model(tmp_path, model_type=kind.lower(), **SETTINGS[name])
    engine = engine_of(path)
    assert kind == engine.kind
    lines = [*LINES, *OTHERS]
    if name == "user":  # nothing is stripped at the ends, nor put in front of such a piece
        lines = [line for line in lines if line == line.strip() and not line.startswith("<x>")]
    if name == "kept" and kind == "BPE":  # no piece, but spaces at both ends
        lines = [line for line in ["  lead", " ", "tail  ", *lines] if "<x>" not in line]
    elif name == "kept":  # the other way round
        lines = [line for line in lines if not line.startswith((" ", "<x>"))]
    ids, offsets = engine.encode_batch(lines)
    found = [ids[offsets[i] : offsets[i + 1]].tolist() for i in range(len(lines))]
    assert [processor.encode(line) for line in lines] == found
    assert processor.get_piece_size() == engine.row_count


def test_losses_are_those_of_sentencepiece(tmp_path: Path) -> None:
    """A line is lost where SentencePiece does not give it back."""
    path, processor = _model(tmp_path)
    results = vs.evaluate(path, {"x": LINES[:4], "y": ["日本 cat"]}, ["loss_rate", "unk_rate"])
    back = [processor.decode(processor.encode(line)) == line for line in LINES[:4]]
    assert all(back)
    assert 0.0 == results.value(results[0].subject, "x", "loss_rate")
    assert 1.0 == results.value(results[0].subject, "y", "loss_rate")
    assert results.value(results[0].subject, "y", "unk_rate") > 0


def test_a_folder_with_a_model_is_read(tmp_path: Path) -> None:
    """The file is found in its folder, and gives the folder its name."""
    _model(tmp_path)
    assert tmp_path.name == open_tokenizer(tmp_path).name


def test_other_types_are_refused(tmp_path: Path) -> None:
    """A model of whole words or characters is no tokenizer that is read."""
    path, _ = _model(tmp_path, model_type="char")
    with pytest.raises(InvalidTokenizerError, match="type Char"):
        open_tokenizer(path)


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    """Cut off, or without an unknown piece."""
    path, _ = _model(tmp_path)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(InvalidTokenizerError):
        open_tokenizer(path)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_spaces_at_the_ends_of_words_are_refused(tmp_path: Path, kind: str) -> None:
    path, _ = _model(tmp_path, model_type=kind, treat_whitespace_as_suffix=True)
    with pytest.raises(InvalidTokenizerError, match="treat_whitespace_as_suffix"):
        open_tokenizer(path)
