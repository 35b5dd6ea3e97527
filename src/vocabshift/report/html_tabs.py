"""Tabs: several panels of which one is seen at a time; all of them where no script runs.

Owns the markup that `page.js` brings to life (ARIA's tabs pattern: arrow keys, Home and End).
Knows nothing of what the panels show.
"""

from __future__ import annotations

from collections.abc import Sequence

from vocabshift.report.token_html import visible_html


def tabs(group: str, label: str, panels: Sequence[tuple[str, str]]) -> str:
    """`panels` are (name, HTML); `group` is unique on the page, `label` says what is chosen."""
    buttons = "".join(
        f'<button type="button" role="tab" id="{group}-tab-{i}" aria-controls="{group}-{i}" '
        f'aria-selected="{"true" if i == 0 else "false"}">{visible_html(name)}</button>'
        for i, (name, _) in enumerate(panels)
    )
    bodies = "\n".join(
        f'<div class="panel" role="tabpanel" id="{group}-{i}" aria-labelledby="{group}-tab-{i}">'
        f"{body}</div>"
        for i, (_, body) in enumerate(panels)
    )
    return (
        f'<div class="tabs"><div class="strip" role="tablist" aria-label="{label}">{buttons}</div>'
        f"\n{bodies}</div>"
    )
