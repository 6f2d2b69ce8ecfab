"""Reading settings from `aiflow.toml`, the environment and flags (CFG); a mistake names file, key and line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import read_regular
from aiflow.errors import SettingsError, as_problem
from aiflow.settings import BY_NAME, FILE_NAME, SECTIONS, TABLE, Settings, SettingValue, Source, settle
from aiflow.settings.checking import Mistake, MistakeKind, check_tables, check_text, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


MAX_FILE_BYTES = 1_000_000
_EMPTY_SECTIONS = frozenset(f"[{section}]".encode() for section in SECTIONS)


def load_settings(root: Path | str, environ: Mapping[str, str], flags: Iterable[str] = ()) -> Settings:
    """Read all sources; flag over environment over file over default. Every mistake is reported at once."""
    layers: dict[Source, Mapping[str, SettingValue]] = {}
    problems: list[dict[str, object]] = []
    layers[Source.FILE] = _read_file(f"{root}/{FILE_NAME}", problems)
    layers[Source.ENVIRONMENT] = _read_environment(environ, problems)
    layers[Source.FLAG] = _read_flags(flags, problems)
    if problems:
        raise SettingsError(problems=problems)
    settings = settle(layers)
    if settings.text("github.repo"):
        _refuse_handed_secrets(settings)
    return settings


def _refuse_handed_secrets(settings: Settings) -> None:
    """Refuse settings that would hand GitHub's token to an agent (ISS-11)."""
    from aiflow.settings.secret_variables import handed_secrets

    problems = [_problem(FILE_NAME, mistake, None) for mistake in handed_secrets(settings)]
    if problems:
        raise SettingsError(problems=problems)


def _read_file(path: str, problems: list[dict[str, object]]) -> dict[str, SettingValue]:
    """Read the file's settings; a file that is not there sets nothing."""
    try:
        data = read_regular(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise as_problem(error, path) from error
    if says_nothing(data):
        return {}
    import tomllib

    try:
        text = data.decode("utf-8-sig")
        tables = tomllib.loads(text)
    except UnicodeDecodeError as error:
        mistake = Mistake("", MistakeKind.SYNTAX, (("problem", "not UTF-8"),))
        problems.append(_problem(FILE_NAME, mistake, data.count(b"\n", 0, error.start) + 1))
        return {}
    except (ValueError, RecursionError) as error:
        problem, line = _syntax(str(error))
        problems.append(_problem(FILE_NAME, Mistake("", MistakeKind.SYNTAX, (("problem", problem),)), line))
        return {}
    results = list(check_tables(tables))
    mistakes = [result for result in results if isinstance(result, Mistake)]
    lines = find_lines(text) if mistakes else {}  # its patterns alone take longer than all the rest of reading a file
    problems += [_problem(FILE_NAME, mistake, line_of(lines, mistake.name)) for mistake in mistakes]
    return dict(result for result in results if not isinstance(result, Mistake))


def says_nothing(data: bytes) -> bool:
    """Return whether a file, such as the one that `init` writes, sets nothing: then TOML need not be loaded."""
    lines = (line.strip() for line in data.splitlines())
    return all(not line or line.startswith(b"#") or line in _EMPTY_SECTIONS for line in lines)


def _syntax(message: str) -> tuple[str, int | None]:
    """Split tomllib's message into what is wrong and the line."""
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message, re.DOTALL)
    if match is None:
        return message.splitlines()[0], None
    return match[1], int(match[2]) if match[2] else None


_HEADER = r"[ \t]*\[{1,2}([^\]\n]+)\]{1,2}"
_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_ASSIGNMENT = rf"[ \t]*({_NAME}(?:[ \t]*\.[ \t]*{_NAME})*)[ \t]*="
_DOT = r"""[ \t]*\.[ \t]*(?=(?:[^"']*["'][^"']*["'])*[^"']*$)"""


def find_lines(text: str) -> dict[str, int]:
    """Return the line of every section and key of a valid TOML file, in one pass over it."""
    found: dict[str, int] = {}
    section, is_in_text, depth = "", False, 0
    for number, line in enumerate(text.splitlines(), 1):
        is_continued = is_in_text or depth > 0
        if line.count('"""') % 2 or line.count("'''") % 2:
            is_in_text = not is_in_text
        assignment = None if is_continued else re.match(_ASSIGNMENT, line)
        header = None if is_continued or assignment else re.match(_HEADER, line)
        if header:
            section = _plain_name(header[1])
            found.setdefault(section, number)
        elif assignment:
            name = _plain_name(assignment[1])
            found.setdefault(f"{section}.{name}" if section else name, number)
        if (assignment or depth > 0) and not is_in_text:
            rest = line[assignment.end() :] if assignment else line
            depth = max(0, depth + rest.count("[") - rest.count("]"))
    return found


def _plain_name(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in re.split(_DOT, name.strip()))


def line_of(lines: dict[str, int], name: str) -> int | None:
    """Find the line of a key, or of the section or dotted key it is in."""
    while name and name not in lines:
        nested = [line for other, line in lines.items() if other.startswith(f"{name}.")]
        if nested:
            return min(nested)
        name = name.rpartition(".")[0]
    return lines.get(name)


def _read_environment(environ: Mapping[str, str], problems: list[dict[str, object]]) -> dict[str, SettingValue]:
    """Read `AIFLOW_<NAME>` variables; an empty one sets nothing."""
    values: dict[str, SettingValue] = {}
    for setting in TABLE:
        for variable in setting.env_names:
            if environ.get(variable):
                result = check_text(setting, environ[variable])
                if isinstance(result, Mistake):
                    problems.append(_problem(variable, result, None))
                else:
                    values[setting.name] = result[1]
                break
    return values


def _read_flags(flags: Iterable[str], problems: list[dict[str, object]]) -> dict[str, SettingValue]:
    """Read `NAME=VALUE` flags."""
    values: dict[str, SettingValue] = {}
    for flag in flags:
        name, equals, text = flag.partition("=")
        setting = BY_NAME.get(name.strip())
        result = check_text(setting, text) if setting is not None else unknown(name.strip())
        if not equals:
            result = Mistake(name.strip(), MistakeKind.NO_VALUE)
        if isinstance(result, Mistake):
            problems.append(_problem("-c", result, None))
        else:
            values[result[0]] = result[1]
    return values


def _problem(source: str, mistake: Mistake, line: int | None) -> dict[str, object]:
    return {"file": source, "key": mistake.name, "line": line, "kind": mistake.kind.value, **dict(mistake.facts)}
