"""Masking secrets (AGT-4, SEC): values of secret-looking variables, and texts that look like a token."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MASK = b"***"
LEAST_SECRET = 8
_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|_PASS$|_PWD$|CREDENTIAL|_CREDS?$|AUTH(?!OR(?:_|$))|PRIVATE|DSN|COOKIE|SESSION"
    r"|CUSTOM_HEADERS$|CONFIG_CONTENT$",
    re.IGNORECASE,
)
# Variables whose names look secret but that only say where something is, or which desktop one uses.
_HARMLESS_NAME = re.compile(
    r"(_SOCK|_PATH|_FILE|_DIR|_HOME|_ENV|_ID|_TYPE|_CLASS|_DESKTOP)$|^(XDG|DBUS|SSH_AUTH)_"
    r"|^(DESKTOP_SESSION|GDMSESSION|SESSION_MANAGER|XAUTHORITY)$"
)
# Values that everybody knows: a development machine's passwords, and words for how something is done. To mask them
# would keep no secret, and take a word such as "database" out of every plan and answer.
_KNOWN_VALUES = """
password postgres changeme changeit database localhost disabled required optional external internal standard
keycloak firebase supabase undefined anonymous development production
"""
# An address alone (NEXTAUTH_URL=http://localhost:3000): no user in it, no path, no query.
_ADDRESS = re.compile(r"https?://[^\s/@?#]+/?")
_TOKENS = re.compile(
    # Inside JSON a line's end is a letter: `\\nghp_…` begins no word.
    rb"(?:\b|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,}"
    rb"|sk-[A-Za-z0-9_-]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{35}"
    rb"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|hf_[A-Za-z0-9]{30,}"
    rb"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
# What each of them has in it: without any of these a text need not be searched, and output may be long.
_TOKEN_WORDS = (
    *(b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_", b"glpat-", b"sk-", b"AKIA", b"ASIA", b"xox"),
    *(b"AIza", b"npm_", b"pypi-", b"hf_", b"eyJ"),
)
# None goes beyond a quotation mark after its secret: an answer is masked while it is JSON, and must stay JSON.
_IN_URL = re.compile(rb"""(?<=://)([^\s/:@"'<>\\]*):([^\s/@"'<>\\]+)(?=@)""")
# A header as it is sent, or as an entry of JSON, YAML or code; inside JSON a quotation mark has backslashes before it.
# No secret begins with a brace, but what stands for one does: `Bearer ${TOKEN}`.
_HEADER = re.compile(
    rb"""(?i)(authorization(?:\\*["'])?\s*:\s*(?:\\*["'])?(?:bearer|basic|token)\s+)(?!\$?\{)[^\s"'<>\\]+"""
)
# After this name comes the key, or a word about it: keys are long and have digits. If the name is in quotation marks,
# the key is, too: a number of JSON's is none.
_KEY_HEADER = re.compile(
    rb"""(?i)(api-key(?:\\*["']\s*:\s*\\*["']|[ \t]*:[ \t]*(?:\\*["'])?))(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}"""
)
# A key as programs write it to files, also inside JSON; what is between its lines is removed. Its end may be missing.
_KEY_BEGIN = rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY = rb"(?:[A-Za-z0-9+/=\s:,.]++|\\+[nrt/]|-(?!----END))"
_PRIVATE_KEY = re.compile(
    rb"(%b)(?=(?:\s|\\+[nr])*(?:[A-Za-z0-9+/=]{24}|Proc-Type|Version|Comment))%b++" % (_KEY_BEGIN, _KEY_BODY)
)
_OPEN_KEY = re.compile(rb"%b%b*+\Z" % (_KEY_BEGIN, _KEY_BODY))
# Names whose values are secrets: in variables, options, connection strings, forms, JSON and YAML.
_PASSWORD_NAMES = (
    rb"(?:passw(?:or)?d|passphrase|client_?secret|(?:account|sharedaccess|secret_?access)_?key|(?<=;)pwd|(?<=;\ )pwd)"
)
# What stands for a secret or names its type, a variable, or an expression that gives it.
_NO_PASSWORD = (
    rb"(?!\$|\{|<|%|\*|(?:none|null|true|false|str|string|bytes|text|any|input|required|optional|password|undefined)\b"
    rb"|[a-z_]\w*(?:\(|\[|\.[a-z_])|[a-z]+(?:_[a-z]+)+\b)"
)
_PASSWORDS = (
    # password=value, also in quotation marks; the value of a quoted name is in such marks, too.
    re.compile(rb"""(?i)(%b=(?:\\*["'])?)%b[^\s"'<>\\;,&)\]}]{3,}""" % (_PASSWORD_NAMES, _NO_PASSWORD)),
    re.compile(rb"""(?i)(%b\\*["']\s*[:=]\s*\\*["'])%b[^"'<>\\\r\n]{3,}""" % (_PASSWORD_NAMES, _NO_PASSWORD)),
    # After a colon words follow, too: a password has a digit or a sign in it.
    re.compile(
        rb"""(?i)(%b[ \t]*:[ \t]+(?:\\*["'])?)%b(?=[^\s"'<>\\,;)\]}]*(?:\d|[!-&*+/=?@^~]))[^\s"'<>\\,;)\]}]{3,}"""
        % (_PASSWORD_NAMES, _NO_PASSWORD)
    ),
)
# What is searched for after which words, in small letters.
_BEHIND_WORDS = (
    ((b"authorization",), (_HEADER,)),
    ((b"api-key",), (_KEY_HEADER,)),
    ((b"private key",), (_PRIVATE_KEY,)),
    ((b"passw", b"passphrase", b"secret", b"accountkey", b"accesskey", b"access_key", b"pwd="), _PASSWORDS),
)


class Masker:
    """Masks the secrets of one environment, and what looks like one of anybody's; `named` variables are secret, too."""

    def __init__(self, environ: Mapping[str, str], named: Collection[str] = ()) -> None:
        values = {
            form
            for name, value in environ.items()
            if (is_secret_name(name) or name in named) and not _is_known(value)
            for form in _forms_of(value)
            if len(form) >= LEAST_SECRET
        }
        found = sorted((value.encode("utf-8", "surrogateescape") for value in values), key=len, reverse=True)
        self._values = re.compile(b"|".join(map(re.escape, found))) if found else None

    def mask(self, data: bytes) -> bytes:
        """Return a text with every secret in it masked."""
        for pattern, shown in self._searches(data):
            data = pattern.sub(shown, data)
        return data

    def find_cut(self, data: bytes, at: int) -> int:
        """Return the last place up to `at` where a text can be cut without cutting a secret in two."""
        spans = (match.span() for pattern, _ in self._searches(data) for match in pattern.finditer(data))
        for start, end in sorted(spans, reverse=True):
            at = start if start < at < end else at
        return at

    def open_key(self, data: bytes) -> int:
        """Return where a private key begins that has not come to its end yet; the text's end if there is none."""
        found = _OPEN_KEY.search(data) if b"PRIVATE KEY" in data else None
        return found.start() if found else len(data)

    def _searches(self, data: bytes) -> Iterator[tuple[re.Pattern[bytes], bytes]]:
        """Give what may be found in a text, and what is shown instead."""
        if self._values is not None:
            yield self._values, MASK
        if any(word in data for word in _TOKEN_WORDS):
            yield _TOKENS, MASK
        if b"://" in data:
            yield _IN_URL, rb"\1:***"
        folded = data.lower()  # quicker than any search that takes large letters for small ones
        for words, patterns in _BEHIND_WORDS:
            if any(word in folded for word in words):
                yield from ((pattern, rb"\1***") for pattern in patterns)

    def mask_text(self, text: str) -> str:
        """The same for a text."""
        return self.mask(text.encode("utf-8", "backslashreplace")).decode("utf-8", "replace")


def _is_known(value: str) -> bool:
    """Recognize a value that cannot be a secret, whatever its variable is called."""
    return value.casefold() in _KNOWN_VALUES.split() or _ADDRESS.fullmatch(value) is not None


def _forms_of(value: str) -> Iterator[str]:
    """Give a secret as it may show: whole, line by line (output is masked by the line), and inside JSON."""
    yield value
    yield from (line.strip() for line in value.splitlines())
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]


def is_secret_name(name: str) -> bool:
    """Recognize a variable that most likely holds a secret by its name."""
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS_NAME.search(name)
