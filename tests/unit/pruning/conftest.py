"""Small tokenizers of the shapes of XLM-R, T5 and BERT, trained on a text of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

ENGLISH = [
    "the cat sat on the mat and the other cat sat on the other mat",
    "another day, another letter: the letter of the day is the letter a",
    "they said that the weather there was rather bad, and the heater was off",
]
HINDI = [
    "बिल्ली चटाई पर बैठी थी और दूसरी बिल्ली दूसरी चटाई पर बैठी थी",
    "एक और दिन, एक और चिट्ठी: आज की चिट्ठी बिल्ली के बारे में है",
]
TEXTS = [*ENGLISH, *HINDI]


def unigram(specials: list[str], unk: str) -> Tokenizer:
    """A Unigram model with special tokens first; pieces: all words, their halves, characters."""
    words = [f"\u2581{word}" for text in TEXTS for word in text.split()]
    halves = [part for word in words for part in (word[: len(word) // 2], word[len(word) // 2 :])]
    longer = [piece for piece in dict.fromkeys([*words, *halves]) if len(piece) > 1]
    characters = sorted({character for word in words for character in word})
    pieces = [(piece, -5.0 - 0.01 * i) for i, piece in enumerate([*longer, *characters])]
    vocab = [*((token, 0.0) for token in specials), *pieces]
    backend = Tokenizer(models.Unigram(vocab, unk_id=specials.index(unk)))
    backend.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.add_special_tokens(specials)
    return backend


def edited(backend: Tokenizer, change: Any) -> Tokenizer:
    """The same with its JSON changed."""
    data = json.loads(backend.to_str())
    change(data)
    return Tokenizer.from_str(json.dumps(data))


def make_xlm_r() -> Tokenizer:
    """Four special tokens first, <mask> last in the vocabulary, a template, segments all 0."""
    backend = unigram(["<s>", "<pad>", "</s>", "<unk>"], "<unk>")

    def change(data: dict[str, Any]) -> None:
        data["model"]["vocab"].append(["<mask>", 0.0])

    backend = edited(backend, change)
    backend.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return backend


def make_t5() -> Tokenizer:
    """<pad>, </s>, <unk> first; the extra ids are added tokens behind the vocabulary."""
    backend = unigram(["<pad>", "</s>", "<unk>"], "<unk>")
    backend.add_special_tokens([f"<extra_id_{i}>" for i in range(3)])
    backend.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return backend


def make_bert() -> Tokenizer:
    """[PAD], unused tokens, [UNK] and the rest; "##" inside words; segments 0 and 1."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    first = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=220, special_tokens=first, show_progress=False)
    backend.train_from_iterator(TEXTS, trainer)

    def change(data: dict[str, Any]) -> None:  # the unused ones are ordinary tokens
        added = data["added_tokens"]
        data["added_tokens"] = [t for t in added if "unused" not in t["content"]]
        vocab = data["model"]["vocab"]
        for token in ("[", *(f"##{character}" for character in "used01]")):  # as BERT has them
            vocab.setdefault(token, len(vocab))

    backend = edited(backend, change)
    backend.post_processor = processors.BertProcessing(("[SEP]", 5), ("[CLS]", 4))
    return backend


MAKERS = {"xlm-r": make_xlm_r, "t5": make_t5, "bert": make_bert}


@pytest.fixture(params=MAKERS)
def plain(request: pytest.FixtureRequest) -> Tokenizer:
    """Each of the three."""
    backend: Tokenizer = MAKERS[request.param]()
    return backend


@pytest.fixture
def xlm_r() -> Tokenizer:
    return make_xlm_r()


@pytest.fixture
def t5() -> Tokenizer:
    return make_t5()


@pytest.fixture
def bert() -> Tokenizer:
    return make_bert()


@pytest.fixture
def word_level(tmp_path: Path) -> Path:
    """A folder with a tokenizer that cannot be pruned."""
    backend = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    folder = tmp_path / "words"
    folder.mkdir()
    backend.save(str(folder / "tokenizer.json"))
    return folder
