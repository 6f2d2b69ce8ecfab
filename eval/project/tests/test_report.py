import unittest
from datetime import date

from tally import report
from tally.entries import Entry

ENTRIES = [
    Entry(date(2024, 3, 1), 10.0, "food", person="Ann"),
    Entry(date(2024, 4, 1), 20.5, "Rent", person="Ben"),
    Entry(date(2024, 3, 9), 1.5, "Food", person="Ann"),
]


class Report(unittest.TestCase):
    def test_totals_of_categories(self):
        self.assertEqual(report.by_category(ENTRIES), [("rent", 20.5), ("food", 11.5)])

    def test_totals_of_months(self):
        self.assertEqual(report.by_month(ENTRIES), [("2024-03", 11.5), ("2024-04", 20.5)])

    def test_totals_of_people(self):
        self.assertEqual(report.by_person(ENTRIES), [("Ann", 11.5), ("Ben", 20.5)])
