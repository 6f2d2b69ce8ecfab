import json
import tempfile
import unittest
from pathlib import Path

from tally import store

OLD = {"version": 1, "entries": [{"day": "2024-01-01", "amount": 0.29, "category": "food"}]}


class Store(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.book = Path(folder.name, "book.json")

    def test_an_old_book_becomes_one_of_cents_and_is_kept(self):
        self.book.write_text(json.dumps(OLD))
        store.save(self.book, store.load(self.book))
        self.assertEqual(json.loads(self.book.read_text())["entries"][0]["cents"], 29)
        self.assertEqual(json.loads(self.book.with_name("book.json.v1").read_text()), OLD)
