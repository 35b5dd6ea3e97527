"""What vs.hf_tokenizer returns is what transformers returns, for any arguments and texts."""

from __future__ import annotations

import copy
import functools
import pickle
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from tokenizers import processors as post

import vocabshift as vs
from real_text import eval_lines
from strategies import examples
from strategies import text as texts
from vendor_checks import vendor_params
from vocabshift.text.corpus import Corpus
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.superword import SuperwordTrainer

DOCUMENTS = [
    "the cat sat on the mat. the cat's mat is on the floor! is the cat on it?\n",
    "राम घर गया। सीता घर आई। राम और सीता घर पर हैं॥ क्या राम घर पर है?",
    "if (a != b) {\n    return a + 1;\n}\n\n    // a comment: a\tb 12345 ३४५६\r\n",
]
SPECIAL = (
    *(AddedToken(text, special=True) for text in ("<s>", "</s>", "<pad>")),
    AddedToken("<|end|>", lstrip=True, special=True),
    AddedToken("[both]", lstrip=True, rstrip=True, special=True),
    AddedToken("sat on", special=False, normalized=False),
)
ROLES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
CHAT = (
    "{% for m in messages %}<|end|>{{ m['role'] }}\n{% if m['role'] == 'assistant' %}"
    "{% generation %}{{ m['content'] }}{% endgeneration %}{% else %}{{ m['content'] }}{% endif %}"
    "{% endfor %}"
)


def trained(trainer: BpeTrainer) -> Tokenizer:
    return trainer.train(Corpus.from_texts(DOCUMENTS)).to_hf().backend_tokenizer


def gpt2() -> Tokenizer:
    """A space before each text; no template, and offsets trimmed."""
    backend = trained(BpeTrainer(vocab_size=420, pre_tokenizer="gpt2"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.post_processor = post.ByteLevel(trim_offsets=True)
    return backend


def llama() -> Tokenizer:
    """SentencePiece's BPE with byte fallback, as Llama-2 has it; segments 0 and 1."""
    backend = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        show_progress=False,
        special_tokens=["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))],
    )
    backend.train_from_iterator(DOCUMENTS, trainer)
    backend.pre_tokenizer = None
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return backend


def metaspace() -> Tokenizer:
    """What only `tokenizers` encodes."""
    backend = llama()
    backend.normalizer, backend.pre_tokenizer = None, pre_tokenizers.Metaspace()
    return backend


def unigram() -> Tokenizer:
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, unk_token="<unk>", show_progress=False)
    backend.train_from_iterator(DOCUMENTS * 3, trainer)
    return backend


MADE: dict[str, tuple[Callable[[], Tokenizer], str]] = {  # and "single | pair" templates
    "bpe": (lambda: trained(BpeTrainer(vocab_size=420)), "<s> $A </s> | <s> $A </s> $B:1 </s>:1"),
    "nfc": (
        lambda: trained(BpeTrainer(vocab_size=420, normalizer="nfc")),
        "$A </s> | $A </s>:1 <s> $B:1",
    ),
    "ist": (
        lambda: trained(SuperwordTrainer(vocab_size=500, transition=0.75)),
        "<s> $A | $B:2 <s> <s>:3 $A:1",
    ),
    "gpt2": (gpt2, ""),
    "llama": (llama, "<s> $A | <s> $A <s>:1 $B:1"),
    "twice": (gpt2, "$A <s> $A | $A $B"),  # a template that is no list of slots
    "metaspace": (metaspace, ""),
    "unigram": (unigram, "$A </s> | $A </s> $B </s>"),
}


@functools.cache
def both(name: str) -> tuple[Any, Any]:
    """transformers' own tokenizer, and ours."""
    make, template = MADE[name]
    backend = make()
    backend.add_special_tokens([token for token in SPECIAL if token.special])
    backend.add_tokens([token for token in SPECIAL if not token.special])
    if template:
        single, pair = template.split(" | ")
        backend.post_processor = post.TemplateProcessing(
            single=single,
            pair=pair,
            special_tokens=[(text, backend.token_to_id(text)) for text in ("<s>", "</s>")],
        )
    plain = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **ROLES)
    plain.chat_template = CHAT
    plain.model_max_length = 40
    if name in ("bpe", "ist"):
        plain.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return plain, vs.hf_tokenizer(plain)


@pytest.fixture(autouse=True, scope="module")
def _short_texts_too() -> Iterator[None]:
    """What a call costs would leave the texts here to `tokenizers`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vocabshift.tokenizer.formats.hf_tokenizer.SHORT", 0)
        yield


def outcome(call: Callable[[], Any], *, deep: bool) -> Any:
    """What a call returns, in values that can be compared; of one that fails, how."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call()
        except BaseException as error:  # tokenizers panics with something that is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            return type(error), str(error)
    return facts(found, deep=deep)


def facts(found: Any, *, deep: bool) -> Any:
    if isinstance(found, transformers.BatchEncoding):
        shown = [(key, facts(value, deep=deep)) for key, value in found.items()]
        encodings = [encoding_facts(e) for e in found.encodings or []] if deep else None
        return "batch", shown, found.is_fast, found.n_sequences, encodings
    if isinstance(found, torch.Tensor):
        return "pt", found.dtype, found.shape, found.tolist()
    if type(found).__module__ == "numpy":
        values = (
            [facts(row, deep=deep) for row in found] if found.dtype == object else found.tolist()
        )
        return "np", str(found.dtype), found.shape, values
    return found


def encoding_facts(encoding: Any, *, inner: bool = False) -> Any:
    names = ("ids", "tokens", "offsets", "word_ids", "sequence_ids", "type_ids")
    masks = ("attention_mask", "special_tokens_mask", "n_sequences")
    shown = [getattr(encoding, name) for name in (*names, *masks)]
    if not inner:
        shown.append([encoding_facts(e, inner=True) for e in encoding.overflowing])
    return shown


def check(name: str, call: Callable[[Any], Any], *, deep: bool) -> None:
    plain, ours = both(name)
    expected = outcome(lambda: call(plain), deep=deep)
    assert expected == outcome(lambda: call(ours), deep=deep), name
    for what in ("truncation", "padding", "encode_special_tokens"):
        assert getattr(plain._tokenizer, what) == getattr(ours._tokenizer, what), (name, what)


familiar = st.builds(
    lambda text, start, length: text[start : start + length],
    st.sampled_from(DOCUMENTS),
    st.integers(0, 60),
    st.integers(1, 60),
)
special = st.sampled_from([str(token) for token in SPECIAL])
one = st.lists(texts | familiar | special, max_size=4).map("".join)
word_list = st.lists(one, max_size=4)
pair = st.tuples(one, one)

inputs = st.one_of(
    one.map(lambda text: {"text": text}),
    st.lists(one, max_size=5).map(lambda batch: {"text": batch}),
    st.lists(one, max_size=4).map(tuple).map(lambda batch: {"text": batch}),
    pair.map(lambda both: {"text": both[0], "text_pair": both[1]}),
    st.lists(pair, max_size=4).map(lambda batch: {"text": batch}),
    st.lists(pair, max_size=4).map(lambda batch: {"text": [list(both) for both in batch]}),
    st.lists(pair, min_size=1, max_size=4).map(
        lambda batch: {"text": [a for a, _ in batch], "text_pair": [b for _, b in batch]}
    ),
    word_list.map(lambda words: {"text": words, "is_split_into_words": True}),
    st.lists(word_list, max_size=4).map(lambda batch: {"text": batch, "is_split_into_words": True}),
    st.lists(st.tuples(word_list, word_list), max_size=3).map(
        lambda batch: {"text": batch, "is_split_into_words": True}
    ),
    st.lists(one | pair, max_size=4).map(lambda batch: {"text": batch}),  # mixed: refused
    st.sampled_from(["a\ud800", ["a", "\udfff b"], [None], ["a", 1], [], [""], "", None]).map(
        lambda text: {"text": text}
    ),
)
flags = st.sampled_from([None, False, True])
lengths = st.none() | st.integers(0, 14)
options = st.fixed_dictionaries(
    {},
    optional={
        "add_special_tokens": st.booleans(),
        "padding": st.sampled_from([False, True, "longest", "max_length", "do_not_pad"]),
        "truncation": st.sampled_from(
            [None, False, True, "longest_first", "only_first", "only_second", "do_not_truncate"]
        ),
        "max_length": lengths,
        "stride": st.integers(0, 5),
        "pad_to_multiple_of": st.sampled_from([None, 1, 4, 7]),
        "padding_side": st.sampled_from([None, "left", "right"]),
        "return_tensors": st.sampled_from([None, "np", "pt"]),
        "return_token_type_ids": flags,
        "return_attention_mask": flags,
        "return_overflowing_tokens": st.booleans(),
        "return_special_tokens_mask": st.booleans(),
        "return_offsets_mapping": st.sampled_from([False, False, True]),
        "return_length": st.booleans(),
        "split_special_tokens": st.booleans(),
        "verbose": st.booleans(),
    },
)


@examples(400)
@given(
    given=inputs,
    options=options,
    deep=st.booleans(),
    left=st.booleans(),
    name=st.sampled_from(list(MADE)),
)
def test_call(
    given: dict[str, Any], options: dict[str, Any], deep: bool, left: bool, name: str
) -> None:
    """Whole BatchEncodings, with what is in their encodings; errors are the same errors."""
    for tokenizer in both(name):
        tokenizer.truncation_side = "left" if left else "right"
    check(name, lambda tokenizer: tokenizer(**given, **options), deep=deep)


@examples(40)
@given(first=one, second=one, words=word_list, name=st.sampled_from(list(MADE)))
def test_other_methods(first: str, second: str, words: list[str], name: str) -> None:
    """What transformers builds on `__call__`: lists of ids, tokens, padding, targets."""
    for call in (
        lambda hf: hf.encode(first, second),
        lambda hf: hf.encode(first, add_special_tokens=False, return_tensors="np"),
        lambda hf: hf.encode(words),
        lambda hf: hf.encode(words, is_split_into_words=True, max_length=6),
        lambda hf: hf.tokenize(first, second, add_special_tokens=True),
        lambda hf: hf.decode(hf.encode(first), skip_special_tokens=True),
        lambda hf: hf.convert_tokens_to_ids(hf.tokenize(first)),
        lambda hf: hf.convert_ids_to_tokens(hf(first)["input_ids"]),
        lambda hf: hf.pad([hf(first), hf(second)], return_tensors="pt"),
        lambda hf: hf(text_target=[first, second], padding=True),
        lambda hf: hf([first], text_target=[second], max_length=9, max_target_length=5),
        lambda hf: hf([first, second]).word_ids(1),
        lambda hf: hf([first, second], padding=True).char_to_token(0, 1),
        lambda hf: hf(first, tokenizer_kwargs={"truncation": True, "max_length": 4}),
        lambda hf: hf.encode_plus(first, second, truncation="only_first", max_length=9),
        lambda hf: hf.batch_encode_plus([first, second], padding="longest"),
        lambda hf: vars(pickle.loads(pickle.dumps(hf([first, second]))))["data"],
        lambda hf: hf.__class__.__name__,
        lambda hf: hf.get_special_tokens_mask(hf.encode(first), already_has_special_tokens=True),
    ):
        check(name, call, deep=True)


@examples(40)
@given(contents=st.lists(one, min_size=1, max_size=3), name=st.sampled_from(list(MADE)))
def test_chat_templates(contents: list[str], name: str) -> None:
    chat = [
        {"role": "assistant" if i % 2 else "user", "content": content}
        for i, content in enumerate(contents)
    ]
    for call in (
        lambda hf: hf.apply_chat_template(chat, tokenize=False),
        lambda hf: hf.apply_chat_template(chat, return_dict=True),
        lambda hf: hf.apply_chat_template(chat, return_dict=True, return_tensors="pt"),
        lambda hf: hf.apply_chat_template(
            [chat, chat[:1]], return_dict=True, padding=True, return_assistant_tokens_mask=True
        ),
        lambda hf: hf.apply_chat_template(
            chat, truncation=True, max_length=9, return_dict=True, return_assistant_tokens_mask=True
        ),
        lambda hf: hf.apply_chat_template(chat, return_dict=True, sanitize_control_tokens=True),
    ):
        check(name, call, deep=True)


def change_post_processor(hf: Any) -> None:
    hf.backend_tokenizer.post_processor = post.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B", special_tokens=[("</s>", hf.eos_token_id)]
    )


CHANGES: dict[str, Callable[[Any], Any]] = {
    "words": lambda hf: hf.add_tokens(["cat sat", "घर"]),
    "a special token": lambda hf: hf.add_special_tokens({"cls_token": "<cls>"}),
    "a token that is there": lambda hf: hf.add_tokens(
        [AddedToken(hf.convert_ids_to_tokens(270), lstrip=True)], special_tokens=True
    ),
    "bos": lambda hf: setattr(hf, "add_bos_token", True),
    "eos": lambda hf: setattr(hf, "add_eos_token", True),
    "template": change_post_processor,
    "split": lambda hf: setattr(hf, "split_special_tokens", True),
    "normalizer": lambda hf: setattr(hf.backend_tokenizer, "normalizer", normalizers.Lowercase()),
    "pre-tokenizer": lambda hf: setattr(
        hf.backend_tokenizer,
        "pre_tokenizer",
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
    ),
    "unknown": lambda hf: setattr(hf.backend_tokenizer.model, "ignore_merges", True),
    "padding token": lambda hf: setattr(hf, "pad_token", "</s>"),
    "padding": lambda hf: setattr(hf, "padding_side", "left"),
    "length": lambda hf: setattr(hf, "model_max_length", 7),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["bpe", "llama"])
def test_a_changed_tokenizer_encodes_as_it_is_now(name: str, change: str) -> None:
    texts = [*DOCUMENTS, "<s>Cat sat on<cls> it </s>", " घर <|end|>"]
    plain, ours = (copy.deepcopy(tokenizer) for tokenizer in both(name))
    kept = ours(texts)
    for hf in (plain, ours):
        assert hf(texts)["input_ids"] == kept["input_ids"]
        CHANGES[change](hf)
    pairs = list(zip(texts, texts, strict=True))
    for call in (
        lambda hf: hf(texts),
        lambda hf: hf(pairs),
        lambda hf: hf(pairs, padding=True, truncation=True, return_tensors="np"),
    ):
        expected = outcome(partial(call, plain), deep=True)
        assert expected == outcome(partial(call, ours), deep=True)


VENDORS = ("llama3", "llama4", "mistral-nemo", "mistral7b-v1", "mistral7b-v3", "qwen25")


@pytest.mark.shared
@pytest.mark.parametrize("path", vendor_params(f"tokenizers-hf/{name}" for name in VENDORS))
def test_vendor_tokenizers(shared_data: Path, path: str) -> None:
    """Lines of real text in many languages, and pairs, chunks and tensors of them."""
    plain = transformers.AutoTokenizer.from_pretrained(shared_data / path)
    ours = vs.hf_tokenizer(plain)
    for hf in (plain, ours):
        hf.pad_token = hf.pad_token or hf.convert_ids_to_tokens(2)
    lines = [line for text in eval_lines(shared_data, 1_000).values() for line in text]
    lines += [f"a{token}  b\n" for token in list(plain.added_tokens_encoder)[:5]]
    pairs = list(zip(lines[:60], lines[60:120], strict=True))
    cut = {"truncation": True, "max_length": 20, "stride": 3}
    for batch, options in (
        (lines, {}),
        (lines, {**cut, "return_overflowing_tokens": True, "return_length": True}),
        (lines[:50], {**cut, "padding": "max_length", "return_tensors": "pt"}),
        (pairs, {**cut, "padding": True, "return_special_tokens_mask": True}),
        ([line.split() for line in lines], {"is_split_into_words": True}),
    ):
        expected = facts(plain(batch, **options), deep=False)
        assert expected == facts(ours(batch, **options), deep=False)
    assert [e.offsets for e in plain(lines[:40]).encodings] == [
        e.offsets for e in ours(lines[:40]).encodings
    ]
