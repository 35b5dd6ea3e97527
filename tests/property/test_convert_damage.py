"""GGUF files that are cut short or have flipped bits: errors of vocabshift, and bounded memory."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("gguf")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import vocabshift as vs  # noqa: E402
from gguf_files import write_gguf  # noqa: E402
from small_models import tiny_tokenizer  # noqa: E402
from vocabshift.tokenizer import pretrained_folder  # noqa: E402

_TIMES = 60  # as much memory as the file has bytes: strings and numbers of Python, blocks of floats
_ALWAYS = 2 << 20


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A Llama of one layer, with a tokenizer of 267 tokens."""
    tokenizer = tiny_tokenizer()
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        vocab_size=tokenizer.row_count,
    )
    torch.manual_seed(1)
    file = tmp_path_factory.mktemp("gguf") / "sound.gguf"
    model = transformers.LlamaForCausalLM(config)
    return write_gguf(file, model, tokenizer, kind="Q8_0").read_bytes()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where to write; AutoTokenizer, which has its own tests, is spared hundreds of folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretrained_folder, "check_auto", lambda *_: None)
        yield tmp_path_factory.mktemp("damaged")


def convert(data: bytes, place: Path) -> str | None:
    """The message of the error; None where the file was converted."""
    file = place / "damaged.gguf"
    file.write_bytes(data)
    tracemalloc.start()
    try:
        vs.convert_gguf(file, place / "out", force=True)
    except ValueError as error:
        return str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < _TIMES * len(data) + _ALWAYS, (peak, len(data))
    return None


def test_a_sound_file_is_converted(sound: bytes, place: Path) -> None:
    assert convert(sound, place) is None


def test_files_cut_short_name_the_byte(sound: bytes, place: Path) -> None:
    """At 200 places, none of them in the padding at the end; nothing is written."""
    rng = random.Random(3)
    last = len(sound) - 32
    for end in [1, 3, 4, last, *(rng.randrange(5, last) for _ in range(200))]:
        (place / "none").mkdir(exist_ok=True)
        message = convert(sound[:end], place / "none")
        assert message is not None and "byte " in message, (end, message)
        assert ["damaged.gguf"] == [path.name for path in (place / "none").iterdir()]


@given(st.data())
def test_flipped_bits_are_refused_or_survived(
    sound: bytes, place: Path, data: st.DataObject
) -> None:
    """One to eight bits, most of them in the header."""
    header = sound.index(b"blk.0.ffn_down.weight") + 1000
    damaged = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 8))):
        end = data.draw(st.sampled_from((64, header, header, len(sound))))
        damaged[data.draw(st.integers(0, end - 1))] ^= 1 << data.draw(st.integers(0, 7))
    message = convert(bytes(damaged), place)
    assert message is None or "\n" not in message
