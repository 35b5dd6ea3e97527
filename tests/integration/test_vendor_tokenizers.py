"""The vendors' own tokenizers: what is loaded, and saved again, encodes as theirs does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from real_text import vendor
from vendor_checks import vendor_params
from vocabshift.tokenizer.formats.gguf import from_metadata
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json

pytestmark = pytest.mark.shared

CONVERTED = {
    "llama3": "llama3/tokenizer.model",
    "llama4": "llama4/tokenizer.model",
    "qwen25": "qwen/qwen.tiktoken",
    "mistral-nemo": "mistral-nemo-tekken/tekken_240718.json",
    "mistral7b-v1": "mistral-v1/tokenizer.model.v1",
    "mistral7b-v3": "mistral-v3/mistral_instruct_tokenizer_240323.model.v3",
}
SENTENCEPIECE = {
    "llama2": "llama2/tokenizer.model",
    **{name: CONVERTED[name] for name in ("mistral7b-v1", "mistral7b-v3")},
}
GGUF_NAMES = {
    "llama3": "llama-bpe",
    "llama4": "llama4",
    "qwen25": "qwen2",
    "mistral-nemo": "tekken",
    **dict.fromkeys(("mistral7b-v1", "mistral7b-v3"), "default"),
}
"""What `tokenizer.ggml.pre` says of each."""
P50K = "p50k_r50k/p50k_base.tiktoken"
HF_FILES = {name: f"{name}/tokenizer.json" for name in ("anthropic-claude2", "deepseek")}
TRICKY = (
    *("", " ", "  lead", "tail   ", "a\n  ", "a \n\n  b  ", "\r\n\r\n x", "12345 678", "\n" * 9),
    *(
        "x\u0301\u0301 \u200d\u00a0\u3000 y",
        "\t\t\tif (a):\n        b\n\n",
        "aaaa" * 30,
        "ſ'ſ K 'K",
    ),
    *(" " * 50 + "x", "don't DON'T I'LL", "。。。！！", "क्षि" * 8, "ﬁ ① Å", "▁a", "\x00\x7f"),
)


@pytest.fixture(scope="module")
def texts(shared_data: Path) -> tuple[str, ...]:
    """The first lines of every evaluation file, and texts that are hard on pre-tokenizers."""
    lines: list[str] = []
    for file in sorted((shared_data / "eval").rglob("*.txt")):
        with file.open(encoding="utf-8") as stream:
            lines += [line.rstrip("\n") for line, _ in zip(stream, range(30), strict=False)]
    assert len(lines) > 1000
    return (*lines, *TRICKY)


def ids(tokenizer: Tokenizer, texts: tuple[str, ...]) -> list[list[int]]:
    encodings = tokenizer.backend.encode_batch(list(texts), add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


@pytest.mark.parametrize("folder", vendor_params(CONVERTED))
def test_raw_vendor_file_equals_the_converted_folder(shared_data: Path, folder: str) -> None:
    raw = vendor(shared_data / "tokenizers" / CONVERTED[folder])
    converted = vendor(shared_data / "tokenizers-hf" / folder)
    assert raw.model.vocab == converted.model.vocab
    assert raw.model.merges == converted.model.merges
    assert raw.model.ignore_merges == converted.model.ignore_merges
    assert raw.model.byte_fallback == converted.model.byte_fallback
    assert raw.normalizer == converted.normalizer
    assert raw.pre_tokenizer == converted.pre_tokenizer
    assert raw.decoder == converted.decoder
    assert raw.post_processor == converted.post_processor
    assert set(raw.added_tokens) == set(converted.added_tokens)
    for role in ("bos_token", "eos_token", "pad_token", "unk_token"):
        assert raw.config.get(role) == converted.config.get(role)


@pytest.mark.parametrize("folder", vendor_params(("cl100k_base", "o200k_base", "p50k_r50k")))
def test_rank_files_encode_as_tiktoken(
    shared_data: Path, texts: tuple[str, ...], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    from tiktoken_ext import openai_public

    from vocabshift.tokenizer.formats.tiktoken import read_ranks

    (file,) = (shared_data / "tokenizers" / folder).glob("*.tiktoken")
    # Its own constructor with its own pattern, but our copy of the file instead of a download.
    monkeypatch.setattr(
        openai_public, "load_tiktoken_bpe", lambda *_, **__: read_ranks(file.read_bytes())
    )
    encoding = tiktoken.Encoding(**getattr(openai_public, file.stem)())
    expected = [encoding.encode(text, allowed_special="all") for text in texts]
    tokenizer = vendor(shared_data / "tokenizers" / folder)
    assert ids(tokenizer, texts) == expected
    assert ids(Tokenizer.from_json(to_json(tokenizer)), texts) == expected
    for token in tokenizer.added_tokens:
        assert encoding.encode(token.content, allowed_special="all") == [token.id]


def test_r50k_is_recognised_inside_p50k(shared_data: Path) -> None:
    from vocabshift.tokenizer.formats import known_ranks
    from vocabshift.tokenizer.formats import tiktoken as ranks

    p50k = ranks.read_ranks((shared_data / "tokenizers" / P50K).read_bytes())
    r50k = {token: rank for token, rank in p50k.items() if rank < 50_256}
    known = known_ranks.recognise(r50k)
    assert known is not None
    assert known.name == "r50k"


@pytest.mark.parametrize("name", vendor_params(SENTENCEPIECE))
def test_sentencepiece_models_encode_as_sentencepiece(
    shared_data: Path, texts: tuple[str, ...], name: str
) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = shared_data / "tokenizers" / SENTENCEPIECE[name]
    processor = sentencepiece.SentencePieceProcessor(str(path))
    # A control token in the text is cut out here, and spelt out there: left out.
    plain = tuple(text for text in texts if "<" not in text and "[" not in text)
    assert ids(vendor(path), plain) == [processor.encode(text) for text in plain]


@pytest.mark.parametrize("name", vendor_params((*HF_FILES, *CONVERTED)))
def test_loaded_and_saved_again_encodes_as_the_original_file(
    shared_data: Path, texts: tuple[str, ...], tmp_path: Path, name: str
) -> None:
    from tokenizers import Tokenizer as Backend

    converted = shared_data / "tokenizers-hf" / name
    path = shared_data / "tokenizers" / HF_FILES[name] if name in HF_FILES else converted
    original = Backend.from_file(str(path if path.is_file() else path / "tokenizer.json"))
    expected = [encoding.ids for encoding in original.encode_batch(list(texts))]
    folder = vendor(path).save_pretrained(tmp_path / "out")
    saved = Backend.from_file(str(folder / "tokenizer.json"))
    assert [encoding.ids for encoding in saved.encode_batch(list(texts))] == expected
    assert saved.get_vocab() == original.get_vocab()
    assert saved.decode_batch(expected) == original.decode_batch(expected)
    merges = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["merges"]
    assert isinstance(merges[0], list)


@pytest.mark.parametrize("name", vendor_params(("gguf-command-r", "gguf-gemma-4")))
def test_gguf_vocabularies_are_the_same_after_saving(
    shared_data: Path, texts: tuple[str, ...], tmp_path: Path, name: str
) -> None:
    tokenizer = vendor(shared_data / "tokenizers" / name)
    folder = tokenizer.save_pretrained(tmp_path / "out")
    again = load_tokenizer(folder)
    expected = ids(tokenizer, texts)
    assert ids(again, texts) == expected
    assert again.model.merges == tokenizer.model.merges
    assert again.chat_template == tokenizer.chat_template
    lossless = "gemma" in name
    for text, text_ids in zip(texts, expected, strict=True):
        decoded = tokenizer.backend.decode(text_ids, skip_special_tokens=False)
        # Command-R composes (NFC); Gemma's "▁" cannot be told from a space.
        if lossless and "▁" not in text:
            assert decoded == text


@pytest.mark.parametrize("name", vendor_params(GGUF_NAMES))
def test_the_name_in_a_gguf_file_means_the_vendors_pre_tokenizer(
    shared_data: Path, texts: tuple[str, ...], name: str
) -> None:
    """A vendor's tokenizer, written as llama.cpp's converter writes it, encodes as before."""
    pytest.importorskip("gguf")
    from gguf_files import vocabulary

    original = vendor(shared_data / "tokenizers-hf" / name)
    keys = vocabulary(original, GGUF_NAMES[name])
    if not original.model.is_byte_level:
        keys["tokenizer.ggml.remove_extra_whitespaces"] = False
    read = from_metadata(keys)
    assert ids(read, texts) == ids(original, texts)
    with_special = [read.backend.encode(text).ids for text in texts[:20]]
    assert with_special == [original.backend.encode(text).ids for text in texts[:20]]


@pytest.mark.parametrize("name", vendor_params(["gguf-command-r"]))
def test_command_r_has_its_published_sizes(shared_data: Path, name: str) -> None:
    command_r = vendor(shared_data / "tokenizers" / name)
    assert (command_r.row_count, len(command_r.model.merges)) == (256_000, 253_333)


@pytest.mark.parametrize("name", vendor_params(["gguf-gemma-4"]))
def test_gemma_has_its_published_sizes(shared_data: Path, name: str) -> None:
    gemma = vendor(shared_data / "tokenizers" / name)
    assert (gemma.row_count, len(gemma.model.merges)) == (262_144, 514_906)
    assert gemma.config["bos_token"] == "<bos>"
    tokens = gemma.backend.encode("Hello  world\n\n").tokens
    assert tokens == ["<bos>", "Hello", "▁▁", "world", "\n\n"]
