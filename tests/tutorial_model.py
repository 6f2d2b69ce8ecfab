"""The model that the real claude asks in docs/tutorial.md: it works on the three requests that a reader writes there."""

from __future__ import annotations

from e2e.model_turns import Answer, Asked, Edit, Read, Reply, Write, done, plan, verdict

QUESTION = "Is the discount taken off each price, or off the total?"
CHOICES = ("Each price, rounded", "The total, rounded once")
RATE = "DISCOUNT = 10  # percent, for members\n\n\n"
MEMBERS = """    amount = sum(prices)
    if member:
        amount -= round(amount * DISCOUNT / 100)
    return amount
"""
DISCOUNT_TEST = """import unittest

import shop


class DiscountTest(unittest.TestCase):
    def test_members_pay_ten_percent_less(self):
        self.assertEqual(shop.total([1999, 500], member=True), 2249)
        self.assertEqual(shop.total([1999, 500]), 2499)
"""
SHOW = '''

def shown(cents):
    """Return an amount as it is printed."""
    return f"{cents // 100}.{cents % 100:02}"
'''
SHOW_TEST = """import unittest

import shop


class ShownTest(unittest.TestCase):
    def test_cents_are_shown_as_an_amount(self):
        self.assertEqual(shop.shown(2249), "22.49")
        self.assertEqual(shop.shown(5), "0.05")
"""
RECEIPT = '''

def receipt(prices, member=False):
    """Return a receipt: a line for each price, and the total."""
    lines = [shown(price) for price in prices]
    return "\\n".join([*lines, f"Total {shown(total(prices, member))}"])
'''
RECEIPT_TEST = """import unittest

import shop


class ReceiptTest(unittest.TestCase):
    def test_a_receipt_ends_with_the_total(self):
        self.assertEqual(shop.receipt([1999, 500], member=True), "19.99\\n5.00\\nTotal 22.49")
"""


def step(step_id: str, title: str, instructions: str) -> dict[str, str]:
    return {"id": step_id, "title": title, "instructions": instructions}


def planned(*steps: dict[str, str]) -> Answer:
    return Answer({"steps": [{**plan().value["steps"][0], **each} for each in steps]})


PLANS = {
    "Give members a discount": planned(
        step("S01", "Take the discount off", "Give total() an argument `member`, with a test.")
    ),
    "Print amounts as 12.34": planned(step("S01", "Write shown()", "Turn cents into an amount, with a test.")),
    "Print a receipt": planned(step("S01", "Write receipt()", "A line for each price and the total, with a test.")),
}
WORK: dict[str, tuple[Reply, ...]] = {
    "Give members a discount": (
        Read("shop.py"),
        Edit("shop.py", "def total(prices):", f"{RATE}def total(prices, member=False):"),
        Edit("shop.py", "    return sum(prices)\n", MEMBERS),
        Write("tests/test_discount.py", DISCOUNT_TEST),
        done("Members pay 10 % less, taken off the total and rounded once"),
    ),
    "Print amounts as 12.34": (
        Read("shop.py"),
        Edit("shop.py", "    return amount\n", f"    return amount\n{SHOW}"),
        Write("tests/test_shown.py", SHOW_TEST),
        done("shown() turns cents into an amount"),
    ),
    "Print a receipt": (
        Read("shop.py"),
        Edit("shop.py", '{cents % 100:02}"\n', f'{{cents % 100:02}}"\n{RECEIPT}'),
        Write("tests/test_receipt.py", RECEIPT_TEST),
        done("receipt() lists the prices and the total"),
    ),
}


def answer(asked: Asked) -> Reply:
    """Play the role that is asked for, for the request that it is about."""
    first, *_ = PLANS
    title = next((title for title in PLANS if title in asked.prompt), first)  # a session that goes on is not told again
    if asked.role == "planner":
        return PLANS[title]
    if asked.role == "qa":
        return verdict()
    if title == "Give members a discount" and CHOICES[1] not in asked.prompt:
        return Answer({"status": "needs_input", "question": QUESTION, "choices": list(CHOICES)})
    turns = WORK[title]
    return turns[min(len(asked.results), len(turns) - 1)]
