"""What DynamoDB's indexes may do and DynamoDB Local's never does: entries that are late, missing, or back again.

A global index is written behind its table. So a query may not show what is there yet, may show what is gone, and may
answer with an empty page that has something behind it.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

Entry = dict[str, dict[str, str]]
SORT_KEY = "ready_sk"
# Sorts before every place in the queue: a key of no task, as a page may well end behind a filtered one.
_BEFORE_ALL = {"S": " "}


@dataclass
class IndexFaults:
    """What is wrong with the ready-index at present; a test sets the fields, and calls the methods.

    `late_queries` and `late_seconds`: an entry is shown only after it was withheld from so many queries, or for so
    long. `late_chance` and `lingering_chance`: how likely any entry is missing from, and any that is gone is back in,
    one answer. `empty_pages`: how many answers to come are empty, with a LastEvaluatedKey.
    """

    seed: int = 0
    late_queries: int = 0
    late_seconds: float = 0.0
    late_chance: float = 0.0
    lingering_chance: float = 0.0
    empty_pages: int = 0
    hits: int = 0
    _missing: set[str] = field(default_factory=set)
    _resurrected: set[str] = field(default_factory=set)
    _entries: dict[str, Entry] = field(default_factory=dict)
    _first_seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def hide(self, task_id: str) -> None:
        """Leave a task out of every answer, until `show`."""
        self._missing.add(task_id)

    def show(self, task_id: str) -> None:
        """Let a task be found as it is again."""
        self._missing.discard(task_id)

    def resurrect(self, *task_ids: str) -> None:
        """Put tasks that queries have shown before back into every answer to come, whatever became of them."""
        self._resurrected.update(task_ids)

    def known(self) -> set[str]:
        """Return the tasks that any query has shown, and that could be put back."""
        return set(self._entries)

    def change(self, query: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        """Return what the index answers to a query, from what it should answer."""
        with self._lock:
            if self.empty_pages > 0:
                self.empty_pages -= 1
                self.hits += 1
                return {**answer, "Items": [], "Count": 0, "ScannedCount": 0, "LastEvaluatedKey": self._start(query)}
            found = {_id(entry): entry for entry in answer.get("Items", [])}
            self._entries.update(found)
            shown = {name: entry for name, entry in found.items() if not self._is_withheld(name)}
            back = {name: entry for name, entry in self._gone(query, answer, found).items() if self._is_back(name)}
            self.hits += len(found) - len(shown) + len(back)
            items = sorted((shown | back).values(), key=lambda entry: entry[SORT_KEY]["S"])
            return {**answer, "Items": items, "Count": len(items), "ScannedCount": len(items)}

    def _is_withheld(self, name: str) -> bool:
        withheld, since = self._first_seen.get(name, (0, time.monotonic()))
        self._first_seen[name] = (withheld + 1, since)
        is_late = withheld < self.late_queries or time.monotonic() - since < self.late_seconds
        return name in self._missing or is_late or self._chance.random() < self.late_chance

    def _is_back(self, name: str) -> bool:
        return name in self._resurrected or self._chance.random() < self.lingering_chance

    def _gone(self, query: dict[str, Any], answer: dict[str, Any], found: dict[str, Entry]) -> dict[str, Entry]:
        """Return the entries that could be in this very page, and are not."""
        wanted = [value.get("S") for value in query.get("ExpressionAttributeValues", {}).values()]
        begin = query.get("ExclusiveStartKey", {}).get(SORT_KEY, {"S": ""})["S"]
        end = answer.get("LastEvaluatedKey", {}).get(SORT_KEY, {"S": "\U0010ffff"})["S"]
        return {
            name: entry
            for name, entry in self._entries.items()
            if name not in found and entry["ready_pk"]["S"] in wanted and begin < entry[SORT_KEY]["S"] <= end
        }

    def _start(self, query: dict[str, Any]) -> dict[str, Any]:
        """Return the key to go on from where the query began."""
        if "ExclusiveStartKey" in query:
            return dict(query["ExclusiveStartKey"])
        values = query["ExpressionAttributeValues"].values()
        partition = next(value for value in values if "#" in value.get("S", ""))
        namespace = {"S": partition["S"].rpartition("#")[0]}
        return {"namespace": namespace, "task_id": _BEFORE_ALL, "ready_pk": partition, SORT_KEY: _BEFORE_ALL}


def _id(entry: Entry) -> str:
    return entry["task_id"]["S"]
