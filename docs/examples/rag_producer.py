"""Pushes a file that lies in a RAG's incoming folder, and waits for it. Python's standard library only.

    python3 rag_producer.py redis://127.0.0.1:6379/0 policies_rag /app/data/sources/policies_rag/incoming/my_policy.pdf

With the redis package, `redis` below is `Redis.from_url(sys.argv[1], decode_responses=True).execute_command`.
"""
import json, os, secrets, socket, sys, time
from datetime import datetime, timezone
from urllib.parse import urlparse

url = urlparse(sys.argv[1])
rag_id, source_path = sys.argv[2], os.path.abspath(sys.argv[3])
stream = socket.create_connection((url.hostname, url.port or 6379)).makefile("rwb")


def redis(*words):
    parts = [str(word).encode() for word in words]
    stream.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
    stream.flush()
    return answer()


def answer():
    kind, rest = (line := stream.readline())[:1], line[1:].strip()
    if kind == b"-":
        raise RuntimeError(rest.decode())
    if kind == b"*":
        return [answer() for _ in range(int(rest))]
    if kind == b"$" and int(rest) >= 0:
        return stream.read(int(rest) + 2)[:-2].decode()
    return None if kind == b"$" else rest.decode()


if url.password:
    redis("AUTH", url.password)
redis("SELECT", url.path.strip("/") or 0)

job_id = f"rag-{rag_id}-{int(time.time())}-{secrets.token_hex(4)}"
redis("LPUSH", "rag:ingest:queue", json.dumps({
    "job_id": job_id,
    "rag_id": rag_id,
    "source_path": source_path,
    "source_type": source_path.rsplit(".", 1)[-1],
    "filename": os.path.basename(source_path),
    "submitted_at": datetime.now(timezone.utc).isoformat(),
    "submitted_by": "scheduled",
}))
print(job_id, flush=True)

while (status := redis("HGET", f"rag:ingest:job:{job_id}", "status")) not in ("done", "failed"):
    time.sleep(0.2)
fields = redis("HGETALL", f"rag:ingest:job:{job_id}")
job = dict(zip(fields[::2], fields[1::2]))
print(status, job["chunks_created"], job.get("error", ""))
sys.exit(0 if status == "done" else 1)
