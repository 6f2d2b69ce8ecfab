from hidden import Called


class Amounts(Called):
    def said(self, amount):
        return f'tally: "{amount}" is not an amount: write it as 12 or 12.50'

    def test_add_says_what_is_wrong_and_writes_nothing(self):
        for amount in ("twelve", "12,50", ""):
            self.assertEqual(self.refused("add", amount, "food"), self.said(amount))
            self.assertFalse(self.book.exists())

    def test_what_is_no_amount_of_money_stays_out(self):
        for amount in ("nan", "inf", "Infinity", "sNaN", "1e999"):
            self.assertEqual(self.refused("add", amount, "food"), self.said(amount))
            self.assertFalse(self.book.exists())

    def test_split_says_it_too(self):
        self.assertEqual(self.refused("split", "ten", "Ann"), self.said("ten"))

    def test_a_book_that_exists_stays_as_it_is(self):
        self.lines("add", "1", "food")
        before = self.book.read_bytes()
        self.refused("add", "x", "food")
        self.assertEqual(self.book.read_bytes(), before)

    def test_right_amounts_are_taken_as_before(self):
        for amount in ("12", "12.5", "12.50", "0.01"):
            self.lines("add", amount, "food")
        self.lines("add", "--", "-3", "food")
        self.assertEqual(len(self.lines("list")), 5)
