"""What agents use, and the ceilings on it (AGT-4, AUT-3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.agents.ceilings import Budget, Ceiling, Ceilings, left, reached, tighter
from aiflow.domain.agents.usage import Usage

amounts = st.integers(0, 10**9)
usages = st.builds(Usage, amounts, amounts, amounts, amounts, st.floats(0, 1e6), st.floats(0, 1e6))


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    ("which", "limit", "before", "at"),
    [
        (Ceiling.COST, Ceilings(cost_usd=0.5), Usage(cost_usd=0.49), Usage(cost_usd=0.5)),
        (Ceiling.TOKENS, Ceilings(tokens=100), Usage(input_tokens=60, output_tokens=39), Usage(output_tokens=100)),
        (Ceiling.CALLS, Ceilings(agent_calls=3), Usage(calls=2), Usage(calls=3)),
        (Ceiling.TIME, Ceilings(minutes=2), Usage(seconds=119.9), Usage(seconds=120)),
    ],
)
def test_each_ceiling_holds_by_itself_exactly_where_it_is(
    which: Ceiling, limit: Ceilings, before: Usage, at: Usage
) -> None:
    assert reached(before, limit) is None
    assert reached(at, limit) is which
    assert reached(at, Ceilings()) is None


@pytest.mark.spec("AGT-4")
@given(usages)
def test_without_ceilings_nothing_is_ever_reached_and_everything_is_left(usage: Usage) -> None:
    assert reached(usage, Ceilings()) is None
    assert left(usage, Ceilings()) == Budget()


@pytest.mark.spec("AGT-4")
@given(usages, st.builds(Ceilings, st.floats(0, 1e6), amounts, amounts, st.floats(0, 1e6)))
def test_what_is_left_is_nothing_exactly_where_a_ceiling_is_reached(usage: Usage, ceilings: Ceilings) -> None:
    budget = left(usage, ceilings)
    known = [value for value in (budget.cost_usd, budget.tokens, budget.seconds) if value is not None]
    assert all(value >= 0 for value in known)
    if ceilings.tokens:
        assert (budget.tokens == 0) is (usage.tokens >= ceilings.tokens)


@pytest.mark.spec("AGT-4")
def test_of_two_budgets_the_smaller_of_each_counts() -> None:
    assert tighter(Budget(1.0, None, 60), Budget(2.0, 5, None)) == Budget(1.0, 5, 60)
    assert tighter(Budget(), Budget()) == Budget()


@pytest.mark.spec("AGT-4")
@given(usages, usages)
def test_use_adds_up(one: Usage, other: Usage) -> None:
    both = one + other
    assert both.tokens == one.tokens + other.tokens
    assert both.calls == one.calls + other.calls
    assert both.cost_usd == pytest.approx(one.cost_usd + other.cost_usd, abs=1e-5)
    assert one + Usage() == Usage() + one
