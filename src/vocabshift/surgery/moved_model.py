"""A model in memory, changed as a plan says: rows, ids in its configs, modules that count tokens.

Owns the only place that changes a model for good.
"""

from __future__ import annotations

from typing import Any

from vocabshift.surgery import config_ids, resize
from vocabshift.surgery.matrices import Matrices
from vocabshift.surgery.transfer_plan import Plan


def move(model: Any, matrices: Matrices, plan: Plan) -> None:
    """Give a model in memory its new rows and ids."""
    made = plan.method
    resize.move_rows(
        model,
        matrices,
        made.input,
        made.init,
        plan.report.rows,
        seed=made.seed,
        head_map=made.head,
    )
    _follow(model, matrices, plan)


def _follow(model: Any, matrices: Matrices, plan: Plan) -> None:
    """Let configs and modules of a model in memory follow its new rows."""
    config_ids.apply(model, plan.changes, plan.report.rows)
    has_head = model.get_output_embeddings() is not None
    # Where a wrapper's config has no such key (Mllama), transformers ties nothing.
    if has_head and getattr(model.config, "tie_word_embeddings", False) != matrices.tied:
        model.config.tie_word_embeddings = matrices.tied  # the tensors are right
    _follow_padding(model.get_input_embeddings(), model.config)


def _follow_padding(embeddings: Any, config: Any) -> None:
    """Let the row that gets no gradient be the pad token's, if there was such a row at all."""
    if getattr(embeddings, "padding_idx", None) is not None:
        pad = config.get_text_config().pad_token_id
        embeddings.padding_idx = pad if isinstance(pad, int) and pad >= 0 else None
