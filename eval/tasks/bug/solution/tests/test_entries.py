import unittest
from datetime import date

from tally.entries import Entry, duplicates, in_month


class Entries(unittest.TestCase):
    def test_a_month_has_its_entries_only(self):
        march, april = Entry(date(2024, 3, 31), 1.0, "food"), Entry(date(2024, 4, 1), 2.0, "food")
        self.assertEqual(in_month([march, april], "2024-03"), [march])

    def test_december_ends_with_the_year(self):
        last, first = Entry(date(2024, 12, 31), 1.0, "food"), Entry(date(2025, 1, 1), 2.0, "food")
        self.assertEqual(in_month([last, first], "2024-12"), [last])

    def test_duplicates_are_found_in_the_order_of_the_book(self):
        first, other = Entry(date(2024, 3, 1), 1.0, "Food", "a"), Entry(date(2024, 3, 2), 1.0, "food", "b")
        again, twice = Entry(date(2024, 3, 1), 1.0, "food", "c"), Entry(date(2024, 3, 2), 1.0, "food", "d")
        self.assertEqual(duplicates([first, other, again, twice]), [again, twice])
