"""The JSON reference: what the program really printed, in a project of its own, with nothing from outside."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from program_call import answer_of
from queue_reference import queue_sections

INTRO = """
`--json` prints one JSON document on standard output: on one line in a pipe, indented on a terminal. The documents below
are what the program printed for the two small projects at the end of this page.

- Details are English in every language, so that scripts can rely on them. Only the words of an error (`message`,
  `detail`, `actions`) are in the language you chose.
- Times are ISO 8601 with an offset, as the file says them; a date or a time without an offset is UTC.
- A value that is not there is `null`.
- An error goes to standard output too, with the exit code of its reason.
- More keys may be added; the ones shown here stay.
"""
CALLS: tuple[tuple[str, str], ...] = (
    ("next", "`next` is `null` if nothing is runnable. `--all` adds the requests that are not ready to `excluded`."),
    ("list", "In selection order, then the files that cannot be used. `reason_code` says why a ready one cannot run."),
    (
        "show RQ-3",
        "One request with its runs, newest first, and its body. `hidden` lists what of its title, labels and body a "
        "person does not see and no agent gets: `field`, `kind`, `line` (of that text), `amount` and `shown`.",
    ),
    ("show RQ-5", "A file that cannot be used, with everything that is wrong with it."),
    ("why RQ-4", "The request itself, then everything it waits for, depth first. `command` fixes it, if one does."),
    ("forecast", "`running` is in progress, `order` follows if every run succeeds, `never` is not reached."),
    ("new Refunds --id RQ-6 --ready", "The new request."),
    ("set RQ-3 priority=P0", "`changed` is `false` if it had that value already."),
    ("edit RQ-3 -F requests/RQ-3.md", "`changed` is `true` if the text has changed."),
    ("-c accept=auto settings --changed", "`source` is `default`, `file`, `environment` or `flag`."),
    ("set RQ-3 status=done --expect ready", "An error, with exit code 4 (see [reason codes](reason-codes.md))."),
    ("why RQ-99", "Another one, with exit code 2."),
)
PROJECT = {
    "aiflow.toml": "",
    "requests/RQ-1.md": "---\npriority: P1\nstatus: done\nupdated_at: 2026-11-02\n---\n\n# Pay by card\n",
    "requests/RQ-2.md": "---\npriority: P1\nstatus: ready\ndepends_on: [RQ-1]\nlabels: [shop]\n"
    "created_at: 2026-11-02\nupdated_at: 2026-11-03T09:00:00+09:00\n---\n\n# Print a receipt\n",
    "requests/RQ-3.md": "---\npriority: P2\nstatus: blocked\nupdated_at: 2026-11-03\n---\n\n# Pay by invoice\n",
    "requests/RQ-4.md": "---\npriority: P1\nstatus: ready\ndepends_on: [RQ-3]\n---\n\n# Remind of open invoices\n",
    "requests/RQ-5.md": "---\npriority: P9\nstatus: ready\n---\n\n# Round to whole yen\n",
    "runs/RQ-3/RUN-20261104-013000-5e1f0a/stage.json": '{"state": "NEEDS_INPUT", "error": {"reason_code": '
    '"NEEDS_CLARIFICATION"}, "history": [{"at": "2026-11-04T01:42:00+00:00"}]}\n',
}

# The second project has runs. What differs from call to call is replaced: see `_settle`.
LOCK = ".aiflow/locks/request.TOTAL.lock.json"
RUN_CALLS: tuple[tuple[str, str], ...] = (
    (
        "run GREET",
        "Printed at the run's end, as by `resume`, `retry-step`, `replan` and `cancel`. `suggested_next` is the "
        "recommended next step. The exit code is 0 only at DONE.",
    ),
    ("run WORDS", "A run that stopped: `reason_code` says why, `cause` what a limit was reached by."),
    ("show RUN-2", "A run, in the same shape as `run` prints it."),
    ("runs WORDS", "Newest first; without a request id those of all requests."),
    ("logs WORDS --step S01", "`step` is the number of the log: 0 is the planner's."),
    (
        "report WORDS",
        "What the run did so far. `report` is its `report.md`, `null` if there is none yet. Of each step: `attempts` "
        "are calls of the implementer; `changes` names its first 100 files, `more` counts the others; `tests` is how "
        "each kind ended last; `reviews` has every verdict. In `roles`, `null` is what no role used: tests and set-up.",
    ),
    (
        "diff GREET",
        "What a run, or with `--step` one step of it, changed. `is_unfinished`: no commit of the run has it yet; "
        "`is_gone`: git no longer has the commits; `is_cut`: `diff` is not all of it.",
    ),
    ("shell WORDS", "Where the run works; with `--json` no shell is opened."),
    (
        "auto",
        "Printed at its end. `state` is `completed` or `stopped`, `reason_code` says why; the exit code is 0 when "
        "nothing was left, at a limit, and when a person stopped it. `runs` and `done` count since `began_at`, even "
        "across a crash; `interrupted` lists what was found interrupted, `checks` what the doctor found if it stopped "
        "auto-run.",
    ),
    (
        "status",
        "`running` is what processes work on now, `waiting` what needs a person, with the command; `auto` is the "
        "running auto-run, or how the last one ended; `spent` sums up the runs that began in the last `days`.",
    ),
    (
        "status --cost",
        "What runs cost: `total`, `roles` and `requests` of the last `days`, most expensive first; `nights` (from "
        "18:00 to 18:00) and `months`, newest first. A run counts where it began.",
    ),
    (
        "clean GREET --now",
        "`removed` is what was removed (with `--dry-run`: would be), `kept` what stayed, `failed` what could not be "
        "removed, with `reason_code` and `problem`. `kind` is `worktree`, `branch`, `ref`, `run` or `leftover`; with "
        "`commit` you can restore a branch or ref.",
    ),
    ("doctor", "`result` is the worst of the checks: `PASS`, `WARN` or `FAIL`. Some checks are left out here."),
    ("locks", "`verdict` is `held`, `held_expired`, `stale_dead`, `stale_expired` or `stale_damaged`."),
    ("run TOTAL", "While that lock is held. The error names who holds it. Exit code 4."),
    ("locks break TOTAL", "The lock as it was."),
)
RUN_PROJECT = {
    "aiflow.toml": '[agent]\nkind = "demo"\n',
    "requests/GREET.md": "---\nstatus: ready\n---\n\n# Greet people\n\n## Write it\n\n"
    "```write greet.sh\necho Hello\n```\n",
    "requests/WORDS.md": "---\nstatus: ready\n---\n\n# Word the greeting\n\n## Choose the words\n\n"
    "```ask\nFormal or friendly?\n```\n",
    "requests/TOTAL.md": "---\nstatus: ready\n---\n\n# Show the total\n",
    LOCK: '{"version": "1.0", "lock_type": "request", "request_id": "TOTAL", "run_id": '
    '"RUN-20261104-013200-5e1f03", "pid": 4711, "host": "build-7",\n "created_at": "2026-11-04T01:32:00+00:00", '
    '"expires_at": "2126-11-04T02:02:00+00:00", "token": "…", "fence": 8}\n',
}
INSTANT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\+00:00")
RUN_ID = re.compile(r"\bRUN-\d{8}-\d{6}-[0-9a-f]{6}\b")
SHAPES = """\
`{root, made, kept, agent: {kind, program}}`, where `agent` is what a new `aiflow.toml` names, `null` if none was found;
`{root, auto, next: [{name, commands}]}`, where `auto` is what `aiflow auto` prints, `null`
with `--no-run`; `{shell, script}`.
"""
ACTIVITY = """\
`{activity: [{cursor, at, kind, actor, request_id, run_id, reason_code, pid, data}], next_cursor, is_end, has_gap,
damaged}`, newest first. `--before` with `next_cursor` returns older entries, until `is_end`. `has_gap`: entries next to
that cursor are gone, because only the newest files are kept. With `-f` one entry a line, oldest first, as they come.
"""
AGENTS = """\
`{agents: [{kind, program, argv, is_installed, path, version, login, login_by, roles, reason_code, install, log_in}]}`:
`login` is `in`, `out`, `none_seen` (no login in the places we know), `unknown` or `not_needed`, `login_by` the variable
or account of the login, `roles` the roles that use the agent here, `reason_code` why it cannot be used. With `--check`
also `checks: [{kind, program, result, reason_code, detail, seconds, input_tokens, output_tokens, cost_usd}]`, one for
each call.
"""
STORE = """\
`start`, `stop` and `status`: `{store: {running, endpoint, how, pid, version, data, log, problem, lack}}`: `how` is
`java` or `docker`, `problem` why it does not answer although it was not stopped, `lack` what `status` found missing to
start it. `logs`: `{log}`, the text.
"""
RUNNER = """\
One line per event, as it happens: `{event, at, namespace, runner_id, reason_code}`. `event` is `started`, `waiting`,
`held_up` (why no task is taken, or why one waits: `holder`, and the doctor's first reason: `cause`), `recovering`,
`claimed`, `ended`, `lost` (the task is no longer this runner's; it wrote nothing to it), `reaped` (another runner is
gone: `lost_runner`), `store_away` (`problem`, and `command`: what may help), `store_back`, `cut_off` (the store was
unreachable for `seconds`: the agent is ended), `unwritten` (the store is still unreachable: the next runner handles the
task) or `stopped` (`tasks`: how many were worked on). Events about a task also have `task_id, action, request_id,
run_id, status, error_message, successor`. The exit code is 0 when the runner was asked to stop, or had nothing more to
do with `--once`. If the doctor's checks fail with `--once`, the last line is the `error`, and the exit code is that of
its reason. After `unwritten` it is 3.
"""
LEFT_OUT = ("file_system", "disk")  # they tell about the machine


def sections() -> Iterator[str]:
    """Write a section per call, then the projects."""
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, PROJECT)
        for call, words in CALLS:
            yield _section(call, words, _indent(answer_of(folder, call, {"LANG": "C.UTF-8", "TZ": "UTC"})))
    with tempfile.TemporaryDirectory() as folder:
        yield from _run_sections(os.path.realpath(folder))
    yield (
        "## aiflow stop\n\n`{stop_request, request_id, run_id, pid, host, has_ended}`: what was asked, the run that "
        "auto-run is at (or `null`), its process, and whether it has ended (only waited for with `--now`).\n"
    )
    yield f"## aiflow activity\n\n{ACTIVITY}"
    yield from queue_sections()
    yield f"## aiflow agents\n\n{AGENTS}"
    yield f"## aiflow runner\n\n{RUNNER}"
    yield f"## aiflow queue store\n\n{STORE}"
    yield f"## aiflow init, aiflow demo, aiflow completion\n\n{SHAPES}"
    yield f"## The first project\n\n{_shown(PROJECT)}"
    yield f"## The project with runs\n\n{_shown(RUN_PROJECT)}"


def _section(call: str, words: str, answer: str) -> str:
    return f"## aiflow {call}\n\n{words}\n\n```json\n{answer}\n```\n"


def _run_sections(folder: str) -> Iterator[str]:
    """Let the demo agent work in a repository of its own."""
    root = f"{folder}/shop"
    _write(root, {name: text for name, text in RUN_PROJECT.items() if name != LOCK})
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "First commit"]):
        subprocess.run(["git", *command], cwd=root, env=_environ(folder), check=True)
    runs: list[str] = []
    for call, words in RUN_CALLS:
        if call == "locks":
            _write(root, {LOCK: RUN_PROJECT[LOCK]})
        real = re.sub(r"RUN-(\d)$", lambda match: runs[int(match[1]) - 1], call)
        answer = answer_of(root, real, _environ(folder))
        made = dict.fromkeys(RUN_ID.findall(_indent(answer)))
        runs.extend(run_id for run_id in made if run_id not in runs and run_id not in RUN_PROJECT[LOCK])
        if "checks" in answer:
            answer["checks"] = [check for check in answer["checks"] if check["id"] not in LEFT_OUT]
        shown = re.sub(r"RUN-(\d)$", lambda match: _run_name(int(match[1])), call)
        yield _section(shown, words, _settle(_indent(answer), folder, runs))


def _run_name(number: int) -> str:
    return f"RUN-20261104-01300{number}-5e1f0{number}"


def _settle(text: str, folder: str, runs: list[str]) -> str:
    """Put something fixed in the place of what differs from call to call: run ids, commits, times, folders."""
    for number, run_id in enumerate(runs, 1):
        text = text.replace(run_id, _run_name(number))
    text = INSTANT.sub(lambda match: match[0] if match[0] in RUN_PROJECT[LOCK] else "2026-11-04T01:30:05+00:00", text)
    text = re.sub(r"\b[0-9a-f]{40}\b", "1dd1e2c29750ac25f7d481c82ce6956a6e3043dd", text)
    text = re.sub(r"shop-[0-9a-f]{8}", "shop-1b95df1c", text)
    text = re.sub(r'("(?:freed_)?bytes": )[1-9]\d*', r"\g<1>36864", text)
    text = re.sub(r'("(?:worked_)?seconds": )[\d.]+', r"\g<1>1.5", text)
    text = re.sub(r"\b\d+:\d\d:\d\d(?= of work| \|)", "0:00:00", text)
    text = re.sub(r'("evening": ")[\d-]+', r"\g<1>2026-11-03", text)
    text = re.sub(r'("month": ")[\d-]+', r"\g<1>2026-11", text)
    return text.replace(f"{folder}/state", "~/.local/state").replace(folder, "~")


def _environ(folder: str) -> dict[str, str]:
    """Return an environment with nothing of the user's but the way to git."""
    who = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", "Mika"), ("EMAIL", "mika@example.com"))
    }
    own = {"HOME": folder, "XDG_STATE_HOME": f"{folder}/state", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    return {"LANG": "C.UTF-8", "TZ": "UTC", **own, **who}


def _write(folder: str, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")


def _indent(answer: object) -> str:
    return json.dumps(answer, ensure_ascii=False, indent=2)


def _shown(files: Mapping[str, str]) -> str:
    """Show the files of a project; a fence inside one needs a longer fence around it."""
    blocks = ((name, text, "````" if "```" in text else "```") for name, text in files.items() if text)
    return "\n".join(f"{ticks}text\n{name}\n\n{text}{ticks}\n" for name, text, ticks in blocks)
