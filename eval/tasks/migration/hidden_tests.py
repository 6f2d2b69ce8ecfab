import json
from datetime import date

from hidden import Called
from tally import store
from tally.entries import Entry

ROW = {"day": "2024-01-01", "category": "food", "note": "", "person": "Ann"}


class Format(Called):
    def write(self, version, **more):
        self.book.write_text(json.dumps({"version": version, "entries": [{**ROW, **more}]}, indent=3))
        return self.book.read_bytes()

    @property
    def copy(self):
        return self.folder / "book.json.v1"

    def test_save_writes_cents(self):
        store.save(self.book, [Entry(date(2024, 1, 1), amount, "food") for amount in (12.5, 0.29, -1.15, 1.005)])
        book = json.loads(self.book.read_text())
        self.assertEqual(book["version"], 2)
        self.assertEqual([entry["cents"] for entry in book["entries"]][:3], [1250, 29, -115])
        self.assertTrue(all(isinstance(entry["cents"], int) and "amount" not in entry for entry in book["entries"]))

    def test_a_new_book_has_no_copy(self):
        self.lines("add", "12.50", "food")
        self.assertFalse(self.copy.exists())

    def test_version_1_is_read(self):
        self.write(1, amount=0.29)
        [entry] = store.load(self.book)
        self.assertEqual((round(entry.amount, 6), entry.person), (0.29, "Ann"))
        store.save(self.book, [entry])
        self.assertEqual(json.loads(self.book.read_text())["entries"][0]["cents"], 29)

    def test_version_2_is_read(self):
        self.write(2, cents=1250)
        self.assertEqual(store.load(self.book)[0].amount, 12.5)
        self.assertEqual(self.lines("report"), ["food                  12.50"])

    def test_the_old_book_is_copied_once(self):
        before = self.write(1, amount=1.5)
        self.lines("add", "1", "rent")
        self.assertEqual(self.copy.read_bytes(), before)
        self.lines("add", "2", "rent")
        self.assertEqual(self.copy.read_bytes(), before)

    def test_a_copy_that_exists_stays(self):
        self.write(1, amount=1.5)
        self.copy.write_text("mine")
        self.lines("add", "1", "rent")
        self.assertEqual(self.copy.read_text(), "mine")

    def test_reading_copies_nothing(self):
        before = self.write(1, amount=1.5)
        self.lines("list")
        self.assertEqual((self.book.read_bytes(), self.copy.exists()), (before, False))

    def test_a_later_version_is_refused_and_kept(self):
        before = self.write(3, cents=1250)
        with self.assertRaisesRegex(ValueError, "3"):
            store.load(self.book)
        self.call("add", "1", "rent")
        self.assertEqual(self.book.read_bytes(), before)
