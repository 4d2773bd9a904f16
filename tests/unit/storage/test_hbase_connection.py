"""What an answer is checked for, apart from any connection."""

import pytest

from storage.hbase.connection import check_rows
from storage.hbase.thrift_client import MixedUp, check_number


@pytest.mark.parametrize("answered", [("checkAndPut", 8), ("mutateRows", 7), ("checkAndPut", -7), ("", 7)], ids=str)
def test_an_answer_has_the_number_and_the_name_of_its_question(answered: tuple[str, int]) -> None:
    """Both, or it is refused."""
    check_number(("checkAndPut", 7), ("checkAndPut", 7))
    with pytest.raises(MixedUp, match="instead of that to"):
        check_number(("checkAndPut", 7), answered)


def test_rows_that_were_not_asked_for_are_refused() -> None:
    """One among many is enough; a row that holds nothing does not come back, and that is fine."""
    check_rows([b"a", b"b", b"c"], iter([b"c", b"a"]))
    check_rows([], iter([]))
    with pytest.raises(MixedUp, match="the row 64, which was not requested"):
        check_rows([b"a", b"b"], iter([b"a", b"d", b"e"]))
