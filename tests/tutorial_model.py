"""The model that the real claude asks in both tutorials: it works on the three requests that a reader writes there."""

from __future__ import annotations

from e2e.model_turns import Answer, Asked, Edit, Read, Reply, Write, done, plan, verdict

QUESTION = "Is the discount taken off each price, or off the total?"
CHOICES = ("Each price, rounded", "The total, rounded once")
QUESTION_JA = "割引は、商品ごとの金額から引きますか、合計から引きますか。"
CHOICES_JA = ("商品ごとに引き、端数を切り捨てる", "合計から引き、端数を1回だけ切り捨てる")
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
RATE_JA = "DISCOUNT = 10  # 会員の割引（％）\n\n\n"
MEMBERS_JA = """    amount = sum(prices)
    if member:
        amount -= amount * DISCOUNT // 100
    return amount
"""
DISCOUNT_TEST_JA = DISCOUNT_TEST.replace("1999", "1980").replace("2249", "2232").replace("2499", "2480")
SHOW_JA = '''

def shown(amount):
    """金額を表示する形にして返す。"""
    return f"{amount:,}円"
'''
SHOW_TEST_JA = """import unittest

import shop


class ShownTest(unittest.TestCase):
    def test_an_amount_is_shown_in_yen(self):
        self.assertEqual(shop.shown(2232), "2,232円")
        self.assertEqual(shop.shown(5), "5円")
"""
RECEIPT_JA = '''

def receipt(prices, member=False):
    """領収書を返す。1行に1つの金額と、最後に合計。"""
    lines = [shown(price) for price in prices]
    return "\\n".join([*lines, f"合計 {shown(total(prices, member))}"])
'''
RECEIPT_TEST_JA = """import unittest

import shop


class ReceiptTest(unittest.TestCase):
    def test_a_receipt_ends_with_the_total(self):
        self.assertEqual(shop.receipt([1980, 500], member=True), "1,980円\\n500円\\n合計 2,232円")
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
    "会員割引を付ける": planned(step("S01", "割引を引く", "total() に引数 `member` を加え、テストも書く。")),
    "金額を円で表示する": planned(step("S01", "shown() を書く", "金額を表示する形にする。テストも書く。")),
    "領収書を出力する": planned(step("S01", "receipt() を書く", "金額を1行に1つと、最後に合計。テストも書く。")),
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
    "会員割引を付ける": (
        Read("shop.py"),
        Edit("shop.py", "def total(prices):", f"{RATE_JA}def total(prices, member=False):"),
        Edit("shop.py", "    return sum(prices)\n", MEMBERS_JA),
        Write("tests/test_discount.py", DISCOUNT_TEST_JA),
        done("会員は合計から10％引き、端数は1回だけ切り捨て"),
    ),
    "金額を円で表示する": (
        Read("shop.py"),
        Edit("shop.py", "    return amount\n", f"    return amount\n{SHOW_JA}"),
        Write("tests/test_shown.py", SHOW_TEST_JA),
        done("shown() が金額を円で返す"),
    ),
    "領収書を出力する": (
        Read("shop.py"),
        Edit("shop.py", '{amount:,}円"\n', f'{{amount:,}}円"\n{RECEIPT_JA}'),
        Write("tests/test_receipt.py", RECEIPT_TEST_JA),
        done("receipt() が金額と合計を並べる"),
    ),
}
ASKS = {"Give members a discount": (QUESTION, CHOICES), "会員割引を付ける": (QUESTION_JA, CHOICES_JA)}


def answer(asked: Asked) -> Reply:
    """Play the role that is asked for, for the request that it is about."""
    said = asked.prompt
    # A session that goes on is told only the answer, not the request again.
    first = next((title for title, (_, choices) in ASKS.items() if choices[1] in said), next(iter(PLANS)))
    title = next((title for title in PLANS if title in said), first)
    if asked.role == "planner":
        return PLANS[title]
    if asked.role == "qa":
        return verdict()
    if title in ASKS and ASKS[title][1][1] not in said:
        question, choices = ASKS[title]
        return Answer({"status": "needs_input", "question": question, "choices": list(choices)})
    turns = WORK[title]
    return turns[min(len(asked.results), len(turns) - 1)]
