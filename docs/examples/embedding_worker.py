"""Embeds jobs of a Quarry server. Python's standard library only.

    QUARRY_EMBEDDING_MODEL=letters quarry serve &
    python3 embedding_worker.py http://127.0.0.1:7310
"""
import http.client, json, os, sys, time, urllib.error, urllib.request

SERVER = (sys.argv[1:] or sys.exit(__doc__))[0].rstrip("/")
KEY = os.environ.get("QUARRY_API_KEY")


def post(path, body):
    headers = {"content-type": "application/json"}
    if KEY:
        headers["authorization"] = f"Bearer {KEY}"
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)


def embed(text):
    """Put your model here. This one counts letters."""
    counts = [text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]
    length = sum(count * count for count in counts) ** 0.5 or 1
    return [count / length for count in counts]


def settled(task):
    ticket = {"id": task["id"], "lease_token": task["lease_token"]}
    try:
        return {**ticket, "outcome": "done", "result": {"embedding_vector": embed(task["payload"]["input_text"])}}
    except Exception as error:
        return {**ticket, "outcome": "retry", "reason": repr(error)}


def hand_in(tasks):
    """One that the server refuses fails alone, with the server's reason."""
    try:
        post("/queues/embeddings/settle", {"worker_id": worker, "tasks": tasks})
    except urllib.error.HTTPError as error:
        if error.code != 400 or tasks[0]["outcome"] == "failed":
            raise
        if len(tasks) > 1:
            return [hand_in([task]) for task in tasks]
        ticket = {name: tasks[0][name] for name in ("id", "lease_token")}
        hand_in([{**ticket, "outcome": "failed", "reason": json.load(error)["detail"]}])


me = {"host": os.uname().nodename, "version": "1.0", "lanes": ["embeddings"]}
worker = None
while True:
    try:
        worker = worker or post("/workers/register", me)["id"]
        tasks = post("/queues/embeddings/claim", {"worker_id": worker, "limit": 50, "wait_seconds": 20})["tasks"]
        if tasks:
            hand_in([settled(task) for task in tasks])
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError) and error.code == 404:
            worker = None  # Forgotten: register again.
        print(f"trying again in 5 s: {error}", file=sys.stderr)
        time.sleep(5)
