"""Amounts of money: read, written, divided."""

from decimal import Decimal


def parse_amount(text):
    """Read an amount such as 12 or 12.50."""
    return float(Decimal(text))


def format_amount(amount):
    """Write an amount with two decimals."""
    return f"{amount:.2f}"


def split_amount(amount, people):
    """Divide an amount among people; return each one's share: they add up, and the first pay a cent more."""
    cents, left = divmod(round(amount * 100), len(people))
    return {person: (cents + (number < left)) / 100 for number, person in enumerate(people)}
