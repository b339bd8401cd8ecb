from hypothesis import given
from hypothesis import strategies as st

from capacity.decision import Stock
from capacity.order import missing

stocks = st.builds(
    Stock,
    ready=st.integers(-5, 500),
    in_flight=st.integers(0, 500),
    in_use=st.integers(0, 500),
    backorders=st.integers(0, 500),
)


def test_an_empty_buffer_is_ordered_up_to_its_target() -> None:
    assert missing(5, Stock(ready=0, in_flight=0, in_use=0)) == 5


def test_what_is_in_flight_is_not_ordered_again() -> None:
    assert missing(5, Stock(ready=1, in_flight=4, in_use=9)) == 0


def test_a_waiting_claims_unit_is_ordered_on_top_of_the_target() -> None:
    assert missing(5, Stock(ready=0, in_flight=5, in_use=0, backorders=3)) == 3


def test_units_in_use_are_not_part_of_the_buffer() -> None:
    assert missing(2, Stock(ready=2, in_flight=0, in_use=0)) == missing(2, Stock(2, 0, in_use=70)) == 0


def test_more_than_wanted_is_a_negative_number_of_missing_ones() -> None:
    assert missing(2, Stock(ready=4, in_flight=1, in_use=0)) == -3


@given(st.integers(0, 500), stocks)
def test_with_what_is_missing_the_position_is_the_target(target: int, stock: Stock) -> None:
    assert stock.ready + stock.in_flight + missing(target, stock) - stock.backorders == target


@given(st.integers(0, 500), stocks, st.integers(0, 500))
def test_a_claim_that_takes_a_unit_orders_one(target: int, stock: Stock, claims: int) -> None:
    taken = Stock(stock.ready - claims, stock.in_flight, stock.in_use + claims, stock.backorders)
    assert missing(target, taken) == missing(target, stock) + claims
