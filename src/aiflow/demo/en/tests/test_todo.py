from tests import TodoCase


class ListTest(TodoCase):
    def test_an_empty_list(self):
        self.assertEqual(self.call("list"), "Nothing to do.\n")

    def test_things_are_listed_as_they_were_added(self):
        self.assertEqual(self.call("add", "Buy", "milk"), "Added as number 1.\n")
        self.call("add", "Water the plants")
        self.assertIn(" 1 [ ] Buy milk\n 2 [ ] Water the plants\n", self.call("list"))

    def test_a_thing_is_ticked_off(self):
        self.call("add", "Buy milk")
        self.assertEqual(self.call("done", "1"), "Done: Buy milk\n")
        self.assertIn(" 1 [x] Buy milk\n", self.call("list"))
