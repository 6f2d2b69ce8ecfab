// What the page and the browser know alike about lines of text. Python reads the same object (web/text/rules.py), so it is
// strict JSON between the first and the last brace, and its patterns mean the same in both: `re.ASCII` there, `u` here.
export default {
  "unseen": "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufdd0-\\ufdef\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff\\ud800-\\udfff\ud80d\udc30-\ud80d\udc5f\ud82f\udca0-\ud82f\udca3\ud834\udd59\ud834\udd73-\ud834\udd7a\udb40\udc00-\udb40\udcff\udb40\uddf0-\udb43\udfff]|(?<![^\\u0000-\\u007f])[\\u200c\\u200d\\ufe00-\\ufe0f](?!\\u20e3)|[\\u200c\\u200d\\ufe00-\\ufe0f][\\u200c\\u200d\\ufe00-\\ufe0f]+",
  "escape": "\\u001b(?:\\[([0-?]*)([ -/]*[@-~])|\\][^\\u0007\\u001b\\n]*(?:\\u0007|\\u001b\\\\)?|[PX^_][^\\u001b\\n]*(?:\\u001b\\\\)?|[ -/]*[0-OQ-WYZ`-~])?|\\u009b([0-?]*)([ -/]*[@-~])",
  "palette": [
    [0, 0, 0], [205, 0, 0], [0, 205, 0], [205, 205, 0], [0, 0, 238], [205, 0, 205], [0, 205, 205], [229, 229, 229],
    [127, 127, 127], [255, 0, 0], [0, 255, 0], [255, 255, 0], [92, 92, 255], [255, 0, 255], [0, 255, 255], [255, 255, 255]
  ],
  "heading": "^=== (\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:[+-]\\d\\d:\\d\\d|Z)) (.*)$",
  "titles": [
    { "what": "role", "pattern": "^(planner|implementer|qa)(?: (S\\d+))? attempt (\\d{1,6})$", "parts": ["role", "step", "attempt"] },
    { "what": "tests", "pattern": "^(\\w+) tests: (.*)$", "parts": ["name", "command"] },
    { "what": "set_up", "pattern": "^worktree set-up: (.*)$", "parts": ["command"] },
    { "what": "acceptance", "pattern": "^acceptance, ([^:]*): (.*)$", "parts": ["name", "command"] },
    { "what": "commit", "pattern": "^commit$", "parts": [] },
    { "what": "push", "pattern": "^push$", "parts": [] }
  ],
  "command": "^ {0,4}\\$ ",
  "failing": [
    { "of": "aiflow", "pattern": "^\\[aiflow\\] [A-Z][A-Z0-9_]*: " },
    { "of": "aiflow", "pattern": "^rejected: " },
    { "of": "exit code", "pattern": "^\\((?:exit code -?[1-9]\\d*|failed)\\)$" },
    { "of": "exit code", "pattern": "\\b(?:exit(?:ed)?(?: with)?|returned)(?: non-zero)? (?:exit )?(?:code|status):? -?[1-9]" },
    { "of": "python", "pattern": "^(?:[|+ ]*)?(?:[A-Za-z_]\\w*\\.)*[A-Z]\\w*(?:Error|Exception|Interrupt|Exit|Group)(?:: |$)" },
    { "of": "pytest", "pattern": "^E {3}" },
    { "of": "pytest", "pattern": "^(?:FAILED|ERROR) [^ ]+(?:\\.py|::)" },
    { "of": "pytest", "pattern": "^=+ (?:.*, )?[1-9]\\d* (?:failed|errors?)\\b.*=+$" },
    { "of": "pytest", "pattern": "^(?:\\d+ [a-z]+, )*[1-9]\\d* (?:failed|errors?)(?:, | in )" },
    { "of": "unittest", "pattern": "^(?:FAIL|ERROR): \\w+ \\(" },
    { "of": "unittest", "pattern": "^FAILED \\((?:failures|errors|skipped|expected failures|unexpected successes)=" },
    { "of": "jest", "pattern": "^ *(?:✕|✗|✖|×|●) " },
    { "of": "jest", "pattern": "^ *FAIL +[^ ]" },
    { "of": "jest", "pattern": "^ *Tests?(?: Suites| Files)?:? +[1-9]\\d* failed" },
    { "of": "mocha", "pattern": "^ *[1-9]\\d* failing\\b" },
    { "of": "node", "pattern": "^ *not ok \\d+" },
    { "of": "node", "pattern": "^# fail [1-9]" },
    { "of": "npm", "pattern": "^npm (?:ERR!|error) " },
    { "of": "go", "pattern": "^ *--- FAIL: " },
    { "of": "go", "pattern": "^FAIL(?:\\t.*)?$" },
    { "of": "go", "pattern": "^panic: " },
    { "of": "cargo", "pattern": "^test .* \\.\\.\\. FAILED$" },
    { "of": "cargo", "pattern": "^test result: FAILED" },
    { "of": "cargo", "pattern": "^thread '.*' (?:\\(\\d+\\) )?panicked at " },
    { "of": "cargo", "pattern": "^error(?:\\[E\\d+\\])?: " },
    { "of": "rspec", "pattern": "^\\d+ examples?, [1-9]\\d* failures?" },
    { "of": "java", "pattern": "^\\[ERROR\\] " },
    { "of": "java", "pattern": "^Caused by: |^Exception in thread " },
    { "of": "compilers", "pattern": "^[^ :]+:\\d+(?::\\d+)?: (?:fatal )?error: " },
    { "of": "compilers", "pattern": "^[^ (]+\\(\\d+,\\d+\\): error TS\\d+: |^[^ :]+:\\d+:\\d+ - error TS\\d+: " },
    { "of": "make", "pattern": "^(?:g?make)(?:\\[\\d+\\])?: \\*\\*\\* " },
    { "of": "shell", "pattern": "^Segmentation fault|^(?:/bin/)?(?:ba|z|da)?sh: .*: (?:command )?not found$" }
  ],
  "passing": [
    { "of": "pytest", "pattern": "^=+ [1-9]\\d* passed\\b.*=+$|^[1-9]\\d* passed(?:, .*)? in " },
    { "of": "unittest", "pattern": "^OK(?: \\(.*\\))?$" },
    { "of": "jest", "pattern": "^ *Tests:? +(?:.*, )?[1-9]\\d* passed" },
    { "of": "go", "pattern": "^ok +\\t" },
    { "of": "cargo", "pattern": "^test result: ok\\." }
  ]
};
