"""FOCUS: sparsemax, the space from text, and which kept tokens a new one is made of."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from vocabshift.errors import CorpusError  # noqa: E402
from vocabshift.surgery import focus  # noqa: E402
from vocabshift.surgery.matching import match  # noqa: E402
from vocabshift.surgery.methods import InitRequest, prepare  # noqa: E402
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.text.corpus import Corpus  # noqa: E402

REFERENCE = runpy.run_path(str(Path(__file__).parents[2] / "reference" / "initializers.py"))

SCORES = st.lists(st.floats(-1, 1), min_size=1, max_size=12)


@given(SCORES, st.sampled_from([1, 3, 128]))
def test_sparsemax_equals_the_definition(scores, few) -> None:
    """Weights of 0 and more that add up to 1, however few scores are sorted at first."""
    with patch.object(focus, "_FEW", few):
        found = focus.sparsemax(torch.tensor([scores, scores[::-1]], dtype=torch.float64))
    np.testing.assert_allclose(found[0], REFERENCE["sparsemax"](scores), atol=1e-12)
    np.testing.assert_allclose(found[1], REFERENCE["sparsemax"](scores[::-1]), atol=1e-12)
    assert 1 == pytest.approx(float(found[0].sum()))


@given(
    st.lists(st.text("ab c", min_size=1, max_size=12), min_size=1, max_size=6), st.integers(1, 4)
)
def test_neighbours_and_ppmi_equal_the_definition(texts, window) -> None:
    """Counted inside documents only, in whatever portions."""
    tokenizer = _bytes()
    keys, counts = focus.neighbour_counts(tokenizer, Corpus.from_texts(texts), window=window)
    ids = [tokenizer.backend.encode(text).ids for text in texts]
    expected = REFERENCE["neighbours"](ids, window)
    found = {(int(k) // 256, int(k) % 256): int(c) for k, c in zip(keys, counts, strict=True)}
    assert Counter(found) == expected
    rows, columns, values = focus.ppmi(keys, counts, 256)
    matrix = np.zeros((256, 256))
    matrix[rows, columns] = values
    np.testing.assert_allclose(REFERENCE["ppmi"](expected, 256), matrix, atol=1e-12)


def _bytes():
    from vocabshift.tokenizer import byte_level
    from vocabshift.tokenizer.model import BpeModel
    from vocabshift.tokenizer.tokenizer import Tokenizer

    spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    spec["use_regex"] = False
    vocab = {token: token_id for token_id, token in enumerate(byte_level.ALPHABET)}
    return Tokenizer(BpeModel(vocab, ()), pre_tokenizer=spec, decoder=spec)


TEXTS = ["the cat eats fish", "the dog eats fish", "a cat sleeps", "a dog sleeps", "one two three"]


def test_vectors_are_those_of_the_whole_decomposition(make_byte_level) -> None:
    """Inner products equal those of the exact eigendecomposition; a token not seen has zeros."""
    tokenizer, corpus = make_byte_level("the", "cat"), Corpus.from_texts(TEXTS * 3)
    vectors = focus.auxiliary_vectors(tokenizer, corpus, dimensions=6)
    again = focus.auxiliary_vectors(tokenizer, corpus, dimensions=6)
    assert torch.equal(vectors, again)
    keys, counts = focus.neighbour_counts(tokenizer, corpus, window=5)
    size = tokenizer.row_count
    rows, columns, values = focus.ppmi(keys, counts, size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = values
    found, eigenvectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(found))[:6]
    exact = eigenvectors[:, order] * np.sqrt(np.abs(found[order]))
    np.testing.assert_allclose(exact @ exact.T, (vectors @ vectors.T).numpy(), atol=2e-3)
    assert 0 == float(vectors[tokenizer.model.vocab["z"]].norm())


def test_a_new_token_is_made_of_what_is_like_it(make_byte_level) -> None:
    """Weights add up to 1, fall on kept tokens, and most on the one of the same neighbours."""
    old, new = make_byte_level("dog"), make_byte_level("dog", "cat", "zz")
    mapping = match(old, new, {})
    corpus = Corpus.from_texts([text.replace("dog", x) for text in TEXTS for x in ("cat", "dog")])
    options = TransferOptions(corpus=corpus)
    context = prepare(InitRequest("focus", mapping, old, new, False, options))
    made, weights = context.input, context.input.weights
    place = mapping.made.tolist().index(new.model.vocab["cat"])
    own = slice(made.offsets[place], made.offsets[place + 1])
    assert 1 == pytest.approx(weights[own].sum(), abs=1e-5)
    assert old.model.vocab["dog"] == made.pieces[own][weights[own].argmax()]
    place = mapping.made.tolist().index(new.model.vocab["zz"])  # in no text
    own = slice(made.offsets[place], made.offsets[place + 1])
    z = old.model.vocab["z"]
    assert ([z, z], [0.5, 0.5]) == (made.pieces[own].tolist(), weights[own].tolist())


def test_text_without_a_shared_token_is_refused(make_byte_level) -> None:
    old, new = make_byte_level(), make_byte_level("ab")
    mapping = match(old, new, {})
    options = TransferOptions(corpus=Corpus.from_texts(["abababab"] * 4))
    with pytest.raises(CorpusError, match="none of the tokens"):
        prepare(InitRequest("focus", mapping, old, new, False, options))
