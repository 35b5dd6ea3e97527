"""Blocks of documents."""

from __future__ import annotations

import numpy as np

from vocabshift.text.documents import Documents, pack


def test_bytes_between_documents_belong_to_none() -> None:
    """Only what lies within the spans is counted and given back."""
    documents = Documents(memoryview("क\nab".encode()), np.array([0, 4]), np.array([3, 6]))
    assert ["क", "ab"] == list(documents.texts())
    assert (2, 5) == (len(documents), documents.n_bytes)


def test_pack_closes_a_block_when_it_is_full() -> None:
    """Texts are never split, and empty ones go."""
    blocks = list(pack([b"ab", b"", b"cd", b"e"], "here", block_bytes=3))
    assert [["ab", "cd"], ["e"]] == [list(block.texts()) for block in blocks]
    assert {"here"} == {block.source for block in blocks}


def test_pack_of_nothing_is_nothing() -> None:
    """No block without a document."""
    assert [] == list(pack([b"", b""], "here"))
