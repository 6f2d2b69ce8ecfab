from datetime import date

from hidden import Called
from tally.entries import Entry, in_month, month_range


class December(Called):
    def test_the_command_shows_it(self):
        for day in ("2024-11-30", "2024-12-01", "2024-12-31", "2025-01-01"):
            self.lines("add", "1", "food", "--date", day)
        self.assertEqual(self.lines("report", "--month", "2024-12"), ["food                   2.00"])

    def test_every_month_is_its_own_days(self):
        days = [date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29), date(2024, 12, 31), date(2025, 1, 1)]
        entries = [Entry(day, 1.0, "food") for day in days]
        for month in ("2023-12", "2024-01", "2024-02", "2024-12", "2025-01", "2024-06"):
            expected = [entry for entry in entries if entry.day.strftime("%Y-%m") == month]
            self.assertEqual(in_month(entries, month), expected, month)

    def test_a_month_that_does_not_exist_is_still_refused(self):
        with self.assertRaises(ValueError):
            month_range("2024-13")
