"""The table of reason codes (ERR-1) as text: who only asks whether a code is known does not take it apart (PRF-1)."""

from __future__ import annotations

# code | category | HTTP | exit | next step | stops a run as (N, F, -) | blocked reason of an issue | retryable
_TABLE = """
NOT_READY                SELECTION    409 CONFLICT    MEND        - -                      no
DEPENDS_NOT_DONE         SELECTION    409 CONFLICT    WAIT        - -                      yes
DEPENDS_NOT_FOUND        SELECTION    409 BAD_INPUT   MEND        - -                      no
DEPENDS_FREED            INPUT        200 OK          NONE        - -                      no
DEPENDS_CYCLE            SELECTION    409 BAD_INPUT   MEND        - -                      no
REQUEST_LOCKED           SELECTION    409 CONFLICT    WAIT        - -                      yes
QUEUE_LOCKED             SELECTION    409 CONFLICT    WAIT        - -                      yes
LATEST_RUN_NEEDS_INPUT   SELECTION    409 CONFLICT    RESUME      - -                      no
REQUEST_INVALID          SELECTION    422 BAD_INPUT   MEND        - -                      no
DUPLICATE_ID             SELECTION    422 BAD_INPUT   MEND        - -                      no
LABEL_NOT_PERMITTED      SELECTION    409 CONFLICT    MEND        - policy_denied          no
ISSUE_TEXT_CHANGED       SELECTION    409 CONFLICT    MEND        - policy_denied          no

INPUT_INVALID            INPUT        422 BAD_INPUT   MEND        - -                      no
SETTINGS_INVALID         INPUT        422 BAD_INPUT   MEND        N environment_failure    no
REQUEST_NOT_FOUND        INPUT        404 BAD_INPUT   MEND        - -                      no
RUN_NOT_FOUND            INPUT        404 BAD_INPUT   MEND        - -                      no
LOCK_NOT_FOUND           INPUT        404 BAD_INPUT   MEND        - -                      no
REQUEST_EXISTS           INPUT        409 CONFLICT    MEND        - -                      no
STATUS_NOT_ALLOWED       INPUT        422 BAD_INPUT   MEND        - -                      no
EDIT_CONFLICT            INPUT        409 CONFLICT    MEND        - -                      yes
EDITED_ELSEWHERE         INPUT        409 BAD_INPUT   MEND        - -                      no
FOLDER_IN_USE            INPUT        409 BAD_INPUT   MEND        - -                      no
REQUESTS_DIR_IN_USE      INPUT        409 BAD_INPUT   MEND        - -                      no
HIDDEN_TEXT              INPUT        200 OK          MEND        - -                      no

PROJECT_NOT_FOUND        ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
REQUESTS_DIR_MISSING     ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
PLATFORM_UNSUPPORTED     ENVIRONMENT  503 ENVIRONMENT NONE        - -                      no
NETWORK_FILE_SYSTEM      ENVIRONMENT  503 ENVIRONMENT MEND        N environment_failure    no
LINK_REFUSED             ENVIRONMENT  503 ENVIRONMENT MEND        N environment_failure    no
DISK_FULL                ENVIRONMENT  507 ENVIRONMENT RESUME      N environment_failure    yes
IO_ERROR                 ENVIRONMENT  503 ENVIRONMENT RESUME      N environment_failure    yes
DOCTOR_FAILED            ENVIRONMENT  409 ENVIRONMENT RESUME      N environment_failure    yes
SETUP_FAILED             ENVIRONMENT  409 ENVIRONMENT RESUME      N environment_failure    yes

BASE_TESTS_FAILED        EXECUTION    409 TESTS       RESUME      N environment_failure    yes
RUN_IN_PROGRESS          EXECUTION    409 CONFLICT    WAIT        - -                      yes
QUEUE_IN_PROGRESS        EXECUTION    409 CONFLICT    WAIT        - -                      yes
LOCK_STALE_RECOVERED     EXECUTION    200 OK          NONE        - -                      no
LOCK_LOST                EXECUTION    409 CONFLICT    RESUME      N lock_mismatch          yes
LOCK_MISMATCH            EXECUTION    409 CONFLICT    NONE        - lock_mismatch          no
RUN_LOST                 EXECUTION    409 ENVIRONMENT NEW_RUN     N environment_failure    yes
PROCESS_CRASHED          EXECUTION    500 ENVIRONMENT RESUME      N environment_failure    yes
CANCELLED                EXECUTION    409 CONFLICT    RESUME      N decision_needed        yes
SENT_BACK                EXECUTION    200 OK          NONE        F decision_needed        no
REPLANNED                EXECUTION    200 OK          NONE        F -                      no
AWAITING_ACCEPTANCE      EXECUTION    200 OK          ACCEPT      - -                      no
ACCEPTANCE_UNDONE        EXECUTION    200 OK          SEND_BACK   - decision_needed        no
AWAITING_CLOSE           EXECUTION    200 OK          MEND        - -                      no
NOTHING_CHANGED          EXECUTION    200 OK          ACCEPT      - -                      no
NOTHING_ADDED            EXECUTION    200 OK          ACCEPT      - -                      no
SETTINGS_CHANGED         EXECUTION    200 OK          ACCEPT      - -                      no
CONFLICT_TO_REVIEW       EXECUTION    200 OK          ACCEPT      - -                      no
RUN_NOT_ACCEPTABLE       EXECUTION    409 CONFLICT    NONE        - -                      no
NOT_UNDOABLE             EXECUTION    409 CONFLICT    NONE        - -                      no
MERGE_TESTS_FAILED       EXECUTION    409 TESTS       UPDATE      - quality_rule_violation yes
UNDO_TESTS_FAILED        EXECUTION    409 TESTS       MEND        - quality_rule_violation yes
RUN_NOT_ACTIVE           EXECUTION    409 CONFLICT    NONE        - -                      no
RUN_FROM_NEWER_VERSION   EXECUTION    409 CONFLICT    MEND        - -                      no
RUN_NOT_RESUMABLE        EXECUTION    409 CONFLICT    NEW_RUN     - -                      no
REPLAN_REQUIRED          EXECUTION    409 CONFLICT    REPLAN      - -                      no
RETRY_LIMIT_EXCEEDED     EXECUTION    409 AGENT       REPLAN      N retry_condition_unmet  no
STEP_TOO_LARGE           EXECUTION    422 AGENT       REPLAN      N quality_rule_violation no
FILE_TOO_LARGE           EXECUTION    422 AGENT       RETRY_STEP  N quality_rule_violation yes
UNIT_TEST_FAILED         EXECUTION    422 TESTS       RETRY_STEP  N quality_rule_violation yes
E2E_TEST_FAILED          EXECUTION    422 TESTS       RETRY_STEP  N quality_rule_violation yes
TEST_TIMEOUT             EXECUTION    504 TESTS       RETRY_STEP  N quality_rule_violation yes
QA_REJECTED              EXECUTION    422 AGENT       RETRY_STEP  N quality_rule_violation yes
NEEDS_CLARIFICATION      EXECUTION    200 AGENT       ANSWER      N decision_needed        no
COST_LIMIT_REACHED       EXECUTION    429 CONFLICT    RESUME      N resource_exceeded      yes
RUN_LIMIT_REACHED        EXECUTION    429 CONFLICT    RESUME      N resource_exceeded      yes

JSON_PARSE_ERROR         AGENT        502 AGENT       RETRY_STEP  N quality_rule_violation yes
JSON_SCHEMA_INVALID      AGENT        502 AGENT       RETRY_STEP  N quality_rule_violation yes
AGENT_NOT_FOUND          AGENT        503 ENVIRONMENT RESUME      N environment_failure    no
AGENT_FAILED             AGENT        502 AGENT       RETRY_STEP  N environment_failure    yes
AGENT_TIMEOUT            AGENT        504 AGENT       RETRY_STEP  N resource_exceeded      yes
AGENT_QUOTA              AGENT        429 ENVIRONMENT RESUME      N resource_exceeded      yes
AGENT_AUTH_REQUIRED      AGENT        401 ENVIRONMENT RESUME      N environment_failure    no
AGENT_SANDBOX_MISSING    AGENT        503 ENVIRONMENT RESUME      N environment_failure    no
AGENT_PERMISSION_DENIED  AGENT        403 AGENT       RETRY_STEP  N policy_denied          no
CHANGES_REFUSED          AGENT        422 AGENT       RETRY_STEP  N policy_denied          yes
AGENT_SESSION_LOST       AGENT        200 OK          NONE        - -                      no

WORKTREE_DIRTY           GIT          409 GIT         RESUME      N environment_failure    yes
WORKTREE_LOST            GIT          409 GIT         RESUME      N environment_failure    yes
SUBMODULE_CHANGED        GIT          409 GIT         RETRY_STEP  N policy_denied          yes
DEPENDS_NOT_IN_BASE      GIT          200 OK          MEND        - -                      no
FORMER_BRANCH_GONE       GIT          200 OK          NONE        - -                      no
ORIGIN_MISSING           GIT          200 OK          RESUME      - -                      no
REMOTE_NOT_GITHUB        GIT          200 OK          RESUME      - -                      no
PUSH_FAILED              GIT          200 OK          RESUME      - -                      no
PULL_NEEDS_PUSH          GIT          200 OK          MEND        - -                      no
NOT_A_REPOSITORY         GIT          503 GIT         MEND        - environment_failure    no
NO_COMMITS               GIT          409 GIT         MEND        - environment_failure    no
BASE_BRANCH_MISSING      GIT          409 GIT         MEND        N environment_failure    no
BRANCH_IN_THE_WAY        GIT          409 GIT         RESUME      N environment_failure    no
GIT_IDENTITY_MISSING     GIT          409 GIT         RESUME      N environment_failure    no
GIT_NOT_FOUND            GIT          503 GIT         MEND        N environment_failure    no
GIT_TOO_OLD              GIT          503 GIT         MEND        - environment_failure    no
GIT_FAILED               GIT          500 GIT         RESUME      N environment_failure    yes
MERGE_CONFLICT           GIT          409 GIT         UPDATE      - decision_needed        yes
UNDO_CONFLICT            GIT          409 GIT         MEND        - decision_needed        no
CHECKOUT_IN_THE_WAY      GIT          409 GIT         ACCEPT      - decision_needed        yes
CHECKOUT_RECOVERED       GIT          200 OK          NONE        - -                      no

RUNNER_LOST              QUEUE        503 ENVIRONMENT RESUME      N environment_failure    yes
RUNNER_STOPPED           QUEUE        503 ENVIRONMENT RESUME      N environment_failure    yes
STORE_UNREACHABLE        QUEUE        503 ENVIRONMENT RESUME      N environment_failure    yes
STORE_THROTTLED          QUEUE        429 ENVIRONMENT WAIT        - resource_exceeded      yes
STORE_REFUSED            QUEUE        403 ENVIRONMENT MEND        - environment_failure    no
STORE_CREDENTIALS_MISSING QUEUE       403 ENVIRONMENT MEND        - environment_failure    no
STORE_TABLE_MISMATCH     QUEUE        409 ENVIRONMENT MEND        - environment_failure    no
STORE_NOT_INSTALLED      QUEUE        503 ENVIRONMENT MEND        - environment_failure    no
STORE_NOT_FETCHED        QUEUE        503 ENVIRONMENT MEND        - environment_failure    yes
STORE_NOT_STARTED        QUEUE        503 ENVIRONMENT MEND        - environment_failure    yes
TASK_NOT_FOUND           INPUT        404 BAD_INPUT   MEND        - -                      no
TASK_EXISTS              QUEUE        409 CONFLICT    MEND        - -                      no
TASK_NOT_ACTIVE          QUEUE        409 CONFLICT    NONE        - -                      no
TASK_ID_INVALID          INPUT        422 BAD_INPUT   MEND        - -                      no
REQUEST_QUEUED           QUEUE        409 CONFLICT    WAIT        - -                      yes
PROMPT_TOO_LARGE         INPUT        413 BAD_INPUT   MEND        - -                      no
PROMPT_EMPTY             INPUT        422 BAD_INPUT   MEND        - -                      no
PROMPT_LOST              QUEUE        409 ENVIRONMENT MEND        - environment_failure    no
NAMESPACE_INVALID        INPUT        422 BAD_INPUT   MEND        - -                      no
ISSUE_RETRY_ONLY         QUEUE        409 CONFLICT    ISSUE_RETRY - retry_condition_unmet  no
ISSUE_RETRY_LIMIT        QUEUE        409 CONFLICT    MEND        - retry_condition_unmet  no
ISSUE_DECISION_MISSING   QUEUE        409 CONFLICT    ISSUE_RETRY - retry_condition_unmet  no
COMMAND_NOT_PERMITTED    QUEUE        409 CONFLICT    MEND        - policy_denied          no

GITHUB_NOT_INSTALLED     ENVIRONMENT  503 ENVIRONMENT MEND        - environment_failure    no
GITHUB_NOT_SIGNED_IN     ENVIRONMENT  503 ENVIRONMENT MEND        - environment_failure    no
GITHUB_TOKEN_INVALID     ENVIRONMENT  403 ENVIRONMENT MEND        - environment_failure    no
GITHUB_RIGHTS            ENVIRONMENT  403 ENVIRONMENT MEND        - environment_failure    no
GITHUB_REFUSED           ENVIRONMENT  403 ENVIRONMENT MEND        - environment_failure    no
GITHUB_NOT_FOUND         ENVIRONMENT  503 ENVIRONMENT MEND        - environment_failure    no
GITHUB_MOVED             ENVIRONMENT  503 ENVIRONMENT MEND        - environment_failure    no
GITHUB_GONE              INPUT        404 BAD_INPUT   NONE        - -                      no
GITHUB_RATE_LIMITED      ENVIRONMENT  429 ENVIRONMENT WAIT        - resource_exceeded      yes
GITHUB_UNREACHABLE       ENVIRONMENT  503 ENVIRONMENT WAIT        - environment_failure    yes
GITHUB_LAGGING           ENVIRONMENT  503 ENVIRONMENT WAIT        - environment_failure    yes
GITHUB_UNKNOWN           ENVIRONMENT  503 ENVIRONMENT WAIT        - environment_failure    yes

AUTO_NOT_RUNNING         EXECUTION    409 CONFLICT    NONE        - -                      no
AUTO_NOT_CUT             EXECUTION    409 CONFLICT    NONE        - -                      no
AUTO_NEEDS_INPUT_LIMIT   EXECUTION    200 OK          MEND        - -                      no
AUTO_FAILED_LIMIT        EXECUTION    200 OK          MEND        - -                      no
AUTO_STOPPED_BY_PERSON   EXECUTION    200 OK          NONE        - -                      no
AUTO_CUT_OFF             EXECUTION    503 ENVIRONMENT RESUME      N environment_failure    yes
AUTO_RUNS_LIMIT          EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_MINUTES_LIMIT       EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_UNTIL_REACHED       EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_COST_LIMIT          EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_TOKENS_LIMIT        EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_CALLS_LIMIT         EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_NOTHING_RUNNABLE    EXECUTION    200 OK          NONE        - -                      no

AUTH_REQUIRED            INPUT        401 BAD_INPUT   MEND        - -                      no
CODE_REFUSED             INPUT        401 BAD_INPUT   MEND        - -                      no
ORIGIN_REFUSED           INPUT        403 BAD_INPUT   MEND        - -                      no
HOST_REFUSED             INPUT        421 BAD_INPUT   MEND        - -                      no
BODY_TOO_LARGE           INPUT        413 BAD_INPUT   MEND        - -                      no
BODY_TOO_SLOW            INPUT        408 BAD_INPUT   MEND        - -                      yes
CONTENT_TYPE_REFUSED     INPUT        415 BAD_INPUT   MEND        - -                      no
ROUTE_NOT_FOUND          INPUT        404 BAD_INPUT   MEND        - -                      no
METHOD_NOT_ALLOWED       INPUT        405 BAD_INPUT   MEND        - -                      no
SESSION_NOT_FOUND        INPUT        404 BAD_INPUT   MEND        - -                      no
SIGNATURE_INVALID        INPUT        401 BAD_INPUT   MEND        - -                      no
WEBHOOK_NOT_SET          ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
START_UNCONFIRMED        ENVIRONMENT  504 ENVIRONMENT WAIT        - -                      yes
SERVER_RUNNING           EXECUTION    409 CONFLICT    NONE        - -                      no
SERVER_NOT_RUNNING       ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
SERVER_STOPPING          ENVIRONMENT  503 ENVIRONMENT WAIT        - -                      yes
PORT_IN_USE              ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
SERVICE_UNAVAILABLE      ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
SERVICE_FAILED           ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no

TRANSITION_NOT_ALLOWED   INTERNAL     500 INTERNAL    NEW_RUN     F environment_failure    no
INTERNAL_ERROR           INTERNAL     500 INTERNAL    NEW_RUN     F environment_failure    no
"""

ROWS = {row.partition(" ")[0]: row for row in _TABLE.splitlines() if row}
