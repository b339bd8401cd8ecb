from hypothesis import given
from hypothesis import strategies as st

from capacity.decision import Stock
from capacity.order import missing, to_create

stocks = st.builds(
    Stock,
    ready=st.integers(-5, 500),
    in_flight=st.integers(0, 500),
    in_use=st.integers(0, 500),
    backorders=st.integers(0, 500),
)


def test_an_empty_buffer_is_ordered_up_to_its_target() -> None:
    assert to_create(5, Stock(ready=0, in_flight=0, in_use=0)) == 5


def test_what_is_in_flight_is_not_ordered_again() -> None:
    assert to_create(5, Stock(ready=1, in_flight=4, in_use=9)) == 0


def test_a_waiting_claims_unit_is_ordered_on_top_of_the_target() -> None:
    assert to_create(5, Stock(ready=0, in_flight=5, in_use=0, backorders=3)) == 3


def test_units_in_use_are_not_part_of_the_buffer() -> None:
    assert to_create(2, Stock(ready=2, in_flight=0, in_use=0)) == to_create(2, Stock(2, 0, in_use=70)) == 0


def test_more_than_wanted_is_a_negative_number_of_missing_ones() -> None:
    assert missing(2, Stock(ready=4, in_flight=1, in_use=0)) == -3
    assert to_create(2, Stock(ready=4, in_flight=1, in_use=0)) == 0


@given(st.integers(0, 500), stocks)
def test_after_the_order_the_position_is_never_below_the_target(target: int, stock: Stock) -> None:
    ordered = to_create(target, stock)
    position = stock.ready + stock.in_flight + ordered - stock.backorders
    assert position >= target
    assert ordered == 0 or position == target


@given(st.integers(0, 500), stocks, st.integers(0, 500))
def test_a_claim_that_takes_a_unit_orders_one(target: int, stock: Stock, claims: int) -> None:
    taken = Stock(stock.ready - claims, stock.in_flight, stock.in_use + claims, stock.backorders)
    assert missing(target, taken) == missing(target, stock) + claims
