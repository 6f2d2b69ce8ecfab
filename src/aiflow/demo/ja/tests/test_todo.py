from tests import TodoCase


class ListTest(TodoCase):
    def test_an_empty_list(self):
        self.assertEqual(self.call("list"), "やることはありません。\n")

    def test_things_are_listed_as_they_were_added(self):
        self.assertEqual(self.call("add", "牛乳を", "買う"), "1番に追加しました。\n")
        self.call("add", "花に水をやる")
        self.assertIn(" 1 [ ] 牛乳を 買う\n 2 [ ] 花に水をやる\n", self.call("list"))

    def test_a_thing_is_ticked_off(self):
        self.call("add", "牛乳を買う")
        self.assertEqual(self.call("done", "1"), "完了: 牛乳を買う\n")
        self.assertIn(" 1 [x] 牛乳を買う\n", self.call("list"))
