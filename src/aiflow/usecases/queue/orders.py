"""From what was typed to what is to be done: the orders of `aiflow queue add`, checked as far as they can be."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.domain.queue.delivery import FORCE, KEEP_CHANGES, MODES, SET, STEP_ID, UPDATE, WATCH
from aiflow.domain.queue.order import USUAL_PRIORITY, Order
from aiflow.domain.queue.task import TaskAction, check_prompt, check_task_id
from aiflow.domain.request import Priority, RequestId
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.errors import AiflowError, BadInputError
from aiflow.settings.table import NO_BASELINE, QUICK
from aiflow.usecases.queue.check_work import require_resumable, require_startable
from aiflow.usecases.read_backlog import is_known
from aiflow.usecases.runs.find import find_run
from aiflow.usecases.runs.resume import ResumeWish

if TYPE_CHECKING:
    from aiflow.messages import Texts
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.read_backlog import BacklogSources


# Hiragana and the marks of a sentence: hardly an id is without a request and has these.
_JAPANESE = re.compile("[\u3041-\u3096、。！？]")
_ACTIONS = {mode: action for action, mode in MODES.items()}


@dataclass(frozen=True, slots=True)
class TypedOrder:
    """What was typed after `aiflow queue add`."""

    names: tuple[str, ...] = ()
    prompt: str | None = None
    auto: bool = False
    watch: bool = False
    resume: bool = False
    retry_step: bool = False
    replan: bool = False
    step: str | None = None
    answer: str | None = None
    keep_changes: bool = False
    update: bool = False
    force: bool = False
    quick: bool = False
    no_baseline: bool = False
    priority: str | None = None
    task_id: str | None = None

    @property
    def mode(self) -> ResumeMode | None:
        """How a run is to continue; None if one is to be started."""
        ways = (
            (self.resume, ResumeMode.RESUME),
            (self.retry_step, ResumeMode.RETRY_STEP),
            (self.replan, ResumeMode.REPLAN),
        )
        return next((mode for is_given, mode in ways if is_given), None)

    @property
    def says_how(self) -> bool:
        """Whether something was given that only a resumed run can use."""
        return any((self.answer is not None, self.keep_changes, self.update, self.force))

    @property
    def options(self) -> dict[str, str]:
        """What the task gets besides its action; the answer is its prompt, which may be long."""
        flags = {FORCE: self.force, KEEP_CHANGES: self.keep_changes, UPDATE: self.update, WATCH: self.watch}
        flags |= {QUICK: self.quick, NO_BASELINE: self.no_baseline}
        step = {STEP_ID: self.step.upper()} if self.step else {}
        return {**step, **{name: SET for name, is_given in flags.items() if is_given}}


# Makes an order; whether a task with its id is there already decides what is asked before.
Maker = Callable[[bool], Order]
# Takes an id out of what was typed.
ReadId = Callable[[str], RequestId]


def orders_of(
    given: TypedOrder, sources: BacklogSources, engine: Callable[[], Engine], read_id: ReadId, texts: Texts
) -> list[Maker]:
    """Return a way to make each order; making one refuses what could not run anyway (RUN-15).

    Of one whose task is there already that is not asked: the store knows whether it is the same order (QUE-9).
    """
    for name in given.names:
        if not name.strip():  # neither an id nor a sentence; as a prompt it says what is wrong
            check_prompt(name)
    names = given.names if given.prompt is None else ()
    sentences = {name for name in names if _is_sentence(sources, name.strip(), read_id)}
    if len(given.names) == 1 and sentences:
        given = replace(given, names=(), prompt=given.names[0])
    _check(texts, given)
    for sentence in sentences:  # what cannot go with a prompt cannot go with one among several either
        _check(texts, replace(given, names=(), prompt=sentence))
    if given.prompt is not None:
        return [_order(given, given.prompt)]
    if given.auto:
        usual = Priority(given.priority) if given.priority else USUAL_PRIORITY
        order = Order(TaskAction.AUTO_RUN, options=given.options, priority=usual, task_id=given.task_id)
        return [lambda _is_there: order]
    here = engine()
    return [_order(given, name) if name in sentences else _named(here, given, read_id(name)) for name in given.names]


def _order(given: TypedOrder, prompt: str) -> Maker:
    """Check a bare prompt, and return the way to its order."""
    check_prompt(prompt)
    priority = Priority(given.priority) if given.priority else USUAL_PRIORITY
    return lambda _is_there: Order(
        TaskAction.PROMPT, prompt=prompt, options=given.options, priority=priority, task_id=given.task_id
    )


def _named(engine: Engine, given: TypedOrder, request_id: RequestId) -> Maker:
    """Return the way to the order of a request, or of a run of it."""
    make = _start if given.mode is None else _go_on
    return lambda is_there: _again(engine, request_id, given) if is_there else make(engine, request_id, given)


def _is_sentence(sources: BacklogSources, text: str, read_id: ReadId) -> bool:
    """Distinguish a prompt from an id (REQ-9): no id has a blank (REQ-2), and Japanese sentences have other marks."""
    if any(map(str.isspace, text)):
        return True
    if not _JAPANESE.search(text):
        return False
    try:
        return not is_known(sources.requests, read_id(text))
    except AiflowError:
        return True


def _again(engine: Engine, name: RequestId, given: TypedOrder) -> Order:
    """Repeat an order as it was typed, wherever its request or run is by now."""
    action = TaskAction.START if given.mode is None else _ACTIONS[given.mode]
    request_id = (name.startswith("RUN-") and engine.runs.find(name)) or name
    return Order(action, request_id, prompt=given.answer or "", options=given.options, task_id=given.task_id)


def _start(engine: Engine, request_id: RequestId, given: TypedOrder) -> Order:
    request = require_startable(engine, request_id)
    priority = Priority(given.priority) if given.priority else request.priority
    return Order(TaskAction.START, request.id, options=given.options, priority=priority, task_id=given.task_id)


def _go_on(engine: Engine, name: RequestId, given: TypedOrder) -> Order:
    run = find_run(engine, name)
    assert given.mode is not None, given
    goal = Goal(given.mode, given.options.get(STEP_ID), is_forced=given.force)
    wish = ResumeWish(goal, given.answer, given.keep_changes)
    require_resumable(engine, run, wish, updates=given.update)
    priority = Priority(given.priority) if given.priority else engine.source.load(RequestId(run.request_id)).priority
    return Order(
        _ACTIONS[given.mode],
        run.request_id,
        run.run_id,
        prompt=given.answer or "",
        options=given.options,
        priority=priority,
        task_id=given.task_id,
    )


def _check(texts: Texts, given: TypedOrder) -> None:
    """Refuse what makes no sense together, before anything is opened."""
    ways = sum((given.prompt is not None, given.auto, given.resume, given.retry_step, given.replan))
    is_named = given.prompt is None and not given.auto
    for is_wrong, key in (
        (ways > 1, "queue.one_way"),
        (is_named and not given.names, "queue.nothing_named"),
        (not is_named and bool(given.names), "queue.nothing_to_name"),
        (len(given.names) > 1 and given.task_id is not None, "queue.one_id"),
        (given.says_how and given.mode is None, "queue.only_going_on"),
        (given.update and not given.resume, "queue.only_going_on"),
        (given.step is not None and not given.retry_step, "queue.only_retry_step"),
        (given.watch and not given.auto, "queue.only_auto"),
        (given.quick and (given.auto or given.mode is not None), "queue.only_start"),
        (given.no_baseline and given.auto, "queue.only_start"),
    ):
        if is_wrong:
            raise BadInputError(detail=texts(key), hint=NextAction(ActionKind.QUEUE_ADD, options=(("help", ""),)))
    if given.task_id is not None:
        check_task_id(given.task_id)
