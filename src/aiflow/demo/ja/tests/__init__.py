"""利用者と同じようにプログラムを呼び出す。一覧はテストごとに別。"""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import todo


class TodoCase(unittest.TestCase):
    """空の一覧から始まるテスト。"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patch = mock.patch.object(todo, "FILE", Path(folder.name) / "todo.json")
        patch.start()
        self.addCleanup(patch.stop)

    def call(self, *words):
        """プログラムの出力を返す。"""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            todo.main(list(words))
        return printed.getvalue()
