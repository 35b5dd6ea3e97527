"""What is left to the night: in one share each, and never the only one of its kind."""

from __future__ import annotations

import pytest

from nightly import is_chosen
from vendor_checks import LIKE

NAMES = [f"tests/test_{number}.py::test" for number in range(200)]


def test_none_and_all() -> None:
    assert [] == [name for name in NAMES if is_chosen(name, "")]
    assert NAMES == [name for name in NAMES if is_chosen(name, "all")]


def test_every_name_is_in_one_share() -> None:
    shares = [{name for name in NAMES if is_chosen(name, f"{share}/8")} for share in range(8)]
    assert len(NAMES) == sum(map(len, shares)) == len(set().union(*shares))
    assert all(shares)
    assert shares[0] == {name for name in NAMES if is_chosen(name, "8/8")}


@pytest.mark.parametrize("chosen", ["1", "some", "1/0", "/8", "1/", "-1/8"])
def test_what_is_no_share_is_refused(chosen: str) -> None:
    with pytest.raises(ValueError, match="NIGHTLY is"):
        is_chosen("a", chosen)


def test_a_vendor_is_like_one_that_is_always_run() -> None:
    assert set() == LIKE.keys() & set(LIKE.values())
