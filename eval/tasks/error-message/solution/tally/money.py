"""Amounts of money: read, written, divided."""

import math
from decimal import Decimal, InvalidOperation


class AmountError(ValueError):
    """A text is not an amount of money."""


def parse_amount(text):
    """Read an amount such as 12 or 12.50."""
    try:
        amount = float(Decimal(text))
    except (InvalidOperation, ValueError):
        amount = math.nan
    if not math.isfinite(amount):
        raise AmountError(f'"{text}" is not an amount: write it as 12 or 12.50')
    return amount


def format_amount(amount):
    """Write an amount with two decimals."""
    return f"{amount:.2f}"


def split_amount(amount, people):
    """Divide an amount among people; return each one's share."""
    share = round(amount / len(people), 2)
    return {person: share for person in people}
