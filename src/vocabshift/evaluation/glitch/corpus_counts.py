"""How often a corpus uses each id: what tells a rare token from one that is used and unlearned.

Owns the counting. Knows nothing of models.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader


def count_ids(
    tokenizer: Tokenizer, corpus: Corpus, rows: int, *, threads: int = 1
) -> npt.NDArray[np.int64]:
    """(rows,) tokens of all documents, each once, unweighted; strings of special tokens count as
    such. CorpusError where there is no text."""
    encoder = Encoder(tokenizer)
    total = np.zeros(rows, dtype=np.int64)
    for block in CorpusReader(corpus, (), by_language=True).read(None):
        ids, _ = encoder.encode_documents(block.data, block.starts, block.ends, threads=threads)
        total += np.bincount(ids, minlength=rows)
    return total
