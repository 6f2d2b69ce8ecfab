import json
from datetime import date

from hidden import Called
from tally import store
from tally.entries import Entry


class Tags(Called):
    def setUp(self):
        super().setUp()
        self.lines("add", "30", "food", "Dinner", "--date", "2024-03-01", "--tag", "holiday", "--tag", "italy", "--tag", "holiday")
        self.lines("add", "5", "food", "--date", "2024-03-02", "--tag", "italy")
        self.lines("add", "6", "food", "Bread", "--date", "2024-03-03")

    def test_they_are_kept_in_order_each_once(self):
        self.assertEqual([entry.tags for entry in store.load(self.book)], [("holiday", "italy"), ("italy",), ()])

    def test_they_are_shown_behind_the_note(self):
        self.assertEqual(
            [line.split() for line in self.lines("list")],
            [
                ["2024-03-01", "30.00", "food", "Dinner", "#holiday", "#italy"],
                ["2024-03-02", "5.00", "food", "#italy"],
                ["2024-03-03", "6.00", "food", "Bread"],
            ],
        )
        self.assertEqual(self.lines("list")[2], "2024-03-03        6.00  food          Bread")

    def test_they_narrow_the_list(self):
        self.assertEqual([line[:10] for line in self.lines("list", "--tag", "italy")], ["2024-03-01", "2024-03-02"])
        self.assertEqual([line[:10] for line in self.lines("list", "--tag", "italy", "--tag", "holiday")], ["2024-03-01"])
        self.assertEqual(self.lines("list", "--tag", "ital"), [])

    def test_they_survive_another_entry(self):
        self.lines("add", "1", "rent")
        self.assertEqual(store.load(self.book)[0].tags, ("holiday", "italy"))

    def test_an_old_book_is_read(self):
        old = {"day": "2024-01-01", "amount": 1.5, "category": "food", "note": "", "person": ""}
        self.book.write_text(json.dumps({"version": 1, "entries": [old]}))
        self.assertEqual(store.load(self.book)[0].tags, ())
        self.assertEqual(len(self.lines("list")), 1)

    def test_an_entry_needs_none(self):
        self.assertEqual(Entry(date(2024, 1, 1), 1.0, "food").tags, ())
