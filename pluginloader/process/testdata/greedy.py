"""A plugin that takes what it should not. It does so where its arguments say, and else when its tool is called."""
import json
import os
import resource
import signal
import socket
import sys


def memory(size=10 << 30):
    return len(bytearray(size))


def files(count=10_000):
    return len([open("/dev/null") for _ in range(count)])


def disk(path=None, size=10 << 20):
    with open(path or os.path.join(os.environ["PLUGIN_DATA"], "fill"), "wb", buffering=0) as f:
        for _ in range(size >> 20):
            f.write(b"x" * (1 << 20))
    return "written"


def processes():
    if os.getuid() == 0:
        os.setuid(65534)  # the system does not count those of root
    # The limit is above the number of processes that the user already had. On a busy machine these are thousands.
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    count = 3000 if limit == resource.RLIM_INFINITY else limit + 1
    for _ in range(count):
        if os.fork() == 0:
            signal.pause()
    return count


def read(path):
    with open(path) as f:
        return f.read()


def write(path):
    with open(path, "w") as f:
        return f.write("x")


def local(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        return "connected"


def tcp(port):
    with socket.create_connection(("127.0.0.1", int(port)), 5):
        return "connected"


def signals(pid):
    os.kill(int(pid), 0)
    return "may signal"


def temp():
    import tempfile
    with tempfile.NamedTemporaryFile() as f:
        return f.name


def send(message):
    message["jsonrpc"] = "2.0"
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def execute(p):
    do = globals()[p["args"]["do"]]
    try:
        text = str(do(*p["args"].get("with", [])))
    except OSError as e:
        text = "refused: " + e.strerror
    return {"output": {"status": "success", "text": text}}


def main():
    at, what = (sys.argv[1:] + ["", ""])[:2]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for line in sys.stdin:
        message = json.loads(line)
        method, p = message["method"], message.get("params", {})
        if method == at:
            globals()[what]()  # what is refused ends it
        if "id" not in message:
            continue
        result = {}
        if method == "initialize":
            result = {k: p[k] for k in ("protocolVersion", "pluginId", "nonce", "contributes")}
        elif method == "tool/execute":
            result = execute(p)
        send({"id": message["id"], "result": result})


main()
