"""Spelling: the share of letters that a model ranks first."""

from __future__ import annotations

import pytest
import torch

import small_models
from vocabshift.evaluation.glitch.verification import _SPELL, verify
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.token_bytes import texts_of_tokens


def test_spelling_is_the_share_of_letters_ranked_first() -> None:
    """Held against one run for each letter; words of several lengths are filled in one batch."""
    tokenizer = small_models.old_tokenizer()
    torch.manual_seed(4)
    model = small_models.build("llama", tokenizer, max_position_embeddings=4096)
    encoder, texts = Encoder(tokenizer), texts_of_tokens(tokenizer)
    half = tokenizer.model.vocab["Ã"]  # half a character
    ids = [tokenizer.model.vocab[token] for token in ("another", "Ġcat", "Ċ")]
    found = verify(model, tokenizer, [*ids, half])
    assert [None, None] == [row.spelled for row in found.tokens[2:]]
    prompt = encoder.encode(
        _SPELL.text(0, texts[found.placeholder]), add_special_tokens=True
    ).tolist()
    assert 1 == prompt.count(found.placeholder)
    for row in found.tokens[:2]:
        line = [row.token_id if i == found.placeholder else i for i in prompt]
        letters = encoder.encode("".join(f" {x}" for x in texts[row.token_id].strip())).tolist()
        hits = 0
        for letter in letters:
            with torch.no_grad():
                hits += int(model(torch.tensor([line])).logits[0, -1].argmax()) == letter
            line.append(letter)
        assert pytest.approx(hits / len(letters)) == row.spelled


def test_a_model_that_says_the_letter_spells_it() -> None:
    """A head that always prefers the last letter of the word: that letter's share is right."""
    tokenizer = small_models.old_tokenizer()
    model = small_models.build("llama", tokenizer, max_position_embeddings=4096)
    encoder = Encoder(tokenizer)
    wanted = encoder.encode(" c a t").tolist()
    last = wanted[-1]
    with torch.no_grad():
        model.model.norm.weight.zero_()
        head = torch.nn.Linear(model.lm_head.in_features, model.lm_head.out_features)
        head.weight.zero_()
        head.bias.zero_()
        head.bias[last] = 1.0
        model.lm_head = head
    found = verify(model, tokenizer, [tokenizer.model.vocab["Ġcat"]])
    assert wanted.count(last) / len(wanted) == pytest.approx(found.tokens[0].spelled)
