"""Whether a DynamoDB answers (QUE-2): one real call, made by hand as botocore takes longer to load."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING

from aiflow.adapters.dynamo.client import LOCAL_REGION
from aiflow.domain.queue.store_obstacles import ObstacleKind, Obstacles

if TYPE_CHECKING:
    import socket

    from aiflow.adapters.dynamo.local.proof import Prove

HOST = "127.0.0.1"


def problem_at(port: int, key: str, prove: Prove, seconds: float = 2.0) -> Obstacles | None:
    """Ask for the tables of our database; returns what is wrong with the answer, None if nothing is.

    Nothing is asked, and no key sent, unless it is proved who listens.
    """
    # DynamoDB Local reads the key and the region from here, and checks no signature.
    credential = f"Credential={key}/20260101/{LOCAL_REGION}/dynamodb/aws4_request"
    headers = {
        "X-Amz-Target": "DynamoDB_20120810.ListTables",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0",
    }
    connection = http.client.HTTPConnection(HOST, port, timeout=seconds)

    def connect() -> socket.socket:
        connection.connect()
        return connection.sock

    try:
        if (problem := prove(connect)) is not None:
            return problem
        connection.request("POST", "/", b"{}", headers)
        answer = connection.getresponse()
        tables = json.loads(answer.read(1_000_000))
    except OSError as error:
        return Obstacles.of(ObstacleKind.NOT_REACHED, words=error.strerror or error)
    except (http.client.HTTPException, ValueError):
        return Obstacles.of(ObstacleKind.NOT_DYNAMODB)
    finally:
        connection.close()
    is_list = answer.status == 200 and isinstance(tables, dict) and isinstance(tables.get("TableNames"), list)
    return None if is_list else Obstacles.of(ObstacleKind.OTHER_ANSWER, status=answer.status)
