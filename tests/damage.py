"""Damage to files, drawn: what several kinds of tests do to a sound one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

ODD: list[Any] = [None, True, -1, 2**70, 1e308, "", "../../x", "\udcff", [], [[]], {}, {"": []}]


def damage_json(document: Any, data: st.DataObject) -> Any:
    """The same with one value, somewhere in it, replaced by an odd one or left out."""
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                visit(node[key])

    if not isinstance(document, dict | list):
        return data.draw(st.sampled_from(ODD))
    visit(document)
    if not places:
        return None
    node, key = data.draw(st.sampled_from(places))
    if data.draw(st.booleans()):
        node[key] = data.draw(st.sampled_from(ODD))
    else:
        del node[key]
    return document


def damage_bytes(content: bytes, data: st.DataObject) -> bytes:
    """Some bytes replaced, near the start where the structure is, and sometimes the end cut off."""
    out = bytearray(content)
    for _ in range(data.draw(st.integers(0, 3))):
        most = data.draw(st.sampled_from((min(200, len(out)), len(out))))
        out[data.draw(st.integers(0, most - 1))] = data.draw(
            st.sampled_from((0, 9, 10, 34, 65, 91, 123, 127, 128, 255))
        )
    return bytes(out[: data.draw(st.integers(0, len(out)))] if data.draw(st.booleans()) else out)
